//! Pool, bitmap and timer wheel against simple models.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use shoal_infra::{Bitmap, Handle, Pool, PoolFull, TimerWheel};

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Cancel(prop::sample::Index),
    Restart(prop::sample::Index, u64),
    Advance(u64, usize),
}

/// Distances of every magnitude.
fn distance() -> impl Strategy<Value = u64> {
    (0_u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => distance().prop_map(Step::Insert),
        1 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        1 => (any::<prop::sample::Index>(), distance()).prop_map(|(i, d)| Step::Restart(i, d)),
        2 => (distance(), 1_usize..9).prop_map(|(distance, most)| Step::Advance(distance, most)),
    ]
}

proptest! {
    #[test]
    fn wheel_expires_each_timer_at_its_deadline(
        start in any::<u64>(),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut wheel = TimerWheel::new(start);
        let mut model = BTreeMap::new();
        let mut handles = Vec::new();
        let mut now = start;
        for step in steps {
            match step {
                Step::Insert(distance) => {
                    // Both ways around now, so that some are late.
                    let deadline = now.wrapping_add(distance);
                    let name = handles.len();
                    handles.push(wheel.insert(deadline, name).unwrap());
                    model.insert(name, deadline);
                }
                Step::Cancel(which) if !handles.is_empty() => {
                    let name = which.index(handles.len());
                    let expected = model.remove(&name).map(|_| name);
                    prop_assert_eq!(wheel.cancel(handles[name]), expected);
                }
                Step::Restart(which, distance) if !handles.is_empty() => {
                    let name = which.index(handles.len());
                    let deadline = now.saturating_add(distance);
                    let running = model.contains_key(&name);
                    prop_assert_eq!(wheel.restart(handles[name], deadline), running);
                    if running {
                        model.insert(name, deadline);
                    }
                }
                Step::Advance(distance, most) => {
                    now = now.saturating_add(distance >> 1);
                    let mut expired = BTreeSet::new();
                    // In steps, between which a timer is started.
                    let mut done = false;
                    while !done {
                        let before = expired.len();
                        done = wheel.advance_some(now, most, |name| { expired.insert(name); });
                        prop_assert!(expired.len() - before <= most);
                        if !done && handles.len() < 200 {
                            let name = handles.len();
                            handles.push(wheel.insert(now.saturating_add(distance), name).unwrap());
                            model.insert(name, now.saturating_add(distance));
                        }
                    }
                    let expected: BTreeSet<_> =
                        model.iter().filter(|&(_, &at)| at <= now).map(|(&name, _)| name).collect();
                    model.retain(|_, at| *at > now);
                    prop_assert_eq!(expired, expected);
                }
                _ => {}
            }
            prop_assert_eq!(wheel.len(), model.len());
            let earliest = model.values().min().map(|&at| at.max(now));
            match (wheel.next_event(), earliest) {
                (Some(event), Some(earliest)) => prop_assert!(event <= earliest && event >= now),
                (event, earliest) => prop_assert_eq!(event, earliest),
            }
        }
    }

    #[test]
    fn pool_handles_name_one_object_only(steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..100)) {
        let mut pool = Pool::new();
        let mut all: Vec<(Handle<usize>, Option<usize>)> = Vec::new();
        for (n, (insert, which)) in steps.into_iter().enumerate() {
            if insert || all.is_empty() {
                all.push((pool.insert(n).unwrap(), Some(n)));
            } else {
                let at = which.index(all.len());
                prop_assert_eq!(pool.remove(all[at].0), all[at].1.take());
            }
            for &(handle, value) in &all {
                prop_assert_eq!(pool.get(handle).copied(), value);
                prop_assert_eq!(Handle::from_bits(handle.to_bits()), Some(handle));
            }
            let live = all.iter().filter(|(_, value)| value.is_some()).count();
            prop_assert_eq!((pool.len(), pool.iter().count()), (live, live));
        }
    }

    #[test]
    fn bitmap_is_a_set(steps in prop::collection::vec((any::<bool>(), 0_u32..300), 0..200)) {
        let mut bitmap = Bitmap::new();
        let mut model = BTreeSet::new();
        for (set, bit) in steps {
            if set {
                prop_assert_eq!(bitmap.set(bit), model.insert(bit));
            } else {
                prop_assert_eq!(bitmap.clear(bit), model.remove(&bit));
            }
            prop_assert!(bitmap.iter().eq(model.iter().copied()));
            prop_assert_eq!(bitmap.first_clear(), (0..=300).find(|bit| !model.contains(bit)));
            prop_assert_eq!((bitmap.len(), bitmap.is_empty()), (model.len(), model.is_empty()));
            prop_assert_eq!(bitmap.contains(bit), model.contains(&bit));
            prop_assert_eq!(&bitmap, &model.iter().copied().collect::<Bitmap>());
        }
    }
}

#[test]
fn a_pool_stops_at_its_limit() {
    let mut pool = Pool::with_limit(1);
    let only = pool.insert('a').unwrap();
    assert_eq!(pool.insert('b'), Err(PoolFull { limit: 1 }));
    assert_eq!(pool.remove(only), Some('a'));
    let again = pool.insert('b').unwrap();
    assert_eq!(again.index(), only.index());
    assert_ne!(again, only);
    assert_eq!(pool.handle_at(0), Some(again));
}

#[test]
fn a_timer_for_the_last_tick_expires_then() {
    let mut wheel = TimerWheel::new(0);
    wheel.insert(u64::MAX, ()).unwrap();
    let mut expired = 0;
    wheel.advance(u64::MAX - 1, |()| expired += 1);
    assert_eq!(expired, 0);
    wheel.advance(u64::MAX, |()| expired += 1);
    assert_eq!(expired, 1);
}
