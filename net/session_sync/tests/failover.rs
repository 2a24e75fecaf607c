//! The standby goes on where the active router was.

use shoal_nat::tuple::{TCP, UDP};
use shoal_nat_state::sync::Role;
use shoal_session_sync::RoleSource;

use crate::common::{ACK, Pair, SYN, link, pair, tuple};

const FIN_ACK: u8 = 17;
const WORLD: (&str, u16) = ("198.51.100.7", 80);

/// Tuples and states of the first kind of NAT's sessions.
fn known(pair: &Pair, at: usize) -> Vec<String> {
    let text = |record: &shoal_nat44_ed::sessions::Record| {
        let session = record.session;
        format!("{:?} {:?} {} {}", session.inside, session.outside, session.protocol, record.states.0.name())
    };
    pair.sides[at].sessions().iter().map(text).collect()
}

#[test]
fn established_connections_go_on_through_the_other_router() {
    for is_ip6 in [false, true] {
        let mut pair = pair(is_ip6);
        let flows: Vec<_> = (0..60).map(|n| tuple(("10.0.0.2", 5000 + n), WORLD)).collect();
        let left: Vec<_> = flows.iter().map(|flow| pair.sides[0].connect(*flow).unwrap()).collect();
        let left6: Vec<_> = (0..20).map(|n| pair.sides[0].connect6(3, 7000 + n).unwrap()).collect();
        pair.advance(50);
        assert_eq!(known(&pair, 0), known(&pair, 1));
        assert_eq!(pair.sides[1].nat64().sessions().unwrap().len(), 20);
        pair.fail_over(1);
        for (flow, left) in flows.iter().zip(&left) {
            // From either side first.
            if flow.sport % 2 == 0 {
                assert_eq!(pair.sides[1].back(left.reversed(), TCP, ACK), Some(flow.reversed()));
            }
            assert_eq!(pair.sides[1].out(*flow, TCP, ACK), Some(*left));
        }
        for (n, left) in (0..).zip(&left6) {
            assert_eq!(pair.sides[1].out6(3, 7000 + n, TCP, ACK), Some(*left));
            assert!(pair.sides[1].back6(left.reversed(), TCP, ACK).is_some());
        }
        // And back, with what has begun since.
        let late = tuple(("10.0.0.3", 9000), WORLD);
        let late_left = pair.sides[1].connect(late).unwrap();
        pair.advance(50);
        pair.fail_over(0);
        assert_eq!(pair.sides[0].out(late, TCP, ACK), Some(late_left));
        assert_eq!(pair.sides[0].out(flows[0], TCP, ACK), Some(left[0]));
    }
}

#[test]
fn a_standby_begins_no_session_but_passes_packets_of_those_it_knows() {
    let mut pair = pair(false);
    let flow = tuple(("10.0.0.2", 5000), WORLD);
    let left = pair.sides[0].connect(flow).unwrap();
    pair.advance(20);
    assert_eq!(pair.sides[1].out(tuple(("10.0.0.2", 5001), WORLD), TCP, SYN), None);
    assert_eq!(pair.sides[1].out(tuple(("10.0.0.2", 5001), WORLD), UDP, 0), None);
    assert_eq!(pair.sides[1].out6(3, 5001, TCP, SYN), None);
    let text = "no session begins here, another router forwards";
    assert_eq!(pair.sides[1].router.error("nat44-ed-in2out-slowpath", text), 2);
    assert_eq!(pair.sides[1].router.error("nat64-in2out-slowpath", text), 1);
    assert_eq!(pair.sides[1].out(flow, TCP, ACK), Some(left));
    assert_eq!(pair.sides[1].sessions().len(), 1);
}

#[test]
fn a_session_is_told_of_at_its_second_packet_and_again_when_it_closes_and_ends() {
    let mut pair = pair(false);
    let (once, twice) = (tuple(("10.0.0.2", 53), WORLD), tuple(("10.0.0.2", 54), WORLD));
    pair.sides[0].out(once, UDP, 0).unwrap();
    let left = pair.sides[0].out(twice, UDP, 0).unwrap();
    let left6 = pair.sides[0].out6(3, 55, UDP, 0).unwrap();
    pair.sides[0].back(left.reversed(), UDP, 0).unwrap();
    pair.advance(150);
    // An answer within the same eighth of a second is the end of most.
    pair.sides[0].back6(left6.reversed(), UDP, 0).unwrap();
    pair.advance(50);
    let of = |pair: &Pair| -> Vec<u16> {
        pair.sides[1].sessions().iter().map(|it| it.session.inside.sport).collect()
    };
    assert_eq!(of(&pair), [54], "one packet is none");
    pair.advance(2100);
    assert_eq!(pair.sides[1].nat64().sessions().unwrap().len(), 1);
    let flow = tuple(("10.0.0.2", 5000), WORLD);
    let left = pair.sides[0].connect(flow).unwrap();
    pair.advance(20);
    assert_eq!(
        known(&pair, 1).last().map(|it| it.ends_with("established")),
        Some(true),
        "{:?}",
        known(&pair, 1)
    );
    pair.sides[0].out(flow, TCP, FIN_ACK).unwrap();
    pair.sides[0].back(left.reversed(), TCP, FIN_ACK).unwrap();
    pair.advance(20);
    assert_eq!(known(&pair, 1).last().map(|it| it.ends_with("closing")), Some(true), "{:?}", known(&pair, 1));
    pair.sides[0].nat().clear_sessions().unwrap();
    pair.advance(20);
    assert_eq!(of(&pair), Vec::<u16>::new());
}

#[test]
fn a_session_in_use_does_not_end_on_the_standby_and_one_that_is_not_does() {
    let mut pair = pair(false);
    for side in &pair.sides {
        side.sync().set_timers(shoal_session_sync::Timers { refresh: 20, ..Default::default() }).unwrap();
    }
    let (used, silent) = (tuple(("10.0.0.2", 53), WORLD), tuple(("10.0.0.2", 54), WORLD));
    for flow in [used, silent] {
        let left = pair.sides[0].out(flow, UDP, 0).unwrap();
        pair.sides[0].back(left.reversed(), UDP, 0).unwrap();
    }
    // Three times the timeout of UDP.
    for _ in 0..45 {
        pair.advance(20_000);
        pair.sides[0].out(used, UDP, 0).unwrap();
    }
    let ports: Vec<u16> = pair.sides[1].sessions().iter().map(|it| it.session.inside.sport).collect();
    assert_eq!(ports, [53]);
    pair.fail_over(1);
    assert!(pair.sides[1].out(used, UDP, 0).is_some());
    assert!(pair.sides[0].counter("datagrams-sent-again") < 5);
}

#[test]
fn the_router_that_forwards_answers_for_shared_addresses_and_says_so_when_it_begins() {
    let mut pair = pair(false);
    let shared: std::net::Ipv4Addr = "192.0.2.200".parse().unwrap();
    for side in &pair.sides {
        side.nat().add_addresses((shared, shared), shoal_nat44_ed::Purpose::Pool, None).unwrap();
    }
    let asked = |pair: &mut Pair, at: usize| {
        let side = &mut pair.sides[at];
        let asker: std::net::Ipv4Addr = "192.0.2.5".parse().unwrap();
        let frame = shoal_testkit::PacketBuilder::arp_request(crate::common::FAR, asker, shared).build();
        let port = side.outside.clone();
        side.router.send(&port, frame);
        side.outside
            .received()
            .iter()
            .filter(|frame| frame[12..14] == [8, 6] && frame[20..22] == [0, 2])
            .count()
    };
    assert_eq!((asked(&mut pair, 0), asked(&mut pair, 1)), (1, 0));
    pair.sides[1].sync().set_role(RoleSource::Active).unwrap();
    pair.sides[1].router.run();
    let said = pair.sides[1].outside.received();
    let gratuitous = |frame: &&Vec<u8>| frame[12..14] == [8, 6] && frame[28..32] == [192, 0, 2, 200];
    assert_eq!(said.iter().filter(gratuitous).count(), 1);
    assert_eq!(asked(&mut pair, 1), 1);
    pair.sides[0].sync().set_role(RoleSource::Standby).unwrap();
    assert_eq!(asked(&mut pair, 0), 0);
}

#[test]
fn roles_follow_vrrp_and_interfaces() {
    use shoal_vrrp::{Config, VrKey, Vrrp};
    let mut pair = pair(false);
    let side = &mut pair.sides[1];
    let sync = side.sync();
    let family = shoal_adj::Family::Ip4;
    let group = shoal_redundancy::Group { interface: side.inside.index(), number: 7, family };
    assert!(sync.set_role(RoleSource::Vrrp(group)).is_err(), "there is none");
    let key = VrKey { interface: side.inside.index(), vr_id: 7, family };
    let vrrp = side.router.get::<Vrrp>();
    let config = Config { addresses: vec!["10.0.0.100".parse().unwrap()], ..Config::new(key) };
    let index = vrrp.add(config).unwrap();
    sync.set_role(RoleSource::Vrrp(group)).unwrap();
    assert_eq!(sync.role(), Role::Standby);
    vrrp.start(key).unwrap();
    side.router.advance(std::time::Duration::from_secs(5));
    assert_eq!(sync.role(), Role::Active, "the master of a virtual router");
    vrrp.stop(key).unwrap();
    assert_eq!(sync.role(), Role::Standby);
    vrrp.del(index).unwrap();
    assert_eq!(sync.role(), Role::Standby);
    sync.set_role(RoleSource::Interface(side.outside.index())).unwrap();
    assert_eq!(sync.role(), Role::Active);
    side.router.interfaces().set_admin(side.outside.index(), false).unwrap();
    assert_eq!(sync.role(), Role::Standby);
}

#[test]
fn a_router_that_waits_by_bfd_forwards_when_the_other_is_not_heard_and_not_before_they_can_have_met() {
    use shoal_bfd::{Bfd, Hop, Parameters, SessionKey};
    let mut pair = pair(false);
    let key = |own: u8| SessionKey { hop: Hop::Multi, local: link(false, own), peer: link(false, 3 - own) };
    pair.sides[1].sync().set_role(RoleSource::Bfd(key(2))).unwrap();
    assert_eq!(pair.sides[1].sync().role(), Role::Standby, "they may not have met");
    let parameters = Parameters { desired_min_tx: 20_000, required_min_rx: 20_000, detect_mult: 3 };
    for (side, own) in pair.sides.iter().zip([1, 2]) {
        side.router.get::<Bfd>().add(key(own), parameters, None).unwrap();
    }
    pair.advance(4000);
    assert_eq!(pair.sides[1].router.get::<Bfd>().state_of(key(2)), Some(shoal_bfd::State::Up));
    assert_eq!(pair.sides[1].sync().role(), Role::Standby);
    let flow = tuple(("10.0.0.2", 5000), WORLD);
    let left = pair.sides[0].connect(flow).unwrap();
    pair.advance(20);
    // The first router is silent.
    pair.advance_by(100, &mut |from, frame| if from == 0 { vec![] } else { vec![frame] });
    assert_eq!(pair.sides[1].sync().role(), Role::Active);
    assert_eq!(pair.sides[1].out(flow, TCP, ACK), Some(left));
    // One that has nothing to wait for forwards in the end.
    pair.sides[1].sync().set_role(RoleSource::Standby).unwrap();
    pair.sides[1].sync().set_role(RoleSource::Bfd(SessionKey { peer: link(false, 9), ..key(2) })).unwrap();
    pair.advance(4000);
    assert_eq!(pair.sides[1].sync().role(), Role::Standby);
    pair.advance(3000);
    assert_eq!(pair.sides[1].sync().role(), Role::Active);
}
