//! Closed forms of a device of capacity c with a queue of q frames, the one that is being forwarded included.

use std::time::Duration;

use shoal_lab_engine::Behaviour;

/// Such a device.
pub fn of(capacity: u64, queue: usize) -> Behaviour {
    Behaviour { capacity: Some(capacity), queue, ..Behaviour::default() }
}

/// The longest burst at `rate` without loss: frame k is the first to be lost if `k * (1 - c / m) > q - 1`.
pub fn longest_burst(c: u64, q: u64, rate: u64) -> u64 {
    if rate <= c { u64::MAX } else { (q - 1) * rate / (rate - c) + 1 }
}

/// The highest steady rate at which nothing is lost in `time`: the first at which the burst is too long, less one.
pub fn throughput(c: u64, q: u64, time: Duration) -> u64 {
    let frames = |rate: u64| (rate as f64 * time.as_secs_f64()) as u64;
    (c..10 * c).find(|rate| frames(rate + 1) > longest_burst(c, q, rate + 1)).unwrap()
}

/// Frames lost of a steady rate above the capacity: what is beyond it, less what the queue holds at the end. Within one frame.
pub fn lost(c: u64, q: u64, rate: u64, time: Duration) -> f64 {
    (rate.saturating_sub(c) as f64 * time.as_secs_f64() - (q - 1) as f64).max(0.0)
}
