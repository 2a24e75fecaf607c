//! Sources that are not where their packets come from. RFC 3704; each case in both families.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::net::IpAddr;
use std::rc::Rc;

use shoal_fib::{Family, Fib, FibIndex, Path, Source, Via};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::cli::{Args, CliError, Output, Run};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_urpf::{Direction, Mode, Setting, Urpf, UrpfError};
use shoal_wire::{IpPrefix, MacAddress};

const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];

/// Three networks, each with a host that is known: 10.0.N.2 and 2001:db8:N::2 behind pgN.
fn router() -> (Router, Vec<Port>) {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_ip6_nd::MODULE);
    modules.push(&shoal_urpf::MODULE);
    let mut router = Router::new(&modules);
    let ports: Vec<Port> = (0..3).map(|n| router.pg(n)).collect();
    for (n, port) in ports.iter().enumerate() {
        let ip4 = router.get::<Ip4>();
        ip4.add_address(port.index(), format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
        let ip6 = router.get::<Ip6>();
        ip6.add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
        let (mac, i) = (host(n), port.index());
        let arp = router.get::<shoal_arp::Neighbours>();
        arp.set((i, format!("10.0.{n}.2").parse().unwrap()), mac, Origin::Static, FibEntry::Wanted).unwrap();
        let nd = router.get::<shoal_ip6_nd::Neighbours>();
        nd.set((i, format!("2001:db8:{n}::2").parse().unwrap()), mac, Origin::Static, FibEntry::Wanted)
            .unwrap();
    }
    router.advance(std::time::Duration::from_secs(3));
    for port in &ports {
        port.received();
    }
    (router, ports)
}

fn host(n: usize) -> MacAddress {
    MacAddress([2, 0xaa, 0, 0, 0, n as u8])
}

/// An address of the far network N, or of the network behind port N.
fn far(family: Family, n: usize) -> IpAddr {
    match family {
        Family::Ip4 => format!("20.0.{n}.9").parse().unwrap(),
        Family::Ip6 => format!("2001:f:{n}::9").parse().unwrap(),
    }
}

fn near(family: Family, n: usize) -> IpAddr {
    match family {
        Family::Ip4 => format!("10.0.{n}.2").parse().unwrap(),
        Family::Ip6 => format!("2001:db8:{n}::2").parse().unwrap(),
    }
}

/// The prefix of a far network, or the default route.
fn network(family: Family, n: Option<usize>) -> IpPrefix {
    match (family, n) {
        (Family::Ip4, Some(_)) => IpPrefix::new(far(family, n.unwrap()), 24).unwrap().normalized(),
        (Family::Ip6, Some(_)) => IpPrefix::new(far(family, n.unwrap()), 48).unwrap().normalized(),
        (Family::Ip4, None) => "0.0.0.0/0".parse().unwrap(),
        (Family::Ip6, None) => "::/0".parse().unwrap(),
    }
}

fn route(router: &Router, to: IpPrefix, paths: &[Path]) {
    router.get::<Fib>().add(FibIndex::DEFAULT, to, Source::Cli, paths).unwrap();
}

fn via(family: Family, n: usize, ports: &[Port]) -> Path {
    Path::next_hop(near(family, n), ports[n].index())
}

fn set(router: &Router, port: &Port, family: Family, direction: Direction, mode: Mode) {
    let setting = Setting { interface: port.index(), family, direction, mode, table: None };
    router.get::<Urpf>().set(setting).unwrap();
}

/// Whether a packet from `src` that comes in by a port leaves by the port of network `to`.
fn passes(router: &mut Router, ports: &[Port], from: usize, src: IpAddr, to: usize) -> bool {
    let frame = PacketBuilder::ethernet(host(from), ports[from].mac());
    let frame = match (src, near(Family::of(src), to)) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => frame.ip4(src, dst),
        (IpAddr::V6(src), IpAddr::V6(dst)) => frame.ip6(src, dst),
        _ => unreachable!(),
    };
    router.send(&ports[from], frame.udp(1, 2).payload_len(20).build());
    let is_udp = |packet: &Vec<u8>| [packet[23], packet[20]].contains(&17);
    ports[to].received().iter().any(is_udp)
}

fn dropped(router: &Router, node: &str) -> u64 {
    router.error(node, "uRPF Drop")
}

fn run(router: &Router, command: &str, items: &str) -> Result<Output, CliError> {
    let command = shoal_urpf::cli::COMMANDS.iter().find(|c| c.syntax.starts_with(command)).unwrap();
    let start = Args::new(Rc::clone(router.control()), items);
    let args = items.split_whitespace().fold(start, |args, item| match item.split_once('=') {
        Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
        None => args.with_word(item.to_owned().leak(), 0..0),
    });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args)
}

#[test]
fn strict_takes_a_source_only_from_where_it_is() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        route(&router, network(family, Some(1)), &[via(family, 1, &ports)]);
        assert!(passes(&mut router, &ports, 0, far(family, 1), 2), "off: no check");
        set(&router, &ports[0], family, Direction::Rx, Mode::Strict);
        assert!(passes(&mut router, &ports, 0, near(family, 0), 2));
        assert!(!passes(&mut router, &ports, 0, near(family, 1), 2), "a neighbour of another link");
        assert!(!passes(&mut router, &ports, 0, far(family, 1), 2), "behind another interface");
        assert!(!passes(&mut router, &ports, 0, far(family, 7), 2), "nowhere");
        assert!(passes(&mut router, &ports, 1, far(family, 1), 2), "the other interface is not asked");
        assert_eq!(dropped(&router, &format!("{family}-rx-urpf-strict")), 3);
    }
}

#[test]
fn loose_takes_a_source_that_is_anywhere() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        route(&router, network(family, Some(1)), &[via(family, 1, &ports)]);
        route(&router, network(family, Some(3)), &[Via::Drop.into()]);
        set(&router, &ports[0], family, Direction::Rx, Mode::Loose);
        assert!(passes(&mut router, &ports, 0, far(family, 1), 2));
        assert!(!passes(&mut router, &ports, 0, far(family, 7), 2));
        assert!(!passes(&mut router, &ports, 0, far(family, 3), 2), "a blackhole is no way: RFC 5635");
        assert_eq!(dropped(&router, &format!("{family}-rx-urpf-loose")), 2);
    }
}

#[test]
fn an_address_of_this_router_is_no_hosts_source() {
    for (family, ours) in [(Family::Ip4, "10.0.1.1"), (Family::Ip6, "2001:db8:1::1")] {
        let (mut router, ports) = router();
        for mode in [Mode::Loose, Mode::Strict] {
            set(&router, &ports[0], family, Direction::Rx, mode);
            assert!(!passes(&mut router, &ports, 0, ours.parse().unwrap(), 2));
        }
    }
}

#[test]
fn a_default_route_is_a_way_like_any_other() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        route(&router, network(family, None), &[via(family, 1, &ports)]);
        for (mode, from_the_other) in [(Mode::Loose, true), (Mode::Strict, false)] {
            set(&router, &ports[0], family, Direction::Rx, mode);
            set(&router, &ports[1], family, Direction::Rx, mode);
            assert!(passes(&mut router, &ports, 1, far(family, 5), 2), "{mode}");
            assert_eq!(passes(&mut router, &ports, 0, far(family, 5), 2), from_the_other, "{mode}");
        }
    }
}

// RFC 3704, 2.3: feasible paths.
#[test]
fn of_several_ways_each_is_one() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let two = [via(family, 0, &ports), via(family, 1, &ports).weight(7)];
        route(&router, network(family, Some(1)), &two);
        for port in &ports {
            set(&router, port, family, Direction::Rx, Mode::Strict);
        }
        for (from, passes_) in [(0, true), (1, true), (2, false)] {
            let to = if from == 2 { 0 } else { 2 };
            assert_eq!(passes(&mut router, &ports, from, far(family, 1), to), passes_, "{family} {from}");
        }
        // One of them goes: the check follows.
        route(&router, network(family, Some(1)), &[via(family, 1, &ports)]);
        assert!(!passes(&mut router, &ports, 0, far(family, 1), 2));
        // Recursive, through the route above.
        route(&router, network(family, Some(2)), &[Path::recursive(far(family, 1), FibIndex::DEFAULT)]);
        assert!(passes(&mut router, &ports, 1, far(family, 2), 2));
        assert!(!passes(&mut router, &ports, 0, far(family, 2), 2));
    }
}

#[test]
fn ways_through_another_table_are_followed() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let fib = router.get::<Fib>();
        let other = fib.add_table(family, 7, None).unwrap();
        fib.add(other, network(family, Some(1)), Source::Cli, &[via(family, 1, &ports)]).unwrap();
        let both = [Path::from(Via::Lookup(other)), via(family, 2, &ports)];
        route(&router, network(family, Some(1)), &[Via::Lookup(other).into()]);
        set(&router, &ports[0], family, Direction::Rx, Mode::Strict);
        set(&router, &ports[1], family, Direction::Rx, Mode::Strict);
        for paths in [&both[..1], &both[..]] {
            route(&router, network(family, Some(1)), paths);
            assert!(passes(&mut router, &ports, 1, far(family, 1), 2), "{family}");
            assert!(!passes(&mut router, &ports, 0, far(family, 1), 2), "{family}");
        }
        // A circle of tables ends.
        fib.add(other, network(family, Some(1)), Source::Cli, &[Via::Lookup(FibIndex::DEFAULT).into()])
            .unwrap();
        route(&router, network(family, Some(1)), &both[..1]);
        assert!(!passes(&mut router, &ports, 1, far(family, 1), 2));
    }
}

#[test]
fn a_table_may_be_chosen_and_stays_as_long_as_it_is_needed() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let fib = router.get::<Fib>();
        let other = fib.add_table(family, 9, None).unwrap();
        fib.add(other, network(family, Some(1)), Source::Cli, &[via(family, 0, &ports)]).unwrap();
        run(&router, "set urpf", &format!("{family} rx strict table=9 interface=pg0")).unwrap();
        assert!(passes(&mut router, &ports, 0, far(family, 1), 2));
        assert!(!passes(&mut router, &ports, 0, near(family, 0), 2), "not in that table");
        assert!(fib.del_table(family, 9).is_err());
        run(&router, "set urpf", &format!("{family} rx strict interface=pg0")).unwrap();
        assert!(passes(&mut router, &ports, 0, near(family, 0), 2));
        fib.remove(other, network(family, Some(1)), Source::Cli).unwrap();
        fib.del_table(family, 9).unwrap();
        assert_eq!(fib.check(), Vec::<String>::new());
    }
}

#[test]
fn on_the_way_out_a_packet_must_not_go_back_to_its_source() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        set(&router, &ports[2], family, Direction::Tx, Mode::Strict);
        assert!(passes(&mut router, &ports, 0, near(family, 0), 2));
        assert!(!passes(&mut router, &ports, 0, near(family, 2), 2), "it pretends to be of that link");
        assert!(!passes(&mut router, &ports, 0, far(family, 7), 2), "nowhere");
        assert!(passes(&mut router, &ports, 0, near(family, 2), 1), "another way out is not asked");
        assert_eq!(dropped(&router, &format!("{family}-tx-urpf-strict")), 2);
        set(&router, &ports[2], family, Direction::Tx, Mode::Loose);
        assert!(passes(&mut router, &ports, 0, near(family, 2), 2));
        assert!(!passes(&mut router, &ports, 0, far(family, 7), 2));
        assert_eq!(dropped(&router, &format!("{family}-tx-urpf-loose")), 1);
    }
}

#[test]
fn what_this_router_says_itself_is_not_asked_for_its_source() {
    let (mut router, ports) = router();
    set(&router, &ports[0], Family::Ip4, Direction::Tx, Mode::Strict);
    set(&router, &ports[0], Family::Ip6, Direction::Tx, Mode::Strict);
    let frame = || PacketBuilder::ethernet(host(0), ports[0].mac());
    router.send(&ports[0], frame().ip4([10, 0, 0, 2], [10, 0, 0, 1]).icmp_echo_request(1, 1).build());
    let (src, dst): (std::net::Ipv6Addr, std::net::Ipv6Addr) =
        ("2001:db8::2".parse().unwrap(), "2001:db8::1".parse().unwrap());
    router.send(&ports[0], frame().ip6(src, dst).icmp6_echo_request(1, 1).build());
    assert_eq!(ports[0].received().len(), 2, "{:?}", router.errors());
}

#[test]
fn hosts_without_an_address_and_those_of_the_link_are_exempt() {
    let (mut router, ports) = router();
    // The answer waits for its neighbour.
    router.may_hold(1);
    set(&router, &ports[0], Family::Ip4, Direction::Rx, Mode::Strict);
    set(&router, &ports[0], Family::Ip6, Direction::Rx, Mode::Strict);
    let dhcp = PacketBuilder::ethernet(host(0), MacAddress::BROADCAST)
        .ip4([0; 4], [255; 4])
        .udp(68, 67)
        .payload_len(240)
        .build();
    router.send(&ports[0], dhcp);
    assert_eq!(dropped(&router, "ip4-rx-urpf-strict"), 0);
    let link: IpAddr = "fe80::2".parse().unwrap();
    let (IpAddr::V6(src), IpAddr::V6(dst)) = (link, "2001:db8::1".parse().unwrap()) else { unreachable!() };
    let echo = PacketBuilder::ethernet(host(0), ports[0].mac()).ip6(src, dst).icmp6_echo_request(1, 1);
    router.send(&ports[0], echo.build());
    assert_eq!(dropped(&router, "ip6-rx-urpf-strict"), 0);
}

#[test]
fn more_ways_than_a_record_names_are_looked_through() {
    for family in FAMILIES {
        let mut modules = STACK.to_vec();
        modules.push(&shoal_urpf::MODULE);
        let mut router = Router::new(&modules);
        // Packets that pass wait for unknown neighbours.
        router.may_hold(16);
        let ports: Vec<Port> = (0..9).map(|n| router.pg(n)).collect();
        for (n, port) in ports.iter().enumerate() {
            let (ip4, ip6) = (router.get::<Ip4>(), router.get::<Ip6>());
            ip4.add_address(port.index(), format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
            ip6.add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
            set(&router, port, family, Direction::Rx, Mode::Strict);
        }
        let many: Vec<Path> = (0..8).map(|n| via(family, n, &ports).weight(n as u8 + 1)).collect();
        route(&router, network(family, Some(1)), &many);
        let node = format!("{family}-rx-urpf-strict");
        for (n, port) in ports.iter().enumerate() {
            let before = dropped(&router, &node);
            let frame = PacketBuilder::ethernet(host(n), port.mac());
            let frame = match (far(family, 1), far(family, 99)) {
                (IpAddr::V4(src), IpAddr::V4(dst)) => frame.ip4(src, dst),
                (IpAddr::V6(src), IpAddr::V6(dst)) => frame.ip6(src, dst),
                _ => unreachable!(),
            };
            router.send(port, frame.udp(1, 2).build());
            assert_eq!(dropped(&router, &node) - before, u64::from(n == 8), "{family} {n}");
        }
    }
}

#[test]
fn a_change_of_mode_leaves_one_feature_on() {
    let (router, ports) = router();
    let on = || {
        let arcs = router.graph().features(Some(ports[0].index()));
        let all = arcs.into_iter().flat_map(|(_, list)| list).filter(|(_, on)| *on).map(|(name, _)| name);
        all.filter(|name| name.contains("urpf")).collect::<Vec<_>>()
    };
    set(&router, &ports[0], Family::Ip4, Direction::Rx, Mode::Loose);
    set(&router, &ports[0], Family::Ip4, Direction::Rx, Mode::Strict);
    assert_eq!(on(), ["ip4-rx-urpf-strict"]);
    set(&router, &ports[0], Family::Ip4, Direction::Rx, Mode::Off);
    set(&router, &ports[0], Family::Ip4, Direction::Rx, Mode::Off);
    assert!(on().is_empty());
    assert_eq!(router.get::<Urpf>().settings(), []);
}

#[test]
fn settings_are_shown_and_go_with_their_interface() {
    let (router, ports) = router();
    assert_eq!(run(&router, "show urpf", "").unwrap().to_text(), "");
    run(&router, "set urpf", "ip4 rx strict interface=pg0").unwrap();
    run(&router, "set urpf", "ip6 tx loose table=0 interface=pg0").unwrap();
    run(&router, "set urpf", "ip6 rx loose interface=pg1").unwrap();
    let text = run(&router, "show urpf", "").unwrap().to_text();
    assert_eq!(
        text,
        "pg0\n  ip4 rx strict its own table\n  ip6 tx loose  table 0\npg1\n  ip6 rx loose  its own table\n"
    );
    let json = run(&router, "show urpf", "interface=pg1").unwrap().to_json();
    assert_eq!(json.as_array().unwrap().len(), 1);
    assert_eq!(json[0]["mode"], "loose");
    router.generator().delete_interface(ports[0].index()).unwrap();
    assert_eq!(router.get::<Urpf>().settings().len(), 1);
}

#[test]
fn what_is_not_there_is_refused_and_nothing_changes() {
    let (router, ports) = router();
    let wrong = run(&router, "set urpf", "ip4 rx strict table=77 interface=pg0").unwrap_err();
    assert!(wrong.message().contains("table"), "{}", wrong.message());
    let setting = |interface, table| Setting {
        interface,
        family: Family::Ip6,
        direction: Direction::Tx,
        mode: Mode::Strict,
        table,
    };
    let urpf = router.get::<Urpf>();
    assert!(matches!(urpf.set(setting(shoal_interface::SwIfIndex(99), None)), Err(UrpfError::Interface(_))));
    let missing = urpf.set(setting(ports[0].index(), Some(FibIndex(42))));
    assert!(matches!(missing, Err(UrpfError::Fib(_))));
    assert_eq!(urpf.settings(), []);
}
