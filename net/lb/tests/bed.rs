//! Clients on the outside, servers on the inside of a router.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_arp::table::{FibEntry, Origin};
use shoal_ip6::Ip6;
use shoal_lb::vip::{Encap, Policy, VipKey};
use shoal_lb::{LoadBalancer, Settings};
use shoal_testkit::PacketBuilder;
use shoal_testkit::nat_bed::{FAR, HOST, NatBed};
use shoal_wire::{IpPrefix, IpProtocol, checksum};

pub const ETHER: usize = 14;
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
pub const VIP: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
pub const SOURCE: Ipv4Addr = Ipv4Addr::new(39, 40, 41, 42);

pub fn client6() -> Ipv6Addr {
    "2001:db8:2::2".parse().unwrap()
}

pub fn vip6() -> Ipv6Addr {
    "2001:db8:99::1".parse().unwrap()
}

pub fn source6() -> Ipv6Addr {
    "2004::1".parse().unwrap()
}

/// A server: 2 to 9.
pub fn server(n: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, n).into()
}

pub fn server6(n: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, n).into()
}

pub struct Bed {
    pub nat: NatBed,
    pub lb: Rc<LoadBalancer>,
}

pub fn key(prefix: &str, port: Option<(IpProtocol, u16)>) -> VipKey {
    VipKey { prefix: prefix.parse::<IpPrefix>().unwrap(), port }
}

pub fn host_key(address: impl Into<IpAddr>, port: Option<(IpProtocol, u16)>) -> VipKey {
    VipKey { prefix: IpPrefix::host(address.into()), port }
}

pub fn bed() -> Bed {
    let nat = NatBed::new(&[&shoal_ip6_nd::MODULE, &shoal_reassembly::MODULE, &shoal_lb::MODULE]);
    let (ip6, nd) = (nat.router.get::<Ip6>(), nat.router.get::<shoal_ip6_nd::Neighbours>());
    for (port, net, mac) in [(&nat.inside, "2001:db8:1", HOST), (&nat.outside, "2001:db8:2", FAR)] {
        ip6.add_address(port.index(), format!("{net}::ff/64").parse().unwrap()).unwrap();
        for host in 2..10 {
            let host = format!("{net}::{host}").parse().unwrap();
            nd.set((port.index(), host), mac, Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    let lb = nat.router.get::<LoadBalancer>();
    lb.set(Settings { source4: SOURCE, source6: source6(), ..Settings::default() }).unwrap();
    let mut bed = Bed { nat, lb };
    bed.nat.advance(3);
    bed.nat.inside.received();
    bed.nat.outside.received();
    bed
}

impl Bed {
    /// A virtual address and its servers.
    pub fn serve(&self, key: &VipKey, policy: Policy, servers: &[IpAddr]) {
        self.lb.add_vip(*key, policy).unwrap();
        self.lb.add_servers(key, servers).unwrap();
    }

    pub fn gre4(&self, servers: impl Iterator<Item = u8>) -> VipKey {
        let key = host_key(VIP, None);
        self.serve(&key, Policy::new(Encap::Gre4), &servers.map(server).collect::<Vec<_>>());
        key
    }

    /// What the servers get of what a client sends: IP packets.
    pub fn forward(&mut self, packet: PacketBuilder) -> Vec<Vec<u8>> {
        let frame = packet.build();
        self.forward_frame(frame)
    }

    pub fn forward_frame(&mut self, frame: Vec<u8>) -> Vec<Vec<u8>> {
        self.nat.send_outside(frame);
        self.nat.inside.received().into_iter().map(|frame| frame[ETHER..].to_vec()).collect()
    }

    /// What the clients get of what a server sends.
    pub fn answer(&mut self, packet: PacketBuilder) -> Vec<Vec<u8>> {
        self.nat.send_inside(packet.build());
        self.nat.outside.received().into_iter().map(|frame| frame[ETHER..].to_vec()).collect()
    }

    pub fn client_frame(&self) -> PacketBuilder {
        PacketBuilder::ethernet(FAR, self.nat.outside.mac())
    }

    pub fn server_frame(&self) -> PacketBuilder {
        PacketBuilder::ethernet(HOST, self.nat.inside.mac())
    }

    /// A datagram to the virtual address from a port.
    pub fn datagram(&self, sport: u16) -> PacketBuilder {
        self.client_frame().ip4(CLIENT, VIP).udp(sport, 53).payload(b"odd")
    }

    /// The servers of flows from ports, of tunnels over IPv4.
    pub fn spread(&mut self, ports: impl Iterator<Item = u16>) -> Vec<Ipv4Addr> {
        let mut servers = Vec::new();
        for port in ports {
            let packet = self.datagram(port);
            let got = self.forward(packet);
            assert_eq!(got.len(), 1, "port {port}: {:?}", self.nat.router.errors());
            servers.push(addresses(&got[0]).1);
        }
        servers
    }
}

pub fn addresses(ip: &[u8]) -> (Ipv4Addr, Ipv4Addr) {
    let at = |n: usize| Ipv4Addr::new(ip[n], ip[n + 1], ip[n + 2], ip[n + 3]);
    (at(12), at(16))
}

pub fn addresses6(ip: &[u8]) -> (Ipv6Addr, Ipv6Addr) {
    let at = |n: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&ip[n..n + 16]).unwrap());
    (at(8), at(24))
}

pub fn ports(transport: &[u8]) -> (u16, u16) {
    let word = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
    (word(0), word(2))
}

/// Whether the checksums of an IPv4 packet are right.
pub fn is_whole(ip: &[u8]) -> bool {
    let upper = &ip[20..];
    let pseudo = match ip[9] {
        1 => upper.to_vec(),
        protocol => [&ip[12..20], &[0, protocol], &(upper.len() as u16).to_be_bytes()[..], upper].concat(),
    };
    checksum::verify(&ip[..20]) && checksum::verify(&pseudo)
}

/// The same of an IPv6 packet without extension headers.
pub fn is_whole6(ip: &[u8]) -> bool {
    let upper = &ip[40..];
    let length = (upper.len() as u32).to_be_bytes();
    checksum::verify(&[&ip[8..40], &length[..], &[0, 0, 0, ip[6]], upper].concat())
}
