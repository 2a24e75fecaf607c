//! Configuration files and command lines: read, and refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may fail this way")]

use crate::support;

use proptest::prelude::*;
use shoal_lab_plan::Family;
use shoal_lab_siitperf::{Conf, KEYS, Program};
use support::*;

fn refused(text: &str) -> String {
    text.parse::<Conf>().unwrap_err().to_string()
}

fn refused_args(program: Program, args: &str, conf: &str) -> String {
    let done = finish(program, args, conf, &mut StandIn::new());
    assert_eq!(done.code, 2, "{}", done.text);
    let line = done.text.lines().find(|line| line.starts_with("Input Error: ")).unwrap();
    line.to_owned()
}

#[test]
fn a_file_as_people_write_it_is_read() {
    let conf: Conf = CONF.parse().unwrap();
    assert_eq!(conf.versions, [Family::Ip6, Family::Ip4]);
    assert_eq!(conf.virt6[1].to_string(), "2001:2:0:1000::2");
    assert_eq!(conf.virt4[0].to_string(), "198.18.0.2");
    assert_eq!(conf.mac_tester[1], [2, 0, 0, 0, 0, 2]);
    assert_eq!(conf.mac_dut[1], [2, 11, 12, 13, 14, 15]);
    assert!(!conf.promisc);
    assert_eq!(conf.notes.len(), 5);
}

#[test]
fn an_empty_file_gives_the_originals_defaults() {
    let conf: Conf = "\n  # nothing\n".parse().unwrap();
    assert_eq!(conf, Conf::default());
    assert_eq!(conf.versions, [Family::Ip6, Family::Ip4]);
    assert_eq!((conf.active, conf.promisc, conf.networks, conf.stateful), ([true; 2], true, [1; 2], 0));
    assert_eq!(conf.ports[0].source_range, (1024, 65_535));
    assert_eq!(conf.ports[1].destination_range, (1, 49_151));
}

#[test]
fn each_key_of_ports_and_hosts_goes_to_its_own_side() {
    let text = "Fwd-var-sport 3\nFwd-sport-min 10\nFwd-sport-max 20\nFwd-var-dport 2\nFwd-dport-min 1\nFwd-dport-max 2\n\
        Rev-var-sport 1\nRev-sport-min 30\nRev-sport-max 40\nRev-var-dport 0\nRev-dport-min 3\nRev-dport-max 4\n\
        IP-L-var 1\nIP-L-min 5\nIP-L-max 6\nIPv4-L-offset 1\nIPv6-L-offset 6\n\
        IP-R-var 2\nIP-R-min 7\nIP-R-max 8\nIPv4-R-offset 2\nIPv6-R-offset 12\n";
    let conf: Conf = text.parse().unwrap();
    let [forward, reverse] = conf.ports;
    assert_eq!((forward.source, forward.source_range), (3, (10, 20)));
    assert_eq!((forward.destination, forward.destination_range), (2, (1, 2)));
    assert_eq!((reverse.source, reverse.source_range), (1, (30, 40)));
    assert_eq!((reverse.destination, reverse.destination_range), (0, (3, 4)));
    let [left, right] = conf.hosts;
    assert_eq!((left.order, left.range, left.offset4, left.offset6), (1, (5, 6), 1, 6));
    assert_eq!((right.order, right.range, right.offset4, right.offset6), (2, (7, 8), 2, 12));
}

#[test]
fn the_old_name_of_responder_tuples_is_known() {
    assert_eq!("Responder-ports 2".parse::<Conf>().unwrap().responder_tuples, 2);
}

#[test]
fn every_key_is_taken_with_some_value() {
    for key in KEYS {
        let values = ["1", "4", "12", "60000", "198.18.0.1", "2001:2::1", "02:00:00:00:00:01"];
        let taken = values.iter().any(|value| format!("{key} {value}").parse::<Conf>().is_ok());
        assert!(taken, "{key}");
    }
}

#[test]
fn words_behind_a_value_are_noted_and_ignored_as_the_original_ignores_them() {
    let conf: Conf = "Reverse 0 only forward".parse().unwrap();
    assert_eq!(conf.active, [true, false]);
    assert_eq!(conf.notes, ["line 1: what stands behind the value of `Reverse` has no effect"]);
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_the_nearest() {
    assert_eq!(
        refused("Forward 1\n\nMAC-L-Teser 02:00:00:00:00:01"),
        "siitperf.conf line 3: `MAC-L-Teser` is no key; the nearest is `MAC-L-Tester`"
    );
}

#[test]
fn wrong_values_are_refused_with_the_nearest() {
    assert!(refused("Num-L-Nets 257").contains("the nearest is 256"));
    assert!(refused("Num-R-Nets 0").contains("the nearest is 1"));
    assert!(refused("Fwd-var-sport 4").contains("the nearest is 3"));
    assert!(refused("Fwd-sport-max 65536").contains("the nearest is 65535"));
    assert!(refused("IPv4-L-offset 3").contains("the nearest is 2"));
    assert!(refused("IPv6-R-offset 15").contains("the nearest is 14"));
    assert!(refused("Stateful 3").contains("the nearest is 2"));
    assert!(refused("Forward yes").contains("for instance 0"));
    assert!(refused("IP-L-Vers 5").contains("4 or 6"));
    assert!(refused("IPv4-L-Real 198.18.0").contains("for instance 198.18.0.2"));
    assert!(refused("MAC-L-DUT 02:00:00:00:00").contains("six bytes"));
    assert!(refused("MAC-L-DUT").contains("has no value"));
    assert!(refused("Forward 0\nReverse 0").contains("set one to 1"));
    assert!(refused("Fwd-sport-min 9\nFwd-sport-max 8").contains("the nearest is 9"));
    assert!(refused("Num-L-Nets 2\nIP-L-var 1").contains("many hosts need 1 network"));
    "Forward 0\nReverse 0\nStateful 1".parse::<Conf>().unwrap();
}

#[test]
fn arguments_beyond_the_originals_limits_are_refused_with_the_nearest() {
    let tp = |args| refused_args(Program::Tp, args, CONF);
    assert!(tp("83 1000 60 2000 2 2").contains("the nearest is 84"));
    assert!(tp("1539 1000 60 2000 2 2").contains("the nearest is 1538"));
    assert!(tp("1519 1000 60 2000 2 2").contains("the nearest is 1518"));
    assert!(tp("84 0 60 2000 2 2").contains("the nearest is 1"));
    assert!(tp("84 14880953 60 2000 2 2").contains("the nearest is 14880952"));
    assert!(tp("84 1000 3601 2000 2 2").contains("the nearest is 3600"));
    assert!(tp("84 1000 60 60001 2 2").contains("the nearest is 60000"));
    assert!(tp("84 1000 60 2000 1 1").contains("the nearest is 2"));
    assert!(tp("84 1000 60 2000 2 3").contains("the nearest is 2"));
    assert!(tp("84 fast 60 2000 2 2").contains("`fast`"));
    assert!(tp("84 1000 60 2000 2").contains("5 arguments; siitperf-tp takes 6"));
    assert!(tp("84 1000 60 2000 2 2 9").contains("7 arguments"));
    let lat = |args| refused_args(Program::Lat, args, CONF);
    assert!(lat("84 1000 60 2000 2 2 60 500").contains("the nearest is 59"));
    assert!(lat("84 1000 60 2000 2 2 30 50001").contains("the nearest is 50000"));
    assert!(lat("84 1 60 2000 2 2 30 500").contains("the nearest is 30"));
    assert!(lat("84 1000 60 2000 2 2").contains("<timestamps>"));
}

#[test]
fn large_frames_are_for_pure_ip4() {
    let pure = "IP-L-Vers 4\nIP-R-Vers 4";
    let done = finish(Program::Tp, "1538 10 1 0 2 2", pure, &mut StandIn::new());
    assert_eq!(done.code, 0, "{}", done.text);
    assert!(refused_args(Program::Tp, "1538 10 1 0 2 1", pure).contains("pure IPv4"));
}

#[test]
fn stateful_arguments_must_fit_each_other() {
    let tp = |args| refused_args(Program::Tp, args, STATEFUL);
    assert!(tp("84 1000 1 2000 2 2").contains("takes 11"));
    assert!(tp("84 1000 1 2000 2 2 400 400 1000 500 899").contains("the nearest is 900"));
    assert!(tp("84 1000 1 2000 2 2 400 401 1000 500 900").contains("the nearest is 400"));
    assert!(tp("84 1000 1 2000 2 1 400 201 1000 500 900").contains("the nearest is 200"));
    assert!(tp("84 1000 1 2000 2 2 400 400 1000 2001 9000").contains("the nearest is 2000"));
    assert!(tp("84 1000 1 2000 2 2 400 1 1000 500 900").contains("must be 0 if M is 1"));
    // 40 x 10 ports make 400 tuples.
    assert!(tp("84 1000 1 2000 2 2 401 400 1000 500 1000").contains("the nearest is 400"));
    let both = format!("{STATEFUL}\nEnumerate-ips 1");
    assert!(
        refused_args(Program::Tp, "84 1000 1 2000 2 2 400 400 1000 500 900", &both).contains("3 for both")
    );
}

proptest! {
    #[test]
    fn no_text_makes_reading_fail_otherwise_than_by_saying_so(text in "[A-Za-z0-9 :.#\n-]{0,80}", key in 0..KEYS.len()) {
        let _ = text.parse::<Conf>();
        let _ = format!("{} {text}", KEYS[key]).parse::<Conf>();
        finish(Program::Pdv, &text, CONF, &mut StandIn::new());
        finish(Program::Lat, &text, STATEFUL, &mut StandIn::new());
    }
}
