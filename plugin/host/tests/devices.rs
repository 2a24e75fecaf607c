//! Devices of plugins: packets through them, what is changed of them, and plugins that lie.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::time::Duration;

use shoal_graph::RxMode;
use shoal_interface::{IfFlags, MtuLayer, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::LoadedPlugins;
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_plugin_host::Devices;
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_wire::MacAddress;

use common::driver::{SECTIONS, STANZA, command, lie, start};

/// Two devices joined by a wire, of which the second has addresses; and a port behind.
fn router() -> (tempfile::TempDir, Router, [SwIfIndex; 2], Port) {
    let folder = tempfile::tempdir().unwrap();
    common::compile_from(folder.path(), "test.so", "driver.c", &[]);
    let mut router = start(folder.path(), "2");
    let devices: Vec<_> = router.get::<Devices>().list().iter().map(|d| d.index).collect();
    let devices = [devices[0], devices[1]];
    let port = router.pg(0);
    for (index, n) in [(devices[1], 5), (port.index(), 1)] {
        router.get::<Ip4>().add_address(index, format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
        router.get::<Ip6>().add_address(index, format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
    }
    let (mac, i) = (MacAddress([2, 0xaa, 0, 0, 0, 9]), port.index());
    let arp = router.get::<shoal_arp::Neighbours>();
    arp.set((i, "10.0.1.2".parse().unwrap()), mac, Origin::Static, FibEntry::Wanted).unwrap();
    let nd = router.get::<shoal_ip6_nd::Neighbours>();
    nd.set((i, "2001:db8:1::2".parse().unwrap()), mac, Origin::Static, FibEntry::Wanted).unwrap();
    for index in devices {
        router.interfaces().set_admin(index, true).unwrap();
    }
    router.advance(Duration::from_secs(3));
    drop(port.received());
    (folder, router, devices, port)
}

/// What the first device of the pair sends to the second.
fn frames(len: usize) -> [Vec<u8>; 2] {
    let frame = || PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let payload: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
    let six = [0x2001, 0xdb8, 5, 0, 0, 0, 0, 2];
    [
        frame().ip4([10, 0, 5, 2], [10, 0, 1, 2]).udp(1, 2).payload(&payload).build(),
        frame().ip6(six, [0x2001, 0xdb8, 1, 0, 0, 0, 0, 2]).udp(1, 2).payload(&payload).build(),
    ]
}

#[test]
fn packets_of_both_families_and_all_lengths_go_through_devices() {
    let (_folder, mut router, devices, port) = router();
    router.interfaces().set_mtu(port.index(), MtuLayer::L3, 9000).unwrap();
    for len in [0, 18, 1400, 1990, 2048, 3000, 8900] {
        for frame in frames(len) {
            router.inject("test0-tx", devices[0], &frame);
            router.run();
            let out = port.received_one();
            assert!(out[out.len() - len..] == frame[frame.len() - len..], "{len}");
            assert_eq!(out.len(), frame.len());
        }
    }
    assert_eq!(router.if_counter("/if/rx", devices[1]), 14);
    assert_eq!(router.if_counter("/if/tx-error", devices[0]), 0);
}

#[test]
fn a_plugin_that_lies_of_received_packets_costs_them_and_nothing_else() {
    for (mode, what, times) in [
        (1, "the plugin gave a length that is none", 2),
        (2, "the plugin gave a length that is none", 2),
        (3, "the plugin ended in the middle of a packet", 2),
        (4, "checksum or segment offsets do not fit the packet", 2),
        (5, "checksum or segment offsets do not fit the packet", 2),
        (6, "no buffer free", 6),
        (8, "the plugin gave a length that is none", 0),
        (9, "the plugin gave a length that is none", 0),
        (7, "the plugin gave a length that is none", 0),
        (20, "the plugin gave a length that is none", 0),
    ] {
        let (_folder, mut router, devices, port) = router();
        lie(&router, mode);
        for frame in frames(100) {
            router.inject("test0-tx", devices[0], &frame);
            router.run();
        }
        assert_eq!(router.error("test-input", what), times, "{mode}: {:?}", router.errors());
        lie(&router, 0);
        drop(port.received());
        for frame in frames(100) {
            router.inject("test0-tx", devices[0], &frame);
        }
        router.run();
        assert_eq!(port.received().len(), 2, "{mode}");
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn a_plugin_that_lies_of_sent_packets_is_not_believed() {
    for (mode, full, refused) in [(10, 0, 0), (11, 0, 2), (12, 2, 0)] {
        let (_folder, mut router, devices, _port) = router();
        lie(&router, mode);
        for frame in frames(3000) {
            router.inject("test0-tx", devices[0], &frame);
            router.run();
        }
        assert_eq!(router.error("test0-tx", "device's queue full"), full, "{mode}");
        assert_eq!(router.error("test0-tx", "refused by the device for what it is"), refused, "{mode}");
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn what_is_changed_of_a_device_is_the_plugins_to_refuse() {
    let (_folder, mut router, [first, second], _port) = router();
    let interfaces = router.interfaces().clone();
    let no = |done: Result<(), shoal_interface::InterfaceError>, said: &str| {
        let why = done.unwrap_err().to_string();
        assert!(why.contains(said), "{why}");
    };
    interfaces.set_mtu(first, MtuLayer::L3, 1600).unwrap();
    no(interfaces.set_mtu(first, MtuLayer::L3, 2001), "test0: MTU from 64 to 2000");
    assert_eq!(interfaces.info(first).unwrap().mtu.l3, 1600);
    interfaces.set_mac(first, MacAddress([2, 1, 2, 3, 4, 5])).unwrap();
    no(interfaces.set_promiscuous(first, true), "the plugin's function returned 5");
    interfaces.set_rx_mode(first, None, RxMode::Interrupt).unwrap();
    interfaces.set_rx_mode(first, None, RxMode::Polling).unwrap();
    let info = interfaces.info(first).unwrap();
    assert!(info.device.contains("mtu 1600 mac 020102030405"), "{}", info.device);
    assert_eq!((info.class, info.speed_kbps), (&*"k".repeat(64), 2_500_000));
    let detail = "detail of 0\nrx queue 0: interrupts 0, without packets 0, packets without one 0";
    assert_eq!(interfaces.detail(first).unwrap(), detail);
    assert!(info.flags.has(IfFlags::LINK_UP) && !info.flags.has(IfFlags::TX_CHECKSUM));
    interfaces.set_admin(first, false).unwrap();
    assert!(!interfaces.info(first).unwrap().flags.has(IfFlags::LINK_UP));
    // A link is asked for again and again; a device that has gone is down for good.
    lie(&router, 40);
    router.advance(Duration::from_secs(1));
    assert!(!interfaces.info(second).unwrap().flags.has(IfFlags::LINK_UP));
    interfaces.set_admin(second, false).unwrap();
    no(interfaces.set_admin(second, true), "its device has gone");
    lie(&router, 31);
    assert_eq!(interfaces.info(first).unwrap().device, "its device has gone");
}

#[test]
fn devices_come_and_go() {
    let (_folder, mut router, devices, _port) = router();
    assert_eq!(command(&router, "test attach", "").unwrap(), "test2\n");
    let list = router.get::<Devices>().list();
    assert_eq!((list.len(), list[2].words.as_deref(), list[0].words.as_deref()), (3, Some(""), None));
    for (words, said) in [
        ("no", "test: there is no such device"),
        ("rx0", "the number of receive queues of its device is 0, expected 1 to 64"),
        ("rx65", "is 65, expected 1 to 64"),
        ("tx0", "the number of transmit queues of its device is 0"),
        ("mtu", "the MTU of its device is 0, expected 64 to 65535"),
        ("mac", "the MAC address of its device is 00:00:00:00:00:00, expected one station's"),
        ("name", "the name of its device is `a b', expected letters"),
        ("worker", "no thread 10: there are 0 to 0"),
        ("again", "the number of its device is 0, expected one that no open device has"),
    ] {
        let why = command(&router, "test attach", words).unwrap_err();
        assert!(why.contains(said), "{words}: {why}");
        assert_eq!(router.get::<Devices>().list().len(), 3);
    }
    // Seven were opened and closed again; the last one has another's number.
    assert_eq!(command(&router, "show test calls", "").unwrap(), "closed 7\nlarge 0\narmed 0 disarmed 0\n");
    let local0 = router.get::<Devices>().detach("test", SwIfIndex(0)).unwrap_err().to_string();
    assert_eq!(local0, "local0 is no device of test, expected one of test0, test1, test2");
    assert!(command(&router, "test mode", "99").unwrap_err().contains("there is no mode 99"));
    // In the middle of traffic.
    for round in 0..20 {
        for frame in frames(3000) {
            router.inject("test0-tx", devices[0], &frame);
        }
        let index = router.interfaces().by_name("test1").unwrap();
        router.get::<Devices>().detach("test", index).unwrap();
        router.run();
        assert_eq!(router.buffers_in_use(), 0, "{round}");
        assert_eq!(command(&router, "test attach", "").unwrap(), "test1\n");
        let index = router.interfaces().by_name("test1").unwrap();
        router.interfaces().set_admin(index, true).unwrap();
    }
    router.run();
    assert_eq!(router.get::<Devices>().list().len(), 3);
}

#[test]
fn what_the_device_has_missed_is_counted() {
    let (_folder, mut router, devices, _port) = router();
    lie(&router, 41);
    router.advance(Duration::from_secs(1));
    assert_eq!(router.if_counter("/if/rx-miss", devices[1]), 5);
}

#[test]
fn a_stanza_that_is_wrong_is_said_and_a_driver_that_is_none_refused() {
    let folder = tempfile::tempdir().unwrap();
    common::compile_from(folder.path(), "test.so", "driver.c", &[]);
    let start = |stanza: &str| {
        STANZA.set(stanza.to_owned());
        common::look_in(&[folder.path()], |_| shoal_plugin_host::Wanted::Yes);
        let mut modules = STACK.to_vec();
        modules.extend([&common::SETUP, &SECTIONS, &shoal_plugin_host::MODULE]);
        std::panic::catch_unwind(|| drop(Router::new(&modules))).unwrap_err()
    };
    for (stanza, said) in [
        ("wrong", "test: `wrong' is no setting, expected a number"),
        ("silent", "test: the plugin's function returned 7, expected 0"),
        ("300", "300 devices, expected at most 256"),
        ("9", "too many"),
    ] {
        let why = start(stanza);
        let why = why.downcast_ref::<String>().unwrap();
        assert!(why.contains(said), "{stanza}: {why}");
    }
    for (defines, said) in [
        (&["POLL=NULL"][..], "the function `poll' of driver `test' is null"),
        (&["SIZE_EXTRA=8"], "a driver says it has"),
        (&["OLD", "SIZE_EXTRA=8"], "a driver says it has"),
        (&["WAIT=NULL"], "the function `wait' of driver `test' is null, expected all of"),
        (&["ARM=NULL"], "the function `arm' of driver `test' is null, expected all of"),
        (&["DISARM=NULL"], "the function `disarm' of driver `test' is null, expected all of"),
        (&["TWICE"], "driver `test' exists already"),
        (&["DRIVER=\"a b\""], "a driver's name `a b'"),
        (&["DRIVER=\"arp\""], "driver `arp' exists already"),
        (&["PATH=\"show  test\""], "command `show  test'"),
        (&["PATH=\"test mode\""], "command `test mode' exists already"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        common::compile_from(folder.path(), "test.so", "driver.c", defines);
        let router = common::router(folder.path());
        let refused = router.get::<LoadedPlugins>().refused.clone();
        assert!(refused.len() == 1 && refused[0].contains(said), "{defines:?}: {refused:?}");
    }
}

#[test]
fn a_plugin_of_the_first_version_still_runs() {
    let folder = tempfile::tempdir().unwrap();
    common::compile(folder.path(), "old.so", &["OLD"]);
    let mut router = common::router(folder.path());
    let loaded = router.get::<LoadedPlugins>();
    assert_eq!((loaded.refused.clone(), loaded.plugins.len()), (Vec::new(), 1));
    let passed = shoal_testkit::node::run(&mut router, "test-act", &[29; 20], |_| ());
    assert_eq!(passed.counted, ["test-measure: a test disliked it"]);
}
