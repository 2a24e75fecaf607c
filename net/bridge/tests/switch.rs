//! Learning, forwarding, flooding.

use std::time::Duration;

use shoal_bridge::{BridgeError, Provision, Role, Settings, Switch};
use shoal_wire::MacAddress;

use crate::world::{BD, World, frame, frame_between, station};

const ALL: [u8; 6] = [0xff; 6];

#[test]
fn an_unknown_station_is_flooded_for_and_a_known_one_is_not() {
    let mut world = World::new(3);
    assert_eq!(world.send(0, &frame(1, 2)), [1, 2]);
    assert_eq!(world.send(1, &frame(2, 1)), [0], "the answer finds its way at once");
    assert_eq!(world.send(0, &frame(1, 2)), [1]);
    assert_eq!(world.send(2, &frame_between(station(3), ALL)), [0, 1], "everybody gets what is for all");
    assert_eq!(world.bridges.learned().learned, 3);
    assert_eq!(world.router.error("l2-learn", "L2 learn misses"), 3);
}

#[test]
fn sources_of_a_whole_frame_are_learned_before_its_first_packet_is_forwarded() {
    let mut world = World::new(3);
    let (a, b) = (world.ports[0].clone(), world.ports[1].clone());
    // In one burst, the first packet is for a station that sends the second one.
    let burst = [frame(1, 2), frame(2, 1)];
    let injected = [(&a, &burst[0]), (&b, &burst[1])];
    for (port, frame) in injected {
        world.router.inject("ethernet-input", port.index(), frame);
    }
    world.router.run();
    assert_eq!(world.ports[2].received().len(), 0);
    assert_eq!(
        (world.ports[0].received_one(), world.ports[1].received_one()),
        (burst[1].clone(), burst[0].clone())
    );
}

#[test]
fn a_station_moves_and_frames_back_to_its_own_port_are_dropped() {
    let mut world = World::new(3);
    world.send(0, &frame(1, 9));
    assert_eq!(world.send(2, &frame(1, 9)), [0, 1]);
    assert_eq!(world.router.error("l2-learn", "L2 mac moves"), 1);
    assert_eq!(world.send(1, &frame(2, 1)), [2]);
    assert_eq!(world.send(2, &frame(3, 1)), Vec::<usize>::new());
    assert_eq!(world.router.error("l2-fwd", "Reflection Drop"), 1);
    assert_eq!(world.bridges.learned().learned, 3);
}

#[test]
fn split_horizon_groups_part_their_members() {
    let mut world = World::new(4);
    for n in [1, 2] {
        world.bridges.join(world.ports[n].index(), BD, 7, Role::Normal).unwrap();
    }
    assert_eq!(world.send(1, &frame(1, 99)), [0, 3]);
    assert_eq!(world.send(0, &frame(2, 99)), [1, 2, 3]);
    // Also when the station is known.
    assert_eq!(world.send(2, &frame(3, 1)), Vec::<usize>::new());
    assert_eq!(world.router.error("l2-output", "L2 split horizon drops"), 1);
}

#[test]
fn what_is_switched_off_is_not_done() {
    let mut world = World::new(3);
    let set = |world: &World, switch, on| world.bridges.switch(BD, switch, on).unwrap();
    set(&world, Switch::Learn, false);
    world.send(0, &frame(1, 2));
    assert_eq!(world.bridges.learned().learned, 0);
    set(&world, Switch::Learn, true);
    world.send(0, &frame(1, 2));
    set(&world, Switch::UnknownFlood, false);
    assert_eq!(world.send(0, &frame(1, 2)), Vec::<usize>::new());
    assert_eq!(world.send(0, &frame_between(station(1), ALL)), [1, 2]);
    set(&world, Switch::Flood, false);
    assert_eq!(world.send(0, &frame_between(station(1), ALL)), Vec::<usize>::new());
    assert_eq!(world.send(1, &frame(2, 1)), [0]);
    set(&world, Switch::Forward, false);
    set(&world, Switch::UnknownFlood, true);
    assert_eq!(world.send(1, &frame(2, 1)), [0, 2]);
}

#[test]
fn one_interface_gets_what_is_for_unknown_stations_and_nothing_is_flooded_to_it() {
    let mut world = World::new(4);
    world.bridges.join(world.ports[3].index(), BD, 0, Role::UnknownForward).unwrap();
    assert_eq!(world.send(0, &frame(1, 2)), [3]);
    assert_eq!(world.send(0, &frame_between(station(1), ALL)), [1, 2]);
    world.bridges.switch(BD, Switch::ArpForward, true).unwrap();
    let mut request = frame_between(station(1), ALL);
    request[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(world.send(0, &request), [3], "ARP too");
    world.bridges.leave(world.ports[3].index()).unwrap();
    assert_eq!(world.send(0, &frame(1, 2)), [1, 2]);
}

#[test]
fn stations_that_an_operator_enters_stay_where_they_are_or_are_dropped() {
    let mut world = World::new(3);
    let enter = |world: &World, n: u16, port: usize, how| {
        let mac = MacAddress(station(n));
        world.bridges.provision(mac, BD, world.ports[port].index(), how).unwrap();
    };
    enter(&world, 1, 1, Provision::Static);
    assert_eq!(world.send(0, &frame(5, 1)), [1]);
    assert_eq!(world.send(2, &frame(1, 5)), Vec::<usize>::new());
    assert_eq!(world.router.error("l2-learn", "L2 mac move violations"), 1);
    enter(&world, 2, 0, Provision::Filter);
    assert_eq!(world.send(0, &frame(2, 5)), Vec::<usize>::new());
    assert_eq!(world.send(0, &frame(6, 2)), Vec::<usize>::new());
    assert_eq!(world.router.error("l2-learn", "L2 filter mac drops"), 1);
    assert_eq!(world.router.error("l2-fwd", "Filter Mac Drop"), 1);
    enter(&world, 3, 1, Provision::Movable);
    let before = world.bridges.learned().learned;
    assert_eq!(world.send(2, &frame(3, 1)), [1]);
    assert_eq!(world.bridges.learned().learned, before + 1, "it is learned now");
    world.bridges.forget(MacAddress(station(1)), BD).unwrap();
    assert_eq!(world.bridges.forget(MacAddress(station(1)), BD), Err(BridgeError::NoStation));
}

#[test]
fn a_domain_without_a_limit_of_its_own_has_the_default() {
    let world = World::new(2);
    let index = world.bridges.index_of(BD).unwrap();
    let limit = || world.bridges.table().count(index).limit;
    world.bridges.set_default_learn_limit(20);
    assert_eq!((limit(), world.bridges.learn_limit(BD)), (20, Ok(None)));
    world.bridges.set_learn_limit(BD, Some(20)).unwrap();
    world.bridges.set_default_learn_limit(30);
    assert_eq!((limit(), world.bridges.learn_limit(BD)), (20, Ok(Some(20))));
    world.bridges.set_learn_limit(BD, None).unwrap();
    assert_eq!((limit(), world.bridges.learn_limit(BD)), (30, Ok(None)));
}

#[test]
fn limits_end_learning_and_forwarding_goes_on() {
    let mut world = World::new(2);
    world.bridges.set_learn_limit(BD, Some(10)).unwrap();
    for n in 0..200 {
        assert_eq!(world.send(0, &frame(n, 9_999)), [1]);
    }
    assert_eq!(world.bridges.learned().learned, 10);
    assert_eq!(world.router.error("l2-learn", "L2 not learned due to limit"), 190);
    assert_eq!(world.send(1, &frame(9_999, 3)), [0]);
    world.bridges.clear_macs();
    assert_eq!((world.bridges.learned().learned, world.bridges.table().macs().len()), (0, 0));
    world.bridges.set_learn_limit_of_all(3);
    for n in 0..20 {
        world.send(0, &frame(n, 9_999));
    }
    assert_eq!(world.bridges.learned().learned, 3);
}

#[test]
fn silent_stations_are_forgotten_and_those_that_speak_are_not() {
    let mut world = World::new(2);
    world.bridges.set_age(BD, 3).unwrap();
    world.send(0, &frame(1, 2));
    world.send(0, &frame(2, 1));
    world.bridges.provision(MacAddress(station(3)), BD, world.ports[0].index(), Provision::Movable).unwrap();
    for _ in 0..5 {
        world.router.advance(Duration::from_mins(1));
        world.send(0, &frame(1, 9));
    }
    let there = |n| world.bridges.station(MacAddress(station(n)), BD).is_some();
    assert_eq!([1, 2, 3].map(there), [true, false, true]);
    assert_eq!(world.bridges.learned().learned, 1);
}

#[test]
fn a_flush_makes_what_was_learned_untrue_at_once_and_forgets_it_soon() {
    let mut world = World::new(3);
    world.send(0, &frame(1, 9));
    world.send(1, &frame(2, 9));
    assert_eq!(world.send(2, &frame(3, 1)), [0]);
    let first = world.ports[0].index();
    world.bridges.flush_interface(first);
    world.router.inject("ethernet-input", world.ports[2].index(), &frame(3, 1));
    world.router.run();
    assert_eq!(world.sent(&frame(3, 1)), [0, 1]);
    assert_eq!(world.send(2, &frame(3, 2)), [1], "others are known");
    assert_eq!(world.bridges.learned().learned, 2);
    world.bridges.flush_domain(BD).unwrap();
    world.router.run();
    assert_eq!((world.bridges.learned().learned, world.bridges.table().macs().len()), (0, 0));
    // Down is a flush.
    world.send(0, &frame(1, 9));
    world.router.interfaces().set_admin(first, false).unwrap();
    world.router.run();
    assert_eq!(world.bridges.learned().learned, 0);
}

#[test]
fn a_domain_is_created_used_and_deleted_as_vpp_does() {
    let mut world = World::new(2);
    let create = |number, tag: &str| {
        let mut settings = Settings::default();
        settings.tag = tag.into();
        world.bridges.create(number, settings)
    };
    assert_eq!(create(BD, ""), Err(BridgeError::Exists(BD)));
    assert_eq!(create(0, ""), Err(BridgeError::Default));
    assert_eq!(create(1 << 24, ""), Err(BridgeError::TooLarge(1 << 24)));
    assert_eq!(create(20, &"x".repeat(64)), Err(BridgeError::LongTag(64)));
    create((1 << 24) - 1, "a tag").unwrap();
    assert_eq!(world.bridges.delete(BD), Err(BridgeError::InUse));
    assert_eq!(world.bridges.delete(99), Err(BridgeError::NoDomain(99)));
    world.send(0, &frame(1, 2));
    for port in &world.ports {
        world.bridges.leave(port.index()).unwrap();
    }
    world.bridges.delete(BD).unwrap();
    world.router.run();
    assert_eq!(world.bridges.table().macs().len(), 0);
    // An interface that is deleted leaves its domain.
    world.bridges.create(BD, Settings::default()).unwrap();
    let port = world.ports[0].index();
    world.bridges.join(port, BD, 0, Role::Normal).unwrap();
    world.router.interfaces().delete(port).unwrap();
    assert!(world.bridges.members(BD).unwrap().is_empty());
    world.bridges.delete(BD).unwrap();
}

#[test]
fn a_frame_for_many_members_reaches_all_though_one_call_makes_a_thousand_copies() {
    let mut world = World::new(12);
    let frames: Vec<Vec<u8>> = (0..250).map(|n| frame(n, 9_999)).collect();
    let port = world.ports[0].clone();
    world.router.send_all(&port, &frames);
    for port in &world.ports[1..] {
        assert_eq!(port.received(), frames);
    }
}

#[test]
fn a_domain_that_is_not_there_is_created_by_its_first_member_or_not_at_all() {
    let world = World::new(2);
    let port = world.ports[0].index();
    let bridges = &world.bridges;
    bridges.join_or_create(port, 77, 0, Role::Normal).unwrap();
    assert_eq!((bridges.numbers(), bridges.members(77).unwrap().len()), (vec![BD, 77], 1));
    // Neither a number that is too large nor an interface that is not there leaves a domain behind.
    assert!(bridges.join_or_create(port, 1 << 24, 0, Role::Normal).is_err());
    assert!(bridges.join_or_create(shoal_interface::SwIfIndex(4000), 78, 0, Role::Normal).is_err());
    assert_eq!((bridges.numbers(), bridges.members(77).unwrap().len()), (vec![BD, 77], 1));
}

#[test]
fn interfaces_are_listed_with_their_features_and_where_they_belong() {
    use shoal_interface::SwitchedFeature;
    use shoal_l2::{INPUT_ARC, L2, Mode, OUTPUT_ARC};
    let world = World::new(3);
    let interfaces = world.router.interfaces();
    let [a, b, c] = [0, 1, 2].map(|n| world.ports[n].index());
    let listed = |arc, index| -> Vec<String> {
        let all: Vec<SwitchedFeature> = interfaces.switched_features(arc, index);
        all.iter().map(|feature| format!("{} ({})", feature.name, feature.node)).collect()
    };
    let of_member = ["LEARN (l2-learn)", "FWD (l2-fwd)", "UU_FLOOD (l2-flood)", "FLOOD (l2-flood)"];
    assert_eq!(listed(INPUT_ARC, a), of_member);
    assert_eq!(listed(OUTPUT_ARC, a), ["OUTPUT (interface-output)"]);
    world.bridges.join(b, BD, 3, Role::Normal).unwrap();
    assert_eq!(interfaces.addresses(b), [format!("L2 bridge bd-id {BD} idx 1 shg 3")]);
    let l2 = world.router.get::<L2>();
    l2.set_mode(b, Mode::Xconnect(c)).unwrap();
    assert_eq!(listed(INPUT_ARC, b), ["XCONNECT (l2-output)"]);
    assert_eq!(interfaces.addresses(b), ["L2 xconnect pg2"]);
    l2.set_mode(b, Mode::L3).unwrap();
    assert!(listed(INPUT_ARC, b).is_empty() && listed(OUTPUT_ARC, b).is_empty());
    assert!(interfaces.addresses(b).is_empty());
}
