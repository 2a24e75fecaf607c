//! Several workers: each tells of its own sessions, and each takes in its own.

use shoal_nat::tuple::TCP;
use shoal_session_sync::RoleSource;

use crate::common::{ACK, Pair, Side, tuple};

const WORLD: (&str, u16) = ("198.51.100.7", 80);

fn pair_of(workers: [usize; 2]) -> Pair {
    let mut pair = Pair { sides: [Side::new(1), Side::new(2)], is_ip6: false };
    for (side, count) in pair.sides.iter_mut().zip(workers) {
        for _ in 0..count {
            side.router.graph().add_worker(None).unwrap();
        }
        side.router.run();
    }
    pair.configure(0, RoleSource::Active);
    pair.configure(1, RoleSource::Standby);
    pair.advance(300);
    assert!(pair.is_up());
    pair
}

#[test]
fn sessions_of_all_workers_are_known_to_the_workers_of_the_other_router() {
    let mut pair = pair_of([3, 3]);
    let flows: Vec<_> = (0..60).map(|n: u16| tuple(("10.0.0.2", 1100 + n * 1000), WORLD)).collect();
    let left: Vec<_> = flows.iter().map(|flow| pair.sides[0].connect(*flow).unwrap()).collect();
    for n in 0..20 {
        pair.sides[0].connect6(2 + n % 5, 3000 + n).unwrap();
    }
    pair.advance(100);
    assert_eq!(pair.sides[1].sessions().len(), 60);
    assert_eq!(pair.sides[1].nat64().sessions().unwrap().len(), 20);
    let counts = pair.sides[1].nat().counts().unwrap();
    assert!(counts.iter().filter(|(thread, _)| **thread > 0).all(|(_, count)| *count > 5), "{counts:?}");
    pair.fail_over(1);
    for (flow, left) in flows.iter().zip(&left) {
        assert_eq!(pair.sides[1].out(*flow, TCP, ACK), Some(*left));
        assert_eq!(pair.sides[1].back(left.reversed(), TCP, ACK), Some(flow.reversed()));
    }
}

#[test]
fn a_worker_that_comes_or_goes_has_all_told_again_and_other_numbers_of_workers_are_named() {
    let mut pair = pair_of([2, 1]);
    let flows: Vec<_> = (0..40).map(|n: u16| tuple(("10.0.0.2", 1100 + n * 1500), WORLD)).collect();
    for flow in &flows {
        pair.sides[0].connect(*flow).unwrap();
    }
    pair.advance(100);
    // One worker has all ports: what two had fits it.
    assert_eq!(pair.sides[1].sessions().len(), 40);
    pair.sides[0].router.graph().add_worker(None).unwrap();
    pair.sides[0].router.run();
    let told = pair.sides[0].counter("all-told");
    pair.advance(6000);
    assert!(pair.sides[0].counter("all-told") > told);
    for n in 0..40 {
        pair.sides[0].connect(tuple(("10.0.0.3", 1200 + n * 1500), WORLD)).unwrap();
    }
    pair.advance(200);
    assert_eq!(pair.sides[1].sessions().len(), pair.sides[0].sessions().len());
}
