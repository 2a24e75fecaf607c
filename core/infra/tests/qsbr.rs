//! Behaviour of the reclamation domain. The domain is one per process and tests share it, so each
//! test waits for its own effects with a deadline.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use shoal_infra::qsbr::{
    Grace, MOST_WAITING, OwnReaderOnline, Published, Reader, admit, pending, reclaim, retire, synchronize,
};
use shoal_infra::{StoreError, TwinTable};

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::yield_now();
    }
}

#[test]
fn synchronize_refuses_while_the_own_reader_is_online() {
    let mut reader = Reader::register();
    assert_eq!(synchronize(), Err(OwnReaderOnline));
    reader.offline();
    assert_eq!(synchronize(), Ok(()));
    let _ = reader.guard();
    assert!(reader.is_online(), "a guard brings its reader online");
    assert_eq!(synchronize(), Err(OwnReaderOnline));
    drop(reader);
    assert_eq!(synchronize(), Ok(()));
}

#[test]
fn quiescent_leaves_an_offline_reader_offline() {
    let mut reader = Reader::register();
    reader.offline();
    reader.quiescent();
    assert!(!reader.is_online());
}

#[test]
fn a_grace_period_ends_only_after_the_reader_was_quiescent() {
    let (to_reader, orders) = channel::<()>();
    let (done, answers) = channel();
    let worker = thread::spawn(move || {
        let mut reader = Reader::register();
        done.send(()).unwrap();
        while orders.recv().is_ok() {
            reader.quiescent();
            done.send(()).unwrap();
        }
    });
    answers.recv().unwrap();
    let grace = Grace::start();
    assert!(!grace.is_over());
    to_reader.send(()).unwrap();
    answers.recv().unwrap();
    eventually("grace", || grace.is_over());
    drop(to_reader);
    worker.join().unwrap();
}

#[test]
fn retired_garbage_waits_for_the_reader() {
    let freed = Arc::new(AtomicBool::new(false));
    let mut reader = Reader::register();
    let flag = Arc::clone(&freed);
    retire(move || flag.store(true, Ordering::SeqCst));
    reclaim();
    reclaim();
    assert!(!freed.load(Ordering::SeqCst));
    assert!(pending() > 0);
    eventually("garbage is freed", || {
        reader.quiescent();
        reclaim();
        freed.load(Ordering::SeqCst)
    });
}

#[test]
fn garbage_may_retire_more_garbage() {
    let freed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&freed);
    retire(move || retire(move || flag.store(true, Ordering::SeqCst)));
    eventually("nested garbage is freed", || {
        reclaim();
        freed.load(Ordering::SeqCst)
    });
}

struct Canary {
    value: u64,
    live: Arc<AtomicUsize>,
    poison: AtomicU64,
}

impl Canary {
    fn new(value: u64, live: &Arc<AtomicUsize>) -> Self {
        live.fetch_add(1, Ordering::SeqCst);
        let poison = AtomicU64::new(0);
        Canary { value, live: Arc::clone(live), poison }
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.poison.store(u64::MAX, Ordering::SeqCst);
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_reference_survives_the_drop_of_its_published() {
    let live = Arc::new(AtomicUsize::new(0));
    let reader = Reader::register();
    let published = Published::new(Canary::new(7, &live));
    let seen = published.load(reader.guard());
    published.replace(Canary::new(8, &live));
    assert_eq!(published.get().value, 8);
    drop(published);
    reclaim();
    assert_eq!(seen.value, 7);
    assert_eq!(seen.poison.load(Ordering::SeqCst), 0);
    drop(reader);
    eventually("all values are freed", || {
        reclaim();
        live.load(Ordering::SeqCst) == 0
    });
}

#[test]
fn readers_never_see_a_freed_value() {
    let live = Arc::new(AtomicUsize::new(0));
    let published = Arc::new(Published::new(Canary::new(0, &live)));
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|n| {
            let (published, stop) = (Arc::clone(&published), Arc::clone(&stop));
            thread::spawn(move || {
                let mut reader = Reader::register();
                let mut last = 0;
                let mut loops = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    let canary = published.load(reader.guard());
                    assert_eq!(canary.poison.load(Ordering::Relaxed), 0);
                    assert!(canary.value >= last);
                    last = canary.value;
                    loops += 1;
                    match loops % (64 + n) {
                        0 => {
                            reader.offline();
                            thread::yield_now();
                            reader.online();
                        }
                        _ => reader.quiescent(),
                    }
                }
            })
        })
        .collect();
    for value in 1..5_000 {
        published.replace(Canary::new(value, &live));
        if value % 16 == 0 {
            reclaim();
        }
        if value % 512 == 0 {
            synchronize().unwrap();
        }
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    drop(published);
    eventually("all values are freed", || {
        reclaim();
        live.load(Ordering::SeqCst) == 0
    });
}

/// Runs a thread whose reader is online and does not move until told.
fn stuck(name: &str) -> (std::sync::mpsc::Sender<()>, thread::JoinHandle<()>) {
    let (release, wait) = channel::<()>();
    let (there, begun) = channel();
    let hold = move || {
        let reader = Reader::register();
        there.send(()).unwrap();
        // An end of the channel lets it go, too.
        let _ = wait.recv();
        drop(reader);
    };
    let thread = thread::Builder::new().name(name.into()).spawn(hold).unwrap();
    begun.recv().unwrap();
    (release, thread)
}

/// In a process of its own: a reader that does not move would hold up the tests beside it.
fn alone(test: &str) -> bool {
    const ALONE: &str = "SHOAL_QSBR_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--nocapture", "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

#[test]
fn a_reader_that_does_not_move_is_given_a_moment_once() {
    if !alone("a_reader_that_does_not_move_is_given_a_moment_once") {
        return;
    }
    let (release, thread) = stuck("held");
    let begun = Instant::now();
    assert_eq!(Grace::start().soon(), Ok(false));
    assert!(begun.elapsed() >= Duration::from_millis(1));
    // Ten thousand moments would be ten seconds.
    let begun = Instant::now();
    for _ in 0..10_000 {
        assert_eq!(Grace::start().soon(), Ok(false));
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    release.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!(Grace::start().soon(), Ok(true));
}

#[test]
fn so_many_changes_wait_for_a_reader_and_no_more() {
    if !alone("so_many_changes_wait_for_a_reader_and_no_more") {
        return;
    }
    let live = Arc::new(AtomicUsize::new(0));
    let published = Published::new(Canary::new(0, &live));
    let (release, thread) = stuck("held");
    let mut made = 0;
    let refusal = loop {
        match admit() {
            Ok(()) => published.replace(Canary::new(made, &live)),
            Err(refusal) => break refusal,
        }
        made += 1;
        assert!(made <= MOST_WAITING, "{made} changes");
    };
    assert_eq!((made, refusal.thread.as_str()), (MOST_WAITING, "held"));
    assert!(refusal.to_string().contains("thread held does not move"), "{refusal}");
    // Epochs count, too: what was not retired but waits for its grace period.
    assert!(admit().is_err());
    assert_eq!(live.load(Ordering::SeqCst) as u64, MOST_WAITING + 1);
    release.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!(admit(), Ok(()));
    eventually("all values but one are freed", || {
        reclaim();
        live.load(Ordering::SeqCst) == 1
    });
}

#[test]
fn while_a_reader_does_not_move_stores_take_spare_copies_and_give_them_back() {
    if !alone("while_a_reader_does_not_move_stores_take_spare_copies_and_give_them_back") {
        return;
    }
    const SLOTS: usize = 3;
    let (table, mut writer) = TwinTable::<[u64; 7]>::with_capacity(SLOTS).unwrap();
    let (told, wait) = channel::<()>();
    let (seen, values) = channel();
    let stuck = table.clone();
    let thread = thread::spawn(move || {
        let reader = Reader::register();
        let first = stuck.load(1, reader.guard());
        seen.send(*first).unwrap();
        wait.recv().unwrap();
        // Whatever was stored meanwhile, this reference holds.
        seen.send(*first).unwrap();
        wait.recv().unwrap();
    });
    assert_eq!(values.recv().unwrap(), [0; 7]);
    // Each value lives somewhere else, and what others read is the last one.
    let mut moving = Reader::register();
    for round in 1..=1000_u64 {
        moving.offline();
        for slot in 0..SLOTS {
            writer.store(slot, [round * 10 + slot as u64; 7]).unwrap();
        }
        moving.online();
        for slot in 0..SLOTS {
            let want = [round * 10 + slot as u64; 7];
            assert_eq!((table.load(slot, moving.guard()), writer.get(slot)), (&want, Some(&want)));
        }
        moving.quiescent();
    }
    moving.offline();
    assert_eq!(table.load(SLOTS, moving.guard()), &[0; 7], "spare copies belong to no slot");
    moving.offline();
    // No more than there are: all or none.
    let refused = loop {
        if let Err(refused) = writer.store_many([(0, [1; 7]), (2, [1; 7])]) {
            break refused;
        }
    };
    assert!(matches!(refused, StoreError::Stuck { .. }), "{refused}");
    assert!(writer.store_many([(0, [2; 7]), (2, [2; 7])]).is_err());
    assert_eq!((writer.get(0), writer.get(2)), (Some(&[1; 7]), Some(&[1; 7])));
    told.send(()).unwrap();
    assert_eq!(values.recv().unwrap(), [0; 7]);
    told.send(()).unwrap();
    thread.join().unwrap();
    // It moves: the slots' own copies are used again, and spare ones, too, by the next that needs them.
    for n in 0..10 {
        writer.store(0, [n; 7]).unwrap();
        assert_eq!(writer.get(0), Some(&[n; 7]));
    }
}
