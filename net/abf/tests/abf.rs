//! Packets that take a policy's way; each case in both families.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::net::IpAddr;
use std::rc::Rc;

use shoal_abf::{Abf, AbfError};
use shoal_fib::{Family, Fib, FibIndex, Path, Source, Via};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::cli::{Args, CliError, Output, Run};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_rule::{Ports, Rule};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_wire::packet::Fragment;
use shoal_wire::{IpPrefix, IpProtocol, MacAddress};

const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];

/// Four networks, each with a host that is known; far networks are behind pg1.
fn router() -> (Router, Vec<Port>) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_rule::MODULE, &shoal_abf::MODULE]);
    let mut router = Router::new(&modules);
    let ports: Vec<Port> = (0..4).map(|n| router.pg(n)).collect();
    for (n, port) in ports.iter().enumerate() {
        let ip4 = router.get::<Ip4>();
        ip4.add_address(port.index(), format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
        let ip6 = router.get::<Ip6>();
        ip6.add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
        let (mac, i) = (MacAddress([2, 0xaa, 0, 0, 0, n as u8]), port.index());
        for host in 2..4 {
            let arp = router.get::<shoal_arp::Neighbours>();
            let key = (i, format!("10.0.{n}.{host}").parse().unwrap());
            arp.set(key, mac, Origin::Static, FibEntry::Wanted).unwrap();
            let nd = router.get::<shoal_ip6_nd::Neighbours>();
            let key = (i, format!("2001:db8:{n}::{host}").parse().unwrap());
            nd.set(key, mac, Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    for family in FAMILIES {
        route(&router, network(family), &[via(family, 1, &ports)]);
    }
    router.advance(std::time::Duration::from_secs(3));
    for port in &ports {
        port.received();
    }
    (router, ports)
}

fn near(family: Family, n: usize) -> IpAddr {
    match family {
        Family::Ip4 => format!("10.0.{n}.2").parse().unwrap(),
        Family::Ip6 => format!("2001:db8:{n}::2").parse().unwrap(),
    }
}

fn far(family: Family) -> IpAddr {
    match family {
        Family::Ip4 => "20.0.0.9".parse().unwrap(),
        Family::Ip6 => "2001:f::9".parse().unwrap(),
    }
}

fn network(family: Family) -> IpPrefix {
    match family {
        Family::Ip4 => "20.0.0.0/8".parse().unwrap(),
        Family::Ip6 => "2001:f::/32".parse().unwrap(),
    }
}

fn route(router: &Router, to: IpPrefix, paths: &[Path]) {
    router.get::<Fib>().add(FibIndex::DEFAULT, to, Source::Cli, paths).unwrap();
}

fn via(family: Family, n: usize, ports: &[Port]) -> Path {
    Path::next_hop(near(family, n), ports[n].index())
}

fn dport(family: Family, port: u16) -> Rule {
    Rule {
        protocol: Some(IpProtocol::UDP),
        dport: Some(Ports { first: port, last: port }),
        ..Rule::any(family)
    }
}

fn towards(ports: &[Port], dst: IpAddr) -> PacketBuilder {
    let frame = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 0], ports[0].mac());
    match (near(Family::of(dst), 0), dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => frame.ip4(src, dst),
        (IpAddr::V6(src), IpAddr::V6(dst)) => frame.ip6(src, dst),
        _ => unreachable!(),
    }
}

fn is_udp(packet: &[u8]) -> bool {
    match packet[14] >> 4 {
        4 => packet[23] == 17,
        _ => [17, 44].contains(&packet[20]),
    }
}

/// The port by which a packet to a port of the far host leaves.
fn way(router: &mut Router, ports: &[Port], packet: &PacketBuilder) -> Option<usize> {
    router.send(&ports[0], packet.clone().build());
    let out: Vec<usize> = ports.iter().map(|p| p.received().iter().filter(|p| is_udp(p)).count()).collect();
    assert!(out.iter().sum::<usize>() <= 1);
    out.iter().position(|n| *n == 1)
}

fn to_port(router: &mut Router, ports: &[Port], family: Family, port: u16) -> Option<usize> {
    way(router, ports, &towards(ports, far(family)).udp(1000, port).payload_len(20))
}

fn run(router: &Router, command: &str, items: &str) -> Result<Output, CliError> {
    let command = shoal_abf::cli::COMMANDS.iter().find(|c| c.syntax.starts_with(command)).unwrap();
    let start = Args::new(Rc::clone(router.control()), items);
    let args = items.split_whitespace().fold(start, |args, item| match item.split_once('=') {
        Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
        None => args.with_word(item.to_owned().leak(), 0..0),
    });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args)
}

#[test]
fn packets_that_match_take_the_policys_way_and_others_their_route() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let abf = router.get::<Abf>();
        abf.add(1, dport(family, 80), &[via(family, 2, &ports)]).unwrap();
        assert_eq!(to_port(&mut router, &ports, family, 80), Some(1), "not attached");
        abf.attach(family, ports[0].index(), 1, 10).unwrap();
        assert_eq!(to_port(&mut router, &ports, family, 80), Some(2));
        assert_eq!(to_port(&mut router, &ports, family, 81), Some(1));
        // Also what has no route at all.
        router.get::<Fib>().remove(FibIndex::DEFAULT, network(family), Source::Cli).unwrap();
        assert_eq!(to_port(&mut router, &ports, family, 80), Some(2));
        let info = &abf.policies()[0];
        assert_eq!(info.packets, 2);
        assert_eq!(router.error(&format!("abf-input-{family}"), "matched"), 2);
        abf.detach(family, ports[0].index(), 1).unwrap();
        assert_eq!(to_port(&mut router, &ports, family, 80), None);
        let on = |(_, list): (_, Vec<(String, bool)>)| list.iter().any(|(n, on)| *on && n.contains("abf"));
        assert!(!router.graph().features(Some(ports[0].index())).into_iter().any(on));
    }
}

#[test]
fn the_lowest_priority_is_asked_first() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let abf = router.get::<Abf>();
        abf.add(1, Rule::any(family), &[via(family, 2, &ports)]).unwrap();
        abf.add(2, dport(family, 80), &[via(family, 3, &ports)]).unwrap();
        abf.attach(family, ports[0].index(), 1, 20).unwrap();
        abf.attach(family, ports[0].index(), 2, 10).unwrap();
        assert_eq!(to_port(&mut router, &ports, family, 80), Some(3));
        assert_eq!(to_port(&mut router, &ports, family, 81), Some(2));
        abf.detach(family, ports[0].index(), 2).unwrap();
        assert_eq!(to_port(&mut router, &ports, family, 80), Some(2));
    }
}

#[test]
fn paths_may_be_many_recursive_or_nowhere_and_are_followed() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let (abf, fib) = (router.get::<Abf>(), router.get::<Fib>());
        abf.add(1, Rule::any(family), &[via(family, 2, &ports), via(family, 3, &ports)]).unwrap();
        abf.attach(family, ports[0].index(), 1, 0).unwrap();
        let flows = |router: &mut Router| {
            let ways = (0..64).map(|flow| to_port(router, &ports, family, flow).unwrap());
            ways.collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(flows(&mut router), [2, 3].into());
        router.interfaces().set_admin(ports[3].index(), false).unwrap();
        assert_eq!(flows(&mut router), [2].into());
        router.interfaces().set_admin(ports[3].index(), true).unwrap();
        // Recursive: by way of the far network, wherever that is.
        abf.add(2, dport(family, 80), &[Path::recursive(far(family), FibIndex::DEFAULT)]).unwrap();
        abf.attach(family, ports[0].index(), 2, 0).unwrap();
        abf.detach(family, ports[0].index(), 1).unwrap();
        assert_eq!(to_port(&mut router, &ports, family, 80), Some(1));
        route(&router, network(family), &[via(family, 2, &ports)]);
        assert_eq!(to_port(&mut router, &ports, family, 80), Some(2));
        // Another table.
        let other = fib.add_table(family, 7, None).unwrap();
        fib.add(other, network(family), Source::Cli, &[via(family, 3, &ports)]).unwrap();
        abf.add(3, dport(family, 81), &[Via::Lookup(other).into()]).unwrap();
        abf.attach(family, ports[0].index(), 3, 0).unwrap();
        assert_eq!(to_port(&mut router, &ports, family, 81), Some(3));
        abf.add(4, dport(family, 82), &[Via::Drop.into()]).unwrap();
        abf.attach(family, ports[0].index(), 4, 0).unwrap();
        assert_eq!(to_port(&mut router, &ports, family, 82), None);
        assert_eq!(router.error(&format!("{family}-drop"), "blackholed packets"), 1);
        assert_eq!(fib.check(), Vec::<String>::new());
    }
}

#[test]
fn a_policy_gets_and_loses_paths_while_it_is_attached() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let abf = router.get::<Abf>();
        abf.add(1, dport(family, 80), &[via(family, 2, &ports)]).unwrap();
        abf.attach(family, ports[0].index(), 1, 0).unwrap();
        abf.add(1, dport(family, 80), &[via(family, 3, &ports)]).unwrap();
        assert_eq!(abf.policies()[0].paths.len(), 2);
        abf.remove(1, &[via(family, 2, &ports)]).unwrap();
        assert_eq!(to_port(&mut router, &ports, family, 80), Some(3));
        assert!(matches!(abf.remove(1, &[via(family, 3, &ports)]), Err(AbfError::Attached { .. })));
        assert!(matches!(abf.remove(1, &[]), Err(AbfError::Attached { .. })));
        abf.detach(family, ports[0].index(), 1).unwrap();
        abf.remove(1, &[]).unwrap();
        assert_eq!(abf.policies(), []);
        assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
    }
}

#[test]
fn fragments_and_options_are_no_way_around_a_rule_without_ports() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let abf = router.get::<Abf>();
        let udp = Rule { protocol: Some(IpProtocol::UDP), ..Rule::any(family) };
        abf.add(1, udp, &[via(family, 2, &ports)]).unwrap();
        abf.attach(family, ports[0].index(), 1, 0).unwrap();
        let start = towards(&ports, far(family));
        let packets = match family {
            Family::Ip4 => [
                start.clone().fragment(64, Fragment::Last).udp(1, 2),
                start.options(&[1, 1, 1, 0]).udp(1, 2).payload_len(8),
            ],
            Family::Ip6 => [
                start.clone().ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &[0, 64, 0, 0, 0, 7]).udp(1, 2),
                start.ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &[0, 1, 0, 0, 0, 7]).udp(1, 2).payload_len(8),
            ],
        };
        for packet in packets {
            assert_eq!(way(&mut router, &ports, &packet), Some(2));
        }
    }
}

#[test]
fn headers_cut_short_at_any_byte_go_their_way() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let abf = router.get::<Abf>();
        abf.add(1, dport(family, 80), &[via(family, 2, &ports)]).unwrap();
        abf.attach(family, ports[0].index(), 1, 0).unwrap();
        let whole = towards(&ports, far(family)).udp(1, 80).payload_len(8).build();
        for n in 0..whole.len() {
            router.send(&ports[0], &whole[..n]);
        }
        // Straight into the node, which then must not rely on anybody's checks.
        let node = format!("abf-input-{family}");
        for n in 0..whole.len() - 14 {
            router.inject(&node, ports[0].index(), &whole[14..14 + n]);
        }
        router.run();
        for port in &ports {
            port.received();
        }
        assert_eq!(to_port(&mut router, &ports, family, 80), Some(2));
    }
}

#[test]
fn a_deleted_interface_takes_its_attachments_and_paths() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let abf = router.get::<Abf>();
        abf.add(1, dport(family, 80), &[via(family, 2, &ports), via(family, 3, &ports)]).unwrap();
        abf.add(2, dport(family, 81), &[via(family, 3, &ports)]).unwrap();
        for policy in [1, 2] {
            abf.attach(family, ports[0].index(), policy, 0).unwrap();
        }
        abf.attach(family, ports[3].index(), 1, 0).unwrap();
        router.generator().delete_interface(ports[3].index()).unwrap();
        assert_eq!(abf.attachments().len(), 2);
        let alive = &ports[..3];
        assert_eq!(to_port(&mut router, alive, family, 80), Some(2));
        assert_eq!(to_port(&mut router, alive, family, 81), None, "it must not take another way");
        assert_eq!(abf.policies()[1].paths[..], [Via::Drop.into()]);
        assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
    }
}

#[test]
fn what_contradicts_is_refused_and_nothing_changes() {
    let (router, ports) = router();
    let abf = router.get::<Abf>();
    let (ip4, pg0) = (Family::Ip4, ports[0].index());
    assert_eq!(abf.attach(ip4, pg0, 1, 0), Err(AbfError::NoPolicy { id: 1, nearest: None }));
    abf.add(5, dport(ip4, 80), &[via(ip4, 2, &ports)]).unwrap();
    assert_eq!(abf.attach(ip4, pg0, 1, 0), Err(AbfError::NoPolicy { id: 1, nearest: Some(5) }));
    assert!(matches!(
        abf.add(5, dport(ip4, 81), &[via(ip4, 2, &ports)]),
        Err(AbfError::OtherRule { id: 5, .. })
    ));
    assert_eq!(abf.attach(Family::Ip6, pg0, 5, 0), Err(AbfError::Family { id: 5, family: ip4 }));
    assert!(matches!(abf.attach(ip4, shoal_interface::SwIfIndex(99), 5, 0), Err(AbfError::Interface(_))));
    assert!(matches!(abf.detach(ip4, pg0, 5), Err(AbfError::NotAttached { .. })));
    abf.attach(ip4, pg0, 5, 7).unwrap();
    let again = abf.attach(ip4, pg0, 5, 8).unwrap_err().to_string();
    assert_eq!(again, "policy 5 is attached to pg0 already, with priority 7");
    assert!(matches!(abf.remove(5, &[via(ip4, 3, &ports)]), Err(AbfError::NoPath { count: 1, .. })));
    assert!(matches!(abf.add(6, Rule::any(ip4), &[]), Err(AbfError::Fib(_))));
    let nowhere = Path::next_hop(near(ip4, 1), shoal_interface::SwIfIndex(99));
    assert!(matches!(abf.add(6, Rule::any(ip4), &[nowhere]), Err(AbfError::Fib(_))));
    assert!(matches!(abf.add(5, dport(ip4, 80), &[nowhere]), Err(AbfError::Fib(_))));
    assert_eq!((abf.policies().len(), abf.policies()[0].paths.len()), (1, 1));
    for id in 100..100 + 1023 {
        abf.add(id, dport(ip4, 80), &[via(ip4, 2, &ports)]).unwrap();
        abf.attach(ip4, pg0, id, 0).unwrap();
    }
    abf.add(2000, dport(ip4, 80), &[via(ip4, 2, &ports)]).unwrap();
    assert!(matches!(abf.attach(ip4, pg0, 2000, 0), Err(AbfError::TooMany(_))));
}

#[test]
fn commands_make_and_show_policies() {
    let (router, _) = router();
    let policy = "abf policy";
    run(&router, policy, "add id=1 src=10.0.0.0/8 proto=tcp dport=80-90 via next-hop=10.0.2.2 interface=pg2")
        .unwrap();
    run(&router, policy, "add id=1 via next-hop=10.0.3.2 interface=pg3 weight=2").unwrap();
    run(&router, policy, "add id=2 ip6 dscp=ef tcp-flags=syn,!ack via drop").unwrap();
    run(&router, "abf attach", "ip4 policy=1 priority=10 interface=pg0").unwrap();
    run(&router, "abf attach", "ip6 policy=2 interface=pg0").unwrap();
    let text = run(&router, "show abf policy", "").unwrap().to_text();
    assert!(
        text.starts_with(
            "abf:[1]: policy:1 rule:[ip4 src 10.0.0.0/8 proto tcp dport 80-90]\n  matched 0 packets"
        ),
        "{text}"
    );
    assert!(text.contains("  via 10.0.2.2 pg2 weight 1 preference 0\n  via 10.0.3.2 pg3 weight 2"), "{text}");
    assert!(text.contains("abf:[2]: policy:2 rule:[ip6 dscp 46 tcp-flags syn,!ack]"), "{text}");
    let json = run(&router, "show abf policy", "policy=1").unwrap().to_json();
    assert_eq!(json[0]["paths"].as_array().unwrap().len(), 2);
    assert_eq!(
        run(&router, "show abf attach", "").unwrap().to_text(),
        "pg0 ip4:\n  abf-interface-attach: policy:1 priority:10\n\
         pg0 ip6:\n  abf-interface-attach: policy:2 priority:0\n"
    );
    run(&router, "abf attach", "ip4 del policy=1 interface=pg0").unwrap();
    run(&router, policy, "del id=1").unwrap();
    let wrong = |items: &str| match run(&router, policy, items).unwrap_err() {
        CliError::Argument { name, message, .. } => format!("{name}: {message}"),
        CliError::Failed(message) => message,
    };
    assert_eq!(wrong("del id=1"), "id: no policy 1, nearest 2");
    assert_eq!(wrong("add id=3 src=10.0.0.0/8"), "id: a policy needs at least one `via'");
    let mixed = wrong("add id=3 src=10.0.0.0/8 dst=2001:db8::/32 via drop");
    assert!(mixed.starts_with("dst: 2001:db8::/32 is no prefix of ip4"), "{mixed}");
    assert!(wrong("add id=3 proto=icmp dport=80 via drop").starts_with("proto: ICMP has no ports"));
    assert_eq!(wrong("del id=2"), "id: policy 2 is attached to pg0; detach it first");
}
