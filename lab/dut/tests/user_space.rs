//! Devices that are programs, really started, probed, reset and taken away. Each is skipped where it is not installed;
//! Shoal's daemon is the one that `SHOAL` names, or that of `target/release`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up fails"
)]

use crate::support;

use std::path::Path;

use shoal_lab_plan::{Attachment, Device, DeviceError, Forwarding, Reset, Scenario};
use support::*;

/// The device, or the reason why not, printed.
fn ready(lab: &Lab, test: &str, name: &str, scenario: &Scenario) -> Option<Box<dyn Device>> {
    let device = lab.device(name);
    match device.available(scenario) {
        Ok(()) => Some(device),
        Err(why) => {
            println!("SKIP {test}: {name}: {why}");
            None
        }
    }
}

fn count(device: &mut dyn Device, name: &str) -> u64 {
    let counters = device.counters().unwrap();
    counters.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name}: {counters:?}")).1
}

/// What a program on veth must do: pass the probe, count it, restart in three ways, and leave nothing.
fn on_wires(test: &str, name: &str, transport: &str, forwarding: Forwarding, resets: &[Reset]) {
    let Some(lab) = Lab::begin(test) else { return };
    let scenario = Scenario { networks: 3, ..scenario(forwarding) };
    let Some(mut device) = ready(&lab, test, name, &scenario) else { return };
    device.start(&scenario, transport).unwrap();
    println!("{:#?}", device.describe());
    assert_all_passed(&device.describe().notes);
    for counter in ["left rx packets", "right tx packets"] {
        assert!(count(&mut *device, counter) >= 2 * u64::from(PROBE), "{counter}: {:?}", device.counters());
    }
    assert!(device.cpu_time().is_some());
    for kind in resets {
        device.reset(*kind).unwrap();
        device.counters().unwrap();
    }
    device.stop();
    lab.left_nothing();
}

const ALL: [Reset; 4] = [Reset::Flap, Reset::Restart, Reset::Crash, Reset::Workers(2)];

#[test]
fn shoal_forwards_over_af_packet() {
    on_wires("shoal_forwards_over_af_packet", "shoal", "af-packet", Forwarding::Route, &ALL);
}

#[test]
fn shoals_workers_come_and_go_while_it_runs() {
    let test = "shoals_workers_come_and_go_while_it_runs";
    let Some(lab) = Lab::begin(test) else { return };
    let scenario = scenario(Forwarding::Route);
    let Some(mut device) = ready(&lab, test, "shoal", &scenario) else { return };
    device.start(&scenario, "memif").unwrap();
    let pid = pid_of(&lab, "shoal");
    // A thread of the daemon is a worker if its name says so.
    let workers = || {
        std::fs::read_dir(format!("/proc/{pid}/task"))
            .unwrap()
            .flatten()
            .filter(|t| std::fs::read_to_string(t.path().join("comm")).is_ok_and(|name| name.contains("wk")))
            .count()
    };
    for count in [1, 2, 1] {
        if count != workers() {
            device.reset(Reset::Workers(count as u16)).unwrap();
        }
        assert_eq!(workers(), count);
    }
    let told = device.describe();
    assert_eq!(told.notes.iter().filter(|n| n.contains("while it runs")).count(), 2, "{:#?}", told.notes);
    drop(device);
    lab.left_nothing();
}

#[test]
fn shoal_forwards_over_af_xdp() {
    on_wires("shoal_forwards_over_af_xdp", "shoal", "af-xdp", Forwarding::Route, &ALL);
}

#[test]
fn testpmd_forwards_over_af_packet_with_macs_rewritten() {
    on_wires(
        "testpmd_forwards_over_af_packet_with_macs_rewritten",
        "testpmd-mac",
        "af-packet",
        Forwarding::Route,
        &ALL,
    );
}

#[test]
fn testpmd_forwards_over_af_packet_as_it_is() {
    on_wires(
        "testpmd_forwards_over_af_packet_as_it_is",
        "testpmd-io",
        "af-packet",
        Forwarding::CrossConnect,
        &[Reset::Flap],
    );
}

#[test]
fn open_vswitch_cross_connects() {
    on_wires("open_vswitch_cross_connects", "ovs", "af-packet", Forwarding::CrossConnect, &ALL);
}

#[test]
fn open_vswitch_bridges() {
    on_wires("open_vswitch_bridges", "ovs", "af-packet", Forwarding::Bridge, &[]);
}

#[test]
fn open_vswitch_forgets_what_it_learnt() {
    let test = "open_vswitch_forgets_what_it_learnt";
    let Some(lab) = Lab::begin(test) else { return };
    let scenario = scenario(Forwarding::Bridge);
    let Some(mut device) = ready(&lab, test, "ovs", &scenario) else { return };
    device.start(&scenario, "af-packet").unwrap();
    let folders = std::fs::read_dir(lab.folder()).unwrap().flatten().map(|f| f.path().join("ovs/switch.ctl"));
    let control = folders.into_iter().find(|f| f.exists()).unwrap();
    let learnt = || {
        let out = std::process::Command::new("ovs-appctl")
            .arg("-t")
            .arg(&control)
            .args(["fdb/show", "lab0"])
            .output();
        let said = String::from_utf8(out.unwrap().stdout).unwrap();
        (said.matches("02:00:00:00:5a:0").count(), said)
    };
    assert_eq!(learnt().0, 2, "{}", learnt().1);
    device.reset(Reset::Flush).unwrap();
    assert_eq!(learnt().0, 0, "{}", learnt().1);
    drop(device);
    lab.left_nothing();
}

#[test]
fn what_learns_nothing_forgets_nothing() {
    let test = "what_learns_nothing_forgets_nothing";
    let Some(lab) = Lab::begin(test) else { return };
    let scenario = scenario(Forwarding::CrossConnect);
    let Some(mut device) = ready(&lab, test, "ovs", &scenario) else { return };
    device.start(&scenario, "af-packet").unwrap();
    let error = device.reset(Reset::Flush).unwrap_err();
    assert_eq!(error.to_string(), "ovs cannot forget sessions or addresses: it has none");
    drop(device);
    lab.left_nothing();
}

#[test]
fn open_vswitch_with_dpdk_cross_connects() {
    on_wires(
        "open_vswitch_with_dpdk_cross_connects",
        "ovs-dpdk",
        "af-packet",
        Forwarding::CrossConnect,
        &[Reset::Restart],
    );
}

/// A program that listens for memifs: its socket is there, also after each new beginning, and gone at the end.
fn by_memif(test: &str, name: &str, forwarding: Forwarding) {
    let Some(lab) = Lab::begin(test) else { return };
    let scenario = Scenario { routes: 500, ..scenario(forwarding) };
    let Some(mut device) = ready(&lab, test, name, &scenario) else { return };
    let ports = device.start(&scenario, "memif").unwrap();
    let (Attachment::Memif { socket, id: 0 }, Attachment::Memif { socket: same, id: 1 }) =
        (&ports.left.attachment, &ports.right.attachment)
    else {
        panic!("{ports:?}")
    };
    assert_eq!(socket, same);
    assert!(socket.as_os_str().len() < 108, "{}", socket.display());
    assert_eq!(count(&mut *device, "left rx packets"), 0);
    for kind in [Reset::Restart, Reset::Crash] {
        device.reset(kind).unwrap();
        assert!(socket.exists());
        // Somebody listens: a socket that a killed program left would refuse.
        connect(socket);
    }
    println!("{:#?}", device.describe());
    drop(device);
    assert!(!socket.exists());
    lab.left_nothing();
}

fn connect(to: &Path) {
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
    let own = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::empty(), None).unwrap();
    connect(own.as_raw_fd(), &UnixAddr::new(to).unwrap()).unwrap();
}

#[test]
fn shoal_listens_for_memifs() {
    by_memif("shoal_listens_for_memifs", "shoal", Forwarding::Route);
}

#[test]
fn testpmd_listens_for_memifs() {
    by_memif("testpmd_listens_for_memifs", "testpmd-mac", Forwarding::Route);
}

#[test]
fn a_program_that_dies_is_told_with_what_it_said() {
    let test = "a_program_that_dies_is_told_with_what_it_said";
    let Some(lab) = Lab::begin(test) else { return };
    let scenario = scenario(Forwarding::Route);
    let Some(mut device) = ready(&lab, test, "testpmd-mac", &scenario) else { return };
    device.start(&scenario, "memif").unwrap();
    let pid = pid_of(&lab, "dpdk-testpmd");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let error = loop {
        match device.counters() {
            Err(error) => break error,
            Ok(_) => assert!(std::time::Instant::now() < until),
        }
    };
    assert!(matches!(&error, DeviceError::Died { reason, .. } if reason.contains("signal 9")), "{error}");
    drop(device);
    lab.left_nothing();
}

/// The process of this lab whose program has this name.
fn pid_of(lab: &Lab, program: &str) -> i32 {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|e| e.file_name().to_str().and_then(|n| n.parse().ok()))
        .find(|pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            let own = line.split('\0').next().unwrap_or_default();
            own.rsplit('/').next() == Some(program) && line.contains(lab.prefix())
        })
        .unwrap_or_else(|| panic!("{program} does not run"))
}

#[test]
fn a_daemon_that_refuses_its_start_up_file_is_an_error_with_its_words() {
    let test = "a_daemon_that_refuses_its_start_up_file_is_an_error_with_its_words";
    let Some(lab) = Lab::begin(test) else { return };
    // No processor has this number.
    let scenario = scenario(Forwarding::Route);
    let mut settings = lab.settings().clone();
    settings.cores.device = vec![999];
    let mut device = shoal_lab_dut::device("shoal", &settings).unwrap();
    if let Err(why) = device.available(&scenario) {
        println!("SKIP {test}: {why}");
        return;
    }
    let error = device.start(&scenario, "memif").unwrap_err();
    assert!(matches!(&error, DeviceError::Start { reason, .. } if reason.contains("ended (code")), "{error}");
    lab.left_nothing();
}

/// Frames through memifs, by the load generator of the memif driver: `cargo build -p shoal-memif --example blast`, its path
/// in BLAST, then `cargo test -p shoal-lab-dut -- --ignored`.
#[test]
#[ignore = "needs BLAST, drivers/memif/examples/blast.rs built by hand, and two processors"]
fn shoal_forwards_between_memifs() {
    let test = "shoal_forwards_between_memifs";
    let Some(lab) = Lab::begin(test) else { return };
    let Some(blast) = std::env::var_os("BLAST") else {
        println!("SKIP {test}: BLAST is not set");
        return;
    };
    let mut scenario = scenario(Forwarding::Route);
    // The generator's own addresses.
    for (n, side) in [&mut scenario.addresses.left, &mut scenario.addresses.right].into_iter().enumerate() {
        side.device4 = [10, 0, n as u8, 1].into();
        side.tester4 = [10, 0, n as u8, 2].into();
        side.device6 = format!("2001:db8:{n}::1").parse().unwrap();
        side.tester6 = format!("2001:db8:{n}::2").parse().unwrap();
    }
    let Some(mut device) = ready(&lab, test, "shoal", &scenario) else { return };
    let ports = device.start(&scenario, "memif").unwrap();
    let Attachment::Memif { socket, .. } = &ports.left.attachment else { panic!("{ports:?}") };
    for family in ["ip4", "ip6"] {
        let before = count(&mut *device, "right tx packets");
        let out = std::process::Command::new("taskset")
            .args(["-c", "1"])
            .arg(&blast)
            .arg(socket)
            .args(["02:00:00:00:0d:01", family, "1"])
            .output()
            .unwrap();
        println!(
            "{family}: {}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
        assert!(count(&mut *device, "right tx packets") > before, "{:?}", device.counters());
    }
    println!("{:?}, CPU time {:?} us", device.counters().unwrap(), device.cpu_time());
    drop(device);
    lab.left_nothing();
}
