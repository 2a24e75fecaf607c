//! Several workers: both directions of a connection meet on one, and sessions move when workers come and go.

use shoal_cnat::SnatSpec;
use shoal_cnat::policy::{List, PolicyKind};

use crate::bed::*;

const SYN: u8 = 2;
const ACK: u8 = 16;

fn with_workers(workers: usize) -> Bed {
    let bed = bed();
    bed.features();
    for _ in 0..workers {
        bed.nat.router.graph().add_worker(None).unwrap();
    }
    for is_ip6 in [false, true] {
        let backends = [2, 3].map(|n| backend(is_ip6, n));
        bed.cnat.update(spec(vip(is_ip6), TCP, &backends)).unwrap();
    }
    let (std::net::IpAddr::V4(ip4), std::net::IpAddr::V6(ip6)) = (shared(false), shared(true)) else {
        unreachable!()
    };
    bed.cnat.set_snat(SnatSpec { ip4, ip6, ..SnatSpec::NONE }).unwrap();
    for list in [List::IncludeV4, List::IncludeV6] {
        bed.cnat.set_policy_interface(bed.nat.inside.index(), list, true).unwrap();
    }
    bed.cnat.set_policy(PolicyKind::IfPfx).unwrap();
    bed
}

#[test]
fn answers_find_their_session_whichever_worker_has_it() {
    for is_ip6 in [false, true] {
        let mut bed = with_workers(3);
        for n in 0..60_u16 {
            let asked = (client(is_ip6, 1024 + n * 1001), vip(is_ip6));
            let (from, to) = bed.comes(asked, TCP, SYN).unwrap();
            assert_eq!(from, asked.0);
            assert_eq!(bed.goes((to, from), TCP, SYN | ACK), Some(turned(asked)), "{n}");
            let left = ((backend(is_ip6, 4).0, 1024 + n * 1001), far(is_ip6));
            let (from, to) = bed.goes(left, TCP, SYN).unwrap();
            assert_eq!((from.0, to), (shared(is_ip6), left.1));
            assert_eq!(bed.comes((to, from), TCP, ACK), Some(turned(left)), "{n}");
        }
        let counts = bed.cnat.counts().unwrap();
        assert_eq!(counts.values().sum::<usize>(), 120, "{counts:?}");
        assert!(counts.iter().filter(|(thread, _)| **thread > 0).all(|(_, n)| *n > 20), "{counts:?}");
    }
}

#[test]
fn sessions_move_when_workers_come_and_go() {
    let mut bed = with_workers(1);
    let asked = |n: u16| (client(false, 1024 + n * 1001), vip(false));
    let there: Vec<_> = (0..60).map(|n| bed.comes(asked(n), TCP, SYN).unwrap()).collect();
    for change in [2, 3, 2, 1] {
        let graph = std::rc::Rc::clone(bed.nat.router.graph());
        let workers = graph.threads().len() - 1;
        if change > workers {
            graph.add_worker(None).unwrap();
        } else {
            graph.remove_worker(workers).unwrap();
        }
        bed.nat.router.run();
        assert_eq!(bed.sessions().len(), 60, "{change} workers");
        for (n, there) in there.iter().enumerate() {
            assert_eq!(bed.comes(asked(n as u16), TCP, ACK), Some(*there), "{change} workers");
            assert_eq!(bed.goes(turned(*there), TCP, ACK), Some(turned(asked(n as u16))));
        }
    }
    assert_eq!(bed.sessions().len(), 60);
}

#[test]
fn a_fixed_source_port_has_one_worker() {
    let mut bed = with_workers(3);
    let source = shoal_cnat::Endpoint::new("203.0.113.50".parse().unwrap(), 40_000);
    let path = |n| shoal_cnat::PathSpec { source, ..to(backend(false, n)) };
    let of = shoal_cnat::Spec { paths: (2..6).map(path).collect(), ..spec(vip(false), TCP, &[]) };
    bed.cnat.update(of).unwrap();
    let mut made = 0;
    for n in 0..40_u16 {
        let asked = (client(false, 1024 + n * 1001), vip(false));
        let Some((from, to)) = bed.comes(asked, TCP, SYN) else { continue };
        assert_eq!(from.1, 40_000);
        assert_eq!(bed.goes((to, from), TCP, ACK), Some(turned(asked)));
        made += 1;
    }
    assert_eq!(made, 4, "one connection to each back end");
}
