//! Fragments of one datagram that come in on several real workers meet on one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::{BOTH, TestFamily, held, on};
use shoal_handoff::{Handoff, Rules, Workers};
use shoal_reassembly::Reassembly;
use shoal_testkit::{Port, Router};
use shoal_wire::IpProtocol;

/// A router with workers that puts together what pg0 receives.
fn router(workers: usize) -> (Router, Port, Port) {
    let (router, a, b) = common::with_modules(4096, &[&shoal_handoff::MODULE]);
    for _ in 0..workers {
        router.graph().add_worker(None).unwrap();
    }
    on(&router, &a);
    (router, a, b)
}

fn datagram(over: TestFamily, a: &Port, id: u16) -> (Vec<u8>, Vec<Vec<u8>>) {
    let whole = over.through(a).udp(id, 2000).payload_len(3000).build();
    let payload = over.payload(&whole);
    let pieces = over.cut(&over.through(a), id, IpProtocol::UDP, &payload, 504);
    (payload, pieces)
}

#[test]
fn fragments_go_to_their_owner_and_the_whole_comes_back() {
    for over in BOTH {
        let (mut router, a, b) = router(3);
        let node = over.node("full-reassembly-handoff");
        let mut wanted = Vec::new();
        for id in 0..40 {
            let (payload, pieces) = datagram(over, &a, id);
            // Pieces of several datagrams between each other, in bursts.
            for burst in pieces.chunks(2) {
                router.send_all(&a, burst);
            }
            wanted.push(payload);
        }
        let mut got: Vec<_> = b.received().iter().map(|f| over.payload(f)).collect();
        got.sort();
        wanted.sort();
        assert_eq!(got, wanted, "{over:?}: {:?}", router.errors());
        assert_eq!(held(&router, over), 0);
        let vectors = |name: &str| {
            let at = router.graph().node(name).unwrap().number() as usize;
            let all = &router.graph().graph_counters().vectors;
            router.graph().threads().iter().map(|t| all.get(t.index, at)).collect::<Vec<_>>()
        };
        let shares = vectors(&node);
        assert!(shares[1..].iter().filter(|n| **n > 0).count() > 1, "{shares:?}");
        let sum = shares.iter().sum::<u64>();
        assert!(sum <= 40 * 6 && sum.is_multiple_of(6), "each is handed over at most once: {shares:?}");
        // What is whole goes on where its first fragment came in, which is one thread here.
        let lookups = vectors(&over.node("lookup"));
        assert_eq!(lookups.iter().filter(|n| **n > 0).count(), 1, "{lookups:?}");
    }
}

#[test]
fn datagrams_follow_the_workers_and_no_buffers_are_left_behind() {
    for over in BOTH {
        let (mut router, a, b) = router(2);
        for id in 0..40 {
            router.send_all(&a, &datagram(over, &a, id).1[..3]);
        }
        assert_eq!(held(&router, over), 40);
        router.graph().remove_worker(2).unwrap();
        // Its datagrams are the other's now.
        assert_eq!(held(&router, over), 40);
        for id in 0..20 {
            router.send_all(&a, &datagram(over, &a, id).1[3..]);
        }
        assert_eq!((b.received().len(), held(&router, over)), (20, 20), "{:?}", router.errors());
        // Another takes its part of what is left.
        router.graph().add_worker(None).unwrap();
        let look =
            router.get::<Reassembly>().look(over.version(), shoal_reassembly::Kind::Full, true).unwrap();
        let on = |thread| look.datagrams.iter().filter(|d| d.thread == thread).count();
        assert!(on(1) > 0 && on(2) > 0 && on(1) + on(2) == 20, "{look:?}");
        for id in 20..30 {
            router.send_all(&a, &datagram(over, &a, id).1[3..]);
        }
        assert_eq!((b.received().len(), held(&router, over)), (10, 10), "{:?}", router.errors());
        router.graph().remove_worker(2).unwrap();
        router.advance(std::time::Duration::from_secs(65));
        assert_eq!((held(&router, over), router.buffers_in_use()), (0, 0));
        drop((a.received(), b.received()));
        // With none left the main thread does it all.
        router.graph().remove_worker(1).unwrap();
        router.get::<Reassembly>().set_interface(a.index(), shoal_reassembly::Families::BOTH).unwrap();
        router.send_all(&a, &datagram(over, &a, 77).1);
        assert_eq!(b.received().len(), 1);
    }
}

#[test]
fn fragments_spread_over_workers_by_the_interface_meet_again() {
    for over in BOTH {
        let (mut router, a, b) = router(2);
        let handoff = router.get::<Handoff>();
        handoff.enable(a.index(), Workers::These(vec![0, 1]), Rules::default()).unwrap();
        for id in 0..20 {
            router.send_all(&a, &datagram(over, &a, id).1);
        }
        assert_eq!(b.received().len(), 20, "{:?}", router.errors());
    }
}
