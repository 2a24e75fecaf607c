//! A router with hosts on one side and the world on the other.

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_ip4::Ip4;
use shoal_nat::Tuple;
use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_nat44_ed::mapping::{External, Twice};
use shoal_nat44_ed::sessions::Record;
use shoal_nat44_ed::{Enable, Nat44, Purpose, Side, Spec};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_wire::{MacAddress, TcpFlags};

pub const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
pub const FAR: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);
/// The first shared address.
pub const SHARED: &str = "192.0.2.100";

pub struct Bed {
    pub router: Router,
    /// Hosts: 10.0.0.2 and on.
    pub inside: Port,
    /// The world: 192.0.2.2 and on.
    pub outside: Port,
}

pub fn ip(text: &str) -> u32 {
    text.parse::<Ipv4Addr>().unwrap().to_bits()
}

pub fn tuple(src: (&str, u16), dst: (&str, u16)) -> Tuple {
    Tuple { src: ip(src.0), dst: ip(dst.0), sport: src.1, dport: dst.1 }
}

/// A packet; `to` is the port it is sent to or received from, `payload` as long as the caller likes.
pub fn packet(
    (src, dst): (MacAddress, MacAddress),
    tuple: Tuple,
    protocol: u8,
    flags: u8,
    ttl: u8,
    payload: &[u8],
) -> Vec<u8> {
    let frame = PacketBuilder::ethernet(src, dst);
    let frame = frame.ip4(Ipv4Addr::from_bits(tuple.src), Ipv4Addr::from_bits(tuple.dst)).ttl(ttl);
    let frame = match protocol {
        TCP => frame.tcp(tuple.sport, tuple.dport, TcpFlags(flags)),
        UDP => frame.udp(tuple.sport, tuple.dport),
        ICMP if flags == 0 => frame.icmp_echo_request(tuple.sport, 1),
        ICMP => frame.icmp_echo_reply(tuple.sport, 1),
        other => frame.protocol(shoal_wire::IpProtocol(other)),
    };
    frame.payload(payload).build()
}

/// NAT is on, without addresses.
pub fn bed() -> Bed {
    bed_of(Enable { sessions: 1000, ..Enable::default() })
}

pub fn bed_of(enable: Enable) -> Bed {
    let bed = plain();
    let nat = bed.nat();
    nat.enable_nat(enable).unwrap();
    nat.set_side(bed.inside.index(), Side::Inside, true).unwrap();
    nat.set_side(bed.outside.index(), Side::Outside, true).unwrap();
    bed
}

/// Without NAT.
pub fn plain() -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_reassembly::MODULE, &shoal_nat44_ed::MODULE]);
    let mut router = Router::new(&modules);
    let (inside, outside) = (router.pg(0), router.pg(1));
    for (port, net, mac) in [(&inside, "10.0.0", HOST), (&outside, "192.0.2", FAR)] {
        router.get::<Ip4>().add_address(port.index(), format!("{net}.1/24").parse().unwrap()).unwrap();
        let arp = router.get::<shoal_arp::Neighbours>();
        for host in 2..10 {
            let host = format!("{net}.{host}").parse().unwrap();
            arp.set((port.index(), host), mac, Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    router.advance(Duration::from_secs(3));
    inside.received();
    outside.received();
    Bed { router, inside, outside }
}

impl Bed {
    pub fn nat(&self) -> std::rc::Rc<Nat44> {
        self.router.get::<Nat44>()
    }

    pub fn share(&self, address: &str) {
        let address = address.parse().unwrap();
        self.nat().add_addresses((address, address), Purpose::Pool, None).unwrap();
    }

    /// Sends a host's packet; what comes out outside, if anything.
    pub fn out(&mut self, tuple: Tuple, protocol: u8, flags: u8) -> Option<Vec<u8>> {
        let bytes = packet((HOST, self.inside.mac()), tuple, protocol, flags, 64, b"payload");
        let inside = &self.inside;
        self.router.send(inside, bytes);
        one(self.outside.received())
    }

    /// Sends a packet from the world; what comes out inside, if anything.
    pub fn back(&mut self, tuple: Tuple, protocol: u8, flags: u8) -> Option<Vec<u8>> {
        let bytes = packet((FAR, self.outside.mac()), tuple, protocol, flags, 64, b"payload");
        let outside = &self.outside;
        self.router.send(outside, bytes);
        one(self.inside.received())
    }

    /// The packet with this tuple as it leaves to the world.
    pub fn left(&self, tuple: Tuple, protocol: u8, flags: u8) -> Vec<u8> {
        packet((self.outside.mac(), FAR), tuple, protocol, flags, 63, b"payload")
    }

    /// The packet with this tuple as it leaves to a host.
    pub fn came(&self, tuple: Tuple, protocol: u8, flags: u8) -> Vec<u8> {
        packet((self.inside.mac(), HOST), tuple, protocol, flags, 63, b"payload")
    }

    pub fn sessions(&self) -> Vec<Record> {
        self.nat().sessions(|_| true).unwrap().into_iter().map(|(_, record)| record).collect()
    }

    pub fn advance(&mut self, seconds: u64) {
        self.router.advance(Duration::from_secs(seconds));
    }
}

fn one(mut all: Vec<Vec<u8>>) -> Option<Vec<u8>> {
    assert!(all.len() <= 1, "{all:?}");
    all.pop()
}

/// The tuple of a frame.
pub fn read(frame: &[u8]) -> Tuple {
    shoal_nat::Seen::read(&frame[14..]).unwrap().tuple
}

pub fn spec(local: (&str, u16), external: (&str, u16), protocol: u8) -> Spec {
    Spec {
        local: local.0.parse().unwrap(),
        local_port: local.1,
        external: External::Address(ip(external.0)),
        external_port: external.1,
        protocol,
        vrf: None,
        twice: Twice::No,
        out2in_only: false,
        identity: false,
        pool_address: None,
        tag: String::new(),
    }
}
