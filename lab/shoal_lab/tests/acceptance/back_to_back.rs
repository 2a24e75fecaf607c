//! Back-to-back returns the buffer that was set; the smallest gap between bursts is the time that the buffer needs.

use std::time::Duration;

use shoal_lab_measure::{BackToBack, Bound, BurstGap, TrialProcedure};

use crate::device;
use crate::stage::*;

#[test]
fn the_longest_burst_is_the_closed_forms_and_its_correction_the_buffer() {
    for (c, q, most) in [(2_000, 50, 10_000), (5_000, 333, 20_000), (999, 17, 7_777), (9_000, 64, 10_000)] {
        let test = BackToBack { repetitions: 2, longest: ms(500), ..BackToBack::rfc9004(most, c as f64) };
        let result = run(device::of(c, q as usize), strict(), |r| test.measure(r, &forward())).unwrap();
        let wanted = device::longest_burst(c, q, most);
        for found in &result.runs.values {
            assert_eq!((found.value, found.bound), (wanted, Bound::Device), "c {c}, q {q}");
        }
        near(result.implied, wanted as f64 / most as f64, 1e-12);
        // RFC 9004 6.4: what is left without what was forwarded meanwhile.
        near(result.corrected * most as f64, q as f64, 1.0);
    }
}

#[test]
fn both_directions_have_a_buffer_each() {
    let test = BackToBack { repetitions: 1, longest: ms(500), ..BackToBack::rfc9004(10_000, 4_000.0) };
    let result = run(device::of(4_000, 100), strict(), |r| test.measure(r, &both())).unwrap();
    assert_eq!(result.runs.values[0].value, device::longest_burst(4_000, 100, 10_000));
}

#[test]
fn a_buffer_longer_than_the_longest_burst_is_at_least() {
    let test = BackToBack { repetitions: 1, longest: ms(10), ..BackToBack::rfc9004(10_000, 4_000.0) };
    let result = run(device::of(4_000, 1_000), strict(), |r| test.measure(r, &forward())).unwrap();
    assert_eq!((result.runs.values[0].value, result.runs.values[0].bound), (100, Bound::Ceiling));
}

/// Whether bursts with such a gap fit for `time`: the last frame of the last burst finds what all before it left.
fn fits(c: u64, q: u64, burst: u64, most: u64, gap_us: u64, time: Duration) -> bool {
    let (c, q, burst, most) = (c as f64, q as f64, burst as f64, most as f64);
    let period = (burst / most * 1e6).ceil() / 1e6 + gap_us as f64 / 1e6;
    let bursts = (time.as_secs_f64() / period).floor().max(1.0);
    // Left over of each burst; what exceeds the capacity only.
    let left = (burst - c * (burst / most + gap_us as f64 / 1e6)).max(0.0);
    (bursts - 1.0) * left + (burst - 1.0) * (1.0 - c / most) <= q - 1.0
}

#[test]
fn the_smallest_gap_is_the_closed_forms() {
    let (c, q, most) = (5_000, 100, 20_000);
    let test = BurstGap { bursts: vec![16, 64, 128, 200], most_rate: most, longest_gap: ms(100) };
    let conduct = TrialProcedure { duration: seconds(2), ..strict() };
    let result = run(device::of(c, q as usize), conduct, |r| test.measure(r, &forward())).unwrap();
    for found in &result.values[0] {
        let fits = |gap: u64| fits(c, q, found.burst, most, gap, seconds(2));
        // A burst of 133 frames and more does not fit whatever the gap.
        let wanted =
            fits(100_000).then(|| (0..=100_000).rev().find(|gap| !fits(*gap)).map_or(0, |gap| gap + 1));
        let told = found.gap.map(|gap| gap.as_micros() as u64);
        assert_eq!(told.is_some(), wanted.is_some(), "{found:?}");
        if let Some((told, wanted)) = told.zip(wanted) {
            // In the long run all of a burst has to leave before the next; two seconds and the queue allow a little less.
            let forever = found.burst * 1_000_000 / c - found.burst * 1_000_000 / most;
            println!(
                "burst {}: {told} us, closed form {wanted} us, in the long run {forever} us",
                found.burst
            );
            assert!(told.abs_diff(wanted) <= 2 && told <= forever, "{found:?} {wanted} {forever}");
        }
    }
    assert_eq!(result.values[0][3].gap, None);
}
