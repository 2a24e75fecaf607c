//! The SPSC ring.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use shoal_infra::spsc::ring;

proptest! {
    #[test]
    fn behaves_as_a_bounded_queue(capacity in 1_usize..9, pushes in prop::collection::vec(any::<bool>(), 0..200)) {
        let (mut producer, mut consumer) = ring(capacity);
        let mut model = VecDeque::new();
        for (n, push) in pushes.into_iter().enumerate() {
            if push {
                let expected = if model.len() < capacity { model.push_back(n); Ok(()) } else { Err(n) };
                prop_assert_eq!(producer.push(n), expected);
            } else {
                prop_assert_eq!(consumer.pop(), model.pop_front());
            }
            prop_assert_eq!(producer.len(), model.len());
            prop_assert_eq!(consumer.len(), model.len());
        }
    }
}

#[test]
fn dropping_the_ring_drops_its_contents() {
    let token = Arc::new(());
    let (mut producer, mut consumer) = ring(8);
    for _ in 0..6 {
        producer.push(Arc::clone(&token)).unwrap();
    }
    drop(consumer.pop());
    assert_eq!(Arc::strong_count(&token), 6);
    drop(consumer);
    assert!(producer.is_abandoned());
    drop(producer);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn values_cross_threads_in_order() {
    let (mut producer, mut consumer) = ring(64);
    let sender = thread::spawn(move || {
        for mut n in 0..200_000_u64 {
            while let Err(back) = producer.push(n) {
                n = back;
                thread::yield_now();
            }
        }
    });
    let mut expected = 0;
    while expected < 200_000 {
        match consumer.pop() {
            Some(n) => {
                assert_eq!(n, expected);
                expected += 1;
            }
            None => thread::yield_now(),
        }
    }
    sender.join().unwrap();
}
