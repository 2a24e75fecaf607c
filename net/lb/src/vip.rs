//! Virtual addresses and the servers behind them.

use std::fmt;
use std::net::IpAddr;

use shoal_graph::clock::Time;
use shoal_nat::maglev::{self, NONE};
use shoal_wire::{IpPrefix, IpProtocol};

/// How packets reach a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encap {
    /// In a GRE tunnel over IPv4: the server has the virtual address, too, and answers the client itself.
    Gre4,
    /// The same over IPv6.
    Gre6,
    /// The destination becomes the server, and the class of service tells it which virtual address it was.
    L3dsr,
    /// The destination becomes the server, whose answers pass by the router again.
    Nat4,
    /// The same with IPv6.
    Nat6,
}

impl Encap {
    /// All, with VPP's words.
    pub const ALL: [(Encap, &'static str); 5] = [
        (Encap::Gre4, "gre4"),
        (Encap::Gre6, "gre6"),
        (Encap::L3dsr, "l3dsr"),
        (Encap::Nat4, "nat4"),
        (Encap::Nat6, "nat6"),
    ];

    /// Whether packets are translated.
    pub const fn is_nat(self) -> bool {
        matches!(self, Encap::Nat4 | Encap::Nat6)
    }

    /// Whether a server has an IPv6 address.
    pub const fn is_ip6(self) -> bool {
        matches!(self, Encap::Gre6 | Encap::Nat6)
    }

    /// Whether packets of a family can go to servers so.
    pub const fn takes(self, ip6: bool) -> bool {
        match self {
            Encap::Gre4 | Encap::Gre6 => true,
            Encap::L3dsr | Encap::Nat4 => !ip6,
            Encap::Nat6 => ip6,
        }
    }
}

impl fmt::Display for Encap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Encap::ALL.iter().find(|(encap, _)| encap == self).map_or("", |(_, word)| word);
        f.pad(word)
    }
}

/// What tells a virtual address from others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VipKey {
    /// The addresses.
    pub prefix: IpPrefix,
    /// Protocol and port; `None`: all packets to the addresses.
    pub port: Option<(IpProtocol, u16)>,
}

impl VipKey {
    /// Whether its addresses are IPv6's.
    pub const fn is_ip6(&self) -> bool {
        self.prefix.ip6().is_some()
    }
}

impl fmt::Display for VipKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.prefix)?;
        match self.port {
            Some((IpProtocol::UDP, port)) => write!(f, " protocol udp port {port}"),
            Some((_, port)) => write!(f, " protocol tcp port {port}"),
            None => Ok(()),
        }
    }
}

/// How clients of a translated service address it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// By the virtual address.
    ClusterIp,
    /// By this UDP port of any of the router's addresses, too.
    NodePort(u16),
}

/// How packets of a virtual address are spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// How packets reach a server.
    pub encap: Encap,
    /// The class of service that L3DSR sets.
    pub dscp: u8,
    /// How clients address a translated service.
    pub service: Service,
    /// The port of servers of a translated service.
    pub target_port: u16,
    /// Places of the table of new flows: a power of two.
    pub new_length: u32,
    /// All flows of a client go to one server.
    pub src_ip_sticky: bool,
}

impl Policy {
    /// As VPP's defaults.
    pub const fn new(encap: Encap) -> Self {
        Policy {
            encap,
            dscp: 0,
            service: Service::ClusterIp,
            target_port: 0,
            new_length: 1024,
            src_ip_sticky: false,
        }
    }
}

/// A server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Server {
    /// A number that no other server ever had: flows remember it.
    pub id: u32,
    /// Its address.
    pub address: IpAddr,
    /// Whether it gets new flows; else those it has go on.
    pub used: bool,
    /// Since when.
    pub since: Time,
}

/// A flow's server: its place among those of the virtual address, and its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PickedServer {
    /// Its place.
    pub slot: u16,
    /// Its number.
    pub id: u32,
}

/// A virtual address.
#[derive(Clone, Debug)]
pub struct Vip {
    /// Its number, as clients see it: from 1 on.
    pub index: u32,
    /// A number that no other virtual address ever had.
    pub serial: u32,
    /// What tells it from others.
    pub key: VipKey,
    /// How its packets are spread.
    pub policy: Policy,
    /// Servers; a place is free once no flow remembers its server.
    servers: Vec<Option<Server>>,
    table: Vec<u16>,
}

impl Vip {
    /// Without servers.
    pub fn new((index, serial): (u32, u32), key: VipKey, policy: Policy) -> Self {
        let table = vec![NONE; policy.new_length as usize];
        Vip { index, serial, key, policy, servers: Vec::new(), table }
    }

    /// Servers there may be.
    pub const MOST_SERVERS: usize = NONE as usize;

    /// The server of a new flow.
    #[inline(always)]
    pub fn pick(&self, hash: u32) -> Option<(PickedServer, IpAddr)> {
        let slot = *self.table.get(hash as usize & (self.table.len() - 1))?;
        let server = self.servers.get(usize::from(slot))?.as_ref()?;
        Some((PickedServer { slot, id: server.id }, server.address))
    }

    /// The address of a flow's server, if it is still one of these.
    #[inline(always)]
    pub fn server(&self, pick: PickedServer) -> Option<IpAddr> {
        let server = self.servers.get(usize::from(pick.slot))?.as_ref()?;
        (server.id == pick.id).then_some(server.address)
    }

    /// All servers, those that get no new flows included.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().flatten()
    }

    /// Places of the table of new flows that a server has.
    pub fn buckets(&self, id: u32) -> usize {
        let slot = self.servers.iter().position(|server| server.is_some_and(|server| server.id == id));
        self.table.iter().filter(|place| slot == Some(usize::from(**place))).count()
    }

    /// The server of an address.
    pub fn by_address(&self, address: IpAddr) -> Option<&Server> {
        self.servers().find(|server| server.address == address)
    }

    /// Puts servers in; those that are there get new flows again. `false`: there are too many.
    pub(crate) fn add(&mut self, servers: impl Iterator<Item = Server>) -> bool {
        for server in servers {
            let there = self.servers.iter_mut().flatten().find(|there| there.address == server.address);
            if let Some(there) = there {
                *there = Server { id: there.id, ..server };
            } else if let Some(free) = self.servers.iter_mut().find(|place| place.is_none()) {
                *free = Some(server);
            } else if self.servers.len() < Self::MOST_SERVERS {
                self.servers.push(Some(server));
            } else {
                return false;
            }
        }
        self.renew();
        true
    }

    /// Servers get no new flows.
    pub(crate) fn retire(&mut self, addresses: &[IpAddr], now: Time) {
        for server in self.servers.iter_mut().flatten().filter(|server| addresses.contains(&server.address)) {
            (server.used, server.since) = (false, now);
        }
        self.renew();
    }

    /// Flows forget servers, which are taken out.
    pub(crate) fn forget(&mut self, goes: impl Fn(&Server) -> bool) {
        for place in &mut self.servers {
            *place = place.take_if(|server| !goes(server));
        }
        self.renew();
    }

    /// All flows are spread again: servers get new numbers.
    pub(crate) fn respread(&mut self, mut id: impl FnMut() -> u32) {
        self.forget(|server| !server.used);
        self.servers.iter_mut().flatten().for_each(|server| server.id = id());
    }

    fn renew(&mut self) {
        let used = self.servers.iter().zip(0u16..).filter_map(|(server, slot)| {
            let server = server.as_ref().filter(|server| server.used)?;
            Some((slot, server.address, 0))
        });
        self.table = maglev::table(self.policy.new_length, used);
    }

    /// `ip4-gre4`, as VPP names the kind.
    pub fn kind(&self) -> String {
        format!("{}-{}", if self.key.is_ip6() { "ip6" } else { "ip4" }, self.policy.encap)
    }
}
