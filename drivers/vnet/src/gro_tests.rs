//! Merging and cutting undo each other; what is unusual goes through untouched.

use std::collections::BTreeMap;

use proptest::prelude::*;
use shoal_buffer::{Cache, Flags, Frame, Pages, Pool, PoolConfig};

use crate::*;

fn pool() -> std::sync::Arc<Pool> {
    Pool::new(PoolConfig { name: "test".into(), buffers: 4096, most: 4096, pages: Pages::Small }).unwrap()
}

/// A TCP segment of a flow with right checksums.
#[derive(Clone, Debug)]
struct Tcp {
    ip6: bool,
    vlan: bool,
    port: u16,
    seq: u32,
    id: u16,
    flags: u8,
    options: Vec<u8>,
    payload: Vec<u8>,
}

impl Default for Tcp {
    fn default() -> Self {
        let options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let payload = vec![7; 100];
        Tcp {
            ip6: false,
            vlan: false,
            port: 1000,
            seq: u32::MAX - 150,
            id: 65_534,
            flags: 0x10,
            options,
            payload,
        }
    }
}

impl Tcp {
    fn net(&self) -> usize {
        if self.vlan { 18 } else { 14 }
    }

    fn transport(&self) -> usize {
        self.net() + if self.ip6 { 40 } else { 20 }
    }

    fn build(&self) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if self.vlan {
            frame.extend([0x81, 0, 0, 7]);
        }
        frame.extend(if self.ip6 { [0x86, 0xdd] } else { [8, 0] });
        let l4 = (20 + self.options.len() + self.payload.len()) as u16;
        let mut sum = Sum::default();
        sum.add_u16(6);
        sum.add_u16(l4);
        let mut ip = vec![];
        if self.ip6 {
            ip.extend([0x60, 0, 0, 0]);
            ip.extend(l4.to_be_bytes());
            ip.extend([6, 64]);
            ip.extend([0x20; 32]);
            sum.add(&ip[8..]);
        } else {
            ip.extend([0x45, 0]);
            ip.extend((l4 + 20).to_be_bytes());
            ip.extend(self.id.to_be_bytes());
            ip.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let mut header = Sum::default();
            header.add(&ip);
            ip[10..12].copy_from_slice(&header.finish().to_be_bytes());
            sum.add(&ip[12..]);
        }
        frame.extend(ip);
        let mut tcp = vec![];
        tcp.extend(self.port.to_be_bytes());
        tcp.extend([0, 80]);
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend([0, 0, 0, 9, ((20 + self.options.len()) / 4 * 16) as u8, self.flags, 1, 2, 0, 0, 0, 0]);
        tcp.extend(&self.options);
        tcp.extend(&self.payload);
        sum.add(&tcp);
        tcp[16..18].copy_from_slice(&sum.finish_transport().to_be_bytes());
        frame.extend(tcp);
        frame
    }

    fn next(&self, payload: Vec<u8>) -> Tcp {
        let seq = self.seq.wrapping_add(self.payload.len() as u32);
        Tcp { seq, id: self.id.wrapping_add(1), payload, ..self.clone() }
    }
}

fn cut_all(frame: &mut Frame, cache: &mut Cache) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let memory = cache.memory();
    for i in 0..frame.len() {
        let mut pkt = frame.packet(memory, i).unwrap();
        if !pkt.flags().has(Flags::GSO) {
            complete_checksum(&mut pkt).unwrap();
            out.push(pkt.to_vec());
            continue;
        }
        let list = SegmentList::of(&pkt).unwrap();
        let net = ethernet_payload(pkt.data()).unwrap();
        let offload = Offload::load(&pkt).unwrap();
        let front = pkt.current();
        let mut bytes = Segments::new(list.as_slice(), &offload, net).unwrap().unwrap();
        let mut store = vec![0; bytes.max_len()];
        let mut packets = Segments::new(list.as_slice(), &offload, net).unwrap().unwrap();
        while let Some(piece) = packets.next_packet(cache, front) {
            let mut piece = piece.unwrap();
            let made = cache.packet(&mut piece);
            assert_eq!(made.current(), front);
            let len = bytes.next_into(&mut store).unwrap().unwrap();
            assert!(made.to_vec() == store[..len], "as packets and as bytes");
            out.push(made.to_vec());
            cache.free(piece);
        }
        assert!(bytes.next_into(&mut store).is_none());
    }
    cache.free_frame(frame);
    out
}

fn fill_frame(cache: &mut Cache, packets: &[Vec<u8>]) -> Frame {
    let mut frame = Frame::new();
    for packet in packets {
        frame.push(fill(cache, packet).unwrap()).unwrap();
    }
    frame
}

/// What comes out, and how many packets were merged.
fn merge(packets: &[Vec<u8>], look: impl FnOnce(&mut Frame, &mut Cache)) -> (Vec<Vec<u8>>, usize) {
    let pool = pool();
    let mut cache = pool.cache();
    let (mut frame, mut spare) = (fill_frame(&mut cache, packets), Frame::new());
    let merged = coalesce(&mut frame, &mut spare, &mut cache, Front::Ethernet);
    assert!(spare.is_empty());
    look(&mut frame, &mut cache);
    let out = cut_all(&mut frame, &mut cache);
    drop(cache);
    assert_eq!(pool.stats().used, 0);
    (out, merged)
}

/// By flow: what matters is the order within each.
fn by_port(packets: &[Vec<u8>]) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut flows = BTreeMap::<_, Vec<_>>::new();
    for packet in packets {
        let net = ethernet_payload(packet).unwrap();
        let ports = net + if packet[net] >> 4 == 4 { 20 } else { 40 };
        flows.entry(packet[ports..ports + 2].to_vec()).or_default().push(packet.clone());
    }
    flows
}

#[test]
fn segments_become_a_superframe_and_are_the_same_again_when_it_is_cut() {
    for (ip6, vlan) in [(false, false), (true, false), (false, true), (true, true)] {
        for size in [1usize, 99, 1448, 8948] {
            let payload =
                |n: u8, len| (0..len).map(|i| n.wrapping_mul(31).wrapping_add(i as u8)).collect::<Vec<u8>>();
            let mut tcp = Tcp { ip6, vlan, payload: payload(0, size), ..Tcp::default() };
            let mut packets = vec![tcp.build()];
            for n in 1..6 {
                tcp = tcp.next(payload(n, if n == 5 { size.div_ceil(2) } else { size }));
                tcp.flags = if n == 5 { 0x18 } else { 0x10 };
                packets.push(tcp.build());
            }
            let (out, merged) = merge(&packets, |frame, cache| {
                let memory = cache.memory();
                let pkt = frame.packet(memory, 0).unwrap();
                let offload = Offload::load(&pkt).unwrap();
                let gso = offload.gso.unwrap();
                assert_eq!((usize::from(gso.size.get()), gso.ecn), (size, false));
                // The kernel believes no more than this.
                let bytes = pkt.to_vec();
                assert_eq!(VnetHdr::from(offload).validate(&[&bytes[..]]), Ok(offload));
            });
            assert_eq!(merged, 5, "ip6 {ip6}, vlan {vlan}, {size} bytes");
            assert!(out == packets, "ip6 {ip6}, vlan {vlan}, {size} bytes");
        }
    }
}

#[test]
fn what_does_not_follow_is_left_alone() {
    type Bend = fn(&mut Vec<u8>, &Tcp);
    let bends: [(&str, Bend); 12] = [
        ("another sequence number", |p, t| p[t.transport() + 7] ^= 1),
        ("FIN", |p, t| p[t.transport() + 13] |= 1),
        ("SYN", |p, t| p[t.transport() + 13] |= 2),
        ("ECE", |p, t| p[t.transport() + 13] |= 0x40),
        ("CWR", |p, t| p[t.transport() + 13] |= 0x80),
        ("a wrong checksum", |p, t| p[t.transport() + 16] ^= 1),
        ("another window", |p, t| p[t.transport() + 14] ^= 1),
        ("another option", |p, t| p[t.transport() + 25] ^= 1),
        ("another class", |p, t| p[t.net() + 1] ^= 0x10),
        ("padding behind it", |p, _| p.push(0)),
        ("a byte too few", |p, _| p.truncate(p.len() - 1)),
        ("another sender on the link", |p, _| p[7] ^= 1),
    ];
    for ip6 in [false, true] {
        let first = Tcp { ip6, ..Tcp::default() };
        let second = first.next(vec![8; 100]);
        for (what, bend) in bends {
            let mut packets = vec![first.build(), second.build()];
            bend(&mut packets[1], &second);
            assert_eq!(merge(&packets, |_, _| ()), (packets.clone(), 0), "{what}, ip6 {ip6}");
        }
        let (_, merged) = merge(&[first.build(), second.build()], |_, _| ());
        assert_eq!(merged, 1);
    }
}

#[test]
fn what_counts_up_wrongly_in_ip4_is_left_alone() {
    let first = Tcp::default();
    for bend in [0u16, 2, 65_535] {
        let second = Tcp { id: first.id.wrapping_add(bend), ..first.next(vec![1; 100]) };
        assert_eq!(merge(&[first.build(), second.build()], |_, _| ()).1, 0);
    }
    let mut fragment = first.next(vec![1; 100]).build();
    fragment[20] = 0x20;
    let packets = vec![first.build(), fragment, first.next(vec![1; 100]).build()];
    // A fragment may be of the same flow: nothing overtakes it.
    assert_eq!(merge(&packets, |_, _| ()), (packets.clone(), 0));
}

#[test]
fn a_push_or_a_short_segment_ends_a_superframe() {
    // Pushed at once; then one that begins, one that is short and ends; one that begins, one that is longer.
    let mut tcp = Tcp { flags: 0x18, ..Tcp::default() };
    let mut packets = vec![tcp.build()];
    for (len, fill) in [(100, 1), (50, 2), (100, 3), (101, 4)] {
        tcp = Tcp { flags: 0x10, ..tcp.next(vec![fill; len]) };
        packets.push(tcp.build());
    }
    let (out, merged) = merge(&packets, |frame, _| assert_eq!(frame.len(), 4));
    assert_eq!((out == packets, merged), (true, 1));
}

#[test]
fn a_superframe_stays_as_long_as_a_packet_can_be() {
    for ip6 in [false, true] {
        let mut tcp = Tcp { ip6, payload: vec![0; 8000], ..Tcp::default() };
        let mut packets = vec![tcp.build()];
        for n in 1..20 {
            tcp = tcp.next(vec![n; 8000]);
            packets.push(tcp.build());
        }
        let (out, merged) = merge(&packets, |frame, cache| {
            let memory = cache.memory();
            assert!((0..frame.len()).all(|i| frame.packet(memory, i).unwrap().len() <= 65_535 + 14));
        });
        assert!(out == packets);
        assert_eq!(merged, 17, "eight, eight, four");
    }
}

proptest! {
    /// Flows in any order, some bent: each flow's bytes come out in their order.
    #[test]
    fn merging_and_cutting_is_identity(
        ip6: bool,
        sizes in proptest::collection::vec((0u16..12, 1usize..4, 0u8..12, any::<u8>()), 1..80),
        bends in proptest::collection::vec((0usize..80, 0usize..120, any::<u8>()), 0..4),
    ) {
        let mut flows: BTreeMap<u16, Tcp> = BTreeMap::new();
        let mut packets = Vec::new();
        for (port, size, odd, fill) in sizes {
            let payload = vec![fill; size * 700];
            let mut tcp = match flows.get(&port) {
                Some(last) => last.next(payload),
                None => Tcp { ip6, port, payload, ..Tcp::default() },
            };
            tcp.flags = match odd { 0 => 0x18, 1 => 0x11, 2 => 0x14, _ => 0x10 };
            packets.push(tcp.build());
            flows.insert(port, tcp);
        }
        for (which, at, value) in bends {
            let count = packets.len();
            let packet = &mut packets[which % count];
            let at = 14 + at % (packet.len() - 14);
            packet[at] = value;
        }
        let (out, _) = merge(&packets, |_, _| ());
        let sorted = |mut all: Vec<Vec<u8>>| { all.sort(); all };
        prop_assert!(sorted(out.clone()) == sorted(packets.clone()), "the same packets");
        prop_assert!(by_port_lenient(&out) == by_port_lenient(&packets), "in the same order");
    }

    /// Any bytes, any flags, any cuts into buffers: nothing is lost but headers of what is merged, and nothing panics.
    #[test]
    fn hostile_packets_are_never_lost(
        packets in proptest::collection::vec((0usize..4, 0usize..200, any::<u8>(), 0u32..16, 1usize..120), 0..40),
        ip: bool,
    ) {
        let pool = pool();
        let mut cache = pool.cache();
        let (mut frame, mut spare) = (Frame::new(), Frame::new());
        let (mut tcp, mut payload) = (Tcp::default(), 0);
        for (bent, at, value, flags, cut) in packets {
            tcp = tcp.next(vec![bent as u8; 100]);
            let mut bytes = tcp.build();
            if bent == 0 {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            let bytes = &bytes[if ip { 14 } else { 0 }..];
            let (head, rest) = bytes.split_at(cut.min(bytes.len()));
            let mut buffer = fill(&mut cache, head).unwrap();
            if let Some(rest) = (!rest.is_empty()).then(|| fill(&mut cache, rest).unwrap()) {
                cache.packet(&mut buffer).append_segment(rest).unwrap();
            }
            let mut pkt = cache.packet(&mut buffer);
            pkt.meta_mut().flags = Flags(flags << 1);
            payload += pkt.len();
            frame.push(buffer).unwrap();
        }
        let before = frame.len();
        let front = if ip { Front::Ip } else { Front::Ethernet };
        let merged = coalesce(&mut frame, &mut spare, &mut cache, front);
        prop_assert_eq!(frame.len() + merged, before);
        let memory = cache.memory();
        let left: usize = (0..frame.len()).map(|i| frame.packet(memory, i).unwrap().len()).sum();
        let header = 52 + if ip { 0 } else { 14 };
        prop_assert_eq!(left + merged * header, payload);
        cache.free_frame(&mut frame);
        drop(cache);
        prop_assert_eq!(pool.stats().used, 0);
    }

    /// Any superframe: its pieces, put together again, are its bytes, and each is a right packet.
    #[test]
    fn pieces_put_together_are_the_superframe(ip6: bool, vlan: bool, flags: u8, len in 1usize..60_000, size in 1u16..9000, seed: u8, front in -60i16..40) {
        let count = len.div_ceil(usize::from(size));
        prop_assume!(count <= MOST_PIECES);
        let payload: Vec<u8> = (0..len).map(|i| (i as u8).wrapping_mul(seed | 1)).collect();
        let tcp = Tcp { ip6, vlan, flags, payload: payload.clone(), ..Tcp::default() };
        let bytes = tcp.build();
        let pool = pool();
        let mut cache = pool.cache();
        let segs: Vec<&[u8]> = bytes.chunks(2048).collect();
        let transport = tcp.transport();
        let kind = if ip6 { GsoKind::Tcp6 } else { GsoKind::Tcp4 };
        let gso = Gso { kind, size: size.try_into().unwrap(), header_len: (transport + 32) as u16, ecn: false };
        let offload = Offload { csum: Csum::Partial { start: transport as u16, offset: 16 }, gso: Some(gso) };
        let mut pieces = Segments::new(&segs, &offload, tcp.net()).unwrap().unwrap();
        prop_assert_eq!(pieces.count(), count);
        let mut together = Vec::new();
        for n in 0.. {
            let Some(piece) = pieces.next_packet(&mut cache, front) else { break };
            let mut piece = piece.unwrap();
            let packet = cache.packet(&mut piece).to_vec();
            cache.free(piece);
            let mine = packet[transport + 32..].to_vec();
            let keep = if n == 0 { 0xff } else { 0x7f } & if n + 1 == count { 0xff } else { !0x09 };
            let expected = Tcp {
                seq: tcp.seq.wrapping_add(together.len() as u32),
                id: tcp.id.wrapping_add(n as u16),
                flags: flags & keep,
                payload: mine.clone(),
                ..tcp.clone()
            };
            prop_assert!(packet == expected.build(), "piece {} of {}", n, count);
            together.extend(mine);
        }
        prop_assert!(together == payload);
        drop(cache);
        prop_assert_eq!(pool.stats().used, 0);
    }
}

/// As [`by_port`], for packets that are bent: those without a known flow are left out.
fn by_port_lenient(packets: &[Vec<u8>]) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let whole = |p: &&Vec<u8>| p.len() > 60 && (p[14] == 0x45 && p[23] == 6 || p[14] >> 4 == 6 && p[20] == 6);
    by_port(&packets.iter().filter(whole).cloned().collect::<Vec<_>>())
}

#[test]
fn exhaustion_while_cutting_keeps_nothing() {
    let pool =
        Pool::new(PoolConfig { name: "small".into(), buffers: 3, most: 3, pages: Pages::Small }).unwrap();
    let mut cache = pool.cache();
    let tcp = Tcp { payload: vec![1; 20_000], ..Tcp::default() };
    let (bytes, transport) = (tcp.build(), tcp.transport());
    let gso = Gso {
        kind: GsoKind::Tcp4,
        size: 9000.try_into().unwrap(),
        header_len: (transport + 32) as u16,
        ecn: false,
    };
    let offload = Offload { csum: Csum::Partial { start: transport as u16, offset: 16 }, gso: Some(gso) };
    let mut pieces = Segments::new(&[&bytes], &offload, 14).unwrap().map(|p| p.count());
    assert_eq!(pieces.take(), Some(3));
    let segs: [&[u8]; 1] = [&bytes];
    let mut pieces = Segments::new(&segs, &offload, 14).unwrap().unwrap();
    assert_eq!(pieces.next_packet(&mut cache, 0).unwrap().err(), Some(PieceError::NoBuffer));
    drop(cache);
    assert_eq!(pool.stats().used, 0);
}
