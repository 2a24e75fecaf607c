//! Rubbish: random packets into every node, and fragments that fit together by chance only.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::time::Duration;

use common::{BOTH, held, on, set, two_hosts};
use shoal_reassembly::{Kind, Reassembly, Side};
use shoal_testkit::{Rng, Router, fuzz_all_nodes};
use shoal_wire::IpProtocol;
use shoal_wire::packet::Fragment;

/// Everything is on, and does not wait long.
fn all_on() -> (Router, shoal_testkit::Port, shoal_testkit::Port) {
    let (router, a, b) = two_hosts();
    on(&router, &a);
    for over in BOTH {
        for side in [Side::Input, Side::Output] {
            router.get::<Reassembly>().use_sv((b.index(), over.version(), side), "test", true).unwrap();
        }
        for kind in [Kind::Full, Kind::ShallowVirtual] {
            set(&router, over, kind, |s| (s.timeout_ms, s.expire_walk_interval_ms) = (2000, 500));
        }
    }
    (router, a, b)
}

#[test]
fn random_packets_through_every_node_give_all_buffers_back() {
    let seed = 20_261_122;
    for n in 0..2 {
        let (mut router, ..) = all_on();
        router.may_hold(4096);
        let fuzzed = fuzz_all_nodes(&mut router, seed + n, 800);
        assert!(fuzzed.nodes > 60, "{fuzzed:?}");
        router.may_hold(0);
        router.advance(Duration::from_secs(40));
        assert_eq!(router.buffers_in_use(), 0, "seed {}: {:?}", seed + n, router.errors());
    }
}

#[test]
fn random_fragments_leave_nothing_behind() {
    let mut rng = Rng::new(Rng::seed(77));
    for over in BOTH {
        let (mut router, a, b) = all_on();
        for _ in 0..60 {
            let frames: Vec<_> = (0..50)
                .map(|_| {
                    let base = match rng.below(3) {
                        0 => over.to_us(&a),
                        1 => over.through(&a),
                        // From the far side, where only the words of the first are wanted.
                        _ => over.from_to(&b, 2, 0, 2),
                    };
                    let protocol = *rng.pick(&[IpProtocol::UDP, IpProtocol::TCP, over.icmp()]);
                    // Most fit into a datagram of three, so that some become whole.
                    let (mut at, mut len) = (16 * rng.below(3) as u16, 16);
                    let mut place = if at == 32 { Fragment::Last } else { Fragment::More };
                    if rng.one_in(5) {
                        place = if rng.one_in(4) { Fragment::Last } else { Fragment::More };
                        at = (8 * rng.below(6)) as u16 + if rng.one_in(5) { 65_400 } else { 0 };
                        len = if rng.one_in(5) { rng.below(40) } else { 8 * rng.below(5) };
                    }
                    let bytes = rng.bytes(len);
                    let id = rng.below(200) as u16;
                    let mut frame =
                        base.protocol(protocol).payload(&bytes).id(id).fragment(at, place).build();
                    if rng.one_in(10) {
                        frame.truncate(rng.below(frame.len() + 1));
                    }
                    if rng.one_in(10) && !frame.is_empty() {
                        let at = rng.below(frame.len());
                        frame[at] = rng.next_u64() as u8;
                    }
                    frame
                })
                .collect();
            for (n, chunk) in frames.chunks(10).enumerate() {
                router.send_all(if n % 2 == 0 { &a } else { &b }, chunk);
            }
        }
        router.advance(Duration::from_secs(40));
        assert_eq!((held(&router, over), router.buffers_in_use()), (0, 0), "{over:?}");
        assert!(router.error(&over.node("full-reassembly-feature"), "overlapping fragments") > 0);
        assert!(router.error(&over.node("full-reassembly-feature"), "successful reassemblies") > 0);
    }
}
