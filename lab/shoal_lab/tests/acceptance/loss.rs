//! Frame loss rate: the set probability, and the curve of a capacity.

use shoal_lab_engine::Behaviour;
use shoal_lab_measure::{FrameLoss, Mrr, Steps, TrialProcedure};

use crate::device;
use crate::stage::*;

#[test]
fn random_loss_is_found_within_its_binomial_error() {
    for (seed, p) in [(1, 0.0005), (2, 0.01), (3, 0.1), (4, 0.5), (5, 0.97)] {
        let behaviour = Behaviour { loss: p, seed, ..Behaviour::default() };
        let test = FrameLoss { steps: Steps::Listed(vec![20_000, 10_000]), most: None };
        let (result, lines) = over(&mut engine(behaviour), strict(), |r| test.measure(r, &both()));
        for (point, line) in result.unwrap().runs.values[0].iter().zip(&lines) {
            let n = (2 * point.offered) as f64;
            let error = |n: f64| 100.0 * (p * (1.0 - p) / n).sqrt();
            near(point.loss[0], 100.0 * p, 4.0 * error(n));
            near(point.loss[1], 100.0 * p, 4.0 * error(n));
            near(point.loss[2], 100.0 * p, 4.0 * error(2.0 * n));
            near(point.received, point.offered as f64 * (1.0 - point.loss[2] / 100.0), 1e-6);
            assert_eq!(line.outcome.streams.iter().map(|s| s.counts.sent).sum::<u64>() as f64, 2.0 * n);
        }
    }
}

#[test]
fn a_capacitys_loss_is_what_exceeds_it() {
    let (c, queue, most) = (7_501, 17, 10_000);
    let test = FrameLoss { most: Some(most), ..FrameLoss::default() };
    let result = run(device::of(c, queue), strict(), |r| test.measure(r, &both())).unwrap();
    let curve = result.curve();
    // RFC 2544 26.3: down in tenths until two in a row lose nothing.
    assert_eq!(curve.iter().map(|p| p.0).collect::<Vec<_>>(), [6_000, 7_000, 8_000, 9_000, 10_000]);
    for (offered, received, loss) in &curve {
        let lost = device::lost(c, queue as u64, *offered, seconds(2));
        let sent = 2.0 * *offered as f64;
        near(*loss, 100.0 * lost / sent, 100.0 * 1.0 / sent);
        near(*received, (sent - lost) / 2.0, 0.5);
    }
    assert_eq!((curve[0].2, curve[1].2), (0.0, 0.0));
    // What arrives goes on rising by nothing: the peak is the capacity and what the queue held.
    near(result.peak().unwrap().1, c as f64 + (queue - 1) as f64 / 2.0, 0.5);
}

#[test]
fn loss_by_chance_and_by_capacity_add_up() {
    // Chance comes first: of 10,000 offered 9,000 come to the queue, 6,000 of which are forwarded.
    let behaviour = Behaviour { loss: 0.1, ..device::of(6_000, 2) };
    let test = FrameLoss { steps: Steps::Listed(vec![5_000, 10_000]), most: None };
    let result = run(behaviour, strict(), |r| test.measure(r, &both())).unwrap();
    let curve = result.curve();
    near(curve[0].2, 10.0, 4.0 * 100.0 * (0.09_f64 / 20_000.0).sqrt());
    // A queue of two runs empty now and then where frames come by chance: no more than 2 % of the time.
    assert!(curve[1].2 >= 39.99 && curve[1].2 < 41.2, "{curve:?}");
}

#[test]
fn the_maximum_receive_rate_is_the_capacity() {
    for (c, queue) in [(3_001, 2), (9_999, 2), (5_000, 101)] {
        let test = Mrr { rate: Some(15_000), trials: 3, duration: seconds(1) };
        let result = run(device::of(c, queue), strict(), |r| test.measure(r, &both())).unwrap();
        for trial in &result.values {
            near(trial.received, c as f64 + (queue - 1) as f64, 1.0);
            assert!(!trial.tester_limit);
        }
    }
}

#[test]
fn each_run_has_other_chances_and_the_same_seed_the_same() {
    let behaviour = || Behaviour { loss: 0.02, ..Behaviour::default() };
    let test = FrameLoss { steps: Steps::Listed(vec![5_000]), most: None };
    let found = || {
        let conduct = TrialProcedure { runs: 3, ..strict() };
        let result = run(behaviour(), conduct, |r| test.measure(r, &both())).unwrap();
        result.runs.values.iter().map(|points| points[0].loss[2]).collect::<Vec<_>>()
    };
    let first = found();
    assert!(first[0] != first[1] && first[1] != first[2], "{first:?}");
    assert_eq!(first, found());
}
