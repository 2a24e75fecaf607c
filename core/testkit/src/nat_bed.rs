//! A router with hosts on one side and the world on the other, for tests of NATs.

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_arp::Neighbours;
use shoal_ip4::Ip4;
use shoal_module::Module;
use shoal_nat::Tuple;
use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_wire::checksum::checksum;
use shoal_wire::{IpProtocol, MacAddress, TcpFlags};

use crate::{PacketBuilder, Port, Router, STACK};

/// The link-layer address of all hosts inside.
pub const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
/// That of all hosts outside.
pub const FAR: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);

/// A router between 10.0.0.0/24 and 192.0.2.0/24, which is `.1` in both; the hosts are 2 to 9.
pub struct NatBed {
    /// The router.
    pub router: Router,
    /// Hosts: 10.0.0.2 and on.
    pub inside: Port,
    /// The world: 192.0.2.2 and on.
    pub outside: Port,
}

/// An address as a number.
pub fn ip(text: &str) -> u32 {
    text.parse::<Ipv4Addr>().unwrap().to_bits()
}

/// From where to where.
pub fn tuple(src: (&str, u16), dst: (&str, u16)) -> Tuple {
    Tuple { src: ip(src.0), dst: ip(dst.0), sport: src.1, dport: dst.1 }
}

/// The tuple of a frame.
pub fn read(frame: &[u8]) -> Tuple {
    shoal_nat::ParsedPacket::read(&frame[14..]).unwrap().tuple
}

/// A frame; `flags` are TCP's, or say of ICMP whether it is an answer.
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
        other => frame.protocol(IpProtocol(other)),
    };
    frame.payload(payload).build()
}

/// An ICMP error, "host unreachable", with the link's and IP's header of a frame, about a packet.
pub fn icmp_error(frame: &[u8], about: &[u8]) -> Vec<u8> {
    let mut bytes = frame[..34].to_vec();
    let mut icmp = vec![3, 1, 0, 0, 0, 0, 0, 0];
    icmp.extend(about);
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let total = (20 + icmp.len()) as u16;
    bytes[16..18].copy_from_slice(&total.to_be_bytes());
    bytes[24..26].fill(0);
    let sum = checksum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(icmp);
    bytes
}

fn one(mut all: Vec<Vec<u8>>) -> Option<Vec<u8>> {
    assert!(all.len() <= 1, "{all:?}");
    all.pop()
}

impl NatBed {
    /// A router with these modules beside the stack.
    pub fn new(more: &[&'static Module]) -> Self {
        let modules: Vec<&'static Module> = STACK.iter().chain(more).copied().collect();
        let mut router = Router::new(&modules);
        let (inside, outside) = (router.pg(0), router.pg(1));
        for (port, net, mac) in [(&inside, "10.0.0", HOST), (&outside, "192.0.2", FAR)] {
            router.get::<Ip4>().add_address(port.index(), format!("{net}.1/24").parse().unwrap()).unwrap();
            let arp = router.get::<Neighbours>();
            for host in 2..10 {
                let host = format!("{net}.{host}").parse().unwrap();
                arp.set((port.index(), host), mac, Origin::Static, FibEntry::Wanted).unwrap();
            }
        }
        router.advance(Duration::from_secs(3));
        inside.received();
        outside.received();
        NatBed { router, inside, outside }
    }

    /// Sends a frame of a host.
    pub fn send_inside(&mut self, bytes: Vec<u8>) {
        self.router.send(&self.inside, bytes);
    }

    /// Sends a frame of the world.
    pub fn send_outside(&mut self, bytes: Vec<u8>) {
        self.router.send(&self.outside, bytes);
    }

    /// Sends frames of hosts, in one go.
    pub fn send_all_inside<B: AsRef<[u8]>>(&mut self, frames: impl IntoIterator<Item = B>) {
        self.router.send_all(&self.inside, frames);
    }

    /// Sends frames of the world, in one go.
    pub fn send_all_outside<B: AsRef<[u8]>>(&mut self, frames: impl IntoIterator<Item = B>) {
        self.router.send_all(&self.outside, frames);
    }

    /// Sends a host's packet; what comes out outside, if anything.
    pub fn out(&mut self, tuple: Tuple, protocol: u8, flags: u8) -> Option<Vec<u8>> {
        let bytes = packet((HOST, self.inside.mac()), tuple, protocol, flags, 64, b"payload");
        self.send_inside(bytes);
        one(self.outside.received())
    }

    /// Sends a packet from the world; what comes out inside, if anything.
    pub fn back(&mut self, tuple: Tuple, protocol: u8, flags: u8) -> Option<Vec<u8>> {
        let bytes = packet((FAR, self.outside.mac()), tuple, protocol, flags, 64, b"payload");
        self.send_outside(bytes);
        one(self.inside.received())
    }

    /// Sends a host's packet; what comes back inside, if anything.
    pub fn hairpin(&mut self, tuple: Tuple, protocol: u8, flags: u8) -> Option<Vec<u8>> {
        let bytes = packet((HOST, self.inside.mac()), tuple, protocol, flags, 64, b"payload");
        self.send_inside(bytes);
        assert_eq!(self.outside.received(), Vec::<Vec<u8>>::new(), "it left");
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

    /// Time goes by.
    pub fn advance(&mut self, seconds: u64) {
        self.router.advance(Duration::from_secs(seconds));
    }
}
