//! Shallow virtual reassembly: fragments pass, and each knows what the first one says. RFC 1858, RFC 3128, RFC 7112.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{BOTH, TestFamily, set};
use shoal_buffer::Packet;
use shoal_buffer::slot::SlotKey;
use shoal_graph::{Cx, Edge, FeatureSpec, NextNodes, NoError, PacketNode};
use shoal_module::{Control, InitError, Module};
use shoal_reassembly::{Kind, L4, Reassembly, Side, WaitFor};
use shoal_testkit::{Port, Rng, Router};
use shoal_wire::packet::Fragment;
use shoal_wire::{IpProtocol, TcpFlags};

/// What a feature behind shallow virtual reassembly saw.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<L4>>>);

#[derive(Clone, Copy)]
struct On(Edge);

impl NextNodes for On {
    const NAMES: &'static [&'static str] = &[];

    fn edge(self) -> Edge {
        self.0
    }
}

/// A feature that wants ports.
struct Reader<const NODE: usize>(Seen, SlotKey<L4>);

impl<const NODE: usize> PacketNode for Reader<NODE> {
    const NAME: &'static str = ["ip4-reader", "ip6-reader", "ip4-reader-out", "ip6-reader-out"][NODE];
    type Next = On;
    type Error = NoError;
    type Trace = L4;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<On, NoError> {
        self.0.0.lock().unwrap().push(*self.1.get(pkt));
        Ok(On(cx.next_feature(pkt)))
    }
}

static READERS: Module = Module { name: "readers", init, ..Module::NONE };

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (graph, seen) = (control.graph()?, Seen::default());
    let words = control.get::<Reassembly>()?.words();
    assert!(graph.claim_slot::<L4>("readers").is_err(), "it is reassembly's");
    graph.add_packet(Reader::<0>(seen.clone(), words))?;
    graph.add_packet(Reader::<1>(seen.clone(), words))?;
    graph.add_packet(Reader::<2>(seen.clone(), words))?;
    graph.add_packet(Reader::<3>(seen.clone(), words))?;
    for (arc, node, after) in [
        ("ip4-unicast", "ip4-reader", &["ip4-sv-reassembly-feature"][..]),
        ("ip6-unicast", "ip6-reader", &["ip6-sv-reassembly-feature"]),
        ("ip4-output", "ip4-reader-out", &["ip4-sv-reassembly-output-feature"]),
        ("ip6-output", "ip6-reader-out", &["ip6-sv-reassembly-output-feature"]),
    ] {
        graph.add_feature(FeatureSpec { arc, node, before: &[], after });
    }
    control.put(seen);
    Ok(())
}

fn router(over: TestFamily, side: Side) -> (Router, Port, Port) {
    let (router, a, b) = common::with_modules(4096, &[&READERS]);
    let (port, arc, node) = match side {
        Side::Input => (&a, over.node("unicast"), over.node("reader")),
        Side::Output => (&b, over.node("output"), over.node("reader-out")),
    };
    router.get::<Reassembly>().use_sv((port.index(), over.version(), side), "test", true).unwrap();
    router.interfaces().enable_feature(&arc, &node, port.index(), true).unwrap();
    (router, a, b)
}

fn seen(router: &Router) -> Vec<L4> {
    std::mem::take(&mut *router.get::<Seen>().0.lock().unwrap())
}

fn pieces(over: TestFamily, a: &Port, id: u16) -> Vec<Vec<u8>> {
    let bytes = Rng::new(u64::from(id) + 1).bytes(2000);
    let whole = over.through(a).tcp(1000 + id, 2000, TcpFlags::SYN).payload(&bytes).build();
    over.cut(&over.through(a), id, IpProtocol::TCP, &over.payload(&whole), 504)
}

#[test]
fn every_fragment_knows_the_ports_in_whatever_order_they_come() {
    let mut rng = Rng::new(Rng::seed(5));
    for (over, side) in BOTH.into_iter().flat_map(|over| [(over, Side::Input), (over, Side::Output)]) {
        let (mut router, a, b) = router(over, side);
        for id in 0..30 {
            let mut all = pieces(over, &a, id);
            for at in (1..all.len()).rev() {
                all.swap(at, rng.below(at + 1));
            }
            if rng.one_in(2) {
                router.send_all(&a, &all);
            } else {
                for piece in &all {
                    router.send(&a, piece);
                }
            }
            let out = b.received();
            assert_eq!(out.len(), all.len(), "{over:?} {side:?}: {:?}", router.errors());
            // They leave as they came, but for the hop.
            let payloads = |frames: &[Vec<u8>]| {
                let mut all: Vec<_> = frames.iter().map(|f| over.payload(f)).collect();
                all.sort();
                all
            };
            assert_eq!(payloads(&out), payloads(&all));
            let seen = seen(&router);
            assert_eq!(seen.len(), all.len());
            assert_eq!(seen.iter().filter(|l4| l4.is_non_first_fragment == 0).count(), 1);
            for l4 in seen {
                assert_eq!((l4.protocol, l4.src_port, l4.dst_port), (6, 1000 + id, 2000));
                assert_eq!((l4.tcp_flags(), l4.is_fragment), (TcpFlags::SYN, 1));
            }
        }
        // All have gone on, and what they say is known for a while.
        let look = |router: &Router| {
            let look = router.get::<Reassembly>().look(over.version(), Kind::ShallowVirtual, true).unwrap();
            (look.reassemblies, look.buffers)
        };
        assert_eq!(look(&router), (30, 0));
        router.advance(Duration::from_secs(62));
        assert_eq!(look(&router), (0, 0));
    }
}

#[test]
fn extended_fragments_wait_for_the_last_one_too() {
    for over in BOTH {
        let (mut router, a, b) = router(over, Side::Input);
        let reassembly = router.get::<Reassembly>();
        let held = || reassembly.look(over.version(), Kind::ShallowVirtual, true).unwrap().buffers;
        reassembly.set_waits(over.version(), WaitFor::Last);
        let all = pieces(over, &a, 1);
        let (last, others) = all.split_last().unwrap();
        router.send_all(&a, others);
        assert!(b.received().is_empty(), "{over:?}");
        assert_eq!(held() as usize, others.len());
        router.send(&a, last);
        assert_eq!((b.received().len(), held()), (all.len(), 0), "{over:?}: {:?}", router.errors());
        let seen = seen(&router);
        assert_eq!(seen.iter().filter(|l4| l4.is_non_first_fragment == 0).count(), 1);
        assert!(seen.iter().all(|l4| (l4.src_port, l4.dst_port) == (1001, 2000)));
        // The last one overtakes all: the first is enough then.
        let all = pieces(over, &a, 2);
        let (last, others) = all.split_last().unwrap();
        router.send(&a, last);
        assert_eq!(held(), 1);
        router.send_all(&a, others);
        assert_eq!((b.received().len(), held()), (all.len(), 0));
        // Copies of the first wait, too, and all go when time is over.
        let first = &pieces(over, &a, 3)[0];
        router.send_all(&a, [first, first]);
        assert_eq!((b.received().len(), held()), (0, 2));
        router.advance(Duration::from_secs(10));
        assert_eq!((b.received().len(), held(), router.buffers_in_use()), (0, 0, 0));
        reassembly.set_waits(over.version(), WaitFor::First);
        router.send(&a, &pieces(over, &a, 4)[0]);
        assert_eq!(b.received().len(), 1);
    }
}

#[test]
fn a_copy_that_comes_late_goes_on_and_a_first_fragment_begins_the_next_datagram() {
    for over in BOTH {
        let (mut router, a, b) = router(over, Side::Input);
        let all = pieces(over, &a, 4);
        router.send_all(&a, &all);
        router.send(&a, all.last().unwrap());
        assert_eq!(b.received().len(), all.len() + 1);
        assert_eq!(seen(&router).last().unwrap().src_port, 1004);
        // Another datagram with the same identification.
        let whole = over.through(&a).udp(7, 8).payload(&[1; 600]).build();
        let next = over.cut(&over.through(&a), 4, IpProtocol::UDP, &over.payload(&whole), 504);
        let protocol = |l4: &L4| (l4.protocol, l4.src_port);
        if over == TestFamily::Ip6 {
            router.send_all(&a, &next);
            assert_eq!(b.received().len(), 2);
            assert_eq!(seen(&router).iter().map(protocol).collect::<Vec<_>>(), [(17, 7), (17, 7)]);
        }
        router.advance(Duration::from_secs(62));
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn datagrams_that_are_through_give_way_first() {
    for over in BOTH {
        let (mut router, a, b) = router(over, Side::Input);
        set(&router, over, Kind::ShallowVirtual, |s| s.max_reassemblies = 8);
        // It waits for its first fragment.
        let waiting = pieces(over, &a, 2000);
        router.send(&a, &waiting[1]);
        assert!(b.received().is_empty());
        for id in 0..20 {
            router.send_all(&a, pieces(over, &a, id));
        }
        b.received();
        router.send(&a, &waiting[0]);
        assert_eq!(b.received().len(), 2, "{over:?}");
    }
}

#[test]
fn packets_that_are_no_fragments_know_their_own() {
    for (over, side) in BOTH.into_iter().flat_map(|over| [(over, Side::Input), (over, Side::Output)]) {
        let (mut router, a, b) = router(over, side);
        router.send(&a, over.through(&a).udp(7, 8).payload_len(10).build());
        router.send(&a, over.echo(over.through(&a)).payload_len(10).build());
        router.send(&a, over.through(&a).protocol(IpProtocol(200)).build());
        router.send(&a, over.through(&a).protocol(IpProtocol::TCP).payload_len(3).build());
        assert_eq!(b.received().len(), 4);
        let all: Vec<_> =
            seen(&router).into_iter().map(|l4| (l4.src_port, l4.dst_port, l4.is_fragment)).collect();
        assert_eq!(all, [(7, 8, 0), (7, 7, 0), (0, 0, 0), (0, 0, 0)], "{over:?} {side:?}");
    }
}

#[test]
fn fragments_of_protocols_without_ports_are_dropped_as_vpp_does() {
    for over in BOTH {
        let (mut router, a, b) = router(over, Side::Input);
        for piece in over.cut(&over.through(&a), 1, IpProtocol(200), &[7; 200], 104) {
            router.send(&a, piece);
        }
        assert!(b.received().is_empty());
        let why = if over == TestFamily::Ip4 { "reass_unsupp_ip_prot" } else { "reass_unsupp_ip_proto" };
        assert_eq!(router.error(&over.node("sv-reassembly-feature"), why), 1);
        router.advance(std::time::Duration::from_secs(62));
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn a_first_fragment_that_hides_its_ports_or_a_second_one_that_differs_is_dropped() {
    for over in BOTH {
        let (mut router, a, b) = router(over, Side::Input);
        let node = over.node("sv-reassembly");
        router.send(&a, over.piece(over.through(&a), 1, IpProtocol::TCP, 0, &[0; 8], true));
        assert_eq!(router.error(&node, "first fragment hides the transport header"), 1);
        assert!(b.received().is_empty());
        let all = pieces(over, &a, 2);
        router.send(&a, &all[0]);
        // RFC 3128: another first one, with other flags.
        let mut other = over.payload(&all[0]);
        if over == TestFamily::Ip6 {
            other.drain(..8);
        }
        other[13] = 0x10;
        router.send(&a, over.piece(over.through(&a), 2, IpProtocol::TCP, 0, &other, true));
        // One that lies over the first.
        router.send(&a, over.piece(over.through(&a), 2, IpProtocol::TCP, 16, &[1; 16], true));
        assert_eq!(router.error(&node, "overlapping fragments"), 2);
        assert_eq!(b.received().len(), 1);
        // One that came before the first and lies over it.
        router.send(&a, over.piece(over.through(&a), 3, IpProtocol::TCP, 16, &[1; 16], true));
        router.send(&a, &pieces(over, &a, 3)[0]);
        assert_eq!(router.error(&node, "overlapping fragments"), 3);
        assert_eq!(b.received().len(), 1);
        router.advance(Duration::from_secs(7));
    }
}

#[test]
fn what_waits_for_the_first_is_bounded_and_goes_in_time() {
    for over in BOTH {
        let (mut router, a, b) = router(over, Side::Input);
        let node = over.node("sv-reassembly");
        set(&router, over, Kind::ShallowVirtual, |s| (s.max_fragments, s.max_reassemblies) = (3, 100));
        let later =
            |id: u16, n: usize| over.piece(over.through(&a), id, IpProtocol::UDP, 800 + 8 * n, &[1; 8], true);
        router.send_all(&a, (0..5).map(|n| later(1, n)));
        assert_eq!(router.error(&node, "fragment chain too long (drop)"), 2);
        router.send_all(&a, (2..120).map(|id| later(id, 0)));
        assert_eq!(router.error(&node, "drops due to concurrent reassemblies limit"), 3 + 18);
        assert_eq!(router.buffers_in_use(), 100);
        router.advance(Duration::from_secs(7));
        assert_eq!(
            router.error(&over.node("sv-reassembly-expired"), "fragments dropped due to reassembly timeout"),
            100
        );
        assert!(b.received().is_empty());
        // A flood of them leaves buffers to others.
        set(&router, over, Kind::ShallowVirtual, |s| s.max_reassemblies = 65_536);
        for burst in 0..20u16 {
            router.send_all(&a, (0..200).map(|n| later(burst * 200 + n, 0)));
        }
        assert_eq!(router.buffers_in_use(), 1024);
        router.send_all(&a, pieces(over, &a, 60_000));
        assert_eq!(b.received().len(), 5);
        router.advance(Duration::from_secs(10));
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn it_stays_on_as_long_as_anybody_wants_it() {
    let (router, a, _) = router(TestFamily::Ip4, Side::Input);
    let reassembly = router.get::<Reassembly>();
    let place = (a.index(), TestFamily::Ip4.version(), Side::Input);
    let on = || {
        router
            .graph()
            .features(Some(a.index()))
            .iter()
            .any(|(_, all)| all.iter().any(|(n, on)| n == "ip4-sv-reassembly-feature" && *on))
    };
    assert!(on());
    reassembly.use_sv(place, "other", true).unwrap();
    reassembly.use_sv(place, "test", false).unwrap();
    assert!(on());
    reassembly.use_sv(place, "other", false).unwrap();
    assert!(!on());
    // Of somebody who never asked.
    reassembly.use_sv(place, "test", false).unwrap();
    assert!(
        reassembly
            .use_sv((shoal_interface::SwIfIndex(77), TestFamily::Ip4.version(), Side::Input), "x", true)
            .is_err()
    );
}

#[test]
fn full_reassembly_comes_first_where_both_are_on() {
    for over in BOTH {
        let (mut router, a, b) = router(over, Side::Input);
        common::on(&router, &a);
        router.send_all(&a, pieces(over, &a, 1));
        assert_eq!(b.received().len(), 1);
        let l4 = seen(&router);
        assert_eq!((l4.len(), l4[0].src_port, l4[0].is_fragment), (1, 1001, 0));
        router.send(&a, over.through(&a).udp(1, 2).fragment(0, Fragment::More).payload_len(8).build());
        router.advance(Duration::from_secs(70));
    }
}
