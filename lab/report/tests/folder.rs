//! Results folders: written, interrupted, full, read again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use shoal_lab_plan::{Delays, Sample, Verdict};
use shoal_lab_report::{Folder, HistogramOf, Page, ReportError, Results, SampleLine};
use support::{around, record, row, trial};

#[test]
fn what_is_written_is_read_again() {
    let here = tempfile::tempdir().unwrap();
    let record = record("a b/c");
    let mut folder = Folder::create(here.path(), &record).unwrap();
    assert!(folder.path().ends_with("2026-11-23-a-b-c"), "{:?}", folder.path());
    let trials = [trial(1, 1e6, Verdict::Pass), trial(2, 2e6, Verdict::Disturbed("stall \"x\"\n".into()))];
    for t in &trials {
        folder.trial(t).unwrap();
    }
    let sample = Sample {
        at: Duration::from_millis(1500),
        sent: [3, 4],
        received: [2, 1],
        bytes: [128, 64],
        lost: [1, 3],
    };
    let line = SampleLine::of("loadtest", "shoal, the \"router\"", "memif", "64b", 1, &sample);
    folder.sample(&line).unwrap();
    let of = HistogramOf {
        test: "latency".into(),
        dut: "shoal".into(),
        transport: "memif".into(),
        case: "64 B".into(),
        run: 1,
    };
    folder.histogram(&of, &[(1000, 5), (2000, 5)]).unwrap();
    folder.device_output("shoal", "ready\n").unwrap();
    let rows = vec![row("shoal", around(1e6, 20)), row("linux-route", Vec::new())];
    folder.summary(&record, &rows).unwrap();

    let read = Results::read(folder.path()).unwrap();
    assert_eq!((read.record, read.rows, read.trials.as_slice()), (record, rows, &trials[..]));
    assert_eq!((read.samples, read.histograms[0].of.clone()), (vec![line], of));
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    let csv = fs::read_to_string(folder.path().join("summary.csv")).unwrap();
    assert!(csv.starts_with(
        "seed,table,dut,config,cores,clock_ghz,scenario,frame_bytes,direction,metric,value,unit,n,"
    ));
    assert!(
        csv.contains("a b/c,throughput,shoal,memif; 1,1,,route IPv4,64,bi,throughput,1000002,fps/dir,20,"),
        "{csv}"
    );
}

#[test]
fn two_campaigns_of_a_day_have_two_folders() {
    let here = tempfile::tempdir().unwrap();
    let first = Folder::create(here.path(), &record("x")).unwrap();
    let second = Folder::create(here.path(), &record("x")).unwrap();
    assert_ne!(first.path(), second.path());
    assert!(second.path().ends_with("2026-11-23-x-2"));
}

#[test]
fn half_a_line_at_the_end_costs_that_line_and_is_told() {
    let here = tempfile::tempdir().unwrap();
    let mut folder = Folder::create(here.path(), &record("x")).unwrap();
    folder.trial(&trial(1, 1e6, Verdict::Pass)).unwrap();
    let (trials, samples) = (folder.path().join("trials.jsonl"), folder.path().join("samples.csv"));
    let whole = fs::read_to_string(&trials).unwrap();
    let half = whole.get(..whole.len() / 2).unwrap();
    fs::write(&trials, format!("{whole}{half}")).unwrap();
    fs::write(&samples, fs::read_to_string(&samples).unwrap() + "loadtest,shoal,64").unwrap();
    let read = Results::read(folder.path()).unwrap();
    assert_eq!(read.trials.len(), 1);
    assert_eq!(read.warnings.iter().filter(|w| w.contains("cut off")).count(), 2, "{:?}", read.warnings);

    let path = folder.path().to_owned();
    drop(folder);
    let mut resumed = Folder::open(&path).unwrap();
    resumed.trial(&trial(2, 2e6, Verdict::Pass)).unwrap();
    let read = Results::read(&path).unwrap();
    assert_eq!(read.trials.iter().map(|t| t.run).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn damage_before_the_end_is_an_error_with_its_line() {
    let here = tempfile::tempdir().unwrap();
    let mut folder = Folder::create(here.path(), &record("x")).unwrap();
    folder.trial(&trial(1, 1e6, Verdict::Pass)).unwrap();
    let file = folder.path().join("trials.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{whole}rubbish\n{whole}")).unwrap();
    let error = Results::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("trials.jsonl, line 2"), "{error}");
}

#[test]
fn a_folder_without_summary_shows_what_passed_so_far() {
    let here = tempfile::tempdir().unwrap();
    let mut folder = Folder::create(here.path(), &record("x")).unwrap();
    for t in [
        trial(1, 1e6, Verdict::Pass),
        trial(1, 3e6, Verdict::Fail(0.1)),
        trial(1, 2e6, Verdict::Pass),
        trial(2, 1.5e6, Verdict::Pass),
    ] {
        folder.trial(&t).unwrap();
    }
    let read = Results::read(folder.path()).unwrap();
    assert_eq!(read.rows.len(), 1);
    assert_eq!(read.rows[0].values, [2e6, 1.5e6]);
    let html = Page { results: vec![read], ..Page::default() }.html().unwrap();
    assert!(html.contains("There is no summary: the campaign did not end."));
}

#[test]
fn a_folder_of_something_else_is_refused_by_name() {
    let here = tempfile::tempdir().unwrap();
    let error = Results::read(here.path()).unwrap_err();
    assert!(matches!(error, ReportError::NoResults(_)), "{error}");
    assert!(error.to_string().contains("results/2026-01-31-paper"), "{error}");
}

#[test]
fn numbers_that_json_has_not_do_not_spoil_a_folder() {
    let here = tempfile::tempdir().unwrap();
    let mut folder = Folder::create(here.path(), &record("x")).unwrap();
    folder.trial(&trial(1, f64::NAN, Verdict::Fail(f64::INFINITY))).unwrap();
    let mut bad = row("shoal", vec![1.0, f64::NAN, f64::INFINITY]);
    bad.curve = vec![(1.0, f64::NAN), (1.0, 2.0)];
    folder.summary(&record("x"), &[bad]).unwrap();
    let mut odd = record("x");
    (odd.self_tests[0].most, odd.self_tests[0].floor_us, odd.host.clock_ghz) =
        (f64::NAN, Some(f64::NAN), Some(f64::NAN));
    odd.host.load = vec![f64::INFINITY];
    folder.record(&odd).unwrap();
    let read = Results::read(folder.path()).unwrap();
    assert_eq!((read.trials.len(), read.rows[0].values.as_slice()), (1, &[1.0][..]));
    assert_eq!(read.rows[0].curve, [(1.0, 2.0)]);
}

#[test]
fn delays_of_tags_become_a_histogram_without_the_lost() {
    let here = tempfile::tempdir().unwrap();
    let folder = Folder::create(here.path(), &record("x")).unwrap();
    let delays = Delays { tags: vec![Some(3000), None, Some(1000), Some(3000)], ..Delays::default() };
    folder.delays(&HistogramOf { dut: "shoal".into(), ..HistogramOf::default() }, &delays).unwrap();
    let read = Results::read(folder.path()).unwrap();
    let last = read.histograms[0].points.last().unwrap();
    assert_eq!((last.count, last.us), (3, 3.0));
}

#[test]
fn a_device_that_is_always_full_is_a_clear_error() {
    let here = tempfile::tempdir().unwrap();
    let folder = Folder::create(here.path(), &record("x")).unwrap();
    let path = folder.path().to_owned();
    drop(folder);
    fs::remove_file(path.join("trials.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/full", path.join("trials.jsonl")).unwrap();
    let error = Folder::open(&path).unwrap().trial(&trial(1, 1e6, Verdict::Pass)).unwrap_err().to_string();
    assert!(error.contains("trials.jsonl") && error.contains("free some space"), "{error}");
}

/// A file system of 64 KiB, gone with it.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let at = tempfile::tempdir().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(at.path()).output();
        if mounted.is_ok_and(|o| o.status.success()) {
            return Some(SmallDisk(at));
        }
        println!("SKIP folder: no right to mount a small file system");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg(self.0.path()).output();
    }
}

#[test]
fn a_disk_that_fills_up_keeps_what_was_written_whole() {
    let Some(disk) = SmallDisk::mount() else { return };
    let mut folder = Folder::create(disk.path(), &record("x")).unwrap();
    let mut written = 0;
    let error = loop {
        match folder.trial(&trial(written + 1, 1e6, Verdict::Pass)) {
            Ok(()) => written += 1,
            Err(error) => break error.to_string(),
        }
        assert!(written < 100_000, "64 KiB hold no more");
    };
    assert!(error.contains("free some space and resume"), "{error}");
    assert!(written > 10);
    let read = Results::read(folder.path()).unwrap();
    assert_eq!(read.trials.len() as u32, written, "each whole line is there and no half one");
    assert!(folder.record(&record("y")).is_err());
    assert_eq!(Results::read(folder.path()).unwrap().record.name, "x", "the old record is whole");
    fs::remove_file(folder.path().join("samples.csv")).unwrap();
    drop(folder);
}
