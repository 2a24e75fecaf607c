//! Hosts that send more than they may, and those beside them that do not; each case in both families.

use std::rc::Rc;
use std::time::Duration;

use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::Running;
use shoal_module::cli::{Args, CliError, Output, Run};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_source_limit::{Limit, LimitError, SourceLimit};
use shoal_testkit::{PacketBuilder, Port, Rng, Router, STACK};
use shoal_wire::MacAddress;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TestFamily {
    Ip4,
    Ip6,
}

const BOTH: [TestFamily; 2] = [TestFamily::Ip4, TestFamily::Ip6];

impl TestFamily {
    fn node(self) -> &'static str {
        if self == TestFamily::Ip4 { "ip4-source-limit" } else { "ip6-source-limit" }
    }

    /// A packet of a host behind `port` to the far side.
    fn packet(self, port: &Port, host: u16) -> Vec<u8> {
        let frame = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 9], port.mac());
        let [high, low] = host.to_be_bytes();
        let frame = match self {
            TestFamily::Ip4 => frame.ip4([10, 9, high, low], [10, 0, 1, 2]),
            TestFamily::Ip6 => {
                frame.ip6([0x2001, 0xdb8, 9, 0, 0, 0, 0, host], [0x2001, 0xdb8, 1, 0, 0, 0, 0, 2])
            }
        };
        frame.udp(1, 2).payload(b"payload").build()
    }
}

fn router() -> (Router, Port, Port) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_source_limit::MODULE]);
    let mut router = Router::new(&modules);
    let ports: Vec<Port> = (0..2).map(|n| router.pg(n)).collect();
    for (n, port) in ports.iter().enumerate() {
        let (ip4, ip6) = (router.get::<Ip4>(), router.get::<Ip6>());
        ip4.add_address(port.index(), format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
        ip6.add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
        let (mac, i) = (MacAddress([2, 0xaa, 0, 0, 0, n as u8]), port.index());
        let arp = router.get::<shoal_arp::Neighbours>();
        arp.set((i, format!("10.0.{n}.2").parse().unwrap()), mac, Origin::Static, FibEntry::Wanted).unwrap();
        let nd = router.get::<shoal_ip6_nd::Neighbours>();
        let far = format!("2001:db8:{n}::2").parse().unwrap();
        nd.set((i, far), mac, Origin::Static, FibEntry::Wanted).unwrap();
    }
    router.advance(Duration::from_secs(3));
    for port in &ports {
        port.received();
    }
    let [a, b] = ports.try_into().unwrap_or_else(|_| panic!("two ports"));
    (router, a, b)
}

fn limit(router: &Router, port: &Port, rate: u32, burst: u32) {
    router.get::<SourceLimit>().set(port.index(), Some(Limit { rate, burst })).unwrap();
}

/// How many of `count` packets of a host that come at once are let through.
fn passed(router: &mut Router, (a, b): (&Port, &Port), over: TestFamily, host: u16, count: usize) -> usize {
    router.send_all(a, vec![over.packet(a, host); count]);
    b.received().len()
}

#[test]
fn a_host_sends_a_burst_and_then_its_rate_and_others_are_not_touched() {
    for over in BOTH {
        let (mut router, a, b) = router();
        assert_eq!(passed(&mut router, (&a, &b), over, 1, 100), 100, "no limit yet");
        limit(&router, &a, 100, 20);
        assert_eq!(passed(&mut router, (&a, &b), over, 1, 100), 20);
        assert_eq!(router.error(over.node(), "exceeded"), 80);
        // Another host has a burst of its own.
        assert_eq!(passed(&mut router, (&a, &b), over, 2, 5), 5);
        // 100 a second are one in 10 ms.
        router.advance(Duration::from_millis(35));
        assert_eq!(passed(&mut router, (&a, &b), over, 1, 10), 3);
        router.advance(Duration::from_secs(5));
        assert_eq!(passed(&mut router, (&a, &b), over, 1, 100), 20, "no more than a burst is saved up");
        // What the far side sends is not limited.
        let back = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 1], b.mac()).ip4([10, 0, 1, 2], [10, 0, 0, 2]);
        router.send_all(&b, vec![back.udp(1, 2).payload(b"x").build(); 50]);
        assert_eq!(a.received().len(), 50);
        router.get::<SourceLimit>().set(a.index(), None).unwrap();
        assert_eq!(passed(&mut router, (&a, &b), over, 1, 100), 100);
        assert_eq!(router.get::<SourceLimit>().look().unwrap().losers, []);
    }
}

#[test]
fn over_time_each_host_gets_its_rate_however_it_sends() {
    let mut rng = Rng::new(Rng::seed(5));
    for over in BOTH {
        let (mut router, a, b) = router();
        limit(&router, &a, 1000, 10);
        let mut got = 0;
        for _ in 0..400 {
            got += passed(&mut router, (&a, &b), over, 7, rng.below(40));
            router.advance(Duration::from_millis(5));
        }
        // Two seconds; a slow stretch may waste a little of it.
        assert!((1900..=2010).contains(&got), "{over:?}: {got}");
    }
}

#[test]
fn silent_hosts_are_forgotten_by_the_timer() {
    for over in BOTH {
        let (mut router, a, b) = router();
        limit(&router, &a, 100, 2);
        for host in 0..300 {
            assert_eq!(passed(&mut router, (&a, &b), over, host, 1), 1);
        }
        let known = |router: &Router| router.get::<SourceLimit>().look().unwrap().hosts[&0];
        assert_eq!(known(&router), 300);
        router.advance(Duration::from_secs(6));
        passed(&mut router, (&a, &b), over, 5, 1);
        router.advance(Duration::from_secs(6));
        assert_eq!(known(&router), 1, "who sent lately is known");
        router.advance(Duration::from_secs(12));
        assert_eq!(known(&router), 0);
        assert_eq!(router.graph().next_timer().unwrap(), None);
    }
}

#[test]
fn hosts_of_an_interface_are_forgotten_with_its_limit() {
    let (mut router, a, b) = router();
    limit(&router, &a, 1, 1);
    limit(&router, &b, 1, 1);
    assert_eq!(passed(&mut router, (&a, &b), TestFamily::Ip4, 1, 3), 1);
    router.send_all(&b, vec![TestFamily::Ip4.packet(&b, 2); 3]);
    let look = router.get::<SourceLimit>().look().unwrap();
    assert_eq!((look.hosts[&0], look.losers.len()), (2, 2));
    router.get::<SourceLimit>().set(a.index(), None).unwrap();
    let look = router.get::<SourceLimit>().look().unwrap();
    assert_eq!((look.hosts[&0], look.losers.len(), look.losers[0].interface), (1, 1, b.index()));
    // The other's goes with the interface.
    drop((a.received(), b.received()));
    router.generator().delete_interface(b.index()).unwrap();
    router.run();
    assert_eq!(router.get::<SourceLimit>().limits(), []);
    assert_eq!(router.get::<SourceLimit>().look().unwrap().hosts[&0], 0);
}

#[test]
fn workers_come_and_go_and_each_counts_for_itself() {
    let (mut router, a, b) = router();
    limit(&router, &a, 10, 4);
    assert_eq!(passed(&mut router, (&a, &b), TestFamily::Ip6, 1, 10), 4);
    let worker = router.graph().add_worker(None).unwrap();
    let queue = router.graph().queues().into_iter().find(|q| q.interface == "pg0").unwrap();
    router.graph().move_queue(queue.id, worker).unwrap();
    // It does not know what the main thread knew.
    assert_eq!(passed(&mut router, (&a, &b), TestFamily::Ip6, 1, 10), 4);
    assert_eq!(passed(&mut router, (&a, &b), TestFamily::Ip6, 1, 10), 0);
    let look = router.get::<SourceLimit>().look().unwrap();
    assert_eq!(
        look.losers.iter().map(|host| (host.thread, host.lost)).collect::<Vec<_>>(),
        [(worker, 16), (0, 6)]
    );
    router.graph().remove_worker(worker).unwrap();
    assert_eq!(
        passed(&mut router, (&a, &b), TestFamily::Ip6, 1, 10),
        0,
        "the main thread still knows the host"
    );
}

#[test]
fn packets_that_are_cut_short_are_dropped_by_name() {
    let (mut router, a, _) = router();
    limit(&router, &a, 10, 4);
    for (node, bytes) in [("ip4-source-limit", &[0x45; 10][..]), ("ip6-source-limit", &[0x60; 39])] {
        router.inject(node, a.index(), bytes);
        router.run();
        assert_eq!(router.error(node, "too_short"), 1);
    }
}

#[test]
fn a_trace_says_which_host_and_why() {
    let (mut router, a, b) = router();
    limit(&router, &a, 10, 1);
    router.trace_add("pg-input", 2);
    assert_eq!(passed(&mut router, (&a, &b), TestFamily::Ip4, 258, 2), 1);
    let trace = router.trace();
    assert!(trace.contains("ip4-source-limit: source-limit: host 10.9.1.2 within its limit"), "{trace}");
    assert!(trace.contains("ip4-source-limit: source-limit: host 10.9.1.2 beyond its limit"), "{trace}");
}

fn run(router: &Router, command: &str, items: &str) -> Result<Output, CliError> {
    let command = shoal_source_limit::cli::COMMANDS.iter().find(|c| c.syntax.starts_with(command)).unwrap();
    let start = Args::new(Rc::clone(router.control()), items);
    let args = items.split_whitespace().fold(start, |args, item| match item.split_once('=') {
        Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
        None => args.with_word(item.to_owned().leak(), 0..0),
    });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args)
}

#[test]
fn commands_set_show_and_rebuild_limits() {
    let (mut router, a, b) = router();
    run(&router, "set", "interface=pg0 rate=50").unwrap();
    run(&router, "set", "interface=pg1 rate=3 burst=7").unwrap();
    let all = router.get::<SourceLimit>().limits();
    assert_eq!(all, [(a.index(), Limit { rate: 50, burst: 5 }), (b.index(), Limit { rate: 3, burst: 7 })]);
    assert_eq!(passed(&mut router, (&a, &b), TestFamily::Ip4, 3, 9), 5);
    let shown = run(&router, "show", "").unwrap().to_text();
    assert_eq!(
        shown,
        "pg0: 50 packets/s, burst 5\npg1: 3 packets/s, burst 7\n1 hosts known\n  10.9.0.3 on pg0, thread 0: 4 packets lost\n"
    );
    let mut running = Running::default();
    (shoal_source_limit::MODULE.running)(router.control(), &mut running);
    let lines: String = running.pieces().collect();
    assert!(lines.contains("set interface source-limit pg0 rate 50 burst 5"), "{lines}");
    assert!(lines.contains("set interface source-limit pg1 rate 3 burst 7"), "{lines}");
    run(&router, "set", "interface=pg0 disable").unwrap();
    run(&router, "set", "interface=pg0 disable").unwrap();
    assert_eq!(router.get::<SourceLimit>().limits().len(), 1);
}

#[test]
fn bad_input_changes_nothing_and_names_the_nearest_value() {
    let (router, a, _) = router();
    let limit = router.get::<SourceLimit>();
    let of = |rate, burst| limit.set(a.index(), Some(Limit { rate, burst })).unwrap_err().to_string();
    assert_eq!(of(0, 1), "a rate of 0 is not possible: 1 to 100000000, nearest 1");
    assert_eq!(of(200_000_000, 1), "a rate of 200000000 is not possible: 1 to 100000000, nearest 100000000");
    assert_eq!(of(1, 0), "a burst of 0 is not possible: 1 to 1000000, nearest 1");
    let nowhere = limit.set(shoal_interface::SwIfIndex(99), None);
    assert!(matches!(nowhere, Err(LimitError::Interface(_))), "{nowhere:?}");
    for items in
        ["interface=pg0", "interface=pg0 burst=3", "interface=pg0 rate=0", "interface=nowhere rate=1"]
    {
        assert!(run(&router, "set", items).is_err(), "{items}");
    }
    assert!(run(&router, "set", "interface=pg0 rate=3 disable").is_err());
    assert_eq!(limit.limits(), []);
}
