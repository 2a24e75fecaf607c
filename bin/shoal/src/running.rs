//! The running configuration of a whole router: shown, run on a fresh one, shown again.

use std::cell::RefCell;
use std::rc::Rc;

use shoal_cli::Cli;
use shoal_config::Plugins;
use shoal_graph::process::Processes;
use shoal_module::{Control, Module, ModuleList};
use shoal_testkit::Router;

/// Runs work that may take its time.
pub(crate) fn wait<T: 'static>(control: &Rc<Control>, work: impl Future<Output = T> + 'static) -> T {
    let processes = control.get::<Processes>().unwrap();
    let answer = Rc::new(RefCell::new(None));
    let to = Rc::clone(&answer);
    processes.spawn_unlisted(async move {
        let value = work.await;
        *to.borrow_mut() = Some(value);
    });
    while answer.borrow().is_none() {
        if !processes.run_until_idle() {
            // A thread of its own has the work.
            std::thread::yield_now();
        }
    }
    answer.take().unwrap()
}

/// Runs a line.
fn cli(control: &Rc<Control>, line: &str) -> Result<String, String> {
    let (cli, with, text) = (control.get::<Cli>().unwrap(), Rc::clone(control), line.to_owned());
    let reply = wait(control, async move { cli.execute(&with, &text).await });
    if reply.is_ok() { Ok(reply.text()) } else { Err(reply.text()) }
}

/// All modules but those that need files, sockets or privileges.
pub(crate) fn router() -> Router {
    let needs_more = ["logging", "stats", "af_packet", "tap"];
    let modules: Vec<&'static Module> = crate::modules::enabled(&Plugins::default())
        .into_iter()
        .filter(|m| !needs_more.contains(&m.name))
        .collect();
    let router = Router::with_cli(&modules, cli);
    let types = modules.iter().flat_map(|m| m.arg_types).chain(shoal_module::cli::WIRE);
    router.control().put(Cli::new(modules.iter().flat_map(|m| m.commands), types).unwrap());
    router.control().put(ModuleList(modules));
    router
}

pub(crate) fn shown(router: &mut Router) -> String {
    router.cli("show running-config").unwrap()
}

/// Another router that has run the configuration, every line of it.
pub(crate) fn rebuilt(text: &str) -> Router {
    let mut other = router();
    for line in text.lines() {
        other.cli(line).unwrap_or_else(|e| panic!("`{line}': {e}\nof:\n{text}"));
    }
    other
}

/// The configuration of a router that has run `lines`, which another one that runs it has, too.
fn round(lines: &[&str]) -> String {
    let mut first = router();
    for line in lines {
        first.cli(line).unwrap_or_else(|e| panic!("`{line}': {e}"));
    }
    let text = shown(&mut first);
    assert_eq!(shown(&mut rebuilt(&text)), text);
    text
}

/// What was configured is what is shown, line by line, but for the headings.
fn same(lines: &[&str]) {
    let text = round(lines);
    let found: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(found, lines);
}

/// The features of all modules together are in the order that the fused paths have.
#[test]
fn no_module_takes_a_superpath_from_the_others() {
    let router = router();
    let there: Vec<&str> = router.interfaces().superpaths().into_iter().map(|(name, _)| name).collect();
    for wanted in [
        shoal_superpaths::IP4,
        shoal_superpaths::IP,
        shoal_superpaths::IP4_NAT44,
        shoal_superpaths::IP_NAT44,
        shoal_superpaths::IP_FEATURES,
        shoal_superpaths::IP_FEATURES_EI,
        shoal_superpaths::IP4_ONLY,
        shoal_superpaths::IP4_ONLY_EI,
        shoal_superpaths::XCONNECT,
        shoal_superpaths::BRIDGE,
    ] {
        assert!(there.contains(&wanted.name), "{}: {there:?}", wanted.name);
    }
}

#[test]
fn a_fresh_router_has_nothing_to_say() {
    assert_eq!(shown(&mut router()), "");
}

#[test]
fn interfaces_and_their_names() {
    same(&[
        "set superpath off",
        "create loopback interface mac 02:fe:00:00:00:01 instance 7",
        "create loopback interface instance 0",
        "set interface name loop7 uplink",
        "set interface tag uplink north",
        "set interface mtu 1500 uplink",
        "set interface mtu ip4 1400 uplink",
        "set interface mtu ip6 1380 uplink",
        "set interface promiscuous on loop0",
        "set interface collect-detailed-stats loop0 enable",
        "set interface state uplink up",
    ]);
    // Names that changed places.
    let text = round(&[
        "create loopback interface instance 0",
        "create loopback interface instance 1",
        "set interface name loop0 x",
        "set interface name loop1 loop0",
        "set interface name x loop1",
        "set interface tag loop1 first",
        "set interface mtu 1500 loop0",
        "set interface mtu 9000 loop0",
    ]);
    assert!(text.contains("set interface tag loop1 first") && !text.contains("mtu"), "{text}");
}

#[test]
fn packet_generators_and_features_by_name() {
    same(&[
        "create packet-generator interface pg0 hw-addr 02:fe:00:00:00:07 gso-enabled gso-size 1460 coalesce-enabled",
        "create packet-generator interface pg4 mode ip4",
        "create packet-generator interface pg6 mode ip6",
        "packet-generator mac-filter pg0 on",
        "set interface feature pg4 ip4-sv-reassembly-output-feature arc ip4-output",
        "set interface state pg4 up",
    ]);
    let text = round(&[
        "create packet-generator interface pg0",
        "set interface feature pg0 ip4-sv-reassembly-output-feature arc ip4-output",
        "set interface feature pg0 ip4-sv-reassembly-output-feature arc ip4-output disable",
    ]);
    // A drawn MAC address is saved; a feature that was switched on and off again is not.
    assert!(text.contains("pg0 hw-addr 02:fe:") && !text.contains("feature"), "{text}");
}

#[test]
fn in_which_order_tables_were_made_is_not_told() {
    let tables = ["ip table add 2", "ip table add 1"];
    let ranges = [
        "set arp proxy table-ID 2 start 10.1.0.1 end 10.1.0.9",
        "set arp proxy table-ID 1 start 10.1.0.1 end 10.1.0.9",
    ];
    let shown = |lines: &[&str]| {
        let mut router = router();
        for line in lines {
            router.cli(line).unwrap();
        }
        shown(&mut router)
    };
    let (one, other) = (shown(&[tables, ranges].concat()), shown(&[[tables[1], tables[0]], ranges].concat()));
    assert_eq!(one, other);
}

#[test]
fn addresses_and_tables() {
    same(&[
        "set ip flow-hash table 0 src dst symmetric",
        "ip table add 7 customers",
        "ip table add 9",
        "ip6 table add 7",
        "set ip6 flow-hash table 7 src dst flowlabel",
        "create loopback interface instance 0",
        "create loopback interface instance 1",
        "create loopback interface instance 2",
        "create loopback interface instance 3",
        "set interface unnumbered loop2 use loop3",
        "set interface ip table loop0 7",
        "set interface ip directed-broadcast loop0 enable",
        "set interface ip6 table loop1 7",
        "set interface ip address loop0 10.0.0.2/24",
        "set interface ip address loop0 10.0.0.1/24",
        "enable ip6 interface loop1",
        "set ip6 link-local address loop1 fe80::77",
        "set interface ip address loop1 2001:db8::1/64",
        "set interface ip address loop3 10.3.0.1/32",
    ]);
}

#[test]
fn routes_of_every_kind() {
    same(&[
        "ip table add 7",
        "ip6 table add 7",
        "create loopback interface instance 0",
        "create loopback interface instance 1",
        "set interface ip address loop0 10.0.0.1/24",
        "set interface ip address loop0 2001:db8::1/64",
        "ip route add 0.0.0.0/0 via 10.0.0.9",
        "ip route add 20.0.0.0/8 via drop",
        "ip route add 20.1.0.0/16 via unreachable",
        "ip route add 20.2.0.0/16 via prohibit",
        "ip route add 20.3.0.0/16 via punt",
        "ip route add 20.4.0.0/16 via local",
        "ip route add 20.5.0.0/16 via ip4-lookup-in-table 7",
        "ip route add 20.6.0.0/16 via rx-ip4 loop1",
        "ip route add 20.7.0.0/16 via loop1",
        "ip route add 20.8.0.0/16 via 10.0.0.2 loop0 weight 2 via 10.0.0.3 loop0 preference 1",
        "ip route add 20.9.0.0/16 via 10.0.0.2 loop0 resilient via 10.0.0.3 loop0 resilient",
        "ip route add 20.10.0.0/16 via 10.0.0.2 next-hop-table 7",
        "ip route add 20.11.0.0/16 via 2001:db8::2",
        "ip route add 20.12.0.1/32 via 20.12.0.1 loop1",
        "ip route add 30.0.0.0/8 table 7 via 10.0.0.2 next-hop-table 0",
        "ip route add 31.0.0.0/8 table 7 via 30.0.0.1",
        "ip route add ::/0 via 2001:db8::2 loop0",
        "ip route add 2a00::/16 via ip6-lookup-in-table 7",
        "ip route add 2a01::/16 via rx-ip6 loop1",
        "ip route add 2a02::/16 table 7 via 2001:db8::2 next-hop-table 0 weight 3 via drop",
        "ip mroute add 232.1.1.1/32 via local Forward via loop0 Accept",
        "ip mroute add 192.0.2.1 232.1.1.1 Signal via loop0 Accept Negate-Signal",
        "ip mroute add table 7 239.1.0.0/16 Accept-all-itf via loop1 Forward",
        "ip mroute add 2001:db8::1 ff3e::1 Drop via loop0 Accept",
        "set ip route counters enable table 7",
        "set ip6 route counters enable 2a00::/16 table 0",
    ]);
}

#[test]
fn neighbours_and_who_answers_for_them() {
    same(&[
        "set ip neighbor-config ip4 limit 1000 age 300 recycle",
        "set ip neighbor-config ip6 interface-limit 10",
        "set ip6 dad transmits 2",
        "ip table add 7",
        "create loopback interface instance 0",
        "set interface proxy-arp loop0 enable",
        "ip6 nd loop0 ra-managed-config-flag ra-suppress-link-layer ra-interval 1800 30 ra-lifetime 1800 \
         ra-initial 2 8",
        "ip6 nd loop0 prefix 2001:db8:1::/64 infinite",
        "ip6 nd loop0 prefix 2001:db8:2::/64 3600 1800 off-link no-autoconfig no-advertise",
        "ip6 nd loop0 prefix 2001:db8:3::/64",
        "set interface ip address loop0 10.0.0.1/24",
        "set interface ip address loop0 2001:db8::1/64",
        "set ip neighbor loop0 10.0.0.2 02:fe:00:00:00:02 static",
        "set ip neighbor loop0 10.0.0.3 02:fe:00:00:00:03 static no-fib-entry",
        "set ip neighbor loop0 10.0.0.4 02:fe:00:00:00:04",
        "set ip neighbor loop0 10.0.0.5 02:fe:00:00:00:05 no-fib-entry",
        "set ip neighbor loop0 2001:db8::2 02:fe:00:00:00:02 static",
        "set arp proxy start 10.0.1.10 end 10.0.1.20",
        "set arp proxy table-ID 7 start 10.0.2.10 end 10.0.2.20",
        "ip6 nd proxy 2001:db8:1::9 loop0",
    ]);
    // What the network says is not configuration.
    let text = round(&[
        "create packet-generator interface pg0 hw-addr 02:fe:00:00:00:01",
        "set interface ip address pg0 10.0.0.1/24",
        "set interface state pg0 up",
        "ip6 nd address autoconfig pg0 default-route",
    ]);
    assert!(text.contains("ip6 nd address autoconfig pg0 default-route\n"), "{text}");
    assert!(!text.contains("set ip neighbor"), "{text}");
}

#[test]
fn addresses_by_router_advertisement_are_not_configuration() {
    use shoal_ip6::Ip6;
    let mut router = router();
    router.cli("create loopback interface instance 0").unwrap();
    router.cli("set interface ip address loop0 2001:db8:1::1/64").unwrap();
    let (ip6, loop0) = (router.get::<Ip6>(), router.interfaces().by_name("loop0").unwrap());
    ip6.add_address(loop0, "2001:db8:2::1/64".parse().unwrap()).unwrap();
    ip6.set_learnt(loop0, "2001:db8:2::1".parse().unwrap());
    let text = shown(&mut router);
    assert!(text.contains("2001:db8:1::1/64") && !text.contains("2001:db8:2::1"), "{text}");
    // The operator's own, after the network's has gone.
    router.cli("set interface ip address del loop0 2001:db8:2::1/64").unwrap();
    router.cli("set interface ip address loop0 2001:db8:2::1/64").unwrap();
    assert!(shown(&mut router).contains("2001:db8:2::1/64"));
}

#[test]
fn features_of_the_stack() {
    same(&[
        "set adj counters enable",
        "set ip icmp rate-limit 1000 burst 50",
        "set ip6 icmp rate-limit 0 burst 100",
        "set ip local-reassembly ip6",
        "set ip4-full-reassembly timeout 30000 max-fragments 64",
        "set ip6-sv-reassembly expire-walk-interval 500",
        "set ip pmtu-learning off lifetime 900 least 576",
        "set handoff default auto",
        "ip table add 7",
        "create loopback interface instance 0",
        "set interface reassembly loop0 ip4",
        "set interface sv-reassembly loop0 on",
        "set interface sv-reassembly loop0 ip6 output",
        "set interface handoff loop0 auto symmetrical outer",
        "set urpf ip4 rx strict table 7 loop0",
        "set urpf ip6 tx loose loop0",
        "set interface tcp-mss-clamp loop0 ip4 enable ip4-mss 1400 ip6 tx ip6-mss 1380",
        "set interface ip address loop0 10.0.0.1/24",
        "set interface ip address loop0 2001:db8::1/64",
        "set ip pmtu 2001:db8:9::1 1300",
        "set ip pmtu 192.0.2.1 1400 table 7",
        "set punt ip4 udp port 53",
        "set punt ip6 tcp all",
        "set punt ip6 ip-proto 89",
        "ip punt policer add rate 10000 burst 77",
        "ip punt redirect add rx all via 10.0.0.9",
        "ip punt redirect add rx loop0 via 10.0.0.2 loop0",
        "ip6 punt policer add rate 20000 burst 2000",
        "ip6 punt redirect add rx all via 2001:db8::2 loop0",
        "igmp enable host loop0",
        "igmp listen enable int loop0 saddr 0.0.0.0 gaddr 232.1.1.1",
        "igmp listen enable int loop0 saddr 192.0.2.1 gaddr 232.1.1.2",
        "abf policy add id 1 ip4 src 10.0.0.0/8 proto tcp dport 80-90 via 10.0.0.2 loop0 weight 2 via 10.0.0.3",
        "abf policy add id 3 ip6 dscp 46 tcp-flags syn,!ack via drop",
        "abf attach ip4 policy 1 priority 5 loop0",
        "abf attach ip6 policy 3 loop0",
        "set interface state loop0 up",
        "lcp default netns dataplane",
        "lcp lcp-sync on",
    ]);
    same(&["create loopback interface instance 0", "set interface handoff loop0 disable"]);
}

#[test]
fn commands_about_workers_name_those_there_are() {
    let mut router = router();
    for line in [
        "create worker",
        "create loopback interface instance 0",
        "set interface handoff loop0 workers 0 flow-label",
    ] {
        router.cli(line).unwrap();
    }
    let text = shown(&mut router);
    assert!(text.starts_with("# system\ncreate worker\n"), "{text}");
    assert!(text.contains("set interface handoff loop0 workers 0 flow-label\n"), "{text}");
    assert_eq!(shown(&mut rebuilt(&text)), text);
}

mod any_sequence {
    use super::*;
    use proptest::prelude::*;

    fn interface() -> impl Strategy<Value = String> {
        prop_oneof!["loop[0-2]", "pg[0-2]", "[a-c]"].boxed()
    }

    fn address() -> impl Strategy<Value = String> {
        prop_oneof![
            (0..3u8, 1..4u8).prop_map(|(net, host)| format!("10.0.{net}.{host}")),
            (0..3u8, 1..4u8).prop_map(|(net, host)| format!("2001:db8:{net}::{host}")),
            (0..3u8).prop_map(|n| format!("20.{n}.0.0")),
            (0..3u8).prop_map(|n| format!("2a00:{n}::")),
        ]
    }

    fn prefix() -> impl Strategy<Value = String> {
        (address(), 0..4usize).prop_map(|(address, at)| {
            let lens = if address.contains(':') { [128, 64, 32, 0] } else { [32, 24, 16, 0] };
            format!("{address}/{}", lens[at])
        })
    }

    fn path() -> impl Strategy<Value = String> {
        let words = prop_oneof![
            Just("drop".to_owned()),
            Just("local".to_owned()),
            Just("punt".to_owned()),
            interface(),
            address(),
            (address(), interface()).prop_map(|(a, i)| format!("{a} {i}")),
            (address(), 0..3u8).prop_map(|(a, t)| format!("{a} next-hop-table {t}")),
            (prop_oneof!["ip4", "ip6"], 0..3u8).prop_map(|(f, t)| format!("{f}-lookup-in-table {t}")),
            (prop_oneof!["ip4", "ip6"], interface()).prop_map(|(f, i)| format!("rx-{f} {i}")),
        ];
        let more = prop_oneof![
            3 => Just(""),
            1 => Just(" weight 3"),
            1 => Just(" preference 1"),
            1 => Just(" resilient"),
        ];
        (words, more).prop_map(|(words, more)| format!(" via {words}{more}"))
    }

    fn on_interface() -> impl Strategy<Value = String> {
        let said = prop_oneof![
            Just("set interface state IF up"),
            Just("set interface state IF down"),
            Just("set interface mtu 1400 IF"),
            Just("set interface mtu 9000 IF"),
            Just("set interface mtu ip6 1300 IF"),
            Just("set interface tag IF north"),
            Just("set interface promiscuous on IF"),
            Just("set interface mac address IF 02:fe:00:00:00:0N"),
            Just("set interface name IF a"),
            Just("set interface name IF b"),
            Just("set interface name IF loopN"),
            Just("set interface ip table IF N"),
            Just("set interface ip6 table IF N"),
            Just("set interface ip address IF 10.0.N.1/24"),
            Just("set interface ip address IF 10.0.N.2/24"),
            Just("set interface ip address IF 2001:db8:N::1/64"),
            Just("set interface ip address del IF all"),
            Just("set interface ip directed-broadcast IF enable"),
            Just("enable ip6 interface IF"),
            Just("disable ip6 interface IF"),
            Just("set ip6 link-local address IF fe80::N"),
            Just("set interface unnumbered IF use loopN"),
            Just("set interface unnumbered del IF"),
            Just("set interface proxy-arp IF enable"),
            Just("set interface reassembly IF on"),
            Just("set interface sv-reassembly IF ip4 output"),
            Just("set interface tcp-mss-clamp IF ip4 rx ip4-mss 140N"),
            Just("set interface handoff IF auto"),
            Just("set urpf ip4 rx strict table N IF"),
            Just("set urpf ip6 tx loose IF"),
            Just("set urpf ip4 rx off IF"),
            Just("set ip neighbor IF 10.0.N.3 02:00:00:00:00:09 static"),
            Just("set ip neighbor IF 2001:db8:N::3 02:00:00:00:00:09 static no-fib-entry"),
            Just("set ip neighbor del IF 10.0.N.3"),
            Just("ip6 nd IF ra-interval 1800 30 ra-lifetime 1800"),
            Just("ip6 nd IF prefix 2001:db8:N::/64 infinite"),
            Just("ip6 nd proxy 2001:db8:9::N IF"),
            Just("ip6 nd address autoconfig IF default-route"),
            Just("ip mroute add 232.1.1.N via IF Accept via local Forward"),
            Just("ip mroute add table N 192.0.2.1 232.1.1.1 Signal via IF Forward"),
            Just("ip mroute del 232.1.1.N via IF Accept"),
            Just("igmp enable host IF"),
            Just("igmp listen int IF saddr 192.0.2.N gaddr 232.2.2.2"),
            Just("ip punt redirect add rx IF via 10.0.N.2"),
            Just("ip6 punt redirect add rx all via 2001:db8:N::2 IF"),
            Just("abf policy add id N ip4 dst 20.0.0.0/8 via 10.0.N.2 IF weight 2"),
            Just("abf attach ip4 policy N priority N IF"),
            Just("delete packet-generator interface IF"),
            Just("delete loopback interface intfc IF"),
        ];
        (said, interface(), 0..3u8)
            .prop_map(|(said, interface, n)| said.replace("IF", &interface).replace('N', &n.to_string()))
    }

    fn of_the_router() -> impl Strategy<Value = String> {
        let said = prop_oneof![
            Just("create loopback interface instance N"),
            Just("create loopback interface mac 02:fe:00:00:00:0N"),
            Just("create packet-generator interface pgN hw-addr 02:fe:00:00:01:0N"),
            Just("ip table add N nameN"),
            Just("ip6 table add N"),
            Just("ip table del N"),
            Just("ip6 table del N"),
            Just("set ip flow-hash table N src dst"),
            Just("set arp proxy table-ID N start 10.1.0.1 end 10.1.0.9"),
            Just("set ip pmtu 20.0.0.1 140N table N"),
            Just("set ip route counters enable table N"),
            Just("set ip6 route counters enable ::/0 table N"),
            Just("set ip icmp rate-limit 50N"),
            Just("set ip6-full-reassembly timeout 5000N"),
            Just("set punt ip6 udp 5N"),
            Just("set punt udp all"),
            Just("set ip neighbor-config ip6 limit 10N recycle"),
            Just("set superpath off"),
            Just("set superpath on"),
        ];
        (said, 0..3u8).prop_map(|(said, n)| said.replace('N', &n.to_string()))
    }

    fn line() -> impl Strategy<Value = String> {
        let route = (prop_oneof![3 => Just("add"), 1 => Just("del")], prefix(), 0..3u8, path(), path());
        prop_oneof![
            3 => on_interface(),
            1 => of_the_router(),
            1 => route.prop_map(|(verb, prefix, table, one, two)| {
                format!("ip route {verb} {prefix} table {table}{one}{two}")
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, max_shrink_iters: 300, ..ProptestConfig::default() })]
        #[test]
        fn rebuilds_itself(lines in proptest::collection::vec(line(), 40..160)) {
            let mut first = router();
            first.may_hold(4096);
            for n in 0..3 {
                first.cli(&format!("create loopback interface instance {n}")).unwrap();
                first.cli(&format!("create packet-generator interface pg{n} hw-addr 02:fe:00:00:01:0{n}")).unwrap();
            }
            // What is refused changes nothing.
            for line in &lines {
                let _ = first.cli(line);
            }
            let text = shown(&mut first);
            let mut other = rebuilt(&text);
            other.may_hold(4096);
            prop_assert_eq!(shown(&mut other), text);
        }
    }
}
