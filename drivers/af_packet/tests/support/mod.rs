//! Network namespaces that clean up after themselves, and a two-port forwarder made of the driver's
//! queues.
#![allow(dead_code)]

pub mod router;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use shoal_af_packet::{RxRing, TxQueue};
use shoal_vnet::VnetHdr;

pub fn sh(command: &str) {
    let status = Command::new("sh").args(["-ec", command]).status().unwrap();
    assert!(status.success(), "{command}");
}

/// Whether tests that need namespaces can run; says why not.
pub fn can_run(test: &str) -> bool {
    let reason = if !nix::unistd::geteuid().is_root() {
        "not root"
    } else if !Command::new("ip").arg("-V").output().is_ok_and(|o| o.status.success()) {
        "no iproute2"
    } else {
        return true;
    };
    println!("SKIP: {test}: {reason}");
    false
}

/// A named network namespace, removed with all that is in it.
pub struct Netns(pub String);

impl Netns {
    pub fn new(tag: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let ns = Self(format!("shoal-test-{}-{n}-{tag}", std::process::id()));
        sh(&format!("ip netns add {0}; ip -n {0} link set lo up", ns.0));
        ns
    }

    /// `ip -n NS ...`
    pub fn ip(&self, args: &str) {
        sh(&format!("ip -n {} {args}", self.0));
    }

    /// Runs `f` on a thread of its own inside the namespace.
    pub fn spawn<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let path = format!("/run/netns/{}", self.0);
        std::thread::spawn(move || {
            setns(std::fs::File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
            f()
        })
    }

    pub fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        self.spawn(f).join().unwrap()
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        Command::new("ip").args(["netns", "del", &self.0]).status().ok();
    }
}

/// Waits for a condition; true when it came before the deadline.
pub fn wait_for(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Waits until one of the rings is readable or has an error.
pub fn poll_rings(rings: &[&RxRing], ms: u16) -> PollFlags {
    let mut fds: Vec<_> = rings.iter().map(|r| PollFd::new(r.fd(), PollFlags::POLLIN)).collect();
    poll(&mut fds, PollTimeout::from(ms)).unwrap();
    fds.iter().filter_map(PollFd::revents).fold(PollFlags::empty(), |a, b| a | b)
}

/// What the forwarder saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub frames: u64,
    pub superframes: u64,
    pub partial_csums: u64,
    pub largest: usize,
    pub lost: u64,
}

/// Copies everything `rx` has to `tx`, in 2 KB segments as buffer chains are.
pub fn forward(rx: &mut RxRing, tx: &mut TxQueue, store: &mut Vec<u8>, seen: &mut Seen) -> usize {
    store.clear();
    let mut spans: Vec<(VnetHdr, usize, usize)> = Vec::with_capacity(64);
    while spans.len() < 64 {
        let Some(frame) = rx.next() else { break };
        assert!(!frame.is_truncated());
        let offload = frame.vnet.validate(&[frame.bytes]).unwrap();
        seen.frames += 1;
        seen.superframes += u64::from(offload.gso.is_some());
        seen.partial_csums += u64::from(frame.is_csum_not_ready());
        seen.largest = seen.largest.max(frame.bytes.len());
        spans.push((offload.into(), store.len(), frame.bytes.len()));
        store.extend_from_slice(frame.bytes);
    }
    let mut batch = tx.batch();
    let mut sent = 0;
    for (vnet, start, len) in &spans {
        if batch.push(*vnet, store[*start..start + len].chunks(2048)).is_err() {
            sent += batch.send().sent;
            batch = tx.batch();
            batch.push(*vnet, store[*start..start + len].chunks(2048)).unwrap();
        }
    }
    sent += batch.send().sent;
    seen.lost += (spans.len() - sent) as u64;
    spans.len()
}

/// Forwards between two ports until told to stop.
pub fn forwarder(mut a: (RxRing, TxQueue), mut b: (RxRing, TxQueue), stop: Arc<AtomicBool>) -> Seen {
    let (mut store, mut seen) = (Vec::with_capacity(8 << 20), Seen::default());
    while !stop.load(Ordering::Relaxed) {
        let moved = forward(&mut a.0, &mut b.1, &mut store, &mut seen)
            + forward(&mut b.0, &mut a.1, &mut store, &mut seen);
        if moved == 0 {
            poll_rings(&[&a.0, &b.0], 20);
        }
    }
    seen
}
