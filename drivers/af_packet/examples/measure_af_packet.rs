//! Measures the driver's two queues alone, on a veth pair.
//!
//! `ip link add name va type veth peer name vb; ip link set va up; ip link set vb up`
//! then `measure_af_packet latency|rx|tx va vb [block KiB] [blocks] [retire ms]`: with a block size, version 3.
// A measuring tool, not part of the router: it stops at the first error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]

use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use shoal_af_packet::{RxConfig, RxRing, TxConfig, TxQueue};
use shoal_link::Link;
use shoal_vnet::VnetHdr;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| args.get(i).map_or(default, |a| a.parse().unwrap());
    let blocks = RxConfig {
        block_size: number(3, 256) << 10,
        blocks: number(4, 32),
        retire: Duration::from_millis(number(5, 1) as u64),
        ..RxConfig::blocks()
    };
    let config = if args.len() > 3 { blocks } else { RxConfig::default() };
    let (a, b) = (Link::by_name(&args[1]).unwrap().index, Link::by_name(&args[2]).unwrap().index);
    let mut tx = TxQueue::open(a, &TxConfig::default()).unwrap();
    let mut frame = [0u8; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    match args[0].as_str() {
        "latency" => latency(&mut tx, &mut RxRing::open(b, &config).unwrap(), &frame),
        "rx" => rx(&mut tx, &mut RxRing::open(b, &config).unwrap(), &frame),
        "tx" => tx_rate(&mut tx, &frame),
        other => eprintln!("unknown measurement {other}"),
    }
}

fn send(tx: &mut TxQueue, frame: &[u8], count: usize) -> usize {
    let mut batch = tx.batch();
    for _ in 0..count {
        batch.push(VnetHdr::default(), [frame]).unwrap();
    }
    batch.send().sent
}

/// From `send` to the frame in hand of a sleeping receiver, after idle times that fall everywhere in the
/// retire period.
fn latency(tx: &mut TxQueue, rx: &mut RxRing, frame: &[u8]) {
    let mut times: Vec<Duration> = (0u64..500)
        .map(|i| {
            std::thread::sleep(Duration::from_micros(10_000 + i * 137 % 1000));
            while rx.next().is_some() {}
            let start = Instant::now();
            send(tx, frame, 1);
            while rx.next().is_none_or(|f| f.bytes[12..14] != frame[12..14]) {
                poll(&mut [PollFd::new(rx.fd(), PollFlags::POLLIN)], PollTimeout::from(100u16)).unwrap();
            }
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!(
        "after idle: min {:?} median {:?} p99 {:?} max {:?}",
        times[0], times[250], times[495], times[499]
    );
}

/// Time to take frames out of a ring that is full of them; filling it is not counted.
fn rx(tx: &mut TxQueue, rx: &mut RxRing, frame: &[u8]) {
    let mut best = f64::MAX;
    let mut total = 0u64;
    for _ in 0..20 {
        for _ in 0..40 {
            send(tx, frame, 256);
        }
        std::thread::sleep(Duration::from_millis(20));
        let (start, mut n, mut sum) = (Instant::now(), 0u64, 0u64);
        while let Some(frame) = rx.next() {
            n += 1;
            sum = sum.wrapping_add(u64::from(frame.bytes[12]));
        }
        std::hint::black_box(sum);
        best = best.min(start.elapsed().as_nanos() as f64 / n as f64);
        total += n;
    }
    println!(
        "rx: {best:.1} ns/frame, {:.2} M frames/s (best of 20, {total} frames) {:?}",
        1e3 / best,
        rx.stats()
    );
}

/// Frames handed to the kernel per second; the peer has no listener and drops them.
fn tx_rate(tx: &mut TxQueue, frame: &[u8]) {
    let mut best = 0f64;
    for _ in 0..10 {
        let (start, mut sent) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_millis(300) {
            sent += send(tx, frame, 256);
        }
        best = best.max(sent as f64 / start.elapsed().as_secs_f64());
    }
    println!("tx: {:.3} M frames/s (best of 10)", best / 1e6);
}
