//! The control plane: what is refused, what is saved, what is shown.

use shoal_message::Retval;
use shoal_module::Running;
use shoal_nat::tuple::{TCP, UDP};
use shoal_nat44_ei::config::{Algorithm, Mode, Timeouts};
use shoal_nat44_ei::{Enable, Failover, Listener, NatError, Side, Sides};

use shoal_testkit::PacketBuilder;

use crate::common::{Bed, FAR, SHARED, bed, plain, read, spec, tuple};

#[test]
fn without_nat_nothing_can_be_configured() {
    let bed = plain();
    let nat = bed.nat();
    let off = NatError::Disabled("nat44 ei");
    assert_eq!(Retval::from(off.clone()), Retval::FEATURE_ALREADY_DISABLED);
    let address = SHARED.parse().unwrap();
    assert_eq!(nat.add_addresses((address, address), None), Err(off.clone()));
    assert_eq!(nat.add_mapping(spec(("10.0.0.5", 80), (SHARED, 80), TCP)), Err(off.clone()));
    assert_eq!(nat.set_side(bed.inside.index(), Side::Inside, true), Err(off));
    // What holds for all sessions can be configured before.
    let timeouts = Timeouts { icmp: 30, ..Timeouts::default() };
    nat.set_timeouts(timeouts).unwrap();
    nat.set_algorithm(Algorithm::Range { first: 2000, last: 2010 }).unwrap();
    nat.follow_interface(bed.outside.index()).unwrap();
    nat.flush();
    nat.set_queue_length(32).unwrap();
    assert_eq!(nat.disable(), Err(NatError::AlreadyOff));
    nat.enable(Enable::default()).unwrap();
    assert_eq!(nat.enable(Enable::default()), Err(NatError::AlreadyOn));
    assert_eq!(nat.set_queue_length(64), Err(NatError::AlreadyOn));
    assert_eq!((nat.timeouts(), nat.algorithm()), (timeouts, Algorithm::Range { first: 2000, last: 2010 }));
    assert_eq!(nat.addresses().len(), 1);
    nat.disable().unwrap();
    let many = nat.enable(Enable { sessions: u32::MAX, ..Enable::default() });
    assert!(matches!(many, Err(NatError::Sessions { .. })), "{many:?}");
    assert_eq!(nat.enabled(), None);
}

#[test]
fn values_that_cannot_be_are_refused_and_say_what_can() {
    let bed = bed();
    let nat = bed.nat();
    let (first, last) = ("192.0.2.9".parse().unwrap(), "192.0.2.8".parse().unwrap());
    assert_eq!(nat.add_addresses((first, last), None), Err(NatError::Range(first, last)));
    let shared = SHARED.parse().unwrap();
    assert_eq!(nat.add_addresses((shared, shared), None), Err(NatError::AddressExists(shared)));
    assert_eq!(nat.del_addresses((first, first)), Err(NatError::NoAddress(first)));
    let none = nat.set_timeouts(Timeouts { udp: 0, ..Timeouts::default() }).unwrap_err();
    assert!(none.to_string().contains("nearest 1"), "{none}");
    for algorithm in [
        Algorithm::MapE { psid: 1, offset: 16, length: 0, rfc7597: true },
        Algorithm::MapE { psid: 1, offset: 8, length: 9, rfc7597: true },
        Algorithm::MapE { psid: 64, offset: 6, length: 6, rfc7597: true },
        Algorithm::Range { first: 9, last: 8 },
        Algorithm::Range { first: 9, last: 9 },
        Algorithm::Range { first: 0, last: 8 },
    ] {
        let refused = nat.set_algorithm(algorithm);
        assert!(matches!(refused, Err(NatError::Value(_))), "{algorithm:?}: {refused:?}");
    }
    assert_eq!(nat.algorithm(), Algorithm::Default);
    assert_eq!(nat.resync(None), Ok(()), "there is no other router");
    assert!(!nat.is_resyncing());
    assert_eq!(nat.del_user("10.0.0.2".parse().unwrap(), 0), Err(NatError::NoUser));
    assert_eq!(Retval::from(NatError::NoUser), Retval(1));
}

#[test]
fn sessions_end_when_an_operator_says_so() {
    let mut bed = bed();
    let asked = |port| tuple(("10.0.0.2", port), ("192.0.2.2", 80));
    let outside: Vec<u16> = (1..5).map(|port| read(&bed.out(asked(port), UDP, 0).unwrap()).sport).collect();
    let nat = bed.nat();
    nat.del_session(("10.0.0.2".parse().unwrap(), 1), true, UDP, 0).unwrap();
    nat.del_session((SHARED.parse().unwrap(), outside[1]), false, UDP, 0).unwrap();
    let again = nat.del_session(("10.0.0.2".parse().unwrap(), 1), true, UDP, 0);
    assert_eq!(again, Err(NatError::NoSession));
    assert_eq!(bed.sessions().len(), 2);
    nat.del_user("10.0.0.2".parse().unwrap(), 0).unwrap();
    assert_eq!(bed.sessions().len(), 0);
    assert_eq!(bed.router.counter("/nat44-ei/total-sessions"), 0);
    bed.out(asked(1), UDP, 0).unwrap();
    nat.clear_sessions().unwrap();
    assert_eq!(bed.sessions().len(), 0);
    bed.out(asked(1), UDP, 0).unwrap();
    let shared = SHARED.parse().unwrap();
    nat.del_addresses((shared, shared)).unwrap();
    assert_eq!(bed.sessions().len(), 0, "they end with their address");
}

#[test]
fn the_router_answers_for_its_addresses_as_long_as_they_are_its_own() {
    let mut bed = bed();
    let nat = bed.nat();
    nat.add_mapping(spec(("10.0.0.5", 0), ("192.0.2.77", 0), 0)).unwrap();
    let answers = |bed: &mut Bed, address: &str| {
        let address: std::net::Ipv4Addr = address.parse().unwrap();
        let asks = PacketBuilder::arp_request(FAR, [192, 0, 2, 9], address.octets());
        bed.send_outside(asks.build());
        bed.outside.received().len()
    };
    assert_eq!((answers(&mut bed, "192.0.2.77"), answers(&mut bed, SHARED)), (1, 1));
    assert_eq!(answers(&mut bed, "192.0.2.78"), 0);
    nat.disable().unwrap();
    assert_eq!((answers(&mut bed, "192.0.2.77"), answers(&mut bed, SHARED)), (0, 0));
}

fn saved_by(bed: &Bed) -> String {
    let mut running = Running::default();
    (shoal_nat44_ei::MODULE.running)(bed.router.control(), &mut running);
    running.pieces().collect()
}

#[test]
fn all_that_was_configured_is_saved() {
    let bed = bed();
    let nat = bed.nat();
    nat.disable().unwrap();
    let all = Enable {
        sessions: 5000,
        users: 50,
        user_sessions: 100,
        mode: Mode::StaticTracked,
        ..Enable::default()
    };
    nat.enable(all).unwrap();
    nat.set_side(bed.inside.index(), Side::Inside, true).unwrap();
    nat.set_output(bed.outside.index(), Sides { inside: true, outside: true }, true).unwrap();
    nat.follow_interface(bed.outside.index()).unwrap();
    nat.set_forwarding(true);
    nat.set_mss(1400);
    nat.set_ipfix(Some((0, 0)));
    nat.set_timeouts(Timeouts { icmp: 30, ..Timeouts::default() }).unwrap();
    nat.set_algorithm(Algorithm::MapE { psid: 10, offset: 6, length: 6, rfc7597: true }).unwrap();
    nat.add_mapping(spec(("10.0.0.5", 80), ("192.0.2.60", 8080), TCP)).unwrap();
    let own = "192.0.2.1".parse().unwrap();
    nat.set_listener(Listener { address: own, port: 1234, path_mtu: 600 }).unwrap();
    let other = "192.0.2.2".parse().unwrap();
    nat.set_failover(Failover { address: other, port: 1235, refresh: 20 });
    let saved = saved_by(&bed);
    let (inside, outside) = (bed.inside.name(), bed.outside.name());
    let lines = [
        "nat44 ei plugin enable sessions 5000 users 50 user-sessions 100 static-mapping-only connection-tracking",
        "nat44 ei forwarding enable",
        "nat44 ei mss-clamping 1400",
        "set nat44 ei timeout udp 300 tcp-established 7440 tcp-transitory 240 icmp 30",
        "nat44 ei addr-port-assignment-alg map-e psid 10 psid-offset 6 psid-len 6 rfc7597",
        &format!("set interface nat44 ei in {inside}"),
        &format!("set interface nat44 ei out {outside} output-feature"),
        &format!("nat44 ei add interface address {outside}"),
        "nat44 ei add static mapping tcp local 10.0.0.5 80 external 192.0.2.60 8080",
        "nat44 ei ha listener 192.0.2.1:1234 path-mtu 600",
        "nat44 ei ha failover 192.0.2.2:1235 refresh-interval 20",
    ];
    for line in lines {
        assert!(saved.lines().any(|one| one == line), "{line}\n{saved}");
    }
    assert_eq!(saved.lines().filter(|line| line.contains("nat44 ei")).count(), lines.len(), "{saved}");
    nat.disable().unwrap();
    assert!(!saved_by(&bed).contains("nat44 ei"));
}
