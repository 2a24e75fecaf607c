//! The dispatch trace: each packet at every node, in a file that Wireshark reads.

use std::process::Command;

use shoal_pcap_trace::{DispatchTrace, PcapTraceError};
use shoal_wire::pcap::{LinkType, Reader};

use crate::capture::{name, other, router};

/// The node of a record, its buffer, and the packet's bytes.
fn parts(record: &[u8]) -> (String, u32, Vec<u8>) {
    assert_eq!(record[..3], [1, 0, 4], "version 1.0, four texts");
    let buffer = u32::from_be_bytes(record[4..8].try_into().unwrap());
    let mut texts = record[8..].splitn(5, |byte| *byte == 0);
    let node = String::from_utf8(texts.next().unwrap().to_vec()).unwrap();
    assert!(String::from_utf8_lossy(texts.next().unwrap()).starts_with("current data "));
    (node, buffer, texts.nth(2).unwrap().to_vec())
}

#[test]
fn each_packet_is_in_the_file_once_for_every_node() {
    let (mut router, port) = router();
    let trace = router.get::<DispatchTrace>();
    let file = name("dispatch");
    trace.start(1000, &file).unwrap();
    assert!(matches!(trace.start(1, &file), Err(PcapTraceError::Runs)));
    for n in 1..=3 {
        router.send(&port, other(n));
    }
    let status = trace.status().unwrap();
    let (count, path) = trace.stop().unwrap();
    assert_eq!((status.captured, status.max, &status.file), (count, 1000, &path));
    assert!(trace.status().is_none());
    router.send(&port, other(4));

    if let Ok(seen) =
        Command::new("tshark").args(["-T", "fields", "-e", "vpp.NodeName", "-r"]).arg(&path).output()
    {
        let nodes = String::from_utf8_lossy(&seen.stdout);
        assert!(seen.status.success() && nodes.contains("ethernet-input"), "{seen:?}");
    } else {
        println!("SKIP tshark reads it: tshark is not installed");
    }
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let reader = Reader::new(&bytes[..]).unwrap();
    assert_eq!(reader.link_type(), LinkType::VPP_DISPATCH);
    let records: Vec<_> = reader.map(|record| parts(&record.unwrap().data)).collect();
    assert_eq!(records.len(), count);
    for node in ["ethernet-input", "error-drop", "drop"] {
        let at: Vec<_> = records.iter().filter(|(name, ..)| name == node).collect();
        assert_eq!(at.len(), 3, "{node}: {records:?}");
        for (n, (_, _, bytes)) in at.iter().enumerate() {
            let sent = other(n as u8 + 1);
            assert!(sent.ends_with(bytes) && !bytes.is_empty(), "{node} has bytes of the frame");
        }
    }
}

#[test]
fn no_more_than_asked_for_and_a_mistake_begins_nothing() {
    let (mut router, port) = router();
    let trace = router.get::<DispatchTrace>();
    for (max, file) in [(0, "a.pcap"), (2_000_000, "a.pcap"), (1, "../a.pcap"), (1, "")] {
        assert!(trace.start(max, file).is_err(), "{max} {file}");
        assert!(trace.status().is_none());
    }
    assert!(matches!(trace.stop(), Err(PcapTraceError::Idle)));
    let file = name("few");
    trace.start(2, &file).unwrap();
    assert!(matches!(trace.stop(), Err(PcapTraceError::Nothing)));
    trace.start(2, &file).unwrap();
    for n in 1..=3 {
        router.send(&port, other(n));
    }
    let (count, path) = trace.stop().unwrap();
    assert_eq!(count, 2);
    std::fs::remove_file(path).unwrap();
}
