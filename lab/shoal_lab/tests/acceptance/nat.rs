//! A NAT: its setup rate, the size of its table, and what it does wrong.

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_lab_engine::{Behaviour, NatFault, NatTable};
use shoal_lab_measure::nat::{Capacity, Established, Setup, SetupFound, Teardown};
use shoal_lab_measure::{Latency, MeasureError, Precision, Runner, Throughput, TrialProcedure};
use shoal_lab_plan::Verdict;

use crate::device;
use crate::stage::*;

fn nat(size: usize, fault: Option<NatFault>, behaviour: Behaviour) -> Behaviour {
    let pool = Ipv4Addr::new(203, 0, 113, 1);
    Behaviour { nat: Some(NatTable { size, pool, fault }), ..behaviour }
}

/// Runs `test` with what empties the table.
fn stateful<T>(
    behaviour: Behaviour,
    test: impl FnOnce(&mut Runner<'_>, &mut dyn FnMut() -> Result<(), shoal_lab_plan::DeviceError>) -> T,
) -> T {
    let (mut engine, control) = controlled(behaviour);
    let mut clear = || {
        control.flush_nat();
        Ok(())
    };
    let conduct = TrialProcedure { settle: Duration::ZERO, retries: 1, ..strict() };
    over(&mut engine, conduct, |r| test(r, &mut clear)).0
}

const SETUP: Setup =
    Setup { tuples: 1_000, most: 20_000, precision: Precision::Absolute(1), check: Some(0.5) };

fn setup(behaviour: Behaviour, test: Setup) -> SetupFound {
    stateful(behaviour, |r, mut clear| test.measure(r, &connections(), &mut clear)).unwrap().values.remove(0)
}

#[test]
fn the_setup_rate_is_what_the_device_forwards() {
    for (c, q, tuples) in [(3_000, 10, 1_000), (7_001, 2, 2_000), (999, 50, 500)] {
        let found = setup(nat(100_000, None, device::of(c, q)), Setup { tuples, ..SETUP });
        // So many frames at once are a burst: the highest rate at which it fits the queue.
        let wanted = (c..10 * c).find(|rate| tuples > device::longest_burst(c, q as u64, rate + 1)).unwrap();
        near(found.rate as f64, wanted as f64, 1.0);
        assert_eq!((found.unanswered, found.wrong.broken(), found.wrong.never_answered), (0, 0, 0));
    }
}

#[test]
fn the_tables_size_is_found_to_the_entry() {
    for size in [600, 1_001, 2_047, 3_000] {
        let test = Capacity { safe: 500, rate_error: 500, ..Capacity::usual(8_000, 4_000) };
        let found = stateful(nat(size, None, device::of(10_000, 100)), |r, mut clear| {
            test.measure(r, &connections(), &mut clear)
        });
        let found = found.unwrap().values.remove(0);
        assert_eq!((found.capacity, found.at_least), (size as u64, false), "{found:?}");
    }
}

#[test]
fn a_table_for_all_tuples_is_at_least() {
    let test = Capacity { safe: 500, rate_error: 500, ..Capacity::usual(2_000, 4_000) };
    let found = stateful(nat(1 << 20, None, Behaviour::default()), |r, mut clear| {
        test.measure(r, &connections(), &mut clear)
    });
    let found = found.unwrap().values.remove(0);
    assert_eq!((found.capacity, found.at_least), (2_000, true));
}

#[test]
fn a_table_that_is_too_small_has_no_setup_rate() {
    let found = setup(nat(900, None, Behaviour::default()), SETUP);
    assert_eq!((found.rate, found.wrong.broken()), (0, 0));
}

#[test]
fn two_flows_with_one_tuple_are_found_while_they_are_made() {
    let found = setup(nat(100_000, Some(NatFault::Shared), Behaviour::default()), SETUP);
    assert_eq!((found.rate, found.wrong.not_unique), (0, 500));
    assert!(found.wrong.examples[0].contains("203.0.113.1"), "{:?}", found.wrong.examples);
}

#[test]
fn answers_that_come_back_to_another_tuple_are_found_by_the_check_all_of_them() {
    let test = Setup { most: 4_000, ..SETUP };
    let found = setup(nat(100_000, Some(NatFault::Unrestored), Behaviour::default()), test);
    assert_eq!((found.unanswered, found.wrong.not_restored), (1_000, 1_000));
    assert!(found.wrong.examples[0].contains("came back as"), "{:?}", found.wrong.examples);
}

#[test]
fn a_translation_that_changes_is_found_over_connections_that_exist() {
    let behaviour = nat(10_000, Some(NatFault::Moving), Behaviour::default());
    let (error, line) = {
        let (mut engine, control) = controlled(behaviour);
        let mut clear = || {
            control.flush_nat();
            Ok(())
        };
        let connections = connections();
        let (error, lines) = over(&mut engine, strict(), |r| {
            let over = Established::make(r, &connections, &mut clear, 1_000, 2_000, Duration::ZERO).unwrap();
            Throughput { most: Some(4_000), ..Throughput::default() }.measure(r, &over).unwrap_err()
        });
        (error, lines.into_iter().last().unwrap())
    };
    assert!(matches!(error, MeasureError::Untrusted(_)), "{error}");
    assert!(matches!(line.verdict, Verdict::Invalid(_)));
    let learnt = line.outcome.learnt.unwrap();
    assert!(learnt.not_stable > 0 && learnt.examples[0].contains("then"), "{learnt:?}");
}

#[test]
fn over_connections_throughput_is_the_capacity_and_latency_the_delay() {
    let behaviour = Behaviour { delay: Duration::from_micros(70), ..device::of(2_503, 2) };
    let connections = connections();
    let (throughput, latency) = stateful(nat(10_000, None, behaviour), |r, mut clear| {
        let over = Established::make(r, &connections, &mut clear, 1_000, 1_000, ms(100)).unwrap();
        let test = Throughput { most: Some(4_000), ..Throughput::default() };
        let throughput = test.measure(r, &over).unwrap().median();
        let test = Latency { rate: 1_000, duration: seconds(2), delay: seconds(1), tags: 500 };
        (throughput, test.measure(r, &over).unwrap().runs.values.remove(0))
    });
    assert_eq!(throughput, 2_503.0);
    // A frame is forwarded in 1 / 2,503 s, rounded up to a nanosecond.
    assert_eq!((latency.typical, latency.worst), (70.0 + 399.521, 70.0 + 399.521));
}

#[test]
fn teardown_empties_the_table() {
    let test = Teardown { tuples: 1_000, rate: 2_000 };
    let (mut engine, control) = controlled(nat(1_000, None, Behaviour::default()));
    let mut clear = || {
        control.flush_nat();
        Ok(())
    };
    // Twice in a row the table is full to the last entry: it was emptied between.
    let conduct = TrialProcedure { runs: 2, ..strict() };
    let found = over(&mut engine, conduct, |r| test.measure(r, &connections(), &mut clear)).0.unwrap();
    assert_eq!((found.values.len(), found.ended.is_none()), (2, true));
}
