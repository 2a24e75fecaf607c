//! Many flows: what they take, how full buckets are, and that nothing is left behind.

use super::check;
use crate::bucket::PLACES;
use crate::entry::Hashed;
use crate::{
    FlowTable, InsertError, Ip4Flow, Ip6Flow, Seed, Settings, Sweep, SweepAction, TableError, TableId,
};
use crate::{Tick, Timeout};

const FOREVER: Timeout = Timeout::new(15);

fn flow4(n: u32) -> Ip4Flow {
    Ip4Flow::new((n.into(), n as u16), ([192, 0, 2, 1].into(), 80), 6, TableId::DEFAULT)
}

fn flow6(n: u32) -> Ip6Flow {
    Ip6Flow::new((u128::from(n).into(), 9), (1.into(), 80), 6, TableId::DEFAULT)
}

#[test]
fn a_flow_takes_at_most_64_bytes_beside_its_value_at_any_size() {
    let mut table4 = FlowTable::<Ip4Flow, [u64; 4]>::new(Settings::flows(200_000), Tick(0)).unwrap();
    let mut table6 = FlowTable::<Ip6Flow, u64>::new(Settings::flows(200_000), Tick(0)).unwrap();
    assert_eq!(FlowTable::<Ip4Flow, [u64; 4]>::ENTRY_BYTES, 64);
    assert_eq!(FlowTable::<Ip6Flow, u64>::ENTRY_BYTES, 64);
    for n in 0..200_000 {
        table4.insert(flow4(n), [0; 4], FOREVER, Tick(0)).unwrap();
        table6.insert(flow6(n), 0, FOREVER, Tick(0)).unwrap();
        // What there is once, and a page of buckets, is shared by few at first.
        if n >= 10_000 {
            let flows = n as usize + 1;
            assert!(table4.usage().bytes / flows - 32 <= 48, "{n}");
            assert!(table6.usage().bytes / flows - 8 <= 64, "{n}");
        }
    }
    check(&table4);
    check(&table6);
}

/// At every size, between two doublings too: few flows are not in their first bucket, and none is refused.
#[test]
fn most_flows_are_in_their_first_bucket() {
    for seed in 0..3 {
        let settings = Settings::flows(100_000).seed(Seed::fixed(seed));
        let mut table = FlowTable::<Ip4Flow, u32>::new(settings, Tick(0)).unwrap();
        let mut worst = 0.0_f64;
        for n in 0..100_000 {
            table.insert(flow4(n), n, FOREVER, Tick(0)).unwrap();
            if n > 1000 && n % 1500 == 0 {
                let (flows, away) = table.index.check(&Hashed { entries: &table.entries, seed: &table.seed });
                worst = worst.max(away as f64 / flows as f64);
            }
        }
        assert!(worst < 0.01, "{worst}");
    }
}

/// Fuller buckets of larger keys: a third is not in the first bucket at worst, and none is refused either, at any size.
#[test]
fn no_flow_of_a_large_key_is_refused() {
    for seed in 0..40 {
        let settings = Settings::flows(20_000).seed(Seed::fixed(seed));
        let mut table = FlowTable::<Ip6Flow, u64>::new(settings, Tick(0)).unwrap();
        for n in 0..20_000 {
            table.insert(flow6(n), 0, FOREVER, Tick(0)).unwrap();
            if n % 1999 == 0 {
                let (flows, away) = table.index.check(&Hashed { entries: &table.entries, seed: &table.seed });
                assert!(away * 3 <= flows, "{away} of {flows}");
            }
        }
    }
}

#[test]
fn a_limit_of_bytes_is_kept_to_the_byte() {
    let one = FlowTable::<Ip4Flow, u32>::new(Settings::flows(1), Tick(0)).unwrap().usage().most_bytes;
    for bytes in [one, one + 1, one + 39, 20_000, 99_999, 100_000, 1 << 20] {
        let settings = Settings::flows(1 << 20).bytes(bytes);
        let mut table = FlowTable::<Ip4Flow, u32>::new(settings, Tick(0)).unwrap();
        let most = table.usage().most_flows;
        for n in 0..most {
            table.insert(flow4(n), n, FOREVER, Tick(0)).unwrap();
        }
        let usage = table.usage();
        assert!(usage.bytes <= bytes && usage.most_bytes == usage.bytes, "{usage:?}");
        assert!(bytes - usage.bytes < FlowTable::<Ip4Flow, u32>::ENTRY_BYTES + 64, "{usage:?}");
        let refused = table.insert(flow4(most), 0, FOREVER, Tick(0));
        assert_eq!(refused, Err(InsertError::Bytes { most: bytes, flows: most }));
        assert_eq!(table.usage().full, 1);
        let first = table.handle_of(flow4(0)).unwrap();
        table.remove(first).unwrap();
        assert!(table.insert(flow4(most), 0, FOREVER, Tick(0)).is_ok());
    }
}

#[test]
fn settings_out_of_bounds_are_refused_with_what_would_do() {
    let of = |settings| FlowTable::<Ip4Flow, u32>::new(settings, Tick(0)).map(|_| ()).unwrap_err();
    assert_eq!(of(Settings::flows(0)), TableError::Flows { asked: 0 });
    let many = Settings::MOST_FLOWS + 1;
    assert!(of(Settings::flows(many)).to_string().contains(&Settings::MOST_FLOWS.to_string()));
    let TableError::Bytes { least, .. } = of(Settings::flows(10).bytes(100)) else { panic!() };
    assert!(FlowTable::<Ip4Flow, u32>::new(Settings::flows(10).bytes(least), Tick(0)).is_ok());
    assert!(matches!(of(Settings::flows(10).bytes(least - 1)), TableError::Bytes { .. }));
    let long = Settings::LONGEST_TIMEOUT + 1;
    assert_eq!(of(Settings::flows(10).timeout(FOREVER, long)), TableError::Timeout { asked: long });
    let mut table = FlowTable::<Ip4Flow, u32>::new(Settings::flows(1), Tick(0)).unwrap();
    assert_eq!(table.change_timeout(FOREVER, long), Err(TableError::Timeout { asked: long }));
}

#[test]
fn what_a_table_may_take_is_taken_of_the_budget_and_given_back() {
    let settings = Settings::flows(1 << 28).bytes(usize::MAX);
    let Err(TableError::Memory { bytes, .. }) = FlowTable::<[u64; 8], [u64; 64]>::new(settings, Tick(0))
    else {
        panic!("a machine with 150 GB");
    };
    assert!(bytes > 140 << 30);
}

/// A million come and go; memory is that of the most there were at once.
#[test]
fn flows_that_come_and_go_leave_nothing_behind() {
    const AT_ONCE: u32 = 5_000;
    let settings = Settings::flows(3 * AT_ONCE).timeout(Timeout::new(1), 3);
    let mut table = FlowTable::<Ip4Flow, u32>::new(settings, Tick(0)).unwrap();
    let mut bytes = 0;
    let (mut expired, mut removed) = (0, 0);
    for round in 0..200 {
        let now = Tick(round.into());
        for n in 0..AT_ONCE {
            let (flow, timeout) = (flow4(round * AT_ONCE + n), Timeout::new(n as u8 & 1));
            table.insert(flow, n, timeout, now).unwrap();
        }
        // Of one half each is ended by hand, the other by time, three rounds later.
        let mut sweep = Sweep::default();
        let even = |_: &Ip4Flow, n: &mut u32| {
            if n.is_multiple_of(2) { SweepAction::Remove } else { SweepAction::Keep }
        };
        removed += table.sweep(&mut sweep, usize::MAX, even).removed;
        expired += table.expire(now, usize::MAX, |_, n| assert_eq!(n % 2, 1)).removed;
        if round == 5 {
            bytes = table.usage().bytes;
            check(&table);
        }
    }
    assert_eq!(table.usage().bytes, bytes, "no byte more after the first rounds");
    expired += table.expire(Tick(1000), usize::MAX, |_, _| {}).removed;
    assert_eq!((expired, removed, table.len()), (500_000, 500_000, 0));
    check(&table);
    let used: u32 =
        (0..table.index.len()).map(|at| table.index.bucket(at).unwrap().used().count_ones()).sum();
    assert_eq!(used, 0, "of {PLACES} places of each bucket");
}

/// A place is used again and again; each flow there has a handle of its own.
#[test]
fn a_handle_never_names_a_later_flow() {
    let mut table = FlowTable::<Ip4Flow, u32>::new(Settings::flows(1), Tick(0)).unwrap();
    let mut old = Vec::new();
    for n in 0..1000 {
        let handle = table.insert(flow4(n), n, FOREVER, Tick(0)).unwrap();
        assert_eq!(handle.index(), 0);
        assert!(old.iter().all(|&old| table.get(old).is_none() && old != handle));
        table.remove(handle).unwrap();
        assert_eq!(table.get(handle), None);
        old.push(handle);
    }
    // The last life of a place: it is given up, and the table says that it is full.
    table.entries[0].generation = u32::MAX - 1;
    let last = table.insert(flow4(0), 0, FOREVER, Tick(0)).unwrap();
    table.remove(last).unwrap();
    assert_eq!((table.get(last), table.len()), (None, 0));
    assert_eq!(table.insert(flow4(0), 0, FOREVER, Tick(0)), Err(InsertError::Flows { most: 1 }));
}

/// A feature whose flow ends by another flow's packets, too.
#[test]
fn a_flow_that_is_due_ends_or_goes_on_as_the_feature_says() {
    const SECONDS: Timeout = Timeout::new(1);
    let settings = Settings::flows(100).timeout(SECONDS, 10);
    let mut table = FlowTable::<[u64; 1], u32>::new(settings, Tick(0)).unwrap();
    let kept = table.insert([1], 0, SECONDS, Tick(0)).unwrap();
    let gone = table.insert([2], 0, SECONDS, Tick(0)).unwrap();
    let mut most = 100;
    assert_eq!(table.next_due(Tick(9), &mut most), None);
    assert_eq!((table.age(kept, Tick(9)), table.handle_at(kept.index())), (Some(9), Some(kept)));
    let mut due = Vec::new();
    let mut most = 100;
    while let Some(handle) = table.next_due(Tick(10), &mut most) {
        due.push(handle);
        if handle == kept {
            table.restart(handle, Tick(7));
        } else {
            table.remove(handle);
        }
    }
    due.sort_by_key(|handle| handle.index());
    assert_eq!((due, table.len(), most < 100), (vec![kept, gone], 1, true));
    assert_eq!((table.age(kept, Tick(10)), table.handle_at(gone.index())), (Some(3), None));
    let mut most = 100;
    assert_eq!(table.next_due(Tick(16), &mut most), None);
    assert_eq!(table.next_due(Tick(17), &mut most), Some(kept));
    // No look is left: what is due stays due.
    table.restart(kept, Tick(0));
    assert_eq!(table.next_due(Tick(18), &mut 0), None);
    assert_eq!(table.next_due(Tick(18), &mut 100), Some(kept));
}
