//! Multicast routes by the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::net::IpAddr;

use common::{GROUPS, MODULES, SOURCES, addr, packet, router};
use shoal_fib::{Fib, FibIndex, Path};
use shoal_message::Retval;
use shoal_mfib::api::IP;
use shoal_mfib::{ItfFlags, Mfib};
use shoal_module::api::ApiPart;
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};
use shoal_testkit::{ApiAsker, Router};

static PARTS: &[&ApiPart] = &[&IP];
const OK: Retval = Retval(0);
const NONE: u32 = u32::MAX;
const PATH: usize = 171;

fn table(id: u32, is_ip6: bool) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.push(is_ip6.into());
    bytes.resize(69, 0);
    bytes
}

fn sixteen(addr: IpAddr) -> Vec<u8> {
    let mut bytes = match addr {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    };
    bytes.resize(16, 0);
    bytes
}

/// Flags of the interface, its number, and the kind of path.
type PathFields = (u8, u32, u8);

/// A request: what is done, table, flags, source, group and how many bits count, interfaces.
fn request(
    how: [u8; 2],
    table: u32,
    flags: u8,
    (source, group, bits): (Option<&str>, &str, u16),
    ways: &[PathFields],
) -> Vec<u8> {
    let group = addr(group);
    let mut all = how.to_vec();
    all.extend(table.to_be_bytes());
    all.extend([0, 0, 0, flags, 0, 0, 0, 0, u8::from(group.is_ipv6())]);
    all.extend(bits.to_be_bytes());
    all.extend(sixteen(group));
    all.extend(source.map_or_else(|| vec![0; 16], |source| sixteen(addr(source))));
    all.push(ways.len() as u8);
    for (flags, interface, kind) in ways {
        let start = all.len();
        all.extend([0, 0, 0, *flags]);
        all.extend(interface.to_be_bytes());
        all.extend([0; 10]);
        all.extend([0, 0, 0, *kind]);
        all.resize(start + PATH, 0);
    }
    all
}

#[test]
fn declared_messages_are_those_of_vpp() {
    same_as_vpp(&[&IP]);
}

#[test]
fn random_bytes_are_answered() {
    let mut router = Router::new(MODULES);
    random_bytes_do_no_harm(&mut router, &[&IP], 300);
}

#[test]
fn routes_come_forward_and_go() {
    let (mut router, ports) = router(3);
    for (family, (group, source)) in GROUPS.into_iter().zip(SOURCES).enumerate() {
        let bits = if family == 0 { 64 } else { 256 };
        let (accept, forward) = (ItfFlags::ACCEPT.0, ItfFlags::FORWARD.0);
        let ways = [
            (accept, ports[0].index().0, 0),
            (forward, ports[1].index().0, 0),
            (forward, ports[2].index().0, 0),
        ];
        let entry = (Some(source), group, bits);
        let before = router.get::<Mfib>().count([shoal_adj::Family::Ip4, shoal_adj::Family::Ip6][family]);
        let go = |router: &Router, how, ways: &[PathFields]| {
            ApiAsker::new(router.control(), PARTS)
                .retval("ip_mroute_add_del", &request(how, 0, 0, entry, ways))
        };
        assert_eq!(go(&router, [1, 1], &ways), OK);
        router.send(&ports[0], packet(source, group).build());
        assert_eq!([1, 2].map(|n| ports[n].received().len()), [1, 1]);
        // An interface's flags are replaced: it forwards no more.
        assert_eq!(go(&router, [1, 1], &[(accept, ports[2].index().0, 0)]), OK);
        router.send(&ports[0], packet(source, group).build());
        assert_eq!([1, 2].map(|n| ports[n].received().len()), [1, 0]);
        let rows = ApiAsker::new(router.control(), PARTS).ask("ip_mroute_dump", &table(0, family == 1));
        let row = rows.iter().find(|row| row[15..31] == sixteen(addr(group))).unwrap();
        assert_eq!(row[13..15], u16::to_be_bytes(bits));
        assert_eq!((&row[31..47], row[47]), (&sixteen(addr(source))[..], 3));
        assert_eq!(row.len(), 48 + 3 * PATH);
        assert_eq!(go(&router, [0, 1], &[(0, ports[1].index().0, 0)]), OK);
        assert_eq!(go(&router, [0, 1], &[(0, ports[1].index().0, 0)]), OK);
        router.send(&ports[0], packet(source, group).build());
        assert_eq!([1, 2].map(|n| ports[n].received().len()), [0, 0]);
        assert_eq!(go(&router, [0, 0], &[]), OK);
        assert_eq!(go(&router, [0, 0], &[]), OK);
        let after = router.get::<Mfib>().count([shoal_adj::Family::Ip4, shoal_adj::Family::Ip6][family]);
        assert_eq!(after, before);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let (router, ports) = router(1);
    let client = ApiAsker::new(router.control(), PARTS);
    let good = (ItfFlags::ACCEPT.0, ports[0].index().0, 0);
    let any = (None, "232.1.1.1", 32);
    for (how, table, flags, entry, ways, wanted) in [
        ([1, 1], 9, 0, any, vec![good], Retval::NO_SUCH_FIB),
        ([0, 0], 9, 0, any, vec![], Retval::NO_SUCH_FIB),
        ([1, 1], 0, 0, any, vec![], Retval::NO_PATHS_IN_ROUTE),
        ([1, 1], 0, 0, any, vec![(ItfFlags::ACCEPT.0, 99, 0)], Retval::NO_MATCHING_INTERFACE),
        ([1, 1], 0, 0, any, vec![(0, good.1, 0)], Retval::INVALID_VALUE),
        ([1, 1], 0, 0, any, vec![(16, good.1, 0)], Retval::UNSUPPORTED),
        ([1, 1], 0, 16, any, vec![good], Retval::UNSUPPORTED),
        ([1, 1], 0, 0, any, vec![(4, good.1, 2)], Retval::UNSUPPORTED),
        ([1, 1], 0, 0, any, vec![(2, NONE, 1)], Retval::INVALID_VALUE),
        ([1, 1], 0, 0, (None, "10.1.1.1", 32), vec![good], Retval::INVALID_DST_ADDRESS),
        ([1, 1], 0, 0, (None, "232.1.1.1", 40), vec![good], Retval::INVALID_PREFIX_LENGTH),
        ([1, 1], 0, 0, (Some("232.1.1.2"), "232.1.1.1", 64), vec![good], Retval::INVALID_SRC_ADDRESS),
        ([1, 1], 0, 0, (None, "224.0.0.9", 32), vec![(4, good.1, 0)], Retval::INVALID_DST_ADDRESS),
    ] {
        let fields = request(how, table, flags, entry, &ways);
        assert_eq!(client.retval("ip_mroute_add_del", &fields), wanted, "{entry:?} {ways:?}");
    }
}

#[test]
fn what_is_not_said_again_goes_from_both_tables() {
    let (router, ports) = router(1);
    let client = ApiAsker::new(router.control(), PARTS);
    let (fib, path) = (router.get::<Fib>(), Path::next_hop(addr("10.0.0.9"), ports[0].index()));
    let good = (ItfFlags::ACCEPT.0, ports[0].index().0, 0);
    let add = |group: &str| {
        let fields = request([1, 1], 0, 0, (None, group, 32), &[good]);
        assert_eq!(client.retval("ip_mroute_add_del", &fields), OK);
    };
    let route = |net: &str| {
        let net: shoal_wire::IpPrefix = net.parse().unwrap();
        fib.add(FibIndex::DEFAULT, net, shoal_fib::Source::Api, &[path]).unwrap();
    };
    let counts = || {
        let routes = fib.entries(shoal_adj::Family::Ip4, FibIndex::DEFAULT).unwrap().len();
        (routes, router.get::<Mfib>().count(shoal_adj::Family::Ip4))
    };
    let (routes, mroutes) = counts();
    ["232.1.1.1", "232.1.1.2"].into_iter().for_each(add);
    ["20.0.0.0/8", "21.0.0.0/8"].into_iter().for_each(route);
    assert_eq!(counts(), (routes + 2, mroutes + 2));
    assert_eq!(client.retval("ip_table_replace_begin", &table(0, false)), OK);
    assert_eq!(counts(), (routes + 2, mroutes + 2));
    add("232.1.1.1");
    route("21.0.0.0/8");
    assert_eq!(client.retval("ip_table_replace_end", &table(0, false)), OK);
    assert_eq!(counts(), (routes + 1, mroutes + 1));
    assert_eq!(client.retval("ip_table_replace_end", &table(0, false)), OK);
    assert_eq!(counts(), (routes + 1, mroutes + 1));
    assert_eq!(client.retval("ip_table_flush", &table(0, false)), OK);
    assert_eq!(counts(), (routes, mroutes));
    for name in ["ip_table_replace_begin", "ip_table_replace_end", "ip_table_flush"] {
        assert_eq!(client.retval(name, &table(9, true)), Retval::NO_SUCH_FIB);
    }
}

#[test]
fn signalled_packets_are_told_once() {
    let (mut router, ports) = router(2);
    let (group, source) = (GROUPS[0], SOURCES[0]);
    let fields =
        request([1, 1], 0, 1, (Some(source), group, 64), &[(ItfFlags::ACCEPT.0, ports[0].index().0, 0)]);
    assert_eq!(ApiAsker::new(router.control(), PARTS).retval("ip_mroute_add_del", &fields), OK);
    router.send(&ports[0], packet(source, group).build());
    router.send(&ports[0], packet(source, group).build());
    let client = ApiAsker::new(router.control(), PARTS);
    let rows = client.ask("mfib_signal_dump", &[]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][..4], ports[0].index().0.to_be_bytes());
    assert_eq!(rows[0][9..11], 64u16.to_be_bytes());
    assert_eq!(client.ask("mfib_signal_dump", &[]).len(), 0);
    assert_eq!(client.ask("ip_mtable_dump", &[]).len(), 2);
}
