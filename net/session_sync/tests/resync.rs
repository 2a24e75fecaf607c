//! All sessions are told again: to a router that comes back, after events were lost, when an operator asks; what the other router
//! does not have goes; what does not fit is counted and named.

use shoal_nat::tuple::{TCP, UDP};
use shoal_nat44_ed::Purpose;
use shoal_nat44_ed::mapping::{External, TwiceNat};
use shoal_session_sync::RoleSource;

use crate::common::{ACK, Pair, SHARED, SYN, Side, ip, pair, slow, tuple};

const WORLD: (&str, u16) = ("198.51.100.7", 80);

fn flows(pair: &mut Pair, count: u16) {
    for n in 0..count {
        pair.sides[0].connect(tuple(("10.0.0.2", 2000 + n), WORLD)).unwrap();
        if n % 10 == 0 {
            pair.sides[0].connect6(3, 2000 + n).unwrap();
        }
    }
}

fn counts(pair: &Pair, at: usize) -> (usize, usize) {
    (pair.sides[at].sessions().len(), pair.sides[at].nat64().sessions().unwrap().len())
}

#[test]
fn a_router_that_comes_back_hears_of_all_sessions() {
    let mut pair = pair(true);
    flows(&mut pair, 500);
    pair.advance(20);
    pair.restart(1);
    pair.configure(1, RoleSource::Standby);
    pair.advance(1500);
    assert!(pair.is_up());
    assert_eq!((counts(&pair, 0), counts(&pair, 1)), ((500, 50), (500, 50)));
    assert_eq!(pair.sides[1].counter("nat44-ed/entered"), 500);
    pair.fail_over(1);
    for n in 0..500 {
        assert!(pair.sides[1].out(tuple(("10.0.0.2", 2000 + n), WORLD), TCP, ACK).is_some());
    }
}

#[test]
fn an_active_router_that_fails_comes_back_as_standby_and_has_all_again() {
    let mut pair = pair(false);
    flows(&mut pair, 100);
    pair.advance(20);
    // It is gone; the other takes over.
    pair.sides[1].sync().set_role(RoleSource::Active).unwrap();
    pair.restart(0);
    pair.sides[1].connect(tuple(("10.0.0.4", 9000), WORLD)).unwrap();
    pair.configure(0, RoleSource::Standby);
    pair.advance(1500);
    assert_eq!((counts(&pair, 0), counts(&pair, 1)), ((101, 10), (101, 10)));
}

#[test]
fn what_the_other_router_does_not_have_is_swept_away_and_what_was_in_the_way_gives_way() {
    let mut pair = pair(false);
    // Both forward while they do not know each other.
    for side in &pair.sides {
        side.sync().set_peer(None).unwrap();
    }
    pair.advance(5);
    pair.configure(1, RoleSource::Active);
    let shared = |host: &'static str| tuple((host, 6000), WORLD);
    // Both give the same port to another host: of nat64 most likely another port, to the same host.
    pair.sides[0].connect(shared("10.0.0.2")).unwrap();
    pair.sides[1].connect(shared("10.0.0.3")).unwrap();
    pair.sides[1].connect(tuple(("10.0.0.5", 7000), WORLD)).unwrap();
    let left6 = pair.sides[0].connect6(3, 7000).unwrap();
    pair.sides[1].connect6(3, 7000).unwrap();
    pair.sides[1].connect6(4, 7001).unwrap();
    pair.configure(0, RoleSource::Active);
    pair.configure(1, RoleSource::Standby);
    pair.advance(12_000);
    let hosts: Vec<u32> = pair.sides[1].sessions().iter().map(|it| it.session.inside.src).collect();
    assert_eq!(hosts, [ip("10.0.0.2")]);
    let of64 = pair.sides[1].nat64().sessions().unwrap();
    assert_eq!(of64.len(), 1);
    assert_eq!((of64[0].outside.address.to_bits(), of64[0].outside.port), (left6.src, left6.sport));
    assert_eq!(pair.sides[1].counter("nat44-ed/replaced"), 1);
    assert_eq!(pair.sides[1].counter("nat44-ed/swept"), 1);
    assert_eq!(pair.sides[1].counter("nat64/swept"), 2);
}

#[test]
fn two_that_forward_take_in_what_does_no_harm_and_end_nothing_of_their_own() {
    let mut pair = pair(false);
    pair.sides[1].sync().set_role(RoleSource::Active).unwrap();
    pair.advance(20);
    let at = |host: &'static str, port| tuple((host, port), WORLD);
    pair.sides[0].connect(at("10.0.0.2", 6000)).unwrap();
    pair.advance(20);
    // The second router knows that the port is taken.
    let other = pair.sides[1].connect(at("10.0.0.3", 6000)).unwrap();
    assert_ne!(other.sport, 6000);
    // Both at once.
    pair.sides[0].connect(at("10.0.0.4", 6001)).unwrap();
    pair.sides[1].connect(at("10.0.0.5", 6001)).unwrap();
    pair.advance(1100);
    assert!(pair.sides.iter().all(|side| side.counter("nat44-ed/refused-tuple-taken") > 0));
    for (side, host) in [(0, "10.0.0.4"), (1, "10.0.0.5")] {
        assert_eq!(pair.sides[side].out(at(host, 6001), TCP, ACK).unwrap().sport, 6001);
    }
}

/// Nothing is carried, but the first router believes in the second one: more begins than a ring and a window hold. When connections
/// end on the way, ends are lost, too.
fn too_much(pair: &mut Pair, counter: &str, ends: bool) {
    let mut begun = 0;
    while pair.sides[0].counter(counter) == 0 {
        for _ in 0..200 {
            let (port, far) = (1024 + begun % 60_000, 1 + begun / 60_000);
            pair.sides[0].connect(tuple(("10.0.0.6", port as u16), ("198.51.100.8", far as u16))).unwrap();
            begun += 1;
        }
        if ends && begun % 5_000 == 0 {
            pair.sides[0].nat().clear_sessions().unwrap();
        }
        // Not so long that the other is taken for dead.
        pair.sides[0].router.advance(std::time::Duration::from_millis(1));
        assert!(begun < 100_000, "nothing is lost");
    }
}

#[test]
fn sessions_that_a_ring_had_no_room_for_are_told_later_and_no_others() {
    let mut pair = Pair { sides: [Side::plain(1), Side::plain(2)], is_ip6: false };
    pair.sides.iter().for_each(|side| side.enable_for(100_000));
    pair.configure(0, RoleSource::Active);
    pair.configure(1, RoleSource::Standby);
    pair.advance(300);
    for side in &pair.sides {
        side.sync().set_timers(slow()).unwrap();
    }
    let told = pair.sides[0].counter("all-told");
    too_much(&mut pair, "sessions-late", false);
    pair.advance(4000);
    assert!(pair.is_up());
    assert_eq!(counts(&pair, 0), counts(&pair, 1));
    assert_eq!((pair.sides[0].counter("all-told"), pair.sides[0].counter("ends-lost")), (told, 0));
    assert_eq!(pair.sides[0].counter("sessions-sent"), counts(&pair, 0).0 as u64, "each once");
}

#[test]
fn ends_that_were_lost_are_made_up_for() {
    let mut pair = pair(false);
    for side in &pair.sides {
        side.sync().set_timers(slow()).unwrap();
    }
    too_much(&mut pair, "ends-lost", true);
    for n in 0..50 {
        pair.sides[0].connect(tuple(("10.0.0.7", 2000 + n), WORLD)).unwrap();
    }
    pair.advance(8000);
    assert!(pair.is_up());
    assert_eq!(counts(&pair, 0), counts(&pair, 1));
    assert!(counts(&pair, 0).0 >= 50);
}

#[test]
fn a_session_that_does_not_fit_is_counted_and_named_and_comes_when_it_does() {
    let mut pair = pair(false);
    let (first, last) = ("203.0.113.50".parse().unwrap(), "203.0.113.50".parse().unwrap());
    let shared = SHARED.parse().unwrap();
    for side in &pair.sides {
        side.nat().del_addresses((shared, shared), Purpose::Pool).unwrap();
    }
    pair.sides[0].nat().add_addresses((first, last), Purpose::Pool, None).unwrap();
    pair.sides[0].connect(tuple(("10.0.0.2", 6000), WORLD)).unwrap();
    let spec = shoal_nat44_ed::Spec {
        local: "10.0.0.3".parse().unwrap(),
        local_port: 80,
        external: External::Address(ip("203.0.113.50")),
        external_port: 8080,
        protocol: TCP,
        vrf: None,
        twice: TwiceNat::No,
        out2in_only: false,
        identity: false,
        pool_address: None,
        tag: String::new(),
    };
    pair.sides[0].nat().add_mapping(spec.clone()).unwrap();
    let asked = tuple(("198.51.100.9", 999), ("203.0.113.50", 8080));
    let came = pair.sides[0].back(asked, TCP, SYN).unwrap();
    pair.sides[0].out(came.reversed(), TCP, 18).unwrap();
    pair.sides[0].back(asked, TCP, ACK).unwrap();
    pair.advance(1200);
    assert_eq!(counts(&pair, 1).0, 0);
    assert_eq!(pair.sides[1].counter("nat44-ed/refused-not-shared"), 1);
    assert_eq!(pair.sides[1].counter("nat44-ed/refused-other-mapping"), 1);
    let refused = pair.sides[1].sync().view().refused;
    let named = "nat44-ed protocol 6 10.0.0.2:6000 as 203.0.113.50:6000 to 198.51.100.7:80: 203.0.113.50 is no shared address here";
    assert!(refused.iter().any(|line| line == named), "{refused:?}");
    pair.sides[1].nat().add_addresses((first, last), Purpose::Pool, None).unwrap();
    pair.sides[1].nat().add_mapping(spec).unwrap();
    pair.sides[1].sync().resync().unwrap();
    pair.advance(1500);
    assert_eq!(counts(&pair, 1).0, 2);
    pair.fail_over(1);
    assert_eq!(pair.sides[1].back(asked, TCP, ACK), Some(came));
}

#[test]
fn a_kind_of_nat_that_is_switched_on_later_hears_of_all() {
    let mut pair = pair(false);
    for side in &pair.sides {
        side.sync().set_timers(slow()).unwrap();
    }
    pair.sides[1].nat().disable_nat().unwrap();
    pair.sides[1].nat64().disable().unwrap();
    flows(&mut pair, 30);
    pair.advance(6000);
    pair.sides[1].enable();
    pair.advance(6000);
    assert_eq!((counts(&pair, 0), counts(&pair, 1)), ((30, 3), (30, 3)));
    // It is still the standby.
    assert_eq!(pair.sides[1].out(tuple(("10.0.0.9", 1), WORLD), UDP, 0), None);
}
