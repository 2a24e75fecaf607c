//! What a packet costs the two nodes with the router's buffers, and with memory of the queues' own, in turn. Nothing is
//! judged; run it by hand, on a quiet machine, with the compiler's full optimisation:
//!
//! ```text
//! cargo test --release -p shoal-af-xdp --test all memory_cost -- --ignored --nocapture
//! ROUNDS=9 SECONDS=2 ...
//! ```
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shoal_af_xdp::{CreateXdp, PacketMemory};
use shoal_interface::SwIfIndex;
use support::hosts::Hosts;
use support::*;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Clocks and packets of `af_xdp-input` and of the sending node, and packets sent.
fn counts(router: &Crossing, to: SwIfIndex) -> [u64; 5] {
    router.on(move |r| {
        let c = r.graph.graph_counters();
        let of = |name: &str| r.graph.node(name).unwrap().number() as usize;
        let (rx, tx) = (of("af_xdp-input"), of("rb/0-tx"));
        [c.clocks.sum(rx), c.vectors.sum(rx), c.clocks.sum(tx), c.vectors.sum(tx), c.tx.sum(to.0 as usize).0]
    })
}

/// Clocks a packet of both nodes, and thousands of packets a second.
fn measure(memory: PacketMemory, size: usize, seconds: u64) -> [f64; 3] {
    let hosts = Hosts::new("c");
    let router = start(&hosts.r);
    let like = CreateXdp { memory, rx_size: Some(1024), ..CreateXdp::default() };
    let [_, b] = router.on(move |r| connect(r, ["ra", "rb"], &like));
    assert!(hosts.reach_each_other());
    let stop = Arc::new(AtomicBool::new(false));
    let halt = Arc::clone(&stop);
    let sink = hosts.b.inside(|| UdpSocket::bind("10.9.0.2:9").unwrap());
    let source = hosts.a.spawn(move || {
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.connect("10.9.0.2:9").unwrap();
        let bytes = vec![7; size - 42];
        while !halt.load(Ordering::Relaxed) {
            let _ = socket.send(&bytes);
        }
    });
    std::thread::sleep(Duration::from_millis(300));
    let (start, before) = (Instant::now(), counts(&router, b));
    std::thread::sleep(Duration::from_secs(seconds));
    let (after, took) = (counts(&router, b), start.elapsed().as_secs_f64());
    stop.store(true, Ordering::Relaxed);
    source.join().unwrap();
    drop(sink);
    router.end();
    let d: Vec<f64> = after.iter().zip(before).map(|(a, b)| (a - b) as f64).collect();
    [d[0] / d[1], d[2] / d[3], d[4] / took / 1e3]
}

#[test]
#[ignore = "a measurement"]
fn clocks_a_packet_with_buffers_and_with_memory_of_its_own() {
    if !can_run("clocks_a_packet_with_buffers_and_with_memory_of_its_own") {
        return;
    }
    let (rounds, seconds) = (number("ROUNDS", 5), number("SECONDS", 2));
    for size in [60, 512, 1514] {
        let mut all = [const { Vec::new() }; 2];
        for round in 0..2 * rounds as usize {
            // Each goes first every other time.
            let which = (round + round / 2) % 2;
            let memory = [PacketMemory::Pool, PacketMemory::Own][which];
            all[which].push(measure(memory, size, seconds));
        }
        for (name, runs) in ["pool", "own"].iter().zip(&mut all) {
            let column = |at: usize| {
                let mut sorted: Vec<f64> = runs.iter().map(|run| run[at]).collect();
                sorted.sort_by(f64::total_cmp);
                let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
                format!("{:.0} ({least:.0} to {most:.0})", sorted[sorted.len() / 2])
            };
            println!(
                "{size} bytes, {name}: input {} clocks, tx {} clocks, {} k/s",
                column(0),
                column(1),
                column(2)
            );
        }
    }
}
