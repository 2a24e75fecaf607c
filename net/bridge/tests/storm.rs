//! Limits of what ports bring into a domain, and loops.

use std::time::Duration;

use shoal_bridge::{LoopProtection, Role, Settings, StormClass, StormLimits};
use shoal_l2::{L2, Mode};
use shoal_module::Running;
use shoal_testkit::{Rng, Router, api};

use crate::world::{BD, World, frame, frame_between, run, station};

const ALL: [u8; 6] = [0xff; 6];
const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 9];

fn limits(all: &[(StormClass, u32)]) -> StormLimits {
    all.iter().fold(StormLimits::default(), |limits, (class, n)| limits.with(*class, Some(*n)))
}

/// How many of `n` frames to a destination get from port 0 to port 1.
fn passed(world: &mut World, to: [u8; 6], n: usize) -> usize {
    let port = world.ports[0].clone();
    world.router.send_all(&port, vec![frame_between(station(1), to); n]);
    let got = world.ports[1].received().len();
    world.ports.iter().for_each(|port| drop(port.received()));
    got
}

#[test]
fn each_class_of_a_port_has_a_limit_of_its_own_and_other_ports_have_none() {
    let mut world = World::new(3);
    let port = world.ports[0].index();
    let said = [(StormClass::Broadcast, 10), (StormClass::Multicast, 20), (StormClass::UnknownUnicast, 30)];
    world.bridges.set_storm_limits(port, limits(&said)).unwrap();
    let sent: Vec<usize> =
        [ALL, GROUP, station(9)].into_iter().map(|to| passed(&mut world, to, 100)).collect();
    assert_eq!(sent, [10, 20, 30]);
    let drops = |world: &World| StormClass::ALL.map(|class| world.bridges.storm_drops(port, class));
    assert_eq!(drops(&world), [90, 80, 70]);
    assert_eq!(world.router.error("l2-storm-control", "broadcast"), 90);
    assert_eq!(world.router.error("l2-storm-control", "multicast"), 80);
    assert_eq!(world.router.error("l2-storm-control-unknown", "unknown_unicast"), 70);
    // Half a second later half of it is there again.
    world.router.advance(Duration::from_millis(500));
    assert_eq!(passed(&mut world, ALL, 100), 5);
    // A station that is known is not limited, nor is another port.
    world.send(1, &frame(9, 7));
    assert_eq!(passed(&mut world, station(9), 100), 100);
    let other = world.ports[2].clone();
    world.router.send_all(&other, vec![frame_between(station(2), ALL); 100]);
    assert_eq!(world.ports[1].received().len(), 100);
    world.bridges.set_storm_limits(port, StormLimits::default()).unwrap();
    world.ports.iter().for_each(|port| drop(port.received()));
    assert_eq!(passed(&mut world, ALL, 100), 100);
}

#[test]
fn a_storm_passes_at_the_limit_whatever_comes_when() {
    let mut world = World::new(2);
    let port = world.ports[0].index();
    world.bridges.set_storm_limits(port, limits(&[(StormClass::Broadcast, 1_000)])).unwrap();
    let (mut rng, mut all) = (Rng::new(Rng::seed(44)), 0);
    for _ in 0..200 {
        let burst = 20 + rng.below(60);
        all += passed(&mut world, ALL, burst);
        world.router.advance(Duration::from_millis(25));
    }
    // Five seconds at more than the limit, and the bucket that was full.
    assert!((5_900..=6_000).contains(&all), "{all}");
}

#[test]
fn a_limit_stands_behind_the_features_of_the_arc() {
    let mut world = World::new(2);
    let port = world.ports[0].index();
    world.bridges.set_storm_limits(port, limits(&[(StormClass::Multicast, 2)])).unwrap();
    world.router.trace_add("pg-input", 4);
    assert_eq!(passed(&mut world, GROUP, 4), 2);
    let trace = world.router.trace();
    assert!(
        trace.contains(&format!("l2-storm-control: sw_if_index {port} multicast within its limit")),
        "{trace}"
    );
    assert!(
        trace.contains(&format!("l2-storm-control: sw_if_index {port} multicast beyond its limit")),
        "{trace}"
    );
    // Learned is what passes; questions that are answered here are limited too.
    assert_eq!(world.bridges.learned().learned, 1);
}

#[test]
fn limits_are_for_members_and_go_with_them() {
    let mut world = World::new(2);
    let (a, b) = (world.ports[0].index(), world.ports[1].index());
    let some = limits(&[(StormClass::Broadcast, 0)]);
    world.bridges.set_storm_limits(a, some).unwrap();
    assert_eq!(passed(&mut world, ALL, 5), 0, "0 lets none pass");
    // Another group of the same domain keeps it, another domain does not.
    world.bridges.join(a, BD, 3, Role::Normal).unwrap();
    assert_eq!(world.bridges.storm_limits(a), some);
    world.bridges.create(20, Settings::default()).unwrap();
    world.bridges.join(a, 20, 0, Role::Normal).unwrap();
    assert_eq!(world.bridges.storm_limits(a), StormLimits::default());
    world.bridges.leave(b).unwrap();
    let refused = world.bridges.set_storm_limits(b, some).unwrap_err();
    assert_eq!(refused.to_string(), "pg1 is not a member of a bridge domain");
    world.bridges.join(a, BD, 0, Role::Normal).unwrap();
    world.bridges.join(b, BD, 0, Role::Normal).unwrap();
    assert_eq!(passed(&mut world, ALL, 5), 5);
    world.bridges.set_storm_limits(a, some).unwrap();
    world.router.interfaces().delete(a).unwrap();
    assert!(world.bridges.storm_ports().is_empty());
}

#[test]
fn commands_set_show_and_rebuild_limits() {
    let mut world = World::new(2);
    let set = "set interface l2 storm-control";
    run(&world.router, set, "interface=pg0 broadcast=5").unwrap();
    run(&world.router, set, "interface=pg0 unknown-unicast=7").unwrap();
    assert_eq!(passed(&mut world, ALL, 8), 5);
    let shown = run(&world.router, "show bridge-domain storm-control", "").unwrap();
    let text = shown.to_text();
    assert!(
        text.contains("pg0                            10 broadcast                   5                3\n"),
        "{text}"
    );
    assert!(
        text.contains("pg0                            10 multicast                 off                0\n"),
        "{text}"
    );
    let json = run(&world.router, "show bridge-domain storm-control", "").unwrap().to_json().to_string();
    assert!(json.contains("\"packets_per_second\":5"), "{json}");
    let lines = saved(&world.router);
    assert!(
        lines.contains(&"set interface l2 storm-control pg0 broadcast 5 unknown-unicast 7".into()),
        "{lines:?}"
    );
    assert!(run(&world.router, set, "interface=pg0").is_err(), "no limit is given");
    assert!(run(&world.router, set, "interface=local0 broadcast=5").is_err());
    run(&world.router, set, "interface=pg0 off").unwrap();
    let shown = run(&world.router, "show bridge-domain storm-control", "").unwrap().to_text();
    assert_eq!(shown, "no storm control is configured\n");
}

fn saved(router: &Router) -> Vec<String> {
    let mut running = Running::default();
    (shoal_bridge::MODULE.running)(router.control(), &mut running);
    let all: String = running.pieces().collect();
    all.lines().map(ToOwned::to_owned).collect()
}

/// Lets a station move to and fro between ports 1 and 2, whose home is port 0.
fn moves(world: &mut World, times: usize) {
    for n in 0..times {
        let port = world.ports[1 + n % 2].clone();
        world.router.send(&port, frame(1, 77));
        world.ports.iter().for_each(|port| drop(port.received()));
    }
    world.router.run();
}

#[test]
fn a_station_that_moves_too_often_is_reported_and_its_newer_port_blocked_for_a_while() {
    let mut world = World::new(4);
    let index: Vec<_> = world.ports.iter().map(shoal_testkit::Port::index).collect();
    world.send(0, &frame(1, 77));
    moves(&mut world, 50);
    assert_eq!(world.bridges.loop_state(BD).unwrap().seen, 0, "it is off");
    world.router.advance(Duration::from_secs(5));
    world.send(0, &frame(1, 77));
    let protection = LoopProtection { moves: 5, block: 30 };
    world.bridges.set_loop_protection(BD, Some(protection)).unwrap();
    moves(&mut world, 4);
    assert_eq!(world.bridges.loop_state(BD).unwrap().seen, 0);
    moves(&mut world, 20);
    let state = world.bridges.loop_state(BD).unwrap();
    assert_eq!((state.seen, state.blocks), (1, 1));
    assert_eq!(state.last.unwrap().mac.0, station(1));
    let blocked = *state.blocked.keys().next().unwrap();
    assert!(state.blocked.len() == 1 && [index[1], index[2]].contains(&blocked));
    assert_eq!(world.router.error("l2-learn", "loop_seen"), 1);
    assert!(world.router.error("l2-blocked", "blocked") > 0);
    // Nothing is flooded there, and others go on.
    let open: Vec<usize> = [1, 2, 3].into_iter().filter(|n| index[*n] != blocked).collect();
    assert_eq!(world.send(0, &frame_between(station(5), ALL)), open);
    assert_eq!(world.send(3, &frame(6, 5)), [0]);
    let at = index.iter().position(|port| *port == blocked).unwrap();
    assert_eq!(world.send(at, &frame_between(station(8), ALL)).len(), 0);
    let shown = run(&world.router, "show bridge-domain loops", "").unwrap().to_text();
    assert!(
        shown.contains(
            "Bridge domain 10\n  Loop protection: 5 moves/s, block 30 s\n    loops seen 1, ports blocked 1\n"
        ),
        "{shown}"
    );
    assert!(shown.contains("is blocked, 30 s left\n"), "{shown}");
    let detail = run(&world.router, "show bridge-domain [", "domain=10 detail").unwrap().to_text();
    assert!(detail.contains("Loop protection: 5 moves/s, block 30 s"), "{detail}");
    world.router.advance(Duration::from_secs(29));
    assert_eq!(world.bridges.loop_state(BD).unwrap().blocked.len(), 1);
    world.router.advance(Duration::from_secs(2));
    assert!(world.bridges.loop_state(BD).unwrap().blocked.is_empty());
    assert_eq!(world.send(0, &frame_between(station(5), ALL)), [1, 2, 3]);
    assert_eq!(world.send(at, &frame_between(station(8), ALL)).len(), 3);
}

#[test]
fn the_port_where_a_station_is_at_home_is_never_blocked() {
    let mut world = World::new(3);
    world.bridges.set_loop_protection(BD, Some(LoopProtection { moves: 2, block: 10 })).unwrap();
    world.send(0, &frame(1, 77));
    for _ in 0..20 {
        world.send(1, &frame(1, 77));
        world.send(0, &frame(1, 77));
    }
    let state = world.bridges.loop_state(BD).unwrap();
    assert_eq!(state.blocked.keys().copied().collect::<Vec<_>>(), [world.ports[1].index()]);
}

#[test]
fn blocked_ports_open_when_protection_ends_or_they_leave() {
    let mut world = World::new(4);
    let set = "set bridge-domain loop-protection";
    run(&world.router, set, "domain=10 moves=3 block=1000").unwrap();
    let lines = saved(&world.router);
    assert!(lines.contains(&"set bridge-domain loop-protection 10 moves 3 block 1000".into()), "{lines:?}");
    world.send(0, &frame(1, 77));
    moves(&mut world, 10);
    assert_eq!(world.bridges.loop_state(BD).unwrap().blocked.len(), 1);
    run(&world.router, set, "domain=10 off").unwrap();
    assert!(world.bridges.loop_state(BD).unwrap().blocked.is_empty());
    assert_eq!(world.send(0, &frame_between(station(5), ALL)), [1, 2, 3]);
    // Reported only.
    run(&world.router, set, "domain=10 moves=3").unwrap();
    world.router.advance(Duration::from_secs(5));
    moves(&mut world, 10);
    let state = world.bridges.loop_state(BD).unwrap();
    assert!(state.blocked.is_empty() && state.seen > 1);
    // A port that leaves and comes back is open.
    run(&world.router, set, "domain=10 moves=3 block=1000").unwrap();
    world.router.advance(Duration::from_secs(5));
    moves(&mut world, 10);
    let blocked = *world.bridges.loop_state(BD).unwrap().blocked.keys().next().unwrap();
    world.bridges.leave(blocked).unwrap();
    world.bridges.join(blocked, BD, 0, Role::Normal).unwrap();
    assert_eq!(world.send(0, &frame_between(station(5), ALL)).len(), 3);
    assert!(world.bridges.loop_state(BD).unwrap().blocked.is_empty());
    for (bad, what) in [
        ("moves=0", "nearest 2"),
        ("moves=1", "nearest 2"),
        ("moves=99999", "32767"),
        ("moves=5 block=4000000000", "86400"),
    ] {
        let refused = run(&world.router, set, &format!("domain=10 {bad}")).unwrap_err();
        assert!(format!("{refused:?}").contains(what), "{refused:?}");
    }
}

#[test]
fn many_stations_in_a_loop_block_one_port() {
    let mut world = World::new(4);
    world.bridges.set_loop_protection(BD, Some(LoopProtection { moves: 5, block: 60 })).unwrap();
    for n in 0..6_000_u16 {
        world.send(0, &frame(n, 77));
    }
    for round in 0..8 {
        let port = world.ports[1 + round % 2].clone();
        let burst: Vec<_> = (0..6_000).map(|n| frame(n, 77)).collect();
        for some in burst.chunks(250) {
            world.router.send_all(&port, some);
            world.ports.iter().for_each(|port| drop(port.received()));
        }
    }
    let state = world.bridges.loop_state(BD).unwrap();
    assert_eq!((state.blocked.len(), state.blocks), (1, 1));
}

#[test]
fn own_messages_do_what_commands_do_and_no_bytes_in_them_do_harm() {
    let mut world = World::new(2);
    assert_eq!(api::same_as_vpp(&[&shoal_bridge::api::OWN]).unwrap_or(0), 0);
    api::random_bytes_do_no_harm(&mut world.router, &[&shoal_bridge::api::OWN], 500);
    for port in &world.ports {
        assert!(matches!(world.router.get::<L2>().mode(port.index()), Mode::Bridge(_)));
    }
}
