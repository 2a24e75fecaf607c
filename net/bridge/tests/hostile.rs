//! What must do no harm: floods of addresses, frames that are cut short, loops, members that go under traffic, messages.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use shoal_bridge::{LoopProtection, MacNews, Role, Settings};
use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_l2::{L2, Mode, TagOp, TagRewrite};
use shoal_testkit::Rng;
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};

use crate::world::{BD, World, frame, frame_between, station};

#[test]
fn a_flood_of_addresses_ends_learning_and_known_stations_are_served() {
    let mut world = World::new(3);
    world.bridges.set_learn_limit_of_all(5_000);
    world.send(1, &frame(2, 1));
    world.send(0, &frame(1, 2));
    let mut rng = Rng::new(Rng::seed(3));
    let port = world.ports[2].clone();
    for _ in 0..40 {
        let burst: Vec<Vec<u8>> = (0..250)
            .map(|_| {
                let mut source: [u8; 6] = rng.bytes(6).try_into().unwrap();
                source[0] &= 0xfe;
                frame_between(source, station(1))
            })
            .collect();
        world.router.send_all(&port, &burst);
        assert_eq!(world.ports[0].received().len(), 250, "they are forwarded");
        assert!(world.ports[1].received().is_empty());
    }
    assert_eq!(world.bridges.learned().learned, 5_000);
    assert_eq!(world.router.error("l2-learn", "L2 not learned due to limit"), 40 * 250 - 4_998);
    assert_eq!(world.send(0, &frame(1, 2)), [1]);
}

#[test]
fn no_bytes_whatever_their_length_do_harm() {
    let mut world = World::new(3);
    let interfaces = world.router.interfaces().clone();
    let bvi = interfaces.create_bvi(None, None).unwrap();
    interfaces.set_admin(bvi, true).unwrap();
    world.bridges.join(bvi, BD, 0, Role::Bvi).unwrap();
    world.bridges.switch(BD, shoal_bridge::Switch::ArpTerm, true).unwrap();
    let mac = interfaces.data(bvi).unwrap().mac().0;
    let mut rng = Rng::new(Rng::seed(4));
    for _ in 0..3_000 {
        let length = rng.below(120);
        let mut bytes = rng.bytes(length);
        // Often something that is looked into.
        let kinds: [[u8; 2]; 5] = [[8, 6], [0x86, 0xdd], [8, 0], [0x81, 0], [0x88, 0xa8]];
        let dst = *rng.pick(&[mac, [0xff; 6], station(1), [0x33, 0x33, 0, 0, 0, 1]]);
        for (to, from) in bytes.iter_mut().zip(dst) {
            *to = from;
        }
        if bytes.len() > 20 {
            let kind = *rng.pick(&kinds);
            bytes[12..14].copy_from_slice(&kind);
        }
        let port = world.ports[rng.below(3)].clone();
        world.router.send(&port, &bytes);
        world.ports.iter().for_each(|port| drop(port.received()));
    }
}

#[test]
fn frames_do_not_go_round_loopbacks_for_ever() {
    let mut world = World::new(2);
    let interfaces = world.router.interfaces().clone();
    for n in 0..4 {
        let loopback = interfaces.create_loopback(None, None).unwrap();
        interfaces.set_admin(loopback, true).unwrap();
        world.bridges.join(loopback, BD, 0, Role::Normal).unwrap();
        assert_eq!(interfaces.name(loopback).unwrap(), format!("loop{n}"));
    }
    let port = world.ports[0].clone();
    for to in [station(9), [0xff; 6]] {
        world.router.send(&port, frame_between(station(1), to));
    }
    assert!(world.ports[1].received().len() < 100);
    assert!(world.router.error("loop0-tx", "looped") > 0);
    // Two that are connected with each other.
    let l2 = world.router.get::<L2>();
    let [a, b] = ["loop0", "loop1"].map(|name| interfaces.by_name(name).unwrap());
    l2.set_mode(a, Mode::Xconnect(b)).unwrap();
    l2.set_mode(b, Mode::Xconnect(a)).unwrap();
    l2.set_mode(port.index(), Mode::Xconnect(a)).unwrap();
    world.router.send(&port, frame(1, 2));
}

#[test]
fn members_come_and_go_under_traffic() {
    let mut world = World::new(4);
    world.bridges.create(20, Settings::default()).unwrap();
    let mut rng = Rng::new(Rng::seed(5));
    for _ in 0..1_500 {
        let port = world.ports[rng.below(4)].clone();
        match rng.below(12) {
            0 => world.bridges.leave(port.index()).unwrap(),
            1 => world.bridges.join(port.index(), 20, rng.below(3) as u8, Role::Normal).unwrap(),
            2 => world.bridges.flush_all(),
            3 => world.bridges.clear_macs(),
            4 => world.bridges.join(port.index(), BD, 0, Role::UnknownForward).unwrap(),
            _ => world.bridges.join(port.index(), BD, 0, Role::Normal).unwrap(),
        }
        let from = rng.below(4);
        for _ in 0..4 {
            let packet = frame(rng.below(20) as u16, rng.below(20) as u16);
            world.router.inject("ethernet-input", world.ports[from].index(), &packet);
        }
        world.router.run();
        world.ports.iter().for_each(|port| drop(port.received()));
    }
    for number in world.bridges.numbers() {
        for member in world.bridges.members(number).unwrap() {
            assert!(matches!(world.router.get::<L2>().mode(member.interface), Mode::Bridge(_)));
        }
    }
    for port in &world.ports {
        world.router.interfaces().delete(port.index()).unwrap();
    }
    world.router.run();
    assert_eq!((world.bridges.table().macs().len(), world.bridges.learned().learned), (0, 0));
    for number in world.bridges.numbers() {
        world.bridges.delete(number).unwrap();
    }
}

#[test]
fn messages_are_vpps_and_no_bytes_in_them_do_harm() {
    same_as_vpp(&[&shoal_bridge::api::API]);
    let mut world = World::new(2);
    random_bytes_do_no_harm(&mut world.router, &[&shoal_bridge::api::API], 300);
    let interfaces = world.router.interfaces().clone();
    for index in interfaces.indices() {
        if world.ports.iter().all(|port| port.index() != index) && index.0 != 0 {
            let _ = interfaces.delete(index);
        }
    }
}

#[test]
fn clients_hear_of_no_more_stations_than_may_be_learned() {
    let mut world = World::new(3);
    world.bridges.set_learn_limit(BD, Some(700)).unwrap();
    let heard = Rc::new(Cell::new(0_usize));
    let hears = Rc::clone(&heard);
    world.bridges.report(Some(Rc::new(move |news: &[MacNews]| hears.set(hears.get() + news.len()))));
    world.send(1, &frame(1, 9));
    for n in 0..40_u16 {
        let port = world.ports[2].clone();
        let burst: Vec<_> = (0..200).map(|k| frame(1_000 + n * 200 + k, 1)).collect();
        world.router.send_all(&port, &burst);
        assert_eq!(world.ports[1].received().len(), 200, "they are forwarded");
        world.router.advance(Duration::from_millis(100));
    }
    world.router.advance(Duration::from_secs(1));
    assert_eq!((heard.get(), world.bridges.learned().learned), (700, 700));
}

#[test]
fn the_routers_own_addresses_as_sources_take_nothing_and_block_nothing() {
    let mut world = World::new(3);
    let interfaces = world.router.interfaces().clone();
    let bvi = interfaces.create_bvi(None, None).unwrap();
    interfaces.set_admin(bvi, true).unwrap();
    world.bridges.join(bvi, BD, 0, Role::Bvi).unwrap();
    let protection = LoopProtection { moves: 2, block: 100 };
    world.bridges.set_loop_protection(BD, Some(protection)).unwrap();
    let mac = interfaces.data(bvi).unwrap().mac().0;
    for n in 0..300 {
        let port = world.ports[n % 3].clone();
        world.router.send(&port, frame_between(mac, [0xff; 6]));
        world.router.send(&port, frame_between(mac, mac));
    }
    assert_eq!(world.router.error("l2-learn", "mac_move_violate"), 600);
    assert!(world.ports.iter().all(|port| port.received().is_empty()));
    let state = world.bridges.loop_state(BD).unwrap();
    assert_eq!((state.seen, state.blocked.len()), (0, 0));
    // A port's own address is a station's like any other.
    let own = world.ports[1].mac().0;
    world.send(0, &frame_between(own, [0xff; 6]));
    assert_eq!(world.send(2, &frame_between(station(5), own)), [0]);
}

#[test]
fn runts_and_stacks_of_tags_are_no_trouble_for_any_rewrite() {
    let mut rng = Rng::new(Rng::seed(17));
    for op in TagOp::ALL {
        let mut world = World::new(2);
        let port = world.ports[1].index();
        let vid = |n| Vid::new(n).unwrap();
        let takes = Match::Tags { kind: TagKind::Dot1q, outer: vid(5), inner: Inner::Any, exact: Exact::No };
        let sub = world.router.get::<Ethernet>().create_sub(port, 5, takes).unwrap();
        world.router.interfaces().set_admin(sub, true).unwrap();
        world.bridges.join(sub, BD, 0, Role::Normal).unwrap();
        let l2 = world.router.get::<L2>();
        l2.set_tags(sub, TagRewrite { op, kind: TagKind::Dot1ad, ids: [vid(7), vid(8)] }).unwrap();
        for _ in 0..300 {
            let depth = rng.below(40);
            let mut bytes = frame_between(station(1), *rng.pick(&[station(2), [0xff; 6], station(1)]));
            let tags: Vec<u8> = [0x81, 0, 0, 5].repeat(depth);
            bytes.splice(12..12, tags);
            bytes.truncate(rng.below(bytes.len() + 1));
            let from = world.ports[rng.below(2)].clone();
            world.router.send(&from, &bytes);
            world.ports.iter().for_each(|port| drop(port.received()));
        }
        assert_eq!(world.router.buffers_in_use(), 0, "{op:?}");
    }
}

#[test]
fn all_vlans_of_a_port_flap_in_a_bridge_under_traffic() {
    let mut world = World::new(2);
    let port = world.ports[1].clone();
    let ethernet = world.router.get::<Ethernet>();
    let interfaces = world.router.interfaces().clone();
    let takes = |id: u16| Match::exact_dot1q(Vid::new(id).unwrap());
    let join = |world: &World, id: u16| {
        let sub = ethernet.create_sub(port.index(), u32::from(id), takes(id)).unwrap();
        interfaces.set_admin(sub, true).unwrap();
        world.bridges.join(sub, BD, 1, Role::Normal).unwrap();
        sub
    };
    let mut subs: Vec<_> = (1..=4094).map(|id| join(&world, id)).collect();
    let mut rng = Rng::new(Rng::seed(19));
    for _ in 0..300 {
        let at = rng.below(subs.len());
        ethernet.delete_sub(subs[at]).unwrap();
        let id = at as u16 + 1;
        let mut tagged = frame(id, 9_999);
        tagged.splice(12..12, [0x81, 0, (id >> 8) as u8, id as u8]);
        world.router.inject("ethernet-input", port.index(), &tagged);
        subs[at] = join(&world, id);
        world.router.inject("ethernet-input", port.index(), &tagged);
        world.router.run();
        world.ports.iter().for_each(|port| drop(port.received()));
    }
    // One flood reaches all.
    let first = world.ports[0].clone();
    world.router.send(&first, frame_between(station(1), [0xff; 6]));
    world.router.run();
    assert_eq!(port.received().len(), 4_095);
    for sub in subs {
        ethernet.delete_sub(sub).unwrap();
    }
    world.router.run();
    assert_eq!(world.bridges.members(BD).unwrap().len(), 2);
    assert_eq!(world.router.buffers_in_use(), 0);
}
