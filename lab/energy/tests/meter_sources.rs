//! Whole readings of the sources that need no network.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use shoal_lab_energy::{EnergyError, Meter, Source};

fn command(script: &str, limit_ms: u64) -> Source {
    Source::Command { argv: vec!["/bin/sh".into(), "-c".into(), script.into()], limit_ms }
}

fn measured(source: &Source) -> shoal_lab_energy::Reading {
    let mut meter = Meter::open(source).unwrap().every(Duration::from_millis(20));
    meter.start().unwrap();
    thread::sleep(Duration::from_millis(150)); // the time that is measured
    meter.stop().unwrap()
}

#[test]
fn a_command_that_prints_watts_is_integrated() {
    let reading = measured(&command("echo 42.5 W", 2000));
    assert!((reading.watts.unwrap() - 42.5).abs() < 1e-9, "{reading:?}");
    assert!(reading.samples.len() > 2, "{reading:?}");
}

#[test]
fn a_command_that_sometimes_fails_leaves_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("flag");
    let script =
        format!("if rmdir {0} 2>/dev/null; then echo 10; else mkdir {0}; echo garbage; fi", flag.display());
    fs::create_dir(&flag).unwrap();
    let reading = measured(&command(&script, 2000));
    assert!(reading.gaps.iter().all(|g| g.why.contains("garbage")), "{:?}", reading.gaps);
    assert!(!reading.gaps.is_empty());
}

#[test]
fn a_command_that_cannot_give_watts_fails_at_the_start() {
    for (script, wanted) in [
        ("echo lots", "gave \"lots\" for watts"),
        ("exit 3", "exit status: 3"),
        ("head -c 9999999 /dev/zero", "ended with"),
        ("true", "gave \"\" for watts"),
    ] {
        let error = Meter::open(&command(script, 2000)).unwrap().start().unwrap_err().to_string();
        assert!(error.contains(wanted), "{script}: {error}");
    }
    let error = Meter::open(&Source::Command { argv: vec!["/no/such/meter".into()], limit_ms: 100 })
        .unwrap()
        .start()
        .unwrap_err();
    assert!(error.to_string().starts_with("/no/such/meter: "), "{error}");
    assert!(matches!(
        Meter::open(&Source::Command { argv: Vec::new(), limit_ms: 1 }),
        Err(EnergyError::Command { .. })
    ));
}

#[test]
fn a_command_that_hangs_is_ended_with_what_it_started() {
    let began = Instant::now();
    let error = Meter::open(&command("sleep 30 & wait", 100)).unwrap().start().unwrap_err().to_string();
    assert!(error.contains("did not end within 100 ms"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20), "it was waited for");
}

#[test]
fn rapl_counts_what_the_counter_moved_while_it_ran() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("intel-rapl:0");
    fs::create_dir(&package).unwrap();
    for (file, text) in [("name", "package-0"), ("energy_uj", "900"), ("max_energy_range_uj", "1000")] {
        fs::write(package.join(file), text).unwrap();
    }
    let mut meter = Meter::open(&Source::Rapl { folder: folder.path().into() }).unwrap();
    meter.start().unwrap();
    fs::write(package.join("energy_uj"), "260").unwrap();
    let reading = meter.stop().unwrap();
    assert!((reading.wh.unwrap() * 3600.0 - 360e-6).abs() < 1e-12, "wrapped once: {reading:?}");
    assert_eq!(reading.scope, "package-0 (not wall)");
}
