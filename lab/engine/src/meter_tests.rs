use std::time::Duration;

use shoal_lab_plan::{Checksums, Rate, Side, Step, Tag};

use super::*;

fn stream(pace: Pace, stamps: Stamps) -> Stream {
    Stream {
        name: "test".into(),
        from: Side::Left,
        frame: vec![0; 60],
        changes: Vec::new(),
        checksums: Checksums::default(),
        tag: Tag::Signed { offset: 42 },
        pace,
        stamps,
        expected: true,
        answers: None,
    }
}

fn steady(fps: u64) -> Pace {
    Pace::Steady { rate: Rate::per_second(fps), after: Duration::ZERO }
}

fn meter(pace: Pace, stamps: Stamps, seconds: u64) -> Result<Meter, TooManyTags> {
    let (stream, duration) = (stream(pace, stamps), Duration::from_secs(seconds));
    let timeline = Timeline::new(&stream.pace, duration);
    Meter::new(&stream, &timeline, 1_000_000_000, false, nanoseconds(duration)).map(Option::unwrap)
}

#[test]
fn tags_are_where_the_specification_says() {
    // Frame after*r + floor(i * r * (D - after) / count): 60 s of 120 s at 101 fps, 500 tags.
    let stamps = Stamps::Even { after: Duration::from_mins(1), count: 500 };
    let tags = meter(steady(101), stamps, 120).unwrap().tags.unwrap().sequences;
    let wanted: Vec<u64> = (0..500).map(|i| 101 * 60 + i * 101 * 60 / 500).collect();
    assert_eq!(tags, wanted);
}

#[test]
fn tags_of_a_changing_rate_are_even_by_number() {
    let at = |s, fps| Step { at: Duration::from_secs(s), rate: Rate::per_second(fps) };
    let pace = Pace::Steps { steps: vec![at(0, 10), at(1, 20)] };
    let stamps = Stamps::Even { after: Duration::from_secs(1), count: 4 };
    let tags = meter(pace, stamps, 2).unwrap().tags.unwrap().sequences;
    assert_eq!(tags, [10, 15, 20, 25]);
}

#[test]
fn more_tags_than_frames_are_refused_with_the_number_that_fits() {
    let stamps = Stamps::Even { after: Duration::from_secs(1), count: 11 };
    let few = meter(steady(10), stamps, 2).map(drop).unwrap_err();
    assert_eq!(few, TooManyTags { asked: 11, most: 10 });
}

#[test]
fn each_tag_has_its_delay_in_order_of_tags_and_lost_ones_have_none() {
    let mut meter = meter(steady(8), Stamps::Even { after: Duration::ZERO, count: 4 }, 1).unwrap();
    (0..8).for_each(|n| meter.sent(n, n * 1000));
    // Tags are 0, 2, 4, 6; 2 is lost, 6 overtakes 4, 3 is no tag.
    for (sequence, delay) in [(0, 70), (6, 90), (3, 55), (4, 2500)] {
        meter.came(sequence, sequence * 1000 + delay, 0);
    }
    let delays = meter.outcome(9).unwrap();
    assert_eq!(delays.tags, [Some(70), None, Some(2500), Some(90)]);
    assert_eq!((delays.count, delays.min, delays.max, delays.uncertainty), (3, 70, 2500, 9));
    assert!((delays.mean - 2660.0 / 3.0).abs() < 1e-9 && delays.histogram.is_empty());
}

#[test]
fn all_delays_and_the_differences_of_neighbours_are_counted() {
    let mut meter = meter(steady(10), Stamps::All, 1).unwrap();
    (0..10).for_each(|n| meter.sent(n, n * 1000));
    // 3 is lost, so 4 has no neighbour.
    for (sequence, delay) in [(0, 100), (1, 150), (2, 120), (4, 900), (5, 900)] {
        meter.came(sequence, sequence * 1000 + delay, 0);
    }
    let delays = meter.outcome(0).unwrap();
    assert_eq!(delays.histogram, [(100, 1), (120, 1), (150, 1), (900, 2)]);
    assert_eq!(delays.variation, [(-30, 1), (0, 1), (50, 1)]);
    assert_eq!((delays.count, delays.min, delays.max, delays.mean), (5, 100, 900, 434.0));
    // |100-0|/16 = 6.25; += (50-6.25)/16 = 8.984375; += (30-8.98..)/16; += (780-..)/16; += (0-..)/16.
    let steps = [100.0, 50.0, 30.0, 780.0, 0.0];
    let jitter = steps.iter().fold(0.0, |j: f64, d| j + (d - j) / 16.0);
    assert!((delays.jitter - jitter).abs() < 1e-9);
    // One window: half its mean, because the average begins at 0.
    assert!((delays.trex_average - 217.0).abs() < 1e-9);
}

#[test]
fn long_delays_keep_three_digits_and_ends_are_exact() {
    let mut meter = meter(steady(10), Stamps::All, 1).unwrap();
    for (sequence, delay) in [(0, 1_234_567), (1, 7_654_321), (2, 999_999_999)] {
        meter.sent(sequence, 0);
        meter.came(sequence, delay, 0);
    }
    let delays = meter.outcome(0).unwrap();
    let values: Vec<_> = delays.histogram.iter().map(|(value, _)| *value).collect();
    assert_eq!((values[0], values[2]), (1_234_567.max(values[0]), values[2].min(999_999_999)));
    for (value, exact) in values.iter().zip([1_234_567.0, 7_654_321.0, 999_999_999.0]) {
        assert!((*value as f64 / exact - 1.0).abs() < 0.001, "{value}");
    }
    assert_eq!((delays.min, delays.max), (1_234_567, 999_999_999));
}

#[test]
fn a_delay_below_nothing_is_counted_and_taken_as_nothing() {
    let mut meter = meter(steady(10), Stamps::All, 1).unwrap();
    meter.sent(0, 500);
    meter.came(0, 400, 0);
    let delays = meter.outcome(0).unwrap();
    assert_eq!((delays.negative, delays.count, delays.max), (1, 1, 0));
}

#[test]
fn a_frame_that_comes_after_its_stamp_was_overwritten_has_no_delay() {
    let pace = Pace::Steady { rate: Rate::per_second(1_000_000), after: Duration::ZERO };
    let stream = stream(pace, Stamps::All);
    let duration = Duration::from_secs(4);
    let timeline = Timeline::new(&stream.pace, duration);
    let mut meter = Meter::new(&stream, &timeline, 0, false, nanoseconds(duration)).unwrap().unwrap();
    // A quarter of a second of frames is kept: 2^18.
    (0..=1 << 18).for_each(|n| meter.sent(n, n * 1000));
    meter.came(0, 300_000_000, 0);
    meter.came(1, 300_000_000, 0);
    assert_eq!(meter.outcome(0).unwrap().count, 1);
}
