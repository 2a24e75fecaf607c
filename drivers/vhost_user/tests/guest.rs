//! A guest made by hand, and a router.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_for_each
)]

mod support;

use std::os::unix::net::UnixListener;
use std::time::Duration;

use shoal_buffer::Flags;
use shoal_graph::RxMode;
use shoal_testkit::{InjectedPacket, PacketInjector, Router};
use shoal_vhost_user::{CreateVhost, Role, Vhosts};
use shoal_wire::Packet;
use support::*;

/// Sends packets of both families each way and compares them.
fn both_ways(bed: &mut Bed, guest: &mut Guest, count: u16, payload: usize, layout: Layout) {
    let same = |sent: &[Vec<u8>], got: &[Vec<u8>], router: &Router| {
        assert_eq!(got.len(), sent.len(), "{:?}", router.errors());
        for (sent, got) in sent.iter().zip(got) {
            // But for addresses, hop limit and checksum of the header, byte by byte.
            assert_eq!(sent.len(), got.len());
            assert!(sent[26..] == got[26..], "a packet was changed on its way");
        }
    };
    let packets: Vec<_> = (0..count).map(|n| bed.udp(1, n % 2 == 1, n, payload)).collect();
    for burst in packets.chunks(2) {
        burst.iter().for_each(|p| guest.send(1, p, layout));
        let got = bed.host_gets(burst.len());
        same(burst, &got, &bed.router);
    }
    let packets: Vec<_> = (0..count).map(|n| bed.udp(0, n % 2 == 1, n, payload)).collect();
    let host = bed.host.clone();
    for burst in packets.chunks(2) {
        bed.router.send_all(&host, burst);
        let got = guest.gets(&mut bed.router, burst.len());
        same(burst, &got, &bed.router);
    }
}

#[test]
fn packets_of_both_families_go_to_a_guest_and_come_from_it() {
    for features in [MODERN, VERSION_1, PROTOCOL, 0, MRG_RXBUF, VERSION_1 | EVENT_IDX, MODERN & !EVENT_IDX] {
        let mut bed = Bed::new(Role::Server);
        let mut guest = bed.guest(features, 1);
        both_ways(&mut bed, &mut guest, 200, 18, Layout::Whole);
        let pieces = Layout::Pieces(guest.header());
        both_ways(&mut bed, &mut guest, 4, 200, pieces);
        let seen = info(&bed.router, bed.end);
        assert!(seen.ready && seen.features.0 == features, "{seen:?}");
        assert_eq!((seen.regions.len(), seen.rings.len(), seen.connections), (2, 2, 1));
        assert!(seen.rings.iter().all(|r| r.running && r.bad == 0 && r.next > 200), "{:?}", seen.rings);
    }
}

#[test]
fn jumbo_packets_go_in_chains_tables_and_merged_buffers() {
    for features in [MODERN, VERSION_1 | INDIRECT, MODERN & !EVENT_IDX] {
        let mut bed = Bed::new(Role::Server);
        bed.router.interfaces().set_mtu(bed.host.index(), shoal_interface::MtuLayer::L3, 9000).unwrap();
        let mut guest = bed.guest(features, 1);
        for layout in [
            Layout::Whole,
            Layout::Pieces(1500),
            Layout::Pieces(1021),
            Layout::Table(4096),
            Layout::Table(100),
        ] {
            both_ways(&mut bed, &mut guest, 10, 8900, layout);
            // One byte less and more than a buffer holds.
            for payload in [2005, 2006, 2007, 4054] {
                both_ways(&mut bed, &mut guest, 4, payload, layout);
            }
        }
        assert!(info(&bed.router, bed.end).rings.iter().all(|r| r.bad == 0));
    }
}

#[test]
fn several_queues_run_on_several_threads_and_what_was_said_of_them_outlasts_the_guest() {
    let mut bed = Bed::new(Role::Server);
    bed.router.graph().add_worker(None).unwrap();
    bed.router.graph().add_worker(None).unwrap();
    let mut guest = bed.guest(MODERN | 1 << 22, 3);
    let queues = |router: &Router, end| router.interfaces().queues(end).unwrap();
    assert_eq!(queues(&bed.router, bed.end).len(), 3);
    for ring in [1, 3, 5] {
        let packets: Vec<_> = (0..20).map(|n| bed.udp(1, n % 2 == 1, n, 18)).collect();
        packets.iter().for_each(|p| guest.send(ring, p, Layout::Whole));
        assert_eq!(bed.host_gets(20).len(), 20, "ring {ring}");
    }
    let (interfaces, end) = (bed.router.interfaces(), bed.end);
    interfaces.place_queue(end, 1, 2).unwrap();
    interfaces.set_rx_mode(end, Some(1), RxMode::Interrupt).unwrap();
    drop(guest);
    assert!(run_until(&mut bed.router, |r| !is_up(r, end)));
    assert_eq!(queues(&bed.router, end).len(), 1);
    let mut guest = bed.guest(MODERN | 1 << 22, 2);
    let kept = queues(&bed.router, end).into_iter().find(|q| q.queue == 1).unwrap();
    assert_eq!((kept.thread, kept.mode), (2, RxMode::Interrupt));
    both_ways(&mut bed, &mut guest, 10, 18, Layout::Whole);
}

#[test]
fn a_sleeping_worker_is_woken_by_a_kick_and_the_guest_by_a_call() {
    for features in [MODERN, MODERN & !EVENT_IDX] {
        let mut bed = Bed::new(Role::Server);
        bed.router.graph().add_worker(None).unwrap();
        let mut guest = bed.guest(features, 1);
        let end = bed.end;
        // The thread of these tests only looks, it never sleeps.
        bed.router.interfaces().place_queue(end, 0, 1).unwrap();
        bed.router.interfaces().set_rx_mode(end, None, RxMode::Interrupt).unwrap();
        for round in 0..20 {
            // Asleep: the guest is asked to wake it.
            let (used, given) = (guest.rings[1].used(), guest.rings[1].given);
            // Each step of the clock wakes the worker, which takes its wish back until it sleeps again.
            let asked = |memory: &Memory| {
                if features & EVENT_IDX == 0 {
                    memory.u16(used) == 0
                } else {
                    memory.u16(used + 4 + u64::from(SIZE) * 8) == given
                }
            };
            assert!(
                run_until(&mut bed.router, |_| {
                    (0..100).any(|_| {
                        std::thread::sleep(Duration::from_micros(100));
                        asked(&guest.memory)
                    })
                }),
                "{features:#x} round {round}: {:?}",
                info(&bed.router, end).rings
            );
            let packet = bed.udp(1, round % 2 == 0, round, 18);
            guest.send(1, &packet, Layout::Whole);
            assert_eq!(bed.host_gets(1).len(), 1, "round {round}");
            guest.rings[0].calls();
            // The guest wants to hear of the next packet, after those it was given meanwhile.
            drop(guest.receive(0));
            let event = guest.rings[0].taken;
            guest.memory.write(guest.rings[0].avail() + 4 + u64::from(SIZE) * 2, &event.to_le_bytes());
            let packet = bed.udp(0, round % 2 == 0, round, 18);
            let host = bed.host.clone();
            bed.router.send(&host, packet);
            assert_eq!(guest.gets(&mut bed.router, 1).len(), 1);
            let mut calls = 0;
            assert!(run_until(&mut bed.router, |_| {
                calls += guest.rings[0].calls();
                calls > 0
            }));
        }
        // It does not want to: no call.
        guest.memory.write(guest.rings[0].avail(), &1_u16.to_le_bytes());
        guest.memory.write(
            guest.rings[0].avail() + 4 + u64::from(SIZE) * 2,
            &(guest.rings[0].taken.wrapping_add(999)).to_le_bytes(),
        );
        guest.rings[0].calls();
        let packet = bed.udp(0, false, 1, 18);
        let host = bed.host.clone();
        bed.router.send(&host, packet);
        assert_eq!(guest.gets(&mut bed.router, 1).len(), 1);
        assert_eq!(guest.rings[0].calls(), 0);
        let rings = info(&bed.router, end).rings;
        assert!(rings[1].kicks >= 20 && rings[0].calls >= 20, "{rings:?}");
    }
}

#[test]
fn a_guest_that_gives_no_buffers_costs_counted_packets() {
    let mut bed = Bed::new(Role::Server);
    let mut guest = bed.guest(MODERN, 1);
    let host = bed.host.clone();
    drop(guest.receive(0));
    let none = |r: &Router| r.error("VirtualEthernet0/0/0-tx", "tx packet drops (no available descriptors)");
    let before = none(&bed.router);
    let burst: Vec<_> = (0..SIZE + 10).map(|n| bed.udp(0, true, n, 18)).collect();
    bed.router.send_all(&host, &burst);
    assert_eq!(none(&bed.router), before + 10);
    assert_eq!(guest.gets(&mut bed.router, SIZE.into()).len(), usize::from(SIZE));
    both_ways(&mut bed, &mut guest, 20, 18, Layout::Whole);
    assert_eq!(bed.router.if_counter("/if/tx-error", bed.end), before + 10);
}

#[test]
fn rings_go_round_more_than_sixteen_bits_count() {
    let mut bed = Bed::new(Role::Server);
    let mut guest = bed.guest(MODERN, 1);
    let packets: Vec<_> = (0..SIZE / 2).map(|n| bed.udp(1, n % 2 == 1, n, 18)).collect();
    let host = bed.host.clone();
    for _ in 0..2100 {
        packets.iter().for_each(|p| guest.put(1, [0; 12], p, Layout::Whole));
        guest.rings[1].kick();
        bed.router.run();
        let got = host.received().into_iter().filter(|p| is_ours(p)).count();
        assert_eq!(got, packets.len(), "{:?}", bed.router.errors());
        while guest.rings[1].take(&guest.memory).is_some() {}
    }
}

#[test]
fn a_ring_that_is_stopped_tells_where_and_goes_on_from_there() {
    let mut bed = Bed::new(Role::Server);
    let mut guest = bed.guest(MODERN, 1);
    both_ways(&mut bed, &mut guest, 10, 18, Layout::Whole);
    let bases: Vec<u16> = [0, 1]
        .map(|ring| guest.front.ask(&mut bed.router, 11, &[ring]).unwrap())
        .iter()
        .map(|answer| (answer >> 32) as u16)
        .collect();
    assert_eq!(bases[1], guest.rings[1].given);
    assert!(!is_up(&bed.router, bed.end));
    // Neither is anything taken from it now.
    let packet = bed.udp(1, false, 1, 18);
    guest.send(1, &packet, Layout::Whole);
    bed.router.run();
    assert!(!bed.host.received().iter().any(|p| is_ours(p)));
    (0..2).for_each(|ring| guest.start(ring, bases[ring]));
    bed.up();
    both_ways(&mut bed, &mut guest, 10, 18, Layout::Whole);
    // More memory is plugged in while packets flow: the rings stay where they are.
    guest.say_memory();
    assert!(guest.front.ask(&mut bed.router, 1, &[]).is_some());
    both_ways(&mut bed, &mut guest, 10, 18, Layout::Whole);
    // A ring that is not enabled gives nothing and takes packets to nowhere.
    guest.front.say(18, &[1], &[]);
    assert!(guest.front.ask(&mut bed.router, 1, &[]).is_some());
    guest.send(1, &packet, Layout::Whole);
    let given = guest.rings[1].given;
    assert!(run_until(&mut bed.router, |_| guest.memory.u16(guest.rings[1].used() + 2) == given));
    assert!(!bed.host.received().iter().any(|p| is_ours(p)));
    assert_eq!(bed.router.error("vhost-user-input", "received by a ring that is not enabled"), 1);
}

#[test]
fn guests_come_and_go_in_mid_burst_and_leave_nothing_behind() {
    let mut bed = Bed::new(Role::Server);
    let (end, host) = (bed.end, bed.host.clone());
    let open_files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let lives = if std::env::var_os("SHOAL_LONG").is_some() { 2000 } else { 30 };
    for life in 0..lives {
        let mut guest = bed.guest(MODERN, 1);
        let burst: Vec<_> = (0..100).map(|n| bed.udp(0, n % 2 == 1, n, 18)).collect();
        (0..20).for_each(|n| guest.put(1, [0; 12], &bed.udp(1, n % 2 == 1, n, 18), Layout::Whole));
        bed.router.send_all(&host, &burst);
        drop(guest);
        bed.router.send_all(&host, &burst);
        assert!(run_until(&mut bed.router, |r| !is_up(r, end)), "life {life}");
        bed.router.send_all(&host, &burst);
        drop(host.received());
    }
    assert!(open_files() < 500, "{}", open_files());
    assert!(bed.router.error("VirtualEthernet0/0/0-tx", "tx packet drops (no guest)") > 0);
    let seen = info(&bed.router, end);
    assert_eq!(seen.connections, lives);
    assert!(seen.why.contains("closed"), "{}", seen.why);
}

#[test]
fn a_second_front_end_is_sent_away_and_the_first_one_stays() {
    let mut bed = Bed::new(Role::Server);
    let mut guest = bed.guest(MODERN, 1);
    let mut other = FrontEnd::connect(&bed.path);
    assert_eq!(other.ask(&mut bed.router, 1, &[]), None);
    assert_eq!(info(&bed.router, bed.end).refused, 1);
    both_ways(&mut bed, &mut guest, 10, 18, Layout::Whole);
}

#[test]
fn a_client_connects_again_and_again() {
    let mut bed = Bed::new(Role::Client);
    assert!(run_until(&mut bed.router, |r| info(r, bed.end).why.contains("No such file")));
    for life in 1..4 {
        let listener = UnixListener::bind(&bed.path).unwrap();
        let front = FrontEnd::accept(&listener, &mut bed.router);
        let mut guest = Guest::over(front, MODERN, 1);
        guest.say_all(&mut bed.router);
        bed.up();
        both_ways(&mut bed, &mut guest, 10, 18, Layout::Whole);
        let end = bed.end;
        drop((guest, listener));
        std::fs::remove_file(&bed.path).unwrap();
        assert!(run_until(&mut bed.router, |r| !is_up(r, end)));
        assert_eq!(info(&bed.router, end).connections, life);
    }
}

#[test]
fn an_interface_is_deleted_under_load() {
    for role in [Role::Server, Role::Client] {
        let mut bed = Bed::new(role);
        bed.router.graph().add_worker(None).unwrap();
        let listener = (role == Role::Client).then(|| UnixListener::bind(&bed.path).unwrap());
        let mut guest = match &listener {
            None => bed.guest(MODERN, 2),
            Some(listener) => {
                let front = FrontEnd::accept(listener, &mut bed.router);
                let mut guest = Guest::over(front, MODERN, 2);
                guest.say_all(&mut bed.router);
                bed.up();
                guest
            }
        };
        let host = bed.host.clone();
        let burst: Vec<_> = (0..60).map(|n| bed.udp(0, n % 2 == 1, n, 18)).collect();
        let mine: Vec<_> = (0..10).map(|n| bed.udp(1, n % 2 == 1, n, 18)).collect();
        for round in 0..10 {
            bed.router.send_all(&host, &burst);
            mine.iter().for_each(|p| guest.put(1, [0; 12], p, Layout::Whole));
            guest.rings[1].kick();
            if round == 5 {
                bed.router.get::<Vhosts>().delete(bed.end).unwrap();
            }
        }
        assert_eq!(guest.front.ask(&mut bed.router, 1, &[]), None, "the connection is closed");
        assert!(
            bed.router.get::<Vhosts>().delete(bed.end).unwrap_err().to_string().contains("there are: none")
        );
        assert!(role == Role::Client || !bed.path.exists());
        drop(host.received());
    }
}

/// A TCP packet without its checksum, from the host (0) or the guest (1), and where its TCP header begins.
fn tcp(bed: &Bed, from: usize, six: bool, payload: usize) -> (Vec<u8>, usize) {
    let (src, mac) = if from == 0 { (HOST, bed.host.mac()) } else { (GUEST, bed.mac()) };
    let (n, to) = (from as u8 + 1, 2 - from as u8);
    let packet = Packet::ethernet(src, mac);
    let packet = if six {
        let host = |n: u8| std::net::Ipv6Addr::new(0x2001, 0xdb8, n.into(), 0, 0, 0, 0, 2);
        packet.ip6(host(n), host(to))
    } else {
        packet.ip4([10, n, 0, 2], [10, to, 0, 2])
    };
    let mut bytes = packet.tcp(1000, 2000, shoal_wire::TcpFlags::ACK).payload_len(payload).build();
    let l4 = if six { 54 } else { 34 };
    // Only the pseudo header's sum is in it, as a kernel leaves it.
    let mut pseudo = bytes[..l4].to_vec();
    pseudo.resize(bytes.len(), 0);
    let sum = sum(&pseudo, l4);
    bytes[l4 + 16..l4 + 18].copy_from_slice(&sum.to_be_bytes());
    (bytes, l4)
}

/// The sum over a TCP packet with its pseudo header: all ones when its checksum is right.
fn sum(frame: &[u8], l4: usize) -> u16 {
    let addresses = if l4 == 54 { &frame[22..54] } else { &frame[26..34] };
    let words = addresses.chunks(2).chain(frame[l4..].chunks(2));
    let mut sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
    sum += (frame.len() - l4) as u32 + 6;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A vnet header: an open checksum, and how to cut.
fn vnet(l4: usize, gso: u8, size: u16) -> [u8; 12] {
    let [s0, s1] = size.to_le_bytes();
    [1, gso, l4 as u8 + 20, 0, s0, s1, l4 as u8, 0, 16, 0, 0, 0]
}

#[test]
fn what_packets_owe_is_said_to_a_guest_that_understands_it_and_paid_for_others() {
    for features in [MODERN, VERSION_1 | PROTOCOL | MRG_RXBUF] {
        let modern = features == MODERN;
        let mut bed = Bed::new(Role::Server);
        let mut guest = bed.guest(features, 1);
        let giver = PacketInjector::new(&bed.router, &bed.host, 0);
        for six in [false, true] {
            let (bytes, l4) = tcp(&bed, 0, six, 100);
            let given = InjectedPacket {
                bytes,
                flags: Flags::L4_CHECKSUM_OFFLOAD,
                l4: l4 as i16,
                checksum_offset: 16,
                ..InjectedPacket::default()
            };
            giver.give(given);
            let mut got = Vec::new();
            assert!(run_until(&mut bed.router, |_| {
                got.extend(guest.receive(0).into_iter().filter(|(_, f)| f.len() == l4 + 120));
                !got.is_empty()
            }));
            let (header, frame) = &got[0];
            assert_eq!(header[0], u8::from(modern));
            assert_eq!(sum(frame, l4) == 0xffff, !modern, "six: {six}");
            if modern {
                assert_eq!(header[6..10], [l4 as u8, 0, 16, 0]);
            }
            // A large packet goes whole, or is cut.
            let (bytes, l4) = tcp(&bed, 0, six, 5000);
            let kind = if six { Flags::GSO_TCP6 } else { Flags::GSO_TCP4 };
            let given = InjectedPacket {
                bytes,
                flags: Flags::L4_CHECKSUM_OFFLOAD.with(Flags::GSO).with(kind),
                l4: l4 as i16,
                checksum_offset: 16,
                gso_size: 1400,
                gso_header: 20,
                ..InjectedPacket::default()
            };
            giver.give(given);
            let (mut got, want) = (Vec::new(), if modern { 1 } else { 4 });
            assert!(run_until(&mut bed.router, |_| {
                got.extend(guest.receive(0).into_iter().filter(|(_, f)| f.len() > l4 + 600));
                got.len() >= want
            }));
            for (header, frame) in &got {
                if modern {
                    assert_eq!(
                        (header[1], header[4..6].to_vec()),
                        (if six { 4 } else { 1 }, 1400_u16.to_le_bytes().to_vec())
                    );
                    assert_eq!(frame.len(), l4 + 20 + 5000);
                } else {
                    assert_eq!((header[0], header[1], sum(frame, l4)), (0, 0, 0xffff));
                }
            }
        }
    }
}

#[test]
fn what_a_guest_owes_is_paid_on_the_way_or_refused() {
    let mut bed = Bed::new(Role::Server);
    let mut guest = bed.guest(MODERN, 1);
    // To a second guest that understands nothing: all is paid before it gets there.
    for six in [false, true] {
        let (frame, l4) = tcp(&bed, 1, six, 100);
        guest.put(1, vnet(l4, 0, 0), &frame, Layout::Pieces(12));
        guest.rings[1].kick();
        let host = bed.host.clone();
        let mut got = Vec::new();
        assert!(run_until(&mut bed.router, |_| {
            got.extend(host.received().into_iter().filter(|p| p.len() == l4 + 120));
            !got.is_empty()
        }));
    }
    let refused = "vnet header does not fit its frame";
    let (frame, l4) = tcp(&bed, 1, false, 100);
    let wrong = [
        [1, 0, 0, 0, 0, 0, 0xff, 0xff, 16, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 34, 0, 0xff, 0xff, 0, 0],
        [0, 1, 0, 0, 100, 0, 34, 0, 16, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0],
        [1, 3, 0, 0, 100, 0, 34, 0, 6, 0, 0, 0],
        [1, 5, 0, 0, 100, 0, 34, 0, 6, 0, 0, 0],
        [1, 0x77, 0, 0, 100, 0, 34, 0, 16, 0, 0, 0],
        vnet(frame.len() - 2, 0, 0),
    ];
    for (n, header) in wrong.into_iter().enumerate() {
        guest.put(1, header, &frame, Layout::Whole);
        guest.rings[1].kick();
        let count = n as u64 + 1;
        assert!(run_until(&mut bed.router, |r| r.error("vhost-user-input", refused) == count), "{n} {l4}");
    }
    both_ways(&mut bed, &mut guest, 10, 18, Layout::Whole);
    // What was not agreed on is not taken.
    drop(guest);
    let end = bed.end;
    assert!(run_until(&mut bed.router, |r| !is_up(r, end)));
    let mut guest = bed.guest(VERSION_1, 1);
    guest.put(1, vnet(34, 0, 0), &frame, Layout::Whole);
    guest.rings[1].kick();
    assert!(run_until(&mut bed.router, |r| r.error("vhost-user-input", refused) == wrong.len() as u64 + 1));
}

#[test]
fn masked_features_are_not_offered() {
    let mut bed = Bed::with(&CreateVhost { role: Role::Server, mask: MRG_RXBUF, ..CreateVhost::default() });
    let mut front = FrontEnd::connect(&bed.path);
    assert_eq!(front.ask(&mut bed.router, 1, &[]), Some(MRG_RXBUF | PROTOCOL | VERSION_1));
}

#[test]
fn commands_say_what_is_there_and_what_is_wrong() {
    let mut bed = Bed::new(Role::Server);
    let guest = bed.guest(MODERN, 1);
    let path = bed.path.display().to_string();
    let vhosts = bed.router.get::<Vhosts>();
    let create = |create: CreateVhost| vhosts.create(&create).map_err(|e| e.to_string());
    let taken = create(CreateVhost { socket: path.clone(), ..CreateVhost::default() }).unwrap_err();
    assert!(taken.contains("is that of VirtualEthernet0/0/0 already"), "{taken}");
    let other = format!("{path}2");
    let taken = create(CreateVhost { socket: other.clone(), number: Some(0), ..CreateVhost::default() });
    assert!(taken.unwrap_err().contains("VirtualEthernet0/0/0"));
    let index =
        create(CreateVhost { socket: other.clone(), number: Some(7), ..CreateVhost::default() }).unwrap();
    assert_eq!(bed.router.interfaces().name(index).unwrap(), "VirtualEthernet0/0/7");
    let long = create(CreateVhost { socket: "x".repeat(200), ..CreateVhost::default() }).unwrap_err();
    assert!(long.contains("107"), "{long}");
    let file = format!("{path}3");
    std::fs::write(&file, "precious").unwrap();
    let server = CreateVhost { socket: file.clone(), role: Role::Server, ..CreateVhost::default() };
    assert!(create(server.clone()).unwrap_err().contains("is not a socket"));
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    // Another socket, and another role, for the one that is there: its guest is sent away.
    let moved = CreateVhost { socket: format!("{path}4"), number: Some(9), ..server };
    vhosts.modify(bed.end, &moved).unwrap();
    assert_eq!(bed.router.interfaces().name(bed.end).unwrap(), "VirtualEthernet0/0/9");
    let end = bed.end;
    assert!(run_until(&mut bed.router, |r| !is_up(r, end) && info(r, end).why.contains("modified")));
    drop(guest);
    bed.path = moved.socket.into();
    let mut guest = bed.guest(MODERN, 1);
    both_ways(&mut bed, &mut guest, 10, 18, Layout::Whole);
    let wrong =
        vhosts.modify(end, &CreateVhost { socket: file, role: Role::Server, ..CreateVhost::default() });
    assert!(wrong.unwrap_err().to_string().contains("is not a socket"));
    both_ways(&mut bed, &mut guest, 10, 18, Layout::Whole);
    bed.router.advance(Duration::from_secs(1));
}

/// Prints how long a guest waits from its kick until its packet is taken: of a router that looks all the time, of one that
/// may sleep between close packets, and of one that has slept. For the README; nothing is judged.
#[test]
#[ignore = "a measurement: run it alone, with --nocapture, on a machine that has nothing else to do"]
fn measures_how_long_a_kick_takes() {
    for (mode, idle) in [
        (RxMode::Polling, Duration::from_millis(20)),
        (RxMode::Adaptive, Duration::from_micros(50)),
        (RxMode::Adaptive, Duration::from_millis(20)),
        (RxMode::Interrupt, Duration::from_millis(20)),
    ] {
        let mut bed = Bed::new(Role::Server);
        bed.router.graph().add_worker(None).unwrap();
        let mut guest = bed.guest(MODERN, 1);
        bed.router.interfaces().place_queue(bed.end, 0, 1).unwrap();
        bed.router.interfaces().set_rx_mode(bed.end, None, mode).unwrap();
        let packet = bed.udp(1, false, 1, 18);
        let mut times: Vec<Duration> = Vec::new();
        for _ in 0..200 {
            std::thread::sleep(idle);
            guest.put(1, [0; 12], &packet, Layout::Whole);
            let (given, used) = (guest.rings[1].given, guest.rings[1].used() + 2);
            let begun = std::time::Instant::now();
            guest.rings[1].kick();
            while guest.memory.u16(used) != given {
                assert!(begun.elapsed() < PATIENCE, "never taken");
                std::hint::spin_loop();
            }
            times.push(begun.elapsed());
            drop(bed.host.received());
        }
        times.sort();
        let at = |percent: usize| times[times.len() * percent / 100].as_micros();
        println!(
            "{mode:?}, a packet every {idle:?}: median {} us, 90% {} us, 99% {} us",
            at(50),
            at(90),
            at(99)
        );
    }
}
