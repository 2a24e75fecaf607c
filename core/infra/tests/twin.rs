//! Twin cells and tables.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use shoal_infra::{Reader, StoreError, TwinCell, TwinTable, twin_cell};

#[test]
fn index_and_first_copy_share_a_cache_line() {
    assert_eq!(size_of::<TwinCell<[u64; 7]>>(), 128);
    assert_eq!(align_of::<TwinCell<[u64; 7]>>(), 64);
    assert_eq!(size_of::<TwinCell<[u32; 7]>>(), 64);
}

#[test]
fn a_reference_keeps_its_value_across_one_store() {
    let (cell, mut writer) = twin_cell([1_u64; 7]);
    let reader = Reader::register();
    let before = cell.load(reader.guard());
    writer.store([2; 7]).unwrap();
    assert_eq!(before, &[1; 7]);
    assert_eq!(cell.load(reader.guard()), &[2; 7]);
    assert_eq!(writer.get(), &[2; 7]);
    // The third value needs the copy that `before` points to.
    assert!(writer.store([3; 7]).is_err());
    assert_eq!(before, &[1; 7]);
    drop(reader);
    writer.store([3; 7]).unwrap();
    assert_eq!(writer.get(), &[3; 7]);
}

#[test]
fn slots_never_written_and_slots_out_of_range_are_zero() {
    let (table, mut writer) = TwinTable::<[u32; 4]>::with_capacity(1 << 20).unwrap();
    writer.store(5, [9; 4]).unwrap();
    let reader = Reader::register();
    assert_eq!(table.load(5, reader.guard()), &[9; 4]);
    assert_eq!(table.load(6, reader.guard()), &[0; 4]);
    assert_eq!(table.load(usize::MAX, reader.guard()), &[0; 4]);
    assert_eq!(writer.get(5), Some(&[9; 4]));
    assert_eq!(writer.get(1 << 20), None);
    drop(reader);
    let error = writer.store(1 << 20, [1; 4]).unwrap_err();
    assert!(matches!(error, StoreError::OutOfRange { .. }), "{error}");
}

#[test]
fn a_batch_with_one_bad_slot_stores_nothing() {
    let (_table, mut writer) = TwinTable::<u64>::with_capacity(4).unwrap();
    assert!(writer.store_many([(0, 1), (9, 1)]).is_err());
    assert_eq!(writer.get(0), Some(&0));
    writer.store_many([(0, 1), (2, 3), (0, 2)]).unwrap();
    assert_eq!(writer.get(0), Some(&2));
    assert_eq!(writer.get(2), Some(&3));
}

#[test]
fn readers_never_see_a_torn_value() {
    let (table, mut writer) = TwinTable::<[u64; 7]>::with_capacity(64).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (table, stop) = (table.clone(), Arc::clone(&stop));
            thread::spawn(move || {
                let mut reader = Reader::register();
                let mut last = [0; 64];
                while !stop.load(Ordering::Relaxed) {
                    for (slot, last) in last.iter_mut().enumerate() {
                        let value = table.load(slot, reader.guard());
                        let [first, rest @ ..] = value;
                        assert!(rest.iter().all(|word| word == first), "{value:?}");
                        assert!(*first >= *last);
                        *last = *first;
                    }
                    reader.quiescent();
                }
            })
        })
        .collect();
    for value in 1..2_000_u64 {
        writer.store_many((0..64).map(|slot| (slot, [value; 7]))).unwrap();
        writer.store(7, [value; 7]).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
}
