//! Configurations on disk: there is the old one or the new one, and who may read it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a test's failure"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use shoal_running::{Outcome, SaveOrigin, Store, StoreError, body};

fn at(secs: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(secs)
}

fn store(directory: &Path, keep: usize) -> Store {
    Store { directory: directory.to_owned(), keep, gid: None }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn nothing_is_made_before_something_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("lib/shoal");
    let store = store(&directory, 50);
    assert_eq!(store.read().unwrap(), None);
    assert_eq!(store.revisions().unwrap(), []);
    assert!(matches!(store.read_revision(1), Err(StoreError::NoRevision { number: 1, nearest: None })));
    assert!(!directory.exists());
    assert_eq!(store.save("a\n", at(0), SaveOrigin::default()).unwrap(), Outcome::Saved(1));
    assert_eq!(files(&directory), ["revisions", "startup.cli"]);
    assert_eq!((mode(&directory), mode(&directory.join("startup.cli"))), (0o750, 0o640));
    assert_eq!(mode(&directory.join("revisions/000001-19700101T000000Z.cli")), 0o640);
}

#[test]
fn what_is_saved_is_read_again_and_older_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), 50);
    assert_eq!(store.save("one\n", at(0), SaveOrigin::default()).unwrap(), Outcome::Saved(1));
    assert_eq!(store.save("two\n", at(86_400), SaveOrigin::default()).unwrap(), Outcome::Saved(2));
    let saved = store.read().unwrap().unwrap();
    assert_eq!((body(&saved.text), saved.cut), ("two\n", false));
    assert!(
        saved.text.starts_with("# Shoal configuration, revision 2, 1970-01-02T00:00:00Z\n"),
        "{}",
        saved.text
    );
    assert_eq!(body(&store.read_revision(1).unwrap()), "one\n");
    // The same once more is no revision; what somebody has changed in between is put right.
    assert_eq!(store.save("two\n", at(86_401), SaveOrigin::default()).unwrap(), Outcome::Same(2));
    fs::write(folder.path().join("startup.cli"), "comment mine\n").unwrap();
    assert_eq!(store.save("two\n", at(86_402), SaveOrigin::default()).unwrap(), Outcome::Saved(3));
    let all = store.revisions().unwrap();
    let told: Vec<(u64, &str)> = all.iter().map(|r| (r.number, r.time.as_str())).collect();
    assert_eq!(told, [(1, "1970-01-01T00:00:00Z"), (2, "1970-01-02T00:00:00Z"), (3, "1970-01-02T00:00:02Z")]);
    let error = store.read_revision(9).unwrap_err();
    assert_eq!(error.to_string(), "there is no revision 9, nearest 3");
}

#[test]
fn the_oldest_revisions_give_way() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), 3);
    fs::create_dir(folder.path().join("revisions")).unwrap();
    for foreign in ["README", "x-19700101T000000Z.cli", "000001-yesterday.cli"] {
        fs::write(folder.path().join("revisions").join(foreign), "").unwrap();
    }
    for n in 1..=7 {
        assert_eq!(store.save(&format!("{n}\n"), at(n), SaveOrigin::default()).unwrap(), Outcome::Saved(n));
    }
    let numbers: Vec<u64> = store.revisions().unwrap().iter().map(|r| r.number).collect();
    assert_eq!(numbers, [5, 6, 7]);
    assert_eq!(files(&folder.path().join("revisions")).len(), 6, "files of others stay");
}

#[test]
fn what_a_crash_left_behind_does_not_stop_the_next_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), 50);
    fs::write(folder.path().join("startup.new"), "half of someth").unwrap();
    assert_eq!(store.save("a\n", at(0), SaveOrigin::default()).unwrap(), Outcome::Saved(1));
    assert_eq!(files(folder.path()), ["revisions", "startup.cli"]);
}

#[test]
fn what_cannot_be_written_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), 50);
    store.save("old\n", at(0), SaveOrigin::default()).unwrap();
    // Root runs the tests and may write everywhere: a directory stands where the file is to be.
    let startup = folder.path().join("startup.cli");
    let aside: PathBuf = folder.path().join("kept");
    fs::rename(&startup, &aside).unwrap();
    fs::create_dir(&startup).unwrap();
    fs::write(startup.join("x"), "").unwrap();
    let error = store.save("new\n", at(1), SaveOrigin::default()).unwrap_err().to_string();
    assert!(error.contains("startup.cli"), "{error}");
    fs::remove_dir_all(&startup).unwrap();
    fs::rename(&aside, &startup).unwrap();
    assert_eq!(body(&store.read().unwrap().unwrap().text), "old\n");
    assert_eq!(store.revisions().unwrap().len(), 1, "there is no revision that never was");
    assert_eq!(files(folder.path()), ["revisions", "startup.cli"]);
}

#[test]
fn a_directory_that_cannot_be_made_is_named_with_what_to_do() {
    let store = store(Path::new("/dev/null/shoal"), 50);
    let error = store.save("a\n", at(0), SaveOrigin::default()).unwrap_err().to_string();
    assert!(
        error.contains("/dev/null/shoal") && error.contains("configuration { directory PATH }"),
        "{error}"
    );
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    // A file system of one page, where the machine lets us have one.
    let folder = tempfile::tempdir().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "shoal-test"])
        .arg(folder.path())
        .output();
    if !mounted.is_ok_and(|o| o.status.success()) {
        eprintln!("SKIP a_full_disk_leaves_the_old_file: no file system can be mounted here");
        return;
    }
    let store = store(folder.path(), 50);
    let small = store.save("old\n", at(0), SaveOrigin::default());
    let large =
        store.save(&"# a long line of a large configuration\n".repeat(4096), at(1), SaveOrigin::default());
    let read = store.read().map(|saved| body(&saved.unwrap().text).to_owned());
    let (left, revisions) = (files(folder.path()), store.revisions().map(|r| r.len()));
    let unmounted = std::process::Command::new("umount").arg(folder.path()).status();
    assert!(unmounted.unwrap().success());
    assert_eq!(small.unwrap(), Outcome::Saved(1));
    let error = large.unwrap_err().to_string();
    assert!(error.contains("No space left"), "{error}");
    assert_eq!((read.unwrap().as_str(), revisions.unwrap()), ("old\n", 1));
    assert_eq!(left, ["revisions", "startup.cli"]);
}

#[test]
fn what_is_no_file_of_commands_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), 50);
    fs::write(folder.path().join("startup.cli"), [0xff, 0xfe]).unwrap();
    assert!(store.read().unwrap_err().to_string().contains("not UTF-8 text"));
    fs::remove_file(folder.path().join("startup.cli")).unwrap();
    fs::create_dir(folder.path().join("startup.cli")).unwrap();
    assert!(store.read().unwrap_err().to_string().contains("not a file"));
}
