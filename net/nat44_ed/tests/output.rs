//! Output feature, forwarding, interfaces on both sides.

use shoal_nat::tuple::{TCP, UDP};
use shoal_nat44_ed::{Enable, Nat44, NatError, Side};

use crate::common::{Bed, SHARED, bed, plain, read, spec, tuple};

const SYN: u8 = 2;

fn output() -> Bed {
    let bed = plain();
    let nat = bed.router.get::<Nat44>();
    nat.enable_nat(Enable::default()).unwrap();
    nat.set_output(bed.outside.index(), true).unwrap();
    bed.share(SHARED);
    bed
}

#[test]
fn packets_are_translated_when_they_go_out_and_answers_when_they_come_in() {
    let mut bed = output();
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    let left = tuple((SHARED, 5000), ("192.0.2.2", 80));
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(left, UDP, 0)));
    assert_eq!(bed.back(left.reversed(), UDP, 0), Some(bed.came(asked.reversed(), UDP, 0)));
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(left, UDP, 0)));
    assert_eq!(bed.sessions().len(), 1);
    let counted = |what: &str| bed.router.if_counter(what, bed.outside.index());
    assert_eq!(counted("/nat44-ed/in2out/slowpath/udp"), 1);
    assert_eq!(counted("/nat44-ed/in2out/fastpath/udp"), 1);
    assert_eq!(counted("/nat44-ed/out2in/fastpath/udp"), 1);
    assert_eq!(bed.back(tuple(("192.0.2.2", 80), (SHARED, 5001)), UDP, 0), None);
}

#[test]
fn forwarding_lets_through_what_has_no_session_and_answers_to_it() {
    let mut bed = output();
    bed.nat().set_forwarding(true).unwrap();
    let asked = tuple(("192.0.2.2", 999), ("10.0.0.2", 22));
    assert_eq!(bed.back(asked, TCP, SYN), Some(bed.came(asked, TCP, SYN)));
    assert_eq!(bed.out(asked.reversed(), TCP, 18), Some(bed.left(asked.reversed(), TCP, 18)));
    assert_eq!(bed.sessions().len(), 1);
    // What it lets through ends with it.
    bed.nat().set_forwarding(false).unwrap();
    assert_eq!(bed.sessions().len(), 0);
    assert_eq!(bed.back(asked, TCP, 16), None);
}

#[test]
fn with_forwarding_only_mappings_translate_what_comes_in_by_an_inside_interface() {
    let mut bed = bed();
    bed.share(SHARED);
    bed.nat().set_forwarding(true).unwrap();
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(asked, UDP, 0)));
    bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    let asked = tuple(("192.0.2.2", 999), (SHARED, 8080));
    let came = read(&bed.back(asked, TCP, SYN).unwrap());
    assert_eq!(bed.out(came.reversed(), TCP, 18), Some(bed.left(asked.reversed(), TCP, 18)));
}

#[test]
fn an_interface_has_sides_or_an_output_feature() {
    let bed = output();
    let nat = bed.nat();
    let (a, b) = (bed.inside.index(), bed.outside.index());
    assert!(matches!(nat.set_side(b, Side::Inside, true), Err(NatError::OtherKind(_))));
    nat.set_side(a, Side::Inside, true).unwrap();
    nat.set_side(a, Side::Inside, true).unwrap();
    assert!(matches!(nat.set_output(a, true), Err(NatError::OtherKind(_))));
    assert!(matches!(nat.set_side(a, Side::Outside, false), Err(NatError::NoInterface(_))));
    nat.set_side(a, Side::Inside, false).unwrap();
    nat.set_output(b, false).unwrap();
    assert!(matches!(nat.set_output(b, false), Err(NatError::NoInterface(_))));
    assert_eq!((nat.sides().len(), nat.outputs().len()), (0, 0));
}

#[test]
fn an_interface_on_both_sides_tells_directions_apart() {
    let mut bed = bed();
    bed.share(SHARED);
    let nat = bed.nat();
    nat.set_side(bed.inside.index(), Side::Outside, true).unwrap();
    nat.set_side(bed.outside.index(), Side::Inside, true).unwrap();
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    let left = tuple((SHARED, 5000), ("192.0.2.2", 80));
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(left, UDP, 0)));
    assert_eq!(bed.back(left.reversed(), UDP, 0), Some(bed.came(asked.reversed(), UDP, 0)));
}
