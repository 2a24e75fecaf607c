//! Interfaces are deleted and made again while packets flow, and no descriptor stays open. In a process of its own: tests
//! beside it open descriptors, too.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_af_xdp::CreateXdp;
use support::hosts::{Hosts, PATIENCE};
use support::*;

fn plain() -> CreateXdp {
    CreateXdp::default()
}

#[test]
fn interfaces_are_deleted_and_made_again_under_load() {
    if !can_run("interfaces_are_deleted_and_made_again_under_load") {
        return;
    }
    let hosts = Hosts::new("d");
    let router = start(&hosts.r);
    let [a, b] = router.on(|r| connect(r, ["ra", "rb"], &plain()));
    router.on(|r| r.graph.add_worker(None).unwrap());
    assert!(hosts.reach_each_other());
    let stop = Arc::new(AtomicBool::new(false));
    let (ns, halt) = (hosts.a.name().to_owned(), Arc::clone(&stop));
    let flood = std::thread::spawn(move || {
        while !halt.load(Ordering::Relaxed) {
            let ping = ["netns", "exec", &ns, "ping", "-q", "-f", "-c", "2000", "-w", "1", "10.9.0.2"];
            Command::new("ip").args(ping).output().unwrap();
        }
    });
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut ends = [a, b];
    let used = || router.on(|r| r.graph.pool().stats().used);
    let mut before = None;
    for round in 0..15 {
        router.on(move |r| ends.map(|end| xdps(r).delete(end).unwrap()));
        // What was being sent comes back when the kernel has sent it.
        assert!(wait_for(PATIENCE, || used() == 0), "round {round}: {} buffers are missing", used());
        ends = router.on(move |r| connect(r, ["ra", "rb"], &plain()));
        assert!(wait_for(PATIENCE, || hosts.ping(1)), "round {round}");
        if round == 3 {
            before = Some(descriptors());
        }
    }
    stop.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    assert!(before.is_some_and(|n| descriptors() <= n + 4), "{before:?} descriptors, now {}", descriptors());
    router.end();
}
