//! What commands do and print, without the parser.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::router;

use std::rc::Rc;

use router::{Router, ip, prefix, router};
use shoal_adj::{Adj, AdjKind};
use shoal_fib::{FibIndex, Path, Source, Via};
use shoal_graph::Edge;
use shoal_interface::SwIfIndex;
use shoal_module::cli::{Args, CliError, Output, Run};

/// Runs a command of this crate. Items are words, or arguments written `name=text`.
fn run(router: &Router, command: &str, items: &str) -> Result<Output, CliError> {
    let command = shoal_fib::cli::COMMANDS.iter().find(|c| c.syntax.starts_with(command)).unwrap();
    let args =
        items.split_whitespace().fold(Args::new(Rc::clone(&router.control), items), |args, item| match item
            .split_once('=')
        {
            Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
            None => args.with_word(item.to_owned().leak(), 0..0),
        });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(&router.control, &args)
}

fn text(router: &Router, command: &str, items: &str) -> String {
    run(router, command, items).unwrap().to_text()
}

fn error(router: &Router, command: &str, items: &str) -> String {
    match run(router, command, items).unwrap_err() {
        CliError::Argument { name, message, nearest } => {
            format!("{name}: {message}{}", nearest.map(|n| format!(" -> {n}")).unwrap_or_default())
        }
        CliError::Failed(message) => message,
    }
}

const HEAD: &str = "ipv4-VRF:0, fib_index:0, flow hash:[src dst sport dport proto flowlabel ] \
                    epoch:0 flags:none locks:[default-route:1, ]\n";

#[test]
fn a_new_table_is_shown_as_vpp_shows_it() {
    let router = router(0);
    let shown = text(&router, "show ip fib", "");
    assert!(shown.starts_with(&format!(
        "{HEAD}0.0.0.0/0\n  unicast-ip4-chain\n  \
         [@0]: dpo-load-balance: [proto:ip4 index:0 buckets:1 uRPF:0 to:[0:0]]\n    \
         [0] [@0]: dpo-drop ip4\n0.0.0.0/32\n"
    )));
    assert_eq!(shown.lines().count(), 1 + 5 * 4);
    let summary = "    Prefix length         Count     \n          0                 1       \n";
    assert!(text(&router, "show ip fib", "summary").starts_with(&format!("{HEAD}{summary}")));
}

#[test]
fn chains_end_in_what_the_adjacency_does() {
    let router = router(1);
    router.adjacencies.set_describe(
        shoal_adj::Family::Ip4,
        Rc::new(|interface, _, _| {
            Adj::on(AdjKind::Rewrite, interface, 1500).with_rewrite(&[0xab; 14], Edge(3))
        }),
    );
    let (fib, main, eth1) = (&router.fib, FibIndex::DEFAULT, SwIfIndex(1));
    let source = ip("192.0.2.1");
    for (to, via) in [
        ("192.0.2.0/24", Via::Attached { interface: eth1, source }),
        ("192.0.2.1/32", Via::Local { interface: Some(eth1), address: source }),
        ("192.0.2.2/32", Via::NextHop { interface: eth1, next_hop: ip("192.0.2.2") }),
        ("10.0.0.0/8", Via::Recursive { next_hop: ip("10.1.1.1"), fib: main }),
        ("11.0.0.0/8", Via::Recursive { next_hop: ip("9.9.9.9"), fib: main }),
        ("12.0.0.0/8", Via::Unreachable),
        ("13.0.0.0/8", Via::Lookup(main)),
    ] {
        fib.add(main, prefix(to), Source::Cli, &[Path::from(via)]).unwrap();
    }
    let last = |addr: &str| {
        let shown = text(&router, "show ip fib", &format!("match={addr}"));
        shown.lines().last().unwrap().split_once("]: ").unwrap().1.to_owned()
    };
    assert_eq!(
        last("192.0.2.77"),
        "ipv4-glean: [src:192.0.2.1/24] eth1: mtu:1500 next:0 flags:[] ffffffffffff02fe000000010806"
    );
    assert_eq!(last("192.0.2.1"), "dpo-receive: 192.0.2.1 on eth1");
    assert_eq!(
        last("192.0.2.2"),
        "ipv4 via 192.0.2.2 eth1: mtu:1500 next:3 flags:[] abababababababababababababab"
    );
    assert_eq!(last("10.0.0.1"), "dpo-drop ip4 (next hop leads back here)");
    assert_eq!(last("11.0.0.1"), "dpo-drop ip4 (next hop is not reachable)");
    assert_eq!(last("12.0.0.1"), "ip4-null action:send-unreachable");
    assert_eq!(last("13.0.0.1"), "dst-address,unicast lookup in ipv4-VRF:0");
    let adj = text(&router, "show adj", "interface=eth1");
    assert!(adj.contains("] ipv4 via 192.0.2.2 eth1: mtu:1500 next:3 flags:[] abab"), "{adj}");
}

#[test]
fn routes_received_again_copies_and_counts_are_shown() {
    let router = router(2);
    for (family, net, via, host, rx) in [
        ("ip", "10.0.0.0/8", "10.9.9.9", "10.1.1.1", "rx-ip4"),
        ("ip6", "2001:db8::/32", "2001:db8:9::9", "2001:db8:1::1", "rx-ip6"),
    ] {
        let (show, set) = (format!("show {family} fib"), format!("set {family} route counters"));
        let proto = if family == "ip" { "ip4" } else { "ip6" };
        run(&router, "ip route", &format!("add prefix={net} via {rx}=eth2")).unwrap();
        let shown = text(&router, &show, &format!("match={net} detail"));
        assert!(shown.contains("intf-rx:  oper-flags:resolved,\n        eth2\n"), "{shown}");
        assert!(shown.ends_with(&format!("]: interface-rx-dpo: eth2 {proto}\n")), "{shown}");
        let wrong = if family == "ip" { "rx-ip6" } else { "rx-ip4" };
        let refused = error(&router, "ip route", &format!("add prefix={net} via {wrong}=eth2"));
        assert!(
            refused.starts_with(&format!("{wrong}: packets of a route of {proto} are not received as")),
            "{refused}"
        );
        run(&router, &set, &format!("enable prefix={net}")).unwrap();
        let shown = text(&router, &show, &format!("match={net}"));
        assert!(
            shown.contains("to:[0:0]]") && shown.ends_with(&format!("interface-rx-dpo: eth2 {proto}\n")),
            "{shown}"
        );
        let json = run(&router, &show, &format!("match={net}")).unwrap().to_json();
        assert_eq!(json[0]["entries"][0]["packets"], 0, "{json}");
        let adj = text(&router, "show adj", "");
        assert!(adj.contains("counter of a route: [@"), "{adj}");
        assert_eq!(
            error(&router, &set, &format!("enable prefix={host}/{}", if family == "ip" { 32 } else { 128 })),
            format!(
                "prefix: {host}/{} is not in table 0, nearest {net} -> {net}",
                if family == "ip" { 32 } else { 128 }
            )
        );
        run(&router, &set, &format!("disable prefix={net}")).unwrap();
        // A link of table 0, from another one.
        run(&router, &format!("{family} table"), "add id=10").unwrap();
        let neighbour = Path::next_hop(ip(via), SwIfIndex(1));
        router
            .fib
            .add(FibIndex::DEFAULT, shoal_wire::IpPrefix::host(ip(via)), Source::Adjacency, &[neighbour])
            .unwrap();
        run(&router, "ip route", &format!("add prefix={net} table=10 via interface=eth1")).unwrap();
        let shown = text(&router, &show, &format!("table=10 match={via} detail"));
        assert!(shown.contains("attached-export refs:1 src-flags:added,contributing,active,"), "{shown}");
        assert!(
            shown.contains(&format!("attached-nexthop:  oper-flags:resolved,\n        {via} eth1")),
            "{shown}"
        );
    }
    assert_eq!(router.fib.check(), Vec::<String>::new());
}

#[test]
fn detail_names_sources_and_paths() {
    let router = router(1);
    run(&router, "ip route", "add prefix=10.0.0.0/8 via next-hop=192.0.2.2 interface=eth1 weight=2").unwrap();
    run(&router, "ip route", "add prefix=10.0.0.0/8 via drop preference=1").unwrap();
    let shown = text(&router, "show ip fib", "match=10.0.0.0/8 detail");
    let want = "10.0.0.0/8 fib:0 index:6 locks:1
  CLI refs:1 src-flags:added,contributing,active,
    path-list:[6] locks:1 flags: uPRF-list:6
      path:[6] pl-index:6 ip4 weight=2 pref=0 attached-nexthop:  oper-flags:resolved,
        192.0.2.2 eth1
      path:[6] pl-index:6 ip4 weight=1 pref=1 special:  oper-flags:resolved,
        drop
 forwarding:   unicast-ip4-chain\n";
    assert!(shown.contains(want), "{shown}");
    let json = run(&router, "show ip fib", "match=10.0.0.0/8").unwrap().to_json();
    assert_eq!(json[0]["entries"][0]["sources"][0]["paths"][0]["via"], "192.0.2.2 eth1");
    assert_eq!((&json[0]["table"], &json[0]["entries"][0]["prefix"]), (&0.into(), &"10.0.0.0/8".into()));
}

#[test]
fn routes_come_and_go_by_command() {
    let router = router(1);
    let route = |items: &str| run(&router, "ip route", items).map(drop);
    route("add count=3 prefix=10.0.0.7/24 via next-hop=192.0.2.2 interface=eth1").unwrap();
    assert_eq!(router.way("10.0.2.1"), "Incomplete 1 192.0.2.2");
    assert_eq!(router.way("10.0.3.1"), "None");
    route("add prefix=11.0.0.0/8 via next-hop=10.0.0.1").unwrap();
    route("add prefix=12.0.0.0/8 via lookup-table=0").unwrap();
    route("add prefix=13.0.0.0/8 via prohibit").unwrap();
    route("add prefix=14.0.0.0/8 via interface=eth1").unwrap();
    route("add prefix=15.0.0.0/8 via local").unwrap();
    assert_eq!(router.way("12.0.0.1"), "Lookup - 0.0.0.0");
    assert_eq!(router.way("13.0.0.1"), "Prohibit - 0.0.0.0");
    assert_eq!(router.way("14.0.0.1"), "Glean 1 0.0.0.0");
    assert_eq!(router.way("15.0.0.1"), "Local - 0.0.0.0");
    route("del count=3 prefix=10.0.0.0/24 via next-hop=192.0.2.2 interface=eth1").unwrap();
    route("del prefix=11.0.0.0/8").unwrap();
    assert_eq!(router.way("11.0.0.1"), "None");
}

#[test]
fn refused_routes_point_at_the_argument() {
    let router = router(1);
    let bad = |items: &str| error(&router, "ip route", items);
    assert_eq!(bad("add prefix=10.0.0.0/8"), "prefix: a route needs at least one `via'");
    assert_eq!(
        bad("add prefix=10.0.0.0/8 via next-hop=224.0.0.1 interface=eth1"),
        "next-hop: 224.0.0.1 is no next hop: it must be the address of one host"
    );
    assert_eq!(
        bad("add prefix=10.0.0.0/8 via drop weight=0"),
        "weight: weight 0 is not possible: 1 to 255, nearest 1 -> 1"
    );
    assert_eq!(
        bad("add count=9 prefix=255.255.255.252/30 via drop"),
        "count: 9 prefixes from 255.255.255.252/30 on end beyond 255.255.255.255, nearest 1 -> 1"
    );
    assert_eq!(bad("del prefix=10.0.0.0/8"), "prefix: 10.0.0.0/8 is not in table 0");
    assert_eq!(
        bad("add prefix=10.0.0.0/8 table=7 via drop"),
        "table: bad <table> `7', expected the id of a table -> 0"
    );
    assert_eq!(bad("del prefix=224.0.0.0/4"), "prefix: 224.0.0.0/4 in table 0 is from special, not from CLI");
}

#[test]
fn tables_come_and_go_by_command() {
    let router = router(0);
    run(&router, "ip table", "add id=10 name=blue").unwrap();
    assert_eq!(text(&router, "show ip table", ""), "[0] table_id:0 ipv4-VRF:0\n[1] table_id:10 blue\n");
    let id: u32 = text(&router, "ip table", "add").trim().parse().unwrap();
    assert_eq!(error(&router, "ip table", "del"), "missing <id>: which table is to go?");
    run(&router, "ip table", &format!("del id={id}")).unwrap();
    assert!(text(&router, "show ip fib", "table=10").starts_with("blue, fib_index:1, "));
    assert!(text(&router, "show ip fib", "memory").contains("\ntotals: mtrie:"));
    assert_eq!(error(&router, "ip table", "add id=10"), "id: table 10 exists already");
    run(&router, "ip table", "del id=10").unwrap();
    assert_eq!(error(&router, "ip table", "del id=10"), "id: no table 10, nearest 0 -> 0");
    assert_eq!(
        error(&router, "show ip fib", "match=10.0.0.0/8"),
        "match: 10.0.0.0/8 is in none of the tables shown -> 0.0.0.0/0"
    );
    assert_eq!(error(&router, "show adj", "adj-index=77"), "adj-index: adjacency 77 invalid -> 1");
}

#[test]
fn both_families_are_added_by_one_command_and_shown_apart() {
    let router = router(1);
    let route = |items: &str| run(&router, "ip route", items).map(drop);
    route("add prefix=2001:db8::1/32 via next-hop=fe80::2 interface=eth1").unwrap();
    route("add prefix=2001:db8:1::/48 via next-hop=2001:db8::9").unwrap();
    route("add prefix=10.0.0.0/8 via next-hop=2001:db8::9").unwrap();
    let shown = text(&router, "show ip6 fib", "match=2001:db8:1::5");
    let head = "ipv6-VRF:0, fib_index:0, flow hash:[src dst sport dport proto flowlabel ] \
                epoch:0 flags:none locks:[default-route:1, ]\n2001:db8:1::/48\n  unicast-ip6-chain\n  \
                [@0]: dpo-load-balance: [proto:ip6 index:";
    assert!(shown.starts_with(head), "{shown}");
    assert!(shown.ends_with("]: arp-ipv6: via fe80::2 eth1\n"), "{shown}");
    assert!(text(&router, "show ip fib", "match=10.1.1.1").ends_with("]: arp-ipv4: via fe80::2 eth1\n"));
    assert!(text(&router, "show ip6 fib", "").contains("::/0\n  unicast-ip6-chain\n"));
    let detail = text(&router, "show ip6 fib", "match=2001:db8:1::/48 detail");
    assert!(
        detail.contains(
            "ip6 weight=1 pref=0 recursive:  oper-flags:resolved,\n        via 2001:db8::9 in ipv6-VRF:0\n"
        ),
        "{detail}"
    );
    run(&router, "ip6 table", "add id=7").unwrap();
    route("add prefix=2001:db8:2::/48 table=7 via lookup-table6=0").unwrap();
    assert_eq!(router.way_in(FibIndex(1), "2001:db8:2::1"), "Lookup - 0.0.0.0");
    let bad = |items: &str| error(&router, "ip route", items);
    assert_eq!(bad("add prefix=10.0.0.0/8 table=7 via drop"), "table: no table 7 of ip4 -> 0");
    assert_eq!(
        bad("add prefix=10.0.0.0/8 via lookup-table6=0"),
        "lookup-table6: a route of ip4 cannot lead to a table of ip6"
    );
    assert_eq!(
        bad("add prefix=2001:db8::/32 via next-hop=fe80::1"),
        "next-hop: fe80::1 is the address of a host on one link: the interface is missing"
    );
    assert_eq!(
        error(&router, "show ip6 fib", "match=10.0.0.0/8"),
        "match: bad <match> `10.0.0.0/8', expected an IPv6 address such as 2001:db8::1, or a prefix such as \
         2001:db8::/32"
    );
}

#[test]
fn a_balance_is_shown_bucket_by_bucket() {
    let router = router(1);
    let route = |items: &str| run(&router, "ip route", items).unwrap();
    route("add prefix=10.0.0.0/8 via next-hop=192.0.2.1 interface=eth1");
    route("add prefix=10.0.0.0/8 via next-hop=192.0.2.2 interface=eth1 weight=3");
    let shown = text(&router, "show ip fib", "match=10.1.1.1");
    assert!(shown.contains(" buckets:4 "), "{shown}");
    let buckets: Vec<&str> =
        shown.lines().filter_map(|l| l.split_once("]: arp-ipv4: via ")).map(|(_, to)| to).collect();
    assert_eq!(buckets, ["192.0.2.1 eth1", "192.0.2.2 eth1", "192.0.2.2 eth1", "192.0.2.2 eth1"]);
    let json = run(&router, "show ip fib", "match=10.1.1.1").unwrap().to_json();
    assert_eq!(json[0]["entries"][0]["forwarding"][3]["text"], "arp-ipv4: via 192.0.2.2 eth1");
}

#[test]
fn flow_hash_capacity_and_check_have_their_commands() {
    let router = router(1);
    run(&router, "set ip flow-hash", "table=0 src dst symmetric").unwrap();
    assert!(text(&router, "show ip fib", "summary").contains("flow hash:[src dst symmetric ]"));
    run(&router, "set ip flow-hash", "table=0").unwrap();
    assert!(text(&router, "show ip fib", "summary").starts_with(HEAD));
    assert_eq!(
        error(&router, "set ip flow-hash", "table=9"),
        "table: bad <table> `9', expected the id of a table -> 0"
    );
    let capacity = text(&router, "show fib capacity", "");
    assert!(capacity.contains("\nip4 routes                           5        memory"), "{capacity}");
    assert_eq!(text(&router, "show fib check", ""), "all is well\n");
}

#[test]
fn capacity_counts_routes_of_both_families_and_says_what_one_more_takes() {
    let router = router(1);
    let rows = |router: &Router| (shoal_fib::MODULE.capacity)(&router.control);
    let used =
        |router: &Router, what: &str| rows(router).into_iter().find(|r| r.resource == what).unwrap().used;
    let (four, six) = (used(&router, "ip4 routes"), used(&router, "ip6 routes"));
    let path = Path::from(Via::Drop);
    router.fib.add(FibIndex::DEFAULT, prefix("198.51.100.0/24"), Source::Cli, &[path]).unwrap();
    router.fib.add(FibIndex::DEFAULT, prefix("2001:db8::/32"), Source::Cli, &[path]).unwrap();
    assert_eq!((used(&router, "ip4 routes"), used(&router, "ip6 routes")), (four + 1, six + 1));
    assert!(
        rows(&router).iter().all(|row| row.bytes_each > 0 && row.most.is_none_or(|most| row.used <= most))
    );
    let adjacencies = (shoal_adj::MODULE.capacity)(&router.control);
    assert_eq!(adjacencies[0].resource, "adjacencies");
    assert!(adjacencies[0].used > 0 && adjacencies[0].more(Some(1 << 20)) < adjacencies[0].more(None));
}

#[test]
fn adjacency_counters_go_on_and_off_by_either_command() {
    let router = router(1);
    let adjacencies = &router.adjacencies;
    assert!(!adjacencies.all_count());
    run(&router, "adjacency counters", "enable").unwrap();
    assert!(adjacencies.all_count());
    run(&router, "set adj counters", "disable").unwrap();
    assert!(!adjacencies.all_count());
    let missing = error(&router, "set adj counters", "enable adj-index=4242");
    assert!(missing.starts_with("adj-index: no adjacency 4242; the nearest is "), "{missing}");
    let special = adjacencies.list()[0].0;
    let text = error(&router, "set adj counters", &format!("enable adj-index={special}"));
    assert_eq!(text, format!("adj-index: adjacency {special} has no header of its own to count packets by"));
    let index = adjacencies.neighbour(SwIfIndex(1), shoal_adj::Link::Ip4, ip("192.0.2.7")).unwrap();
    run(&router, "set adj counters", &format!("enable adj-index={index}")).unwrap();
    assert_eq!(adjacencies.counted_by(index), None, "it has no header yet");
}

#[test]
fn entries_paths_and_their_lists_are_shown_by_number() {
    let router = router(1);
    run(&router, "ip route", "add prefix=198.51.100.0/24 via next-hop=192.0.2.9 interface=eth1").unwrap();
    run(&router, "ip route", "add prefix=203.0.113.0/24 via next-hop=192.0.2.9 interface=eth1").unwrap();
    let entries = text(&router, "show fib entry", "");
    assert!(entries.starts_with("FIB Entries:\n0@0.0.0.0/0\n  unicast-ip4-chain\n"), "{entries}");
    let line = entries.lines().find(|line| line.ends_with("@203.0.113.0/24")).unwrap();
    let (number, _) = line.split_once('@').unwrap();
    let one = text(&router, "show fib entry", &format!("index={number}"));
    assert!(one.starts_with(&format!("{number}@203.0.113.0/24 fib:0 index:")), "{one}");
    assert!(one.contains("attached-nexthop:  oper-flags:resolved,\n        192.0.2.9 eth1\n"), "{one}");
    assert_eq!(text(&router, "show fib entry", "index=9999"), "entry 9999 invalid\n");
    let paths = text(&router, "show fib paths", "");
    assert!(paths.starts_with("FIB Paths\npath:[0] pl-index:0 "), "{paths}");
    assert_eq!(paths.matches("  192.0.2.9 eth1\n").count(), 1, "{paths}");
    let lists = text(&router, "show fib path-lists", "");
    let shared = lists.lines().find(|line| line.contains("locks:2 flags:shared,")).unwrap();
    let number = shared.trim_start_matches("path-list:[").split(']').next().unwrap().to_owned();
    assert!(text(&router, "show fib path-lists", &format!("index={number}")).contains("192.0.2.9 eth1"));
    let wrong = error(&router, "show fib paths", "index=9999");
    assert!(wrong.starts_with("index: path 9999 invalid -> "), "{wrong}");
    assert!(text(&router, "show fib memory", "").contains("         IPv4 unicast             1  "));
}
