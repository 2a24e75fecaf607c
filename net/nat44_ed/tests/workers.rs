//! Several workers: both directions of a session meet on one, and sessions move when workers come and go.

use shoal_nat::tuple::{TCP, UDP};
use shoal_nat44_ed::Enable;

use crate::common::{Bed, SHARED, bed_of, read, spec, tuple};

fn with_workers(workers: usize) -> Bed {
    let bed = bed_of(Enable { sessions: 5000, ..Enable::default() });
    for _ in 0..workers {
        bed.router.graph().add_worker(None).unwrap();
    }
    bed.share(SHARED);
    bed
}

#[test]
fn answers_find_their_session_and_ports_are_kept_whichever_worker_has_it() {
    let mut bed = with_workers(3);
    for n in 0..200_u16 {
        let port = 1024 + n * 311;
        let asked = tuple(("10.0.0.2", port), ("192.0.2.2", 80));
        let left = tuple((SHARED, port), ("192.0.2.2", 80));
        assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(left, UDP, 0)), "{port}");
        assert_eq!(bed.back(left.reversed(), UDP, 0), Some(bed.came(asked.reversed(), UDP, 0)), "{port}");
    }
    let counts = bed.nat().counts().unwrap();
    assert_eq!(counts.values().sum::<usize>(), 200);
    assert!(counts.iter().filter(|(thread, _)| **thread > 0).all(|(_, count)| *count > 20), "{counts:?}");
    // Ports below 1024, protocols without ports, mappings, other hosts' ports.
    bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    for (host, port, protocol, flags) in [
        ("10.0.0.2", 53, UDP, 0),
        ("10.0.0.3", 1024, UDP, 0),
        ("10.0.0.4", 0, 47, 0),
        ("10.0.0.5", 80, TCP, 2),
    ] {
        let dport = if protocol == 47 { 0 } else { 80 };
        let asked = tuple((host, port), ("192.0.2.2", dport));
        let left = read(&bed.out(asked, protocol, flags).unwrap());
        let back = bed.back(left.reversed(), protocol, flags.max(u8::from(protocol == TCP) * 18));
        assert_eq!(read(&back.unwrap()), asked.reversed(), "{host}");
    }
}

#[test]
fn sessions_move_when_workers_come_and_go() {
    let mut bed = with_workers(1);
    let asked = |n: u16| tuple(("10.0.0.2", 1024 + n * 500), ("192.0.2.2", 80));
    let left: Vec<_> = (0..100).map(|n| read(&bed.out(asked(n), UDP, 0).unwrap())).collect();
    for change in [2, 3, 2, 1] {
        let graph = std::rc::Rc::clone(bed.router.graph());
        let workers = graph.threads().len() - 1;
        if change > workers {
            graph.add_worker(None).unwrap();
        } else {
            graph.remove_worker(workers).unwrap();
        }
        bed.router.run();
        assert_eq!(bed.sessions().len(), 100, "{change} workers");
        for (n, left) in left.iter().enumerate() {
            let back = bed.back(left.reversed(), UDP, 0).unwrap();
            assert_eq!(read(&back), asked(n as u16).reversed());
            assert_eq!(read(&bed.out(asked(n as u16), UDP, 0).unwrap()), *left);
        }
    }
    assert_eq!(bed.sessions().len(), 100);
}
