//! Latency and delay variation: fixed delays to the nanosecond, uniform ones within the error of a sample.

use std::time::Duration;

use shoal_lab_engine::Behaviour;
use shoal_lab_frame::Direction;
use shoal_lab_measure::{DelayVariation, DelayVariationRun, Latency, LatencyRun};
use shoal_lab_plan::Family;

use crate::device;
use crate::stage::*;

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn latency(behaviour: Behaviour, test: Latency) -> LatencyRun {
    run(behaviour, strict(), |r| test.measure(r, &both())).unwrap().runs.values.remove(0)
}

fn variation(behaviour: Behaviour, rate: u64, time: Duration) -> DelayVariationRun {
    let test = DelayVariation { rate, duration: time };
    run(behaviour, strict(), |r| test.measure(r, &both())).unwrap().runs.values.remove(0)
}

/// Two seconds, the second one tagged.
fn tagged(rate: u64, tags: u32) -> Latency {
    Latency { rate, duration: seconds(2), delay: seconds(1), tags }
}

/// How far the q-quantile of n uniform draws over `width` may lie from q: five standard deviations.
fn quantile_error(width: f64, q: f64, n: f64) -> f64 {
    5.0 * width * (q * (1.0 - q) / n).sqrt()
}

#[test]
fn a_fixed_delay_is_typical_worst_mean_and_least() {
    for micros in [0, 1, 50, 1_234, 400_000] {
        let found = latency(Behaviour { delay: us(micros), ..Behaviour::default() }, tagged(5_000, 500));
        let wanted = micros as f64;
        assert_eq!((found.typical, found.worst, found.min), (wanted, wanted, wanted));
        near(found.mean, wanted, 1e-9 * wanted);
        assert_eq!((found.lost, found.negative, found.delays.len()), (0, 0, 1_000));
    }
}

#[test]
fn being_forwarded_takes_its_time_beside_the_delay() {
    // A frame every 200 us, each forwarded in 100 us or 125 us: nothing waits.
    for (c, forwarding) in [(10_000, 100.0), (8_000, 125.0)] {
        let found = latency(Behaviour { delay: us(30), ..device::of(c, 10) }, tagged(5_000, 500));
        assert_eq!((found.typical, found.worst), (30.0 + forwarding, 30.0 + forwarding));
    }
}

#[test]
fn a_full_queue_delays_by_what_it_holds() {
    // At twice the capacity the queue is full after 50 ms: an accepted frame then waits for 100 others, less the 0 to 1
    // that leave between two.
    let test = Latency { rate: 4_000, duration: seconds(2), delay: seconds(1), tags: 4_000 };
    let found = run(device::of(2_000, 100), strict(), |r| test.measure(r, &forward())).unwrap();
    let found = &found.runs.values[0];
    assert_eq!(found.lost, 2_000);
    let arrived: Vec<f64> = found.delays.iter().copied().filter(|d| *d < 1e6).collect();
    assert!(arrived.iter().all(|d| *d > 49_000.0 && *d <= 50_000.0), "{} {}", arrived[0], arrived[1_999]);
    // Half are lost: the worst case is their penalty, 1 s and the timeout of 2 s.
    assert_eq!(found.worst, 3_000_000.0);
}

#[test]
fn uniform_jitter_has_the_percentiles_of_its_distribution() {
    for (seed, delay, jitter) in [(1, 100, 80), (2, 20, 400), (3, 0, 5_000)] {
        let behaviour = Behaviour { delay: us(delay), jitter: us(jitter), seed, ..Behaviour::default() };
        let found = latency(behaviour, tagged(10_000, 10_000));
        let (delay, jitter, n) = (delay as f64, jitter as f64, 20_000.0);
        near(found.typical, delay + 0.5 * jitter, quantile_error(jitter, 0.5, n));
        near(found.worst, delay + 0.999 * jitter, quantile_error(jitter, 0.999, n));
        // A uniform distribution's deviation is its width by the root of 12.
        near(found.mean, delay + jitter / 2.0, 5.0 * jitter / (12.0 * n).sqrt());
        assert!(found.min >= delay && found.min < delay + jitter * 15.0 / n, "{}", found.min);
    }
}

#[test]
fn a_lost_tag_counts_as_the_penalty() {
    let behaviour = Behaviour { loss: 0.02, delay: us(40), ..Behaviour::default() };
    let found = latency(behaviour, tagged(5_000, 5_000));
    // Of 10,000 tags 2 %, within five deviations.
    near(found.lost as f64, 200.0, 5.0 * 14.0);
    assert_eq!((found.typical, found.worst, found.mean), (40.0, 3_000_000.0, 40.0));
}

#[test]
fn a_fixed_delay_does_not_vary() {
    let found = variation(Behaviour { delay: us(777), ..Behaviour::default() }, 5_000, seconds(2));
    assert_eq!(found, DelayVariationRun::default());
}

/// What RFC 8219 and RFC 3393 ask for of uniform delays over `jitter` microseconds, of `n` frames a direction.
fn check_uniform(found: &DelayVariationRun, jitter: f64, n: f64) {
    // A histogram of three digits, of delays up to 5 ms.
    let digits = 1e-3 * (jitter + 200.0);
    near(found.pdv, 0.999 * jitter, quantile_error(jitter, 0.999, n) + 15.0 * jitter / n + digits);
    // Differences of neighbours have a triangular distribution over -jitter to jitter: beyond x lie (1 - x / jitter)^2 / 2.
    let tail = jitter * (1.0 - (2.0_f64 * 0.001).sqrt());
    // Its density at the quantile is sqrt(0.002) / jitter.
    let error = 5.0 * (0.001_f64 / n).sqrt() * jitter / 0.002_f64.sqrt() + digits;
    near(found.ipdv_p999, tail, error);
    near(found.ipdv_p01, -tail, error);
    near(found.ipdv_median, 0.0, 5.0 * jitter * 0.5 / n.sqrt() + digits);
    near(found.ipdv_mean, jitter / 3.0, 5.0 * jitter / n.sqrt() * 0.3 + digits);
    assert!(found.ipdv_max > tail && found.ipdv_max <= jitter + digits, "{found:?}");
    assert!(found.ipdv_min < -tail && found.ipdv_min >= -jitter - digits, "{found:?}");
}

#[test]
fn uniform_jitter_varies_as_its_distribution_says() {
    // Frames come every 200 us: none overtakes another.
    let behaviour = Behaviour { delay: us(200), jitter: us(150), ..Behaviour::default() };
    check_uniform(&variation(behaviour, 5_000, seconds(4)), 150.0, 20_000.0);
}

#[test]
fn frames_that_overtake_each_other_are_neighbours_still() {
    // RFC 3393's neighbours are those in order of sending. Here most arrive in another order.
    let behaviour = Behaviour { delay: us(200), jitter: us(3_000), seed: 7, ..Behaviour::default() };
    check_uniform(&variation(behaviour, 5_000, seconds(4)), 3_000.0, 20_000.0);
}

#[test]
fn lost_frames_have_no_neighbours_and_enter_the_variation_as_later_than_any() {
    let behaviour = Behaviour { loss: 0.01, delay: us(90), ..Behaviour::default() };
    let found = variation(behaviour, 5_000, seconds(2));
    // 1 % of lost frames puts the 99.9th percentile among them: 2 s and the timeout of 2 s.
    near(found.pdv, 4_000_000.0 - 90.0, 1e-3);
    assert_eq!((found.ipdv_min, found.ipdv_max), (0.0, 0.0));
    near(found.lost as f64, 200.0, 5.0 * 14.2);
}

#[test]
fn delays_are_the_same_for_each_family_and_size() {
    for (family, size) in [(Family::Ip4, 1518), (Family::Ip6, 84), (Family::Ip6, 1518)] {
        let traffic = traffic(family, size, Direction::Both);
        let behaviour = || Behaviour { delay: us(321), ..Behaviour::default() };
        let found = run(behaviour(), strict(), |r| tagged(1_000, 500).measure(r, &traffic)).unwrap();
        assert_eq!((found.runs.values[0].typical, found.runs.values[0].worst), (321.0, 321.0));
    }
}
