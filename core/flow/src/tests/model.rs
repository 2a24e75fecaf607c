//! A table against a hash map with time.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::sample::Index;

use super::check;
use crate::{FlowTable, Handle, InsertError, Search, Seed, Settings, Sweep, SweepAction, Tick, Timeout};

type Key = [u64; 2];
const TIMEOUTS: [u32; 3] = [5, 300, 70_000];

#[derive(Clone, Debug)]
enum Step {
    /// So many flows of keys from this one on.
    Insert {
        from: u64,
        count: u64,
        timeout: u8,
    },
    /// Packets of so many keys from this one on, in stages.
    Packets {
        from: u64,
        count: u64,
    },
    Remove(Index),
    Touch(Index),
    SetTimeout(Index, u8),
    ChangeTimeout(u8, u32),
    /// Ends all flows whose key has this remainder, so many places at a time.
    Sweep {
        by: u64,
        most: usize,
    },
    /// Time passes; some timers are looked at, then the others.
    Expire {
        ticks: u64,
        most: usize,
    },
    /// A stale handle.
    Stale(Index),
}

fn step() -> impl Strategy<Value = Step> {
    let keys = 0..4000_u64;
    let index = any::<Index>;
    // Times of every magnitude: across slots and levels; a few pass the wrap of a stamp.
    let ticks = (0_u32..27, any::<u64>()).prop_map(|(bits, n)| n & ((1 << bits) - 1));
    prop_oneof![
        4 => (keys.clone(), 0..300_u64, 0..3_u8)
            .prop_map(|(from, count, timeout)| Step::Insert { from, count, timeout }),
        3 => (keys, 0..200_u64).prop_map(|(from, count)| Step::Packets { from, count }),
        2 => index().prop_map(Step::Remove),
        2 => index().prop_map(Step::Touch),
        2 => (index(), 0..3_u8).prop_map(|(which, timeout)| Step::SetTimeout(which, timeout)),
        1 => (0..3_u8, 1..100_000_u32).prop_map(|(timeout, ticks)| Step::ChangeTimeout(timeout, ticks)),
        1 => (1..6_u64, 1..500_usize).prop_map(|(by, most)| Step::Sweep { by, most }),
        2 => (ticks, 0..400_usize).prop_map(|(ticks, most)| Step::Expire { ticks, most }),
        1 => index().prop_map(Step::Stale),
    ]
}

struct Flow {
    value: u64,
    last: u64,
    timeout: u8,
    handle: Handle,
}

struct Model {
    flows: HashMap<Key, Flow>,
    timeouts: [u32; 3],
    now: u64,
    /// Those of flows that are gone.
    stale: Vec<Handle>,
}

impl Model {
    fn deadline(&self, flow: &Flow) -> u64 {
        flow.last + u64::from(self.timeouts[usize::from(flow.timeout)])
    }

    fn any(&self, which: Index) -> Option<Key> {
        let mut keys: Vec<_> = self.flows.keys().copied().collect();
        keys.sort_unstable();
        if keys.is_empty() { None } else { Some(keys[which.index(keys.len())]) }
    }

    fn gone(&mut self, key: Key, value: u64) {
        let flow = self.flows.remove(&key).expect("a flow ended that is not there");
        assert_eq!(flow.value, value);
        self.stale.push(flow.handle);
    }
}

fn key(n: u64) -> Key {
    [(n % 7) << 32 | 0x0a00_0001, n]
}

fn run(mut table: FlowTable<Key, u64>, start: u64, steps: Vec<Step>) {
    let most = table.usage().most_flows as usize;
    let mut model = Model { flows: HashMap::new(), timeouts: TIMEOUTS, now: start, stale: Vec::new() };
    for step in steps {
        let now = Tick(model.now);
        match step {
            Step::Insert { from, count, timeout } => {
                for n in from..from + count {
                    let (key, value, timeout_of) = (key(n), n * 3 + model.now, Timeout::new(timeout));
                    let full = table.usage().full;
                    match table.insert(key, value, timeout_of, now) {
                        Ok(handle) => {
                            assert!(model.flows.len() < most);
                            assert_eq!(table.key(handle), Some(&key));
                            let flow = Flow { value, last: model.now, timeout, handle };
                            assert!(model.flows.insert(key, flow).is_none());
                        }
                        Err(InsertError::Exists(handle)) => assert_eq!(model.flows[&key].handle, handle),
                        Err(InsertError::Flows { .. } | InsertError::Bytes { .. }) => {
                            assert!(model.flows.len() == most && !model.flows.contains_key(&key));
                            assert_eq!(table.usage().full, full + 1);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            }
            Step::Packets { from, count } => {
                let mut searches: Vec<Search<Key>> =
                    (from..from + count).map(|n| table.search(key(n))).collect();
                table.seek(&mut searches);
                for search in &searches {
                    let expected = model.flows.get_mut(search.key());
                    assert_eq!(table.peek(search).copied(), expected.as_ref().map(|flow| flow.value));
                    let found = table.find(search);
                    assert_eq!(found.as_ref().map(crate::Flow::handle), expected.as_ref().map(|f| f.handle));
                    if let (Some(mut found), Some(flow)) = (found, expected) {
                        found.touch(now);
                        *found.value_mut() += 1;
                        (flow.value, flow.last) = (flow.value + 1, model.now);
                    }
                }
            }
            Step::Remove(which) => {
                if let Some(key) = model.any(which) {
                    let flow = &model.flows[&key];
                    assert_eq!(table.remove(flow.handle), Some((key, flow.value)));
                    assert_eq!(table.handle_of(key), None);
                    model.gone(key, flow.value);
                }
            }
            Step::Touch(which) => {
                if let Some(key) = model.any(which) {
                    let flow = model.flows.get_mut(&key).unwrap();
                    flow.last = model.now;
                    assert!(table.touch(flow.handle, now));
                }
            }
            Step::SetTimeout(which, timeout) => {
                if let Some(key) = model.any(which) {
                    let flow = model.flows.get_mut(&key).unwrap();
                    (flow.last, flow.timeout) = (model.now, timeout);
                    assert!(table.set_timeout(flow.handle, Timeout::new(timeout), now));
                }
            }
            Step::ChangeTimeout(timeout, ticks) => {
                model.timeouts[usize::from(timeout)] = ticks;
                table.change_timeout(Timeout::new(timeout), ticks).unwrap();
                let mut sweep = Sweep::default();
                while !table.sweep(&mut sweep, 100, |_, _| SweepAction::Rearm).done {}
            }
            Step::Sweep { by, most } => {
                let mut sweep = Sweep::default();
                loop {
                    let before = sweep;
                    let swept = table.sweep(&mut sweep, most, |key, value| {
                        if key[1] % by != 0 {
                            return SweepAction::Keep;
                        }
                        model.gone(*key, *value);
                        SweepAction::Remove
                    });
                    if swept.done {
                        break;
                    }
                    assert_ne!(before, sweep, "it goes on");
                }
                assert!(model.flows.keys().all(|key| key[1] % by != 0));
            }
            Step::Expire { ticks, most } => {
                model.now += ticks;
                let (now, mut looks) = (Tick(model.now), most);
                loop {
                    let mut gone = Vec::new();
                    let expired = table.expire(now, looks, |key, value| gone.push((*key, value)));
                    assert_eq!(expired.removed, gone.len());
                    assert!(gone.len() <= looks);
                    for (key, value) in gone {
                        assert!(model.deadline(&model.flows[&key]) <= model.now, "{key:?} ended early");
                        model.gone(key, value);
                    }
                    if expired.done {
                        break;
                    }
                    looks = 1000;
                }
                let late = model.flows.values().filter(|flow| model.deadline(flow) <= model.now).count();
                assert_eq!(late, 0, "flows that should have ended");
            }
            Step::Stale(which) if !model.stale.is_empty() => {
                let handle = model.stale[which.index(model.stale.len())];
                assert_eq!((table.get(handle), table.key(handle)), (None, None));
                assert_eq!(table.get_mut(handle), None);
                assert_eq!(table.remove(handle), None);
                assert!(!table.touch(handle, now) && !table.set_timeout(handle, Timeout::new(0), now));
                assert_eq!(Handle::from_bits(handle.to_bits()), Some(handle));
            }
            Step::Stale(_) => {}
        }
        assert_eq!(table.len(), model.flows.len());
        assert_eq!(table.is_empty(), model.flows.is_empty());
        let earliest = model.flows.values().map(|flow| model.deadline(flow)).min();
        match (table.next_expiry(), earliest) {
            (Some(Tick(next)), Some(earliest)) => assert!(next <= earliest.max(model.now)),
            (next, earliest) => assert_eq!((next.is_none(), earliest), (true, None)),
        }
        check(&table);
    }
    for (key, flow) in &model.flows {
        assert_eq!(table.handle_of(*key), Some(flow.handle));
        assert_eq!(table.get(flow.handle), Some(&flow.value));
    }
}

proptest! {
    #[test]
    fn a_table_is_a_map_whose_flows_end_in_time(
        seed in any::<u64>(),
        start in prop_oneof![Just(0), Just((1 << 28) - 50), 0..1_u64 << 40],
        flows in prop_oneof![Just(100_000_u32), 1..1500_u32],
        spare in 0..200_000_usize,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut settings = Settings::flows(flows).seed(Seed::fixed(seed));
        if spare % 3 == 0 {
            settings = settings.bytes(10_000 + spare);
        }
        for (number, ticks) in (0..).zip(TIMEOUTS) {
            settings = settings.timeout(Timeout::new(number), ticks);
        }
        run(FlowTable::new(settings, Tick(start)).unwrap(), start, steps);
    }
}
