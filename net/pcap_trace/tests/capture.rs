//! What is captured, and what the file has.

use std::sync::Arc;

use shoal_graph::{FilterFunction, FilterUse};
use shoal_interface::InterfaceError;
use shoal_pcap_trace::{CaptureSettings, PcapTrace, PcapTraceError};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_wire::pcap::Reader;

pub fn router() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_pcap_trace::MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    (router, port)
}

/// A name of a file in /tmp that no other test has.
pub fn name(test: &str) -> String {
    format!("shoal-test-{}-{test}.pcap", std::process::id())
}

fn read(path: &std::path::Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    std::fs::remove_file(path).unwrap();
    Reader::new(&bytes[..]).unwrap().map(|record| record.unwrap().data).collect()
}

/// A frame for another station: it is received, and dropped.
pub fn other(n: u8) -> Vec<u8> {
    let (src, dst) = ([10, 0, 0, 2], [10, 0, 0, n]);
    PacketBuilder::ethernet([2, 0xbb, 0, 0, 0, 1], [2, 0xaa, 0, 0, 0, 1]).ip4(src, dst).build()
}

#[test]
fn declared_messages_are_those_of_vpp() {
    shoal_testkit::api::same_as_vpp(&[&shoal_pcap_trace::api::API]);
}

#[test]
fn received_and_dropped_packets_are_in_the_file_as_they_came() {
    let (mut router, port) = router();
    let trace = router.get::<PcapTrace>();
    for (rx, drop, test) in [(true, false, "rx"), (false, true, "drop")] {
        trace
            .start(CaptureSettings { rx, drop, max: 2, file: Some(name(test)), ..CaptureSettings::default() })
            .unwrap();
        let sent: Vec<_> = (1..=3).map(other).collect();
        for frame in &sent {
            router.send(&port, frame);
        }
        let status = trace.status().unwrap();
        assert_eq!((status.captured, status.max, status.what), (2, 2, vec![test]));
        let (count, path) = trace.stop().unwrap();
        assert_eq!(count, 2);
        assert_eq!(read(&path), sent[..2], "{test}");
    }
}

#[test]
fn interfaces_that_come_while_all_are_captured_are_captured_too() {
    let (mut router, _port) = router();
    let trace = router.get::<PcapTrace>();
    trace
        .start(CaptureSettings { rx: true, file: Some(name("late")), ..CaptureSettings::default() })
        .unwrap();
    let late = router.pg(1);
    router.send(&late, other(9));
    assert_eq!(read(&trace.stop().unwrap().1), [other(9)]);
}

#[test]
fn only_what_the_function_in_use_wants_is_captured_with_a_filter() {
    let (mut router, port) = router();
    let trace = router.get::<PcapTrace>();
    let graph = router.graph();
    graph.filters().add(FilterFunction {
        name: "last_is_7",
        description: "test",
        priority: 1,
        wants: Arc::new(|bytes| bytes.get(33) == Some(&7)),
    });
    graph.filters().select(FilterUse::Pcap, "last_is_7").unwrap();
    let wish =
        CaptureSettings { rx: true, filter: true, file: Some(name("filter")), ..CaptureSettings::default() };
    trace.start(wish.clone()).unwrap();
    (1..=9).for_each(|n| router.send(&port, other(n)));
    assert_eq!(read(&trace.stop().unwrap().1), [other(7)]);
    trace.start(wish).unwrap();
    router.send(&port, other(8));
    assert!(matches!(trace.stop(), Err(PcapTraceError::Nothing)));
}

#[test]
fn long_packets_are_cut_and_other_interfaces_left_out() {
    let (mut router, port) = router();
    let trace = router.get::<PcapTrace>();
    let other_port = router.pg(1);
    let interface = Some(port.index());
    let wish = CaptureSettings {
        rx: true,
        max_bytes: 32,
        interface,
        file: Some(name("cut")),
        ..CaptureSettings::default()
    };
    trace.start(wish).unwrap();
    router.send(&other_port, other(1));
    router.send(&port, other(2));
    assert_eq!(read(&trace.stop().unwrap().1), [&other(2)[..32]]);
}

#[test]
fn what_cannot_be_is_refused_and_nothing_runs_then() {
    let (router, _port) = router();
    let trace = router.get::<PcapTrace>();
    let rx = || CaptureSettings { rx: true, ..CaptureSettings::default() };
    assert!(matches!(trace.stop(), Err(PcapTraceError::Idle)));
    assert!(matches!(trace.start(CaptureSettings::default()), Err(PcapTraceError::NoSide)));
    let file = Some("../etc/passwd".to_owned());
    assert!(matches!(trace.start(CaptureSettings { file, ..rx() }), Err(PcapTraceError::FileName(_))));
    assert!(matches!(trace.start(CaptureSettings { max: 0, ..rx() }), Err(PcapTraceError::Range { .. })));
    let interface = Some(shoal_interface::SwIfIndex(77));
    let wrong = trace.start(CaptureSettings { interface, ..rx() });
    assert!(matches!(wrong, Err(PcapTraceError::Interface(InterfaceError::NoIndex(..)))), "{wrong:?}");
    let reason = Some("ethernet-input.no such".to_owned());
    assert!(matches!(trace.start(CaptureSettings { reason, ..rx() }), Err(PcapTraceError::NoReason(_))));
    assert_eq!(trace.status(), None);
    trace.start(rx()).unwrap();
    assert!(matches!(trace.start(rx()), Err(PcapTraceError::Runs)));
}
