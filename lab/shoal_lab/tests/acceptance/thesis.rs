//! The thesis's figures: T-Rex's jitter and average beside true ones, and both streams' losses apart.

use std::time::Duration;

use shoal_lab_engine::Behaviour;
use shoal_lab_frame::{Direction, FORWARDING_SOURCES, LATENCY_PPS, LoadAndLatencyTraffic, Macs};
use shoal_lab_measure::{LatencyUnderLoad, LatencyUnderLoadRun};
use shoal_lab_plan::{Addresses, Rate};

use crate::device;
use crate::stage::*;

fn thesis(behaviour: Behaviour, rate: u64) -> LatencyUnderLoadRun {
    let traffic = LoadAndLatencyTraffic {
        size: 512,
        sources: FORWARDING_SOURCES,
        latency_pps: LATENCY_PPS,
        direction: Direction::Both,
        macs: Macs::new(&Addresses::default(), Some([2; 6]), Some([4; 6])),
    };
    let traffic = Real::of(traffic.streams(Rate::per_second(1)).unwrap(), 512, Direction::Both);
    let test = LatencyUnderLoad { rate, duration: seconds(2), repetitions: 1 };
    run(behaviour, strict(), |r| test.measure(r, &traffic)).unwrap().values[0]
}

#[test]
fn a_fixed_delays_average_comes_near_it_and_its_jitter_wears_off() {
    let found = thesis(Behaviour { delay: Duration::from_micros(160), ..Behaviour::default() }, 1_000);
    assert_eq!((found.mean, found.min, found.max), (160.0, 160.0, 160.0));
    // Four half seconds, each of which halves what is missing: 160 * (1 - 1 / 16).
    near(found.trex_average, 150.0, 1e-9);
    // The first delay counts as a difference of 160 us, and 9,999 times nothing takes a sixteenth of it.
    near(found.jitter, 10.0 * (15.0_f64 / 16.0).powi(9_999), 1e-12);
    assert_eq!((found.loss, found.frames), (0.0, 2 * (2_000 + 10_000)));
    assert_eq!(found.bytes, 2 * (2_000 * 512 + 10_000 * 64));
}

#[test]
fn uniform_jitters_mean_difference_is_a_third_of_it() {
    for (seed, jitter) in [(1, 150), (2, 90), (3, 30)] {
        let behaviour = Behaviour {
            delay: Duration::from_micros(50),
            jitter: Duration::from_micros(jitter),
            seed,
            ..Behaviour::default()
        };
        let (found, jitter) = (thesis(behaviour, 100), jitter as f64);
        // A mean over sixteen differences, each with a deviation of 0.24 of the jitter: 5 of 0.24 / sqrt(31), and the worse of
        // two streams; neighbouring differences share a delay.
        near(found.jitter, jitter / 3.0, 5.0 * 0.24 * jitter * (2.0_f64 / 31.0).sqrt());
        near(found.mean, 50.0 + jitter / 2.0, 5.0 * jitter / (12.0 * 10_000.0_f64).sqrt());
        // The average is not the mean: a sixteenth is missing after two seconds.
        near(
            found.trex_average,
            (50.0 + jitter / 2.0) * 15.0 / 16.0,
            5.0 * jitter / (12.0 * 2_500.0_f64).sqrt(),
        );
    }
}

#[test]
fn losses_of_both_streams_are_told_apart_and_together() {
    let found = thesis(Behaviour { loss: 0.05, ..Behaviour::default() }, 10_000);
    for loss in [found.loss, found.heavy_loss, found.latency_loss] {
        near(loss, 5.0, 5.0 * 100.0 * (0.0475_f64 / 20_000.0).sqrt());
    }
    near(found.loss, (2.0 * found.heavy_loss + found.latency_loss) / 3.0, 1e-9);
    // 10,000 and 5,000 a second; 12,000 are forwarded. Some come two at a time, so the queue must be more than two.
    let found = thesis(device::of(12_000, 20), 10_000);
    near(found.loss, 100.0 * device::lost(12_000, 20, 15_000, Duration::from_secs(2)) / 30_000.0, 0.01);
    near(found.loss, (2.0 * found.heavy_loss + found.latency_loss) / 3.0, 1e-9);
}
