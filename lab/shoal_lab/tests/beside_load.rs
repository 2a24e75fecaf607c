//! The program beside a load generator: it refuses, and says why. Everything here makes its own load; what else runs can only
//! add to it.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

const LAB: &str = env!("CARGO_BIN_EXE_shoal-lab");

/// One test at a time: each has the load that it makes, and the last one wants none.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn processors() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// Busy loops, called `spinner`.
struct Load {
    spinners: Vec<Child>,
    /// Has the link that gives them their name.
    _folder: tempfile::TempDir,
}

impl Load {
    /// On the tester's processor only, with a priority: the tester goes before all others (-20), so what is to disturb it needs
    /// one, too. The other processors are left to other tests.
    fn beside_the_tester() -> Load {
        let count = processors();
        Load::make(&[if count < 4 { count - 1 } else { 3 }], -10)
    }

    /// On each processor, as ordinary programs are.
    fn everywhere() -> Load {
        Load::make(&(0..processors()).collect::<Vec<_>>(), 0)
    }

    fn make(cores: &[usize], nice: i32) -> Load {
        let folder = tempfile::tempdir().unwrap();
        let spinner = folder.path().join("spinner");
        symlink("/bin/sh", &spinner).unwrap();
        let spin = |core: &usize| {
            // In a session of its own, whose share of the processors does not depend on what else the tests' session does.
            let child = Command::new("setsid")
                .arg(&spinner)
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let mut set = CpuSet::new();
            set.set(*core).unwrap();
            // In a container that has other processors the scheduler spreads them.
            let _ = sched_setaffinity(Pid::from_raw(child.id().cast_signed()), &set);
            let id = rustix::process::Pid::from_raw(child.id().cast_signed());
            let _ = rustix::process::setpriority_process(id, nice);
            child
        };
        let load = Load { spinners: cores.iter().map(spin).collect(), _folder: folder };
        let end = Instant::now() + Duration::from_mins(1);
        let runs = |child: &Child| {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap_or_default();
            name.trim() == "spinner"
        };
        while !load.spinners.iter().all(runs) {
            assert!(Instant::now() < end, "no load in 60 s");
            std::thread::sleep(Duration::from_millis(5));
        }
        load
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.spinners {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn lab(results: &Path, arguments: &str) -> (i32, String) {
    let arguments = arguments.split_whitespace();
    let output = Command::new(LAB)
        .arg("--results")
        .arg(results)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap_or(-1), text)
}

fn is_root(test: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("SKIP {test}: needs root");
    }
    root
}

/// A sentence has room for those that used most. Where many others are at work they may be these.
fn names_the_load(text: &str) {
    let named = text.matches(" %,").count();
    assert!(text.contains("spinner (") || named >= 4, "{text}");
}

fn only_folder(results: &Path) -> PathBuf {
    std::fs::read_dir(results).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_self_test_beside_load_is_refused_and_names_who_took_the_processor() {
    let _alone = alone();
    let results = tempfile::tempdir().unwrap();
    let _load = Load::beside_the_tester();
    let (code, text) = lab(results.path(), "selftest --transport memif --duration 300ms");
    assert_eq!(code, 5, "{text}");
    assert!(text.contains("refused: not a measurement, tried 3 times: others used"), "{text}");
    assert!(text.contains(" %. End them") && text.contains("--when-disturbed mark"), "{text}");
    names_the_load(&text);
    assert!(!text.contains("without loss"), "a figure was told: {text}");
}

#[test]
fn a_doctor_beside_load_says_that_nothing_would_be_measured() {
    let _alone = alone();
    let results = tempfile::tempdir().unwrap();
    let _load = Load::everywhere();
    let (code, text) = lab(results.path(), "doctor");
    assert_eq!(code, 5, "{text}");
    assert!(text.contains("would refuse to measure now: other work"), "{text}");
    names_the_load(&text);
    let (code, text) = lab(results.path(), "--json doctor");
    let findings: serde_json::Value = serde_json::from_str(&text).unwrap();
    let found = findings.as_array().unwrap().iter().find(|f| f["what"] == "other work").unwrap();
    assert_eq!((code, found["state"].as_str()), (5, Some("refuses")), "{found}");
}

/// Whatever was refused: no figure of the test anywhere, and its reason everywhere.
fn has_no_figure(results: &Path, test: &str) {
    let folder = only_folder(results);
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&read("summary.json")).unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!((row["test"].as_str(), row["metric"].as_str()), (Some(test), Some("refused")), "{row}");
    assert!(row["values"].as_array().unwrap().is_empty(), "{row}");
    assert!(row["trust"].as_array().unwrap().iter().any(|t| t == "refused"), "{row}");
    names_the_load(row["note"].as_str().unwrap());
    assert!(read("summary.csv").contains(",refused,"), "{}", read("summary.csv"));
    let page = read("report.html");
    assert!(page.contains("refused: not a measurement") && page.contains("Others took at most"));
    // Every try is kept, with who had the processors.
    let trials: Vec<serde_json::Value> =
        read("trials.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let last = trials.last().unwrap();
    assert!(trials.len() >= 3 && last["verdict"]["kind"] == "disturbed", "{last}");
    let others =
        |trial: &serde_json::Value| trial["outcome"]["processors"]["others"].as_array().unwrap().clone();
    let spinner = trials.iter().flat_map(others).find(|other| other["name"] == "spinner");
    assert!(spinner.is_some_and(|s| s["share"].as_f64() > Some(0.0)), "{last}");
}

#[test]
fn a_measurement_beside_load_is_refused_in_every_result() {
    const NAME: &str = "a_measurement_beside_load_is_refused_in_every_result";
    if !is_root(NAME) {
        return;
    }
    let _alone = alone();
    let results = tempfile::tempdir().unwrap();
    let _load = Load::beside_the_tester();
    let arguments = "--json run throughput --dut wire --transport af-packet --duration 300ms --runs 1";
    let (code, text) = lab(results.path(), arguments);
    assert_eq!(code, 5, "{text}");
    let said: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let of = |kind: &str| said.iter().filter_map(|s| s.get(kind)).collect::<Vec<_>>();
    let [estimate, end] = ["estimate", "end"].map(|kind| of(kind)[0]);
    assert!(estimate["at_most_seconds"].as_f64() > estimate["seconds"].as_f64(), "{estimate}");
    assert_eq!(
        (end["exit"].as_i64(), end["rows"][0]["metric"].as_str()),
        (Some(5), Some("refused")),
        "{end}"
    );
    assert!(of("trial").iter().all(|t| t["taken"].as_f64() > Some(0.02)), "{text}");
    assert!(of("trial")[0]["processors"]["cores"].as_array().is_some_and(|c| !c.is_empty()), "{text}");
    has_no_figure(results.path(), "throughput");
}

#[test]
fn a_router_beside_load_is_not_measured() {
    const NAME: &str = "a_router_beside_load_is_not_measured";
    let shoal = Path::new(LAB).with_file_name("shoal");
    if !shoal.exists() || !Path::new(LAB).with_file_name("shoalctl").exists() {
        println!("SKIP {NAME}: {} is not built", shoal.display());
        return;
    }
    if !is_root(NAME) {
        return;
    }
    let _alone = alone();
    let results = tempfile::tempdir().unwrap();
    // At an ordinary priority: the tester keeps its processor, the router does not. A profile needs no self-test before.
    let _load = Load::everywhere();
    let arguments =
        "run stl thesis --dut shoal --transport memif --port-rate 1mpps --duration 300ms --runs 1 --plain";
    let (code, text) = lab(results.path(), arguments);
    if text.contains("python") {
        println!("SKIP {NAME}: {text}");
        return;
    }
    assert_eq!(code, 5, "{text}");
    assert!(text.contains("stl shoal: refused: not a measurement"), "{text}");
    has_no_figure(results.path(), "stl");
}

#[test]
fn without_load_there_is_a_figure() {
    let _alone = alone();
    let results = tempfile::tempdir().unwrap();
    let (code, text) = lab(results.path(), "selftest --transport memif --duration 100ms");
    if code == 5 && text.contains("refused") {
        // Another program's load, which this test cannot end.
        assert!(!text.contains("spinner ("), "a load that has ended is named: {text}");
        println!("SKIP without_load_there_is_a_figure: {text}");
        return;
    }
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("without loss"), "{text}");
}
