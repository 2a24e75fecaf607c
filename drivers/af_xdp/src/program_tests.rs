//! The program in the kernel (BPF_PROG_TEST_RUN): what becomes of each kind of frame, and of frames that lie.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{LazyLock, Mutex};

use proptest::prelude::*;
use shoal_wire::packet::Fragment;
use shoal_wire::{IpProtocol, MacAddress, Packet, TcpFlags};

use crate::Error;
use crate::filter::{Filter, FilterCounts, Wanted};
use crate::program::{TO_HOST, TO_ROUTER};
use crate::sys::socket::XskSocket;

const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x99]);
const ROUTER: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 1]);
const KERNEL: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const STRANGER: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x77]);
const BROADCAST: MacAddress = MacAddress([0xff; 6]);
const GROUP6: MacAddress = MacAddress([0x33, 0x33, 0xff, 0, 0, 1]);
/// The kernel's addresses on the interface.
const HOST4: [u8; 4] = [192, 0, 2, 1];
const HOST6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// Somebody else's.
const FAR4: [u8; 4] = [198, 51, 100, 7];
const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 7);
const FROM4: [u8; 4] = [203, 0, 113, 9];
const FROM6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xaa, 0, 0, 0, 0, 9);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const SOLICITED: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 1);

/// A program with this pinhole and a socket, so that redirecting can be told from passing.
struct Bench {
    filter: Filter,
    _socket: XskSocket,
}

fn wanted(own: bool) -> Wanted<'static> {
    static NONE: LazyLock<crate::pinhole::Pinhole> = LazyLock::new(Default::default);
    static ADDRESSES: LazyLock<[IpAddr; 2]> = LazyLock::new(|| [IpAddr::from(HOST4), IpAddr::from(HOST6)]);
    let own_mac = own.then_some(ROUTER);
    Wanted { take: true, own_mac, kernel_mac: KERNEL, pinhole: &NONE, addresses: &*ADDRESSES }
}

/// None where the machine does not let us; says so.
fn bench(test: &str) -> Option<Bench> {
    let made = Filter::new(false).and_then(|filter| Ok((filter, XskSocket::open()?)));
    match made {
        Ok((filter, socket)) => {
            filter.put_socket(0, socket.fd()).unwrap();
            Some(Bench { filter, _socket: socket })
        }
        Err(e @ Error::Program { .. }) => panic!("{e}"),
        Err(e) => {
            shoal_testkit::netns::skipped(format_args!("{test}: {e}"));
            None
        }
    }
}

impl Bench {
    fn set(&mut self, rules: &str, own: bool) {
        let pinhole = rules.parse().unwrap();
        self.filter.apply(&Wanted { pinhole: &pinhole, ..wanted(own) }).unwrap();
    }

    /// Whether the host has the frame.
    fn host(&self, frame: &[u8]) -> bool {
        match self.filter.run(frame).unwrap() {
            TO_HOST => true,
            TO_ROUTER => false,
            other => panic!("verdict {other}"),
        }
    }
}

fn to(mac: MacAddress) -> Packet {
    Packet::ethernet(PEER, mac)
}

fn syn4(from: [u8; 4], dst: [u8; 4], port: u16) -> Vec<u8> {
    to(KERNEL).ip4(from, dst).tcp(40_000, port, TcpFlags::SYN).build()
}

fn syn6(from: Ipv6Addr, dst: Ipv6Addr, port: u16) -> Vec<u8> {
    to(KERNEL).ip6(from, dst).tcp(40_000, port, TcpFlags::SYN).build()
}

/// ICMPv6 of a type, with 4 more bytes and a body.
fn icmp6(from: Ipv6Addr, dst: Ipv6Addr, kind: u8, body: &[u8]) -> Packet {
    to(GROUP6).ip6(from, dst).icmp6(&[&[kind, 0, 0, 0, 0, 0, 0, 0][..], body].concat())
}

fn tagged(frame: &[u8], tags: &[u16]) -> Vec<u8> {
    let mut out = frame[..12].to_vec();
    for (i, tpid) in tags.iter().enumerate() {
        out.extend_from_slice(&tpid.to_be_bytes());
        out.extend_from_slice(&[0, i as u8 + 5]);
    }
    out.extend_from_slice(&frame[12..]);
    out
}

#[test]
fn without_a_pinhole_the_router_has_everything_and_when_it_is_down_the_host() {
    let Some(mut bench) = bench("without_a_pinhole") else { return };
    let frames = [syn4(FAR4, HOST4, 22), syn6(FAR6, HOST6, 22), vec![0; 14], vec![0xff; 60]];
    assert!(frames.iter().all(|f| bench.host(f)), "before anything was asked of it");
    bench.filter.apply(&wanted(true)).unwrap();
    assert!(frames.iter().all(|f| !bench.host(f)));
    bench.filter.apply(&Wanted { take: false, ..wanted(true) }).unwrap();
    assert!(frames.iter().all(|f| bench.host(f)));
    let n = frames.len() as u64;
    let counts = FilterCounts { passed: 2 * n, redirected: n, no_socket: 0 };
    assert_eq!(bench.filter.counts().unwrap(), counts);
}

#[test]
fn a_queue_without_a_socket_passes_to_the_host() {
    let Some(bench) = bench("a_queue_without_a_socket") else { return };
    let mut bare = Filter::new(true).unwrap();
    bare.apply(&wanted(true)).unwrap();
    assert_eq!(bare.run(&syn4(FAR4, FAR4, 80)).unwrap(), TO_HOST);
    assert_eq!(bare.counts().unwrap(), FilterCounts { no_socket: 1, ..FilterCounts::default() });
    drop(bench);
}

#[test]
fn ssh_is_tcp_to_port_22_of_the_kernels_addresses() {
    let Some(mut bench) = bench("ssh") else { return };
    bench.set("ssh", false);
    for (frame, host) in [
        (syn4(FAR4, HOST4, 22), true),
        (syn6(FAR6, HOST6, 22), true),
        (syn4(FAR4, HOST4, 23), false),
        (syn6(FAR6, HOST6, 23), false),
        // On their way through the router.
        (syn4(FAR4, FROM4, 22), false),
        (syn6(FAR6, FROM6, 22), false),
        (to(KERNEL).ip4(FAR4, HOST4).udp(5000, 22).build(), false),
        (to(KERNEL).ip4(FAR4, HOST4).icmp_echo_request(1, 1).build(), false),
    ] {
        for tags in [&[][..], &[0x8100], &[0x88a8, 0x8100]] {
            assert_eq!(bench.host(&tagged(&frame, tags)), host, "{tags:x?} {frame:x?}");
        }
        // More tags than anybody reads.
        assert!(!bench.host(&tagged(&frame, &[0x88a8, 0x8100, 0x8100])));
    }
    let options = to(KERNEL).ip4(FAR4, HOST4).options(&[1; 40]).tcp(40_000, 22, TcpFlags::ACK).build();
    assert!(bench.host(&options));
}

#[test]
fn extension_headers_and_fragments_do_not_hide_a_port() {
    let Some(mut bench) = bench("extension_headers") else { return };
    bench.set("tcp:443", false);
    let ext = |port: u16, kinds: &[u8]| {
        let mut packet = to(KERNEL).ip6(FAR6, HOST6);
        for kind in kinds {
            packet = packet.ip6_ext(IpProtocol(*kind), &[0; 6]);
        }
        packet.tcp(40_000, port, TcpFlags::ACK).build()
    };
    for kinds in [&[0][..], &[0, 60, 43], &[60, 60, 60, 60, 60, 60, 60, 60]] {
        assert!(bench.host(&ext(443, kinds)), "{kinds:?}");
        assert!(!bench.host(&ext(444, kinds)), "{kinds:?}");
    }
    // More than anybody reads: the router's, as all it cannot be sure of.
    assert!(!bench.host(&ext(443, &[60; 9])));

    // The first fragment has the port; the others go where it goes, as long as ports are asked for at all.
    let fragment = |dst: [u8; 4], offset, place| {
        to(KERNEL)
            .ip4(FAR4, dst)
            .fragment(offset, place)
            .tcp(40_000, 443, TcpFlags::ACK)
            .payload(&[0; 64])
            .build()
    };
    assert!(bench.host(&fragment(HOST4, 0, Fragment::More)));
    assert!(bench.host(&fragment(HOST4, 64, Fragment::Last)));
    assert!(!bench.host(&fragment(FAR4, 64, Fragment::Last)));
    let fragment6 = |dst: Ipv6Addr, offset: u16| {
        let mut header = [0; 6];
        header[..2].copy_from_slice(&offset.to_be_bytes());
        let packet = to(KERNEL).ip6(FAR6, dst).ip6_ext(IpProtocol(44), &header);
        packet.tcp(40_000, 443, TcpFlags::ACK).build()
    };
    assert!(bench.host(&fragment6(HOST6, 1)), "first, more to come");
    assert!(bench.host(&fragment6(HOST6, 64)));
    assert!(!bench.host(&fragment6(FAR6, 64)));
    bench.set("arp", false);
    assert!(!bench.host(&fragment(HOST4, 64, Fragment::Last)));
}

#[test]
fn errors_about_what_the_host_sent_are_the_hosts() {
    let Some(mut bench) = bench("errors_about") else { return };
    bench.set("ssh", false);
    let quoted4 = |port| Packet::raw().ip4(HOST4, FAR4).tcp(port, 40_000, TcpFlags::ACK).build();
    let error4 = |kind: u8, port| {
        let body = [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &quoted4(port)].concat();
        to(KERNEL).ip4(FAR4, HOST4).protocol(IpProtocol(1)).payload(&body).build()
    };
    for kind in [3, 11, 12] {
        assert!(bench.host(&error4(kind, 22)) && !bench.host(&error4(kind, 23)), "{kind}");
    }
    assert!(!bench.host(&error4(8, 22)));
    let error6 = |kind: u8, port| {
        let quoted = Packet::raw().ip6(HOST6, FAR6).tcp(port, 40_000, TcpFlags::ACK).build();
        icmp6(FAR6, HOST6, kind, &quoted).build()
    };
    for kind in 1..=4 {
        assert!(bench.host(&error6(kind, 22)) && !bench.host(&error6(kind, 23)), "{kind}");
    }
    assert!(!bench.host(&error6(128, 22)));
}

#[test]
fn dhcp_and_router_advertisements_need_no_address() {
    let Some(mut bench) = bench("dhcp") else { return };
    bench.set("dhcp", true);
    let offer = to(BROADCAST).ip4(FAR4, [255; 4]).udp(67, 68).payload(&[0; 240]).build();
    let reply6 = to(GROUP6).ip6(FAR6, HOST6).udp(547, 546).build();
    let advertisement = icmp6(FAR6, ALL_NODES, 134, &[0; 8]).build();
    let discover = to(BROADCAST).ip4([0; 4], [255; 4]).udp(68, 67).build();
    assert!(
        bench.host(&offer) && bench.host(&reply6) && bench.host(&advertisement) && !bench.host(&discover)
    );
    bench.set("ssh", true);
    assert!(!bench.host(&offer) && !bench.host(&reply6) && !bench.host(&advertisement));
}

#[test]
fn arp_and_neighbour_discovery_go_to_whose_address_it_is() {
    let Some(mut bench) = bench("arp") else { return };
    for (rules, others) in [("arp", false), ("host", true)] {
        bench.set(rules, true);
        let ask = |target: [u8; 4]| Packet::arp_request(PEER, FAR4, target).build();
        let answer = |target: [u8; 4], mac| Packet::arp_reply(PEER, FAR4, mac, target).build();
        assert!(bench.host(&ask(HOST4)) && !bench.host(&ask(FAR4)), "{rules}");
        assert!(bench.host(&answer(HOST4, KERNEL)) && !bench.host(&answer(FROM4, ROUTER)), "{rules}");
        let solicit = |target: Ipv6Addr| icmp6(FAR6, SOLICITED, 135, &target.octets()).build();
        assert!(bench.host(&solicit(HOST6)) && !bench.host(&solicit(FAR6)), "{rules}");
        let advertise = |dst| icmp6(FAR6, dst, 136, &FAR6.octets()).build();
        assert!(bench.host(&advertise(HOST6)) && !bench.host(&advertise(FROM6)), "{rules}");
        assert_eq!(bench.host(&syn4(FAR4, HOST4, 80)), others, "{rules}");
        assert_eq!(bench.host(&syn6(FAR6, HOST6, 80)), others, "{rules}");
    }
    // Not Ethernet or not IPv4: an address of no station.
    let mut odd = Packet::arp_request(PEER, FAR4, HOST4).build();
    odd[15] = 6;
    assert!(!bench.host(&odd));
}

#[test]
fn a_router_with_a_mac_address_of_its_own_always_has_what_is_for_it() {
    let Some(mut bench) = bench("own mac") else { return };
    let frame = |mac| to(mac).ip4(FAR4, FROM4).udp(1, 2).build();
    for (rules, kernels, strangers) in [("ssh", false, false), ("host", true, false), ("others", true, true)]
    {
        bench.set(rules, true);
        assert_eq!(bench.host(&frame(KERNEL)), kernels, "{rules}");
        assert_eq!(bench.host(&frame(STRANGER)), strangers, "{rules}");
        assert!(!bench.host(&frame(BROADCAST)) && !bench.host(&frame(ROUTER)), "{rules}");
    }
    bench.set("host,others,to:0.0.0.0/0,from:0.0.0.0/0", true);
    assert!(!bench.host(&frame(ROUTER)) && bench.host(&frame(BROADCAST)));
    // With the kernel's MAC address there is no such difference.
    bench.set("host", false);
    assert!(!bench.host(&frame(KERNEL)) && bench.host(&syn4(FAR4, HOST4, 1)));
}

#[test]
fn prefixes_of_both_families_and_directions_are_the_hosts() {
    let Some(mut bench) = bench("prefixes") else { return };
    bench.set("to:198.51.100.0/24,from:2001:db8:aa::/48", false);
    assert!(bench.host(&syn4(FROM4, FAR4, 80)) && !bench.host(&syn4(FAR4, FROM4, 80)));
    assert!(bench.host(&syn6(FROM6, FAR6, 80)) && !bench.host(&syn6(FAR6, FROM6, 80)));
    assert!(bench.host(&Packet::arp_request(PEER, FROM4, FAR4).build()));
    assert!(bench.host(&icmp6(FROM6, SOLICITED, 135, &FAR6.octets()).build()));
    bench.set("to:2001:db8:ff::7,from:203.0.113.9/32", false);
    assert!(bench.host(&syn6(FROM6, FAR6, 80)) && !bench.host(&syn4(FAR4, HOST4, 80)));
    assert!(bench.host(&syn4(FROM4, HOST4, 80)));
    // All of one family is nothing of the other.
    bench.set("to:::/0", false);
    assert!(bench.host(&syn6(FAR6, FROM6, 1)) && !bench.host(&syn4(FAR4, FROM4, 1)));
    bench.set("from:0.0.0.0/0", false);
    assert!(!bench.host(&syn6(FAR6, FROM6, 1)) && bench.host(&syn4(FAR4, FROM4, 1)));
}

#[test]
fn rules_change_while_the_program_runs() {
    let Some(mut bench) = bench("rules_change") else { return };
    let frames = [
        syn4(FAR4, HOST4, 22),
        syn4(FAR4, HOST4, 8443),
        to(BROADCAST).ip4(FAR4, [255; 4]).udp(67, 68).build(),
        to(BROADCAST).ip4(FAR4, HOST4).udp(67, 68).build(),
        syn4(FROM4, FAR4, 1),
    ];
    for (rules, expected) in [
        ("none", [false, false, false, false, false]),
        ("ssh", [true, false, false, false, false]),
        ("ssh,dhcp", [true, false, true, true, false]),
        ("udp:68", [false, false, false, true, false]),
        ("dhcp,udp:68", [false, false, true, true, false]),
        ("udp:68", [false, false, false, true, false]),
        ("dhcp", [false, false, true, true, false]),
        ("dhcp,udp:68", [false, false, true, true, false]),
        ("tcp:8443,from:203.0.113.0/24", [false, true, false, false, true]),
        ("none", [false, false, false, false, false]),
    ] {
        bench.set(rules, false);
        assert_eq!(frames.each_ref().map(|f| bench.host(f)), expected, "{rules}");
    }
    let many: Vec<_> = (1..=256u32).map(|i| format!("to:10.{}.{}.0/24", i / 256, i % 256)).collect();
    let others: Vec<_> = (1..=256u32).map(|i| format!("to:11.{}.{}.0/24", i / 256, i % 256)).collect();
    for rules in [&many, &others, &many] {
        bench.set(&rules.join(","), false);
    }
    assert!(bench.host(&syn4(FAR4, [10, 0, 200, 1], 1)) && !bench.host(&syn4(FAR4, [11, 0, 200, 1], 1)));
}

#[test]
fn what_is_cut_short_is_the_routers_and_never_dropped() {
    let Some(mut bench) = bench("cut short") else { return };
    bench.set("ssh,dhcp,arp", false);
    let frames = [
        syn4(FAR4, HOST4, 22),
        syn6(FAR6, HOST6, 22),
        Packet::arp_request(PEER, FAR4, HOST4).build(),
        icmp6(FAR6, SOLICITED, 135, &HOST6.octets()).build(),
        to(KERNEL).ip6(FAR6, HOST6).ip6_ext(IpProtocol(0), &[0; 6]).tcp(1, 22, TcpFlags::ACK).build(),
    ];
    for frame in frames {
        assert!(bench.host(&frame));
        let mut was = false;
        // The kernel runs no test with less than an Ethernet header.
        for len in 14..frame.len() {
            let is = bench.host(&frame[..len]);
            assert!(is || !was, "more of it, {len} bytes, is not less the host's");
            was = is;
        }
    }
}

/// What the program should say, written once more: IPv4 and IPv6 without options, for the rules of the property below.
fn model([own, host, arp, ssh]: [bool; 4], frame: &[u8]) -> bool {
    let mac = &frame[..6];
    if own {
        if mac == ROUTER.0 {
            return false;
        }
        if mac[0] & 1 == 0 && host && mac == KERNEL.0 {
            return true;
        }
    }
    let (dst_is_host, tcp_port, discovery) = match frame[12..14] {
        [8, 0] if frame.len() >= 34 && frame[14] == 0x45 => {
            let whole = matches!((frame[20], frame[21]), (0 | 0x40, 0));
            let port = if frame[23] == 6 && frame.len() >= 38 { Some([frame[36], frame[37]]) } else { None };
            (frame[30..34] == HOST4, if whole { port } else { Some([0, 22]) }, false)
        }
        [8, 6] if frame.len() >= 42 && frame[14..20] == [0, 1, 8, 0, 6, 4] => {
            (frame[38..42] == HOST4, None, true)
        }
        _ => return false,
    };
    (host && dst_is_host)
        || (arp && discovery && dst_is_host)
        || (ssh && dst_is_host && tcp_port == Some([0, 22]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random bytes, biased towards what means something: a verdict always, and the one of the model.
    #[test]
    fn frames_of_any_content_get_the_verdict_of_the_model(
        mac in prop::sample::select(vec![ROUTER, KERNEL, STRANGER, BROADCAST]),
        kind in prop::sample::select(vec![0x0800u16, 0x0806]),
        rest in prop::collection::vec(any::<u8>(), 0..60),
        fixed in any::<[bool; 5]>(),
        rules in any::<[bool; 4]>(),
    ) {
        static BENCH: LazyLock<Option<Mutex<Bench>>> =
            LazyLock::new(|| bench("frames_of_any_content").map(Mutex::new));
        let Some(bench) = &*BENCH else { return Ok(()) };
        let mut bench = bench.lock().unwrap();
        let [own, host, arp, ssh] = rules;
        let words = [(host, "host"), (arp, "arp"), (ssh, "ssh")];
        let said: Vec<_> = words.iter().filter(|(said, _)| *said).map(|(_, word)| *word).collect();
        let words = if said.is_empty() { "none".to_owned() } else { said.join(",") };
        bench.set(&words, own);
        let mut frame = [&mac.0[..], &PEER.0, &kind.to_be_bytes(), &rest].concat();
        let mut put = |wanted: bool, at: usize, bytes: &[u8]| {
            if let Some(to) = frame.get_mut(at..at + bytes.len())
                && wanted
            {
                to.copy_from_slice(bytes);
            }
        };
        let [head, whole, tcp, to_host, port] = fixed;
        if kind == 0x0800 {
            put(true, 14, &[0x45]);
            put(whole, 20, &[0x40, 0]);
            put(tcp, 23, &[6]);
            put(to_host, 30, &HOST4);
            put(port, 36, &22u16.to_be_bytes());
        } else {
            put(head, 14, &[0, 1, 8, 0, 6, 4]);
            put(to_host, 38, &HOST4);
        }
        // ICMP errors and other lengths of headers have tests of their own.
        prop_assume!(kind != 0x0800 || frame.get(23) != Some(&1));
        let expected = !said.is_empty() && model(rules, &frame);
        prop_assert_eq!(bench.host(&frame), expected, "{} own {} {:x?}", words, own, frame);
    }
}
