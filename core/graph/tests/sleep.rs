//! A thread that sleeps and wakes allocates nothing.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::os::fd::{AsRawFd, RawFd};

use nix::sys::eventfd::{EfdFlags, EventFd};
use shoal_buffer::{Pages, PoolConfig};
use shoal_graph::{Clock, FrameCx, Graph, GraphConfig, NoError, NoNext, RxMode, RxQueue};
use shoal_testkit::alloc::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Has nothing, and a descriptor that says otherwise: each sleep on it ends at once.
struct Restless(EventFd);

impl RxQueue for Restless {
    fn poll(&mut self, _: &mut FrameCx<'_>) -> usize {
        0
    }

    fn wait_fd(&self) -> Option<RawFd> {
        Some(self.0.as_raw_fd())
    }
}

#[test]
fn sleeping_allocates_nothing() {
    let buffers = PoolConfig { name: "test".into(), buffers: 64, most: 64, pages: Pages::Small };
    let graph = Graph::new(GraphConfig { buffers, stats_bytes: 1 << 24, clock: Clock::real() }).unwrap();
    let input = graph.add_input::<NoNext, NoError>("test-input").unwrap();
    graph.build().unwrap();
    for number in 0..3 {
        let queue = Restless(EventFd::from_value_and_flags(1, EfdFlags::EFD_NONBLOCK).unwrap());
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
