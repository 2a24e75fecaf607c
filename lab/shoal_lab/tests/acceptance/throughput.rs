//! Throughput: the search returns the capacity that was set.

use std::time::Duration;

use shoal_lab_frame::{Background, Direction, Form, Mix};
use shoal_lab_measure::{Bound, NdrBench, Precision, Throughput, TrialProcedure};
use shoal_lab_plan::{Family, Rate};

use crate::device;
use crate::stage::*;

fn up_to(most: u64) -> Throughput {
    Throughput { most: Some(most), ..Throughput::default() }
}

#[test]
fn the_search_returns_the_capacity_to_the_frame_at_odd_ones_too() {
    // In two seconds a queue of two does not hide a single frame a second.
    for c in [1, 2, 97, 997, 1_000, 4_096, 7_777, 9_973] {
        let found = run(device::of(c, 2), strict(), |r| up_to(12_000).measure(r, &both())).unwrap();
        assert_eq!(found.values, [c as f64]);
        assert_eq!((found.runs.values[0].above, found.runs.values[0].bound), (c + 1, Bound::Device));
    }
}

#[test]
fn within_e_of_the_capacity_whatever_e_is() {
    for (c, e) in [(7_777, 10), (5_003, 100), (1_234, 1_000), (3_999, 7)] {
        let conduct = TrialProcedure { precision: Precision::Absolute(e), ..strict() };
        let found = run(device::of(c, 2), conduct, |r| up_to(16_384).measure(r, &forward())).unwrap();
        let value = found.values[0] as u64;
        assert!(value <= c && c - value < e, "{value} of {c} within {e}");
    }
    let conduct = TrialProcedure { precision: Precision::Relative(0.005), ..strict() };
    let found = run(device::of(7_777, 2), conduct, |r| up_to(16_384).measure(r, &forward())).unwrap();
    let value = found.values[0];
    assert!((7_777.0 * 0.995..=7_777.0).contains(&value), "{value}");
}

#[test]
fn it_is_the_same_for_each_family_size_and_direction() {
    for (family, size) in
        [(Family::Ip4, 64), (Family::Ip4, 84), (Family::Ip4, 1518), (Family::Ip6, 84), (Family::Ip6, 1518)]
    {
        for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
            let traffic = traffic(family, size, direction);
            let (found, lines) =
                over(&mut engine(device::of(1_999, 2)), strict(), |r| up_to(4_000).measure(r, &traffic));
            assert_eq!(found.unwrap().values, [1_999.0], "{family:?} {size} {direction:?}");
            let streams = &lines[0].outcome.streams;
            assert_eq!(streams.len(), direction.sides().len());
            assert!(streams.iter().all(|s| s.counts.bytes == s.counts.received * u64::from(size)));
        }
    }
}

#[test]
fn siitperfs_plain_frames_find_the_same() {
    for (family, size) in [(Family::Ip4, 64), (Family::Ip6, 84)] {
        let mut plain = rfc2544(family, size, Direction::Both);
        plain.form = Form::Plain;
        let plain = Real::of(plain.streams(Rate::per_second(1)).unwrap(), size, Direction::Both);
        let found = run(device::of(3_457, 2), strict(), |r| up_to(8_000).measure(r, &plain)).unwrap();
        assert_eq!(found.values, [3_457.0]);
    }
}

#[test]
fn a_mix_and_background_count_all_their_streams() {
    let mix: Mix = "imix:classic".parse().unwrap();
    let one = Rate::per_second(1);
    let mixed = rfc2544(Family::Ip4, 64, Direction::Both).mixed(&mix, one).unwrap();
    let mut background = rfc2544(Family::Ip4, 84, Direction::Both);
    background.background = Some(Background { n: 5, m: 3 });
    let background = background.streams(one).unwrap();
    for (streams, size, count) in [(mixed, 362, 6), (background, 84, 4)] {
        assert_eq!(streams.len(), count);
        let traffic = Real::of(streams, size, Direction::Both);
        let found = run(device::of(3_001, 10), strict(), |r| up_to(8_000).measure(r, &traffic)).unwrap();
        // Frames of several streams come together now and then; the queue holds them, and some of the overload.
        let most = device::throughput(3_001, 10, seconds(2));
        assert!((3_001.0..=most as f64 + 1.0).contains(&found.values[0]), "{size} {:?}", found.values);
    }
}

#[test]
fn a_queue_hides_as_much_overload_as_it_holds() {
    for (c, queue, time) in [(5_000, 33, 2), (3_333, 257, 2), (1_000, 1_000, 4), (2_000, 9, 1)] {
        let (time, most) = (seconds(time), 8_000);
        let conduct = TrialProcedure { duration: time, ..strict() };
        let found = run(device::of(c, queue), conduct, |r| up_to(most).measure(r, &forward())).unwrap();
        let wanted = device::throughput(c, queue as u64, time);
        assert!(wanted > c, "the queue shows");
        near(found.values[0], wanted as f64, 1.0);
    }
}

#[test]
fn one_direction_after_the_other_and_both_at_once_have_the_same_throughput() {
    let found = run(device::of(2_500, 2), strict(), |r| {
        [Direction::Forward, Direction::Reverse, Direction::Both]
            .map(|way| up_to(8_000).measure(r, &traffic(Family::Ip4, 64, way)).unwrap().median())
    });
    assert_eq!(found, [2_500.0; 3]);
}

#[test]
fn a_device_faster_than_the_upper_end_gives_at_least() {
    let found = run(device::of(5_000, 2), strict(), |r| up_to(4_000).measure(r, &forward())).unwrap();
    assert_eq!((found.values[0], found.runs.values[0].bound), (3_999.0, Bound::Ceiling));
}

#[test]
fn the_frame_timeout_makes_late_frames_lost_frames() {
    // At the capacity and above, the queue of 101 fills and delays by 101 / c = 20.2 ms; 10 ms are 50 frames of it.
    let special = Throughput { frame_timeout: Some(ms(10)), ..up_to(8_000) };
    let found = run(device::of(5_000, 101), strict(), |r| special.measure(r, &forward())).unwrap();
    // Frame k waits for its own forwarding and k * (1/c - 1/m): too late beyond 49 frames of 200 us.
    let wanted = device::throughput(5_000, 50, seconds(2));
    near(found.values[0], wanted as f64, 1.0);
    let patient = Throughput { frame_timeout: Some(ms(30)), ..up_to(8_000) };
    let found = run(device::of(5_000, 101), strict(), |r| patient.measure(r, &forward())).unwrap();
    near(found.values[0], device::throughput(5_000, 101, seconds(2)) as f64, 1.0);
}

#[test]
fn a_loss_ratio_gives_the_capacity_by_what_may_be_lost() {
    let partial = Throughput { most_loss: 0.005, ..up_to(16_000) };
    let found = run(device::of(9_950, 2), strict(), |r| partial.measure(r, &forward())).unwrap();
    // 1 - c / r = 0.5 % at 10,000; the queue takes a frame in the two seconds.
    near(found.values[0], 10_000.0, 1.0);
}

#[test]
fn ndr_bench_finds_the_capacity_within_its_error() {
    for optimised in [false, true] {
        let test = NdrBench {
            most: Some(10_000),
            optimised,
            duration: seconds(2),
            first: seconds(2),
            settle: Duration::ZERO,
            ..NdrBench::default()
        };
        let found = run(device::of(6_400, 2), strict(), |r| test.measure(r, &both())).unwrap().values[0];
        // 0.1 % may be lost, and the bracket is 1 % of the highest rate wide.
        assert!(found.rate <= 6_406.5 && found.rate >= 6_300.0, "{found:?}");
        near(found.first_loss, 36.0, 0.01);
    }
}
