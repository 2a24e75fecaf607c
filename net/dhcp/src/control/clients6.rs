//! DHCPv6 clients: addresses of interfaces, and prefixes from which other interfaces get theirs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use shoal_datagram::{Checksum, Datagram};
use shoal_fib::{FibIndex, Path, Source, Via};
use shoal_graph::clock::Time;
use shoal_interface::SwIfIndex;
use shoal_wire::{EtherType, Ip6Prefix, MacAddress};

use super::from_prefixes::FromPrefix;
use super::{ALL_SERVERS, CLIENT_PORT6, Dhcp, DhcpError, HOPS, SERVER_PORT6};
use crate::client_message6::{Answer, Association, ClientRequest, Wanted, kind};
use crate::client6::{Act6, Lease6, Machine6, Phase, ServerReply};
use crate::exchange6::{Due, Exchange, Question};
use crate::node::ReceivedPacket;
use crate::reconfigure6::ReconfigureKey;

/// The longest name of a group of prefixes: a message has 63 bytes for it.
const LONGEST_GROUP: usize = 63;
/// Servers that are remembered.
const MOST_SERVERS: usize = 1024;
/// Bits of an address that name its link.
const NETWORK: u8 = 64;
/// A DUID that follows from a link-layer address (RFC 8415, 11.4), of Ethernet.
const DUID_LL: [u8; 4] = [0, 3, 0, 1];

/// Which client of an interface.
pub(super) type Key6 = (SwIfIndex, Wanted);

/// A client.
pub(super) struct Client6 {
    pub(super) machine: Machine6,
    /// The group that its prefixes are in; of a client for addresses empty.
    pub(super) group: String,
    /// Addresses that others had.
    pub(super) declined: u64,
    /// How often its server had it ask again.
    pub(super) reconfigured: u64,
}

/// A client as it is shown.
#[derive(Clone, Debug)]
pub struct Client6Info {
    /// The interface.
    pub interface: SwIfIndex,
    /// What it wants.
    pub wanted: Wanted,
    /// The group that its prefixes are in.
    pub group: String,
    /// How far it is.
    pub phase: Phase,
    /// Its server.
    pub server: Option<Vec<u8>>,
    /// What it has, and for how many seconds: preferred, valid. `None`: for good.
    pub leases: Vec<(Ip6Prefix, Option<u64>, Option<u64>)>,
    /// Seconds until it asks whether that goes on, and until it asks all servers.
    pub times: (Option<u64>, Option<u64>),
    /// Addresses that others had.
    pub declined: u64,
    /// How often its server had it ask again.
    pub reconfigured: u64,
}

/// A server's answer, as clients of the binary API hear of it.
#[derive(Clone, Debug)]
pub struct Replied {
    /// The interface.
    pub interface: SwIfIndex,
    /// What was wanted.
    pub wanted: Wanted,
    /// The server, by its number.
    pub server: u32,
    /// Which message it is.
    pub kind: u8,
    /// How much the server wants to be chosen.
    pub preference: u8,
    /// How it went.
    pub status: u16,
    /// What it gives.
    pub association: Association,
}

type Observer = Rc<dyn Fn(&Replied)>;

/// All that DHCPv6 clients need.
#[derive(Default)]
pub(super) struct Clients6 {
    /// The router's identifier, if it was given.
    duid: RefCell<Option<Vec<u8>>>,
    pub(super) servers: RefCell<Vec<Vec<u8>>>,
    /// A client of the binary API takes answers.
    listens: std::cell::Cell<bool>,
    pub(super) all: RefCell<BTreeMap<Key6, Client6>>,
    pub(super) exchanges: RefCell<BTreeMap<Key6, Exchange>>,
    /// Keys of servers, by their numbers.
    pub(super) keys: RefCell<BTreeMap<u32, ReconfigureKey>>,
    /// Messages that had a client ask again and were not believed.
    pub(super) refused: std::cell::Cell<u64>,
    pub(super) from_prefixes: RefCell<Vec<FromPrefix>>,
    observers: RefCell<Vec<Observer>>,
}

impl Dhcp {
    /// Hears of each answer of a server.
    pub fn observe_replies(&self, observe: impl Fn(&Replied) + 'static) {
        self.clients6.observers.borrow_mut().push(Rc::new(observe));
    }

    /// What servers know this router by: of the first interface that has a link-layer address, if it was not given.
    pub fn duid(&self) -> Vec<u8> {
        if let Some(duid) = &*self.clients6.duid.borrow() {
            return duid.clone();
        }
        let macs = self.interfaces.indices().into_iter().filter_map(|i| self.interfaces.data(i).ok());
        let mac = macs.map(|data| data.mac()).find(|mac| !mac.is_zero()).unwrap_or(MacAddress::ZERO);
        [&DUID_LL[..], &mac.0].concat()
    }

    /// The one that was given.
    pub fn given_duid(&self) -> Option<Vec<u8>> {
        self.clients6.duid.borrow().clone()
    }

    /// Sets it. Clients that have something begin again.
    ///
    /// # Errors
    /// It is none: 3 to 130 bytes (RFC 8415, 11.1).
    pub fn set_duid(&self, duid: &[u8]) -> Result<(), DhcpError> {
        if !(3..=130).contains(&duid.len()) {
            return Err(DhcpError::Duid(duid.len()));
        }
        self.begin_with(Some(duid.to_vec()));
        Ok(())
    }

    /// Lets it follow from the link-layer address of an interface. Clients that have something begin again.
    pub fn derive_duid(&self) {
        self.begin_with(None);
    }

    fn begin_with(&self, duid: Option<Vec<u8>>) {
        *self.clients6.duid.borrow_mut() = duid;
        let keys: Vec<Key6> = self.clients6.all.borrow().keys().copied().collect();
        for key in keys {
            self.restart6(key);
        }
    }

    fn restart6(&self, key: Key6) {
        let acts = {
            let mut all = self.clients6.all.borrow_mut();
            let Some(client) = all.get_mut(&key) else { return };
            let gone: Vec<Act6> = client.machine.leases.iter().map(|l| Act6::Remove(l.prefix)).collect();
            let (machine, acts) = Machine6::start(key.0.0);
            client.machine = machine;
            gone.into_iter().chain(acts).collect()
        };
        self.act6(key, acts);
    }

    /// Whether answers are taken for clients of the binary API.
    pub fn set_listens6(&self, on: bool) {
        self.clients6.listens.set(on);
        self.renew_ports();
    }

    pub(super) fn needs_port6(&self) -> bool {
        self.clients6.listens.get()
            || !self.clients6.all.borrow().is_empty()
            || !self.clients6.exchanges.borrow().is_empty()
    }

    /// Sends a message of a client of the binary API until it is answered; `None` stops that.
    ///
    /// # Errors
    /// There is no such interface or server, or it is no message of clients.
    pub fn ask6(
        &self,
        interface: SwIfIndex,
        wanted: Wanted,
        question: Option<Question>,
    ) -> Result<(), DhcpError> {
        self.interfaces.data(interface)?;
        if let Some(question) = &question {
            if !kind::OF_CLIENTS.contains(&question.kind) {
                return Err(DhcpError::Message(question.kind));
            }
            let servers = self.clients6.servers.borrow().len();
            if let Some(server) = question.server.filter(|server| *server as usize >= servers) {
                return Err(DhcpError::NoServer6(server));
            }
        }
        self.set_exchange((interface, wanted), question);
        Ok(())
    }

    fn set_exchange(&self, key: Key6, question: Option<Question>) {
        let mut exchanges = self.clients6.exchanges.borrow_mut();
        match question {
            Some(question) => {
                let [a, b, c, _] = fastrand::u32(..).to_be_bytes();
                exchanges.insert(key, Exchange::new(question, [a, b, c], self.now()));
            }
            None => {
                exchanges.remove(&key);
            }
        }
        drop(exchanges);
        self.renew_ports();
        self.ring();
    }

    /// Has an interface get addresses, or prefixes for a group, from a server.
    ///
    /// # Errors
    /// There is no such interface, it does so already, or the name of the group is too long.
    pub fn add_client6(&self, interface: SwIfIndex, wanted: Wanted, group: &str) -> Result<(), DhcpError> {
        let name = self.interfaces.name(interface)?;
        if wanted == Wanted::Prefixes || !group.is_empty() {
            check_group(group)?;
        }
        let key = (interface, wanted);
        if self.clients6.all.borrow().contains_key(&key) {
            return Err(DhcpError::ClientExists(name));
        }
        // It speaks from its link-local address.
        if self.ip6.link_local(interface).is_none() {
            self.ip6.enable(interface, true)?;
        }
        let (machine, acts) = Machine6::start(interface.0);
        let client = Client6 { machine, group: group.to_owned(), declined: 0, reconfigured: 0 };
        self.clients6.all.borrow_mut().insert(key, client);
        self.act6(key, acts);
        Ok(())
    }

    /// Ends that; what it had goes, and the server hears of it.
    ///
    /// # Errors
    /// There is no such interface, or it does not do so.
    pub fn del_client6(&self, interface: SwIfIndex, wanted: Wanted) -> Result<(), DhcpError> {
        let name = self.interfaces.name(interface)?;
        let key = (interface, wanted);
        let now = self.now();
        let acts = {
            let mut all = self.clients6.all.borrow_mut();
            let client = all.get_mut(&key).ok_or(DhcpError::NoClient(name))?;
            client.machine.stop(now)
        };
        self.act6(key, acts);
        self.clients6.all.borrow_mut().remove(&key);
        self.renew_ports();
        Ok(())
    }

    /// All clients.
    pub fn clients6(&self) -> Vec<Client6Info> {
        let (now, servers) = (self.now(), self.clients6.servers.borrow());
        let left = |time: Option<Time>| time.map(|time| time.0.saturating_sub(now.0) / 1_000_000_000);
        let of = |(key, client): (&Key6, &Client6)| {
            let machine = &client.machine;
            let lease = |lease: &Lease6| (lease.prefix, left(lease.preferred), left(lease.valid));
            Client6Info {
                interface: key.0,
                wanted: key.1,
                group: client.group.clone(),
                phase: machine.phase,
                server: machine.server.and_then(|server| servers.get(server as usize).cloned()),
                leases: machine.leases.iter().map(lease).collect(),
                times: (left(machine.t1), left(machine.t2)),
                declined: client.declined,
                reconfigured: client.reconfigured,
            }
        };
        self.clients6.all.borrow().iter().map(of).collect()
    }

    pub(super) fn act6(&self, key: Key6, acts: Vec<Act6>) {
        // A bell that rings for nothing would have this called for ever.
        if acts.is_empty() {
            return;
        }
        for act in acts {
            match act {
                Act6::Ask(question) => self.set_exchange(key, Some(question)),
                Act6::Quiet => self.set_exchange(key, None),
                Act6::Add(prefix) => self.given6(key, prefix),
                Act6::Remove(prefix) => self.taken6(key, prefix),
            }
        }
        self.ring();
    }

    /// A server gave something.
    fn given6(&self, (interface, wanted): Key6, prefix: Ip6Prefix) {
        tracing::info!(%interface, "has {prefix} from a server");
        match wanted {
            Wanted::Addresses => self.take6(interface, on_link(prefix)),
            Wanted::Prefixes => {
                // RFC 7084, WPD-5: what no link uses of a prefix does not go back to the provider.
                let nowhere = Path::from(Via::Unreachable);
                if let Err(e) = self.fib.add(FibIndex::DEFAULT, prefix, Source::Dhcp, &[nowhere]) {
                    tracing::warn!("{prefix} has no route of its own: {e}");
                }
                self.renew_from_prefixes();
            }
        }
    }

    /// It is over.
    fn taken6(&self, (interface, wanted): Key6, prefix: Ip6Prefix) {
        tracing::info!(%interface, "has {prefix} of a server no more");
        match wanted {
            Wanted::Addresses => self.drop6(interface, on_link(prefix)),
            Wanted::Prefixes => {
                if let Err(e) = self.fib.remove(FibIndex::DEFAULT, prefix, Source::Dhcp) {
                    tracing::debug!("the route of {prefix} is gone: {e}");
                }
                self.renew_from_prefixes();
            }
        }
    }

    pub(super) fn take6(&self, interface: SwIfIndex, address: Ip6Prefix) {
        match self.ip6.add_address(interface, address) {
            Ok(()) => self.ip6.set_learnt(interface, address.addr()),
            Err(e) => tracing::warn!(%interface, "the address {address} is not taken: {e}"),
        }
    }

    pub(super) fn drop6(&self, interface: SwIfIndex, address: Ip6Prefix) {
        if let Err(e) = self.ip6.del_address(interface, address) {
            tracing::debug!(%interface, "the address {address} is gone: {e}");
        }
    }

    /// An interface went up or down. One that comes back may be on another link.
    pub(super) fn follow6(&self, interface: SwIfIndex, is_up: bool) {
        if !is_up {
            return;
        }
        let now = self.now();
        for wanted in [Wanted::Addresses, Wanted::Prefixes] {
            let acts =
                self.clients6.all.borrow_mut().get_mut(&(interface, wanted)).map(|c| c.machine.moved(now));
            self.act6((interface, wanted), acts.unwrap_or_default());
        }
    }

    /// An interface goes.
    pub(super) fn forget6(&self, interface: SwIfIndex) {
        for wanted in [Wanted::Addresses, Wanted::Prefixes] {
            let key = (interface, wanted);
            let gone = self.clients6.all.borrow_mut().remove(&key);
            self.clients6.exchanges.borrow_mut().remove(&key);
            for lease in gone.map(|client| client.machine.leases).unwrap_or_default() {
                self.taken6(key, lease.prefix);
            }
        }
        self.clients6.from_prefixes.borrow_mut().retain(|of| of.interface != interface);
        self.renew_ports();
    }

    /// Has clients do what is due. Tells when to come again.
    pub(super) fn tick6(&self) -> Option<Time> {
        let now = self.now();
        let keys: BTreeSet<Key6> = {
            let (all, exchanges) = (self.clients6.all.borrow(), self.clients6.exchanges.borrow());
            all.keys().chain(exchanges.keys()).copied().collect()
        };
        for key in keys {
            let acts = {
                let mut all = self.clients6.all.borrow_mut();
                let client =
                    all.get_mut(&key).filter(|client| client.machine.next().is_some_and(|at| at <= now));
                client.map(|client| client.machine.due(now)).unwrap_or_default()
            };
            self.act6(key, acts);
            let jitter = (fastrand::f64() - 0.5) / 5.0;
            let due = self.clients6.exchanges.borrow_mut().get_mut(&key).map(|e| e.due(now, jitter));
            match due {
                Some(Due::Send(elapsed)) => self.tell6(key, elapsed),
                Some(Due::Ended) => {
                    self.set_exchange(key, None);
                    let acts =
                        self.clients6.all.borrow_mut().get_mut(&key).map(|c| c.machine.unanswered(now));
                    self.act6(key, acts.unwrap_or_default());
                }
                Some(Due::Later) | None => {}
            }
        }
        let (all, exchanges) = (self.clients6.all.borrow(), self.clients6.exchanges.borrow());
        let machines = all.values().filter_map(|client| client.machine.next());
        machines.chain(exchanges.values().map(|exchange| exchange.next)).min()
    }

    /// Sends the message of an exchange once.
    fn tell6(&self, key: Key6, elapsed: u16) {
        let (interface, wanted) = key;
        let client = self.duid();
        let data = {
            let (exchanges, servers) = (self.clients6.exchanges.borrow(), self.clients6.servers.borrow());
            let Some(exchange) = exchanges.get(&key) else { return };
            let question = &exchange.question;
            let server = question.server.and_then(|server| servers.get(server as usize));
            ClientRequest {
                kind: question.kind,
                transaction: exchange.transaction,
                client: &client,
                server: server.map(Vec::as_slice),
                elapsed,
                wanted,
                association: &question.association,
                // A client of the binary API hears of no key.
                reconfigures: self.clients6.all.borrow().contains_key(&key),
            }
            .write()
        };
        let Some(source) = self.ip6.link_local(interface) else { return };
        let datagram = Datagram {
            source: (IpAddr::V6(source), CLIENT_PORT6),
            destination: (ALL_SERVERS.into(), SERVER_PORT6),
            table: FibIndex::DEFAULT,
            hops: HOPS,
            tos: 0,
            checksum: Checksum::Computed,
        };
        if let Ok(packet) = datagram.bytes(&data) {
            let mac = MacAddress::for_ip6_multicast(ALL_SERVERS);
            self.interfaces.send_frame(interface, mac, EtherType::IP6, &packet);
        }
    }

    /// The number of a server; `None`: it is not known, and there are as many as are remembered.
    fn server6(&self, duid: &[u8]) -> Option<u32> {
        let mut servers = self.clients6.servers.borrow_mut();
        if let Some(at) = servers.iter().position(|server| server == duid) {
            return Some(at as u32);
        }
        if servers.len() >= MOST_SERVERS {
            return None;
        }
        servers.push(duid.to_vec());
        Some(servers.len() as u32 - 1)
    }

    /// A server answered.
    pub(super) fn answer_to_client6(&self, heard: &ReceivedPacket, data: &[u8]) {
        if data.first() == Some(&kind::RECONFIGURE) {
            return self.reconfigure6(heard, data);
        }
        let Some(answer) = Answer::read(data) else { return };
        if answer.client != self.duid() {
            return;
        }
        for wanted in [Wanted::Addresses, Wanted::Prefixes] {
            let key = (heard.interface, wanted);
            let asked = {
                let exchanges = self.clients6.exchanges.borrow();
                exchanges
                    .get(&key)
                    .filter(|e| e.transaction == answer.transaction)
                    .map(|e| (e.question.kind, e.question.association.id))
            };
            let Some((question, id)) = asked else { continue };
            // Each question has its answer: an offer follows a search alone.
            if (answer.kind == kind::ADVERTISE) != (question == kind::SOLICIT) {
                continue;
            }
            let none = Association { id, ..Association::default() };
            let association = answer.association(wanted).filter(|of| of.id == id);
            if [kind::RELEASE, kind::INFORMATION].contains(&question) {
                self.set_exchange(key, None);
            }
            let Some(server) = self.server6(&answer.server) else { continue };
            if let Some(secret) = answer.key.filter(|_| answer.kind == kind::REPLY) {
                self.clients6.keys.borrow_mut().insert(server, secret);
            }
            self.hear6(key, server, &answer, association.unwrap_or(&none));
        }
        self.ring();
    }

    fn hear6(&self, key: Key6, server: u32, answer: &Answer, association: &Association) {
        let (kind, status) = (answer.kind, answer.status);
        let said = ServerReply { kind, server, status, association };
        let now = self.now();
        let acts = self.clients6.all.borrow_mut().get_mut(&key).map(|client| client.machine.hear(&said, now));
        match acts {
            Some(acts) => {
                self.act6(key, acts);
                // Lifetimes may be other ones now.
                self.renew_from_prefixes();
            }
            // A client of the binary API asked: what it asks next it says.
            None => self.set_exchange(key, None),
        }
        let replied = Replied {
            interface: key.0,
            wanted: key.1,
            server,
            kind,
            preference: answer.preference,
            status,
            association: association.clone(),
        };
        let observers = self.clients6.observers.borrow().clone();
        for observe in observers {
            observe(&replied);
        }
    }
}

/// Whether a group of prefixes may have this name.
pub(super) fn check_group(group: &str) -> Result<(), DhcpError> {
    match group.len() {
        0 => Err(DhcpError::NoGroup),
        1..=LONGEST_GROUP => Ok(()),
        length => Err(DhcpError::TooLong("the name of the group", length, LONGEST_GROUP)),
    }
}

/// An address as the interface has it. A server does not say which addresses are on the link; as VPP, 64 bits: neighbours that
/// ask from their own addresses are answered.
fn on_link(address: Ip6Prefix) -> Ip6Prefix {
    Ip6Prefix::new(address.addr(), NETWORK).unwrap_or(address)
}
