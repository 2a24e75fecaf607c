//! Machines that lie: the doctor never panics, never waits, never prints what moves a terminal.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a test's failure, told at once"
)]

use crate::world;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use world::*;

#[test]
fn names_with_odd_characters_are_escaped_and_given_no_command() {
    let mut world = World::new();
    for name in [&b"\x1b[2Jevil"[..], b"a;reboot", b"{x}", b"-v", b"caf\xc3\xa9", b"\xff\xfe", b"it's", b"#1"]
    {
        world.port(OsStr::from_bytes(name));
    }
    world.port("ok.7@x+y_z-1");
    let text = world.doctor();
    assert!(text.contains("\\x1b[2Jevil"), "{text}");
    let report = world.json();
    for port in report["ports"].as_array().unwrap() {
        let plain = port["name"] == "ok.7@x+y_z-1";
        assert_eq!(port["ways"].as_array().unwrap().is_empty(), !plain, "{port}");
        assert_eq!(port["state"], if plain { "free" } else { "not-for-us" });
    }
    assert!(text.contains("ip link set dev $'it\\'s' name NAME"), "{text}");
}

/// All files of a tree.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

fn whole() -> World {
    let mut world = World::new();
    world.card("eth0", "0000:00:03.0", (0x1af4, 0x1041), "virtio_net", "/virtio0");
    world.port("veth1");
    world.default4("eth0");
    world.default6("eth0");
    world.write("proc/net/dev", "a\nb\n eth0: 1\n veth1: 2\n");
    world.write("proc/net/if_inet6", "20010db8000000000000000000000005 02 40 00 80 eth0\n");
    world.write("proc/net/tcp", "head\n 0: 097100CB:0016 017100CB:C822 01 0\n");
    world.write("proc/net/tcp6", "head\n");
    world.write("proc/self/cgroup", "0::/a\n");
    world.write("sys/devices/system/node/online", "0-1\n");
    world.write("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n");
    world.write("lib/modules/6.12.9-amd64/modules.dep", "kernel/vfio-pci.ko:\n");
    world
}

#[test]
fn every_file_may_be_garbage_huge_a_pipe_a_loop_or_missing() {
    let world = whole();
    let mut all = Vec::new();
    files(world.dir.path(), &mut all);
    assert!(all.len() > 40);
    for file in &all {
        let was = fs::read(file).unwrap();
        let long: Vec<u8> = (0..70_000u32).map(|i| (i * 7 % 251) as u8).collect();
        let digits = "9".repeat(5000);
        let texts: [&[u8]; 8] = [
            b"", b"\0\xff\x1b[31m\n\x80", &long, digits.as_bytes(), b"-1\n", b"0-4294967295\n",
            b"\xc3\xa9 \xc3\xa9 \xc3\xa9: \xc3\xa9:\xc3\xa9 \xc3\xa9 \xc3\xa9 \xc3\xa9 \xc3\xa9 \xc3\xa9\n\xc3\xa9:\n",
            b": : : : : : : : : :\n::::::\n- - - -\n[]\n[",
        ];
        for text in texts {
            fs::write(file, text).unwrap();
            world.doctor();
        }
        fs::remove_file(file).unwrap();
        world.doctor();
        symlink(file, file).unwrap();
        world.doctor();
        fs::remove_file(file).unwrap();
        nix::unistd::mkfifo(file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        world.doctor();
        world.tune("apply hugepages thp governor --dry-run");
        fs::remove_file(file).unwrap();
        fs::create_dir(file).unwrap();
        world.doctor();
        fs::remove_dir(file).unwrap();
        fs::write(file, was).unwrap();
    }
    let report = world.json();
    assert_eq!(port(&report, "eth0")["state"], "left-alone", "all is as it was");
}

#[test]
fn an_empty_machine_is_reported_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new();
    world.around.root = dir.path().join("nothing");
    let report = world.json();
    assert_eq!(report["ports"].as_array().unwrap().len(), 0);
    assert_eq!(finding(&report, "kernel")["verdict"], "unknown");
    assert!(world.doctor().contains("no interface here yet"));
    assert_eq!(world.tune("").code, 0);
    assert_eq!(world.tune("apply hugepages").code, 1);
}

#[test]
fn a_flood_of_interfaces_is_bounded() {
    let mut world = World::new();
    for i in 0..1500 {
        fs::create_dir_all(world.path(&format!("sys/class/net/a{i}"))).unwrap();
    }
    // Beyond what is listed, and yet what lies below it is left alone.
    fs::create_dir_all(world.path("sys/class/net/zz.7/lower_zz0")).unwrap();
    world.card("zz0", "0000:01:00.0", (0x8086, 0x125c), "igc", "");
    world.default4("zz.7");
    let report = world.json();
    assert_eq!(report["ports"].as_array().unwrap().len(), 1024);
    assert_eq!(report["more_ports"], 1502 - 1024);
    assert_eq!(port(&report, "zz0")["carries"]["default-route4"], "zz.7");
    assert!(world.doctor().contains("and 478 more interfaces, not listed"));
}

#[test]
fn what_may_not_be_read_is_named() {
    let world = whole();
    let secret = world.path("proc/net/tcp");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&secret).is_ok() {
        println!("SKIP what_may_not_be_read_is_named: root reads everything");
        return;
    }
    assert!(world.doctor().contains("/proc/net/tcp: permission denied"));
}

#[test]
fn a_session_that_lies_about_itself_holds_nothing_and_breaks_nothing() {
    let mut world = whole();
    for text in [
        &b""[..],
        b"x",
        b"1 2 3",
        b"999.1.1.1 1 1.1.1.1 99999",
        b"% % % %",
        b"\xff \xff \xff \xff",
        b"::1 1 ::1 22",
    ] {
        world.around.ssh_connection = Some(OsStr::from_bytes(text).to_owned());
        world.doctor();
    }
    world.around.ssh_connection = Some("9 ".repeat(100_000).into());
    world.doctor();
}
