//! Full reassembly through the router: fragments in, whole packets out, both families. RFC 791, 3.2; RFC 8200, 4.5.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::time::Duration;

use common::{BOTH, TestFamily, errors, held, ip4, ip6, on, set, two_hosts};
use shoal_reassembly::{Families, Kind, Reassembly, ReassemblyError, Version};
use shoal_testkit::{Port, Rng, Router};
use shoal_wire::packet::Fragment;
use shoal_wire::{Icmp4Type, Icmp6Type, IpProtocol};

const UDP: IpProtocol = IpProtocol::UDP;

/// A whole UDP packet to the far host, and its fragments.
fn datagram(over: TestFamily, a: &Port, id: u16, len: usize, size: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let whole = over.through(a).udp(1000, 2000).payload(&Rng::new(u64::from(id) + 1).bytes(len)).build();
    let pieces = over.cut(&over.through(a), id, UDP, &over.payload(&whole), size);
    (over.payload(&whole), pieces)
}

/// What comes out of `b` is this datagram, whole.
fn assert_whole(over: TestFamily, out: &[u8], payload: &[u8]) {
    assert_eq!(over.payload(out), payload, "{over:?}");
    if over == TestFamily::Ip4 {
        let ip = ip4(out);
        assert!(!ip.is_fragment() && ip.checksum_ok());
        assert_eq!((usize::from(ip.total_length()), ip.ttl()), (20 + payload.len(), 63));
    } else {
        let ip = ip6(out);
        assert_eq!((ip.protocol(), usize::from(ip.payload_length())), (UDP, payload.len()));
    }
}

fn assert_dropped(
    router: &mut Router,
    over: TestFamily,
    a: &Port,
    b: &Port,
    frames: &[Vec<u8>],
    why: &str,
    n: u64,
) {
    let node = over.node("full-reassembly-feature");
    let before = router.error(&node, why);
    router.send_all(a, frames);
    assert_eq!(router.error(&node, why) - before, n, "{over:?} {why}: {:?}", router.errors());
    assert!(b.received().is_empty(), "{over:?} {why}");
}

/// RFC 8200, 4.5: a first fragment has all headers.
#[test]
fn a_first_fragment_without_its_upper_layer_is_complained_about() {
    let (mut router, a, _) = two_hosts();
    on(&router, &a);
    let over = TestFamily::Ip6;
    // A header of 72 bytes, of which 16 are there.
    let options = [17, 8, 1, 4, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0];
    let protocol = IpProtocol::IP6_DESTINATION_OPTIONS;
    router.send(&a, over.piece(over.to_us(&a), 1, protocol, 0, &options, true));
    let told = common::errors(over, &a);
    assert_eq!((told.len(), told[0][0], told[0][1], &told[0][4..8]), (1, 4, 3, &[0; 4][..]));
    assert_eq!(router.error(&over.node("full-reassembly-feature"), "missing-upper layer drops"), 1);
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn a_fragmented_echo_to_the_router_is_answered() {
    for over in BOTH {
        let (mut router, a, _) = two_hosts();
        let whole = over.echo(over.to_us(&a)).payload_len(1200).build();
        let pieces = over.cut(&over.to_us(&a), 5, over.icmp(), &over.payload(&whole), 400);
        assert_eq!(pieces.len(), 4);
        router.send_all(&a, &pieces[..3]);
        assert!(a.received().is_empty());
        assert_eq!(held(&router, over), 1);
        router.send(&a, &pieces[3]);
        let reply = over.payload(&a.received_one());
        assert_eq!(reply.len(), 1208);
        let kind = if over == TestFamily::Ip4 { Icmp4Type::ECHO_REPLY.0 } else { Icmp6Type::ECHO_REPLY.0 };
        assert_eq!(reply[0], kind, "{over:?}");
        assert_eq!(reply[8..], over.payload(&whole)[8..]);
        assert_eq!(held(&router, over), 0);
        assert_eq!(router.error(&over.node("local-full-reassembly"), "successful reassemblies"), 1);
        assert_eq!(router.error(&over.node("local-full-reassembly"), "fragments reassembled"), 4);
    }
}

#[test]
fn a_large_fragmented_echo_is_answered_in_fragments() {
    for over in BOTH {
        let (mut router, a, _) = two_hosts();
        router.interfaces().set_mtu(a.index(), shoal_interface::MtuLayer::L3, 1500).unwrap();
        let whole = over.echo(over.to_us(&a)).payload_len(4000).build();
        router.send_all(&a, over.cut(&over.to_us(&a), 5, over.icmp(), &over.payload(&whole), 1448));
        let got = a.received();
        assert_eq!(got.len(), 3, "{over:?}: {:?}", router.errors());
        assert!(got.iter().all(|f| f.len() <= 1514));
        // What comes back is put together by the same rules, on the way to the other host.
        on(&router, &a);
        let back: Vec<Vec<u8>> = got.iter().map(|frame| turned(over, frame, &a)).collect();
        let far = router.get::<Reassembly>().look(over.version(), Kind::Full, true).unwrap();
        assert_eq!(far.reassemblies, 0);
        router.send_all(&a, back);
        assert_eq!(router.error(&over.node("full-reassembly-feature"), "successful reassemblies"), 1);
        a.received();
    }
}

/// The frame as if a host had sent it here.
fn turned(over: TestFamily, frame: &[u8], a: &Port) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let (dst, src) = frame[..12].split_at_mut(6);
    dst.swap_with_slice(src);
    assert_eq!(dst, a.mac().0);
    let (at, len) = if over == TestFamily::Ip4 { (26, 4) } else { (22, 16) };
    let (src, dst) = frame[at..at + 2 * len].split_at_mut(len);
    src.swap_with_slice(dst);
    frame
}

#[test]
fn fragments_in_any_order_leave_as_one_packet_where_it_is_on() {
    let mut rng = Rng::new(Rng::seed(3));
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        on(&router, &a);
        for id in 0..60 {
            let size = 8 * (2 + rng.below(180));
            // More than one piece.
            let len = size + rng.below(7000.min(size * 60));
            let (payload, mut pieces) = datagram(over, &a, id, len, size);
            for at in (1..pieces.len()).rev() {
                pieces.swap(at, rng.below(at + 1));
            }
            if rng.one_in(2) {
                router.send_all(&a, &pieces);
            } else {
                for piece in &pieces {
                    router.send(&a, piece);
                }
            }
            assert_whole(over, &b.received_one(), &payload);
            assert_eq!(held(&router, over), 0);
        }
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn fragments_pass_as_they_are_where_it_is_off() {
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        let (_, pieces) = datagram(over, &a, 1, 2000, 800);
        router.send_all(&a, &pieces);
        assert_eq!(b.received().len(), 3);
        on(&router, &a);
        router.send_all(&a, &pieces);
        assert_eq!(b.received().len(), 1);
        router.get::<Reassembly>().set_interface(a.index(), Families::NONE).unwrap();
        router.send_all(&a, &pieces);
        assert_eq!(b.received().len(), 3);
        let one = if over == TestFamily::Ip4 {
            Families { ip4: true, ip6: false }
        } else {
            Families { ip4: false, ip6: true }
        };
        router.get::<Reassembly>().set_interface(a.index(), one).unwrap();
        router.send_all(&a, &pieces);
        assert_eq!(b.received().len(), 1, "one family alone");
    }
}

#[test]
fn packets_that_are_no_fragments_pass_untouched() {
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        let packet = over.through(&a).udp(1, 2).payload_len(100).build();
        router.send(&a, &packet);
        let plain = b.received_one();
        on(&router, &a);
        router.send(&a, &packet);
        assert_eq!(b.received_one(), plain);
    }
    // RFC 6946: one fragment that is all of it has nothing to wait for.
    let (mut router, a, b) = two_hosts();
    on(&router, &a);
    let atomic = TestFamily::Ip6.through(&a).udp(1, 2).payload_len(100).fragment(0, Fragment::Last).build();
    router.send(&a, &atomic);
    assert_eq!(b.received_one().len(), atomic.len());
    let echo =
        TestFamily::Ip6.echo(TestFamily::Ip6.to_us(&a)).payload_len(10).fragment(0, Fragment::Last).build();
    router.send(&a, echo);
    assert_eq!(a.received().len(), 1);
}

#[test]
fn the_longest_datagram_is_put_together_and_a_longer_one_is_not() {
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        on(&router, &a);
        router.interfaces().set_mtu(b.index(), shoal_interface::MtuLayer::L3, 65_535).unwrap();
        let most = if over == TestFamily::Ip4 { 65_535 - 20 } else { 65_535 };
        let bytes = vec![7; most];
        let pieces = over.cut(&over.through(&a), 1, UDP, &bytes, 1448);
        router.send_all(&a, &pieces);
        let out = b.received();
        // IPv6 counts its payload only, so that this one is longer than any MTU says.
        if over == TestFamily::Ip4 {
            assert_eq!(over.payload(&out[0]), bytes);
        }
        assert_eq!(router.error(&over.node("full-reassembly-feature"), "successful reassemblies"), 1);
        a.received();
        // One byte more: the ping of death.
        let at = most / 8 * 8;
        let last = over.piece(over.through(&a), 2, UDP, at, &[1; 9][..=most - at], false);
        router.send(&a, &last);
        let node = over.node("full-reassembly-feature");
        let why = if over == TestFamily::Ip4 { "reass_malformed_packet" } else { "reass_invalid_frag_size" };
        assert_eq!(router.error(&node, why), 1, "{:?}", router.errors());
        assert_eq!(held(&router, over), 0);
        if over == TestFamily::Ip6 {
            // RFC 8200, 4.5: parameter problem, pointer to the fragment offset.
            let told = over.payload(&a.received_one());
            assert_eq!((told[0], told[1], &told[4..8]), (4, 0, &[0, 0, 0, 42][..]));
        }
    }
}

#[test]
fn what_cannot_be_a_fragment_is_dropped() {
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        on(&router, &a);
        let length =
            if over == TestFamily::Ip4 { "reass_malformed_packet" } else { "reass_invalid_frag_len" };
        if over == TestFamily::Ip6 {
            let odd = over.piece(over.through(&a), 1, UDP, 0, &[1; 13], true);
            assert_dropped(&mut router, over, &a, &b, &[odd], length, 1);
            // RFC 8200, 4.5: parameter problem, pointer to the payload length.
            let told = over.payload(&a.received_one());
            assert_eq!((told[0], told[1], &told[4..8]), (4, 0, &[0, 0, 0, 4][..]));
            // As in VPP, what the link has behind the payload counts too.
            let mut trailing = over.piece(over.through(&a), 1, UDP, 0, &[1; 16], true);
            trailing.push(0);
            assert_dropped(&mut router, over, &a, &b, &[trailing], length, 1);
            assert_eq!(over.payload(&a.received_one())[..2], [4, 0]);
        }
        let empty = over.piece(over.through(&a), 1, UDP, 800, &[], true);
        assert_dropped(&mut router, over, &a, &b, &[empty], length, 1);
        let empty = over.piece(over.through(&a), 1, UDP, 800, &[], false);
        assert_dropped(&mut router, over, &a, &b, &[empty], length, 1);
        assert_eq!(held(&router, over), 0);
    }
}

#[test]
fn duplicates_are_passed_over_and_overlaps_of_ip6_cost_the_datagram_rfc_5722() {
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        on(&router, &a);
        let (payload, pieces) = datagram(over, &a, 1, 2000, 800);
        let twice = [&pieces[0], &pieces[0], &pieces[1], &pieces[0], &pieces[2]];
        router.send_all(&a, twice);
        assert_whole(over, &b.received_one(), &payload);
        assert_eq!(router.error(&over.node("full-reassembly-feature"), "duplicate fragments"), 2);
        if over == TestFamily::Ip4 {
            continue;
        }
        // The same place with other bytes; over the end of one; inside; around; another end.
        let with = |id: u16, at: usize, len: usize, more: bool| {
            over.piece(over.through(&a), id, UDP, at, &vec![0xee; len], more)
        };
        let shapes = [(0, 800, true), (400, 800, true), (80, 16, true), (0, 1608, true), (1600, 100, false)];
        for (n, (at, len, more)) in shapes.into_iter().enumerate() {
            let id = 10 + n as u16;
            let (_, pieces) = datagram(over, &a, id, 2000, 800);
            let frames = [pieces[0].clone(), pieces[2].clone(), with(id, at, len, more), pieces[1].clone()];
            assert_dropped(&mut router, over, &a, &b, &frames, "overlapping fragments", 1);
            assert_eq!(
                router.error(
                    &over.node("full-reassembly-feature"),
                    "fragments of a datagram that was given up"
                ),
                3 * (1 + n as u64)
            );
        }
        // They are remembered until their time is over, so that the rest is dropped, too.
        assert_eq!(held(&router, over), shapes.len());
        router.advance(Duration::from_secs(62));
        assert_eq!(held(&router, over), 0);
        assert!(errors(over, &a).is_empty(), "RFC 5722: silently");
    }
}

#[test]
fn overlaps_of_ip4_are_trimmed_and_what_came_first_stays_rfc_791() {
    let over = TestFamily::Ip4;
    let (mut router, a, b) = two_hosts();
    on(&router, &a);
    // Inside of one; over the end of one; over the start of one; around one; in no unit of 8 bytes.
    let shapes: [&[(usize, usize)]; 6] = [
        &[(0, 800), (80, 16), (800, 800), (1600, 408)],
        &[(0, 800), (400, 800), (1200, 400), (1600, 408)],
        &[(0, 800), (1200, 400), (800, 800), (1600, 408)],
        &[(0, 80), (800, 80), (400, 1200), (80, 720), (1600, 408)],
        // All of it is in two others.
        &[(0, 808), (808, 800), (400, 800), (1608, 400)],
        &[(0, 21), (16, 800), (816, 1187), (2000, 8)],
    ];
    for (id, shape) in shapes.into_iter().enumerate() {
        let id = id as u16;
        let (payload, _) = datagram(over, &a, id, 2000, 800);
        for (at, len) in shape {
            let (end, more) = ((at + len).min(payload.len()), at + len < payload.len());
            router.send(&a, over.piece(over.through(&a), id, UDP, *at, &payload[*at..end], more));
        }
        assert_whole(over, &b.received_one(), &payload);
        assert_eq!((held(&router, over), router.buffers_in_use()), (0, 0), "{shape:?}");
    }
}

#[test]
fn when_time_is_over_the_sender_is_told_if_the_first_fragment_came() {
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        on(&router, &a);
        set(&router, over, Kind::Full, |s| (s.timeout_ms, s.expire_walk_interval_ms) = (30_000, 100));
        let (payload, pieces) = datagram(over, &a, 1, 2000, 800);
        router.send_all(&a, &pieces[..2]);
        let (_, others) = datagram(over, &a, 2, 2000, 800);
        router.send_all(&a, &others[1..]);
        assert_eq!(held(&router, over), 2);
        router.advance(Duration::from_millis(29_500));
        assert_eq!((held(&router, over), errors(over, &a).len()), (2, 0));
        router.advance(Duration::from_millis(1_700));
        assert_eq!(held(&router, over), 0);
        let told = errors(over, &a);
        // RFC 1122, 3.3.2 is for the destination, which a router on the way is not.
        let one = u64::from(over == TestFamily::Ip6);
        assert_eq!(told.len() as u64, one);
        if let Some(told) = told.first() {
            assert_eq!((told[0], told[1]), (3, 1));
            assert_eq!(told[8 + over.header() + 8..][..8], payload[..8]);
        }
        let node = over.node("full-reassembly-expired");
        assert_eq!(router.error(&node, "fragments dropped due to reassembly timeout"), 4 - one);
        assert_eq!(router.error(&node, "reassembly timeouts reported to senders"), one);
        // What comes later starts a new datagram.
        router.send(&a, &pieces[2]);
        assert_eq!(held(&router, over), 1);
        router.advance(Duration::from_millis(31_700));
        assert!(errors(over, &a).is_empty());
        b.received();
    }
}

#[test]
fn a_timeout_of_fragments_for_us_is_told_from_the_address_they_were_sent_to() {
    for over in BOTH {
        let (mut router, a, _) = two_hosts();
        let whole = over.echo(over.from_to(&a, 2, 1, 1)).payload_len(1000).build();
        let pieces = over.cut(&over.from_to(&a, 2, 1, 1), 9, over.icmp(), &over.payload(&whole), 400);
        router.send(&a, &pieces[0]);
        router.advance(Duration::from_secs(62));
        let frames = a.received();
        let told = frames
            .iter()
            .find(|f| over.payload(f)[0] == if over == TestFamily::Ip4 { 11 } else { 3 })
            .unwrap();
        if over == TestFamily::Ip6 {
            assert_eq!(ip6(told).src(), "2001:db8:1::1".parse::<std::net::Ipv6Addr>().unwrap());
        }
    }
}

#[test]
fn a_flood_holds_a_quarter_of_the_buffers_at_most_and_others_get_through() {
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        on(&router, &a);
        set(&router, over, Kind::Full, |s| s.max_reassemblies = 65_536);
        for burst in 0..40u16 {
            // Never whole: only first fragments.
            let frames: Vec<_> = (0..200)
                .map(|n| over.piece(over.through(&a), burst * 200 + n, UDP, 0, &[1; 64], true))
                .collect();
            router.send_all(&a, frames);
            assert!(router.buffers_in_use() <= 1024, "{}", router.buffers_in_use());
        }
        let look = router.get::<Reassembly>().look(over.version(), Kind::Full, true).unwrap();
        assert_eq!((look.buffers, look.most_buffers, look.reassemblies), (1024, 1024, 1024));
        assert_eq!(look.datagrams.len(), 256, "a list is no longer than anybody reads");
        let why = "drops because fragments hold too many buffers";
        assert_eq!(router.error(&over.node("full-reassembly-feature"), why), 8000 - 1024);
        let (payload, pieces) = datagram(over, &a, 60_000, 3000, 800);
        router.send_all(&a, pieces);
        assert_whole(over, &b.received_one(), &payload);
        router.advance(Duration::from_secs(62));
        assert_eq!((held(&router, over), router.buffers_in_use()), (0, 0));
        a.received();
    }
}

#[test]
fn datagrams_and_their_fragments_are_limited() {
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        on(&router, &a);
        set(&router, over, Kind::Full, |s| (s.max_reassemblies, s.max_fragments) = (2, 3));
        let (payload, three) = datagram(over, &a, 1, 2000, 800);
        router.send_all(&a, &three);
        assert_whole(over, &b.received_one(), &payload);
        let (_, four) = datagram(over, &a, 2, 2000, 504);
        assert_eq!(four.len(), 4);
        assert_dropped(&mut router, over, &a, &b, &four, "fragment chain too long (drop)", 1);
        for id in 3..6 {
            router.send(&a, &datagram(over, &a, id, 2000, 800).1[0]);
        }
        let why = "drops due to concurrent reassemblies limit";
        assert_eq!(router.error(&over.node("full-reassembly-feature"), why), 1);
        assert_eq!(held(&router, over), 2);
        // 0 switches it off.
        set(&router, over, Kind::Full, |s| s.max_reassemblies = 0);
        router.send_all(&a, &datagram(over, &a, 9, 2000, 800).1);
        assert!(b.received().is_empty());
        router.advance(Duration::from_secs(62));
        a.received();
    }
}

#[test]
fn settings_out_of_range_are_refused_with_the_nearest_and_change_nothing() {
    let (router, ..) = two_hosts();
    let reassembly = router.get::<Reassembly>();
    let before = reassembly.settings(Version::Ip6, Kind::Full);
    let mut settings = before;
    settings.timeout_ms = 1;
    settings.max_fragments = 1;
    let refused = reassembly.set(Version::Ip6, Kind::Full, settings).unwrap_err();
    assert_eq!(refused.to_string(), "max-fragments 1 is not possible: 2 to 1366, nearest 2");
    assert_eq!(reassembly.settings(Version::Ip6, Kind::Full), before);
    let unknown = reassembly.set_interface(shoal_interface::SwIfIndex(99), Families::BOTH).unwrap_err();
    assert!(matches!(unknown, ReassemblyError::Interface(_)), "{unknown}");
}

#[test]
fn without_local_reassembly_fragments_for_us_are_dropped() {
    for over in BOTH {
        let (mut router, a, _) = two_hosts();
        let reassembly = router.get::<Reassembly>();
        assert_eq!(reassembly.local(), Families::BOTH);
        reassembly.set_local(router.control(), Families::NONE).unwrap();
        let whole = over.echo(over.to_us(&a)).payload_len(1000).build();
        router.send_all(&a, over.cut(&over.to_us(&a), 1, over.icmp(), &over.payload(&whole), 400));
        assert!(a.received().is_empty());
        assert_eq!(router.error(&over.node("local"), "fragments to this router are not put together"), 3);
    }
}

#[test]
fn the_headers_of_the_first_fragment_are_those_of_the_whole() {
    let (mut router, a, b) = two_hosts();
    on(&router, &a);
    // Options only the first fragment has; padding; congestion met by the second.
    let (payload, mut pieces) = datagram(TestFamily::Ip4, &a, 1, 1000, 504);
    pieces[0] = TestFamily::Ip4
        .through(&a)
        .options(&[7, 7, 4, 0, 0, 0, 0, 0])
        .tos(2)
        .dont_fragment()
        .protocol(UDP)
        .payload(&payload[..504])
        .id(1)
        .fragment(0, Fragment::More)
        .build();
    pieces[1] = TestFamily::Ip4
        .through(&a)
        .tos(3)
        .protocol(UDP)
        .payload(&payload[504..])
        .id(1)
        .fragment(504, Fragment::More)
        .build();
    pieces[1][20..22].copy_from_slice(&[0, 63]);
    let last = TestFamily::Ip4
        .through(&a)
        .tos(3)
        .protocol(UDP)
        .payload(&payload[504..])
        .id(1)
        .fragment(504, Fragment::Last);
    pieces[1] = [last.build(), vec![0xee; 20]].concat();
    router.send_all(&a, &pieces);
    let out = b.received_one();
    let header = ip4(&out);
    assert_eq!((header.header_len(), header.ecn(), header.dont_fragment()), (28, 3, true));
    assert!(header.checksum_ok_with(&out[34..42]));
    assert_eq!(out[42..], payload);
}

#[test]
fn extension_headers_before_the_fragment_header_stay_and_it_goes() {
    let (mut router, a, b) = two_hosts();
    on(&router, &a);
    let over = TestFamily::Ip6;
    let (payload, _) = datagram(over, &a, 1, 1000, 504);
    let options = [1, 4, 0, 0, 0, 0];
    let with = |at: usize, bytes: &[u8], place| {
        over.through(&a)
            .ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &options)
            .protocol(UDP)
            .payload(bytes)
            .id(1)
            .fragment(at as u16, place)
            .build()
    };
    router.send(&a, with(504, &payload[504..], Fragment::Last));
    router.send(&a, with(0, &payload[..504], Fragment::More));
    let out = b.received_one();
    assert_eq!(
        (ip6(&out).protocol(), usize::from(ip6(&out).payload_length())),
        (IpProtocol::IP6_DESTINATION_OPTIONS, 8 + payload.len())
    );
    assert_eq!(out[54], UDP.0);
    assert_eq!(out[62..], payload);
}

#[test]
fn packets_of_many_tiny_fragments_have_their_headers_in_one_piece() {
    for over in BOTH {
        let (mut router, a, _) = two_hosts();
        let whole = over.echo(over.to_us(&a)).payload_len(900).build();
        let pieces = over.cut(&over.to_us(&a), 1, over.icmp(), &over.payload(&whole), 16);
        router.send_all(&a, pieces.iter().rev());
        assert_eq!(a.received().len(), 1, "{over:?}: {:?}", router.errors());
    }
}

#[test]
fn a_trace_says_which_bytes_came_and_what_they_made() {
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        on(&router, &a);
        router.trace_add("pg-input", 3);
        router.send_all(&a, datagram(over, &a, 7, 2000, 800).1);
        assert_eq!(b.received().len(), 1);
        let trace = router.trace();
        for part in [
            "fragment[0, 799, more] is taken in",
            "fragment[1600, 2007] is taken in",
            "frag_id: 7",
            "whole: 2008 bytes of 3 fragments",
        ] {
            assert!(trace.contains(part), "{part}: {trace}");
        }
    }
}

#[test]
fn fragments_of_different_datagrams_do_not_mix() {
    for over in BOTH {
        let (mut router, a, b) = two_hosts();
        on(&router, &a);
        let all: Vec<_> = (0..20).map(|id| datagram(over, &a, id, 2000, 800)).collect();
        for n in 0..3 {
            router.send_all(&a, all.iter().map(|(_, pieces)| &pieces[n]));
        }
        let out = b.received();
        assert_eq!(out.len(), 20);
        for ((payload, _), out) in all.iter().zip(&out) {
            assert_whole(over, out, payload);
        }
    }
}
