//! Several workers: both directions of a session meet on one, and sessions stay when workers come and go.

use shoal_nat::tuple::{TCP, UDP};
use shoal_nat44_ei::Enable;

use crate::common::{Bed, SHARED, bed_of, read, spec, tuple};

fn with_workers(workers: usize) -> Bed {
    let bed = bed_of(Enable { sessions: 5000, ..Enable::default() });
    for _ in 0..workers {
        bed.router.graph().add_worker(None).unwrap();
    }
    bed
}

fn asked(n: u16) -> shoal_nat::Tuple {
    tuple((&format!("10.0.0.{}", 2 + n % 7), 5000 + n), ("192.0.2.2", 80))
}

#[test]
fn answers_find_their_session_whichever_worker_has_it() {
    let mut bed = with_workers(3);
    for n in 0..100 {
        let to = read(&bed.out(asked(n), UDP, 0).unwrap());
        assert_eq!(bed.back(to.reversed(), UDP, 0), Some(bed.came(asked(n).reversed(), UDP, 0)), "{n}");
    }
    let counts = bed.nat().counts().unwrap();
    assert_eq!(counts.values().sum::<usize>(), 100);
    assert!(counts.iter().filter(|(_, count)| **count > 0).count() > 1, "{counts:?}");
    bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    let served = tuple(("192.0.2.2", 999), (SHARED, 8080));
    assert!(bed.back(served, TCP, 2).is_some());
}

#[test]
fn hosts_of_different_workers_reach_each_other() {
    let mut bed = with_workers(3);
    for server in 3..9_u16 {
        let host = format!("10.0.0.{server}");
        bed.nat().add_mapping(spec((&host, 80), (SHARED, 8000 + server), UDP)).unwrap();
        let asked = tuple(("10.0.0.2", 5000), (SHARED, 8000 + server));
        let came = read(&bed.hairpin(asked, UDP, 0).unwrap());
        assert_eq!(came.destination(), (host.parse().unwrap(), 80), "{server}");
        let answer = tuple((&host, 80), (SHARED, came.sport));
        assert_eq!(read(&bed.hairpin(answer, UDP, 0).unwrap()), asked.reversed(), "{server}");
    }
    assert_eq!(bed.router.if_counter("/nat44-ei/hairpinning", bed.inside.index()), 12);
}

#[test]
fn sessions_stay_when_workers_come_and_go() {
    let mut bed = with_workers(1);
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
        let users = bed.nat().users().unwrap();
        assert_eq!(users.iter().map(|user| user.sessions).sum::<u32>(), 100);
    }
}
