//! A router with the whole stack and reassembly, two hosts, and a way to cut packets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests
#![allow(dead_code)] // each test file uses its part
#![allow(clippy::unused_self, clippy::wrong_self_convention)] // the family comes first everywhere

use std::net::{IpAddr, Ipv6Addr};

use shoal_graph::Clock;
use shoal_ip6::Ip6;
use shoal_module::Module;
use shoal_reassembly::{Families, Kind, Reassembly, Settings, Version};
use shoal_testkit::{Config, PacketBuilder, Port, Router};
use shoal_wire::packet::Fragment;
use shoal_wire::{FromBytes, Ip4Header, Ip6Header, IpProtocol, MacAddress};

pub const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_neighbor::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_reassembly::MODULE,
];

pub const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
pub const FAR: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);

/// The two families, so that every test is for both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestFamily {
    Ip4,
    Ip6,
}

pub const BOTH: [TestFamily; 2] = [TestFamily::Ip4, TestFamily::Ip6];

fn six(n: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, n, 0, 0, 0, 0, host)
}

impl TestFamily {
    pub fn version(self) -> Version {
        if self == TestFamily::Ip4 { Version::Ip4 } else { Version::Ip6 }
    }

    /// `ip4-x` or `ip6-x`.
    pub fn node(self, rest: &str) -> String {
        format!("{}-{rest}", if self == TestFamily::Ip4 { "ip4" } else { "ip6" })
    }

    /// A packet from the host behind `port` to this router.
    pub fn to_us(self, port: &Port) -> PacketBuilder {
        self.from_to(port, 2, 0, 1)
    }

    /// A packet from the host behind `port` to the one behind the other.
    pub fn through(self, port: &Port) -> PacketBuilder {
        self.from_to(port, 2, 1, 2)
    }

    pub fn from_to(self, port: &Port, src: u8, net: u8, dst: u8) -> PacketBuilder {
        let packet = PacketBuilder::ethernet(HOST, port.mac());
        match self {
            TestFamily::Ip4 => packet.ip4([10, 0, 0, src], [10, 0, net, dst]),
            TestFamily::Ip6 => packet.ip6(six(0, src.into()), six(net.into(), dst.into())),
        }
    }

    pub fn header(self) -> usize {
        if self == TestFamily::Ip4 { Ip4Header::LEN } else { Ip6Header::LEN }
    }

    pub fn icmp(self) -> IpProtocol {
        if self == TestFamily::Ip4 { IpProtocol::ICMP } else { IpProtocol::ICMP6 }
    }

    pub fn echo(self, packet: PacketBuilder) -> PacketBuilder {
        if self == TestFamily::Ip4 { packet.icmp_echo_request(7, 9) } else { packet.icmp6_echo_request(7, 9) }
    }

    /// What follows the network header of a frame.
    pub fn payload(self, frame: &[u8]) -> Vec<u8> {
        frame[14 + self.header()..].to_vec()
    }

    /// One fragment with these bytes.
    pub fn piece(
        self,
        base: PacketBuilder,
        id: u16,
        protocol: IpProtocol,
        at: usize,
        bytes: &[u8],
        more: bool,
    ) -> Vec<u8> {
        let place = if more { Fragment::More } else { Fragment::Last };
        base.protocol(protocol).payload(bytes).id(id).fragment(at as u16, place).build()
    }

    /// Cuts what follows the header of a frame into pieces of `size`, which is a multiple of 8.
    pub fn cut(
        self,
        base: &PacketBuilder,
        id: u16,
        protocol: IpProtocol,
        payload: &[u8],
        size: usize,
    ) -> Vec<Vec<u8>> {
        let count = payload.len().div_ceil(size);
        let one = |(n, bytes): (usize, &[u8])| {
            self.piece(base.clone(), id, protocol, n * size, bytes, n + 1 < count)
        };
        payload.chunks(size).enumerate().map(one).collect()
    }
}

/// pg0 with a host at 10.0.0.2 and 2001:db8::2, pg1 with one at 10.0.1.2 and 2001:db8:1::2; we are 1 everywhere.
pub fn two_hosts() -> (Router, Port, Port) {
    with_buffers(4096)
}

pub fn with_buffers(buffers: usize) -> (Router, Port, Port) {
    with_modules(buffers, &[])
}

pub fn with_modules(buffers: usize, more: &[&'static Module]) -> (Router, Port, Port) {
    let all: Vec<&'static Module> = MODULES.iter().chain(more).copied().collect();
    let mut router = Router::with(Config { buffers, clock: Clock::manual(), cli: None }, &all);
    let (a, b) = (router.pg(0), router.pg(1));
    for (port, net, mac) in [(&a, 0u8, HOST), (&b, 1, FAR)] {
        router.set_address(port, &format!("10.0.{net}.1/24"));
        router.set_neighbour(port, [10, 0, net, 2].into(), mac);
        let ip6 = router.get::<Ip6>();
        ip6.add_address(port.index(), format!("2001:db8:{net}::1/64").parse().unwrap()).unwrap();
        let neighbours = router.get::<shoal_ip6_nd::Neighbours>();
        let address = six(net.into(), 2);
        neighbours
            .set(
                (port.index(), address),
                mac,
                shoal_neighbor::table::Origin::Static,
                shoal_neighbor::table::FibEntry::Wanted,
            )
            .unwrap();
    }
    router.advance(std::time::Duration::from_secs(5));
    drop((a.received(), b.received()));
    (router, a, b)
}

pub fn on(router: &Router, port: &Port) {
    router.get::<Reassembly>().set_interface(port.index(), Families::BOTH).unwrap();
}

pub fn set(router: &Router, over: TestFamily, kind: Kind, change: impl FnOnce(&mut Settings)) {
    let reassembly = router.get::<Reassembly>();
    let mut settings = reassembly.settings(over.version(), kind);
    change(&mut settings);
    reassembly.set(over.version(), kind, settings).unwrap();
}

pub fn held(router: &Router, over: TestFamily) -> usize {
    router.get::<Reassembly>().look(over.version(), Kind::Full, false).unwrap().reassemblies
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub fn ip4(frame: &[u8]) -> &Ip4Header {
    Ip4Header::ref_from_prefix(&frame[14..]).unwrap().0
}

pub fn ip6(frame: &[u8]) -> &Ip6Header {
    Ip6Header::ref_from_prefix(&frame[14..]).unwrap().0
}

/// The ICMP errors a port sent since the last look, from their type on. Routers have other things to say, too.
pub fn errors(over: TestFamily, port: &Port) -> Vec<Vec<u8>> {
    let error = |frame: &Vec<u8>| match over {
        TestFamily::Ip4 => frame[12..14] == [8, 0] && frame[23] == 1,
        TestFamily::Ip6 => frame[12..14] == [0x86, 0xdd] && frame[20] == 58 && frame[54] < 128,
    };
    port.received().iter().filter(|f| error(f)).map(|f| over.payload(f)).collect()
}
