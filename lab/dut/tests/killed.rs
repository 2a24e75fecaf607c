//! A lab that is killed: its device's processes go with it, and the next lab takes the rest away. Needs root.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use shoal_lab_plan::Forwarding;
use support::*;

/// `examples/device.rs`, which cargo builds with the tests.
fn example() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().with_file_name("examples").join("device")
}

/// A lab of another process with a started device.
fn other_lab(lab: &Lab, words: &[&str]) -> Option<Child> {
    let mut child = Command::new(example())
        .args(words)
        .env("PREFIX", lab.prefix())
        .env("FOLDER", lab.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    if out.lines().map_while(Result::ok).any(|line| line == "ready") {
        return Some(child);
    }
    child.wait().unwrap();
    None
}

fn await_that(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills a lab and starts another: what is left in between is what only the journal knows of.
fn killed(test: &str, words: &[&str]) {
    let Some(lab) = Lab::begin(test) else { return };
    if !example().exists() {
        println!(
            "SKIP {test}: {} is not built; `cargo test` without `--test` builds it",
            example().display()
        );
        return;
    }
    let Some(mut other) = other_lab(&lab, words) else {
        println!("SKIP {test}: {words:?} does not start here");
        return;
    };
    let theirs = format!("{}-{}-", lab.prefix(), other.id());
    other.kill().unwrap();
    other.wait().unwrap();
    let running =
        |what: &str| processes(what).into_iter().filter(|line| !line.contains("examples/device")).count();
    await_that("its processes outlive it", || running(&theirs) == 0);
    let left = std::fs::read_dir(lab.folder()).unwrap().count();
    assert_eq!(left, 1, "nothing was left to take away: the test shows nothing");
    let mut next = lab.device("wire");
    next.start(&scenario(Forwarding::Route), "af-packet").unwrap();
    let notes = next.describe().notes;
    assert!(notes.iter().any(|n| n.contains("and taken away") && n.contains(&theirs)), "{notes:#?}");
    assert!(!notes.iter().any(|n| n.contains("still there")), "{notes:#?}");
    next.stop();
    lab.left_nothing();
}

#[test]
fn namespaces_of_a_killed_lab_are_gone_after_the_next_start() {
    killed("namespaces_of_a_killed_lab_are_gone_after_the_next_start", &["linux-route", "af-packet"]);
}

#[test]
fn the_machines_settings_are_as_before_after_a_killed_nat() {
    let file = "/proc/sys/net/netfilter/nf_conntrack_max";
    let before = std::fs::read_to_string(file).unwrap_or_default();
    killed("the_machines_settings_are_as_before_after_a_killed_nat", &["linux-nft", "af-packet"]);
    assert_eq!(std::fs::read_to_string(file).unwrap_or_default(), before);
}

#[test]
fn programs_and_sockets_of_a_killed_lab_are_gone() {
    killed("programs_and_sockets_of_a_killed_lab_are_gone", &["testpmd-mac", "memif"]);
}

#[test]
fn a_switch_and_its_database_go_with_a_killed_lab() {
    killed("a_switch_and_its_database_go_with_a_killed_lab", &["ovs", "af-packet"]);
}
