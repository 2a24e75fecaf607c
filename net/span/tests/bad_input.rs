//! What must do no harm, and what is refused.

use std::time::Duration;

use shoal_interface::SwIfIndex;
use shoal_l2::{Bitmap, Input, Output};
use shoal_message::Retval;
use shoal_span::api::API;
use shoal_span::{Level, MirrorDirections, Span};
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};
use shoal_testkit::{ApiAsker, Rng, fuzz_all_nodes};

use crate::mirror::World;

#[test]
fn messages_are_those_of_vpp_and_random_bytes_do_no_harm() {
    same_as_vpp(&[&API]);
    let mut world = World::new();
    world.set(0, 2, MirrorDirections::BOTH);
    random_bytes_do_no_harm(&mut world.router, &[&API], 300);
}

#[test]
fn every_node_stands_rubbish_while_everything_is_mirrored() {
    let mut world = World::new();
    for (from, to) in [(0, 2), (0, 3), (1, 0), (2, 3)] {
        for level in [Level::Device, Level::L2] {
            world.span.set(level, world.index(from), world.index(to), MirrorDirections::BOTH).unwrap();
        }
    }
    // What waits for a neighbour, or for the rest of a datagram, is held until its time is over.
    world.router.may_hold(4096);
    fuzz_all_nodes(&mut world.router, Rng::seed(5), 2_000);
    world.router.advance(Duration::from_mins(1));
    world.router.may_hold(0);
    world.ports.iter().for_each(|port| drop(port.received()));
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let world = World::new();
    let (span, none) = (&world.span, SwIfIndex(77));
    let [a, b] = [0, 1].map(|n| world.index(n));
    for level in [Level::Device, Level::L2] {
        for (from, to) in [(a, a), (none, b), (a, none), (a, SwIfIndex(0)), (SwIfIndex::NONE, b)] {
            span.set(level, from, to, MirrorDirections::BOTH).unwrap_err();
        }
        span.clear(level, none).unwrap_err();
        span.clear(level, a).unwrap();
        span.set(level, a, b, MirrorDirections::NONE).unwrap();
    }
    assert!(span.list().is_empty());
}

#[test]
fn messages_are_answered_as_vpp_does() {
    let world = World::new();
    let parts = [&API];
    let asker = ApiAsker::new(world.router.control(), &parts);
    let fields = |from: u32, to: u32, state: u32, l2: bool| {
        [&from.to_be_bytes()[..], &to.to_be_bytes(), &state.to_be_bytes(), &[u8::from(l2)]].concat()
    };
    let set =
        |from, to, state, l2| asker.retval("sw_interface_span_enable_disable", &fields(from, to, state, l2));
    let [a, b, c] = [0, 1, 2].map(|n| world.index(n).0);
    assert_eq!(set(a, b, 4, false), Retval::UNIMPLEMENTED);
    for (from, to, state) in [(a, a, 1), (a, u32::MAX, 1), (u32::MAX, b, 1), (u32::MAX, u32::MAX, 0)] {
        assert_eq!(set(from, to, state, false), Retval::INVALID_INTERFACE);
    }
    let done = Retval(0);
    assert_eq!([set(a, b, 3, false), set(a, c, 1, false), set(b, c, 2, true)], [done; 3]);
    let dump = |l2: bool| asker.ask("sw_interface_span_dump", &[u8::from(l2)]);
    assert_eq!(dump(false), [fields(a, b, 3, false), fields(a, c, 1, false)]);
    assert_eq!(dump(true), [fields(b, c, 2, true)]);
    assert_eq!(set(a, u32::MAX, 0, false), done);
    assert!(dump(false).is_empty() && dump(true).len() == 1);
}

#[test]
fn the_features_of_an_interface_are_told_with_its_mirrors() {
    let world = World::new();
    let asker = ApiAsker::new(world.router.control(), shoal_l2::MODULE.api);
    let index = world.index(0);
    let number = |feature| Bitmap::default().with(feature).number(Input::Xconnect);
    let (span, learn) = (number(Input::Span), number(Input::Learn));
    let span_out = Bitmap::default().with(Output::Span).number(Output::Span);
    let get = || {
        let answer = asker.ask("l2_flags_get", &index.0.to_be_bytes()).remove(0);
        let part = |at: usize| u32::from_be_bytes(answer[at..at + 4].try_into().unwrap());
        assert_eq!(part(0), 0);
        [part(4) & span, part(8) & span_out]
    };
    // Without the bit for learning; what is left is answered.
    let change = |is_set: bool| {
        let fields = [&index.0.to_be_bytes()[..], &[u8::from(is_set)], &1_u32.to_be_bytes()].concat();
        let answer = asker.ask("l2_flags", &fields).remove(0);
        u32::from_be_bytes(answer[4..8].try_into().unwrap()) & (span | learn)
    };
    assert_eq!((get(), change(true)), ([0, 0], learn));
    let set = |ways| world.router.get::<Span>().set(Level::L2, index, world.index(1), ways).unwrap();
    set(MirrorDirections::RX);
    assert_eq!((get(), change(false), change(true)), ([span, 0], span, span | learn));
    set(MirrorDirections::BOTH);
    assert_eq!(get(), [span, span_out]);
    set(MirrorDirections::NONE);
    assert_eq!((get(), change(true)), ([0, 0], learn), "changes of others do not keep it");
}
