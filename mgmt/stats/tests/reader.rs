//! The router's own client reads the segment, from other threads, while it changes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a test's failure, told at once"
)]

use crate::router;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use router::Router;
use shoal_stats_client::{Client, Error, Value};

/// Connects from another thread, while the router serves its socket.
fn connect(router: &Router) -> Client {
    let path = router.socket.clone();
    let thread = std::thread::spawn(move || Client::connect(path).unwrap());
    let until = Instant::now() + Duration::from_secs(10);
    while !thread.is_finished() {
        router.processes.run_until_idle();
        assert!(Instant::now() < until, "no segment");
        std::thread::yield_now();
    }
    thread.join().unwrap()
}

fn longer(router: &Router, len: usize) {
    let c = router.graph.graph_counters();
    for counter in [&c.rx, &c.tx] {
        counter.ensure(len);
    }
    for counter in [&c.drops, &c.punt, &c.rx_no_buf, &c.rx_miss, &c.rx_error, &c.tx_error] {
        counter.ensure(len);
    }
}

/// What an interface does to the directory when it comes.
fn come(router: &Router, at: usize, name: &str) {
    let counters = router.graph.counters();
    longer(router, at + 1);
    router.graph.if_names().set(at, name);
    for counter in ["rx", "tx", "drops", "punt", "ip4", "ip6", "rx-no-buf", "rx-miss", "rx-error", "tx-error"]
    {
        counters.symlink(&format!("/interfaces/{name}/{counter}"), &format!("/if/{counter}"), at);
    }
}

fn go(router: &Router, at: usize, name: &str) {
    router.graph.counters().remove_prefix(&format!("/interfaces/{name}/"));
    router.graph.if_names().set(at, "deleted");
}

fn find<'a>(counters: &'a [shoal_stats_client::Counter], name: &str) -> &'a Value {
    let found = counters.iter().find(|c| &*c.name == name);
    &found.unwrap_or_else(|| panic!("no {name}")).value
}

#[test]
fn every_name_has_a_value() {
    let router = Router::new(true);
    come(&router, 1, "pg0");
    router.processes.run_until_idle();
    router.graph.graph_counters().rx.add(0, 1, 7, 700);
    router.graph.graph_counters().drops.add(0, 1, 3);
    let mut client = connect(&router);
    let names = client.list().unwrap();
    let counters = client.read(|_| true).unwrap();
    assert_eq!(names.len(), counters.len());
    assert_eq!(find(&counters, "/if/rx").sum(), 7);
    assert_eq!(find(&counters, "/interfaces/pg0/drops"), &Value::SimpleLink(vec![3]));
    let Value::CombinedLink(pairs) = find(&counters, "/interfaces/pg0/rx") else { panic!("no pair") };
    assert_eq!((pairs[0].packets, pairs[0].bytes), (7, 700));
    assert_eq!(find(&counters, "/if/names"), &Value::Names(vec![None, Some("pg0".into())]));
    assert!(matches!(find(&counters, "/buffer-pools/default-numa-0/available"), Value::Gauge(n) if *n > 0));
    let some = client.read(|name| name == "/sys/heartbeat").unwrap();
    assert_eq!((some.len(), &*some[0].name), (1, "/sys/heartbeat"));
}

/// A table and its names change together, so a reader that sees one without the other has read two directories.
#[test]
fn readers_never_see_half_of_a_change() {
    let router = Router::new(false);
    let done = AtomicBool::new(false);
    let mut clients = [connect(&router), connect(&router)];
    let reads = std::thread::scope(|threads| {
        let readers: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                let done = &done;
                threads.spawn(move || {
                    let (mut reads, mut busy, mut epochs) = (0, 0, 0);
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        match client
                            .read(|name| name.starts_with("/if/names") || name.starts_with("/interfaces/"))
                        {
                            Ok(counters) => {
                                whole(&counters);
                                reads += 1;
                            }
                            Err(Error::Busy) => busy += 1,
                            Err(error) => panic!("{error}"),
                        }
                        let epoch = client.epoch().unwrap();
                        epochs += u64::from(epoch != last);
                        last = epoch;
                    }
                    (reads, busy, epochs)
                })
            })
            .collect();
        let until = Instant::now() + Duration::from_secs(2);
        let mut seed = fastrand::Rng::with_seed(7);
        let mut there = [false; 64];
        while Instant::now() < until {
            let at = seed.usize(1..64);
            let name = format!("pg{at}");
            if there[at] {
                go(&router, at, &name);
            } else {
                come(&router, at, &name);
            }
            there[at] = !there[at];
            // The clock is a test's: replaced directories become others at once, five seconds later.
            router.pass(Duration::from_millis(200));
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().map(|r| r.join().unwrap()).collect::<Vec<_>>()
    });
    println!("reads, busy, epochs by reader: {reads:?}");
    assert!(reads.iter().all(|(reads, ..)| *reads > 10), "{reads:?}");
}

/// Every interface that has a name has its eight counters, and no other has any.
fn whole(counters: &[shoal_stats_client::Counter]) {
    let Value::Names(names) = find(counters, "/if/names") else { panic!("no names") };
    let there = names.iter().flatten().filter(|n| *n != "deleted").count();
    assert_eq!(counters.len() - 1, there * 8);
    for name in names.iter().flatten().filter(|n| *n != "deleted") {
        assert_eq!(find(counters, &format!("/interfaces/{name}/drops")).sum(), 0);
    }
}

#[test]
fn a_client_follows_a_router_that_restarts() {
    let router = Router::new(false);
    let mut client = connect(&router);
    assert!(client.heartbeat().unwrap() > 0);
    router.control.get::<shoal_stats::Stats>().unwrap().close();
    assert!(matches!(client.heartbeat(), Err(Error::Gone { .. })));
    let next = Router::new(false);
    next.graph.counters().gauge("/test/new").unwrap().set(5);
    next.processes.run_until_idle();
    std::os::unix::fs::symlink(&next.socket, &router.socket).unwrap();
    let mut seen = None;
    std::thread::scope(|threads| {
        let reader = threads.spawn(|| client.read(|name| name == "/test/new").unwrap());
        while !reader.is_finished() {
            next.processes.run_until_idle();
        }
        seen = Some(reader.join().unwrap());
    });
    assert_eq!(seen.unwrap()[0].value, Value::Gauge(5));
}

#[test]
fn a_socket_without_a_listener_is_an_error_that_names_it() {
    let error = Client::connect(Path::new("/no/such/stats.sock")).unwrap_err();
    assert!(error.to_string().contains("/no/such/stats.sock"), "{error}");
}

/// The segment runs full while names come; the directory before stays, no thread dies, and readers see numbers.
#[test]
fn a_full_segment_is_an_error() {
    let router = Router::with_bytes(false, 200 << 20);
    let counters = router.graph.counters();
    let mut made = 0;
    let refused = loop {
        match counters.simple(&format!("/test/{made}"), 1 << 20) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert!(made > 0 && refused.to_string().contains("full"), "{refused}");
    // Now until not even a directory fits.
    while counters.segment().alloc_u64s(8).is_ok() {}
    come(&router, 1, "pg0");
    router.processes.run_until_idle();
    let epoch = router.control.get::<shoal_stats::Stats>().unwrap().epoch();
    come(&router, 2, "pg1");
    router.processes.run_until_idle();
    assert_eq!(router.control.get::<shoal_stats::Stats>().unwrap().epoch(), epoch);
    router.graph.graph_counters().drops.add(0, 1, 4);
    let mut client = connect(&router);
    assert!(client.read(|_| true).unwrap().len() > 10);
}

/// Prints what a scrape costs; asserts no time, because machines differ. `--release` for numbers worth keeping.
#[test]
fn ten_thousand_interfaces_are_read_at_once() {
    const INTERFACES: usize = 10_000;
    let router = Router::new(false);
    let begun = Instant::now();
    for at in 1..=INTERFACES {
        come(&router, at, &format!("loop{at}"));
    }
    println!("named in {:?}", begun.elapsed());
    let begun = Instant::now();
    router.processes.run_until_idle();
    println!("published in {:?}", begun.elapsed());
    let mut client = connect(&router);
    let mut times = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let counters = client.read(|_| true).unwrap();
        times.push(begun.elapsed());
        assert!(counters.len() > INTERFACES * 8);
    }
    println!("whole scrapes: {times:?}");
    let begun = Instant::now();
    let tables = client.read(|name| name.starts_with("/if/")).unwrap();
    println!("tables only: {:?}", begun.elapsed());
    assert!(tables.len() > 8);
}

#[test]
fn a_long_directory_is_laid_out_beside_the_main_thread() {
    let router = Router::real();
    let mut client = connect(&router);
    let until = Instant::now() + Duration::from_mins(1);
    let mut longest = Duration::ZERO;
    for at in 0..1_000 {
        come(&router, at, &format!("loop{at}"));
        if at % 100 == 0 {
            let begun = Instant::now();
            router.processes.run_until_idle();
            longest = longest.max(begun.elapsed());
        }
    }
    // Changes that come while a directory is laid out are in the next one.
    loop {
        router.processes.run_until_idle();
        let names = client.list().unwrap();
        let names: Vec<&str> =
            names.iter().map(|n| &*n.name).filter(|n| n.starts_with("/interfaces/")).collect();
        if names.len() == 8_000 && names.contains(&"/interfaces/loop999/rx") {
            break;
        }
        assert!(Instant::now() < until, "{} names", names.len());
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("the main thread was away for {longest:?} at most");
}
