//! Two routers in one process, with memif between them.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::time::Duration;

use shoal_buffer::Flags;
use shoal_graph::RxMode;
use shoal_interface::IfFlags;
use shoal_memif::{CreateMemif, Memifs, Mode, Role};
use shoal_testkit::{InjectedPacket, PacketInjector, Router};
use shoal_wire::Packet;
use support::*;

/// Sends packets of both families each way and compares them.
fn both_ways(pair: &mut Pair, count: u16, payload: usize) {
    for from in [0, 1] {
        let one = |n: u16| match n % 2 {
            0 => pair.ip4_of(from, n, payload),
            _ => pair.ip6_of(from, n, payload),
        };
        let packets: Vec<_> = (0..count).map(one).collect();
        let got = pair.pass(from, packets.clone());
        assert_eq!(got.len(), packets.len(), "{:?} {:?}", pair.left.errors(), pair.right.errors());
        // Without Ethernet the two families part before they are forwarded.
        let order = |p: &Vec<u8>| (p.len(), p[34..].to_vec());
        let (mut packets, mut got) = (packets, got);
        packets.sort_by_key(order);
        got.sort_by_key(order);
        for (sent, got) in packets.iter().zip(&got) {
            // But for addresses, hop limit and checksum of the header, byte by byte.
            assert_eq!(sent.len(), got.len());
            assert!(sent[26..] == got[26..], "a packet was changed on its way");
        }
    }
}

#[test]
fn packets_of_both_families_cross_in_both_directions() {
    let mut pair = Pair::new("both", &CreateMemif::default());
    pair.connect();
    both_ways(&mut pair, 300, 18);
    let seen = info(&pair.right, pair.ends[1]);
    assert!(seen.connected && seen.remote.starts_with("Shoal ") && seen.remote_interface == "memif1/0");
    assert_eq!((seen.rings.len(), seen.regions.len(), seen.bad), (2, 1, 0));
}

#[test]
fn packets_without_ethernet_cross_in_ip_mode() {
    let mut pair = Pair::new("ip", &CreateMemif { mode: Mode::Ip, ..CreateMemif::default() });
    pair.connect();
    both_ways(&mut pair, 300, 18);
    let flags = |router: &Router, end| router.interfaces().data(end).unwrap().flags();
    assert!(!flags(&pair.left, pair.ends[0]).has(IfFlags::ETHERNET));
    // What is neither IPv4 nor IPv6 is dropped and counted.
    let [left, right] = pair.ends;
    for bytes in [&[0x50_u8; 40][..], &[0; 1]] {
        pair.left.inject("memif1/0-tx", left, bytes);
    }
    let dropped = pair.run_until(|_, router| router.error("memif-input", "not ip packet") == 2);
    assert!(dropped);
    assert_eq!(pair.right.if_counter("/if/rx-error", right), 2);
}

#[test]
fn jumbo_packets_cross_in_chains_whatever_the_size_of_buffers() {
    for buffer_size in [2048, 64, 1500, 16_384] {
        let create = CreateMemif { buffer_size, ..CreateMemif::default() };
        let mut pair = Pair::new(&format!("jumbo{buffer_size}"), &create);
        for router in [0, 1] {
            let host = pair.hosts[router].index();
            pair.router(router).interfaces().set_mtu(host, shoal_interface::MtuLayer::L3, 9000).unwrap();
        }
        pair.connect();
        both_ways(&mut pair, 4, 8900);
        both_ways(&mut pair, 10, 2048 - 42);
    }
}

#[test]
fn the_shortest_ring_is_filled_over_and_over() {
    let mut pair = Pair::new("short", &CreateMemif { ring_size: 4, ..CreateMemif::default() });
    pair.connect();
    // More than 16 bits count, in bursts that fit.
    let burst: Vec<_> = (0..4).map(|n| pair.ip4(0, n)).collect();
    for _ in 0..17_000 {
        let (host, to) = (pair.hosts[0].clone(), pair.hosts[1].clone());
        pair.left.send_all(&host, &burst);
        pair.right.run();
        assert_eq!(to.received().iter().filter(|p| is_ours(p)).count(), 4);
    }
    // What does not fit is dropped and counted.
    let many: Vec<_> = (0..10).map(|n| pair.ip4(0, n)).collect();
    let host = pair.hosts[0].clone();
    pair.left.send_all(&host, &many);
    assert_eq!(pair.left.error("memif1/0-tx", "no free tx slots"), 6);
    let jumbo = pair.ip4_of(0, 1, 8900);
    pair.right.run();
    pair.left.send(&host, jumbo);
    assert_eq!(pair.left.error("memif1/0-tx", "longer than the whole ring"), 1);
}

#[test]
fn several_queues_are_the_slaves_choice_and_run_on_several_threads() {
    let create = CreateMemif { rx_queues: 3, tx_queues: 2, ..CreateMemif::default() };
    let mut pair = Pair::new("queues", &create);
    for router in [&pair.left, &pair.right] {
        router.graph().add_worker(None).unwrap();
        router.graph().add_worker(None).unwrap();
    }
    pair.connect();
    let queues = |router: &Router, end| router.interfaces().queues(end).unwrap();
    let [left, right] = pair.ends;
    assert_eq!((queues(&pair.left, left).len(), queues(&pair.right, right).len()), (3, 2));
    both_ways(&mut pair, 200, 18);
    // The operator's settings of a queue outlast the peer.
    pair.right.interfaces().place_queue(right, 1, 2).unwrap();
    pair.right.interfaces().set_rx_mode(right, Some(1), RxMode::Interrupt).unwrap();
    pair.left.interfaces().set_admin(left, false).unwrap();
    assert!(pair.run_until(|_, router| !is_up(router, right)));
    pair.left.interfaces().set_admin(left, true).unwrap();
    assert!(pair.run_until(|_, router| is_up(router, right)));
    let kept = queues(&pair.right, right).into_iter().find(|q| q.queue == 1).unwrap();
    assert_eq!((kept.thread, kept.mode), (2, RxMode::Interrupt));
}

#[test]
fn a_sleeping_worker_is_woken_by_its_peer() {
    let mut pair = Pair::new("sleep", &CreateMemif::default());
    pair.right.graph().add_worker(None).unwrap();
    let right = pair.ends[1];
    pair.connect();
    pair.right.interfaces().place_queue(right, 0, 1).unwrap();
    pair.right.interfaces().set_rx_mode(right, None, RxMode::Interrupt).unwrap();
    for round in 0..20 {
        // Asleep: the peer is asked to wake it.
        let armed = |router: &Router| {
            // Each look at the router wakes its worker.
            std::thread::sleep(Duration::from_millis(20));
            info(router, right).rings.iter().any(|r| r.s2m && r.flags == 0)
        };
        assert!(pair.run_until(|_, router| armed(router)), "round {round}");
        let packet = pair.ip4(0, round);
        assert_eq!(pair.pass(0, vec![packet]).len(), 1, "round {round}");
    }
    assert!(info(&pair.right, right).interrupts >= 20 && info(&pair.left, pair.ends[0]).kicks >= 20);
}

#[test]
fn peers_that_do_not_fit_are_told_why() {
    let base = CreateMemif { secret: "swordfish".into(), ..CreateMemif::default() };
    let refusals = [
        (CreateMemif { secret: "guess".into(), ..base.clone() }, "wrong secret"),
        (CreateMemif { secret: String::new(), ..base.clone() }, "wrong secret"),
        (CreateMemif { id: 9, ..base.clone() }, "no interface with id 9 on this socket"),
        (CreateMemif { mode: Mode::Ip, ..base.clone() }, "mode ip, must be ethernet"),
    ];
    for (number, (left, text)) in refusals.into_iter().enumerate() {
        let mut pair = Pair::with(&format!("refused{number}"), &left, &base);
        let (left, right) = (pair.ends[0], pair.ends[1]);
        assert!(pair.run_until(|router, _| info(router, left).why.contains(text)), "{text}");
        assert!(!is_up(&pair.left, left) && !is_up(&pair.right, right));
        assert!(pair.right.get::<Memifs>().sockets().iter().any(|s| s.refused > 0));
    }
    let mut pair = Pair::new("down", &base);
    let (left, right) = (pair.ends[0], pair.ends[1]);
    pair.right.interfaces().set_admin(right, false).unwrap();
    assert!(pair.run_until(|router, _| info(router, left).why.contains("interface is down")));
    pair.right.interfaces().set_admin(right, true).unwrap();
    pair.connect();
}

#[test]
fn a_second_slave_is_sent_away_and_the_first_one_stays() {
    let mut pair = Pair::new("second", &CreateMemif::default());
    pair.connect();
    let mut other = Router::new(MODULES);
    let slave = CreateMemif { socket: 1, role: Role::Slave, ..CreateMemif::default() };
    let end = make(&mut other, &socket_name("second"), &slave);
    let sent_away = |routers: &mut [&mut Router]| info(routers[1], end).why.contains("already connected");
    assert!(run_until(&mut [&mut pair.right, &mut other], sent_away));
    both_ways(&mut pair, 10, 18);
}

#[test]
fn a_peer_that_dies_in_mid_burst_is_missed_and_its_successor_taken() {
    let mut pair = Pair::new("death", &CreateMemif::default());
    pair.connect();
    let left = pair.ends[0];
    for _ in 0..3 {
        let host = pair.hosts[0].clone();
        let burst: Vec<_> = (0..600).map(|n| pair.ip4(0, n)).collect();
        pair.left.send_all(&host, &burst);
        // It goes with packets in its ring.
        let end = pair.ends[1];
        pair.right.get::<Memifs>().delete(end).unwrap();
        pair.left.send_all(&host, &burst);
        pair.right.run();
        assert!(run_until(&mut [&mut pair.left], |routers| !is_up(routers[0], left)));
        pair.left.send_all(&host, &burst);
        // Its neighbours went with the link: only a node that sends straight there gets an error.
        let before = pair.left.error("memif1/0-tx", "no peer is connected");
        pair.left.inject("memif1/0-tx", left, &[0; 60]);
        pair.left.run();
        assert_eq!(pair.left.error("memif1/0-tx", "no peer is connected"), before + 1);
        pair.right_again("death");
        pair.connect();
        both_ways(&mut pair, 100, 18);
    }
    assert_eq!(info(&pair.left, left).connections, 4);
}

#[test]
fn either_end_is_deleted_under_load() {
    for which in [0, 1] {
        let mut pair = Pair::new(&format!("delete{which}"), &CreateMemif::default());
        pair.router(which).graph().add_worker(None).unwrap();
        pair.connect();
        let hosts = pair.hosts.clone();
        for round in 0..10 {
            for from in [0, 1] {
                let burst: Vec<_> = (0..300).map(|n| pair.ip6(from, n)).collect();
                pair.router(from).send_all(&hosts[from], &burst);
            }
            if round == 5 {
                let end = pair.ends[which];
                pair.router(which).get::<Memifs>().delete(end).unwrap();
            }
        }
        let other = pair.ends[1 - which];
        let down = |router: &Router| !is_up(router, other);
        assert!(pair.run_until(|l, r| if which == 0 { down(r) } else { down(l) }));
        let why = info(pair.router(1 - which), other).why;
        if which == 1 {
            // The slave tries again at once: there is no listener any more.
            assert!(why.contains("refused") || why.contains("deleted"), "{why}");
        } else {
            assert!(why.contains("interface deleted"), "{why}");
        }
        // Packets that wait for a neighbour are given up.
        pair.left.advance(Duration::from_secs(30));
        pair.right.advance(Duration::from_secs(30));
    }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn maps() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().filter(|l| l.contains("memfd:memif")).count()
}

#[test]
fn thousands_of_lives_leave_nothing_behind() {
    let name = socket_name("lives");
    let mut routers = [Router::new(MODULES), Router::new(MODULES)];
    let life = |routers: &mut [Router; 2]| {
        let [l, r] = routers;
        let create = CreateMemif { ring_size: 16, socket: 1, ..CreateMemif::default() };
        let a = make(r, &name, &CreateMemif { role: Role::Master, ..create.clone() });
        let b = make(l, &name, &create);
        assert!(run_until(&mut [l, r], |routers| is_up(routers[0], b) && is_up(routers[1], a)));
        l.get::<Memifs>().delete(b).unwrap();
        r.get::<Memifs>().delete(a).unwrap();
        l.get::<Memifs>().delete_socket(1).unwrap();
        r.get::<Memifs>().delete_socket(1).unwrap();
    };
    life(&mut routers);
    let lives = if std::env::var_os("SHOAL_LONG").is_some() { 5000 } else { 150 };
    let most = |routers: &mut [Router; 2]| {
        let [l, r] = routers;
        // Tests beside this one open files, too: what matters is that it does not grow with each life.
        run_until(&mut [l, r], |_| open_files() < 400 + lives / 10)
    };
    (0..lives).for_each(|_| life(&mut routers));
    assert!(most(&mut routers), "{} open files after {lives} lives", open_files());
    assert!(maps() < 400, "{} mappings", maps());
}

/// A TCP packet of host 1, without its checksum, or to be cut.
fn owing(pair: &Pair, six: bool, payload: usize) -> (InjectedPacket, usize) {
    let packet = Packet::ethernet(HOST, pair.hosts[0].mac());
    let packet = if six {
        let host = |n: u16| std::net::Ipv6Addr::new(0x2001, 0xdb8, n, 0, 0, 0, 0, 2);
        packet.ip6(host(1), host(2))
    } else {
        packet.ip4([10, 1, 0, 2], [10, 2, 0, 2])
    };
    let bytes = packet.tcp(1000, 2000, shoal_wire::TcpFlags::ACK).payload_len(payload).build();
    let l4 = if six { 54 } else { 34 };
    let given = InjectedPacket {
        bytes,
        flags: Flags::L4_CHECKSUM_OFFLOAD,
        l4,
        checksum_offset: 16,
        ..InjectedPacket::default()
    };
    (given, usize::try_from(l4).unwrap())
}

/// The sum over a TCP packet with its pseudo header: all ones when its checksum is right.
fn sum(frame: &[u8], l4: usize) -> u16 {
    let addresses = if l4 == 54 { &frame[22..54] } else { &frame[26..34] };
    let len = (frame.len() - l4) as u32;
    let words = addresses.chunks(2).chain(frame[l4..].chunks(2));
    let mut sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
    sum += len + 6;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn what_packets_owe_is_paid_before_they_leave() {
    let mut pair = Pair::new("owing", &CreateMemif::default());
    pair.connect();
    let giver = PacketInjector::new(&pair.left, &pair.hosts[0], 0);
    for six in [false, true] {
        let (mut given, l4) = owing(&pair, six, 100);
        // Only the pseudo header's sum is in it, as a kernel leaves it.
        let full = sum(&given.bytes, l4);
        assert_eq!(full, 0xffff);
        let mut pseudo = given.bytes[..l4].to_vec();
        pseudo.resize(given.bytes.len(), 0);
        let partial = sum(&pseudo, l4);
        given.bytes[l4 + 16..l4 + 18].copy_from_slice(&partial.to_be_bytes());
        giver.give(given);
        let to = pair.hosts[1].clone();
        let mut got = Vec::new();
        assert!(pair.run_until(|_, _| {
            got.extend(to.received());
            got.iter().any(|p: &Vec<u8>| p.len() == l4 + 120)
        }));
        let packet = got.iter().find(|p| p.len() == l4 + 120).unwrap();
        assert_eq!(sum(packet, l4), 0xffff, "six: {six}");

        // A large packet is cut.
        let (mut given, l4) = owing(&pair, six, 5000);
        let kind = if six { Flags::GSO_TCP6 } else { Flags::GSO_TCP4 };
        given.flags = given.flags.with(Flags::GSO).with(kind);
        (given.gso_size, given.gso_header) = (1400, 20);
        giver.give(given);
        let mut got = Vec::new();
        let cut = pair.run_until(|_, _| {
            got.extend(to.received().into_iter().filter(|p| p.len() > l4 + 600));
            got.len() >= 4
        });
        assert!(cut, "{:?}", pair.left.errors());
        assert_eq!(got.iter().map(|p| p.len() - l4 - 20).sum::<usize>(), 5000);
        assert!(got.iter().all(|p| sum(p, l4) == 0xffff));
    }
}

#[test]
fn a_trace_says_what_happened_at_both_ends() {
    let mut pair = Pair::new("trace", &CreateMemif::default());
    pair.connect();
    pair.left.trace_add("pg-input", 10);
    pair.right.trace_add("memif-input", 10);
    let packet = pair.ip4(0, 7);
    assert_eq!(pair.pass(0, vec![packet]).len(), 1);
    assert!(
        pair.left.trace().contains("memif1/0-tx: memif: hw_if_index 2 tx-queue 0 len 60"),
        "{}",
        pair.left.trace()
    );
    assert!(pair.right.trace().contains("slot: ring 0"), "{}", pair.right.trace());
}
