//! Packet-generator interfaces: what they are, what they do with what is sent.

use crate::common;

use common::BACK;
use shoal_buffer::Flags;
use shoal_interface::{Event, IfFlags};
use shoal_pg::{CreateInterface, Mode, PgError, Source, StreamSpec};
use shoal_testkit::{PacketBuilder, Router};
use shoal_wire::pcap::{LinkType, Reader};
use shoal_wire::{FromBytes, Ip4Header, TcpFlags};

fn frame() -> Vec<u8> {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ip4([10, 0, 0, 1], [10, 0, 0, 2])
        .udp(7, 9)
        .payload_len(30)
        .build()
}

#[test]
fn an_interface_starts_down_and_its_link_follows_the_operator() {
    let router = Router::new(&[&BACK]);
    let pg = router.generator();
    let create = CreateInterface { id: 3, ..CreateInterface::default() };
    let index = pg.create_interface(&create).unwrap();
    let info = router.interfaces().info(index).unwrap();
    assert_eq!((info.name.as_str(), info.mtu.l3, info.class), ("pg3", 9000, "pg"));
    assert_eq!(info.mac.0[..2], [0x02, 0xfe]);
    assert!(!info.flags.has(IfFlags::ADMIN_UP.set(IfFlags::LINK_UP, true)));
    router.interfaces().set_admin(index, true).unwrap();
    assert!(router.interfaces().info(index).unwrap().flags.all(IfFlags::LINK_UP));
    router.interfaces().set_admin(index, false).unwrap();
    assert!(!router.interfaces().info(index).unwrap().flags.has(IfFlags::LINK_UP));
}

#[test]
fn creating_an_interface_twice_gives_the_same_one() {
    let router = Router::new(&[&BACK]);
    let create = CreateInterface { id: 0, ..CreateInterface::default() };
    let first = router.generator().create_interface(&create).unwrap();
    let again = CreateInterface { mode: Mode::Ip4, ..create };
    assert_eq!(router.generator().create_interface(&again).unwrap(), first);
}

#[test]
fn a_deleted_interface_leaves_nothing_and_its_number_is_free() {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    router.send(&port, frame());
    let nodes = router.graph().nodes().len();
    router.generator().delete_interface(port.index()).unwrap();
    assert_eq!(router.graph().nodes().len(), nodes - 2);
    assert!(router.graph().queues().iter().all(|q| q.interface != "pg0"), "its queue is gone, too");
    assert!(matches!(router.generator().inject(port.index(), frame()), Err(PgError::NoInterface(..))));
    let again = router.pg(0);
    assert_eq!(again.index(), port.index());
    router.send(&again, frame());
    assert_eq!(again.received_one(), frame());
}

#[test]
fn an_interface_without_ethernet_receives_into_its_protocol() {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg_with(&CreateInterface { id: 1, mode: Mode::Ip4, ..CreateInterface::default() });
    router.trace_add("pg-input", 1);
    router.send(&port, &frame()[14..]);
    assert_eq!(router.trace_paths()[0][1], "ip4-input");
    assert_eq!(port.received_one(), frame()[14..]);
}

#[test]
fn others_hear_of_admin_and_link() {
    let mut router = Router::new(&[&BACK]);
    let heard = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let log = std::rc::Rc::clone(&heard);
    router.interfaces().subscribe(move |_, event| log.borrow_mut().push(event));
    let index = router.pg(0).index();
    let heard = heard.borrow();
    assert!(
        heard.contains(&Event::Link(index, true)) && heard.contains(&Event::Admin(index, true)),
        "{heard:?}"
    );
}

#[test]
fn a_large_packet_is_counted_and_captured_when_the_interface_does_not_take_it() {
    let mut router = Router::new(&[&BACK]);
    let plain = router.pg(0);
    let large =
        router.pg_with(&CreateInterface { id: 1, gso_size: Some(1460), ..CreateInterface::default() });
    let pg = std::rc::Rc::clone(router.generator());
    for port in [&plain, &large] {
        let text = format!(
            "{{ name {0} limit 3 interface {0} size 3000-3000 buffer-flags gso gso-size 1460 data {{ \
             IP4: 1.2.3 -> 4.5.6 TCP: 1.1.1.1 -> 2.2.2.2 TCP: 1 -> 2 }} }}",
            port.name()
        );
        pg.add_stream(pg.parse_stream(&text).unwrap()).unwrap();
        pg.enable(port.name()).unwrap();
    }
    router.run();
    assert_eq!((plain.received().len(), large.received().len()), (3, 3));
    assert_eq!(router.error("pg0-tx", "gso disabled on itf  -- gso packet drop"), 3);
    assert_eq!(router.counter("/err/pg0-tx/gso disabled on itf  -- gso packet drop"), 3);
}

#[test]
fn checksums_left_to_the_interface_are_completed() {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    let pg = std::rc::Rc::clone(router.generator());
    for (name, flags) in [("left", "buffer-flags offload offload-udp-cksum"), ("done", "")] {
        for size in [60, 2500] {
            let text = format!(
                "name {name} limit 1 {flags} interface pg0 size {size}-{size} data {{ IP4: 1.2.3 -> 4.5.6 \
                 UDP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 2 incrementing 2400 }}"
            );
            pg.add_stream(pg.parse_stream(&text).unwrap()).unwrap();
            pg.enable(name).unwrap();
            router.run();
        }
    }
    let all = port.received();
    assert_eq!(all[..2], all[2..]);
}

#[test]
fn a_flagged_packet_with_impossible_offsets_goes_out_as_it_is() {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    let node = router.graph().node("pg0-tx").unwrap();
    for (l4, offset) in [(-100, 6), (0, u16::MAX), (i16::MAX, 6), (i16::MIN, 0), (59, 0)] {
        {
            let mut main = router.graph().main();
            let mut buffer = main.cache().alloc_data(&[7; 60]).unwrap();
            let mut pkt = main.cache().packet(&mut buffer);
            let meta = pkt.meta_mut();
            (meta.l4, meta.checksum_offset, meta.flags) = (l4, offset, Flags::L4_CHECKSUM_OFFLOAD);
            main.inject(node, buffer);
        }
        router.run();
        assert_eq!(port.received_one(), [7; 60]);
    }
}

#[test]
fn a_capture_appears_with_its_first_packet_and_holds_whole_packets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pg0_out.pcap");
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    let pg = std::rc::Rc::clone(router.generator());
    pg.capture(port.index(), &path, Some(3)).unwrap();
    assert!(!path.exists());
    assert!(matches!(
        pg.capture(port.index(), &folder.path().join("b"), None),
        Err(PgError::CaptureRuns(..))
    ));
    router.advance(std::time::Duration::from_millis(1500));
    let long = vec![5; 4000];
    router.send_all(&port, [frame(), long.clone()]);
    // A reader may follow the file while the capture runs.
    let read =
        || Reader::new(&std::fs::read(&path).unwrap()[..]).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(read().len(), 2);
    router.send_all(&port, [frame(), frame()]);
    let records = read();
    assert_eq!(records.iter().map(|r| r.data.clone()).collect::<Vec<_>>(), [frame(), long, frame()]);
    assert_eq!(records[0].timestamp, std::time::Duration::from_millis(1500));
    assert_eq!(pg.end_capture(port.index()).unwrap(), Some(3));
    assert_eq!(pg.end_capture(port.index()).unwrap(), None);
    assert!(matches!(pg.capture(port.index(), &path, None), Err(PgError::FileExists(_))));
}

#[test]
fn a_capture_of_an_ip_interface_is_marked_raw() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let mut router = Router::new(&[&BACK]);
    let port = router.pg_with(&CreateInterface { id: 0, mode: Mode::Ip6, ..CreateInterface::default() });
    router.generator().capture(port.index(), &path, None).unwrap();
    router.send(&port, &frame()[14..]);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(Reader::new(&bytes[..]).unwrap().link_type(), LinkType::RAW_IP);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o600, 0o600);
}

#[test]
fn a_capture_that_cannot_be_written_ends_and_is_counted() {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    let nowhere = std::path::Path::new("/nonexistent/folder/out.pcap");
    router.generator().capture(port.index(), nowhere, None).unwrap();
    router.send_all(&port, [frame(), frame()]);
    assert_eq!(router.error("pg0-tx", "capture ended: its file cannot be written"), 1);
    assert_eq!(port.received().len(), 2);
    assert_eq!(router.generator().end_capture(port.index()).unwrap(), None);
}

#[test]
fn the_frame_of_the_tests_is_right() {
    assert!(Ip4Header::ref_from_prefix(&frame()[14..]).unwrap().0.checksum_ok());
}

#[test]
fn injected_packets_come_by_a_queue_that_is_not_listed_as_a_devices() {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    router.send(&port, frame());
    assert_eq!(port.received_one(), frame());
    assert!(router.interfaces().queues(port.index()).unwrap().is_empty());
}

#[test]
fn a_replayed_packet_has_an_open_checksum_and_is_large_if_its_interface_offers_that() {
    let mut router = Router::new(&[&BACK]);
    let ports =
        [(false, None), (true, None), (false, Some(1000))].into_iter().enumerate().map(|(id, offers)| {
            let (checksum_offload, gso_size) = offers;
            router.pg_with(&CreateInterface {
                id: id as u32,
                checksum_offload,
                gso_size,
                ..CreateInterface::default()
            })
        });
    let ports: Vec<_> = ports.collect();
    let pg = std::rc::Rc::clone(router.generator());
    let tcp = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ip4([10, 0, 0, 1], [10, 0, 0, 2])
        .tcp(7, 9, TcpFlags::ACK)
        .payload_len(1900)
        .build();
    let mut wrong = tcp.clone();
    wrong[34 + 16..34 + 18].copy_from_slice(&[0xde, 0xad]);
    let open = Flags::L4_CHECKSUM_OFFLOAD.with(Flags::L4_CHECKSUM_OK);
    let large = open.with(Flags::GSO).with(Flags::GSO_TCP4);
    for (port, flags) in ports.iter().zip([Flags::default(), open, large]) {
        for packet in [&wrong, &frame()] {
            let mut spec = StreamSpec::new("replay", Source::Packets(vec![packet.clone()]));
            spec.interface = Some(port.index());
            pg.add_stream(spec).unwrap();
            router.trace_add("pg-input", 1);
            pg.enable("replay").unwrap();
            router.run();
            let flags =
                if *packet == wrong { flags } else { flags.without(Flags::GSO.with(Flags::GSO_TCP4)) };
            let line = format!("{} bytes, flags {}, ", packet.len(), flags.0);
            assert!(router.trace().contains(&line), "{}: {line}\n{}", port.name(), router.trace());
            router.graph().trace_clear();
            // The checksum is right on the way out where it was left open, but that of pieces to be cut, and as it came
            // elsewhere.
            let mut out = port.received_one();
            if flags.has(Flags::GSO) {
                out[50..52].copy_from_slice(&tcp[50..52]);
            }
            let right = if *packet == wrong && flags != Flags::default() { &tcp } else { packet };
            assert_eq!(out, *right, "{}", port.name());
        }
    }
}
