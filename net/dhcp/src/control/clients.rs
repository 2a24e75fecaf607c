//! Clients: interfaces that get their address from a server.

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_adj::Family;
use shoal_fib::{Path, Source};
use shoal_graph::PacketNode;
use shoal_graph::clock::Time;
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_module::api::ClientIndex;
use shoal_wire::{Ip4Prefix, MacAddress};

use super::{ALL, ANY, CLIENT_PORT, Dhcp, DhcpError, SERVER_PORT};
use crate::client::{Act, Lease, Machine, ReceivedPacket as Answer, State};
use crate::message4::{BROADCAST, Draft, Kind, Message, option};
use crate::node::{Detect, ReceivedPacket};

/// The longest name and identifier.
const LONGEST: usize = 63;
/// What a client wants to know.
const WANTED: &[u8] = &[
    option::MASK,
    option::RENEWAL,
    option::REBINDING,
    option::BROADCAST_ADDRESS,
    option::ROUTER,
    option::NAME_SERVERS,
    option::HOST_NAME,
    option::TIME_SERVERS,
    option::LEASE,
];

/// What a client says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientIdentity {
    /// Its name.
    pub hostname: String,
    /// What a server knows it by, if not by its link-layer address.
    pub id: Vec<u8>,
    /// Whether answers are to go to all stations.
    pub broadcast: bool,
    /// The type of service of its packets.
    pub tos: u8,
    /// Who hears of its leases: a client of the binary API, and what it gave to know it by.
    pub tells: Option<(ClientIndex, u32)>,
}

impl Default for ClientIdentity {
    fn default() -> Self {
        ClientIdentity { hostname: String::new(), id: Vec::new(), broadcast: true, tos: 0, tells: None }
    }
}

/// A client of an interface.
pub(super) struct Client {
    asks: ClientIdentity,
    machine: Machine,
    began: Time,
    /// The address that the interface has of it, and the router.
    installed: Option<(Ip4Prefix, Option<Ipv4Addr>)>,
}

/// A client as it is shown.
#[derive(Clone, Debug)]
pub struct ClientInfo {
    /// The interface.
    pub interface: SwIfIndex,
    /// What it says of itself.
    pub asks: ClientIdentity,
    /// How far it is.
    pub state: State,
    /// What it has.
    pub lease: Option<Lease>,
    /// The interface's link-layer address.
    pub mac: MacAddress,
    /// Seconds until it acts next.
    pub next: u64,
}

impl Dhcp {
    pub(super) fn now(&self) -> Time {
        self.graph.clock().now()
    }

    /// Has an interface get its address from a server.
    ///
    /// # Errors
    /// There is no such interface, it cannot have an address, or it does so already.
    pub fn add_client(&self, interface: SwIfIndex, asks: ClientIdentity) -> Result<(), DhcpError> {
        let name = self.interfaces.name(interface)?;
        if self.clients.borrow().contains_key(&interface) {
            return Err(DhcpError::ClientExists(name));
        }
        for (what, length) in [("the host name", asks.hostname.len()), ("the identifier", asks.id.len())] {
            if length > LONGEST {
                return Err(DhcpError::TooLong(what, length, LONGEST));
            }
        }
        self.ip4.set_learns(interface, true)?;
        if let Err(e) = self.interfaces.enable_feature(shoal_ip4::UNICAST_ARC, Detect::NAME, interface, true)
        {
            self.ip4.set_learns(interface, false)?;
            return Err(e.into());
        }
        let now = self.now();
        let machine = Machine::new(fastrand::u32(..), now);
        self.clients.borrow_mut().insert(interface, Client { asks, machine, began: now, installed: None });
        self.renew_ports();
        self.ring();
        Ok(())
    }

    /// Ends that; the address goes, and the server hears of it.
    ///
    /// # Errors
    /// There is no such interface, or it does not do so.
    pub fn del_client(&self, interface: SwIfIndex) -> Result<(), DhcpError> {
        let name = self.interfaces.name(interface)?;
        let client = self.clients.borrow_mut().remove(&interface).ok_or(DhcpError::NoClient(name))?;
        self.unbind(interface, &client);
        self.interfaces.enable_feature(shoal_ip4::UNICAST_ARC, Detect::NAME, interface, false)?;
        self.ip4.set_learns(interface, false)?;
        self.renew_ports();
        Ok(())
    }

    /// All clients.
    pub fn clients(&self) -> Vec<ClientInfo> {
        let now = self.now();
        let of = |(interface, client): (&SwIfIndex, &Client)| ClientInfo {
            interface: *interface,
            asks: client.asks.clone(),
            state: client.machine.state,
            lease: client.machine.lease.clone(),
            mac: self.interfaces.data(*interface).map_or(MacAddress::ZERO, |data| data.mac()),
            next: client.machine.next.0.saturating_sub(now.0) / 1_000_000_000,
        };
        self.clients.borrow().iter().map(of).collect()
    }

    /// An interface went up or down: what it has is asked for again when it is back.
    pub(super) fn follow(&self, interface: SwIfIndex) {
        if let Some(client) = self.clients.borrow_mut().get_mut(&interface) {
            client.machine.next = self.now();
        }
        let up = IfFlags::ADMIN_UP.set(IfFlags::LINK_UP, true);
        self.follow6(interface, self.interfaces.data(interface).is_ok_and(|data| data.flags().all(up)));
        self.ring();
    }

    /// Has clients do what is due. Tells when to come again.
    pub(crate) fn tick(&self) -> Option<Time> {
        let now = self.now();
        let due: Vec<SwIfIndex> = {
            let clients = self.clients.borrow();
            clients.iter().filter(|(_, client)| client.machine.next <= now).map(|(i, _)| *i).collect()
        };
        for interface in due {
            let acts = {
                let mut clients = self.clients.borrow_mut();
                let Some(client) = clients.get_mut(&interface) else { continue };
                client.machine.due(now)
            };
            self.act(interface, acts);
        }
        let next = self.clients.borrow().values().map(|client| client.machine.next).min();
        next.into_iter().chain(self.tick6()).min()
    }

    pub(super) fn answer_to_client(&self, heard: &ReceivedPacket, source: Ipv4Addr, data: &[u8]) {
        let Some(message) = Message::read(data) else { return };
        let Ok(of) = self.interfaces.data(heard.interface) else { return };
        let acts = {
            let mut clients = self.clients.borrow_mut();
            let Some(client) = clients.get_mut(&heard.interface) else { return };
            client.machine.hear(&Answer { message, source, mac: of.mac() }, self.now())
        };
        self.act(heard.interface, acts);
        self.ring();
    }

    fn act(&self, interface: SwIfIndex, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send { kind, to_server } => self.ask(interface, kind, to_server),
                Act::Bind(lease) => self.bind(interface, &lease),
                Act::Unbind => self.unbind_now(interface),
            }
        }
    }

    fn ask(&self, interface: SwIfIndex, kind: Kind, to_server: bool) {
        let Ok(of) = self.interfaces.data(interface) else { return };
        let clients = self.clients.borrow();
        let Some(client) = clients.get(&interface) else { return };
        let (asks, machine) = (&client.asks, &client.machine);
        let has = machine.lease.as_ref().map(|lease| (lease.address.addr(), lease.server));
        let offered = machine.offered;
        let id = [&[0][..], &asks.id].concat();
        let requested = has.map(|(address, _)| address).or(offered.map(|(address, _)| address));
        let requested = requested.map(|address| address.octets());
        let server = offered.map(|(_, server)| server.octets());
        let mut options: Vec<(u8, &[u8])> = Vec::new();
        if kind == Kind::Request {
            options.extend(requested.as_ref().map(|address| (option::REQUESTED, &address[..])));
            // RFC 2131, 4.3.2: a server is named when it is chosen, and not when a lease goes on.
            let chosen = server.as_ref().filter(|_| has.is_none());
            options.extend(chosen.map(|server| (option::SERVER, &server[..])));
        }
        options.push((option::WANTED, WANTED));
        if !asks.hostname.is_empty() {
            options.push((option::HOST_NAME, asks.hostname.as_bytes()));
        }
        if !asks.id.is_empty() {
            options.push((option::CLIENT, &id));
        }
        let waited = self.now().0.saturating_sub(client.began.0) / 1_000_000_000;
        let draft = Draft {
            kind,
            transaction: machine.transaction,
            flags: if asks.broadcast { BROADCAST } else { 0 },
            client: has.map_or(Ipv4Addr::UNSPECIFIED, |(address, _)| address),
            mac: of.mac(),
            seconds: if machine.state == State::Bound { 0 } else { waited.min(u64::from(u16::MAX)) as u16 },
            options,
        };
        let (data, tos) = (draft.write(), asks.tos);
        drop(clients);
        match has {
            Some((address, server)) if to_server => {
                let table = self.table_of(interface, Family::Ip4);
                self.send(table, (address.into(), CLIENT_PORT, server.into(), SERVER_PORT), tos, &data);
            }
            Some((address, _)) => {
                self.broadcast(interface, (address.into(), CLIENT_PORT, ALL, SERVER_PORT), tos, &data);
            }
            None => self.broadcast(interface, (ANY, CLIENT_PORT, ALL, SERVER_PORT), tos, &data),
        }
    }

    fn bind(&self, interface: SwIfIndex, lease: &Lease) {
        let new = (lease.address, lease.router);
        let old = self.clients.borrow().get(&interface).and_then(|client| client.installed);
        if old != Some(new) {
            if let Some(client) = self.clients.borrow_mut().get_mut(&interface) {
                client.installed = None;
            }
            if let Some(old) = old {
                self.uninstall(interface, old);
            }
            if let Err(e) = self.install(interface, new) {
                tracing::warn!(%interface, "the address {} of a server is not taken: {e}", lease.address);
                if let Some(client) = self.clients.borrow_mut().get_mut(&interface) {
                    client.machine.restart(self.now().after(std::time::Duration::from_secs(10)));
                }
                return;
            }
            if let Some(client) = self.clients.borrow_mut().get_mut(&interface) {
                client.installed = Some(new);
            }
            tracing::info!(%interface, "has {} from {}", lease.address, lease.server);
        }
        let tells = self.clients.borrow().get(&interface).and_then(|client| client.asks.tells);
        if let Some(to) = tells
            && let Some(control) = self.control.upgrade()
            && let Some(info) = self.clients().into_iter().find(|info| info.interface == interface)
        {
            crate::api::bound(&control, to, &info);
        }
    }

    fn install(
        &self,
        interface: SwIfIndex,
        (address, router): (Ip4Prefix, Option<Ipv4Addr>),
    ) -> Result<(), DhcpError> {
        self.ip4.add_learnt(interface, address)?;
        let Some(router) = router else { return Ok(()) };
        let table = self.table_of(interface, Family::Ip4);
        let all = Ip4Prefix::new(Ipv4Addr::UNSPECIFIED, 0).unwrap_or_else(|_| Ip4Prefix::host(router));
        if let Err(e) = self.fib.add(table, all, Source::Dhcp, &[Path::next_hop(router, interface)]) {
            self.ip4.del_address(interface, address)?;
            return Err(e.into());
        }
        // Packets are not kept waiting for it later.
        if let Some(control) = self.control.upgrade()
            && let Ok(neighbours) = control.get::<shoal_arp::Neighbours>()
        {
            neighbours.ask_ahead((interface, router));
        }
        Ok(())
    }

    fn uninstall(&self, interface: SwIfIndex, (address, router): (Ip4Prefix, Option<Ipv4Addr>)) {
        let table = self.table_of(interface, Family::Ip4);
        if router.is_some()
            && let Ok(all) = Ip4Prefix::new(Ipv4Addr::UNSPECIFIED, 0)
            && let Err(e) = self.fib.remove(table, all, Source::Dhcp)
        {
            tracing::debug!(%interface, "its route is gone: {e}");
        }
        if let Err(e) = self.ip4.del_address(interface, address) {
            tracing::debug!(%interface, "its address is gone: {e}");
        }
    }

    fn unbind_now(&self, interface: SwIfIndex) {
        let old = self.clients.borrow_mut().get_mut(&interface).and_then(|client| client.installed.take());
        if let Some(old) = old {
            self.uninstall(interface, old);
            tracing::info!(%interface, "has no address of a server any more");
        }
    }

    /// What a client had goes.
    pub(super) fn unbind(&self, interface: SwIfIndex, client: &Client) {
        if let Some(old) = client.installed {
            self.uninstall(interface, old);
        }
    }

    /// Whether a client's answers are taken from an interface although there is no client.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_detect(self: &Rc<Self>, interface: SwIfIndex, on: bool) -> Result<(), DhcpError> {
        Ok(self.interfaces.enable_feature(shoal_ip4::UNICAST_ARC, Detect::NAME, interface, on)?)
    }
}
