//! Drivers without a router: frames through their devices, libraries that are none, plugins that lie.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::path::Path;

use shoal_plugin_host::{BareDevice, BareDriver, BareError, Sent};

/// A driver of its own: each file is a library of its own, with a pair of devices that a wire joins.
fn driver(folder: &Path, file: &str, settings: &str) -> BareDriver {
    common::compile_from(folder, file, "driver.c", &[]);
    let driver = BareDriver::load(&folder.join(file), "test").unwrap();
    driver.start(Some(settings)).unwrap();
    driver
}

fn pair(driver: &BareDriver) -> [BareDevice; 2] {
    [driver.attach("left").unwrap(), driver.attach("right").unwrap()].map(|mut device| {
        device.up().unwrap();
        device
    })
}

fn frame(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * 7 + length) as u8).collect()
}

fn received(device: &mut BareDevice, most: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let count = device.receive(most, &mut |bytes| all.push(bytes.to_vec()));
    assert_eq!(count, all.len());
    all
}

#[test]
fn frames_of_all_lengths_go_through_a_pair_of_devices() {
    let folder = tempfile::tempdir().unwrap();
    let driver = driver(folder.path(), "pair.so", "");
    let [mut left, mut right] = pair(&driver);
    assert_eq!((left.name(), left.mtu(), left.rx_queues(), driver.version()), ("test0", 1500, 1, "1"));
    let frames: Vec<_> = [60, 2048, 2049, 4096, 9000, 14].map(frame).into();
    let sent = left.send(frames.iter().map(Vec::as_slice));
    assert_eq!(sent, Sent { taken: 6, refused: 0 });
    // What was not asked for now is given at the next call.
    let mut all = received(&mut right, 2);
    assert_eq!(all.len(), 2);
    while all.len() < frames.len() {
        let more = received(&mut right, 1);
        assert_eq!(more.len(), 1);
        all.extend(more);
    }
    assert_eq!(all, frames);
    assert_eq!((received(&mut right, 64).len(), received(&mut left, 64).len(), right.lost()), (0, 0, 0));
    // The wire holds 64; the others are offered again.
    let many = vec![frame(100); 70];
    assert_eq!(right.send(many.iter().map(Vec::as_slice)).taken, 64);
    assert_eq!(received(&mut left, 256).len(), 64);
    assert_eq!(right.send(many.iter().skip(64).map(Vec::as_slice)).taken, 6);
    assert_eq!(left.send(std::iter::empty()), Sent::default());
}

#[test]
fn what_is_changed_of_a_device_is_the_plugins_to_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let driver = driver(folder.path(), "set.so", "mode 41");
    let [mut left, _right] = pair(&driver);
    left.set_mtu(1600).unwrap();
    let why = left.set_mtu(9000).unwrap_err().to_string();
    assert_eq!((why.as_str(), left.mtu()), ("test: MTU from 64 to 2000", 1600));
    assert!(left.promiscuous().unwrap_err().to_string().contains("returned 5"));
    let link = left.link().unwrap();
    assert_eq!((link.up, link.speed, link.gone, link.missed), (true, 2500, false, 5));
    for (words, said) in [
        ("no", "test: there is no such device"),
        ("rx0", "the number of receive queues of its device is 0, expected 1 to 64"),
        ("mtu", "the MTU of its device is 0"),
        ("mac", "the MAC address"),
        ("name", "the name of its device is `a b'"),
        ("again", "the number of its device is 0, expected one that no open device has"),
    ] {
        let why = driver.attach(words).map(drop).unwrap_err().to_string();
        assert!(why.contains(said), "{words}: {why}");
    }
    // Each was closed again, and numbers of threads are given back: there is room for the next, again and again.
    for _ in 0..100 {
        assert_eq!(driver.attach("next").unwrap().name(), "test2");
    }
}

#[test]
fn a_plugin_that_lies_costs_frames_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    // Two frames are sent, one of them in two slots: how many come, and how many are reported as lost.
    for (mode, come, lost) in
        [(1, 0, 2), (2, 0, 2), (3, 1, 1), (6, 2, 6), (7, 2, 0), (8, 2, 0), (9, 2, 0), (20, 2, 0)]
    {
        let driver = driver(folder.path(), &format!("{mode}.so"), &format!("mode {mode}"));
        let [mut left, mut right] = pair(&driver);
        let frames = [frame(3000), frame(100)];
        assert_eq!(left.send(frames.iter().map(Vec::as_slice)).taken, 2);
        assert_eq!((received(&mut right, 256).len(), right.lost()), (come, lost), "mode {mode}");
        assert!(received(&mut right, 256).is_empty());
    }
    for (mode, taken, refused) in [(10, 2, 0), (11, 2, 2), (12, 0, 0)] {
        let driver = driver(folder.path(), &format!("{mode}.so"), &format!("mode {mode}"));
        let [mut left, _right] = pair(&driver);
        let frames = [frame(3000), frame(100)];
        assert_eq!(left.send(frames.iter().map(Vec::as_slice)), Sent { taken, refused }, "mode {mode}");
    }
    let driver = driver(folder.path(), "30.so", "mode 30");
    assert_eq!(driver.attach("x").unwrap().link(), None);
}

#[test]
fn libraries_that_are_no_plugins_are_named_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let load = |file: &str, name: &str| BareDriver::load(&folder.path().join(file), name).unwrap_err();
    common::compile(folder.path(), "major.so", &["MAJOR=2"]);
    common::compile(folder.path(), "init.so", &["INIT=5"]);
    common::compile(folder.path(), "nodes.so", &[]);
    common::compile_from(folder.path(), "twice.so", "driver.c", &["TWICE"]);
    common::compile_from(folder.path(), "driver.so", "driver.c", &[]);
    std::fs::write(folder.path().join("text.so"), "not a library").unwrap();
    for (file, said) in [
        ("nowhere.so", "No such file"),
        ("text.so", "cannot be loaded, expected a shared library of this machine"),
        ("major.so", "was built for plugin ABI 2.2, expected 1.0 to 1.2"),
        ("init.so", "its init function returned 5"),
        ("nodes.so", "brings no driver `dpdk', it brings none"),
        ("driver.so", "brings no driver `dpdk', it brings test"),
        ("twice.so", "driver `test' exists already"),
    ] {
        let why = load(file, "dpdk").to_string();
        assert!(why.contains(said) && why.contains(file) && why.lines().count() == 1, "{why}");
    }
}

#[test]
fn a_driver_starts_once_in_a_process() {
    let folder = tempfile::tempdir().unwrap();
    common::compile_from(folder.path(), "once.so", "driver.c", &[]);
    let file = folder.path().join("once.so");
    let driver = BareDriver::load(&file, "test").unwrap();
    assert!(!driver.is_started());
    driver.start(None).unwrap();
    let link = folder.path().join("link.so");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    // The same library by another name is the same driver.
    let again = BareDriver::load(&link, "test").unwrap();
    assert!(again.is_started() && again.start(None).is_ok());
    let why = again.start(Some("2")).unwrap_err();
    assert!(matches!(why, BareError::Started { .. }), "{why}");
    common::compile_from(folder.path(), "wrong.so", "driver.c", &[]);
    let wrong = BareDriver::load(&folder.path().join("wrong.so"), "test").unwrap();
    for _ in 0..2 {
        let why = wrong.start(Some("wrong")).unwrap_err().to_string();
        assert_eq!(why, "test: `wrong' is no setting, expected a number");
    }
}
