//! Outside ports that are one host's alone: of shared addresses whose mappings do not depend on the remote host.
//!
//! Of such an address a host's port has one outside port for all remote hosts (RFC 4787, REQ-1), and no other host has it (REQ-3),
//! from the first of its sessions to the last. Of other addresses nothing is kept here.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use shoal_flow::{FlowTable, Ip4Flow, Settings, TableError, TableId, Tick, Timeout};
use shoal_nat44::ports::has_ports;

use crate::session_direction::Marks;
use crate::sessions::{Session, Sessions};
use crate::tcp::OTHER;

/// Entries of a session at most: its host's port, the outside port, the remote host.
const EACH: u32 = 3;
/// They end with their sessions, not by time.
const NEVER: Timeout = OTHER;
const NOW: Tick = Tick(0);

/// Which remote hosts may send to an outside port that a host has: RFC 4787, section 5.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Filtering {
    /// All.
    #[default]
    EndpointIndependent,
    /// Those that the host has sent something to.
    AddressDependent,
    /// As before, from the port that it has sent to.
    AddressAndPortDependent,
}

impl Filtering {
    /// All of them, and their names in commands.
    pub const NAMES: [(Filtering, &str); 3] = [
        (Filtering::EndpointIndependent, "endpoint-independent"),
        (Filtering::AddressDependent, "address-dependent"),
        (Filtering::AddressAndPortDependent, "address-and-port-dependent"),
    ];

    /// Its name in commands.
    pub fn name(self) -> &'static str {
        Filtering::NAMES.iter().find(|(filtering, _)| *filtering == self).map_or("", |(_, name)| name)
    }
}

/// Shared addresses whose mappings do not depend on the remote host.
pub type IndependentAddresses = BTreeMap<u32, Filtering>;

/// An address and a port.
pub type Endpoint = (u32, u16);

/// The host that has an outside port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoundHost {
    /// Its address and port.
    pub host: Endpoint,
    /// The table its packets come by.
    pub table: u32,
    /// [`Marks::OUTPUT`], if its packets are translated when they go out.
    pub marks: u8,
}

/// What is kept by each key.
#[derive(Clone, Copy)]
struct Bound {
    /// By the host's port: the outside port. By the outside port: the host's.
    endpoint: Endpoint,
    marks: u8,
    table: u32,
    sessions: u32,
}

/// The keys of a session: they differ in which of their parts are zero.
struct Keys {
    host: Ip4Flow,
    outside: Ip4Flow,
    remote: Ip4Flow,
}

fn key_of_host(host: Endpoint, protocol: u8, table: u32) -> Ip4Flow {
    let table = TableId::new(table).unwrap_or_default();
    Ip4Flow::new((Ipv4Addr::from_bits(host.0), host.1), (Ipv4Addr::UNSPECIFIED, 0), protocol, table)
}

fn key_of_outside(outside: Endpoint, protocol: u8, remote: u32) -> Ip4Flow {
    let (remote, outside) = ((Ipv4Addr::from_bits(remote), 0), (Ipv4Addr::from_bits(outside.0), outside.1));
    Ip4Flow::new(remote, outside, protocol, TableId::default())
}

impl Keys {
    fn of(session: &Session) -> Keys {
        let Session { inside, inside_table, outside, protocol, .. } = *session;
        let port = (outside.src, outside.sport);
        Keys {
            host: key_of_host((inside.src, inside.sport), protocol, inside_table),
            outside: key_of_outside(port, protocol, 0),
            remote: key_of_outside(port, protocol, outside.dst),
        }
    }
}

/// Whether a session has its outside port by itself, not by a mapping that an operator entered.
fn is_dynamic(session: &Session) -> bool {
    session.marks & (Marks::STATIC | Marks::BYPASS) == 0 && has_ports(session.protocol)
}

/// A worker's.
#[derive(Default)]
pub struct Bindings {
    addresses: IndependentAddresses,
    table: Option<FlowTable<Ip4Flow, Bound>>,
}

impl Bindings {
    /// For these addresses, of at most so many sessions; all bindings go.
    ///
    /// # Errors
    /// There is no memory; then no address has independent mappings.
    pub fn set_addresses(
        &mut self,
        addresses: &IndependentAddresses,
        sessions: u32,
    ) -> Result<(), TableError> {
        *self = Bindings::default();
        if !addresses.is_empty() {
            let most = sessions.saturating_mul(EACH).min(Settings::MOST_FLOWS);
            self.table = Some(FlowTable::new(Settings::flows(most), NOW)?);
            self.addresses.clone_from(addresses);
        }
        Ok(())
    }

    /// Who may send to the ports of an address; `None`: its mappings depend on the remote host.
    pub fn filtering(&self, address: u32) -> Option<Filtering> {
        self.addresses.get(&address).copied()
    }

    fn get(&self, key: Ip4Flow) -> Option<&Bound> {
        let table = self.table.as_ref()?;
        table.get(table.handle_of(key)?)
    }

    /// The outside port that a host's port has.
    pub fn of_host(&self, host: Endpoint, protocol: u8, table: u32) -> Option<Endpoint> {
        self.get(key_of_host(host, protocol, table)).map(|bound| bound.endpoint)
    }

    /// The host that has an outside port, if a remote host may send to it; `None`: one without an address that it could be known by.
    pub fn admitted(&self, outside: Endpoint, protocol: u8, remote: Option<u32>) -> Option<BoundHost> {
        let filtering = self.filtering(outside.0)?;
        let bound = self.get(key_of_outside(outside, protocol, 0))?;
        let admits = match filtering {
            Filtering::EndpointIndependent => true,
            Filtering::AddressDependent => {
                remote.is_some_and(|remote| self.get(key_of_outside(outside, protocol, remote)).is_some())
            }
            Filtering::AddressAndPortDependent => false,
        };
        admits.then_some(BoundHost { host: bound.endpoint, table: bound.table, marks: bound.marks })
    }

    /// A session begins; false when its outside port is another host's, its host's port has another one, or there is no room.
    pub fn hold(&mut self, session: &Session) -> bool {
        let Some(filtering) = self.filtering(session.outside.src).filter(|_| is_dynamic(session)) else {
            return true;
        };
        let Some(table) = self.table.as_mut() else { return false };
        let keys = Keys::of(session);
        let bound = |endpoint| Bound {
            endpoint,
            marks: session.marks & Marks::OUTPUT,
            table: session.inside_table,
            sessions: 0,
        };
        if !add(table, keys.host, bound((session.outside.src, session.outside.sport))) {
            return false;
        }
        if !add(table, keys.outside, bound((session.inside.src, session.inside.sport))) {
            sub(table, keys.host);
            return false;
        }
        if filtering == Filtering::AddressDependent && !add(table, keys.remote, bound((0, 0))) {
            sub(table, keys.host);
            sub(table, keys.outside);
            return false;
        }
        true
    }

    /// A session that was held has ended.
    pub fn release(&mut self, session: &Session) {
        let Some(table) = self.table.as_mut().filter(|_| is_dynamic(session)) else { return };
        let keys = Keys::of(session);
        let own = table.handle_of(keys.host).and_then(|handle| table.get(handle));
        if own.is_some_and(|bound| bound.endpoint == (session.outside.src, session.outside.sport)) {
            for key in [keys.host, keys.outside, keys.remote] {
                sub(table, key);
            }
        }
    }
}

/// One session more of a key; false when the key leads elsewhere, or there is no room.
fn add(table: &mut FlowTable<Ip4Flow, Bound>, key: Ip4Flow, bound: Bound) -> bool {
    match table.handle_of(key).and_then(|handle| table.get_mut(handle)) {
        Some(there) if (there.endpoint, there.table) == (bound.endpoint, bound.table) => {
            there.sessions += 1;
            true
        }
        Some(_) => false,
        None => table.insert(key, Bound { sessions: 1, ..bound }, NEVER, NOW).is_ok(),
    }
}

/// One session less.
fn sub(table: &mut FlowTable<Ip4Flow, Bound>, key: Ip4Flow) {
    let Some(handle) = table.handle_of(key) else { return };
    let last = table.get_mut(handle).is_some_and(|bound| {
        bound.sessions -= 1;
        bound.sessions == 0
    });
    if last {
        table.remove(handle);
    }
}

impl Sessions {
    /// Mappings of these addresses do not depend on the remote host, from now on. Sessions that are there stay, but those whose outside
    /// port another host has too, or whose host's port has another one; tells how many ended.
    ///
    /// # Errors
    /// There is no memory; then no address has independent mappings.
    pub fn set_independent(
        &mut self,
        addresses: &IndependentAddresses,
        sessions: u32,
    ) -> Result<usize, TableError> {
        let mut bindings = Bindings::default();
        if self.table().is_some() {
            bindings.set_addresses(addresses, sessions)?;
        }
        let mut over = Vec::new();
        self.each(Tick(0), |record| {
            if !bindings.hold(&record.session) {
                over.push(record.session.inside_key());
            }
            true
        });
        self.bindings = bindings;
        Ok(over.iter().filter(|key| self.end(**key)).count())
    }

    /// Outside ports that are one host's alone.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }
}
