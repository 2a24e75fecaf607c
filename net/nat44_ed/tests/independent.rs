//! Shared addresses whose mappings do not depend on the remote host.

use std::collections::BTreeMap;

use shoal_nat::Tuple;
use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_nat44_ed::bindings::Filtering;
use shoal_nat44_ed::{Enable, NatError, OfInterface, Purpose, SharedAddress};

use crate::common::{Bed, HOST, SHARED, bed, bed_of, ip, packet, read, spec, tuple};

const FIRST: &str = "192.0.2.2";
const OTHER: &str = "192.0.2.3";

fn independent(bed: &Bed, filtering: Filtering) {
    let address = SHARED.parse().unwrap();
    bed.nat().set_independent((address, address), Some(filtering)).unwrap();
}

fn shared(filtering: Filtering) -> Bed {
    let bed = bed();
    bed.share(SHARED);
    independent(&bed, filtering);
    bed
}

/// The outside port that a host's packet leaves by.
fn left(bed: &mut Bed, host: (&str, u16), to: (&str, u16), protocol: u8) -> Option<u16> {
    let flags = if protocol == TCP { 2 } else { 0 };
    let frame = bed.out(tuple(host, to), protocol, flags)?;
    let tuple = read(&frame);
    assert_eq!(tuple.src, ip(SHARED));
    Some(tuple.sport)
}

/// Whether a packet to an outside port comes to a host.
fn comes(bed: &mut Bed, from: (&str, u16), port: u16, host: (&str, u16), protocol: u8, flags: u8) -> bool {
    let Some(frame) = bed.back(tuple(from, (SHARED, port)), protocol, flags) else { return false };
    assert_eq!(frame, bed.came(tuple(from, host), protocol, flags));
    true
}

#[test]
fn a_port_is_the_same_towards_all_and_no_other_hosts() {
    let mut bed = shared(Filtering::EndpointIndependent);
    for protocol in [UDP, TCP] {
        let port = left(&mut bed, ("10.0.0.2", 5000), (FIRST, 53), protocol).unwrap();
        assert_eq!(port, 5000, "RFC 4787, REQ-3: it is kept");
        assert_eq!(left(&mut bed, ("10.0.0.2", 5000), (OTHER, 80), protocol), Some(5000));
        // Another host has another one, also towards remote hosts that nothing was sent to.
        let other = left(&mut bed, ("10.0.0.3", 5000), ("192.0.2.4", 53), protocol).unwrap();
        assert_ne!(other, 5000);
        assert_eq!(left(&mut bed, ("10.0.0.3", 5000), (FIRST, 53), protocol), Some(other));
        if protocol == UDP {
            assert_eq!(other % 2, 0, "RFC 4787, REQ-4: an even one for an even one");
        }
    }
    // Identifiers of ICMP, too.
    let id = left(&mut bed, ("10.0.0.2", 77), (FIRST, 77), ICMP).unwrap();
    assert_eq!(left(&mut bed, ("10.0.0.2", 77), (OTHER, 77), ICMP), Some(id));
    // Without it, both have it.
    let mut plain = crate::common::bed();
    plain.share(SHARED);
    assert_eq!(left(&mut plain, ("10.0.0.2", 5000), (FIRST, 53), UDP), Some(5000));
    assert_eq!(left(&mut plain, ("10.0.0.3", 5000), (OTHER, 53), UDP), Some(5000));
}

#[test]
fn who_may_send_to_a_port_is_as_it_was_configured() {
    for (filtering, [stranger, other_port]) in [
        (Filtering::EndpointIndependent, [true, true]),
        (Filtering::AddressDependent, [false, true]),
        (Filtering::AddressAndPortDependent, [false, false]),
    ] {
        for (protocol, flags) in [(UDP, 0), (TCP, 2)] {
            let mut bed = shared(filtering);
            let host = ("10.0.0.2", 5000);
            assert!(!comes(&mut bed, (FIRST, 53), 5000, host, protocol, flags), "nothing was sent yet");
            left(&mut bed, host, (FIRST, 53), protocol).unwrap();
            assert!(comes(&mut bed, (FIRST, 53), 5000, host, protocol, flags | (flags << 3)));
            assert_eq!(
                comes(&mut bed, (FIRST, 54), 5000, host, protocol, flags),
                other_port,
                "{filtering:?}"
            );
            assert_eq!(comes(&mut bed, (OTHER, 53), 5000, host, protocol, flags), stranger, "{filtering:?}");
            // What came can be answered, by the same port.
            if stranger {
                let answer = bed.out(tuple(host, (OTHER, 53)), protocol, flags | (flags << 3)).unwrap();
                assert_eq!(read(&answer), tuple((SHARED, 5000), (OTHER, 53)));
            }
            // A connection begins with SYN, and a request of ICMP begins nothing.
            assert!(!comes(&mut bed, ("192.0.2.5", 53), 5000, host, TCP, 16));
            assert!(!comes(&mut bed, ("192.0.2.5", 5000), 5000, host, ICMP, 0));
        }
    }
}

#[test]
fn a_port_is_free_again_with_its_last_session() {
    let mut bed = shared(Filtering::AddressDependent);
    left(&mut bed, ("10.0.0.2", 5000), (FIRST, 53), UDP).unwrap();
    bed.advance(200);
    left(&mut bed, ("10.0.0.2", 5000), (OTHER, 53), UDP).unwrap();
    // The first session ends, the second goes on: the first remote host is a stranger now.
    bed.advance(200);
    assert_eq!(bed.sessions().len(), 1);
    assert!(!comes(&mut bed, (FIRST, 54), 5000, ("10.0.0.2", 5000), UDP, 0));
    assert!(comes(&mut bed, (OTHER, 54), 5000, ("10.0.0.2", 5000), UDP, 0));
    assert_ne!(left(&mut bed, ("10.0.0.3", 5000), (FIRST, 53), UDP), Some(5000));
    bed.advance(8000);
    assert_eq!(bed.sessions().len(), 0);
    assert_eq!(left(&mut bed, ("10.0.0.3", 5000), (FIRST, 53), UDP), Some(5000));
}

#[test]
fn hosts_reach_each_other_by_their_outside_ports() {
    for (filtering, reaches) in [
        (Filtering::EndpointIndependent, true),
        (Filtering::AddressDependent, false),
        (Filtering::AddressAndPortDependent, false),
    ] {
        let mut bed = shared(filtering);
        let (first, second) = (("10.0.0.2", 5000), ("10.0.0.3", 6000));
        left(&mut bed, first, (FIRST, 53), UDP).unwrap();
        left(&mut bed, second, (FIRST, 53), UDP).unwrap();
        // RFC 4787, REQ-9: the packet comes from the first one's outside address and port.
        // A packet that is not for the other comes back as an error of the router, whose address it is.
        let frame = bed.hairpin(tuple(first, (SHARED, 6000)), UDP, 0).unwrap();
        assert_eq!(read(&frame) == tuple((SHARED, 5000), second), reaches, "{filtering:?}");
        if !reaches {
            continue;
        }
        let answer = bed.hairpin(tuple(second, (SHARED, 5000)), UDP, 0).unwrap();
        assert_eq!(read(&answer), tuple((SHARED, 6000), first));
    }
}

#[test]
fn what_an_operator_enters_comes_first() {
    let mut bed = shared(Filtering::EndpointIndependent);
    bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    assert_ne!(left(&mut bed, ("10.0.0.2", 8080), (FIRST, 53), TCP), Some(8080));
    assert!(comes(&mut bed, (OTHER, 1), 8080, ("10.0.0.5", 80), TCP, 2));
    // Packets of the mapping's host have its port, all else of the host has one of its own.
    assert_eq!(left(&mut bed, ("10.0.0.5", 80), (FIRST, 53), TCP), Some(8080));
    assert_eq!(left(&mut bed, ("10.0.0.5", 80), (FIRST, 53), UDP).map(|port| port > 1023), Some(true));
}

#[test]
fn sessions_stay_when_it_begins_but_those_that_share_a_port() {
    let mut bed = bed();
    bed.share(SHARED);
    left(&mut bed, ("10.0.0.2", 5000), (FIRST, 53), UDP).unwrap();
    left(&mut bed, ("10.0.0.2", 5000), (OTHER, 53), UDP).unwrap();
    left(&mut bed, ("10.0.0.3", 5000), ("192.0.2.4", 53), UDP).unwrap();
    independent(&bed, Filtering::EndpointIndependent);
    let hosts: BTreeMap<u32, usize> = bed.sessions().iter().fold(BTreeMap::new(), |mut all, record| {
        *all.entry(record.session.inside.src).or_default() += 1;
        all
    });
    assert_eq!(hosts.len(), 1, "one of the two hosts keeps the port: {hosts:?}");
    let kept = *hosts.keys().next().unwrap();
    assert!(comes(
        &mut bed,
        ("192.0.2.5", 9),
        5000,
        (&std::net::Ipv4Addr::from_bits(kept).to_string(), 5000),
        UDP,
        0
    ));
    // It ends, and nothing is lost.
    let (address, before) = (SHARED.parse().unwrap(), bed.sessions().len());
    bed.nat().set_independent((address, address), None).unwrap();
    assert_eq!(bed.sessions().len(), before);
    assert!(bed.back(tuple(("192.0.2.6", 9), (SHARED, 5000)), UDP, 0).is_none());
    bed.advance(8000);
    assert_eq!(bed.sessions().len(), 0);
}

#[test]
fn ports_move_with_their_sessions_when_workers_come_and_go() {
    let mut bed = bed_of(Enable { sessions: 5000, ..Enable::default() });
    bed.share(SHARED);
    independent(&bed, Filtering::EndpointIndependent);
    bed.router.graph().add_worker(None).unwrap();
    let host = |n: u16| ("10.0.0.2", 2000 + n * 600);
    for n in 0..100 {
        assert_eq!(left(&mut bed, host(n), (FIRST, 53), UDP), Some(host(n).1));
    }
    for workers in [2, 3, 2, 1] {
        let graph = std::rc::Rc::clone(bed.router.graph());
        let there = graph.threads().len() - 1;
        if workers > there {
            graph.add_worker(None).unwrap();
        } else {
            graph.remove_worker(there).unwrap();
        }
        bed.router.run();
        for n in 0..100 {
            let stranger = (OTHER, 100 + workers as u16);
            assert!(comes(&mut bed, stranger, host(n).1, host(n), UDP, 0), "{workers} workers, host {n}");
        }
    }
}

#[test]
fn an_address_is_asked_for_that_is_shared() {
    let bed = bed();
    let nat = bed.nat();
    let range = |first: &str, last: &str| (first.parse().unwrap(), last.parse().unwrap());
    let on = Some(Filtering::default());
    assert!(matches!(nat.set_independent(range(SHARED, SHARED), on), Err(NatError::NoAddress(_))));
    bed.share(SHARED);
    // All of a range or nothing.
    assert!(matches!(nat.set_independent(range(SHARED, "192.0.2.101"), on), Err(NatError::NoAddress(_))));
    assert!(matches!(nat.set_independent(range("192.0.2.101", SHARED), on), Err(NatError::Range(..))));
    assert_eq!(nat.independent(), []);
    let outside = bed.outside.index();
    assert!(matches!(nat.set_interface_independent(outside, on), Err(NatError::Interface(_))));
    nat.follow_interface(OfInterface { interface: outside, purpose: Purpose::Pool }).unwrap();
    nat.set_interface_independent(outside, on).unwrap();
    nat.set_independent(range(SHARED, SHARED), on).unwrap();
    let all = [SharedAddress::Address(SHARED.parse().unwrap()), SharedAddress::OfInterface(outside)];
    assert_eq!(nat.independent(), all.map(|address| (address, Filtering::EndpointIndependent)));
    assert_eq!(nat.filtering().len(), 2);
    // It goes with the address.
    nat.del_addresses(range(SHARED, SHARED), Purpose::Pool).unwrap();
    nat.unfollow_interface(OfInterface { interface: outside, purpose: Purpose::Pool }).unwrap();
    assert_eq!((nat.independent(), nat.filtering().len()), (vec![], 0));
    nat.disable_nat().unwrap();
    assert!(matches!(nat.set_independent(range(SHARED, SHARED), on), Err(NatError::Off(_))));
}

#[test]
fn all_ports_of_an_address_can_be_taken_and_the_next_address_is_tried() {
    let mut bed = bed_of(Enable { sessions: 200_000, ..Enable::default() });
    bed.share(SHARED);
    independent(&bed, Filtering::EndpointIndependent);
    // A host that takes all ports there are: each is kept.
    let mac = bed.inside.mac();
    let asked = |port: u16| Tuple { src: ip("10.0.0.2"), dst: ip(FIRST), sport: port, dport: 53 };
    let ports: Vec<u16> = (1024..=65_535).collect();
    for some in ports.chunks(256) {
        let frames = some.iter().map(|port| packet((HOST, mac), asked(*port), UDP, 0, 64, b""));
        bed.send_all_inside(frames.collect::<Vec<_>>());
        let left: Vec<u16> = bed.outside.received().iter().map(|frame| read(frame).sport).collect();
        assert_eq!(left, some);
    }
    assert_eq!(bed.out(tuple(("10.0.0.3", 5000), (OTHER, 53)), UDP, 0), None);
    let errors = bed.router.errors();
    assert!(errors.iter().any(|(name, n)| name.contains("out of ports") && *n == 1), "{errors:?}");
    bed.share("192.0.2.101");
    let frame = bed.out(tuple(("10.0.0.3", 5000), (OTHER, 53)), UDP, 0).unwrap();
    assert_eq!(read(&frame), tuple(("192.0.2.101", 5000), (OTHER, 53)));
}
