//! MLRsearch: NDR and PDR of a device with a capacity, with loss by chance, and with both.

use std::time::Duration;

use shoal_lab_engine::Behaviour;
use shoal_lab_measure::{Goal, GoalResult, MlrSearch};

use crate::device;
use crate::stage::*;

/// Trials of a second, seven in sum, half of which may be bad.
fn goal(loss_ratio: f64) -> Goal {
    Goal { duration_sum: seconds(7), ..Goal::csit(loss_ratio) }
}

fn found(behaviour: Behaviour, goals: Vec<Goal>, max: u64) -> Vec<GoalResult> {
    let search = MlrSearch { goals, min: 10, max: Some(max), most_time: Duration::from_mins(20) };
    run(behaviour, strict(), |r| search.measure(r, &both())).unwrap()
}

#[test]
fn ndr_and_pdr_of_a_capacity_are_within_the_width() {
    for c in [1_999, 5_003, 7_777] {
        let results = found(device::of(c, 2), vec![goal(0.0), goal(0.005)], 10_000);
        let (ndr, pdr, c) = (results[0], results[1], c as f64);
        assert!(ndr.reached && pdr.reached);
        let lower = ndr.lower.unwrap() as f64;
        // In a second a queue of two hides a frame a second.
        assert!(lower <= c + 1.0 && lower >= c * 0.995 - 2.0, "{ndr:?}");
        assert!((ndr.throughput - lower).abs() < 1e-9 && ndr.upper.unwrap() as f64 > c, "{ndr:?}");
        // 0.5 % of a load of c / 0.995 may be lost.
        let lower = pdr.lower.unwrap() as f64;
        assert!(lower <= (c + 1.0) / 0.995 + 1.0 && lower >= c * 0.99 / 0.995, "{pdr:?}");
        assert!(pdr.throughput <= c + 1.0 && pdr.throughput >= c * 0.99, "{pdr:?}");
    }
}

#[test]
fn loss_by_chance_sets_the_ndr_where_half_of_the_trials_lose_nothing() {
    // A trial of a second at r in both directions loses nothing with (1 - p)^(2 r): a half at 346.
    let p = 0.001;
    let half = 2_f64.ln() / (2.0 * p);
    for seed in 1..4 {
        let behaviour = Behaviour { loss: p, seed, ..Behaviour::default() };
        let results = found(behaviour, vec![goal(0.0), goal(0.01)], 4_000);
        let lower = results[0].lower.unwrap() as f64;
        // Four of seven trials decide: at a quarter of the half's load 84 % are good, at three times it 13 %.
        assert!(lower > half / 4.0 && lower < half * 3.0, "{results:?}");
        // A tenth of what the PDR allows is lost: the largest load is carried.
        let pdr = results[1];
        assert_eq!((pdr.lower, pdr.upper), (Some(4_000), None));
        near(pdr.throughput, 4_000.0 * (1.0 - p), 4_000.0 * 4.0 * (p / 8_000.0).sqrt());
    }
}

#[test]
fn loss_by_chance_leaves_the_pdr_of_a_capacity_where_it_was() {
    // Of r a share 1 - p comes to the queue, c leave it: 1 % is lost at c / 0.99. The queue evens chance out.
    let behaviour = Behaviour { loss: 0.004, ..device::of(5_000, 20) };
    let pdr = found(behaviour, vec![goal(0.01)], 8_000)[0];
    let wanted = 5_000.0 / 0.99;
    let lower = pdr.lower.unwrap() as f64;
    assert!(lower <= wanted * 1.004 && lower >= wanted * 0.99, "{pdr:?}");
    assert!(pdr.throughput <= 5_020.0 && pdr.throughput >= 4_940.0, "{pdr:?}");
}

#[test]
fn more_loss_by_chance_than_the_goal_allows_has_no_lower_bound() {
    let results = found(Behaviour { loss: 0.3, ..Behaviour::default() }, vec![goal(0.005)], 4_000);
    assert_eq!((results[0].lower, results[0].throughput), (None, 0.0));
}

#[test]
fn rfc_2544_as_a_goal_finds_what_the_plain_search_finds() {
    let two = seconds(2);
    let rfc2544 = Goal {
        final_duration: two,
        initial_duration: two,
        duration_sum: two,
        width: 0.0002,
        ..Goal::rfc2544()
    };
    let ndr = found(device::of(3_331, 2), vec![rfc2544], 8_000)[0];
    assert_eq!((ndr.lower, ndr.upper), (Some(3_331), Some(3_332)));
}
