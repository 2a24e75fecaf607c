//! A bridge: the size of its table, how fast it learns, broadcasts, and what arrives at any load.

use std::time::Duration;

use shoal_lab_engine::{AddressTable, Behaviour, Control, WhenFull};
use shoal_lab_measure::{
    Bound, Broadcast, ForwardingRate, Found, Learning, MeasureError, Repeated, Runner, Test as _,
    TrialProcedure,
};
use shoal_lab_plan::SummaryRow;

use crate::device;
use crate::stage::*;

fn bridge(size: usize, full: WhenFull, learns: Option<u64>) -> Behaviour {
    Behaviour { bridge: Some(AddressTable { size, full, learns }), ..Behaviour::default() }
}

/// Runs `test`; `after` is done after each trial, whose number it is given.
fn taught_watched(
    behaviour: Behaviour,
    test: Learning,
    mut after: impl FnMut(usize, &Control),
) -> Result<(Repeated<Found>, SummaryRow), MeasureError> {
    let (mut engine, control) = controlled(behaviour);
    let forgetful = control.clone();
    let mut forget = || {
        forgetful.flush_addresses();
        Ok(())
    };
    let conduct = TrialProcedure { settle: Duration::ZERO, retries: 1, ..strict() };
    let kept = Kept { after: Some(Box::new(move |number| after(number, &control))), ..Kept::default() };
    let teach = |r: &mut Runner<'_>| {
        let runs = test.measure(r, &on_the_left(), &mut forget)?;
        let row = test.row(r, &runs);
        Ok((runs, row))
    };
    watched(&mut engine, conduct, kept, teach).0
}

fn taught(behaviour: Behaviour, test: Learning) -> (Found, SummaryRow) {
    let (runs, row) = taught_watched(behaviour, test, |_, _| {}).unwrap();
    (runs.values[0], row)
}

const CAPACITY: Learning = Learning::Capacity { most: 5_000, rate: 10_000 };

#[test]
fn a_tables_size_is_found_to_the_address_whether_it_refuses_or_forgets() {
    for full in [WhenFull::Refuse, WhenFull::ForgetOldest] {
        for size in [1, 2, 100, 1_001, 4_096, 4_999] {
            let (found, row) = taught(bridge(size, full, None), CAPACITY);
            assert_eq!((found.value, found.bound), (size as u64, Bound::Device), "{full:?} {size}");
            assert!(!row.note.contains("at least") && row.note.contains("there is no third"), "{}", row.note);
        }
    }
}

#[test]
fn a_table_for_all_addresses_is_at_least() {
    let (found, row) = taught(bridge(5_000, WhenFull::Refuse, None), CAPACITY);
    assert_eq!((found.value, found.bound), (5_000, Bound::Ceiling));
    assert!(row.note.contains("at least (no more was tried)"), "{}", row.note);
}

#[test]
fn a_cross_connect_learns_nothing() {
    let (found, row) = taught(Behaviour::default(), CAPACITY);
    assert_eq!(found.value, 0);
    assert!(row.note.contains("it learnt nothing"), "{}", row.note);
    let (found, _) = taught(Behaviour::default(), Learning::Rate { addresses: 100, most: 20_000 });
    assert_eq!(found.value, 0);
}

#[test]
fn a_device_that_dies_is_not_taken_for_one_that_knows_all() {
    // It is dead whenever it is asked, and lives again when it is taught.
    let lives = bridge(5_000, WhenFull::Refuse, None);
    let back = lives.clone();
    let error = taught_watched(lives, CAPACITY, move |number, control| {
        let dead = (number % 2 == 1).then_some((Duration::ZERO, seconds(100)));
        control.behave(Behaviour { dead, ..back.clone() });
    })
    .map(|(runs, _)| runs.values)
    .unwrap_err();
    assert!(error.to_string().contains("to an unknown address"), "{error}");
}

#[test]
fn the_learning_rate_is_what_the_bridge_learns() {
    for (learns, addresses) in [(3_000, 1_000), (7_001, 2_000), (12_345, 500)] {
        let bridge = bridge(10_000, WhenFull::Refuse, Some(learns));
        let (found, row) = taught(bridge, Learning::Rate { addresses, most: 50_000 });
        // So many addresses at once are a burst, of which one may wait.
        let fits = |rate| u64::from(addresses) <= device::longest_burst(learns, 2, rate);
        let wanted = (learns..10 * learns).find(|rate| !fits(rate + 1)).unwrap();
        near(found.value as f64, wanted as f64, 1.0);
        assert!(row.note.contains(&format!("{addresses} addresses")), "{}", row.note);
    }
}

#[test]
fn a_table_that_is_too_small_has_no_learning_rate() {
    let test = Learning::Rate { addresses: 1_000, most: 50_000 };
    let (found, row) = taught(bridge(999, WhenFull::ForgetOldest, None), test);
    assert_eq!(found.value, 0);
    assert!(row.note.contains("not even at 1000 fps"), "{}", row.note);
}

#[test]
fn broadcasts_have_the_devices_capacity_and_delay() {
    let behaviour = Behaviour {
        delay: Duration::from_micros(70),
        bridge: Some(AddressTable { size: 10, full: WhenFull::Refuse, learns: None }),
        ..device::of(2_503, 2)
    };
    let report = run(behaviour, strict(), |r| Broadcast { most: Some(4_000) }.run(r, &broadcast())).unwrap();
    assert!(report.ended.is_none() && report.rows.iter().all(|row| row.test == "broadcast"));
    let value = |metric: &str| report.rows.iter().find(|row| row.metric == metric).unwrap().values[0];
    assert_eq!(value("broadcast throughput"), device::throughput(2_503, 2, seconds(2)) as f64);
    // A frame is forwarded in 1 / 2,503 s, rounded up to a nanosecond; one may wait for another.
    let service = 399.521;
    near(value("TL"), 70.0 + service, service);
    assert!(value("WCL") >= 70.0 + service, "{:?}", report.rows);
}

#[test]
fn the_forwarding_rate_is_the_capacity_and_told_with_its_load() {
    let test = ForwardingRate { most: Some(10_000) };
    let report = run(device::of(6_300, 20), strict(), |r| test.run(r, &both())).unwrap();
    // What the queue holds at the end comes later.
    near(report.rows[0].values[0], 6_300.0, 20.0);
    assert!(report.rows[1].values[0] >= 7_000.0, "{:?}", report.rows[1]);
    // 100, 90, 80, 70, 60 and 50 % were offered; the last two lost nothing.
    assert_eq!(report.rows[0].curve.len(), 6);
    assert!(report.rows[0].note.contains("seen at an offered load of"), "{}", report.rows[0].note);
}
