//! Flows through a NAT: learnt, answered, and checked, in simulated time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support;

use std::net::Ipv4Addr;

use shoal_lab_engine::{Behaviour, Engine, NatFault, NatTable, SimulatedClock, SyntheticPort};
use shoal_lab_plan::*;
use support::*;

type Simulated = Engine<SyntheticPort<SimulatedClock>, SimulatedClock>;

fn engine(size: usize, fault: Option<NatFault>) -> Simulated {
    let nat = Some(NatTable { size, pool: Ipv4Addr::new(203, 0, 113, 1), fault });
    Engine::simulated(Behaviour { nat, ..Behaviour::default() })
}

/// Each of `flows` tuples once, learnt at the right.
fn phase_one(id: u16, flows: u64, order: Order) -> Trial {
    let mut forward = stream(Side::Left, 64, flows);
    forward.changes = vec![ports(order, flows)];
    let mut trial = trial(id, vec![forward], ms(1000));
    trial.learn = Some((Side::Right, 50_000));
    trial
}

/// The same flows again, and answers to them.
fn phase_two(id: u16, flows: u64, order: Order) -> Trial {
    let mut forward = stream(Side::Left, 64, 2 * flows);
    forward.changes = vec![ports(Order::Rising, flows)];
    let mut reverse = stream(Side::Right, 64, 2 * flows);
    reverse.answers = Some(Answers { order });
    trial(id, vec![forward, reverse], ms(1000))
}

#[test]
fn each_flow_is_learnt_once_and_answers_come_back_restored() {
    for order in [Order::Rising, Order::Falling, Order::Random, Order::Permutation] {
        let mut engine = engine(5000, None);
        let outcome = engine.trial(&phase_one(1, 5000, Order::Permutation), &mut Unwatched).unwrap();
        assert_eq!(outcome.learnt, Some(Learnt { tuples: 5000, ..Learnt::default() }));
        assert_eq!(outcome.streams[0].counts.lost(), 0);
        let outcome = engine.trial(&phase_two(2, 5000, order), &mut Unwatched).unwrap();
        assert_eq!(outcome.learnt, Some(Learnt { tuples: 5000, ..Learnt::default() }));
        for stream in &outcome.streams {
            let Counts { sent, received, corrupt, stray, .. } = stream.counts;
            assert_eq!((sent, received, corrupt, stray), (10_000, 10_000, 0, 0), "{order:?}");
        }
    }
}

#[test]
fn a_table_that_is_full_shows_as_flows_that_are_never_answered() {
    let mut engine = engine(4000, None);
    let mut trial = phase_one(1, 5000, Order::Rising);
    // Each tuple twice: what is lost is by flow, not by frame.
    trial.streams[0].pace = Pace::Steady { rate: Rate::per_second(10_000), after: std::time::Duration::ZERO };
    let outcome = engine.trial(&trial, &mut Unwatched).unwrap();
    let learnt = outcome.learnt.unwrap();
    assert_eq!((learnt.tuples, learnt.never_answered, learnt.not_stable), (4000, 1000, 0));
    assert_eq!((outcome.streams[0].counts.lost(), engine.told()[0].untranslated), (2000, 2000));
}

#[test]
fn a_nat_that_gives_two_flows_one_tuple_is_found() {
    let mut engine = engine(1000, Some(NatFault::Shared));
    let outcome = engine.trial(&phase_one(1, 1000, Order::Rising), &mut Unwatched).unwrap();
    let learnt = outcome.learnt.as_ref().unwrap();
    assert_eq!((learnt.not_unique, learnt.not_stable, learnt.examples.len()), (500, 0, 10));
    assert_eq!(outcome.streams[0].counts.stray, 500);
    assert!(learnt.examples[0].contains("203.0.113.1"), "{:?}", learnt.examples);
}

#[test]
fn a_nat_that_changes_its_mind_is_found() {
    let mut engine = engine(1000, Some(NatFault::Moving));
    let mut trial = phase_one(1, 1000, Order::Rising);
    trial.streams[0].pace = Pace::Steady { rate: Rate::per_second(2000), after: std::time::Duration::ZERO };
    let learnt = engine.trial(&trial, &mut Unwatched).unwrap().learnt.unwrap();
    assert_eq!((learnt.not_stable, learnt.not_unique, learnt.tuples), (1000, 0, 1000));
}

#[test]
fn a_nat_that_restores_another_tuple_is_found() {
    let mut engine = engine(1000, Some(NatFault::Unrestored));
    engine.trial(&phase_one(1, 1000, Order::Rising), &mut Unwatched).unwrap();
    let outcome = engine.trial(&phase_two(2, 1000, Order::Rising), &mut Unwatched).unwrap();
    assert_eq!(outcome.learnt.unwrap().not_restored, 2000);
    assert_eq!((outcome.streams[1].counts.stray, outcome.streams[1].counts.received), (2000, 0));
}

#[test]
fn answers_to_flows_that_the_device_forgot_are_lost() {
    let mut engine = engine(1000, None);
    engine.trial(&phase_one(1, 1000, Order::Rising), &mut Unwatched).unwrap();
    engine.ports()[0].flush_nat();
    let mut trial = phase_two(2, 1000, Order::Rising);
    trial.streams.remove(0);
    let outcome = engine.trial(&trial, &mut Unwatched).unwrap();
    assert_eq!(outcome.streams[0].counts.lost(), 2000);
}

#[test]
fn no_more_is_learnt_than_was_asked_for() {
    let mut engine = engine(5000, None);
    let mut trial = phase_one(1, 5000, Order::Rising);
    trial.learn = Some((Side::Right, 700));
    assert_eq!(engine.trial(&trial, &mut Unwatched).unwrap().learnt.unwrap().tuples, 700);
}
