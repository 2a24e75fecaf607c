//! A router with neighbour discovery, and the messages of others.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv6Addr;

use shoal_interface::SwIfIndex;
use shoal_ip6::Ip6;
use shoal_ip6_nd::{MODULE, Nd, Neighbours};
use shoal_testkit::{PEER_MAC, Port, Router, STACK};
use shoal_wire::ip6_address::solicited_node;
use shoal_wire::nd::{HOP_LIMIT, NaFlags, NeighborAdvertisement, NeighborSolicitation};
use shoal_wire::nd_options::NdWriter;
use shoal_wire::{EtherType, EthernetHeader, FromBytes, IntoBytes, Ip6Header, IpProtocol, MacAddress};

pub const US: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
pub const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// A router with 2001:db8::1/64 and a link-local address on pg0, both its own already; nothing it sent until then is
/// left in the port.
pub fn router() -> (Router, Port) {
    let (mut router, port) = quiet();
    give(&mut router, &port);
    router.advance(std::time::Duration::from_secs(3));
    port.received();
    (router, port)
}

/// A router without addresses that asks for those it gets.
pub fn quiet() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&MODULE);
    let mut router = Router::new(&modules);
    router.get::<Nd>().set_dad_transmits(1);
    let port = router.pg(0);
    router.pg(1);
    (router, port)
}

pub fn give(router: &mut Router, port: &Port) {
    router.get::<Ip6>().add_address(port.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    router.run();
}

/// A frame with an ICMPv6 message, whatever its length says.
pub fn frame(eth: (MacAddress, MacAddress), ip: (Ipv6Addr, Ipv6Addr), hops: u8, message: &[u8]) -> Vec<u8> {
    let ethernet = EthernetHeader::new(eth.0, eth.1, EtherType::IP6);
    let ip = Ip6Header::new(ip.0, ip.1, IpProtocol::ICMP6, hops, message.len() as u16);
    [ethernet.as_bytes(), ip.as_bytes(), message].concat()
}

/// A message with its options and checksum.
pub fn message(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    write: impl for<'a> FnOnce(&'a mut [u8]) -> NdWriter<'a>,
) -> Vec<u8> {
    let mut out = [0; 1280];
    let len = write(&mut out).finish(src, dst).unwrap();
    out[..len].to_vec()
}

/// "Who has `target`?" from a station.
pub fn ns(from: MacAddress, src: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let dst = solicited_node(target);
    let bytes = message(src, dst, |out| {
        let message = NeighborSolicitation::new(target).write(out);
        if src.is_unspecified() { message } else { message.source_link_layer(from) }
    });
    frame((from, MacAddress::for_ip6_multicast(dst)), (src, dst), HOP_LIMIT, &bytes)
}

/// "I have `target`" to `dst`.
pub fn na(from: MacAddress, target: Ipv6Addr, dst: Ipv6Addr, flags: NaFlags) -> Vec<u8> {
    let bytes = message(target, dst, |out| {
        NeighborAdvertisement::new(target, flags).write(out).target_link_layer(from)
    });
    frame((from, MacAddress([2, 0xfe, 0, 0, 0, 0])), (target, dst), HOP_LIMIT, &bytes)
}

/// Lets a node have a received frame, as `ip6-icmp-input` leaves it.
pub fn hear(router: &mut Router, node: &str, port: &Port, frame: &[u8]) {
    put(router, node, port.index(), frame, 14);
    router.run();
}

/// The same without running.
pub fn put(router: &mut Router, node: &str, rx: SwIfIndex, frame: &[u8], front: usize) {
    let index = router.graph().node(node).unwrap();
    let mut main = router.graph().main();
    let mut buffer = main.cache().alloc_data(frame).unwrap();
    let mut pkt = main.cache().packet(&mut buffer);
    let _ = pkt.pull(front.min(pkt.segment_len()));
    let meta = pkt.meta_mut();
    (meta.rx, meta.l4) = (rx, 54);
    main.inject(index, buffer);
}

pub const SOLICITATION: &str = "icmp6-neighbor-solicitation";
pub const ADVERTISEMENT: &str = "icmp6-neighbor-advertisement";

/// Sends a packet of this router's forwarding to an address.
pub fn forward(router: &mut Router, port: &Port, dst: Ipv6Addr) {
    let from = router.interfaces().by_name("pg1").unwrap();
    let src = "2001:db8:9::9".parse().unwrap();
    let bytes = frame((PEER_MAC, port.mac()), (src, dst), 64, &[0; 20]);
    put(router, "ip6-lookup", from, &bytes, 14);
    router.run();
}

pub fn knows(router: &Router, port: &Port, address: Ipv6Addr) -> Option<MacAddress> {
    router.get::<Neighbours>().get((port.index(), address)).map(|n| n.mac)
}

/// What lies behind Ethernet and IPv6 headers.
pub fn open(frame: &[u8]) -> (EthernetHeader, Ip6Header, &[u8]) {
    let (ethernet, rest) = EthernetHeader::read_from_prefix(frame).unwrap();
    let (ip, message) = Ip6Header::read_from_prefix(rest).unwrap();
    (ethernet, ip, &message[..usize::from(ip.payload_length())])
}
