//! SYN packets on their way through; each case in both families.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::net::IpAddr;
use std::rc::Rc;

use shoal_fib::Family;
use shoal_interface::SwIfIndex;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::cli::{Args, CliError, Output, Run};
use shoal_mss_clamp::{Directions, MssClamp, MssError, Setting};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_wire::checksum::Sum;
use shoal_wire::packet::Fragment;
use shoal_wire::{FromBytes, Ip4Header, Ip6Header, IpProtocol, MacAddress};

const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];

fn router() -> (Router, Vec<Port>) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_mss_clamp::MODULE]);
    let mut router = Router::new(&modules);
    let ports: Vec<Port> = (0..2).map(|n| router.pg(n)).collect();
    for (n, port) in ports.iter().enumerate() {
        let ip4 = router.get::<Ip4>();
        ip4.add_address(port.index(), format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
        let ip6 = router.get::<Ip6>();
        ip6.add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
        let (mac, i) = (MacAddress([2, 0xaa, 0, 0, 0, n as u8]), port.index());
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

fn addresses(family: Family) -> (IpAddr, IpAddr) {
    match family {
        Family::Ip4 => ("10.0.0.2".parse().unwrap(), "10.0.1.2".parse().unwrap()),
        Family::Ip6 => ("2001:db8::2".parse().unwrap(), "2001:db8:1::2".parse().unwrap()),
    }
}

fn start(family: Family, port: &Port) -> PacketBuilder {
    let frame = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 0], port.mac());
    match addresses(family) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => frame.ip4(src, dst),
        (IpAddr::V6(src), IpAddr::V6(dst)) => frame.ip6(src, dst),
        _ => unreachable!(),
    }
}

/// A TCP segment with its checksum.
fn tcp(family: Family, flags: u8, options: &[u8]) -> Vec<u8> {
    let words = ((20 + options.len()) / 4) as u8;
    let mut bytes = vec![0, 80, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, words << 4, flags, 2, 0, 0, 0, 0, 0];
    bytes.extend(options);
    let mut sum = pseudo(family, bytes.len());
    sum.add(&bytes);
    bytes[16..18].copy_from_slice(&sum.finish().to_be_bytes());
    bytes
}

fn pseudo(family: Family, len: usize) -> Sum {
    match addresses(family) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => Sum::pseudo_ip4(src, dst, IpProtocol::TCP, len as u16),
        (IpAddr::V6(src), IpAddr::V6(dst)) => Sum::pseudo_ip6(src, dst, IpProtocol::TCP, len as u32),
        _ => unreachable!("{family}"),
    }
}

const SYN: u8 = 2;
const ACK: u8 = 16;
const MSS_1460: [u8; 8] = [1, 1, 1, 1, 2, 4, 5, 180];

fn segment(family: Family, port: &Port, flags: u8, options: &[u8]) -> PacketBuilder {
    start(family, port).payload(&tcp(family, flags, options)).protocol(IpProtocol::TCP)
}

/// What comes out: the size it asks for. Its checksum must be right.
fn size(router: &mut Router, ports: &[Port], family: Family, packet: &PacketBuilder) -> u16 {
    router.send(&ports[0], packet.clone().build());
    let frame = ports[1].received_one();
    let at = 14 + if family == Family::Ip4 { 20 } else { 40 };
    let end = match family {
        Family::Ip4 => 14 + usize::from(Ip4Header::ref_from_prefix(&frame[14..]).unwrap().0.total_length()),
        Family::Ip6 => 54 + usize::from(Ip6Header::ref_from_prefix(&frame[14..]).unwrap().0.payload_length()),
    };
    let tcp = &frame[at..end];
    let mut sum = pseudo(family, tcp.len());
    sum.add(tcp);
    assert_eq!(sum.folded(), 0xffff, "{family}: checksum");
    u16::from_be_bytes([tcp[26], tcp[27]])
}

fn set(router: &Router, port: &Port, family: Family, directions: Directions, mss: u16) {
    let setting = Some(Setting { directions, mss });
    let wanted = if family == Family::Ip4 { [setting, None] } else { [None, setting] };
    router.get::<MssClamp>().set(port.index(), wanted).unwrap();
}

fn clamped(router: &Router, family: Family, way: &str) -> u64 {
    router.error(&format!("tcp-mss-clamping-{family}-{way}"), "clamped")
}

fn run(router: &Router, command: &str, items: &str) -> Result<Output, CliError> {
    let command = shoal_mss_clamp::cli::COMMANDS.iter().find(|c| c.syntax.starts_with(command)).unwrap();
    let start = Args::new(Rc::clone(router.control()), items);
    let args = items.split_whitespace().fold(start, |args, item| match item.split_once('=') {
        Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
        None => args.with_word(item.to_owned().leak(), 0..0),
    });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args)
}

#[test]
fn connections_ask_for_no_more_than_either_interface_takes() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        let syn = segment(family, &ports[0], SYN, &MSS_1460);
        assert_eq!(size(&mut router, &ports, family, &syn), 1460, "off");
        set(&router, &ports[0], family, Directions::RX, 1400);
        assert_eq!(size(&mut router, &ports, family, &syn), 1400);
        set(&router, &ports[1], family, Directions::TX, 1300);
        assert_eq!(size(&mut router, &ports, family, &syn), 1300);
        assert_eq!((clamped(&router, family, "in"), clamped(&router, family, "out")), (2, 1));
        // The other directions, where no such packet passes.
        set(&router, &ports[0], family, Directions::TX, 1000);
        set(&router, &ports[1], family, Directions::RX, 1000);
        assert_eq!(size(&mut router, &ports, family, &syn), 1460);
        set(&router, &ports[1], family, Directions::BOTH, 1200);
        assert_eq!(size(&mut router, &ports, family, &syn), 1200);
        let answer = segment(family, &ports[0], SYN | ACK, &MSS_1460);
        assert_eq!(size(&mut router, &ports, family, &answer), 1200);
    }
}

#[test]
fn only_what_opens_a_connection_and_asks_for_more_is_changed() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        set(&router, &ports[0], family, Directions::BOTH, 1400);
        set(&router, &ports[1], family, Directions::BOTH, 1400);
        let at = |router: &mut Router, flags, options: &[u8]| {
            size(router, &ports, family, &segment(family, &ports[0], flags, options))
        };
        assert_eq!(at(&mut router, ACK, &MSS_1460), 1460, "an established connection");
        assert_eq!(at(&mut router, SYN, &[1, 1, 1, 1, 2, 4, 4, 0]), 1024, "it asks for less");
        assert_eq!(at(&mut router, SYN, &[0, 1, 1, 1, 2, 4, 5, 180]), 1460, "behind the end of the options");
        assert_eq!(at(&mut router, SYN, &[8, 40, 1, 1, 2, 4, 5, 180]), 1460, "an option that lies");
        assert_eq!(
            router.error(
                &format!("tcp-mss-clamping-{family}-in"),
                "TCP options are wrong or beyond the first buffer"
            ),
            1
        );
        assert_eq!((clamped(&router, family, "in"), clamped(&router, family, "out")), (0, 0));
    }
}

#[test]
fn headers_are_found_behind_options_and_in_first_fragments_only() {
    let (mut router, ports) = router();
    for family in FAMILIES {
        set(&router, &ports[0], family, Directions::RX, 1400);
    }
    let bytes = |family| tcp(family, SYN, &MSS_1460);
    let sent = |router: &mut Router, packet: PacketBuilder| {
        router.send(&ports[0], packet.build());
        let frame = ports[1].received_one();
        let at = frame.windows(2).position(|w| w == [2, 4]).unwrap();
        u16::from_be_bytes([frame[at + 2], frame[at + 3]])
    };
    let ip4 = |packet: PacketBuilder| packet.payload(&bytes(Family::Ip4)).protocol(IpProtocol::TCP);
    let first = start(Family::Ip4, &ports[0]).fragment(0, Fragment::More);
    let later = start(Family::Ip4, &ports[0]).fragment(64, Fragment::Last);
    assert_eq!(sent(&mut router, ip4(start(Family::Ip4, &ports[0]).options(&[1, 1, 1, 0]))), 1400);
    assert_eq!(sent(&mut router, ip4(first)), 1400);
    assert_eq!(sent(&mut router, ip4(later)), 1460, "these are no options");
    let ip6 = |body: [u8; 6]| {
        let fragment = start(Family::Ip6, &ports[0]).ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &body);
        let mut frame = fragment.payload(&bytes(Family::Ip6)).build();
        frame[54] = IpProtocol::TCP.0;
        frame
    };
    for (body, expected) in [([0, 1, 0, 0, 0, 7], 1400u16), ([0, 65, 0, 0, 0, 7], 1460)] {
        router.send(&ports[0], ip6(body));
        let frame = ports[1].received_one();
        assert_eq!(frame[62 + 26..62 + 28], expected.to_be_bytes(), "{body:?}");
    }
}

#[test]
fn headers_cut_short_at_any_byte_are_survived() {
    for family in FAMILIES {
        let (mut router, ports) = router();
        set(&router, &ports[0], family, Directions::RX, 1400);
        set(&router, &ports[1], family, Directions::TX, 1400);
        let whole = segment(family, &ports[0], SYN, &MSS_1460).build();
        for n in 0..whole.len() {
            router.send(&ports[0], &whole[..n]);
            for way in ["in", "out"] {
                router.inject(
                    &format!("tcp-mss-clamping-{family}-{way}"),
                    ports[0].index(),
                    &whole[14.min(n)..n],
                );
            }
        }
        router.run();
        for port in &ports {
            port.received();
        }
        let syn = segment(family, &ports[0], SYN, &MSS_1460);
        assert_eq!(size(&mut router, &ports, family, &syn), 1400);
    }
}

#[test]
fn commands_set_and_show_it() {
    let (router, ports) = router();
    let set = "set interface tcp-mss-clamp";
    let shown = |router: &Router| run(router, "show interface tcp-mss-clamp", "").unwrap().to_text();
    run(&router, set, "interface=pg0 ip4 enable ip4-mss ip4-mss=1400 ip6 rx ip6-mss ip6-mss=1380").unwrap();
    assert_eq!(shown(&router), "pg0: ip4: rx tx mss 1400 ip6: rx mss 1380\n");
    // What is not given stays.
    run(&router, set, "interface=pg0 ip6 tx").unwrap();
    assert_eq!(shown(&router), "pg0: ip4: rx tx mss 1400 ip6: tx mss 1380\n");
    run(&router, set, "tx interface=pg0 ip4 ip4-mss ip4-mss=1300").unwrap();
    assert_eq!(shown(&router), "pg0: ip4: tx mss 1300 ip6: tx mss 1380\n");
    run(&router, set, "interface=pg0 ip4 disable").unwrap();
    assert_eq!(shown(&router), "pg0: ip4: disabled ip6: tx mss 1380\n");
    let json = run(&router, "show interface tcp-mss-clamp", "interface=pg0").unwrap().to_json();
    assert_eq!(json[0]["ip6"]["mss"], 1380);
    assert!(json[0]["ip4"]["mss"].is_null());
    run(&router, set, "interface=pg0 ip6 disable").unwrap();
    assert_eq!(shown(&router), "");
    let wrong = |items: &str| match run(&router, set, items).unwrap_err() {
        CliError::Argument { name, message, nearest } => format!("{name}: {message} {nearest:?}"),
        CliError::Failed(message) => message,
    };
    assert_eq!(wrong("interface=pg0"), "interface: neither `ip4' nor `ip6' was given None");
    assert_eq!(wrong("interface=pg0 ip4 enable"), "interface: `ip4-mss' is missing None");
    let small = wrong("interface=pg0 ip6 enable ip6-mss ip6-mss=10");
    assert_eq!(small, "ip6-mss: a maximum segment size of 10 is too small: at least 48 Some(\"48\")");
    let clamp = router.get::<MssClamp>();
    let setting = Some(Setting { directions: Directions::RX, mss: 1400 });
    assert!(matches!(clamp.set(SwIfIndex(99), [setting, None]), Err(MssError::Interface(_))));
    let small = Some(Setting { directions: Directions::RX, mss: 1 });
    assert_eq!(clamp.set(ports[0].index(), [setting, small]), Err(MssError::TooSmall(1)));
    assert_eq!(clamp.settings(), [], "nothing half done");
}

#[test]
fn a_deleted_interface_leaves_nothing_behind() {
    let (mut router, ports) = router();
    set(&router, &ports[0], Family::Ip4, Directions::BOTH, 1400);
    router.generator().delete_interface(ports[0].index()).unwrap();
    assert_eq!(router.get::<MssClamp>().settings(), []);
    let again = router.pg(0);
    let on = |(_, list): (_, Vec<(String, bool)>)| list.iter().any(|(n, on)| *on && n.contains("mss"));
    assert!(!router.graph().features(Some(again.index())).into_iter().any(on));
}
