//! Measures one TAP queue alone, its host side in the namespace NS: `measure_tap latency|rx|tx NS`.
// A measuring tool, not part of the router: it stops at the first error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use shoal_tap::{Address, HostConfig, NetnsRef, Tap, TapConfig, TapQueue};
use shoal_vnet::VnetHdr;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let host = HostConfig {
        netns: Some(NetnsRef::Name(args[1].clone())),
        addresses: vec![Address { addr: "10.250.0.1".parse().unwrap(), prefix_len: 24 }],
        ..HostConfig::default()
    };
    let (_tap, mut queues) = Tap::create(&TapConfig { host, ..TapConfig::default() }).unwrap();
    // The host's sender: broadcast, so that no neighbour is needed.
    setns(std::fs::File::open(format!("/run/netns/{}", args[1])).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
    let socket = UdpSocket::bind("10.250.0.1:0").unwrap();
    socket.set_broadcast(true).unwrap();
    socket.connect("10.250.0.255:9").unwrap();
    match args[0].as_str() {
        "latency" => latency(&mut queues[0], &socket),
        "rx" => rx(&mut queues[0], &socket),
        "tx" => tx(&mut queues[0]),
        other => eprintln!("unknown measurement {other}"),
    }
}

fn drain(queue: &mut TapQueue, buf: &mut [u8]) -> u64 {
    let mut n = 0;
    while queue.recv([&mut *buf]).is_ok() {
        n += 1;
    }
    n
}

/// From the host's `send` to the frame in hand of a sleeping receiver.
fn latency(queue: &mut TapQueue, socket: &UdpSocket) {
    let mut buf = vec![0; 70_000];
    let mut times: Vec<Duration> = (0..500)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            drain(queue, &mut buf);
            let start = Instant::now();
            socket.send(&[0; 18]).unwrap();
            while !matches!(queue.recv([&mut buf[..]]), Ok(got) if got.len == 60) {
                poll(&mut [PollFd::new(queue.fd(), PollFlags::POLLIN)], PollTimeout::from(100u16)).unwrap();
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

/// Time to read frames that wait; filling the queue (500 frames) is not counted.
fn rx(queue: &mut TapQueue, socket: &UdpSocket) {
    let mut buf = vec![0; 2048];
    let (mut best, mut total) = (f64::MAX, 0);
    for _ in 0..200 {
        for _ in 0..400 {
            socket.send(&[0; 18]).ok();
        }
        let start = Instant::now();
        let n = drain(queue, &mut buf);
        best = best.min(start.elapsed().as_nanos() as f64 / n as f64);
        total += n;
    }
    println!("rx: {best:.0} ns/frame, {:.3} M frames/s (best of 200, {total} frames)", 1e3 / best);
}

/// Frames written per second; the host drops them by their ethertype.
fn tx(queue: &mut TapQueue) {
    let mut frame = [0u8; 60];
    frame[..14].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    let mut best = 0f64;
    for _ in 0..10 {
        let (start, mut sent) = (Instant::now(), 0u64);
        while start.elapsed() < Duration::from_millis(300) {
            for _ in 0..256 {
                sent += u64::from(queue.send(VnetHdr::default(), [&frame[..]]).is_ok());
            }
        }
        best = best.max(sent as f64 / start.elapsed().as_secs_f64());
    }
    println!("tx: {:.3} M frames/s (best of 10)", best / 1e6);
}
