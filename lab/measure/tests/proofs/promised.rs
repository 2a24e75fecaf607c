//! Estimates and promises: whatever a device does, a test ends in the time that was promised.

use std::time::Duration;

use shoal_lab_measure::{
    DelayVariation, ForwardingRate, FrameLoss, Latency, MeasureError, MlrSearch, Mrr, NdrBench, Preset,
    Promise, Soak, Steps, Test, Throughput, TrialProcedure, WhenDisturbed,
};

use crate::model::Model;
use crate::support::*;

const MOST: u64 = 1_000_000;

fn tests(conduct: &TrialProcedure) -> Vec<Box<dyn Test>> {
    let rate = MOST / 2;
    vec![
        Box::new(Throughput { most: Some(MOST), ..Throughput::default() }),
        Box::new(FrameLoss { steps: Steps::default(), most: Some(MOST) }),
        Box::new(ForwardingRate { most: Some(MOST) }),
        Box::new(Latency::of(conduct, 1_000)),
        Box::new(DelayVariation { rate: 1_000, duration: conduct.duration }),
        Box::new(NdrBench { most: Some(MOST), ..NdrBench::default() }),
        Box::new(MlrSearch { max: Some(MOST), ..MlrSearch::default() }),
        Box::new(Mrr { rate: Some(MOST), ..Mrr::default() }),
        Box::new(Soak { rate, duration: conduct.duration * 10 }),
    ]
}

/// How it ended, and what it took.
fn timed(
    test: &dyn Test,
    mut model: Model,
    conduct: &TrialProcedure,
    promise: Option<Promise>,
) -> (Result<(), MeasureError>, Duration) {
    let spent = model.spent.clone();
    let (mut kept, mut time) = (Kept::default(), NoTime { spent, ..NoTime::default() });
    let ended = {
        let mut runner =
            shoal_lab_measure::Runner::new(&mut model, &mut kept, &mut time, case(), conduct.clone())
                .unwrap();
        runner.promise = promise;
        test.run(&mut runner, &both(64)).and_then(|report| report.ended.map_or(Ok(()), Err))
    };
    (ended, shoal_lab_measure::Time::passed(&time))
}

fn conducts() -> [TrialProcedure; 3] {
    [Preset::Normal, Preset::Quick, Preset::Ci].map(|preset| TrialProcedure { runs: 3, ..preset.conduct() })
}

#[test]
fn whatever_a_device_does_an_estimates_promise_suffices() {
    for conduct in conducts() {
        for test in tests(&conduct) {
            let promise = test.estimate(&conduct, MOST).promise();
            for capacity in [MOST / 1_000, MOST / 3, MOST * 9 / 10, MOST * 2] {
                let (ended, took) = timed(test.as_ref(), Model::of(capacity), &conduct, None);
                let name = test.name();
                assert!(took <= promise, "{name}, capacity {capacity}: {took:?} of {promise:?}, {ended:?}");
            }
        }
    }
}

#[test]
fn a_test_that_is_disturbed_again_and_again_ends_in_the_promised_time() {
    for conduct in conducts() {
        for test in tests(&conduct) {
            let promised = test.estimate(&conduct, MOST).promise();
            let promise = Some(Promise { until: promised, promised });
            // Two of three tries, so that every trial is tried again twice and none is refused for it.
            let model = Model { taken: Box::new(|n| n % 3 != 0), ..Model::of(MOST / 3) };
            let (ended, took) = timed(test.as_ref(), model, &conduct, promise);
            let name = test.name();
            assert!(took <= promised, "{name}: {took:?} of {promised:?}");
            let fine = match &ended {
                Ok(()) | Err(MeasureError::OverTime { .. }) => true,
                Err(error) => error.is_refusal(),
            };
            assert!(fine, "{name}: {ended:?}");
        }
    }
}

#[test]
fn a_trial_that_could_end_too_late_is_not_begun() {
    let conduct = TrialProcedure { when_disturbed: WhenDisturbed::Repeat, ..Preset::Quick.conduct() };
    let test = Throughput { most: Some(MOST), ..Throughput::default() };
    for seconds in [0, 1, 5, 20] {
        let promised = Duration::from_secs(seconds);
        let promise = Some(Promise { until: promised, promised });
        let (ended, took) = timed(&test, Model::of(MOST / 3), &conduct, promise);
        assert!(took <= promised, "{took:?} of {promised:?}");
        let words = ended.unwrap_err().to_string();
        assert!(words.contains("the promised time of") && words.contains("resume"), "{words}");
    }
}
