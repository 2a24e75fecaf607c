//! What the programs print, as scripts read it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may fail this way")]

use crate::support;

use shoal_lab_plan::Delays;
use shoal_lab_siitperf::Program;
use support::*;

#[test]
fn a_throughput_run_prints_the_counts_of_both_directions() {
    let mut tester = StandIn::new();
    tester.lose = 7;
    let done = finish(Program::Tp, "84 1000 60 2000 2 2", CONF, &mut tester);
    assert_eq!(done.code, 0, "{}", done.text);
    assert_eq!(awk(&done.text, "Forward frames received:", 4), ["59993"]);
    assert_eq!(awk(&done.text, "Reverse frames received:", 4), ["59993"]);
    assert_eq!(awk(&done.text, "Forward frames sent:", 4), ["60000"]);
    assert!(!done.text.contains("Error:") && !done.text.contains("invalid"), "{}", done.text);
}

#[test]
fn only_active_directions_are_printed() {
    let done = finish(Program::Tp, "84 10 1 0 2 2", &format!("{CONF}\nReverse 0"), &mut StandIn::new());
    assert_eq!(awk(&done.text, "Forward frames received:", 4), ["10"]);
    assert!(!done.text.contains("Reverse"), "{}", done.text);
}

#[test]
fn background_frames_count_as_the_foregrounds_do() {
    let mut tester = StandIn::new();
    let done = finish(Program::Tp, "84 1000 1 0 10 9", CONF, &mut tester);
    assert_eq!(awk(&done.text, "Forward frames sent:", 4), ["1000"]);
    assert_eq!(tester.trials[0].streams.len(), 4);
}

#[test]
fn sending_that_took_too_long_is_invalid_and_counts_are_not_printed() {
    let mut tester = StandIn::new();
    // The original allows 10 ppm: 600 us of 60 s.
    tester.overrun = 600;
    let done = finish(Program::Tp, "84 1000 60 2000 2 2", CONF, &mut tester);
    assert_eq!((done.code, done.text.contains("invalid")), (0, false), "{}", done.text);
    tester.overrun = 601;
    let done = finish(Program::Tp, "84 1000 60 2000 2 2", CONF, &mut tester);
    assert_eq!(done.code, 1);
    assert!(done.text.contains("the test is invalid"), "{}", done.text);
    assert!(!done.text.contains("frames sent:"), "{}", done.text);
}

#[test]
fn a_test_beside_others_is_invalid_and_counts_are_not_printed() {
    let mut tester = StandIn::new();
    tester.taken = 0.5;
    let done = finish(Program::Tp, "84 1000 60 2000 2 2", CONF, &mut tester);
    assert_eq!(done.code, 1);
    assert!(done.text.contains("Error: others used 50 % of processor 0"), "{}", done.text);
    assert!(
        done.text.contains("the test is invalid") && !done.text.contains("frames sent:"),
        "{}",
        done.text
    );
    tester.taken = 0.01;
    assert_eq!(finish(Program::Tp, "84 1000 60 2000 2 2", CONF, &mut tester).code, 0);
}

#[test]
fn latency_is_the_median_and_the_999th_of_1000_with_lost_tags_at_the_end() {
    let mut tester = StandIn::new();
    // 2,000 tags of 1 to 2,000 us, of which three were lost: 1000 * (120 - 60) + 2000 ms each.
    let mut tags: Vec<Option<u64>> = (1..=2000).map(|us| Some(us * 1000)).collect();
    tags[10] = None;
    tags[20] = None;
    tags[30] = None;
    tester.delays = Delays { count: 1997, tags, ..Delays::default() };
    let done = finish(Program::Lat, "84 1000 120 2000 2 2 60 2000", CONF, &mut tester);
    assert_eq!(done.code, 0, "{}", done.text);
    // Sorted without 11, 21 and 31: the two in the middle (1000th, 1001st) are 1003 and 1004; the 1998th is the first lost.
    assert_eq!(awk(&done.text, "Forward TL", 3), ["1.003500"]);
    assert_eq!(awk(&done.text, "Forward WCL", 3), ["62000.000000"]);
    assert_eq!(awk(&done.text, "Reverse TL", 3), ["1.003500"]);
    assert!(done.text.contains("Forward tagged frames lost: 3"), "{}", done.text);
}

#[test]
fn variation_is_the_999th_of_1000_less_the_smallest() {
    let mut tester = StandIn::new();
    let histogram = vec![(10_000, 9_980), (20_000, 15), (90_000, 5)];
    tester.delays = Delays { count: 10_000, min: 10_000, max: 90_000, histogram, ..Delays::default() };
    let done = finish(Program::Pdv, "84 10000 1 2000 2 2 0", CONF, &mut tester);
    // The 9,990th of 10,000.
    assert_eq!(awk(&done.text, "Forward PDV", 3), ["0.010000"], "{}", done.text);
    // Eleven lost frames of 10,011 push the 10,001st, the 99.9th percentile, to the penalty of 3 s.
    tester.lose = 11;
    tester.delays.histogram[2].1 = 0;
    let done = finish(Program::Pdv, "84 10000 1 2000 2 2 0", CONF, &mut tester);
    assert_eq!(awk(&done.text, "Forward PDV", 3), ["2999.990000"], "{}", done.text);
}

#[test]
fn variation_is_never_less_than_nothing_although_bins_are_coarse() {
    let mut tester = StandIn::new();
    // Three digits: a delay of 10,004 ns lies in a bin of 10,000.
    tester.delays = Delays {
        count: 1000,
        min: 10_004,
        max: 10_004,
        histogram: vec![(10_000, 1000)],
        ..Delays::default()
    };
    let done = finish(Program::Pdv, "84 1000 1 2000 2 2 0", CONF, &mut tester);
    assert_eq!(awk(&done.text, "Reverse PDV", 3), ["0.000000"], "{}", done.text);
}

#[test]
fn a_scripts_binary_search_ends_at_the_last_rate_without_loss() {
    let (mut low, mut high) = (0_u64, 8_000_000);
    while high - low > 1 {
        let rate = u64::midpoint(low, high);
        let mut tester = StandIn::new();
        tester.lose = u64::from(rate > 1_374_999);
        let done = finish(Program::Tp, &format!("84 {rate} 60 2000 2 2"), CONF, &mut tester);
        let all = (60 * rate).to_string();
        let both = ["Forward", "Reverse"].map(|way| awk(&done.text, &format!("{way} frames received:"), 4));
        if both.iter().all(|received| *received == [all.as_str()]) {
            low = rate;
        } else {
            high = rate;
        }
    }
    assert_eq!(low, 1_374_999);
}

#[test]
fn with_a_frame_timeout_counts_are_printed_and_no_variation() {
    let mut tester = StandIn::new();
    let done = finish(Program::Pdv, "84 1000 1 2000 2 2 10", CONF, &mut tester);
    assert_eq!(awk(&done.text, "Forward frames received:", 4), ["1000"]);
    assert!(!done.text.contains("PDV"), "{}", done.text);
    assert_eq!(tester.trials[0].frame_timeout.unwrap().as_millis(), 10);
}

#[test]
fn a_stateful_run_prints_both_phases() {
    let mut tester = StandIn::new();
    let done = finish(Program::Tp, "84 1000 1 2000 2 2 400 400 1000 500 1400", STATEFUL, &mut tester);
    assert_eq!(done.code, 0, "{}", done.text);
    assert_eq!(awk(&done.text, "Preliminary frames received:", 4), ["400"]);
    assert_eq!(awk(&done.text, "Reverse frames received:", 4), ["1000"]);
}

#[test]
fn a_state_table_that_was_not_filled_ends_the_run() {
    let mut tester = StandIn::new();
    tester.learn = 399;
    let done = finish(Program::Tp, "84 1000 1 2000 2 2 400 400 1000 500 1400", STATEFUL, &mut tester);
    assert_eq!(done.code, 1);
    assert!(done.text.contains("Error: Failed to fill state table"), "{}", done.text);
    assert_eq!(awk(&done.text, "Preliminary frames received:", 4), ["400"]);
    assert_eq!(tester.trials.len(), 1);
}

#[test]
fn a_tester_that_fails_is_an_error_and_an_interruption_has_its_code() {
    let mut tester = StandIn::new();
    tester.fail = true;
    let done = finish(Program::Tp, "84 1000 1 2000 2 2", CONF, &mut tester);
    assert_eq!(done.code, 130);
    assert!(done.text.contains("Error: interrupted"), "{}", done.text);
}

#[test]
fn a_program_is_known_by_its_name_whatever_path_is_before_it() {
    assert_eq!(Program::named("./build/siitperf-lat"), Some(Program::Lat));
    assert_eq!(Program::named("siitperf-pdv"), Some(Program::Pdv));
    assert_eq!(Program::named("siitperf"), None);
}

#[test]
fn processor_keys_are_noted_as_without_effect() {
    let done = finish(Program::Tp, "84 10 1 0 2 2", CONF, &mut StandIn::new());
    assert_eq!(
        done.text.lines().filter(|l| l.starts_with("Info: CPU-") && l.contains("no effect")).count(),
        4
    );
}
