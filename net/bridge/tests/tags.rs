//! Every operation on tags, on bytes; in and out.

use shoal_bridge::Role;
use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_interface::SwIfIndex;
use shoal_l2::{Bitmap, L2, Mode, Output, TagOp, TagRewrite};

use crate::world::{BD, World, frame, frame_between, station};

fn vid(n: u16) -> Vid {
    Vid::new(n).unwrap()
}

fn tagged(plain: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let tags = tags.iter().flat_map(|(kind, id)| [kind.to_be_bytes(), id.to_be_bytes()].concat());
    [&plain[..12], &tags.collect::<Vec<u8>>(), &plain[12..]].concat()
}

/// A sub-interface of port 1 with these ids, cross-connected with port 0.
fn crossed(kind: TagKind, outer: u16, inner: Inner) -> (World, SwIfIndex) {
    let world = World::new(2);
    let takes = Match::Tags { kind, outer: vid(outer), inner, exact: Exact::Yes };
    let sub = world.router.get::<Ethernet>().create_sub(world.ports[1].index(), 5, takes).unwrap();
    world.router.interfaces().set_admin(sub, true).unwrap();
    let l2 = world.router.get::<L2>();
    l2.set_mode(world.ports[0].index(), Mode::Xconnect(sub)).unwrap();
    l2.set_mode(sub, Mode::Xconnect(world.ports[0].index())).unwrap();
    (world, sub)
}

const Q: u16 = 0x8100;
const AD: u16 = 0x88a8;

#[test]
fn each_operation_does_to_tags_what_it_says_and_the_other_way_round() {
    let one = (TagKind::Dot1q, Inner::None, vec![(Q, 200)]);
    let two = (TagKind::Dot1ad, Inner::Id(vid(300)), vec![(AD, 200), (Q, 300)]);
    for (kind, inner, own) in [one, two] {
        for op in TagOp::ALL {
            for (pushed, first) in [(TagKind::Dot1q, Q), (TagKind::Dot1ad, AD)] {
                let (pop, push) = op.counts();
                let (mut world, sub) = crossed(kind, 200, inner);
                let rewrite = TagRewrite { op, kind: pushed, ids: [vid(7), vid(8)] };
                let set = world.router.get::<L2>().set_tags(sub, rewrite);
                if pop > own.len() {
                    assert!(set.unwrap_err().to_string().starts_with("vlan tag rewrite is not compatible"));
                    continue;
                }
                set.unwrap();
                let plain = frame(1, 2);
                let (outside, kept) = (tagged(&plain, &own), &own[pop..]);
                let new = [(first, 7), (Q, 8)];
                let inside = tagged(&plain, &[&new[..push], kept].concat());
                let (a, b) = (world.ports[0].clone(), world.ports[1].clone());
                world.router.send(&b, &outside);
                assert_eq!(a.received_one(), inside, "{op:?} {pushed:?} of {own:?}, in");
                world.router.send(&a, &inside);
                assert_eq!(b.received_one(), outside, "{op:?} {pushed:?} of {own:?}, out");
            }
        }
    }
}

#[test]
fn frames_with_too_few_tags_are_dropped_on_their_way_out() {
    let (mut world, sub) = crossed(TagKind::Dot1q, 200, Inner::None);
    let rewrite = TagRewrite { op: TagOp::Translate11, kind: TagKind::Dot1q, ids: [vid(7), vid(0)] };
    world.router.get::<L2>().set_tags(sub, rewrite).unwrap();
    let a = world.ports[0].clone();
    world.router.send(&a, frame(1, 2));
    assert_eq!(world.router.error("l2-output", "L2 output tag rewrite drops"), 1);
    let mut runt = frame(1, 2);
    runt.truncate(15);
    world.router.send(&a, runt);
    assert_eq!(world.router.error("l2-output", "L2 output tag rewrite drops"), 2);
}

#[test]
fn the_filter_lets_only_frames_with_own_tags_out() {
    let (mut world, sub) = crossed(TagKind::Dot1q, 200, Inner::None);
    let (a, b) = (world.ports[0].clone(), world.ports[1].clone());
    let l2 = world.router.get::<L2>();
    let stranger = tagged(&frame(1, 2), &[(Q, 201)]);
    world.router.send(&a, &stranger);
    assert_eq!(b.received_one(), stranger);
    l2.set_output(sub, Bitmap::default().with(Output::EfpFilter)).unwrap();
    world.router.send(&a, &stranger);
    assert!(b.received().is_empty());
    assert_eq!(world.router.error("l2-output", "L2 EFP filter post-rewrite drops"), 1);
    let own = tagged(&frame(1, 2), &[(Q, 200)]);
    world.router.send(&a, &own);
    assert_eq!(b.received_one(), own);
    let rewrite = TagRewrite { op: TagOp::Translate11, kind: TagKind::Dot1q, ids: [vid(7), vid(0)] };
    l2.set_tags(sub, rewrite).unwrap();
    world.router.send(&a, &own);
    assert_eq!(world.router.error("l2-output", "L2 EFP filter pre-rewrite drops"), 1);
    world.router.send(&a, tagged(&frame(1, 2), &[(Q, 7)]));
    assert_eq!(b.received_one(), own);
}

#[test]
fn copies_of_a_flooded_frame_have_the_tags_of_their_ports() {
    let mut world = World::new(3);
    let ethernet = world.router.get::<Ethernet>();
    let takes = Match::Tags { kind: TagKind::Dot1q, outer: vid(9), inner: Inner::None, exact: Exact::Yes };
    let sub = ethernet.create_sub(world.ports[2].index(), 9, takes).unwrap();
    world.router.interfaces().set_admin(sub, true).unwrap();
    world.bridges.leave(world.ports[2].index()).unwrap();
    world.bridges.join(sub, BD, 0, Role::Normal).unwrap();
    let pop = TagRewrite { op: TagOp::Pop1, ..TagRewrite::none() };
    world.router.get::<L2>().set_tags(sub, pop).unwrap();
    let mut plain = frame_between(station(1), [0xff; 6]);
    // Long enough to be shared.
    plain.resize(1_400, 0x5a);
    let (a, b, c) = (world.ports[0].clone(), world.ports[1].clone(), world.ports[2].clone());
    world.router.send(&a, &plain);
    assert_eq!((b.received_one(), c.received_one()), (plain.clone(), tagged(&plain, &[(Q, 9)])));
    world.router.send(&c, tagged(&frame(2, 1), &[(Q, 9)]));
    assert_eq!(a.received_one(), frame(2, 1));
    assert!(b.received().is_empty());
}
