//! Streams: what they send, when they stop, what they refuse.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::common;

use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use common::BACK;
use shoal_pg::{Change, Detail, Pg, PgError};
use shoal_testkit::{Port, Router};
use shoal_wire::pcap::{LinkType, Writer};
use shoal_wire::{FromBytes, Ip4Header};

fn router() -> (Router, Port, Rc<Pg>) {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    let pg = Rc::clone(router.generator());
    (router, port, pg)
}

fn add(pg: &Pg, text: &str) -> Result<u32, PgError> {
    pg.add_stream(pg.parse_stream(text)?)
}

const UDP: &str =
    "data { IP4: 1.2.3 -> 4.5.6 UDP: 1.1.1.1 -> 10.0.0.0 - 10.0.255.255 UDP: 1 -> 2 incrementing 18 }";

fn pcap(folder: &std::path::Path, packets: &[Vec<u8>]) -> std::path::PathBuf {
    let path = folder.join("in.pcap");
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
    for packet in packets {
        writer.write(Duration::ZERO, packet).unwrap();
    }
    std::fs::write(&path, writer.into_inner()).unwrap();
    path
}

#[test]
fn a_stream_runs_to_its_limit_and_disables_itself() {
    let (mut router, port, pg) = router();
    add(&pg, &format!("{{ name s limit 1000 interface pg0 {UDP} }}")).unwrap();
    assert!(pg.show(Detail::Brief).to_string().contains("No"));
    router.run();
    assert_eq!(port.received().len(), 0);
    pg.enable("s").unwrap();
    assert!(pg.is_running("s").unwrap() && pg.show(Detail::Brief).to_string().contains("Yes"));
    router.run();
    assert!(!pg.is_running("s").unwrap());
    assert_eq!(port.received().len(), 1000);
    assert_eq!(router.if_counter("/if/rx", port.index()), 1000);
    assert_eq!(router.graph().graph_counters().rx.sum(port.index().0 as usize), (1000, 64_000));
    // Starting it again begins at the first packet.
    pg.enable("s").unwrap();
    router.run();
    assert_eq!(port.received().len(), 1000);
}

#[test]
fn destinations_go_through_the_whole_range_with_right_checksums() {
    let (mut router, port, pg) = router();
    add(&pg, &format!("name s limit 65536 interface pg0 {UDP}")).unwrap();
    pg.enable("s").unwrap();
    router.run();
    let mut seen = HashSet::new();
    for (i, packet) in port.received().iter().enumerate() {
        let (ip, _) = Ip4Header::ref_from_prefix(&packet[14..]).unwrap();
        assert!(ip.checksum_ok(), "packet {i}");
        assert_eq!(u32::from(ip.dst()), 0x0a00_0000 + i as u32);
        let datagram = &packet[34..usize::from(ip.total_length()) + 14];
        assert_eq!(
            shoal_wire::udp::checksum_ip4(ip.src(), ip.dst(), &zeroed(datagram)).to_be_bytes(),
            datagram[6..8]
        );
        seen.insert(ip.dst());
    }
    assert_eq!(seen.len(), 65_536);
}

fn zeroed(datagram: &[u8]) -> Vec<u8> {
    let mut copy = datagram.to_vec();
    copy[6..8].fill(0);
    copy
}

#[test]
fn random_order_spreads_over_the_range() {
    let (mut router, port, pg) = router();
    add(&pg, &format!("name s limit 20000 interface pg0 {}", UDP.replace("10.0.0.0 - 10", "10.0.0.0 + 10")))
        .unwrap();
    pg.enable("s").unwrap();
    router.run();
    let all = port.received();
    let seen: HashSet<_> = all.iter().map(|p| p[30..34].to_vec()).collect();
    assert!(seen.len() > 15_000, "{} addresses of 20,000 packets", seen.len());
    assert!(all.iter().all(|p| Ip4Header::ref_from_prefix(&p[14..]).unwrap().0.checksum_ok()));
}

#[test]
fn sizes_change_with_lengths_and_checksums_that_fit() {
    let (mut router, port, pg) = router();
    for (name, size) in [("up", "60-70"), ("any", "60+3000")] {
        add(&pg, &format!("name {name} limit 33 size {size} interface pg0 {UDP}")).unwrap();
        pg.enable(name).unwrap();
        router.run();
        let all = port.received();
        assert_eq!(all.len(), 33);
        for (i, packet) in all.iter().enumerate() {
            let (ip, _) = Ip4Header::ref_from_prefix(&packet[14..]).unwrap();
            assert!(ip.checksum_ok());
            assert_eq!(usize::from(ip.total_length()), packet.len() - 14);
            assert_eq!(u32::from(ip.dst()), 0x0a00_0000 + i as u32);
            let sum = shoal_wire::udp::checksum_ip4(ip.src(), ip.dst(), &zeroed(&packet[34..]));
            assert_eq!(sum.to_be_bytes(), packet[40..42]);
            if name == "up" {
                assert_eq!(packet.len(), 60 + i % 11);
            }
        }
    }
}

#[test]
fn a_rate_is_kept_on_the_clock() {
    let (mut router, port, pg) = router();
    add(&pg, &format!("name s rate 1000 interface pg0 {UDP}")).unwrap();
    pg.enable("s").unwrap();
    router.advance(Duration::from_millis(2500));
    assert_eq!(port.received().len(), 2500);
    pg.configure("s", Change { rate: Some(2e6), limit: Some(5000), ..Change::default() }).unwrap();
    router.advance(Duration::from_millis(1));
    assert_eq!(port.received().len(), 2000);
    router.advance(Duration::from_secs(1));
    assert_eq!((port.received().len(), pg.is_running("s").unwrap()), (500, false));
}

#[test]
fn a_capture_is_replayed_in_order_once_or_up_to_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (mut router, port, pg) = router();
    let packets: Vec<Vec<u8>> = (1..=600).map(|i| vec![i as u8; 40 + i * 5]).collect();
    let path = pcap(folder.path(), &packets);
    add(&pg, &format!("pcap {} source pg0 name pcap0-sw_if_index-1", path.display())).unwrap();
    pg.enable("pcap0-sw_if_index-1").unwrap();
    router.run();
    assert_eq!(port.received(), packets);
    add(&pg, &format!("pcap {} source pg0 name pcap0-sw_if_index-1 limit 601", path.display())).unwrap();
    assert_eq!(pg.streams().len(), 1);
    pg.enable("pcap0-sw_if_index-1").unwrap();
    router.run();
    let all = port.received();
    assert_eq!((all.len(), &all[600]), (601, &packets[0]));
    pg.delete_stream("pcap0-sw_if_index-1").unwrap();
    assert_eq!(pg.show(Detail::Brief).to_string(), "no streams currently defined\n");
}

#[test]
fn a_damaged_capture_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let (_router, _, pg) = router();
    let path = pcap(folder.path(), &[vec![1; 60], vec![2; 60]]);
    let whole = std::fs::read(&path).unwrap();
    let error = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        add(&pg, &format!("name x source pg0 pcap {}", path.display())).unwrap_err().to_string()
    };
    assert!(error(&whole[..150]).contains("offset 116: file truncated, 60 bytes needed, 34 present"));
    assert!(error(&whole[..24]).contains("no packets in it"));
    assert!(error(&whole[..10]).contains("offset 0: file truncated"));
    assert!(error(b"%PDF-1.4 and more than twenty-four bytes").contains("magic 0x25504446"));
    std::fs::remove_file(&path).unwrap();
    assert!(
        add(&pg, &format!("name x source pg0 pcap {}", path.display()))
            .unwrap_err()
            .to_string()
            .contains("in.pcap")
    );
    assert_eq!(pg.streams(), []);
}

#[test]
fn show_has_the_layout_that_the_test_framework_reads() {
    let (_router, _, pg) = router();
    assert_eq!(pg.show(Detail::Brief).to_string(), "no streams currently defined\n");
    add(&pg, &format!("name a-name-longer-than-sixteen limit 7 rate 1e3 size 64+1500 interface pg0 {UDP}"))
        .unwrap();
    add(&pg, &format!("name b interface pg0 {UDP}")).unwrap();
    pg.enable("b").unwrap();
    assert_eq!(
        pg.show(Detail::Brief).to_string(),
        "Name               Enabled        Count     Parameters\n\
         a-name-longer-th     No             0       limit 7, rate 1.00e3 pps, size 64+1500, buffer-size 2048, worker 0,\n\
         b                    Yes            0       limit 0, rate 0.00e0 pps, size 64-64, buffer-size 2048, worker 0,\n"
    );
    pg.disable("b").unwrap();
}

#[test]
fn a_traced_packet_says_where_it_came_from() {
    let (mut router, _, pg) = router();
    add(&pg, &format!("name s limit 5 interface pg0 {UDP}")).unwrap();
    router.trace_add("pg-input", 2);
    pg.enable("s").unwrap();
    router.run();
    let trace = router.trace();
    assert!(
        trace.starts_with("pg-input: stream 0, 64 bytes, sw_if_index 1, next_node ethernet-input\n"),
        "{trace}"
    );
    assert!(trace.contains("UDP: 1.1.1.1 -> 10.0.0.1\n"), "{trace}");
    assert_eq!(router.trace_paths().len(), 2);
}

#[test]
fn an_exhausted_pool_delays_a_stream_and_loses_nothing() {
    let mut router =
        Router::with(shoal_testkit::Config { buffers: 300, ..shoal_testkit::Config::default() }, &[&BACK]);
    let port = router.pg(0);
    let pg = Rc::clone(router.generator());
    let mut kept = shoal_buffer::Frame::new();
    assert_eq!(router.graph().main().cache().alloc(&mut kept, 250), 250);
    add(&pg, &format!("name s limit 1000 interface pg0 {UDP}")).unwrap();
    pg.enable("s").unwrap();
    router.run();
    assert_eq!(port.received().len(), 1000);
    assert!(router.error("pg-input", "no buffer for a generated packet") > 0);
    router.graph().main().cache().free_frame(&mut kept);
}

#[test]
fn a_stream_on_a_worker_has_left_the_graph_when_show_says_no() {
    let (mut router, port, pg) = router();
    for _ in 0..2 {
        router.graph().add_worker(None).unwrap();
    }
    add(&pg, &format!("name s worker 1 limit 5000 interface pg0 {UDP}")).unwrap();
    pg.enable("s").unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while pg.show(Detail::Brief).to_string().contains("Yes") {
        assert!(std::time::Instant::now() < deadline, "the stream does not end");
        std::thread::yield_now();
    }
    assert_eq!(port.received().len(), 5000);
    router.run();
}

#[test]
fn a_worker_beyond_the_last_begins_again_at_the_first() {
    let (mut router, port, pg) = router();
    // Without workers all numbers mean the main thread.
    add(&pg, &format!("name s worker 5 limit 9 interface pg0 {UDP}")).unwrap();
    pg.enable("s").unwrap();
    router.run();
    assert_eq!(port.received().len(), 9);
    for _ in 0..2 {
        router.graph().add_worker(None).unwrap();
    }
    add(&pg, &format!("name s worker 5 limit 9 interface pg0 {UDP}")).unwrap();
    assert_eq!(pg.streams().iter().map(|s| s.worker).collect::<Vec<_>>(), [1]);
}

#[test]
fn deleting_the_interface_deletes_its_streams() {
    let (mut router, port, pg) = router();
    add(&pg, &format!("name s interface pg0 {UDP}")).unwrap();
    pg.enable("s").unwrap();
    router.graph().round();
    pg.delete_interface(port.index()).unwrap();
    assert_eq!(pg.streams(), []);
    router.run();
}

#[test]
fn a_stream_without_interface_makes_its_own() {
    let (mut router, _, pg) = router();
    add(&pg, &format!("name a limit 2 interface pg0 {UDP}")).unwrap();
    add(&pg, &format!("name b limit 2 {UDP}")).unwrap();
    pg.enable("b").unwrap();
    router.run();
    let made = router.interfaces().by_name("pg1").unwrap();
    assert_eq!(router.if_counter("/if/tx", made), 2);
}

#[test]
fn a_stream_may_name_its_node_and_its_sending_interface() {
    let (mut router, port, pg) = router();
    let other = router.pg(1);
    add(&pg, "name s limit 4 interface pg0 tx-interface pg1 node ip4-input data { UDP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 2 }")
        .unwrap();
    pg.enable("s").unwrap();
    router.run();
    assert_eq!((port.received().len(), other.received().len()), (0, 4));
}

#[test]
fn every_wrong_description_says_what_was_expected() {
    let (_router, _, pg) = router();
    for (text, part) in [
        ("", "neither `data { ... }' nor `pcap FILE'"),
        ("name", "expected a name, not the end"),
        ("name s limit many", "after `limit many': expected a number of packets"),
        ("name s rate -5", "expected packets per second"),
        ("name s size 70-60", "expected sizes in bytes"),
        ("name s size 0-60", "expected sizes in bytes"),
        ("name s size 64-99999", "expected sizes in bytes"),
        ("name s maxframe 300", "packets, 1 to 256"),
        ("name s intrface pg0", "did you mean `interface'?"),
        ("name s interface pg7", "no interface `pg7', did you mean `pg0'?"),
        ("name s data UDP:", "expected `{' and a description"),
        (
            "name s data { UDP: 1.1.1.1 -> 2.2.2.2 } size 10-20 interface pg0",
            "size 10: the headers alone have 20",
        ),
        ("name s data { } interface pg0", "nothing to send"),
        ("name s data { hex 00 } node ip4-inptu interface pg0", "no node `ip4-inptu'"),
        ("name s data { hex 00 } buffer-flags fish", "one of ip4, ip6"),
        ("name s data { hex 00 } buffer-flags gso", "wants gso-size"),
        ("name s data { hex 00", "`}' at the end of data"),
        ("{ name s data { hex 00 } } trailing", "did you mean"),
    ] {
        let error = add(&pg, text).unwrap_err().to_string();
        assert!(
            error.contains(part) || part == "did you mean" && error.contains("expected"),
            "{text}: {error}"
        );
    }
    assert_eq!(pg.streams(), []);
    assert!(pg.enable("s").unwrap_err().to_string().contains("no stream `s'"));
    assert!(pg.configure("s", Change::default()).is_err());
}
