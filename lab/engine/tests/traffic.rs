//! The traffic that the lab sends, through the engine: each stream's frames are known again and found whole.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support;

use std::net::Ipv4Addr;

use shoal_lab_engine::{Behaviour, Engine, NatTable};
use shoal_lab_frame::{
    Direction, Field, Form, LoadAndLatencyTraffic, LoadTest, LoadTraffic, Macs, Mix, Ports, StatefulTraffic,
    Traffic,
};
use shoal_lab_plan::*;
use support::*;

fn macs() -> Macs {
    Macs::new(&Addresses::default(), Some([2, 0, 0, 0, 0, 7]), Some([2, 0, 0, 0, 0, 8]))
}

fn all_arrive_whole(what: &str, streams: Vec<Stream>) {
    let trial = trial(1, streams, ms(200));
    let mut engine = Engine::simulated(Behaviour::default());
    let outcome = engine.trial(&trial, &mut Unwatched).unwrap();
    for stream in &outcome.streams {
        let Counts { requested, sent, received, corrupt, stray, duplicates, .. } = stream.counts;
        let name = &stream.name;
        assert!(requested > 0, "{what}, {name}");
        assert_eq!((sent, received), (requested, requested), "{what}, {name}");
        assert_eq!((corrupt, stray, duplicates), (0, 0, 0), "{what}, {name}");
    }
    assert_eq!(outcome.ports, [Tally::default(); 2], "{what}");
}

#[test]
fn load_tests_and_the_thesis_arrive_whole() {
    let mix: Mix = "imix:bench".parse().unwrap();
    for test in LoadTest::ALL {
        for form in [Form::Own, Form::Plain] {
            let (mix, direction, fix_l4) = (mix.clone(), Direction::Both, false);
            let traffic = LoadTraffic { test, mix, direction, form, fix_l4, macs: macs() };
            all_arrive_whole(test.name(), traffic.streams(Rate::per_second(52_000)).unwrap());
        }
    }
    let thesis = LoadAndLatencyTraffic {
        size: 889,
        sources: 255,
        latency_pps: 5000,
        direction: Direction::Both,
        macs: macs(),
    };
    all_arrive_whole("thesis", thesis.streams(Rate::per_second(20_000)).unwrap());
}

#[test]
fn rfc_2544_traffic_of_both_families_arrives_whole() {
    for (family, size) in [(Family::Ip4, 64), (Family::Ip6, 84), (Family::Ip4, 1518), (Family::Ip6, 1518)] {
        for form in [Form::Own, Form::Plain] {
            let mut traffic = Traffic::new(family, size, Addresses::default(), macs());
            (traffic.form, traffic.direction) = (form, Direction::Both);
            all_arrive_whole("rfc 2544", traffic.streams(Rate::per_second(10_000)).unwrap());
        }
    }
}

#[test]
fn each_tuple_goes_through_a_nat_and_each_answer_comes_back() {
    let mut traffic = Traffic::new(Family::Ip4, 64, Addresses::default(), macs());
    traffic.ports[0] = Ports {
        source: Field::varying(Order::Rising, (10_000, 10_099)),
        destination: Field::varying(Order::Rising, (80, 109)),
    };
    let stateful = StatefulTraffic { traffic, initiator: Side::Left };
    assert_eq!(stateful.tuples(), 3000);
    let nat = Some(NatTable { size: 3000, pool: Ipv4Addr::new(198, 19, 1, 1), fault: None });
    let mut engine = Engine::simulated(Behaviour { nat, ..Behaviour::default() });
    let rate = Rate::per_second(30_000);
    let mut one = trial(1, vec![stateful.preliminary(3000, rate, Order::Permutation).unwrap()], ms(200));
    one.learn = Some((Side::Right, 3000));
    let outcome = engine.trial(&one, &mut Unwatched).unwrap();
    assert_eq!(outcome.learnt, Some(Learnt { tuples: 3000, ..Learnt::default() }));
    assert_eq!(outcome.planned, ms(100));
    let validation = trial(2, vec![stateful.validation(3000, rate).unwrap()], ms(200));
    let outcome = engine.trial(&validation, &mut Unwatched).unwrap();
    assert_eq!((outcome.streams[0].counts.received, outcome.streams[0].counts.stray), (3000, 0));
    let both = vec![
        stateful.again(3000, rate, Order::Random).unwrap(),
        stateful.answers(rate, Order::Permutation).unwrap(),
    ];
    let outcome = engine.trial(&trial(3, both, ms(200)), &mut Unwatched).unwrap();
    for stream in &outcome.streams {
        assert_eq!((stream.counts.received, stream.counts.corrupt), (6000, 0), "{}", stream.name);
    }
    assert_eq!(outcome.learnt, Some(Learnt { tuples: 3000, ..Learnt::default() }));
}
