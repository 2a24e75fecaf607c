//! Tables and routes by the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::router;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use router::{ip, prefix, router};
use shoal_fib::api::{FIB, IP};
use shoal_fib::{Family, Fib, FibIndex, Path, Source, Sweep, consecutive};
use shoal_interface::SwIfIndex;
use shoal_message::{Input, Retval};
use shoal_module::api::handler::{Handler, Outcome};
use shoal_module::api::{Answers, ApiMessage, Call};
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};

const NONE: u32 = u32::MAX;

fn message(name: &str) -> &'static ApiMessage {
    [&IP, &FIB].iter().flat_map(|part| part.messages).find(|m| m.described.name == name).unwrap()
}

fn handler(name: &str) -> Handler {
    message(name).handler.unwrap()
}

/// Bodies of all answers, from the context on.
pub(crate) fn ask(call: &Call, name: &str, request: &[u8]) -> Vec<Vec<u8>> {
    let mut to = Vec::new();
    let mut answers = Answers::new(&mut to, 7, 1, 2);
    if let Outcome::More(mut rows) = handler(name)(call, Input::new(request), &mut answers).unwrap() {
        while rows(&mut answers) {}
    }
    split(&to)
}

fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let length = u32::from_be_bytes(bytes[8..12].try_into().unwrap()) as usize;
        all.push(bytes[22..16 + length].to_vec());
        bytes = &bytes[16 + length..];
    }
    all
}

pub(crate) fn retval(call: &Call, name: &str, request: &[u8]) -> Retval {
    let answers = ask(call, name, request);
    assert_eq!(answers.len(), 1);
    Retval(i32::from_be_bytes(answers[0][..4].try_into().unwrap()))
}

fn table(id: u32, family: Family, name: &str) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.push(u8::from(family == Family::Ip6));
    bytes.extend(name.as_bytes());
    bytes.resize(69, 0);
    bytes
}

fn address(addr: IpAddr) -> Vec<u8> {
    let mut bytes = match addr {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    };
    bytes.resize(16, 0);
    bytes
}

fn af(addr: IpAddr) -> u8 {
    u8::from(addr.is_ipv6())
}

/// A path's bytes.
#[derive(Clone, Copy)]
pub(crate) struct PathBytes {
    interface: u32,
    table: u32,
    weight: u8,
    preference: u8,
    kind: u32,
    flags: u32,
    proto: u32,
    next_hop: IpAddr,
    labels: u8,
}

pub(crate) fn to(next_hop: &str, interface: u32) -> PathBytes {
    let next_hop = ip(next_hop);
    let proto = u32::from(af(next_hop));
    PathBytes { interface, table: 0, weight: 0, preference: 0, kind: 0, flags: 0, proto, next_hop, labels: 0 }
}

impl PathBytes {
    fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for n in [self.interface, self.table, 0] {
            all.extend(n.to_be_bytes());
        }
        all.extend([self.weight, self.preference]);
        for n in [self.kind, self.flags, self.proto] {
            all.extend(n.to_be_bytes());
        }
        all.extend(address(self.next_hop));
        all.extend([0; 12]);
        all.push(self.labels);
        all.resize(all.len() + 16 * 7, 0);
        all
    }

    /// Interface, table, weight, preference, kind and next hop of an answer's path.
    fn read(bytes: &[u8]) -> (u32, u32, u8, u8, u32, IpAddr) {
        let n = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let sixteen: [u8; 16] = bytes[26..42].try_into().unwrap();
        let next_hop = match n(22) {
            0 => IpAddr::from(<[u8; 4]>::try_from(&sixteen[..4]).unwrap()),
            _ => IpAddr::from(sixteen),
        };
        (n(0), n(4), bytes[12], bytes[13], n(14), next_hop)
    }
}

const PATH: usize = 167;

pub(crate) fn route(table: u32, to: &str, ways: &[PathBytes], v2: Option<u8>) -> Vec<u8> {
    let to = prefix(to);
    let mut bytes = table.to_be_bytes().to_vec();
    bytes.extend([0; 4]);
    bytes.push(af(to.addr()));
    bytes.extend(address(to.addr()));
    bytes.extend([to.len(), ways.len() as u8]);
    bytes.extend(v2);
    for way in ways {
        bytes.extend(way.bytes());
    }
    bytes
}

pub(crate) fn add_del(
    call: &Call,
    (add, multipath): (u8, u8),
    table: u32,
    to: &str,
    ways: &[PathBytes],
) -> Retval {
    let mut request = vec![add, multipath];
    request.extend(route(table, to, ways, None));
    retval(call, "ip_route_add_del", &request)
}

pub(crate) const ADD: (u8, u8) = (1, 0);
const ADD_PATHS: (u8, u8) = (1, 1);
const DEL: (u8, u8) = (0, 0);
const DEL_PATHS: (u8, u8) = (0, 1);
pub(crate) const OK: Retval = Retval(0);

/// Ways of routes, by prefix.
type RoutePaths = BTreeMap<String, Vec<(u32, u32, u8, u8, u32, IpAddr)>>;

fn dump(call: &Call, id: u32, family: Family) -> RoutePaths {
    ask(call, "ip_route_dump", &table(id, family, "")).iter().map(|row| read(row)).collect()
}

type ReadRoute = (String, Vec<(u32, u32, u8, u8, u32, IpAddr)>);

/// Prefix and paths of a route.
fn read(row: &[u8]) -> ReadRoute {
    let sixteen: [u8; 16] = row[9..25].try_into().unwrap();
    let addr = match row[8] {
        0 => IpAddr::from(<[u8; 4]>::try_from(&sixteen[..4]).unwrap()),
        _ => IpAddr::from(sixteen),
    };
    let paths = row[27..].chunks(PATH).map(PathBytes::read).collect::<Vec<_>>();
    assert_eq!(paths.len(), usize::from(row[26]));
    (format!("{addr}/{}", row[25]), paths)
}

#[test]
fn declared_messages_are_those_of_vpp() {
    same_as_vpp(&[&IP, &FIB]);
}

#[test]
fn random_bytes_are_answered() {
    let mut router = shoal_testkit::Router::new(&[&shoal_adj::MODULE, &shoal_fib::MODULE]);
    random_bytes_do_no_harm(&mut router, &[&IP, &FIB], 2000);
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}

#[test]
fn tables_come_and_go_however_often_clients_ask() {
    let router = router(1);
    let (call, fib) = (Call::local(&router.control), &router.fib);
    for family in Family::ALL {
        let with = |first: &[u8], id| [first.to_vec(), table(id, family, "red")].concat();
        let v2 = |id, add| [table(id, family, ""), vec![1, add]].concat();
        for _ in 0..2 {
            assert_eq!(retval(&call, "ip_table_add_del", &with(&[1], 10)), OK);
            assert_eq!(retval(&call, "ip_table_add_del_v2", &v2(12, 1)), OK);
            assert_eq!(retval(&call, "ip_table_add_del", &with(&[1], 0)), OK);
        }
        assert_eq!(fib.ids(family), [0, 10, 12]);
        assert_eq!(fib.name_of(family, 10).unwrap(), "red");
        let bad = [vec![1], table(11, family, "a\nb")].concat();
        assert_eq!(retval(&call, "ip_table_add_del", &bad), Retval::ILLEGAL_NAME);
        for _ in 0..2 {
            assert_eq!(retval(&call, "ip_table_add_del", &with(&[0], 10)), OK);
            assert_eq!(retval(&call, "ip_table_add_del_v2", &v2(12, 0)), OK);
            assert_eq!(retval(&call, "ip_table_add_del", &with(&[0], 0)), OK);
        }
        assert_eq!(fib.ids(family), [0]);
        let rows = ask(&call, "ip_table_allocate", &table(NONE, family, ""));
        assert_eq!(rows[0][..8], [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(retval(&call, "ip_table_allocate", &table(7, family, "seven")), OK);
        assert_eq!(fib.ids(family), [0, 1, 7]);
    }
    let rows = ask(&call, "ip_table_dump", &[]);
    let told: Vec<(u8, u8, String)> = rows
        .iter()
        .map(|r| (r[3], r[4], String::from_utf8_lossy(&r[5..]).trim_end_matches('\0').to_owned()))
        .collect();
    let named = |id, v6: u8, name: &str| (id, v6, name.to_owned());
    assert_eq!(told[..3], [named(0, 0, "ipv4-VRF:0"), named(1, 0, "ipv4-VRF:1"), named(7, 0, "seven")]);
    assert_eq!(told[3..], [named(0, 1, "ipv6-VRF:0"), named(1, 1, "ipv6-VRF:1"), named(7, 1, "seven")]);
}

#[test]
fn a_table_that_is_needed_goes_with_the_last_who_needs_it() {
    let router = router(1);
    let (call, fib) = (Call::local(&router.control), &router.fib);
    let (add, del) =
        ([vec![1], table(10, Family::Ip4, "")].concat(), [vec![0], table(10, Family::Ip4, "")].concat());
    assert_eq!(retval(&call, "ip_table_add_del", &add), OK);
    let index = fib.index_of(Family::Ip4, 10).unwrap();
    fib.lock(Family::Ip4, index, Source::Interface).unwrap();
    assert_eq!(add_del(&call, ADD, 10, "10.0.0.0/8", &[to("192.0.2.1", 1)]), OK);
    assert_eq!(retval(&call, "ip_table_add_del", &del), OK);
    assert_eq!((fib.ids(Family::Ip4), fib.entries(Family::Ip4, index).unwrap().len()), (vec![0, 10], 5));
    fib.unlock(Family::Ip4, index, Source::Interface);
    assert_eq!(fib.ids(Family::Ip4), [0]);
    // A client that wants it again meanwhile keeps it.
    assert_eq!(retval(&call, "ip_table_add_del", &add), OK);
    fib.lock(Family::Ip4, index, Source::Interface).unwrap();
    assert_eq!(retval(&call, "ip_table_add_del", &del), OK);
    assert_eq!(retval(&call, "ip_table_add_del", &add), OK);
    fib.unlock(Family::Ip4, index, Source::Interface);
    assert_eq!(fib.ids(Family::Ip4), [0, 10]);
    // A route of another table leads there.
    assert_eq!(add_del(&call, ADD, 0, "10.0.0.0/8", &[PathBytes { table: 10, ..to("0.0.0.0", NONE) }]), OK);
    assert_eq!(router.way("10.1.1.1"), "Lookup - 0.0.0.1");
    assert_eq!(retval(&call, "ip_table_add_del", &del), OK);
    assert_eq!(ask(&call, "ip_table_dump", &[]).len(), 3);
    assert_eq!(add_del(&call, DEL, 0, "10.0.0.0/8", &[]), OK);
    assert_eq!(ask(&call, "ip_table_dump", &[]).len(), 2);
}

#[test]
fn routes_are_added_replaced_joined_and_taken_away() {
    let router = router(2);
    let (call, fib) = (Call::local(&router.control), &router.fib);
    for (net, host, a, b, recursive) in [
        ("10.0.0.0/8", "10.1.1.1", "192.0.2.1", "192.0.2.2", "192.0.2.9"),
        ("2001:db8::/32", "2001:db8::5", "fe80::1", "fe80::2", "2001:db9::9"),
    ] {
        let before = router.locks();
        assert_eq!(add_del(&call, ADD, 0, net, &[to(a, 1)]), OK);
        assert_eq!(router.way(host), format!("Incomplete 1 {a}"));
        assert_eq!(add_del(&call, ADD_PATHS, 0, net, &[PathBytes { weight: 3, ..to(b, 2) }]), OK);
        assert_eq!(router.shares(host).len(), 2);
        let family = Family::of(ip(host));
        let told = dump(&call, 0, family);
        let nets = 6;
        assert_eq!(told.len(), nets, "{told:?}");
        assert_eq!(told[net], [(1, 0, 1, 0, 0, ip(a)), (2, 0, 3, 0, 0, ip(b))]);
        assert_eq!(add_del(&call, DEL_PATHS, 0, net, &[to(a, 1)]), OK);
        assert_eq!(router.way(host), format!("Incomplete 2 {b}"));
        assert_eq!(add_del(&call, DEL_PATHS, 0, net, &[to(a, 1)]), OK);
        assert_eq!(
            add_del(&call, ADD, 0, net, &[to(recursive, NONE), PathBytes { preference: 2, ..to(b, 1) }]),
            OK
        );
        assert_eq!(dump(&call, 0, family)[net], [(NONE, 0, 1, 0, 0, ip(recursive)), (1, 0, 1, 2, 0, ip(b))]);
        for kind in [2, 5, 6] {
            let way = PathBytes { kind, ..to(if family == Family::Ip4 { "0.0.0.0" } else { "::" }, NONE) };
            assert_eq!(add_del(&call, ADD, 0, net, &[way]), OK);
            assert_eq!(dump(&call, 0, family)[net][0].4, kind);
        }
        let any = if family == Family::Ip4 { "0.0.0.0" } else { "::" };
        assert_eq!(add_del(&call, ADD, 0, net, &[PathBytes { kind: 9, ..to(any, 1) }]), OK);
        assert_eq!(dump(&call, 0, family)[net], [(1, 0, 1, 0, 9, ip(any))]);
        assert_eq!(add_del(&call, ADD, 0, net, &[PathBytes { kind: 1, ..to(any, NONE) }]), OK);
        assert!(router.way(host).starts_with("Local"));
        assert_eq!(add_del(&call, ADD, 0, net, &[to(any, 2)]), OK);
        assert_eq!(dump(&call, 0, family)[net], [(2, 0, 1, 0, 0, ip(any))]);
        for _ in 0..2 {
            assert_eq!(add_del(&call, DEL, 0, net, &[]), OK);
        }
        assert_eq!(router.locks(), before);
    }
    assert_eq!(fib.check(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let router = router(1);
    let call = Call::local(&router.control);
    let before = router.locks();
    let good = to("192.0.2.1", 1);
    for (change, table, prefix, ways, wanted) in [
        (ADD, 5, "10.0.0.0/8", vec![good], Retval::NO_SUCH_FIB),
        (DEL, 5, "10.0.0.0/8", vec![], Retval::NO_SUCH_FIB),
        (ADD, 0, "10.0.0.0/8", vec![], Retval::NO_PATHS_IN_ROUTE),
        (ADD_PATHS, 0, "10.0.0.0/8", vec![], Retval::NO_PATHS_IN_ROUTE),
        (DEL_PATHS, 0, "10.0.0.0/8", vec![], Retval::NO_PATHS_IN_ROUTE),
        (ADD, 0, "10.0.0.0/8", vec![to("192.0.2.1", 77)], Retval::NO_MATCHING_INTERFACE),
        (ADD, 0, "10.0.0.0/8", vec![good, to("192.0.2.1", 77)], Retval::NO_MATCHING_INTERFACE),
        (ADD, 0, "10.0.0.0/8", vec![PathBytes { table: 5, ..to("192.0.2.1", NONE) }], Retval::NO_SUCH_FIB),
        (ADD, 0, "10.0.0.0/8", vec![PathBytes { table: 5, ..to("0.0.0.0", NONE) }], Retval::NO_SUCH_FIB),
        (ADD, 0, "10.0.0.0/8", vec![to("::", NONE)], Retval::FIB_PATH_UNSUPPORTED_NH_PROTO),
        (ADD, 0, "10.0.0.0/8", vec![PathBytes { proto: 2, ..good }], Retval::FIB_PATH_UNSUPPORTED_NH_PROTO),
        (ADD, 0, "10.0.0.0/8", vec![PathBytes { proto: 9, ..good }], Retval::INVALID_VALUE),
        (ADD, 0, "10.0.0.0/8", vec![PathBytes { kind: 11, ..good }], Retval::INVALID_VALUE),
        (ADD, 0, "10.0.0.0/8", vec![PathBytes { kind: 3, ..good }], Retval::UNSUPPORTED),
        (ADD, 0, "10.0.0.0/8", vec![PathBytes { labels: 1, ..good }], Retval::UNSUPPORTED),
        (ADD, 0, "10.0.0.0/8", vec![PathBytes { flags: 2, ..good }], Retval::UNSUPPORTED),
        (ADD, 0, "10.0.0.0/8", vec![to("224.0.0.1", 1)], Retval::INVALID_VALUE),
        (ADD, 0, "2001:db8::/32", vec![to("fe80::1", NONE)], Retval::INVALID_VALUE),
    ] {
        assert_eq!(add_del(&call, change, table, prefix, &ways), wanted, "{prefix} {wanted}");
    }
    let mut long = vec![1, 0];
    long.extend(route(0, "10.0.0.0/8", &[good], None));
    long[2 + 8 + 17] = 33;
    assert_eq!(retval(&call, "ip_route_add_del", &long), Retval::INVALID_PREFIX_LENGTH);
    assert_eq!((router.locks(), dump(&call, 0, Family::Ip4).len()), (before, 5));
    // A path that the message says it has, and has not.
    let mut short = vec![1, 0];
    short.extend(route(0, "10.0.0.0/8", &[good], None));
    short.pop();
    let mut to = Vec::new();
    assert!(
        handler("ip_route_add_del")(&call, Input::new(&short), &mut Answers::new(&mut to, 0, 1, 2)).is_err()
    );
}

#[test]
fn a_look_up_finds_the_longest_or_the_prefix_itself() {
    let router = router(1);
    let call = Call::local(&router.control);
    for (net, inside, way) in [
        ("10.0.0.0/8", "10.1.0.0/16", to("192.0.2.1", 1)),
        ("2001:db8::/32", "2001:db8:1::/48", to("fe80::1", 1)),
    ] {
        assert_eq!(add_del(&call, ADD, 0, net, &[way]), OK);
        let look = |name: &str, table: u32, exact: u8, what: &str| {
            let p = prefix(what);
            let mut request = table.to_be_bytes().to_vec();
            request.extend([exact, af(p.addr())]);
            request.extend(address(p.addr()));
            request.push(p.len());
            let row = ask(&call, name, &request).remove(0);
            (Retval(i32::from_be_bytes(row[..4].try_into().unwrap())), row[4..].to_vec())
        };
        let (done, row) = look("ip_route_lookup", 0, 0, inside);
        assert_eq!((done, read(&row).0), (OK, net.to_owned()));
        assert_eq!(look("ip_route_lookup", 0, 1, inside).0, Retval::NO_SUCH_ENTRY);
        assert_eq!(look("ip_route_lookup", 0, 1, net).0, OK);
        assert_eq!(look("ip_route_lookup", 9, 1, net).0, Retval::NO_SUCH_FIB);
        let (done, row) = look("ip_route_lookup_v2", 0, 0, inside);
        assert_eq!((done, row[27]), (OK, Source::Api as u8 + 1));
    }
}

#[test]
fn a_dump_of_one_source_tells_of_that_one_alone() {
    let router = router(1);
    let call = Call::local(&router.control);
    let path = [Path::next_hop(ip("192.0.2.1"), SwIfIndex(1))];
    router.fib.add(FibIndex::DEFAULT, prefix("10.0.0.0/8"), Source::Cli, &path).unwrap();
    assert_eq!(add_del(&call, ADD, 0, "11.0.0.0/8", &[to("192.0.2.2", 1)]), OK);
    let mut request = vec![1, 0];
    request.extend(route(0, "12.0.0.0/8", &[to("192.0.2.3", 1)], Some(Source::Cli as u8 + 1)));
    assert_eq!(retval(&call, "ip_route_add_del_v2", &request), OK);
    request[2 + 4 + 4 + 17 + 1 + 1] = Source::Special as u8 + 1;
    assert_eq!(retval(&call, "ip_route_add_del_v2", &request), Retval::INVALID_VALUE);
    let of = |src: u8| {
        let rows = ask(&call, "ip_route_v2_dump", &[vec![src], table(0, Family::Ip4, "")].concat());
        let mut nets: Vec<String> = rows.iter().map(|row| format!("{}.{}", row[9], row[27])).collect();
        nets.sort();
        nets
    };
    assert_eq!(of(Source::Api as u8 + 1), [format!("11.{}", Source::Api as u8 + 1)]);
    assert_eq!(of(Source::Cli as u8 + 1).len(), 2);
    assert_eq!((of(0).len(), of(200).len()), (8, 0));
    let sources = ask(&call, "fib_source_dump", &[]);
    let api = sources.iter().find(|row| row[2..].starts_with(b"API\0")).unwrap();
    assert_eq!(api[1], Source::Api as u8 + 1);
}

#[test]
fn a_dump_while_routes_come_and_go_tells_of_each_that_stays_once() {
    let router = router(1);
    let (call, fib) = (Call::local(&router.control), &router.fib);
    for (family, first, next_hop) in
        [(Family::Ip4, "16.0.0.0/24", "192.0.2.1"), (Family::Ip6, "2a00::/48", "fe80::1")]
    {
        let path = [Path::next_hop(ip(next_hop), SwIfIndex(1))];
        let all: Vec<_> = consecutive(prefix(first), 60_000).unwrap().collect();
        // Some thousands are there at first; tables are cut and grow several times until the end.
        let (stay, rest) = all.split_at(8_000);
        fib.add_many(FibIndex::DEFAULT, stay.iter().copied(), Source::Api, &path).unwrap();
        let mut bytes = Vec::new();
        let request = table(0, family, "");
        let mut answers = Answers::new(&mut bytes, 7, 1, 2);
        let outcome = handler("ip_route_dump")(&call, Input::new(&request), &mut answers).unwrap();
        let Outcome::More(mut rows) = outcome else { panic!("no rows") };
        let mut coming = rest.iter();
        let mut going = stay.iter().step_by(2);
        loop {
            let mut answers = Answers::new(&mut bytes, 7, 1, 2);
            if !rows(&mut answers) {
                break;
            }
            for one in coming.by_ref().take(6) {
                fib.add(FibIndex::DEFAULT, *one, Source::Api, &path).unwrap();
            }
            if let Some(one) = going.next() {
                fib.remove(FibIndex::DEFAULT, *one, Source::Api).unwrap();
            }
        }
        let mut met: BTreeMap<String, usize> = BTreeMap::new();
        for row in &split(&bytes) {
            *met.entry(read(row).0).or_default() += 1;
        }
        assert!(stay.iter().skip(1).step_by(2).all(|p| met.get(&p.to_string()) == Some(&1)));
        assert!(met.values().all(|times| *times == 1));
        let special = if family == Family::Ip4 { "224.0.0.0/4" } else { "fe80::/10" };
        assert_eq!(met[special], 1);
    }
}

#[test]
fn what_is_not_said_again_is_swept() {
    let router = router(1);
    let (call, fib) = (Call::local(&router.control), &router.fib);
    for (family, nets, way, other) in [
        (Family::Ip4, ["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"], to("192.0.2.1", 1), "192.0.2.9"),
        (Family::Ip6, ["2001:db8::/32", "2001:db9::/32", "2001:dba::/32"], to("fe80::1", 1), "fe80::9"),
    ] {
        for net in &nets {
            assert_eq!(add_del(&call, ADD, 0, net, &[way]), OK);
        }
        let cli = [Path::next_hop(ip(other), SwIfIndex(1))];
        fib.add(FibIndex::DEFAULT, prefix(nets[2]), Source::Cli, &cli).unwrap();
        let go = |act: &dyn Fn(&mut shoal_fib::Walk)| {
            let mut walk = fib.walk(family, FibIndex::DEFAULT).unwrap();
            while walk.goes_on() {
                act(&mut walk);
            }
        };
        go(&|walk| fib.mark(walk));
        assert_eq!(add_del(&call, ADD, 0, nets[0], &[way]), OK);
        // What an operator says of it is not what a client says.
        fib.add(FibIndex::DEFAULT, prefix(nets[1]), Source::Cli, &cli).unwrap();
        fib.remove(FibIndex::DEFAULT, prefix(nets[1]), Source::Cli).unwrap();
        go(&|walk| fib.sweep(walk, Sweep::Marked).unwrap());
        let told = dump(&call, 0, family);
        assert_eq!((told.len(), told[nets[0]][0].5, told[nets[2]][0].5), (7, way.next_hop, ip(other)));
        go(&|walk| fib.sweep(walk, Sweep::Marked).unwrap());
        assert_eq!(dump(&call, 0, family).len(), 7);
        go(&|walk| fib.sweep(walk, Sweep::All).unwrap());
        assert_eq!(dump(&call, 0, family).len(), 6);
        fib.remove(FibIndex::DEFAULT, prefix(nets[2]), Source::Cli).unwrap();
    }
    assert_eq!(fib.check(), Vec::<String>::new());
}

#[test]
fn fields_of_flows_are_chosen() {
    let router = router(1);
    let call = Call::local(&router.control);
    let fields = |family| router.fib.table(family, FibIndex::DEFAULT).unwrap().flow_fields.to_string();
    for (family, v6) in [(Family::Ip4, 0u8), (Family::Ip6, 1)] {
        let v1 = |table: u8| [0, 0, 0, table, v6, 1, 1, 0, 0, 0, 0, 1];
        assert_eq!(retval(&call, "set_ip_flow_hash", &v1(0)), OK);
        assert_eq!(fields(family), "src dst symmetric ");
        assert_eq!(retval(&call, "set_ip_flow_hash", &v1(9)), Retval::NO_SUCH_FIB);
        let later = |high: u8, bits: u8| [0, 0, 0, 0, v6, 0, 0, high, bits];
        assert_eq!(retval(&call, "set_ip_flow_hash_v2", &later(0, 0x83)), OK);
        assert_eq!(fields(family), "src dst flowlabel ");
        assert_eq!(retval(&call, "set_ip_flow_hash_v3", &later(0, 0x1f)), OK);
        assert_eq!(retval(&call, "set_ip_flow_hash_v3", &later(1, 0x1f)), Retval::UNSUPPORTED);
        assert_eq!(fields(family), "src dst sport dport proto ");
    }
    assert_eq!(retval(&call, "set_ip_flow_hash_router_id", &[1, 2, 3, 4]), OK);
}

#[test]
fn a_route_that_counts_says_where() {
    let router = router(1);
    let call = Call::local(&router.control);
    let add = |net: &str| {
        let mut request = vec![1, 0];
        request.extend(route(0, net, &[to("192.0.2.1", 1)], None));
        u32::from_be_bytes(ask(&call, "ip_route_add_del", &request)[0][4..8].try_into().unwrap())
    };
    assert_eq!(add("10.0.0.0/8"), NONE);
    router.fib.count_route(FibIndex::DEFAULT, prefix("10.0.0.0/8"), shoal_adj::Counting::On).unwrap();
    let counter = add("10.0.0.0/8");
    assert_eq!(counter, router.look_up(FibIndex::DEFAULT, ip("10.1.1.1")).0.0);
}

/// Time this thread has run so far: what others do on the machine does not matter.
fn busy() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

/// Prints how many requests a second of processor time the handlers do alone; `cargo test -- --ignored --nocapture`.
#[test]
#[ignore = "prints a rate"]
fn requests_a_second() {
    const MANY: u32 = 1_000_000;
    let router = router(1);
    let call = Call::local(&router.control);
    let say = |what: &str, start: Duration| {
        println!("{what}: {:.0} a second", f64::from(MANY) / busy().saturating_sub(start).as_secs_f64());
    };
    for (family, first, next_hop) in
        [(Family::Ip4, "16.0.0.0/24", "192.0.2.1"), (Family::Ip6, "2a00::/44", "fe80::1")]
    {
        let request = |net: &shoal_wire::IpPrefix| {
            let mut request = vec![1, 0];
            request.extend(route(0, &net.to_string(), &[to(next_hop, 1)], None));
            request
        };
        let mut all: Vec<Vec<u8>> =
            consecutive(prefix(first), MANY).unwrap().map(|net| request(&net)).collect();
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        for i in (1..all.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            all.swap(i, (seed >> 33) as usize % (i + 1));
        }
        let add = handler("ip_route_add_del");
        let mut bytes: Vec<u8> = Vec::new();
        let mut go = |what: &str, all: &[Vec<u8>]| {
            let start = busy();
            for request in all {
                bytes.clear();
                add(&call, Input::new(request), &mut Answers::new(&mut bytes, 7, 1, 2)).unwrap();
            }
            say(what, start);
        };
        go(&format!("{family} routes added, shuffled"), &all);
        go(&format!("{family} routes added again"), &all);
        let start = busy();
        let mut bytes: Vec<u8> = Vec::with_capacity(1 << 20);
        let id = table(0, family, "");
        let mut answers = Answers::new(&mut bytes, 7, 1, 2);
        let outcome = handler("ip_route_dump")(&call, Input::new(&id), &mut answers).unwrap();
        let Outcome::More(mut rows) = outcome else { panic!("no rows") };
        while rows(&mut Answers::new(&mut bytes, 7, 1, 2)) {
            if bytes.len() > 1 << 19 {
                bytes.clear();
            }
        }
        say(&format!("{family} routes told"), start);
        for request in &mut all {
            request[0] = 0;
        }
        let mut bytes: Vec<u8> = Vec::new();
        let start = busy();
        for request in &all {
            bytes.clear();
            add(&call, Input::new(request), &mut Answers::new(&mut bytes, 7, 1, 2)).unwrap();
        }
        say(&format!("{family} routes taken away"), start);
    }
}
