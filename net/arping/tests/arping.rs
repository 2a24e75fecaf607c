//! What arping sends, and what it counts.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use shoal_arping::{Arping, ArpingError, Counted, MODULE, Question};
use shoal_testkit::{PEER, PEER_MAC, Port, Router, STACK, US, api};
use shoal_wire::{ArpHeader, ArpOpcode, EthernetHeader, FromBytes, Packet};

const US6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const PEER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// A router with 10.0.0.1/24 and 2001:db8::1/64 on pg0.
fn bench() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &MODULE]);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    router.get::<shoal_ip6::Ip6>().add_address(port.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    router.advance(Duration::from_secs(5));
    port.received();
    (router, port)
}

type Ended = Rc<Cell<Option<Result<Counted, ArpingError>>>>;

fn begin(router: &mut Router, port: &Port, address: impl Into<IpAddr>, question: Question) -> Ended {
    let arping = Arping {
        interface: port.index(),
        address: address.into(),
        question,
        repeat: 2,
        interval: Duration::from_millis(500),
    };
    let (ended, control) = (Ended::default(), Rc::clone(router.control()));
    let end = Rc::clone(&ended);
    let processes = control.processes().unwrap();
    processes.spawn_unlisted(async move { end.set(Some(arping.run(control, None).await)) });
    router.run();
    ended
}

fn arp_of(frame: &[u8]) -> ArpHeader {
    let (_, rest) = EthernetHeader::read_from_prefix(frame).unwrap();
    ArpHeader::read_from_prefix(rest).unwrap().0
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&shoal_arping::api::API]);
}

#[test]
fn asks_by_arp_and_counts_who_answers() {
    let (mut router, port) = bench();
    let ended = begin(&mut router, &port, PEER, Question::WhoHas);
    let asked = arp_of(&port.received_one());
    assert_eq!((asked.opcode(), asked.sender_ip4(), asked.target_ip4()), (ArpOpcode::REQUEST, US, PEER));
    router.send(&port, Packet::arp_reply(PEER_MAC, PEER, port.mac(), US).build());
    router.advance(Duration::from_millis(600));
    assert!(ended.take().is_none(), "the second answer may come yet");
    router.advance(Duration::from_millis(600));
    let counted = ended.take().unwrap().unwrap();
    assert_eq!(counted, Counted { sent: 2, received: 1, mac: Some(PEER_MAC) });
}

#[test]
fn announces_by_a_request_for_itself() {
    let (mut router, port) = bench();
    begin(&mut router, &port, US, Question::Announce);
    let said = arp_of(&port.received_one());
    assert_eq!((said.opcode(), said.sender_ip4(), said.target_ip4()), (ArpOpcode::REQUEST, US, US));
}

#[test]
fn hears_another_station_with_our_address() {
    // RFC 5227 2.4: that is what an announcement is to find out.
    let (mut router, port) = bench();
    let ended = begin(&mut router, &port, US, Question::Announce);
    router.send(&port, Packet::arp_reply(PEER_MAC, US, port.mac(), US).build());
    router.advance(Duration::from_secs(2));
    assert_eq!(ended.take().unwrap().unwrap().mac, Some(PEER_MAC));
}

#[test]
fn asks_and_announces_by_neighbour_discovery() {
    let (mut router, port) = bench();
    begin(&mut router, &port, PEER6, Question::WhoHas);
    let asked = port.received_one();
    assert_eq!((asked[54], &asked[22..38], &asked[62..78]), (135, &US6.octets()[..], &PEER6.octets()[..]));
    router.advance(Duration::from_secs(2));
    port.received();
    begin(&mut router, &port, US6, Question::Announce);
    let said = port.received_one();
    assert_eq!((said[54], &said[22..38], &said[62..78]), (136, &US6.octets()[..], &US6.octets()[..]));
}

#[test]
fn what_cannot_be_sent_says_why() {
    let (mut router, port) = bench();
    let ended = begin(&mut router, &port, Ipv4Addr::UNSPECIFIED, Question::WhoHas);
    assert!(matches!(ended.take(), Some(Err(ArpingError::NoHost(_)))));
    let bare = router.pg(1);
    let ended = begin(&mut router, &bare, PEER, Question::WhoHas);
    assert!(matches!(ended.take(), Some(Err(ArpingError::NoSource(..)))));
}
