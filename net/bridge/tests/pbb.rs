//! The header of a provider's bridge (IEEE 802.1ah), on bytes; in and out.

use shoal_bridge::Role;
use shoal_ethernet::Vid;
use shoal_l2::{L2, Mode, PbbOp, PbbRewrite, ServiceId, TagOp, TagRewrite};
use shoal_message::Retval;
use shoal_testkit::{ApiAsker, Rng};
use shoal_wire::MacAddress;

use crate::world::{World, frame, run, station};

const DST: [u8; 6] = [2, 0xdd, 0, 0, 0, 1];
const SRC: [u8; 6] = [2, 0xdd, 0, 0, 0, 2];
/// Above the 20 bits that VPP keeps of it.
const SERVICE: u32 = 0x12_34_56;

fn vid(n: u16) -> Vid {
    Vid::new(n).unwrap()
}

fn rewrite(op: PbbOp) -> PbbRewrite {
    let service = ServiceId::new(SERVICE).unwrap();
    PbbRewrite { op, dst: MacAddress(DST), src: MacAddress(SRC), vlan: vid(0x345), service }
}

/// A customer's frame with the header: IEEE 802.1ah 9.7 and 9.8.
fn wrapped(plain: &[u8]) -> Vec<u8> {
    [&DST[..], &SRC, &[0x88, 0xa8, 3, 0x45], &[0x88, 0xe7, 0, 0x12, 0x34, 0x56], plain].concat()
}

fn tagged(plain: &[u8], tag: [u8; 4]) -> Vec<u8> {
    [&plain[..12], &tag, &plain[12..]].concat()
}

/// Ports 0 and 1 are cross-connected, port 1 does `op`.
fn crossed(op: PbbOp) -> World {
    let world = World::new(2);
    let l2 = world.router.get::<L2>();
    let [a, b] = [0, 1].map(|n: usize| world.ports[n].index());
    l2.set_mode(a, Mode::Xconnect(b)).unwrap();
    l2.set_mode(b, Mode::Xconnect(a)).unwrap();
    l2.set_pbb(b, rewrite(op)).unwrap();
    world
}

fn pass(world: &mut World, from: usize, sent: &[u8]) -> Vec<Vec<u8>> {
    let port = world.ports[from].clone();
    world.router.send(&port, sent);
    world.ports[1 - from].received()
}

#[test]
fn each_operation_does_to_the_header_what_it_says_and_the_other_way_round() {
    let plain = frame(1, 2);
    let stag = tagged(&plain, [0x88, 0xa8, 0, 9]);
    let operations = [
        (PbbOp::Pop, wrapped(&plain), plain.clone()),
        (PbbOp::Push, plain.clone(), wrapped(&plain)),
        (PbbOp::Translate(vid(9)), wrapped(&plain), stag),
        (PbbOp::Disabled, wrapped(&plain), wrapped(&plain)),
    ];
    for (op, outside, inside) in operations {
        let mut world = crossed(op);
        assert_eq!(pass(&mut world, 1, &outside), [&inside[..]], "{op:?}, in");
        assert_eq!(pass(&mut world, 0, &inside), [&outside[..]], "{op:?}, out");
    }
}

#[test]
fn frames_of_other_services_are_dropped_and_counted_whatever_their_priority() {
    let plain = frame(1, 2);
    let own = wrapped(&plain);
    let changed = |at: usize, by: u8| {
        let mut other = own.clone();
        other[at] ^= by;
        other
    };
    let mut world = crossed(PbbOp::Pop);
    // Types, the VLAN, the service; a header that is cut short, and one with nothing behind it.
    let mut others: Vec<Vec<u8>> = [12, 13, 15, 16, 17, 19, 20, 21].map(|at| changed(at, 1)).to_vec();
    others.push(changed(14, 8));
    others.extend([18, 21, 22, 35].map(|length: usize| own[..length].to_vec()));
    others.push(plain.clone());
    for (count, other) in others.iter().enumerate() {
        assert!(pass(&mut world, 1, other).is_empty(), "{other:02x?}");
        let dropped = world.router.error("l2-input-vtr", "L2 input tag rewrite drops");
        assert_eq!(dropped, 1 + count as u64);
    }
    for own in [changed(14, 0xe0), changed(18, 0xf0), changed(0, 0x10)] {
        assert_eq!(pass(&mut world, 1, &own), [&plain[..]]);
    }
    let mut world = crossed(PbbOp::Push);
    assert!(pass(&mut world, 0, &changed(21, 1)).is_empty());
    let mut translating = crossed(PbbOp::Translate(vid(9)));
    for other in [&plain, &tagged(&plain, [0x88, 0xa8, 0, 8]), &tagged(&plain, [0x81, 0, 0, 9])] {
        assert!(pass(&mut translating, 0, other).is_empty());
    }
    let dropped = |world: &World| world.router.error("l2-output", "L2 output tag rewrite drops");
    assert_eq!((dropped(&world), dropped(&translating)), (1, 3));
}

#[test]
fn vlan_tags_are_rewritten_inside_the_header() {
    let mut world = crossed(PbbOp::Push);
    let push = TagRewrite { op: TagOp::Push1, ids: [vid(7), vid(0)], ..TagRewrite::none() };
    world.router.get::<L2>().set_tags(world.ports[1].index(), push).unwrap();
    let plain = frame(1, 2);
    let inside = wrapped(&tagged(&plain, [0x81, 0, 0, 7]));
    assert_eq!(pass(&mut world, 1, &plain), [&inside[..]]);
    assert_eq!(pass(&mut world, 0, &inside), [&plain[..]]);
}

#[test]
fn a_bridge_s_port_to_the_provider_wraps_what_is_flooded_to_it_and_learns_customers_stations() {
    let mut world = World::new(3);
    let provider = world.ports[2].clone();
    world.router.get::<L2>().set_pbb(provider.index(), rewrite(PbbOp::Pop)).unwrap();
    let mut plain = frame(1, 2);
    // Long enough to be shared.
    plain.resize(1_400, 0x5a);
    let (a, b) = (world.ports[0].clone(), world.ports[1].clone());
    world.router.send(&a, &plain);
    assert_eq!((b.received_one(), provider.received_one()), (plain.clone(), wrapped(&plain)));
    let answer = frame(2, 1);
    world.router.send(&provider, wrapped(&answer));
    assert_eq!((a.received_one(), b.received().len()), (answer, 0));
    // The customer's station is known now, by way of the provider.
    world.router.send(&a, &plain);
    assert_eq!((b.received().len(), provider.received_one()), (0, wrapped(&plain)));
    world.router.get::<L2>().set_mode(provider.index(), Mode::L3).unwrap();
    assert!(!world.router.get::<L2>().pbb(provider.index()).is_some(), "as VLAN tags");
    world.bridges.join(provider.index(), crate::world::BD, 0, Role::Normal).unwrap();
    let unknown = frame(1, 9);
    assert_eq!(world.send(0, &unknown), [1, 2]);
    assert_eq!(station(1)[..], unknown[6..12]);
}

#[test]
fn no_bytes_whatever_their_length_do_harm() {
    for op in [PbbOp::Pop, PbbOp::Push, PbbOp::Translate(vid(9))] {
        let mut world = crossed(op);
        let mut rng = Rng::new(Rng::seed(7));
        let own = wrapped(&frame(1, 2));
        for _ in 0..500 {
            let mut bytes = own.clone();
            bytes.truncate(rng.below(own.len() + 1));
            if let Some(length) = bytes.len().checked_sub(1) {
                bytes[rng.below(length + 1)] ^= rng.bytes(1)[0];
            }
            pass(&mut world, 0, &bytes);
            pass(&mut world, 1, &bytes);
        }
    }
}

fn fields(interface: u32, op: u32, outer: u16, vlan: u16, service: u32) -> Vec<u8> {
    let (interface, op) = (interface.to_be_bytes(), op.to_be_bytes());
    let (outer, vlan, service) = (outer.to_be_bytes(), vlan.to_be_bytes(), service.to_be_bytes());
    [&interface[..], &op, &outer, &DST, &SRC, &vlan, &service].concat()
}

#[test]
fn the_message_is_answered_as_vpp_does_and_told_of_interfaces() {
    let world = World::new(1);
    let parts: Vec<_> = shoal_l2::MODULE.api.iter().chain(shoal_interface::MODULE.api).copied().collect();
    let asker = ApiAsker::new(world.router.control(), &parts);
    let set = |bytes: &[u8]| asker.retval("l2_interface_pbb_tag_rewrite", bytes);
    let index = world.ports[0].index().0;
    assert_eq!(set(&fields(99, 2, 0, 5, 7)), Retval::INVALID_SW_IF_INDEX);
    assert_eq!(set(&fields(0, 2, 0, 5, 7)), Retval::INVALID_INTERFACE, "local0 has no Ethernet header");
    for op in [1, 3, 5, 6, 8, u32::MAX] {
        assert_eq!(set(&fields(index, op, 0, 5, 7)), Retval::INVALID_VALUE, "{op}");
    }
    assert_eq!(set(&fields(index, 2, 0, 4096, 7)), Retval::INVALID_VLAN);
    assert_eq!(set(&fields(index, 7, 4096, 5, 7)), Retval::INVALID_VLAN);
    assert_eq!(set(&fields(index, 2, 0, 5, 1 << 24)), Retval::INVALID_VALUE);
    let l2 = world.router.get::<L2>();
    assert!(!l2.pbb(world.ports[0].index()).is_some());
    assert_eq!(set(&fields(index, 7, 9, 0x345, SERVICE)), Retval(0));
    assert_eq!(l2.pbb(world.ports[0].index()), rewrite(PbbOp::Translate(vid(9))));
    let dumped = || {
        let all = [&index.to_be_bytes()[..], &[0], &[0; 4]].concat();
        asker.ask("sw_interface_dump", &all).remove(0)
    };
    let told = [&[0, 9][..], &DST, &SRC, &[3, 0x45], &SERVICE.to_be_bytes()].concat();
    let has = |details: &[u8]| details.windows(told.len()).any(|part| part == told);
    assert!(has(&dumped()));
    assert_eq!(set(&fields(index, 0, 9, 4096, u32::MAX)), Retval(0), "what is switched off is not looked at");
    assert!(!has(&dumped()));
}

#[test]
fn lines_are_refused_with_what_is_missing_and_shown() {
    let world = World::new(1);
    let l2 = world.router.get::<L2>();
    let port = world.ports[0].index();
    let line = |words: &str| {
        let words = format!("interface=pg0 {words}");
        run(&world.router, "set interface l2 pbb-tag-rewrite", &words).map_err(|e| e.to_string())
    };
    let macs = "dmac=02:dd:00:00:00:01 smac=02:dd:00:00:00:02";
    let expecting = "expecting dmac <address> smac <address> s_id <nn> [b_vlanid <nn>]";
    let stag = |stag: u16, more: &str| format!("translate_pbb_stag outer_tag={stag} {macs} {more}");
    for (words, why) in [
        ("push".to_owned(), expecting),
        ("push smac=02:dd:00:00:00:02 s_id=5".to_owned(), expecting),
        (stag(5, ""), expecting),
        ("pop s_id=16777216".to_owned(), "a service's number is 0 to 16777215"),
        ("pop b_vlanid=4096".to_owned(), "a VLAN's number is 0 to 4095"),
        (stag(4096, "s_id=5"), "a VLAN's number is 0 to 4095"),
    ] {
        let refused = line(&words).unwrap_err();
        assert!(refused.contains(why), "{words}: {refused}");
        assert!(!l2.pbb(port).is_some(), "{words}");
    }
    let shown = || run(&world.router, "show interface vtr", "interface=pg0").unwrap().to_text();
    line(&format!("push {macs} b_vlanid=7 s_id=16777215")).unwrap();
    let push = "push dmac 02:dd:00:00:00:01 smac 02:dd:00:00:00:02 s_id 16777215 b_vlanid 7";
    assert_eq!(shown(), format!("pg0:  VTR none\npg0:  PBB {push}\n"));
    line("pop").unwrap();
    assert_eq!(l2.pbb(port), PbbRewrite { op: PbbOp::Pop, ..PbbRewrite::none() });
    line("disable").unwrap();
    assert_eq!(shown(), "pg0:  VTR none\n");
}
