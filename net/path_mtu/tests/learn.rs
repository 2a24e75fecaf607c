//! Path MTUs learnt from ICMP errors about packets of the router: which are believed, for how long and how many.
//! RFC 1191; RFC 8201, 4.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_ip6::Ip6;
use shoal_module::Module;
use shoal_module::cli::{Args, CliError, Output, Run};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_path_mtu::{Learning, MOST_LEARNT, PathMtuError, PathMtus};
use shoal_testkit::{PacketBuilder, Port, Rng, Router};
use shoal_wire::{Icmp4Error, Icmp6Error, IntoBytes, IpPrefix, IpProtocol, MacAddress, icmp4};

const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_neighbor::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_path_mtu::MODULE,
];

const GATEWAY: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
const US4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const VIA4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const US6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const VIA6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const TEN_MINUTES: Duration = Duration::from_mins(10);

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A router with a default route of each family.
fn router() -> (Router, Port) {
    let mut router = Router::new(MODULES);
    let a = router.pg(0);
    router.set_address(&a, "10.0.0.1/24");
    router.get::<Ip6>().add_address(a.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    router.set_neighbour(&a, VIA4, GATEWAY);
    let neighbours = router.get::<shoal_ip6_nd::Neighbours>();
    neighbours.set((a.index(), VIA6), GATEWAY, Origin::Static, FibEntry::Wanted).unwrap();
    for (prefix, via) in [("0.0.0.0/0", IpAddr::V4(VIA4)), ("::/0", IpAddr::V6(VIA6))] {
        let prefix: IpPrefix = prefix.parse().unwrap();
        router.get::<Fib>().add(FibIndex(0), prefix, Source::Cli, &[Path::next_hop(via, a.index())]).unwrap();
    }
    router.advance(Duration::from_secs(5));
    a.received();
    (router, a)
}

/// What is quoted: a packet of `total` bytes that was sent from `src` to `dst`, cut after `kept` bytes.
fn quote(src: IpAddr, dst: IpAddr, total: usize, kept: usize) -> Vec<u8> {
    let packet = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            PacketBuilder::raw().ip4(src, dst).dont_fragment().udp(1, 2).payload_len(total - 28)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            PacketBuilder::raw().ip6(src, dst).udp(1, 2).payload_len(total - 48)
        }
        _ => unreachable!("families"),
    };
    let mut packet = packet.build();
    packet.truncate(kept);
    packet
}

/// A router on the way says that a packet it quotes did not fit into `mtu`.
fn error(a: &Port, quote: &[u8], mtu: u32, six: bool) -> Vec<u8> {
    let packet = PacketBuilder::ethernet(GATEWAY, a.mac());
    if six {
        let message = [Icmp6Error::packet_too_big(mtu).as_bytes(), quote].concat();
        return packet.ip6(VIA6, US6).icmp6(&message).build();
    }
    let mut message = [Icmp4Error::fragmentation_needed(mtu as u16).as_bytes(), quote].concat();
    icmp4::make(&mut message);
    packet.ip4(VIA4, US4).protocol(IpProtocol::ICMP).payload(&message).build()
}

/// The usual error about a packet of 1,400 bytes to `dst`.
fn too_big(a: &Port, dst: &str, mtu: u32) -> Vec<u8> {
    let dst = ip(dst);
    let us = if dst.is_ipv4() { IpAddr::V4(US4) } else { US6.into() };
    error(a, &quote(us, dst, 1400, 64), mtu, dst.is_ipv6())
}

fn known(router: &Router) -> Vec<(String, u16)> {
    router.get::<PathMtus>().list().iter().map(|p| (p.peer.to_string(), p.mtu)).collect()
}

fn one(peer: &str, mtu: u16) -> Vec<(String, u16)> {
    vec![(peer.to_owned(), mtu)]
}

#[test]
fn what_an_error_says_holds_for_ten_minutes() {
    for (peer, mtu) in [("20.0.0.9", 1000u16), ("2001:db8:f::9", 1300)] {
        let (mut router, a) = router();
        router.send(&a, too_big(&a, peer, mtu.into()));
        assert_eq!(known(&router), one(peer, mtu));
        // What the router sends itself is no longer: an echo of 1,350 bytes comes in pieces.
        let echo = PacketBuilder::ethernet(GATEWAY, a.mac());
        let echo = match ip(peer) {
            IpAddr::V4(peer) => echo.ip4(peer, US4).icmp_echo_request(1, 1).payload_len(1322),
            IpAddr::V6(peer) => echo.ip6(peer, US6).icmp6_echo_request(1, 1).payload_len(1302),
        };
        router.send(&a, echo.build());
        let pieces = a.received();
        assert_eq!(pieces.len(), 2, "{peer}");
        assert!(pieces.iter().all(|p| p.len() <= 14 + usize::from(mtu)), "{peer}");
        router.advance(Duration::from_secs(599));
        assert_eq!(known(&router), one(peer, mtu), "RFC 8201, 4: no sooner");
        router.advance(Duration::from_secs(2));
        assert_eq!(known(&router), []);
        a.received();
        router.send(&a, echo.build());
        assert_eq!(a.received_one().len(), 14 + 1350);
        assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
    }
}

#[test]
fn an_error_never_makes_packets_longer_and_one_said_again_holds_on() {
    for (peer, least, middle) in [("20.0.0.9", 700u16, 900u32), ("2001:db8:f::9", 1290, 1350)] {
        let (mut router, a) = router();
        router.send(&a, too_big(&a, peer, least.into()));
        router.send(&a, too_big(&a, peer, middle));
        assert_eq!(known(&router), one(peer, least), "RFC 1191, 6.1; RFC 8201, 4");
        router.advance(Duration::from_secs(400));
        router.send(&a, too_big(&a, peer, middle));
        router.send(&a, too_big(&a, peer, least.into()));
        router.advance(Duration::from_secs(400));
        assert_eq!(known(&router), one(peer, least));
        router.advance(Duration::from_secs(201));
        assert_eq!(known(&router), []);
    }
}

#[test]
fn what_an_operator_said_is_a_bound_and_stays() {
    let (mut router, a) = router();
    let all = router.get::<PathMtus>();
    all.update(0, ip("20.0.0.9"), 1000).unwrap();
    router.send(&a, too_big(&a, "20.0.0.9", 1200));
    assert_eq!(all.list()[0].learnt, None);
    router.send(&a, too_big(&a, "20.0.0.9", 800));
    assert_eq!(known(&router), one("20.0.0.9", 800));
    all.update(0, ip("20.0.0.9"), 700).unwrap();
    assert_eq!(known(&router), one("20.0.0.9", 700));
    all.update(0, ip("20.0.0.9"), 1000).unwrap();
    // A client that sends all path MTUs again does not mean those that are learnt.
    all.replace_begin();
    all.replace_end().unwrap();
    assert_eq!(known(&router), one("20.0.0.9", 800));
    all.update(0, ip("20.0.0.9"), 1000).unwrap();
    router.advance(TEN_MINUTES);
    assert_eq!(known(&router), one("20.0.0.9", 1000));
    router.send(&a, too_big(&a, "20.0.0.9", 800));
    all.delete(0, ip("20.0.0.9")).unwrap();
    assert_eq!(known(&router), []);
    router.advance(TEN_MINUTES);
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}

#[test]
fn no_path_is_believed_to_carry_less_than_all_links_do() {
    let (mut router, a) = router();
    router.send(&a, too_big(&a, "2001:db8:f::9", 1279));
    assert_eq!(
        (known(&router), router.error("ip6-icmp-path-mtu", "mtu is less than all links carry")),
        (vec![], 1)
    );
    router.send(&a, too_big(&a, "20.0.0.9", 68));
    assert_eq!(known(&router), one("20.0.0.9", 552));
    let all = router.get::<PathMtus>();
    all.set_learning(Learning { least: 300, ..Learning::default() }).unwrap();
    router.send(&a, too_big(&a, "20.0.0.9", 68));
    assert_eq!(known(&router), one("20.0.0.9", 300));
    // RFC 1191, 5 and 7.1: an old router does not say how much its link carries.
    router.send(&a, too_big(&a, "20.0.0.8", 0));
    assert_eq!(known(&router)[0], ("20.0.0.8".to_owned(), 1006));
}

#[test]
fn errors_about_nothing_we_can_have_sent_are_not_believed() {
    for six in [false, true] {
        let (mut router, a) = router();
        let (us, far, stranger, node) = if six {
            (IpAddr::V6(US6), ip("2001:db8:f::9"), ip("2001:db8:f::1"), "ip6-icmp-path-mtu")
        } else {
            (US4.into(), ip("20.0.0.9"), ip("20.0.0.1"), "ip4-icmp-path-mtu")
        };
        let (none, group) =
            if six { (ip("fe80::9"), ip("ff0e::9")) } else { (ip("0.0.0.0"), ip("224.1.1.1")) };
        let header = if six { 40 } else { 20 };
        for (quote, mtu, why) in [
            (quote(stranger, far, 1400, 64), 1300, "quoted packet was not sent from here"),
            (quote(us, far, 1300, 64), 1300, "mtu is no less than the quoted packet"),
            (quote(us, far, 1300, 64), 1400, "mtu is no less than the quoted packet"),
            (quote(us, far, 1400, header - 1), 1300, ""),
            (Vec::new(), 1300, ""),
            (vec![0x55; 64], 1300, ""),
            // The unspecified address, a group, and the router itself: the control plane knows.
            (quote(us, none, 1400, 64), 1300, "path mtus heard of"),
            (quote(us, group, 1400, 64), 1300, "path mtus heard of"),
            (quote(us, us, 1400, 64), 1300, "path mtus heard of"),
        ] {
            let before = if why.is_empty() { 0 } else { router.error(node, why) };
            router.send(&a, error(&a, &quote, mtu, six));
            assert_eq!(known(&router), [], "{why}");
            if !why.is_empty() {
                assert_eq!(router.error(node, why), before + 1, "{why}");
            }
        }
        // One that cannot be longer than its link carries anyway.
        router.send(&a, error(&a, &quote(us, far, 9500, 64), 9200, six));
        assert_eq!(known(&router), []);
        // Without a way there is no path.
        let all: IpPrefix = if six { "::/0" } else { "0.0.0.0/0" }.parse().unwrap();
        router.get::<Fib>().remove(FibIndex(0), all, Source::Cli).unwrap();
        router.send(&a, error(&a, &quote(us, far, 1400, 64), 1300, six));
        assert_eq!(known(&router), []);
        a.received();
    }
    // A packet that may be cut never meets such an error.
    let (mut router, a) = router();
    let quote = PacketBuilder::raw().ip4(US4, [20, 0, 0, 9]).udp(1, 2).payload_len(1372).build();
    router.send(&a, error(&a, &quote[..64], 1300, false));
    assert_eq!(router.error("ip4-icmp-path-mtu", "quoted packet might have been cut"), 1);
    assert_eq!(known(&router), []);
}

#[test]
fn a_flood_of_forged_errors_is_bounded_in_rate_and_number() {
    for six in [false, true] {
        let (mut router, a) = router();
        let node = if six { "ip6-icmp-path-mtu" } else { "ip4-icmp-path-mtu" };
        let far = |n: u32| {
            if six { format!("2001:db8:f::{n:x}") } else { Ipv4Addr::from_bits(0x1400_0000 + n).to_string() }
        };
        router.send_all(&a, (1..=1000).map(|n| too_big(&a, &far(n), 1300)));
        assert_eq!(known(&router).len(), 100, "no more than the limiter lets through");
        assert_eq!(router.error(node, "too many at a time"), 900);
        let mut n = 1000;
        while n < 1000 + MOST_LEARNT as u32 + 200 {
            router.advance(Duration::from_millis(500));
            router.send_all(&a, (n..n + 50).map(|n| too_big(&a, &far(n), 1300)));
            n += 50;
        }
        let all = router.get::<PathMtus>();
        assert_eq!((known(&router).len(), all.learnt()), (MOST_LEARNT, MOST_LEARNT));
        assert!(all.list().iter().any(|p| p.peer == ip(&far(n - 1))), "the last one made room for itself");
        router.advance(TEN_MINUTES);
        assert_eq!((known(&router).len(), all.learnt()), (0, 0));
        assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
        a.received();
    }
}

#[test]
fn random_and_truncated_errors_break_nothing() {
    let (mut router, a) = router();
    let mut rng = Rng::new(Rng::seed(7));
    for _ in 0..2000 {
        let six = rng.one_in(2);
        let us = if six { IpAddr::V6(US6) } else { US4.into() };
        let far = if six { ip("2001:db8:f::9") } else { ip("20.0.0.9") };
        let kept = rng.below(80);
        let mut quote = quote(us, far, 1400, kept);
        for _ in 0..rng.below(4) {
            if !quote.is_empty() {
                let at = rng.below(quote.len());
                quote[at] = rng.next_u64() as u8;
            }
        }
        let mut frame = error(&a, &quote, rng.next_u64() as u32 % 3000, six);
        if rng.one_in(4) {
            frame.truncate(14 + rng.below(frame.len() - 14));
        }
        router.send(&a, frame);
        router.advance(Duration::from_millis(20));
    }
    a.received();
    let least = |p: &shoal_path_mtu::PathMtu| p.mtu >= if p.peer.is_ipv4() { 552 } else { 1280 };
    assert!(router.get::<PathMtus>().list().iter().all(least));
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}

#[test]
fn learning_can_be_turned_off_and_has_its_limits() {
    let (mut router, a) = router();
    let all = router.get::<PathMtus>();
    router.send(&a, too_big(&a, "20.0.0.9", 800));
    router.send(&a, too_big(&a, "2001:db8:f::9", 1300));
    assert_eq!(all.learnt(), 2);
    let usual = Learning::default();
    all.set_learning(Learning { on: false, ..usual }).unwrap();
    assert_eq!(known(&router), []);
    router.send(&a, too_big(&a, "20.0.0.9", 800));
    router.send(&a, too_big(&a, "2001:db8:f::9", 1300));
    assert_eq!((known(&router), router.error("ip6-icmp-path-mtu", "path mtus are not learnt")), (vec![], 1));
    let seconds = |n| Learning { lifetime: Duration::from_secs(n), ..usual };
    let refused = |learning| all.set_learning(learning).unwrap_err();
    assert_eq!(
        refused(seconds(299)).to_string(),
        "a lifetime of 299 seconds is not possible: 300 to 86400, nearest 300"
    );
    assert_eq!(refused(seconds(90_000)), PathMtuError::Lifetime { seconds: 90_000, nearest: 86_400 });
    assert_eq!(refused(Learning { least: 67, ..usual }).nearest(), Some(68));
    assert_eq!(refused(Learning { least: 1281, ..usual }).nearest(), Some(1280));
    assert!(!all.learning().on, "nothing was changed");
    all.set_learning(seconds(300)).unwrap();
    router.send(&a, too_big(&a, "20.0.0.9", 800));
    router.advance(Duration::from_secs(301));
    assert_eq!(known(&router), []);
}

/// Runs a command of this crate. Items are words, or arguments written `name=text`.
fn run(router: &Router, command: &str, items: &str) -> Result<Output, CliError> {
    let command = shoal_path_mtu::cli::COMMANDS.iter().find(|c| c.syntax.starts_with(command)).unwrap();
    let args =
        items.split_whitespace().fold(Args::new(Rc::clone(router.control()), items), |args, item| match item
            .split_once('=')
        {
            Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
            None => args.with_word(item.to_owned().leak(), 0..0),
        });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args)
}

#[test]
fn what_was_learnt_is_shown_with_its_age() {
    let (mut router, a) = router();
    run(&router, "set ip pmtu <", "peer=20.0.0.9 mtu=1400").unwrap();
    run(&router, "set ip pmtu <", "peer=20.0.0.8 mtu=1400").unwrap();
    router.send(&a, too_big(&a, "20.0.0.9", 800));
    router.advance(Duration::from_secs(12));
    router.send(&a, too_big(&a, "2001:db8:f::9", 1300));
    assert_eq!(
        run(&router, "show ip pmtu", "").unwrap().to_text(),
        "20.0.0.8 table:0 pmtu:1400\n20.0.0.9 table:0 pmtu:800 learnt:800 age:12s expires:588s\n\
         2001:db8:f::9 table:0 pmtu:1300 learnt:1300 age:0s expires:600s\n"
    );
    let json = run(&router, "show ip pmtu", "").unwrap().to_json();
    assert!(json[0]["learnt"].is_null() && json[1]["learnt"]["age"] == 12, "{json}");
    run(&router, "set ip pmtu-learning", "on lifetime=900").unwrap();
    router.send(&a, too_big(&a, "20.0.0.7", 900));
    assert!(
        run(&router, "show ip pmtu", "")
            .unwrap()
            .to_text()
            .contains("20.0.0.7 table:0 pmtu:900 learnt:900 age:0s expires:900s")
    );
    let CliError::Argument { name, nearest, .. } =
        run(&router, "set ip pmtu-learning", "on lifetime=1").unwrap_err()
    else {
        panic!("not of the argument")
    };
    assert_eq!((name.as_str(), nearest.as_deref()), ("lifetime", Some("300")));
    run(&router, "set ip pmtu-learning", "off").unwrap();
    assert!(!run(&router, "show ip pmtu", "").unwrap().to_text().contains("learnt"));
}
