//! Output feature, forwarding, interfaces on both sides.

use shoal_nat::tuple::{TCP, UDP};
use shoal_nat44_ei::{Enable, NatError, Side, Sides};

use crate::common::{Bed, SHARED, bed, plain, read, spec, tuple};

const SYN: u8 = 2;
const BOTH: Sides = Sides { inside: true, outside: true };

fn output() -> Bed {
    let bed = plain();
    bed.nat().enable(Enable::default()).unwrap();
    bed.nat().set_output(bed.outside.index(), BOTH, true).unwrap();
    bed.share(SHARED);
    bed
}

#[test]
fn packets_are_translated_when_they_go_out_and_answers_when_they_come_in() {
    let mut bed = output();
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    let to = read(&bed.out(asked, UDP, 0).unwrap());
    assert_eq!((to.source().0.to_string().as_str(), to.dst), (SHARED, asked.dst));
    assert_eq!(bed.back(to.reversed(), UDP, 0), Some(bed.came(asked.reversed(), UDP, 0)));
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(to, UDP, 0)));
    assert_eq!(bed.sessions().len(), 1);
    let counted = |what: &str| bed.router.if_counter(what, bed.outside.index());
    assert_eq!(counted("/nat44-ei/in2out/slowpath/udp"), 1);
    assert_eq!(counted("/nat44-ei/in2out/fastpath/udp"), 1);
    assert_eq!(bed.back(tuple(("192.0.2.2", 80), (SHARED, 1)), UDP, 0), None);
    // An interface has one kind of NAT.
    let other = bed.nat().set_side(bed.outside.index(), Side::Outside, true);
    assert!(matches!(other, Err(NatError::OtherKind(_))), "{other:?}");
}

#[test]
fn forwarding_lets_through_what_nothing_is_known_of() {
    let mut bed = bed();
    let asked = tuple(("192.0.2.2", 999), ("10.0.0.2", 22));
    assert_eq!(bed.back(asked, TCP, SYN), None);
    bed.nat().set_forwarding(true);
    assert_eq!(bed.back(asked, TCP, SYN), Some(bed.came(asked, TCP, SYN)));
    // And what hosts say without a mapping.
    let answer = asked.reversed();
    assert_eq!(bed.out(answer, TCP, 18), Some(bed.left(answer, TCP, 18)));
    bed.nat().add_mapping(spec(("10.0.0.2", 22), (SHARED, 2222), TCP)).unwrap();
    let mapped = tuple((SHARED, 2222), ("192.0.2.2", 999));
    assert_eq!(bed.out(answer, TCP, 18), Some(bed.left(mapped, TCP, 18)));
}

#[test]
fn an_interface_may_be_on_both_sides() {
    let bed = plain();
    bed.nat().enable(Enable::default()).unwrap();
    let mut bed = bed;
    bed.share(SHARED);
    for side in [Side::Inside, Side::Outside] {
        bed.nat().set_side(bed.outside.index(), side, true).unwrap();
    }
    // A host behind the same interface as the world: it comes in and leaves there.
    let asked = tuple(("192.0.2.9", 5000), ("192.0.2.2", 80));
    let send = |bed: &mut Bed, tuple| {
        let mac = (crate::common::FAR, bed.outside.mac());
        bed.send_outside(crate::common::packet(mac, tuple, UDP, 0, 64, b"payload"));
        // Beside it a redirect, since it leaves where it came in.
        let frames: Vec<Vec<u8>> = bed.outside.received().into_iter().filter(|f| f[23] == UDP).collect();
        assert_eq!(frames.len(), 1, "{:?}", bed.router.errors());
        read(&frames[0])
    };
    let to = send(&mut bed, asked);
    assert_eq!((to.source().0.to_string().as_str(), to.dst), (SHARED, asked.dst));
    assert_eq!(send(&mut bed, to.reversed()), asked.reversed());
    assert_eq!(send(&mut bed, asked), to);
    bed.nat().add_mapping(spec(("192.0.2.9", 80), (SHARED, 8080), UDP)).unwrap();
    let served = send(&mut bed, tuple(("192.0.2.2", 7), (SHARED, 8080)));
    assert_eq!(served, tuple(("192.0.2.2", 7), ("192.0.2.9", 80)));
}

#[test]
fn what_is_for_the_router_itself_is_left_alone() {
    let mut bed = bed();
    // A host pings the router; the world pings its outside address.
    let ping = tuple(("10.0.0.2", 7), ("10.0.0.1", 7));
    assert!(bed.hairpin(ping, 1, 0).is_some());
    let mac = (crate::common::FAR, bed.outside.mac());
    let ping = tuple(("192.0.2.2", 7), ("192.0.2.1", 7));
    bed.send_outside(crate::common::packet(mac, ping, 1, 0, 64, b""));
    assert_eq!(bed.outside.received().len(), 1);
    assert_eq!(bed.sessions().len(), 0);
}
