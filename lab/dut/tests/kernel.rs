//! Linux's own forwarding, really set up, probed, reset and taken away. Needs root.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use crate::support;

use std::net::Ipv4Addr;

use shoal_lab_plan::{Attachment, DeviceError, Forwarding, Nat, Reset, Scenario};
use support::*;

#[test]
fn linux_routes_both_families_on_the_devices_processor() {
    let Some(lab) = Lab::begin("linux_routes_both_families_on_the_devices_processor") else { return };
    let mut device = lab.device("linux-route");
    let scenario = Scenario { networks: 4, routes: 1000, ..scenario(Forwarding::Route) };
    let ports = device.start(&scenario, "af-packet").unwrap();
    let Attachment::Interface { namespace: Some(namespace), name, transport } = &ports.left.attachment else {
        panic!("{ports:?}")
    };
    assert!(namespace.exists());
    assert_eq!((name.as_str(), transport.as_str()), ("left", "af-packet"));
    assert_eq!(ports.right.mac, Some([2, 0, 0, 0, 0xd, 2]));
    let told = device.describe();
    println!("{:#?}", told.notes);
    assert_all_passed(&told.notes);
    // In a user namespace the kernel lets no program choose where it receives.
    let placed = !told.notes.iter().any(|n| n.starts_with("receive placement could not be set"));
    let judged = |n: &String| n.ends_with("the device forwards on its own");
    assert!(!placed || told.notes.iter().any(judged), "{:#?}", told.notes);
    assert!(told.files.iter().any(|(name, text)| name == "routes.batch" && text.contains("198.19.3.0/24")));
    // Forwarded frames are received at one port and sent at the other: those of the probe, both ways, both families.
    let counters = device.counters().unwrap();
    let count = |name: &str| counters.iter().find(|(n, _)| n == name).unwrap().1;
    for name in ["left rx packets", "left tx packets", "right rx packets", "right tx packets"] {
        assert!(count(name) >= 2 * u64::from(PROBE), "{name}: {counters:?}");
    }
    assert!(device.cpu_time().is_some());
    device.stop();
    assert!(!namespace.exists());
    assert!(device.describe().commands.len() > 10, "the record outlives the device");
    device.stop();
    lab.left_nothing();
}

#[test]
fn linux_bridges() {
    let Some(lab) = Lab::begin("linux_bridges") else { return };
    let mut device = lab.device("linux-bridge");
    let ports = device.start(&scenario(Forwarding::Bridge), "af-xdp").unwrap();
    assert_eq!(ports.left.mac, None);
    assert_all_passed(&device.describe().notes);
    // The probe's frames came from the tester's addresses.
    let namespace = format!("{}d", namespace_of(&ports).strip_suffix('l').unwrap());
    let learnt = || bridge_fdb(&namespace).matches("02:00:00:00:5a:0").count();
    assert_eq!(learnt(), 2, "{}", bridge_fdb(&namespace));
    for _ in 0..2 {
        device.reset(Reset::Flush).unwrap();
    }
    assert_eq!(learnt(), 0, "{}", bridge_fdb(&namespace));
    let commands = device.describe().commands;
    assert_eq!(commands.iter().filter(|c| c.contains("fdb_flush")).count(), 1, "{commands:#?}");
    device.reset(Reset::Flap).unwrap();
    drop(device);
    lab.left_nothing();
}

/// Where the bridge of a namespace knows addresses.
fn bridge_fdb(namespace: &str) -> String {
    let out =
        std::process::Command::new("bridge").args(["-n", namespace, "fdb", "show", "br", "bridge0"]).output();
    String::from_utf8(out.unwrap().stdout).unwrap()
}

#[test]
fn linux_translates_with_nftables_and_with_iptables_and_forgets() {
    let Some(lab) = Lab::begin("linux_translates_with_nftables_and_with_iptables_and_forgets") else {
        return;
    };
    let nat = Nat { first: Ipv4Addr::new(203, 0, 113, 1), last: Ipv4Addr::new(203, 0, 113, 9) };
    let scenario = scenario(Forwarding::Snat(nat));
    for name in ["linux-nft", "linux-iptables"] {
        let mut device = lab.device(name);
        if let Err(why) = device.available(&scenario) {
            println!("SKIP linux_translates_with_nftables_and_with_iptables_and_forgets: {name}: {why}");
            continue;
        }
        device.start(&scenario, "af-packet").unwrap();
        let notes = device.describe().notes;
        println!("{notes:#?}");
        assert_all_passed(&notes);
        assert!(notes.iter().any(|n| n.contains("seen as 203.0.113.")), "{notes:#?}");
        device.reset(Reset::Flush).unwrap();
        device.reset(Reset::Reload).unwrap();
        let counters = device.counters().unwrap();
        assert!(counters.contains(&("sessions".to_owned(), 0)), "{counters:?}");
        assert!(device.describe().notes.iter().any(|n| n.contains("sessions were forgotten in ")));
    }
    lab.left_nothing();
}

#[test]
fn routes_and_neighbours_are_there_again_after_a_flap() {
    let Some(lab) = Lab::begin("routes_and_neighbours_are_there_again_after_a_flap") else { return };
    let mut device = lab.device("linux-route");
    let scenario = Scenario { networks: 3, ..scenario(Forwarding::Route) };
    let ports = device.start(&scenario, "af-packet").unwrap();
    let device_namespace = format!("{}d", namespace_of(&ports).strip_suffix('l').unwrap());
    let state = || {
        ["route", "-6 route", "neigh", "-6 neigh"]
            .map(|what| {
                let mut lines: Vec<String> = ip(&device_namespace, &format!("{what} show"))
                    .lines()
                    .map(|l| l.trim().to_owned())
                    .collect();
                lines.retain(|l| !l.contains("fe80::") && !l.contains("NOARP"));
                lines.sort();
                lines.join("\n")
            })
            .join("\n")
    };
    let before = state();
    assert!(
        before.contains("198.18.2.0/24 via 198.18.0.2 dev left")
            && before.contains("lladdr 02:00:00:00:5a:01 PERMANENT"),
        "{before}"
    );
    device.reset(Reset::Flap).unwrap();
    assert_eq!(state(), before);
    drop(device);
    lab.left_nothing();
}

#[test]
fn more_workers_are_more_processors_of_rps() {
    let Some(lab) = Lab::begin("more_workers_are_more_processors_of_rps") else { return };
    let mut device = lab.device("linux-route");
    device.start(&scenario(Forwarding::Route), "af-packet").unwrap();
    device.reset(Reset::Workers(2)).unwrap();
    let commands = device.describe().commands;
    assert!(
        commands.iter().any(|c| c.contains("echo 3 > /sys/class/net/left/queues/rx-0/rps_cpus")),
        "{commands:#?}"
    );
    drop(device);
    lab.left_nothing();
}

#[test]
fn a_kernel_is_not_started_anew_and_says_so() {
    let Some(lab) = Lab::begin("a_kernel_is_not_started_anew_and_says_so") else { return };
    let mut device = lab.device("linux-route");
    for kind in [Reset::Restart, Reset::Crash, Reset::Flush, Reset::Reload] {
        assert!(matches!(device.reset(kind), Err(DeviceError::Cannot { .. })), "{kind:?}");
    }
    assert!(matches!(device.reset(Reset::Flap), Err(DeviceError::Died { .. })), "it was not started");
    lab.left_nothing();
}

#[test]
fn a_start_that_fails_leaves_nothing() {
    let Some(lab) = Lab::begin("a_start_that_fails_leaves_nothing") else { return };
    let mut device = lab.device("linux-route");
    // IPv6 needs 1,280: the kernel takes its addresses off such an interface.
    let error = device.start(&Scenario { mtu: 600, ..scenario(Forwarding::Route) }, "af-packet").unwrap_err();
    assert!(matches!(&error, DeviceError::Start { device, .. } if device == "linux-route"), "{error}");
    lab.left_nothing();
}

#[test]
fn a_tap_waits_for_the_tester() {
    let Some(lab) = Lab::begin("a_tap_waits_for_the_tester") else { return };
    let mut device = lab.device("linux-route");
    let ports = match device.start(&scenario(Forwarding::Route), "tap") {
        Ok(ports) => ports,
        Err(why) => {
            println!("SKIP a_tap_waits_for_the_tester: {why}");
            return;
        }
    };
    let Attachment::Tap { namespace: Some(namespace), name } = &ports.right.attachment else {
        panic!("{ports:?}")
    };
    let at = namespace.file_name().unwrap().to_str().unwrap();
    let link = ip(at, &format!("-details link show {name}"));
    assert!(link.contains("tun type tap") && link.contains("02:00:00:00:0d:02"), "{link}");
    drop(device);
    lab.left_nothing();
}

#[test]
fn a_wire_joins_the_testers_ports() {
    let Some(lab) = Lab::begin("a_wire_joins_the_testers_ports") else { return };
    let mut device = lab.device("wire");
    let ports = device.start(&scenario(Forwarding::CrossConnect), "af-packet").unwrap();
    assert_eq!(ports.left.mac, None);
    let at = namespace_of(&ports);
    let link = ip(&at, "link show left");
    assert!(link.contains("left@right") && link.contains("LOWER_UP"), "{link}");
    drop(device);
    lab.left_nothing();
}

#[test]
fn what_a_killed_lab_left_is_gone_after_the_next_start() {
    let Some(lab) = Lab::begin("what_a_killed_lab_left_is_gone_after_the_next_start") else { return };
    // No process has this id: it is beyond the largest.
    let name = format!("{}-4194400-0d", lab.prefix());
    ip_raw(&["netns", "add", &name]);
    let mut sleeper =
        std::process::Command::new("ip").args(["netns", "exec", &name, "sleep", "60"]).spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while ip_raw(&["netns", "pids", &name]).trim().is_empty() {
        assert!(std::time::Instant::now() < until, "nothing runs there");
    }
    let mut device = lab.device("wire");
    device.start(&scenario(Forwarding::Route), "af-packet").unwrap();
    assert!(!std::path::Path::new("/run/netns").join(&name).exists());
    assert!(!sleeper.wait().unwrap().success(), "its process was ended");
    assert!(device.describe().notes.iter().any(|n| n.contains(&name)), "{:#?}", device.describe().notes);
    drop(device);
    lab.left_nothing();
}
