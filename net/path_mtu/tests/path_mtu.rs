//! Path MTUs through the router: which packets are cut, which senders get an error, and which are left alone. RFC 1191;
//! RFC 8201.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::net::{IpAddr, Ipv6Addr};

use shoal_fib::{Family, Fib, FibIndex, Path, Source, Via};
use shoal_ip6::Ip6;
use shoal_module::Module;
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_path_mtu::{PathMtu, PathMtuError, PathMtus};
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::{IpPrefix, MacAddress};

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

const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);

fn station(n: u8) -> MacAddress {
    MacAddress([2, 0xbb, 0, 0, 0, n])
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A router with hosts 2, 3 and 4 on each of two networks of both families.
fn router() -> (Router, Port, Port) {
    let mut router = Router::new(MODULES);
    let (a, b) = (router.pg(0), router.pg(1));
    for (net, port) in [(0u16, &a), (1, &b)] {
        router.set_address(port, &format!("10.0.{net}.1/24"));
        let ip6 = router.get::<Ip6>();
        ip6.add_address(port.index(), format!("2001:db8:{net}::1/64").parse().unwrap()).unwrap();
        for host in 2..5u8 {
            let mac = if net == 0 { HOST } else { station(host) };
            router.set_neighbour(port, [10, 0, net as u8, host].into(), mac);
            let key = (port.index(), Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host.into()));
            router.get::<shoal_ip6_nd::Neighbours>().set(key, mac, Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    router.advance(std::time::Duration::from_secs(5));
    drop((a.received(), b.received()));
    (router, a, b)
}

/// A packet of `total` bytes from host 2 behind pg0.
fn packet(a: &Port, to: &str, total: usize, dont_fragment: bool) -> Vec<u8> {
    let packet = PacketBuilder::ethernet(HOST, a.mac());
    let packet = match ip(to) {
        IpAddr::V4(to) => packet.ip4([10, 0, 0, 2], to).udp(1, 2).payload_len(total - 28),
        IpAddr::V6(to) => {
            packet.ip6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2), to).udp(1, 2).payload_len(total - 48)
        }
    };
    if dont_fragment { packet.dont_fragment().build() } else { packet.build() }
}

/// The MTU in the error to the sender.
fn told(a: &Port) -> Option<u32> {
    let all = a.received();
    let frame = all.first()?;
    let (at, kind) = if frame[12..14] == [8, 0] { (34, [3, 4]) } else { (54, [2, 0]) };
    assert_eq!(frame[at..at + 2], kind);
    Some(u32::from_be_bytes(frame[at + 4..at + 8].try_into().unwrap()))
}

fn default_route(router: &Router, prefix: &str, via: &str, port: &Port) {
    let prefix: IpPrefix = prefix.parse().unwrap();
    router
        .get::<Fib>()
        .add(FibIndex(0), prefix, Source::Cli, &[Path::next_hop(ip(via), port.index())])
        .unwrap();
}

#[test]
fn packets_to_the_host_are_cut_or_their_senders_told_and_others_pass() {
    let (mut router, a, b) = router();
    let all = router.get::<PathMtus>();
    all.update(0, ip("10.0.1.2"), 576).unwrap();
    all.update(0, ip("2001:db8:1::2"), 1300).unwrap();
    router.send(&a, packet(&a, "10.0.1.2", 1000, false));
    let pieces = b.received();
    assert_eq!((pieces.len(), pieces[0].len()), (2, 14 + 572));
    assert_eq!(pieces[0][..6], station(2).0);
    router.send(&a, packet(&a, "10.0.1.2", 1000, true));
    assert_eq!((told(&a), b.received().len()), (Some(576), 0));
    router.send(&a, packet(&a, "10.0.1.2", 576, true));
    assert_eq!((told(&a), b.received().len()), (None, 1));
    router.send(&a, packet(&a, "2001:db8:1::2", 1301, false));
    assert_eq!((told(&a), b.received().len()), (Some(1300), 0));
    router.send(&a, packet(&a, "2001:db8:1::2", 1300, false));
    assert_eq!((told(&a), b.received().len()), (None, 1));
    for other in ["10.0.1.3", "2001:db8:1::3"] {
        router.send(&a, packet(&a, other, 1400, true));
        assert_eq!((told(&a), b.received().len()), (None, 1), "{other}");
    }
    all.delete(0, ip("10.0.1.2")).unwrap();
    all.delete(0, ip("2001:db8:1::2")).unwrap();
    for host in ["10.0.1.2", "2001:db8:1::2"] {
        router.send(&a, packet(&a, host, 1400, true));
        assert_eq!((told(&a), b.received().len()), (None, 1), "{host}");
    }
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}

#[test]
fn a_far_host_is_reached_by_whatever_route_there_is() {
    for (prefix, first, second, far, mtu) in [
        ("20.0.0.0/8", "10.0.1.2", "10.0.1.3", "20.1.2.3", 1000),
        ("2001:db8:f::/48", "2001:db8:1::2", "2001:db8:1::3", "2001:db8:f::9", 1300),
    ] {
        let (mut router, a, b) = router();
        let all = router.get::<PathMtus>();
        // Before there is a route: nothing changes, the packet is dropped as before.
        all.update(0, ip(far), mtu).unwrap();
        router.send(&a, packet(&a, far, 1200.max(usize::from(mtu) + 1), true));
        let none = a.received();
        assert_eq!((none.len(), b.received().len()), (0, 0), "no route: {:?}", router.errors());
        let expect = |router: &mut Router, mac: MacAddress| {
            router.send(&a, packet(&a, far, usize::from(mtu), true));
            let out = b.received();
            assert_eq!((told(&a), out.len()), (None, 1), "{far}: {:?}", router.errors());
            assert_eq!(out[0][..6], mac.0);
            router.send(&a, packet(&a, far, usize::from(mtu) + 1, true));
            assert_eq!((told(&a), b.received().len()), (Some(mtu.into()), 0));
        };
        default_route(&router, prefix, first, &b);
        expect(&mut router, station(2));
        default_route(&router, prefix, second, &b);
        expect(&mut router, station(3));
        // A route to the host itself, under the path MTU.
        let host = IpPrefix::host(ip(far));
        let fib = router.get::<Fib>();
        fib.add(FibIndex(0), host, Source::Cli, &[Path::next_hop(ip(first), b.index())]).unwrap();
        expect(&mut router, station(2));
        fib.remove(FibIndex(0), host, Source::Cli).unwrap();
        expect(&mut router, station(3));
        // A recursive one.
        fib.add(
            FibIndex(0),
            prefix.parse::<IpPrefix>().unwrap(),
            Source::Cli,
            &[Path::recursive(ip(first), FibIndex(0))],
        )
        .unwrap();
        expect(&mut router, station(2));
        // And one that ends.
        fib.add(FibIndex(0), prefix.parse::<IpPrefix>().unwrap(), Source::Cli, &[Via::Drop.into()]).unwrap();
        router.send(&a, packet(&a, far, 100, true));
        assert_eq!((a.received().len(), b.received().len()), (0, 0));
        assert_eq!(fib.check(), Vec::<String>::new());
        all.delete(0, ip(far)).unwrap();
        assert_eq!(fib.check(), Vec::<String>::new());
    }
}

#[test]
fn next_hops_are_found_as_if_there_were_no_path_mtu() {
    let (mut router, a, b) = router();
    let fib = router.get::<Fib>();
    let prefix: IpPrefix = "30.0.0.0/8".parse().unwrap();
    fib.add(FibIndex(0), prefix, Source::Cli, &[Path::recursive(ip("10.0.1.4"), FibIndex(0))]).unwrap();
    router.get::<PathMtus>().update(0, ip("10.0.1.4"), 600).unwrap();
    router.send(&a, packet(&a, "30.1.1.1", 1400, true));
    assert_eq!((told(&a), b.received().len()), (None, 1));
    router.send(&a, packet(&a, "10.0.1.4", 1400, true));
    assert_eq!((told(&a), b.received().len()), (Some(600), 0));
    assert_eq!(fib.check(), Vec::<String>::new());
}

#[test]
fn shares_of_several_ways_stay_as_they_are() {
    let (mut router, a, b) = router();
    let fib = router.get::<Fib>();
    let prefix: IpPrefix = "30.0.0.0/8".parse().unwrap();
    let ways = ["10.0.1.2", "10.0.1.3"].map(|n| Path::next_hop(ip(n), b.index()));
    fib.add(FibIndex(0), prefix, Source::Cli, &ways).unwrap();
    router.get::<PathMtus>().update(0, ip("30.1.1.1"), 600).unwrap();
    let mut met = [0, 0];
    for flow in 0..64u16 {
        let packet = PacketBuilder::ethernet(HOST, a.mac())
            .ip4([10, 0, 0, 2], [30, 1, 1, 1])
            .udp(flow, 2)
            .payload_len(20);
        router.send(&a, packet.build());
        met[usize::from(b.received_one()[5] - 2)] += 1;
    }
    assert!(met.iter().all(|n| *n > 10), "{met:?}");
}

#[test]
fn what_the_router_says_itself_is_no_longer_either() {
    let (mut router, a, _) = router();
    router.get::<PathMtus>().update(0, ip("10.0.0.2"), 600).unwrap();
    router.get::<PathMtus>().update(0, ip("2001:db8::2"), 1280).unwrap();
    let echo =
        PacketBuilder::ethernet(HOST, a.mac()).ip4([10, 0, 0, 2], [10, 0, 0, 1]).icmp_echo_request(1, 1);
    router.send(&a, echo.payload_len(1000).build());
    assert_eq!(a.received().len(), 2);
    let us = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let them = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
    let echo = PacketBuilder::ethernet(HOST, a.mac()).ip6(them, us).icmp6_echo_request(1, 1);
    router.send(&a, echo.payload_len(1400).build());
    assert_eq!(a.received().len(), 2);
}

#[test]
fn impossible_ones_are_refused_with_the_nearest() {
    let (router, ..) = router();
    let all = router.get::<PathMtus>();
    let refused = |peer: &str, mtu| all.update(0, ip(peer), mtu).unwrap_err();
    assert_eq!(
        refused("10.0.1.2", 67).to_string(),
        "path MTU 67 to 10.0.1.2 is not possible: 68 to 65535, nearest 68"
    );
    assert_eq!(refused("2001:db8::2", 1279).nearest(), Some(1280));
    for no_host in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "127.0.0.1", "::", "ff02::1", "fe80::1"] {
        assert!(matches!(refused(no_host, 1400), PathMtuError::NotAHost(_)), "{no_host}");
    }
    assert!(matches!(all.update(7, ip("10.0.1.2"), 1400), Err(PathMtuError::Fib(_))));
    assert!(all.list().is_empty());
    all.update(0, ip("10.0.1.2"), 68).unwrap();
    let none = all.delete(0, ip("10.0.1.3")).unwrap_err();
    assert_eq!(none.to_string(), "no path MTU to 10.0.1.3 in table 0, nearest 10.0.1.2");
}

#[test]
fn what_is_not_said_again_goes_with_a_replacement() {
    let (router, ..) = router();
    let all = router.get::<PathMtus>();
    for (n, mtu) in [(2, 1000), (3, 1100), (4, 1200)] {
        all.update(0, ip(&format!("10.0.1.{n}")), mtu).unwrap();
    }
    all.replace_begin();
    all.update(0, ip("10.0.1.3"), 1111).unwrap();
    all.replace_end().unwrap();
    assert_eq!(all.list(), [PathMtu { table: 0, peer: ip("10.0.1.3"), mtu: 1111, learnt: None }]);
    all.replace_end().unwrap();
    assert_eq!(all.list().len(), 1);
}

#[test]
fn they_go_with_their_table() {
    let (router, ..) = router();
    let (all, fib) = (router.get::<PathMtus>(), router.get::<Fib>());
    fib.add_table(Family::Ip4, 9, None).unwrap();
    all.update(9, ip("10.9.9.9"), 1400).unwrap();
    assert_eq!(all.list().len(), 1);
    fib.del_table(Family::Ip4, 9).unwrap();
    assert!(all.list().is_empty());
    assert_eq!(fib.check(), Vec::<String>::new());
}
