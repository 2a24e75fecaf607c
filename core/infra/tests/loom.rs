//! Every interleaving of the lock-free pieces.
//! `RUSTFLAGS="--cfg loom" cargo test -p shoal-infra --release --test loom`
#![cfg(loom)]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;
use shoal_infra::qsbr::{Grace, Published, Reader, reclaim, retire, synchronize};
use shoal_infra::spsc::ring;
use shoal_infra::{Shares, twin_cell};

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

#[test]
fn loom_spsc_moves_each_value_once_in_order() {
    model(|| {
        let (mut producer, mut consumer) = ring::<Box<u32>>(2);
        let sender = thread::spawn(move || {
            for mut n in (0..3).map(Box::new) {
                while let Err(back) = producer.push(n) {
                    n = back;
                    thread::yield_now();
                }
            }
        });
        let mut expected = 0;
        while expected < 2 {
            match consumer.pop() {
                Some(n) => {
                    assert_eq!(*n, expected);
                    expected += 1;
                }
                None => thread::yield_now(),
            }
        }
        sender.join().unwrap();
        // The third value is dropped with the ring.
    });
}

struct Canary {
    freed: Arc<AtomicBool>,
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.freed.store(true, Ordering::Relaxed);
    }
}

fn canary() -> (Canary, Arc<AtomicBool>) {
    let freed = Arc::new(AtomicBool::new(false));
    let canary = Canary { freed: Arc::clone(&freed) };
    (canary, freed)
}

#[test]
fn loom_a_loaded_value_is_not_freed_before_the_quiescent_point() {
    model(|| {
        let (first, freed) = canary();
        let published = Arc::new(Published::new(first));
        let shared = Arc::clone(&published);
        let worker = thread::spawn(move || {
            let mut reader = Reader::register();
            for _ in 0..2 {
                let seen = shared.load(reader.guard());
                thread::yield_now();
                assert!(!seen.freed.load(Ordering::Relaxed));
                reader.quiescent();
            }
        });
        published.replace(canary().0);
        reclaim();
        reclaim();
        worker.join().unwrap();
        drop(published);
        while !freed.load(Ordering::Relaxed) {
            reclaim();
        }
        reclaim();
    });
}

#[test]
fn loom_a_reader_that_comes_online_is_waited_for() {
    model(|| {
        let (first, _freed) = canary();
        let published = Arc::new(Published::new(first));
        let shared = Arc::clone(&published);
        let worker = thread::spawn(move || {
            let mut reader = Reader::register();
            reader.offline();
            reader.online();
            let seen = shared.load(reader.guard());
            thread::yield_now();
            assert!(!seen.freed.load(Ordering::Relaxed));
            reader.offline();
        });
        published.replace(canary().0);
        synchronize().unwrap();
        reclaim();
        worker.join().unwrap();
        drop(published);
        reclaim();
    });
}

#[test]
fn loom_a_twin_copy_is_not_overwritten_while_it_is_read() {
    model(|| {
        let (cell, mut writer) = twin_cell(0_u32);
        let worker = thread::spawn(move || {
            let mut reader = Reader::register();
            let seen = cell.load(reader.guard());
            let first = *seen;
            thread::yield_now();
            assert_eq!(first, *seen);
            reader.quiescent();
            let later = *cell.load(reader.guard());
            assert!(later >= first);
        });
        writer.store(1).unwrap();
        writer.store(2).unwrap();
        worker.join().unwrap();
    });
}

/// The trie's way of publishing, in small: a root of one slot and one ply of two, which serves two prefixes in turn. The
/// trie itself is mapped memory, which loom does not know.
#[test]
fn loom_a_recycled_ply_is_never_found_by_a_lookup_of_before() {
    const PLY: u32 = 1;
    model(|| {
        let leaf = |value: u32| value << 1;
        let (root, other) = (Arc::new(AtomicU32::new(leaf(5))), AtomicU32::new(leaf(0)));
        let ply = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let (shared_root, shared_ply) = (Arc::clone(&root), Arc::clone(&ply));
        let worker = thread::spawn(move || {
            let mut reader = Reader::register();
            for _ in 0..2 {
                let mut entry = shared_root.load(Ordering::Acquire);
                if entry == PLY {
                    entry = shared_ply[1].load(Ordering::Acquire);
                }
                assert!([leaf(5), leaf(7)].contains(&entry), "{entry}");
                reader.quiescent();
            }
        });
        // A longer prefix comes: the ply is filled, then linked.
        ply[0].store(leaf(5), Ordering::Release);
        ply[1].store(leaf(7), Ordering::Release);
        root.store(PLY, Ordering::Release);
        // It goes: the ply is unlinked, and serves another prefix only when readers have left it.
        root.store(leaf(5), Ordering::Release);
        let free = Arc::new(AtomicBool::new(false));
        let freed = Arc::clone(&free);
        retire(move || freed.store(true, Ordering::Relaxed));
        reclaim();
        reclaim();
        if free.load(Ordering::Relaxed) {
            ply[0].store(leaf(9), Ordering::Release);
            ply[1].store(leaf(9), Ordering::Release);
            other.store(PLY, Ordering::Release);
        }
        worker.join().unwrap();
        reclaim();
    });
}

/// A balance's record names a block of buckets; another record replaces it, and the block serves another balance when
/// packets have left it.
#[test]
fn loom_a_balance_s_buckets_are_its_own_until_packets_have_left_them() {
    model(|| {
        // Two blocks of one bucket; the record is the number of its block.
        let buckets = Arc::new([AtomicU32::new(10), AtomicU32::new(0)]);
        let (cell, mut writer) = twin_cell(0_usize);
        let shared = Arc::clone(&buckets);
        let worker = thread::spawn(move || {
            let mut reader = Reader::register();
            for _ in 0..2 {
                let block = *cell.load(reader.guard());
                thread::yield_now();
                let member = shared[block].load(Ordering::Acquire);
                assert!([10, 11].contains(&member), "{member}");
                reader.quiescent();
            }
        });
        // The new block is written before the record that names it.
        buckets[1].store(11, Ordering::Release);
        writer.store(1).unwrap();
        let grace = Grace::start();
        if grace.is_over() {
            buckets[0].store(99, Ordering::Release);
        }
        worker.join().unwrap();
    });
}

/// Something shared, which watches its readers and writers.
struct Common {
    shares: Shares,
    bytes: UnsafeCell<u32>,
}

impl Common {
    fn of(count: u32) -> Arc<Common> {
        Arc::new(Common { shares: Shares::new(count), bytes: UnsafeCell::new(0) })
    }

    /// Reads, and gives a share up; writes, if it was the last.
    fn leave(&self) -> bool {
        self.bytes.with(|_| ());
        let last = self.shares.release();
        if last {
            self.bytes.with_mut(|_| ());
        }
        last
    }
}

#[test]
fn loom_shares_one_of_all_is_the_last_and_no_thread_reads_what_it_writes() {
    model(|| {
        let common = Common::of(1);
        common.shares.add();
        common.shares.add();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let common = Arc::clone(&common);
                thread::spawn(move || common.leave())
            })
            .collect();
        let mut last = usize::from(common.leave());
        for other in others {
            last += usize::from(other.join().unwrap());
        }
        assert_eq!(last, 1);
    });
}

#[test]
fn loom_shares_who_has_the_only_one_may_write() {
    model(|| {
        let common = Common::of(2);
        let other = {
            let common = Arc::clone(&common);
            thread::spawn(move || common.leave())
        };
        common.bytes.with(|_| ());
        let alone = common.shares.is_last();
        if alone {
            common.bytes.with_mut(|_| ());
        }
        let last = common.leave();
        assert!(last != other.join().unwrap() && (!alone || last));
    });
}
