//! NAT and learning bridges: tables of known size.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;
use shoal_lab_measure::nat::{Capacity, Established, Setup, StateScaling, Teardown};
use shoal_lab_measure::{
    Bound, Learning, LearningTraffic, MeasureError, Offer, Precision, StatefulTraffic, Throughput,
};
use shoal_lab_plan::{DeviceError, Side, Stream, Trust};

use crate::model::{Memory, Model};
use crate::support::*;

struct Connections;

/// One frame each of `count` things: a single burst, so that it is exactly so many.
fn exactly(name: &str, from: Side, count: u64, rate: u64) -> Stream {
    stream(name, from, 64, &Offer::burst(count, Some(rate)))
}

impl StatefulTraffic for Connections {
    fn fill(&self, tuples: u64, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        Ok(vec![exactly("fill", Side::Left, tuples, rate)])
    }

    fn check(&self, tuples: u64, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        Ok(vec![exactly("check", Side::Right, tuples, rate)])
    }

    fn over(&self, _tuples: u64, offer: &Offer) -> Result<Vec<Stream>, MeasureError> {
        Ok(Side::BOTH.iter().map(|side| stream("over", *side, 64, offer)).collect())
    }

    fn size(&self) -> u32 {
        64
    }
}

fn nat(size: u64, rate: u64) -> (Model, impl FnMut() -> Result<(), DeviceError>) {
    let memory = Rc::new(RefCell::new(Memory { size, rate, ..Memory::default() }));
    let model = Model { memory: memory.clone(), ..Model::of(1_000_000) };
    let clear = move || {
        let mut memory = memory.borrow_mut();
        memory.entries = 0;
        memory.cleared += 1;
        Ok(())
    };
    (model, clear)
}

fn setup(tuples: u64, check: Option<f64>) -> Setup {
    Setup { tuples, most: 1_000_000, precision: Precision::Absolute(1_000), check }
}

#[test]
fn the_setup_rate_is_found_and_validated() {
    let (mut model, mut clear) = nat(100_000, 250_000);
    let memory = model.memory.clone();
    let result =
        run(&mut model, strict(2), |r| setup(10_000, Some(0.5)).measure(r, &Connections, &mut clear))
            .unwrap();
    for found in &result.values {
        assert!((249_000..=250_250).contains(&found.rate), "{found:?}");
        assert_eq!((found.unanswered, found.bound), (0, Bound::Device));
    }
    assert!(memory.borrow().cleared >= 20, "the table is emptied before each filling");
}

#[test]
fn a_nat_that_refuses_all_ends_early_with_an_error() {
    let (mut model, mut clear) = nat(0, 250_000);
    let error = run(&mut model, strict(20), |r| setup(10_000, None).measure(r, &Connections, &mut clear));
    assert!(matches!(error, Err(MeasureError::Silent { .. })), "{error:?}");
    assert_eq!(model.trials.len(), 2);
}

#[test]
fn translations_that_are_not_unique_fail_and_are_told() {
    let (model, mut clear) = nat(100_000, 250_000);
    let mut model = Model { not_unique: 4, ..model };
    let row = run(&mut model, strict(1), |r| {
        let result = setup(10_000, None).measure(r, &Connections, &mut clear).unwrap();
        setup(10_000, None).row(r, &result)
    });
    assert_eq!(row.values, [0.0]);
    assert!(row.note.contains("4 translations were not unique"), "{}", row.note);
}

#[test]
fn throughput_runs_over_connections_that_were_made() {
    let (mut model, mut clear) = nat(100_000, 250_000);
    let value = run(&mut model, strict(1), |r| {
        let pause = Duration::from_secs(1);
        let over = Established::make(r, &Connections, &mut clear, 10_000, 100_000, pause).unwrap();
        let test = Throughput { most: Some(2_000_000), ..Throughput::default() };
        test.measure(r, &over).unwrap().values[0]
    });
    assert_eq!(value, 1_000_000.0);
    assert_eq!(model.trials[0].learn, Some((Side::Right, 10_000)));
    assert!(model.trials[1..].iter().all(|t| t.learn.is_none()));
}

#[test]
fn a_disturbed_filling_is_tried_again_on_an_empty_table() {
    let (model, mut clear) = nat(100_000, 250_000);
    let mut model = Model { disturbed: [1, 2].into(), ..model };
    let memory = model.memory.clone();
    run(&mut model, strict(1), |r| {
        Established::make(r, &Connections, &mut clear, 10_000, 100_000, Duration::ZERO).map(|_| ())
    })
    .unwrap();
    assert_eq!((model.trials.len(), memory.borrow().cleared, memory.borrow().entries), (3, 3, 10_000));
}

#[test]
fn a_filling_beside_others_is_tried_again_on_an_empty_table_and_then_refused() {
    let (model, mut clear) = nat(100_000, 250_000);
    let mut model = Model { taken: Box::new(|_| true), ..model };
    let memory = model.memory.clone();
    let ended = run(&mut model, strict(1), |r| {
        Established::make(r, &Connections, &mut clear, 10_000, 100_000, Duration::ZERO).map(|_| ())
    });
    assert!(ended.unwrap_err().is_refusal());
    assert_eq!((model.trials.len(), memory.borrow().cleared), (3, 3));
}

#[test]
fn disturbed_learning_is_tried_again_on_an_empty_table() {
    let (model, mut clear) = nat(8_192, 50_000);
    let mut model = Model { disturbed: [1].into(), ..model };
    let memory = model.memory.clone();
    let test = Learning::Capacity { most: 15, rate: 10_000 };
    let found = run(&mut model, strict(1), |r| test.measure(r, &Addresses, &mut clear)).unwrap();
    assert_eq!((found.values[0].value, found.values[0].bound), (15, Bound::Ceiling));
    // The upper end is learnt twice and asked for once, and as it fits nothing else is tried.
    assert_eq!((model.trials.len(), memory.borrow().cleared), (3, 2));
}

#[test]
fn connections_that_cannot_be_made_fail_as_siitperf_says() {
    let (mut model, mut clear) = nat(5_000, 250_000);
    let error = run(&mut model, strict(1), |r| {
        Established::make(r, &Connections, &mut clear, 10_000, 100_000, Duration::ZERO).map(|_| ())
    })
    .unwrap_err();
    assert!(error.to_string().contains("failed to fill the state table: 5000 of 10000"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_capacity_is_the_size_of_the_table(size in 1_000_u64..60_000) {
        let (mut model, mut clear) = nat(size, 250_000);
        let test = Capacity { safe: 1_000, rate_error: 10_000, ..Capacity::usual(64_000, 500_000) };
        let result = run(&mut model, strict(1), |r| test.measure(r, &Connections, &mut clear)).unwrap();
        prop_assert_eq!(result.values[0].capacity, size);
        prop_assert!(!result.values[0].at_least);
    }
}

#[test]
fn a_table_larger_than_all_tuples_is_at_least() {
    let (mut model, mut clear) = nat(1_000_000, 250_000);
    let test = Capacity { safe: 1_000, rate_error: 10_000, ..Capacity::usual(5_000, 500_000) };
    let row = run(&mut model, strict(1), |r| {
        let result = test.measure(r, &Connections, &mut clear).unwrap();
        test.row(r, &result)
    });
    assert_eq!((row.values[0], row.curve.len()), (5_000.0, 4));
    assert!(row.trust.contains(&Trust::Ceiling));
}

#[test]
fn a_safe_number_that_is_not_safe_is_an_error() {
    let (mut model, mut clear) = nat(500, 250_000);
    let test = Capacity { safe: 1_000, rate_error: 10_000, ..Capacity::usual(64_000, 500_000) };
    let error = run(&mut model, strict(1), |r| test.measure(r, &Connections, &mut clear)).unwrap_err();
    assert!(error.to_string().contains("safe number"), "{error}");
    let none = Capacity { safe: 0, ..test };
    assert!(run(&mut model, strict(1), |r| none.measure(r, &Connections, &mut clear)).is_err());
}

#[test]
fn teardown_is_timed_net_of_an_empty_table() {
    let (mut model, mut clear) = nat(100_000, 250_000);
    let test = Teardown { tuples: 10_000, rate: 100_000 };
    let memory = model.memory.clone();
    let mut timed = |device: &mut dyn shoal_lab_measure::nat::Sessions| {
        // Two microseconds for each entry, and ten milliseconds for the command.
        let took = Duration::from_micros(2 * memory.borrow().entries) + Duration::from_millis(10);
        device.clear()?;
        Ok(took)
    };
    let result =
        run(&mut model, strict(3), |r| test.measure_by(r, &Connections, &mut clear, &mut timed)).unwrap();
    for run in &result.values {
        assert!((run.rate.unwrap() - 500_000.0).abs() < 1e-3, "{run:?}");
    }
}

#[test]
fn scaling_over_connections_has_a_point_for_each_number() {
    let (mut model, mut clear) = nat(100_000, 250_000);
    let test = StateScaling {
        tuples: vec![1_000, 4_000, 16_000],
        setup: setup(0, None),
        most: Some(2_000_000),
        pause: Duration::ZERO,
    };
    let rows = run(&mut model, strict(1), |r| {
        let points = test.measure(r, &Connections, &mut clear).unwrap();
        assert!(points.iter().all(|p| p.throughput == Some(1_000_000)), "{points:?}");
        test.rows(r, &points)
    });
    assert_eq!((rows.len(), rows[0].curve.len()), (2, 3));
}

struct Addresses;

impl LearningTraffic for Addresses {
    fn learn(&self, addresses: u32, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        Ok(vec![exactly("learn", Side::Left, u64::from(addresses), rate)])
    }

    fn ask(&self, addresses: u32, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        let ask = exactly("ask", Side::Left, u64::from(addresses), rate);
        Ok(vec![Stream { expected: false, ..ask }])
    }
}

#[test]
fn a_bridge_caches_as_many_addresses_as_its_table_holds() {
    let (mut model, mut clear) = nat(8_192, 50_000);
    let test = Learning::Capacity { most: 65_536, rate: 10_000 };
    let found = run(&mut model, strict(1), |r| test.measure(r, &Addresses, &mut clear)).unwrap();
    assert_eq!(found.values[0].value, 8_192);
}

#[test]
fn a_bridge_learns_as_fast_as_it_was_set_to() {
    let (mut model, mut clear) = nat(8_192, 50_000);
    let test = Learning::Rate { addresses: 5_000, most: 200_000 };
    let found = run(&mut model, strict(1), |r| test.measure(r, &Addresses, &mut clear)).unwrap();
    assert!(found.values[0].value.abs_diff(50_000) <= 50, "{found:?}");
}

#[test]
fn a_bridge_that_learns_nothing_is_not_searched_for_hours() {
    let (mut model, mut clear) = nat(8_192, 0);
    let test = Learning::Rate { addresses: 5_000, most: 200_000 };
    let row = run(&mut model, strict(1), |r| {
        let found = test.measure(r, &Addresses, &mut clear).unwrap();
        test.row(r, &found)
    });
    assert_eq!((row.values, model.trials.len()), (vec![0.0], 4));
    assert!(row.note.contains("not even at 1000 fps"), "{}", row.note);
}

#[test]
fn a_bridge_that_cannot_forget_is_an_error() {
    let (mut model, _) = nat(8_192, 50_000);
    let mut cannot = || Err(DeviceError::Cannot { device: "model".into(), what: "forget".into() });
    let test = Learning::Capacity { most: 1_000, rate: 10_000 };
    let result = run(&mut model, strict(1), |r| test.measure(r, &Addresses, &mut cannot));
    assert!(matches!(result, Err(MeasureError::Device(_))));
}
