//! Counting on a router of tests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::time::Duration;

use shoal_perfmon::{BUNDLES, Bundle, Kind, Perfmon, PerfmonError, Source, ThreadStatistics};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};

fn router() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_perfmon::MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    (router, port)
}

fn send(router: &mut Router, port: &Port, packets: usize) {
    let frame = PacketBuilder::ethernet([2, 0xbb, 0, 0, 0, 1], [2, 0xaa, 0, 0, 0, 1])
        .ip4([10, 0, 0, 2], [10, 0, 0, 3])
        .build();
    (0..packets).for_each(|_| router.send(port, &frame));
}

/// Whether the kernel lets this process count at all: some containers forbid it.
fn may_count(test: &str) -> bool {
    let may = Perfmon::try_out(Bundle::named("page-faults").unwrap());
    if let Err(error) = &may {
        println!("SKIP {test}: perf_event_open: {error}");
    }
    may.is_ok()
}

#[test]
fn a_thread_is_counted_as_a_whole() {
    if !may_count("a_thread_is_counted_as_a_whole") {
        return;
    }
    let (router, _port) = router();
    let perfmon = router.get::<Perfmon>();
    assert!(matches!(perfmon.statistics(), Err(PerfmonError::Nothing)));
    perfmon.start(Bundle::named("page-faults").unwrap(), None).unwrap();
    assert!(matches!(perfmon.start(Bundle::named("page-faults").unwrap(), None), Err(PerfmonError::Runs)));
    // Pages that nothing has touched.
    let touched: Vec<u8> = vec![1; 8 << 20];
    assert_eq!(touched.iter().map(|byte| usize::from(*byte)).sum::<usize>(), 8 << 20);
    let faults = |perfmon: &Perfmon| {
        let statistics = perfmon.statistics().unwrap();
        assert_eq!((statistics.active.kind, statistics.threads.len()), (Kind::Thread, 1));
        match statistics.threads[0].1 {
            ThreadStatistics::Whole(values) => values[0],
            ThreadStatistics::Nodes(_) => panic!("not asked for"),
        }
    };
    let counted = faults(&perfmon);
    assert!(counted > 0, "8 MB are at least a few pages");
    perfmon.stop().unwrap();
    let at_the_end = faults(&perfmon);
    let more: Vec<u8> = vec![1; 8 << 20];
    assert!(more.len() > 1 && at_the_end >= counted && faults(&perfmon) == at_the_end, "stopped");
    assert!(matches!(perfmon.stop(), Err(PerfmonError::Idle)));
    perfmon.reset();
    assert!(perfmon.active().is_none());
}

#[test]
fn nodes_are_counted_with_their_calls_and_packets_and_no_longer_than_asked() {
    if !may_count("nodes_are_counted_with_their_calls_and_packets_and_no_longer_than_asked") {
        return;
    }
    let (mut router, port) = router();
    let perfmon = router.get::<Perfmon>();
    perfmon.start(Bundle::named("page-faults").unwrap(), Some(Kind::Node)).unwrap();
    let seen = |perfmon: &Perfmon| {
        let statistics = perfmon.statistics().unwrap();
        let ThreadStatistics::Nodes(rows) = &statistics.threads[0].1 else { panic!("by node") };
        let row = rows.iter().find(|(name, _)| name == "ethernet-input");
        row.map_or((0, 0), |(_, row)| (row.calls, row.packets))
    };
    send(&mut router, &port, 5);
    assert_eq!(seen(&perfmon), (5, 5));
    perfmon.clear();
    assert_eq!(seen(&perfmon), (0, 0));
    send(&mut router, &port, 2);
    perfmon.stop().unwrap();
    send(&mut router, &port, 3);
    assert_eq!(seen(&perfmon), (2, 2), "what came after the end is not counted");
    router.advance(Duration::from_secs(1));
    assert!(!perfmon.active().unwrap().runs);
}

#[test]
fn what_cannot_be_counted_is_refused_and_says_what_can() {
    let (router, _port) = router();
    let perfmon = router.get::<Perfmon>();
    let switches = Bundle::named("context-switches").unwrap();
    let error = perfmon.start(switches, Some(Kind::Node)).unwrap_err();
    assert_eq!(error.to_string(), "bundle `context-switches' is not counted by node: thread");
    for bundle in BUNDLES.iter().filter(|bundle| Perfmon::try_out(bundle).is_err()) {
        let error = perfmon.start(bundle, None).unwrap_err().to_string();
        assert!(error.contains(bundle.name) && error.contains("; it does: "), "{error}");
        assert!(perfmon.active().is_none());
        assert!(bundle.source == Source::Processor || !may_count("kernel counters"), "{error}");
    }
}
