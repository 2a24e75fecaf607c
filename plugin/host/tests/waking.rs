//! Queues that wake the thread that sleeps, and plugins that promise it and do not.
//!
//! The thread is the test's own: it sleeps as often as the test says, so what a plugin can do to it is counted, not timed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::time::Duration;

use shoal_graph::RxMode;
use shoal_interface::SwIfIndex;
use shoal_plugin_host::Devices;
use shoal_testkit::{PacketBuilder, Router};

use common::driver::{command, lie, start};

const WOKEN_FOR_PACKETS: &str = "the device woke its thread for packets";
const FOR_NOTHING: &str = "the device woke its thread for nothing";

/// Two devices joined by a wire, whose thread sleeps whenever it has nothing to do.
fn router(mode: u32, defines: &[&str]) -> (tempfile::TempDir, Router, [SwIfIndex; 2]) {
    let folder = tempfile::tempdir().unwrap();
    common::compile_from(folder.path(), "test.so", "driver.c", defines);
    let mut router = start(folder.path(), &format!("2 mode {mode}"));
    let devices: Vec<_> = router.get::<Devices>().list().iter().map(|d| d.index).collect();
    for queue in router.graph().queues() {
        router.graph().set_queue_mode(queue.id, RxMode::Interrupt).unwrap();
    }
    for index in &devices {
        router.interfaces().set_admin(*index, true).unwrap();
    }
    router.run();
    (folder, router, [devices[0], devices[1]])
}

/// Sleeps that often, as a thread's loop does. Returns when all of them have ended.
fn sleep(router: &mut Router, times: u32) {
    let sleep = move |worker: &mut shoal_graph::Worker| {
        for _ in 0..times {
            worker.round();
            worker.rest(None, || true);
        }
    };
    router.graph().on_thread(0, sleep).unwrap();
    router.run();
    assert_eq!(router.buffers_in_use(), 0);
}

/// How often queues were armed and disarmed.
fn calls(router: &Router) -> String {
    command(router, "show test calls", "").unwrap().lines().last().unwrap().to_owned()
}

fn received(router: &Router, devices: [SwIfIndex; 2]) -> u64 {
    devices.into_iter().map(|index| router.if_counter("/if/rx", index)).sum()
}

fn waits(router: &Router, device: SwIfIndex) -> String {
    let detail = router.interfaces().detail(device).unwrap();
    detail.lines().find(|line| line.starts_with("rx queue 0: ")).unwrap().to_owned()
}

#[test]
fn a_packet_that_comes_after_the_last_look_ends_the_sleep_and_is_counted() {
    let (_folder, mut router, devices) = router(56, &[]);
    sleep(&mut router, 10);
    assert_eq!((router.error("test-input", WOKEN_FOR_PACKETS), received(&router, devices)), (20, 20));
    assert_eq!(router.error("test-input", FOR_NOTHING), 0);
    assert_eq!(calls(&router), "armed 20 disarmed 20");
    assert_eq!(
        waits(&router, devices[0]),
        "rx queue 0: interrupts 10, without packets 0, packets without one 0"
    );
    router.interfaces().set_rx_mode(devices[0], None, RxMode::Interrupt).unwrap();
}

#[test]
fn packets_that_arming_has_found_keep_the_thread_awake() {
    let (_folder, mut router, devices) = router(58, &[]);
    sleep(&mut router, 50);
    assert_eq!(received(&router, devices), 100);
    assert_eq!(
        (router.error("test-input", WOKEN_FOR_PACKETS), router.error("test-input", FOR_NOTHING)),
        (0, 0)
    );
}

#[test]
fn a_descriptor_that_tells_of_no_packet_costs_none() {
    let (_folder, mut router, devices) = router(57, &[]);
    sleep(&mut router, 20);
    assert_eq!((received(&router, devices), router.error("test-input", WOKEN_FOR_PACKETS)), (40, 0));
    assert_eq!(
        waits(&router, devices[1]),
        "rx queue 0: interrupts 0, without packets 0, packets without one 20"
    );
}

#[test]
fn a_plugin_that_wakes_for_nothing_wakes_a_bounded_number_of_times_a_second() {
    // A descriptor that is always readable; a plugin that always says there are packets.
    for mode in [52, 54] {
        let (_folder, mut router, devices) = router(mode, &[]);
        for second in 1..=3 {
            sleep(&mut router, 100);
            let times = 64 * second;
            assert_eq!(calls(&router), format!("armed {times} disarmed {times}"), "mode {mode}");
            assert_eq!(router.error("test-input", FOR_NOTHING), times);
            let left = format!(", left alone for a second {second}");
            assert!(waits(&router, devices[0]).ends_with(&left), "{}", waits(&router, devices[0]));
            router.advance(Duration::from_secs(1));
        }
        passes(&mut router, devices);
    }
}

/// Packets go from the first device to the second.
fn passes(router: &mut Router, devices: [SwIfIndex; 2]) {
    let before = received(router, devices);
    let frame = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ip4([10, 0, 5, 2], [10, 0, 1, 2])
        .udp(1, 2)
        .payload(&[7; 40])
        .build();
    for _ in 0..5 {
        router.inject("test0-tx", devices[0], &frame);
        sleep(router, 2);
    }
    assert_eq!(received(router, devices) - before, 5);
}

#[test]
fn without_a_descriptor_interrupts_are_refused_and_packets_pass() {
    // One that is not open, a negative one, a plugin built for ABI 1.1.
    for (mode, defines) in [(50, &[][..]), (51, &[]), (0, &["OLD"])] {
        let (_folder, mut router, devices) = router(mode, defines);
        sleep(&mut router, 20);
        assert_eq!(calls(&router), "armed 0 disarmed 0", "mode {mode}");
        let why =
            router.interfaces().set_rx_mode(devices[0], None, RxMode::Interrupt).unwrap_err().to_string();
        assert!(why.contains("has no receive interrupts, expected polling or adaptive"), "{why}");
        router.interfaces().set_rx_mode(devices[0], None, RxMode::Adaptive).unwrap();
        let expected = "rx queue 0: no interrupts, looked at once a millisecond when idle";
        assert_eq!(waits(&router, devices[0]), expected);
        passes(&mut router, devices);
    }
}

#[test]
fn a_descriptor_that_is_there_later_is_taken_then() {
    let (_folder, router, devices) = router(51, &[]);
    lie(&router, 0);
    router.interfaces().set_rx_mode(devices[0], None, RxMode::Interrupt).unwrap();
    assert!(waits(&router, devices[0]).starts_with("rx queue 0: interrupts 0"));
    assert!(waits(&router, devices[1]).starts_with("rx queue 0: no interrupts"));
    router.interfaces().set_admin(devices[1], false).unwrap();
    router.interfaces().set_admin(devices[1], true).unwrap();
    assert!(waits(&router, devices[1]).starts_with("rx queue 0: interrupts 0"));
}

#[test]
fn a_queue_that_cannot_be_armed_is_looked_at_all_the_same() {
    let (_folder, mut router, devices) = router(53, &[]);
    sleep(&mut router, 20);
    assert_eq!(calls(&router), "armed 40 disarmed 0");
    passes(&mut router, devices);
    // It can, later.
    lie(&router, 56);
    sleep(&mut router, 2);
    assert!(router.error("test-input", WOKEN_FOR_PACKETS) > 0);
}
