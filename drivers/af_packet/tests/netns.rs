//! The queues against the real kernel: veth pairs in network namespaces of the test's own.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shoal_af_packet::*;
use shoal_link::{AdminState, Link, LinkChange, LinkWatch, set_admin_state};
use shoal_vnet::{Csum, VnetHdr};
use support::*;

const SECOND: Duration = Duration::from_secs(1);

/// A veth pair `va` - `vb` in one namespace, both ends up.
fn veth(tag: &str) -> Namespace {
    let ns = Namespace::new(tag).unwrap();
    ns.ip("link add va type veth peer name vb");
    for end in ["va", "vb"] {
        sh(&format!("ip netns exec {} sysctl -qw net.ipv6.conf.{end}.disable_ipv6=1", ns.name()));
        ns.ip(&format!("link set {end} up"));
    }
    ns
}

fn port(name: &str) -> (RxRing, TxQueue) {
    let index = Link::by_name(name).unwrap().index;
    let config = RxConfig { promiscuous: Promiscuous::On, ..RxConfig::default() };
    (RxRing::open(index, &config).unwrap(), TxQueue::open(index, &TxConfig::default()).unwrap())
}

/// An IPv4 UDP frame of `len` bytes whose source port is `flow`.
fn frame(len: usize, flow: u16) -> Vec<u8> {
    let mut f = vec![0u8; len];
    f[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    f[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    f[12..14].copy_from_slice(&[8, 0]);
    f[14] = 0x45;
    f[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    f[22..24].copy_from_slice(&[64, 17]);
    f[26..30].copy_from_slice(&[10, 0, 0, 1]);
    f[30..34].copy_from_slice(&[10, 0, 0, 2]);
    f[34..36].copy_from_slice(&flow.to_be_bytes());
    f[36..38].copy_from_slice(&[0, 9]);
    for (i, byte) in f[42..].iter_mut().enumerate() {
        *byte = (i * 7 + usize::from(flow)) as u8;
    }
    f
}

/// All frames that arrive until `n` have, or a second has passed.
fn receive(rx: &mut RxRing, n: usize) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    wait_for(SECOND, || {
        while let Some(frame) = rx.next() {
            got.push(frame.bytes.to_vec());
        }
        got.len() >= n
    });
    got
}

#[test]
fn frames_of_every_size_cross_both_ways_unchanged() {
    if !can_run("frames_of_every_size_cross_both_ways_unchanged") {
        return;
    }
    let ns = veth("sizes");
    ns.inside(|| {
        let (mut a, mut b) = (port("va"), port("vb"));
        for (tx, rx) in [(&mut a.1, &mut b.0), (&mut b.1, &mut a.0)] {
            let frames: Vec<_> = [60, 61, 64, 128, 500, 1499, 1500, 1514].map(|len| frame(len, 7)).into();
            let mut batch = tx.batch();
            for f in &frames {
                batch.push(VnetHdr::default(), f.chunks(100)).unwrap();
            }
            assert_eq!(batch.send(), TxReport { sent: frames.len(), ..TxReport::default() });
            assert_eq!(receive(rx, frames.len()), frames);
        }
        // A ring does not see what its own interface sends.
        assert!(receive(&mut a.0, 1).is_empty());
        let stats = b.0.stats().unwrap();
        assert_eq!((stats.packets, stats.drops, stats.malformed), (8, 0, 0));
    });
}

#[test]
fn a_batch_passes_over_bad_frames_and_counts_them() {
    if !can_run("a_batch_passes_over_bad_frames_and_counts_them") {
        return;
    }
    let ns = veth("bad");
    ns.inside(|| {
        let (a, mut b) = (port("va"), port("vb"));
        let (good, big, short) = (frame(64, 1), frame(1600, 1), [0u8; 5]);
        let lie = VnetHdr { flags: 1, csum_start: 9000.into(), csum_offset: 16.into(), ..VnetHdr::default() };
        let mut tx = a.1;
        let mut batch = tx.batch();
        for (vnet, data) in [
            (VnetHdr::default(), &good[..]),
            (VnetHdr::default(), &big),
            (lie, &good),
            (VnetHdr::default(), &short),
            (VnetHdr::default(), &good),
        ] {
            batch.push(vnet, [data]).unwrap();
        }
        assert_eq!(batch.send(), TxReport { sent: 2, too_big: 1, invalid: 2, ..TxReport::default() });
        assert_eq!(receive(&mut b.0, 2).len(), 2);
    });
}

#[test]
fn a_batch_says_when_it_is_full_and_when_a_chain_can_never_go() {
    if !can_run("a_batch_says_when_it_is_full_and_when_a_chain_can_never_go") {
        return;
    }
    let ns = veth("full");
    ns.inside(|| {
        let index = Link::by_name("va").unwrap().index;
        let mut tx = TxQueue::open(index, &TxConfig { batch: 2, ..TxConfig::default() }).unwrap();
        let f = frame(1200, 1);
        let mut batch = tx.batch();
        assert_eq!(batch.push(VnetHdr::default(), f.chunks(1)), Err(TxRefused::TooManySegments(1200)));
        assert_eq!(batch.push(VnetHdr::default(), f.chunks(2)), Ok(()));
        assert_eq!(batch.push(VnetHdr::default(), f.chunks(2)), Err(TxRefused::BatchFull));
        assert_eq!(batch.push(VnetHdr::default(), f.chunks(60)), Ok(()));
        assert_eq!(batch.push(VnetHdr::default(), f.chunks(60)), Err(TxRefused::BatchFull));
        assert_eq!(batch.send().sent, 2);
    });
}

#[test]
fn a_stripped_vlan_tag_is_reported() {
    if !can_run("a_stripped_vlan_tag_is_reported") {
        return;
    }
    let ns = veth("vlan");
    ns.inside(|| {
        let (mut a, mut b) = (port("va"), port("vb"));
        let plain = frame(100, 1);
        let tagged = [&plain[..12], &[0x81, 0, 0x20, 7], &plain[12..]].concat();
        let mut batch = a.1.batch();
        batch.push(VnetHdr::default(), [&tagged[..]]).unwrap();
        assert_eq!(batch.send().sent, 1);
        assert!(wait_for(SECOND, || b.0.is_ready()));
        let got = b.0.next().unwrap();
        assert_eq!(got.vlan, Some(VlanTag { tpid: 0x8100, tci: 0x2007 }));
        assert_eq!(got.bytes, plain);
    });
}

#[test]
fn a_local_checksum_is_left_open_and_can_be_finished() {
    if !can_run("a_local_checksum_is_left_open_and_can_be_finished") {
        return;
    }
    let ns = veth("csum");
    let peer = Namespace::new("csum-peer").unwrap();
    ns.ip(&format!("link set vb netns {}", peer.name()));
    peer.ip("addr add 10.1.0.1/24 dev vb");
    peer.ip("link set vb up");
    peer.ip("neigh add 10.1.0.2 lladdr 02:00:00:00:00:02 dev vb");
    let mut a = ns.inside(|| port("va"));
    peer.inside(|| UdpSocket::bind("0.0.0.0:5000").unwrap().send_to(b"hello", "10.1.0.2:6000").unwrap());
    let found = wait_for(SECOND, || {
        while let Some(f) = a.0.next() {
            if f.bytes.len() < 42 || f.bytes[12..14] != [8, 0] || f.bytes[23] != 17 {
                continue;
            }
            assert!(f.is_csum_not_ready());
            let Csum::Partial { start, offset } = f.vnet.validate(&[f.bytes]).unwrap().csum else { panic!() };
            let mut bytes = f.bytes.to_vec();
            shoal_vnet::finish_checksum(&mut [&mut bytes[..]], start, offset).unwrap();
            // Summed with its pseudo-header, a right datagram gives zero.
            let mut sum = shoal_vnet::Sum::default();
            sum.add(&bytes[26..34]);
            sum.add_u16(17 + (bytes.len() - 34) as u16);
            sum.add(&bytes[34..]);
            assert_eq!(sum.finish(), 0);
            return true;
        }
        false
    });
    assert!(found);
}

#[test]
fn fanout_gives_every_frame_to_one_queue_and_a_flow_always_to_the_same() {
    if !can_run("fanout_gives_every_frame_to_one_queue_and_a_flow_always_to_the_same") {
        return;
    }
    let ns = veth("fanout");
    ns.inside(|| {
        let mut tx = port("va").1;
        let b = Link::by_name("vb").unwrap().index;
        let mut rings = RxRing::open_queues(b, &RxConfig { blocks: 8, ..RxConfig::blocks() }, 4).unwrap();
        let group = rings[0].fanout_id().unwrap();
        assert!(group.is_some() && rings.iter().all(|r| r.fanout_id().unwrap() == group));
        let frames: Vec<_> = (0..200).map(|i| frame(64, i % 50)).collect();
        let mut batch = tx.batch();
        for f in &frames {
            batch.push(VnetHdr::default(), [&f[..]]).unwrap();
        }
        assert_eq!(batch.send().sent, 200);
        let mut owner = std::collections::HashMap::new();
        let mut total = 0;
        wait_for(SECOND, || {
            for (queue, ring) in rings.iter_mut().enumerate() {
                while let Some(f) = ring.next() {
                    let flow = [f.bytes[34], f.bytes[35]];
                    assert_eq!(*owner.entry(flow).or_insert(queue), queue);
                    total += 1;
                }
            }
            total >= 200
        });
        assert_eq!(total, 200);
        let used: std::collections::HashSet<_> = owner.values().collect();
        assert!(used.len() > 1, "all flows on one queue");
    });
}

#[test]
fn tcp_with_default_offloads_crosses_as_superframes_with_the_right_bytes() {
    if !can_run("tcp_with_default_offloads_crosses_as_superframes_with_the_right_bytes") {
        return;
    }
    const BYTES: usize = 200 << 20;
    let (left, router, right) = (
        Namespace::new("left").unwrap(),
        Namespace::new("router").unwrap(),
        Namespace::new("right").unwrap(),
    );
    for (ns, name, addr) in [(&left, "va", "10.2.0.1/24"), (&right, "vb", "10.2.0.2/24")] {
        router.ip(&format!("link add {name} type veth peer name eth0 netns {}", ns.name()));
        router.ip(&format!("link set {name} up"));
        ns.ip(&format!("addr add {addr} dev eth0"));
        ns.ip("link set eth0 up");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let seen = router.spawn({
        let stop = stop.clone();
        move || forwarder(port("va"), port("vb"), stop)
    });
    let byte = |i: usize| (i.wrapping_mul(2_654_435_761) >> 13) as u8;
    let listener = right.inside(|| TcpListener::bind("10.2.0.2:7000").unwrap());
    let server = std::thread::spawn(move || {
        let mut peer = listener.accept().unwrap().0;
        let (mut buf, mut at, mut wrong) = (vec![0; 1 << 16], 0usize, 0usize);
        loop {
            let n = peer.read(&mut buf).unwrap();
            if n == 0 {
                break;
            }
            wrong += buf[..n].iter().enumerate().filter(|(i, b)| **b != byte(at + i)).count();
            at += n;
        }
        peer.write_all(b"done").unwrap();
        (at, wrong)
    });
    let mut client = left.inside(|| TcpStream::connect("10.2.0.2:7000").unwrap());
    let start = std::time::Instant::now();
    let mut chunk = vec![0; 1 << 18];
    for at in (0..BYTES).step_by(chunk.len()) {
        for (i, b) in chunk.iter_mut().enumerate() {
            *b = byte(at + i);
        }
        client.write_all(&chunk).unwrap();
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    let elapsed = start.elapsed();
    stop.store(true, Ordering::Relaxed);
    let seen = seen.join().unwrap();
    println!("{BYTES} bytes in {elapsed:?}: {seen:?}");
    assert_eq!(server.join().unwrap(), (BYTES, 0));
    assert_eq!(answer, "done");
    assert!(seen.superframes > 100 && seen.partial_csums >= seen.superframes, "{seen:?}");
    assert!(seen.largest > 60_000, "superframes of up to 64 KB pass whole: {seen:?}");
}

/// Frames of 9,000 bytes between short ones, as one batch.
fn send_mixed(tx: &mut TxQueue) -> Vec<Vec<u8>> {
    let frames: Vec<_> = (0..60u16).map(|i| frame(if i % 3 == 1 { 9000 } else { 64 }, i)).collect();
    let mut batch = tx.batch();
    for f in &frames {
        batch.push(VnetHdr::default(), [&f[..]]).unwrap();
    }
    assert_eq!(batch.send().sent, frames.len());
    frames
}

fn jumbo(tag: &str) -> Namespace {
    let ns = veth(tag);
    ns.ip("link set va mtu 9000");
    ns.ip("link set vb mtu 9000");
    ns
}

#[test]
fn frames_longer_than_a_slot_keep_their_place_between_the_others() {
    if !can_run("frames_longer_than_a_slot_keep_their_place_between_the_others") {
        return;
    }
    jumbo("long").inside(|| {
        let (mut a, mut b) = (port("va"), port("vb"));
        let frames = send_mixed(&mut a.1);
        assert_eq!(receive(&mut b.0, frames.len()), frames);
        // What one round left behind would be seen by the next.
        let frames = send_mixed(&mut a.1);
        assert_eq!(receive(&mut b.0, frames.len()), frames);
        assert_eq!(b.0.stats().unwrap().malformed, 0);
    });
}

#[test]
fn a_fault_in_front_of_a_long_frame_costs_neither() {
    if !can_run("a_fault_in_front_of_a_long_frame_costs_neither") {
        return;
    }
    jumbo("fault").inside(|| {
        let (mut a, mut b) = (port("va"), port("vb"));
        let frames = send_mixed(&mut a.1);
        set_admin_state(Link::by_name("vb").unwrap().index, AdminState::Down).unwrap();
        assert!(poll_rings(&[&b.0], 1000).contains(nix::poll::PollFlags::POLLERR));
        assert_eq!(receive(&mut b.0, frames.len()), frames);
        assert_eq!(b.0.take_fault(), Some(RingFault::Down));
        assert_eq!(b.0.take_fault(), None);
    });
}

#[test]
fn long_frames_beyond_the_sockets_room_count_as_truncated() {
    if !can_run("long_frames_beyond_the_sockets_room_count_as_truncated") {
        return;
    }
    jumbo("flood").inside(|| {
        let (mut a, mut b) = (port("va"), port("vb"));
        (0..70).for_each(|_| drop(send_mixed(&mut a.1)));
        let (mut whole, mut truncated) = (0, 0);
        while let Some(frame) = b.0.next() {
            whole += usize::from(frame.bytes.len() == 9000);
            truncated += usize::from(frame.is_truncated());
        }
        let drops = b.0.stats().unwrap().drops;
        println!("{whole} whole, {truncated} truncated, {drops} dropped");
        assert!(whole > 100 && truncated > 0, "{whole} {truncated}");
        let frames = send_mixed(&mut a.1);
        assert_eq!(receive(&mut b.0, frames.len()), frames, "in step again");
    });
}

#[test]
fn a_ring_survives_its_interface_going_down_and_up() {
    if !can_run("a_ring_survives_its_interface_going_down_and_up") {
        return;
    }
    let ns = veth("downup");
    ns.inside(|| {
        let (mut a, mut b) = (port("va"), port("vb"));
        let (ia, ib) = (Link::by_name("va").unwrap().index, Link::by_name("vb").unwrap().index);
        let f = frame(64, 1);
        let send = |tx: &mut TxQueue| {
            let mut batch = tx.batch();
            for _ in 0..3 {
                batch.push(VnetHdr::default(), [&f[..]]).unwrap();
            }
            batch.send()
        };
        set_admin_state(ib, AdminState::Down).unwrap();
        assert!(poll_rings(&[&b.0], 1000).contains(nix::poll::PollFlags::POLLERR));
        assert_eq!(b.0.take_fault(), Some(RingFault::Down));
        assert_eq!(b.0.take_fault(), None);
        set_admin_state(ia, AdminState::Down).unwrap();
        assert_eq!(send(&mut a.1), TxReport { down: 3, ..TxReport::default() });
        set_admin_state(ia, AdminState::Up).unwrap();
        set_admin_state(ib, AdminState::Up).unwrap();
        assert!(wait_for(SECOND, || Link::by_name("va").unwrap().running));
        assert_eq!(send(&mut a.1).sent, 3);
        assert_eq!(receive(&mut b.0, 3).len(), 3);
    });
}

#[test]
fn an_interface_deleted_under_traffic_is_survived() {
    if !can_run("an_interface_deleted_under_traffic_is_survived") {
        return;
    }
    let ns = veth("deleted");
    let name = ns.name().to_owned();
    ns.inside(move || {
        let (mut a, mut b) = (port("va"), port("vb"));
        let f = frame(64, 1);
        let mut killer = None;
        let mut got = 0;
        let gone = wait_for(10 * SECOND, || {
            let mut batch = a.1.batch();
            for _ in 0..64 {
                batch.push(VnetHdr::default(), [&f[..]]).unwrap();
            }
            let report = batch.send();
            assert_eq!(report.sent + report.queue_full + report.down + report.gone, 64, "{report:?}");
            while b.0.next().is_some() {
                got += 1;
            }
            if got > 1000 && killer.is_none() {
                let name = name.clone();
                killer = Some(std::thread::spawn(move || sh(&format!("ip -n {name} link del va"))));
            }
            a.1.is_gone() && b.0.is_gone() && report.gone == 64
        });
        killer.unwrap().join().unwrap();
        assert!(gone);
        assert_eq!(b.0.take_fault(), Some(RingFault::Gone));
        assert!(matches!(Link::by_name("va"), Err(shoal_link::Error::NoInterface { .. })));
    });
}

#[test]
fn facts_of_a_link_are_the_kernels() {
    if !can_run("facts_of_a_link_are_the_kernels") {
        return;
    }
    let ns = Namespace::new("facts").unwrap();
    ns.ip(
        "link add va address 02:11:22:33:44:55 mtu 1400 numrxqueues 3 numtxqueues 2 type veth peer name vb",
    );
    ns.inside(|| {
        let a = Link::by_name("va").unwrap();
        assert_eq!(a.mac, Some([2, 0x11, 0x22, 0x33, 0x44, 0x55]));
        assert_eq!((a.mtu, a.rx_queues, a.tx_queues), (1400, 3, 2));
        assert_eq!((a.admin, a.carrier, a.running), (AdminState::Down, false, false));
        assert_eq!(a.kind.as_deref(), Some("veth"));
        assert_eq!(Link::by_index(a.index).unwrap(), a);
        let long = "a-name-that-no-interface-can-have";
        for missing in ["nosuch", long, ""] {
            assert!(
                matches!(Link::by_name(missing), Err(shoal_link::Error::NoInterface { .. })),
                "{missing:?}"
            );
        }
    });
}

#[test]
fn a_watch_reports_every_change_in_order() {
    if !can_run("a_watch_reports_every_change_in_order") {
        return;
    }
    let ns = veth("watch");
    // Linux says a moment later that a link runs.
    assert!(wait_for(5 * SECOND, || ns.inside(|| Link::by_name("va").unwrap().running)));
    let mut watch = ns.inside(|| LinkWatch::open().unwrap());
    assert_eq!(watch.links().filter(|l| l.kind.as_deref() == Some("veth")).count(), 2);
    let a = watch.links().find(|l| l.name == "va").unwrap().clone();
    assert!(a.carrier && a.running);
    let mut changes = |action: &str| {
        ns.ip(action);
        let mut seen = Vec::new();
        wait_for(Duration::from_millis(300), || {
            while let Some(event) = watch.next_event().unwrap() {
                if event.link.index == a.index {
                    seen.push((event.change, event.link.carrier));
                }
            }
            false
        });
        seen
    };
    // Carrier is lost because the peer is shut, and found again.
    assert_eq!(changes("link set vb down"), [(LinkChange::Carrier, false)]);
    assert_eq!(changes("link set vb up"), [(LinkChange::Carrier, true)]);
    assert_eq!(changes("link set va mtu 1400"), [(LinkChange::Mtu, true)]);
    assert_eq!(changes("link set va address 02:00:00:00:00:99"), [(LinkChange::Mac, true)]);
    let down = changes("link set va down");
    assert_eq!(down[0].0, LinkChange::Admin(AdminState::Down));
    assert_eq!(changes("link set va name vc"), [(LinkChange::Renamed { from: "va".into() }, false)]);
    assert_eq!(changes("link del vc"), [(LinkChange::Deleted, false)]);
}

#[test]
fn a_watch_that_fell_behind_catches_up() {
    if !can_run("a_watch_that_fell_behind_catches_up") {
        return;
    }
    let ns = veth("behind");
    let mut watch = ns.inside(|| LinkWatch::open().unwrap());
    let batch = std::env::temp_dir().join(ns.name());
    let lines: Vec<_> = (0..2000).map(|i| format!("link set va mtu {}\n", 1000 + i % 400)).collect();
    std::fs::write(
        &batch,
        lines.concat() + "link set vb down\nlink add late type veth peer name etal\nlink del va\n",
    )
    .unwrap();
    ns.ip(&format!("-batch {}", batch.display()));
    std::fs::remove_file(batch).unwrap();
    let mut events = 0;
    let settled = wait_for(5 * SECOND, || {
        while watch.next_event().unwrap().is_some() {
            events += 1;
        }
        let names: Vec<_> = watch.links().map(|l| l.name.as_str()).collect();
        names.contains(&"late") && !names.contains(&"va") && !names.contains(&"vb")
    });
    assert!(settled, "{:?}", watch.links().collect::<Vec<_>>());
    assert!(events < 2000, "nothing was lost, so nothing was proved");
}

#[test]
fn a_change_while_a_watch_catches_up_is_not_lost() {
    if !can_run("a_change_while_a_watch_catches_up_is_not_lost") {
        return;
    }
    let ns = veth("while");
    let mut watch = ns.inside(|| LinkWatch::open().unwrap());
    let batch = std::env::temp_dir().join(ns.name());
    let lines: Vec<_> = (0..2000).map(|i| format!("link set va mtu {}\n", 1000 + i % 400)).collect();
    std::fs::write(&batch, lines.concat()).unwrap();
    ns.ip(&format!("-batch {}", batch.display()));
    std::fs::remove_file(batch).unwrap();
    // The kernel announces nothing more until all of what waits has been read, some 90 changes: most of it has been then.
    let mut events = 0;
    let mut later = false;
    wait_for(SECOND, || {
        while watch.next_event().unwrap().is_some() {
            events += 1;
            if events == 80 {
                ns.ip("link set vb mtu 1234");
                later = true;
            }
        }
        false
    });
    assert!(later && events < 2000, "{events} events: nothing was lost, so nothing was proved");
    let mtu = watch.links().find(|l| l.name == "vb").unwrap().mtu;
    assert_eq!(mtu, 1234);
}
