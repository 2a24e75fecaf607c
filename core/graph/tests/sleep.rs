//! A thread that sleeps and wakes allocates nothing, and sleeps so that its queues can wake it.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::os::fd::{AsFd as _, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use shoal_buffer::{Pages, PoolConfig};
use shoal_graph::clock::Time;
use shoal_graph::{Clock, FrameCx, Graph, GraphConfig, NoError, NoNext, RxMode, RxQueue};
use shoal_testkit::alloc::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Has nothing, and a descriptor that says otherwise: each sleep on it ends at once.
struct AlwaysReadable(EventFd);

impl RxQueue for AlwaysReadable {
    fn poll(&mut self, _: &mut FrameCx<'_>) -> usize {
        0
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

/// Has nothing, and tells how often it was asked what to wait for, which is before a sleep. Its descriptor, if it has
/// one, ends each sleep at once.
struct Asked(Arc<AtomicU32>, Option<EventFd>);

impl RxQueue for Asked {
    fn poll(&mut self, _: &mut FrameCx<'_>) -> usize {
        0
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.1.as_ref().map(EventFd::as_fd)
    }

    fn deadline(&self, _: Time) -> Option<Time> {
        self.0.fetch_add(1, Ordering::Relaxed);
        None
    }
}

fn graph(clock: Clock) -> Rc<Graph> {
    let buffers = PoolConfig { name: "test".into(), buffers: 64, most: 64, pages: Pages::Small };
    Graph::new(GraphConfig { buffers, stats_bytes: 1 << 24, clock }).unwrap()
}

/// How many rests of an adaptive queue's thread, in time ahead of it, do not end when the queue's descriptor says so.
fn deaf_rests(fd: Option<EventFd>) -> usize {
    let clock = Clock::manual();
    let graph = graph(clock.clone());
    let input = graph.add_input::<NoNext, NoError>("test-input").unwrap();
    graph.build().unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    graph.add_queue("test", 0, input, Some(0), Box::new(Asked(asked.clone(), fd))).unwrap();
    clock.advance(Duration::from_millis(1));
    graph
        .on_thread(0, move |worker| {
            (0..100)
                .take_while(|_| {
                    worker.round();
                    worker.rest(None, || true);
                    asked.load(Ordering::Relaxed) == 0
                })
                .count()
        })
        .unwrap()
}

#[test]
fn a_queue_that_can_wake_its_thread_always_can() {
    let fd = EventFd::from_value_and_flags(1, EfdFlags::EFD_NONBLOCK).unwrap();
    assert_eq!(deaf_rests(Some(fd)), 0);
}

#[test]
fn a_queue_that_cannot_is_looked_at_after_some_naps() {
    let naps = deaf_rests(None);
    assert!((1..20).contains(&naps), "{naps} naps");
}

#[test]
fn sleeping_allocates_nothing() {
    let graph = graph(Clock::real());
    let input = graph.add_input::<NoNext, NoError>("test-input").unwrap();
    graph.build().unwrap();
    for number in 0..3 {
        let queue = AlwaysReadable(EventFd::from_value_and_flags(1, EfdFlags::EFD_NONBLOCK).unwrap());
        let id = graph.add_queue("test", number, input, Some(0), Box::new(queue)).unwrap();
        graph.set_queue_mode(id, RxMode::Interrupt).unwrap();
    }
    let sleeps = |n: u32| {
        graph.on_thread(0, move |worker| {
            allocations(|| {
                for _ in 0..n {
                    worker.round();
                    worker.rest(None, || true);
                }
            })
        })
    };
    // The first sleep makes room for the queues' descriptors.
    sleeps(1).unwrap();
    assert_eq!(sleeps(100).unwrap(), 0, "allocations in 100 sleeps");
}
