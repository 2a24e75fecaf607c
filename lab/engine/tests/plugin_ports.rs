//! The tester at devices of a plugin that stands in for DPDK's: in C, compiled here, a wire between each two devices. What
//! the real plugin cannot be made to do is here: devices that go away, plugins of other versions.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shoal_lab_engine::{
    DpdkError, DpdkPort, DpdkSettings, Engine, MachineClock, Transport as _, dpdk_plugin, dpdk_settings,
};
use shoal_lab_plan::*;
use shoal_testkit::netns::skipped;
use support::*;

/// What DPDK is started with is the process's: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A folder with the plugin; none, said as a skip does, without a compiler.
struct Built {
    folder: tempfile::TempDir,
    _one: MutexGuard<'static, ()>,
}

impl Built {
    fn new(test: &str) -> Option<Built> {
        if Command::new("cc").arg("--version").output().is_err() {
            skipped(format_args!("{test}: no cc"));
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        Some(Built { folder, _one: ONE.lock().unwrap_or_else(PoisonError::into_inner) })
    }

    /// Each file is a library of its own.
    fn compile(&self, file: &str, source: &str, defines: &[&str]) -> PathBuf {
        let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin");
        let path = self.folder.path().join(file);
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-O1", "-w", "-fPIC", "-shared", "-fvisibility=hidden", "-I"]);
        cc.arg(plugin.join("include")).args(defines.iter().map(|d| format!("-D{d}")));
        cc.arg("-o").arg(&path).arg(plugin.join("host/tests").join(source));
        assert!(cc.status().unwrap().success(), "{cc:?}");
        path
    }

    /// The plugin, told by its stanza how to lie.
    fn driver(&self, file: &str, stanza: Option<&str>) {
        let plugin = Some(self.compile(file, "driver.c", &["DRIVER=\"dpdk\""]));
        dpdk_settings(DpdkSettings { plugin, stanza: stanza.map(str::to_owned) });
    }
}

fn open() -> Result<[DpdkPort; 2], DpdkError> {
    DpdkPort::open([(None, "net_left"), (None, "net_right")])
}

fn engine() -> Engine<DpdkPort, MachineClock> {
    let [left, right] = open().unwrap();
    Engine::new(left, right, MachineClock::calibrated())
}

#[test]
fn all_frames_arrive_and_the_device_says_what_it_takes() {
    let Some(built) = Built::new("all_frames_arrive_and_the_device_says_what_it_takes") else { return };
    built.driver("wire.so", None);
    assert_eq!(dpdk_plugin().unwrap().version, "1");
    let engine = engine();
    let facts = engine.facts();
    assert_eq!((facts.transport.as_str(), facts.most_frame, facts.smallest_ring), ("dpdk", 1526, 2048));
    all_arrive(engine);
    // Started without the bus, it stays so; and with something else it cannot be started again.
    let why = DpdkPort::open([(None, "net_left"), (None, "0000:03:00.0")]).map(drop).unwrap_err().to_string();
    assert!(why.contains("0000:03:00.0 is on the PCI bus") && why.contains("tester.dpdk"), "{why}");
    let plugin = Some(built.folder.path().join("wire.so"));
    dpdk_settings(DpdkSettings { plugin, stanza: Some("elsewise".into()) });
    let why = open().map(drop).unwrap_err().to_string();
    assert!(why.contains("runs in this process already") && why.contains("`elsewise'"), "{why}");
}

#[test]
fn frames_that_the_device_refuses_are_the_testers_loss_and_longer_ones_are_refused_before() {
    let Some(built) = Built::new("frames_that_the_device_refuses_are_the_testers_loss") else { return };
    built.driver("refuses.so", Some("mode 11"));
    let mut engine = engine();
    let mut wanted = trial(1, vec![stream(Side::Left, 64, 1_000)], ms(100));
    wanted.timeout = ms(50);
    let outcome = engine.trial(&wanted, &mut Unwatched).unwrap();
    assert_eq!((outcome.streams[0].counts.sent, outcome.streams[0].counts.lost_sending), (100, 100));
    wanted.streams = vec![stream(Side::Left, 1527, 1_000)];
    let why = engine.trial(&wanted, &mut Unwatched).unwrap_err().to_string();
    assert!(why.contains("dpdk net_left takes 18 to 1526, with FCS"), "{why}");
}

#[test]
fn a_device_that_has_gone_ends_the_trial_with_its_name() {
    let Some(built) = Built::new("a_device_that_has_gone_ends_the_trial_with_its_name") else { return };
    built.driver("gone.so", Some("mode 40"));
    let mut engine = engine();
    assert!(!engine.ports()[0].is_attached());
    let why = engine.trial(&trial(1, both(64, 1_000), ms(50)), &mut Unwatched).unwrap_err().to_string();
    assert_eq!(why, "dpdk net_left: its device has gone and does not come back: it has to be attached again");
}

#[test]
fn what_is_no_plugin_is_named_with_the_way_to_build_one() {
    let Some(built) = Built::new("what_is_no_plugin_is_named_with_the_way_to_build_one") else { return };
    built.compile("major.so", "wrong.c", &["MAJOR=2"]);
    built.compile("nodes.so", "wrong.c", &[]);
    std::fs::write(built.folder.path().join("text.so"), "not a library").unwrap();
    for (file, said) in [
        ("nowhere.so", "No such file"),
        ("text.so", "cannot be loaded"),
        ("major.so", "was built for plugin ABI 2.2, expected 1.0 to 1.2"),
        ("nodes.so", "brings no driver `dpdk'"),
    ] {
        let plugin = Some(built.folder.path().join(file));
        dpdk_settings(DpdkSettings { plugin, stanza: None });
        for why in [open().map(drop).unwrap_err(), dpdk_plugin().map(drop).unwrap_err()] {
            let why = why.to_string();
            assert!(why.contains(said) && why.contains(file) && why.contains("`make dpdk'"), "{why}");
        }
    }
    built.driver("wrong.so", Some("wrong"));
    let why = open().map(drop).unwrap_err().to_string();
    assert_eq!(why, "dpdk: `wrong' is no setting, expected a number");
}
