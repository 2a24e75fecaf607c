//! Which hosts may speak to which ports, on the way in and on the way out.

use shoal_message::Retval;
use shoal_module::api::ApiPart;
use shoal_range_check::api::API;
use shoal_range_check::{PortRange, RangeCheck, RangeError, Setting};
use shoal_testkit::{ApiAsker, PEER, PEER_MAC, PacketBuilder, Port, Rng, Router, STACK, api};
use shoal_wire::packet::Fragment;
use shoal_wire::{MacAddress, TcpFlags};

const OK: Retval = Retval(0);
const ALL: u32 = u32::MAX;
const FAR: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);
const RX: &str = "ip4-source-and-port-range-check-rx";
const TX: &str = "ip4-source-and-port-range-check-tx";
const BAD: &str = "ip4 source and port range check bad packets";
const GOOD: &str = "ip4 source and port range check good packets";
static PARTS: &[&ApiPart] = &[&API];

fn router() -> (Router, Port, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_range_check::MODULE);
    let mut router = Router::new(&modules);
    let (a, b) = (router.pg(0), router.pg(1));
    router.set_address(&a, "10.0.0.1/24");
    router.set_address(&b, "10.0.1.1/24");
    router.set_neighbour(&a, PEER, PEER_MAC);
    router.set_neighbour(&b, [10, 0, 1, 2].into(), FAR);
    (router, a, b)
}

fn packet(a: &Port) -> PacketBuilder {
    PacketBuilder::ethernet(PEER_MAC, a.mac()).ip4(PEER, [10, 0, 1, 2])
}

/// Whether packets pass from `a` to `b`.
fn passes(router: &mut Router, (a, b): (&Port, &Port), packet: PacketBuilder) -> bool {
    router.send(a, packet.build());
    b.received().len() == 1
}

fn range(low: u16, high: u16) -> PortRange {
    PortRange { low, high }
}

fn add(router: &Router, prefix: &str, ranges: &[PortRange]) -> Result<(), RangeError> {
    router.get::<RangeCheck>().add(7, prefix.parse().unwrap(), ranges)
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(PARTS);
}

#[test]
fn random_bytes_do_no_harm() {
    let (mut router, ..) = router();
    api::random_bytes_do_no_harm(&mut router, PARTS, 300);
}

#[test]
fn received_packets_pass_by_the_ranges_of_their_longest_prefix() {
    let (mut router, a, b) = router();
    add(&router, "10.0.0.0/8", &[range(23, 100), range(443, 443)]).unwrap();
    let tcp = |port| packet(&a).tcp(1000, port, TcpFlags::SYN);
    assert!(passes(&mut router, (&a, &b), tcp(9)), "it is not asked yet");
    let out = Setting { tcp_out: Some(7), ..Setting::default() };
    router.get::<RangeCheck>().enable(a.index(), out).unwrap();
    for (port, good) in
        [(22, false), (23, true), (100, true), (101, false), (443, true), (0, false), (65535, false)]
    {
        assert_eq!(passes(&mut router, (&a, &b), tcp(port)), good, "{port}");
    }
    assert!(!passes(&mut router, (&a, &b), packet(&a).udp(1000, 23)), "UDP has no table");
    assert!(passes(&mut router, (&a, &b), packet(&a).icmp_echo_request(1, 1)));
    assert!(passes(&mut router, (&a, &b), tcp(9).fragment(64, Fragment::Last)), "it has no ports");
    add(&router, "10.0.0.0/24", &[range(65535, 65535)]).unwrap();
    assert!(!passes(&mut router, (&a, &b), tcp(23)), "a longer prefix decides");
    assert!(passes(&mut router, (&a, &b), tcp(65535)));
    assert_eq!((router.error(RX, GOOD), router.error(RX, BAD)), (4, 6));
    router.get::<RangeCheck>().disable(a.index(), out).unwrap();
    assert!(passes(&mut router, (&a, &b), tcp(9)));
}

#[test]
fn sent_packets_pass_by_the_ranges_of_the_interface_they_leave_by() {
    let (mut router, a, b) = router();
    add(&router, "10.0.0.2/32", &[range(53, 53)]).unwrap();
    let into = Setting { udp_in: Some(7), ..Setting::default() };
    router.get::<RangeCheck>().enable(b.index(), into).unwrap();
    assert!(passes(&mut router, (&a, &b), packet(&a).udp(1000, 53)));
    assert!(!passes(&mut router, (&a, &b), packet(&a).udp(1000, 54)));
    assert!(!passes(&mut router, (&a, &b), packet(&a).tcp(1000, 53, TcpFlags::SYN)));
    assert_eq!((router.error(TX, GOOD), router.error(TX, BAD)), (1, 2));
}

#[test]
fn packets_cut_short_and_random_bytes_are_survived() {
    let (mut router, a, b) = router();
    add(&router, "0.0.0.0/0", &[range(1, 65535)]).unwrap();
    let both = Setting { tcp_out: Some(7), udp_out: Some(7), ..Setting::default() };
    router.get::<RangeCheck>().enable(a.index(), both).unwrap();
    let whole = packet(&a).payload(&[]).protocol(shoal_wire::IpProtocol::UDP).build();
    router.send(&a, &whole);
    assert!(b.received().is_empty(), "no port, no way");
    let mut rng = Rng::new(Rng::seed(5));
    for _ in 0..300 {
        let len = rng.below(40);
        let mut bytes = packet(&a).tcp(1, 2, TcpFlags::SYN).payload(&rng.bytes(len)).build();
        let at = 14 + rng.below(bytes.len() - 14);
        bytes[at] = rng.next_u64() as u8;
        bytes.truncate(14 + rng.below(bytes.len() - 13));
        router.send(&a, bytes);
    }
    b.received();
}

fn message(add: u8, prefix: [u8; 4], len: u8, ranges: &[(u16, u16)], table: u32) -> Vec<u8> {
    let mut bytes = vec![add, 0];
    bytes.extend(prefix);
    bytes.resize(18, 0);
    bytes.extend([len, ranges.len() as u8]);
    let column = |pick: fn(&(u16, u16)) -> u16| {
        let mut column = [0u16; 32];
        column.iter_mut().zip(ranges).for_each(|(to, from)| *to = pick(from));
        column.into_iter().flat_map(u16::to_be_bytes).collect::<Vec<u8>>()
    };
    bytes.extend(column(|r| r.0));
    bytes.extend(column(|r| r.1));
    bytes.extend(table.to_be_bytes());
    bytes
}

#[test]
fn clients_say_ranges_and_interfaces() {
    let (router, a, _) = router();
    let client = ApiAsker::new(router.control(), PARTS);
    let ranges = |add, ranges: &[(u16, u16)], table| {
        client
            .retval("ip_source_and_port_range_check_add_del", &message(add, [10, 0, 0, 0], 8, ranges, table))
    };
    let interface = |add: u8, index: u32, tables: [u32; 4]| {
        let tables = tables.into_iter().flat_map(u32::to_be_bytes);
        let bytes: Vec<u8> = [add].into_iter().chain(index.to_be_bytes()).chain(tables).collect();
        client.retval("ip_source_and_port_range_check_interface_add_del", &bytes)
    };
    assert_eq!(interface(1, a.index().0, [ALL, 7, ALL, ALL]), Retval::INVALID_VALUE, "there is no table 7");
    assert_eq!(ranges(1, &[(1, 9), (20, 20)], 7), OK);
    assert_eq!(interface(1, a.index().0, [ALL, 7, ALL, ALL]), OK);
    assert_eq!(interface(1, a.index().0, [ALL, ALL, ALL, 7]), OK);
    let check = router.get::<RangeCheck>();
    let both = Setting { tcp_out: Some(7), udp_out: Some(7), ..Setting::default() };
    assert_eq!(check.settings(), [(a.index(), both)]);
    assert_eq!(interface(1, 77, [ALL, 7, ALL, ALL]), Retval::INVALID_SW_IF_INDEX);
    assert_eq!(interface(1, a.index().0, [0, 7, ALL, ALL]), Retval::INVALID_VALUE);
    for (wrong, table) in [(&[(9, 1)][..], 7), (&[(0, 1)][..], 7), (&[(1, 2)][..], 0), (&[][..], 7)] {
        assert_eq!(ranges(1, wrong, table), Retval::INVALID_VALUE);
    }
    let many: Vec<(u16, u16)> = (0..32).map(|n| (1000 + n, 1000 + n)).collect();
    let more: Vec<(u16, u16)> = (0..32).map(|n| (2000 + n, 2000 + n)).collect();
    assert_eq!(ranges(1, &many, 7), OK);
    assert_eq!(ranges(1, &more, 7), Retval::EXCEEDED_NUMBER_OF_RANGES_CAPACITY);
    assert_eq!(ranges(0, &many, 7), OK);
    assert_eq!(ranges(0, &many, 7), OK, "as in VPP");
    assert_eq!(check.list()[0].2, [range(1, 9), range(20, 20)]);
    router.interfaces().delete(a.index()).unwrap();
    assert!(check.settings().is_empty());
}

#[test]
fn mistakes_name_what_is_wrong() {
    let (router, a, _) = router();
    let check = router.get::<RangeCheck>();
    add(&router, "10.1.2.3/8", &[range(1, 2)]).unwrap();
    let prefix = "10.0.0.0/8".parse().unwrap();
    let error = check.remove(7, prefix, &[range(1, 3)]).unwrap_err().to_string();
    assert_eq!(error, "10.0.0.0/8 has no ports 1 - 3 in table 7");
    assert_eq!(check.add(0, prefix, &[range(1, 2)]), Err(RangeError::DefaultTable));
    let none = check.disable(a.index(), Setting { tcp_in: Some(7), ..Setting::default() });
    assert_eq!(none.unwrap_err().to_string(), "packets of pg0 are not checked");
    assert_eq!(check.enable(a.index(), Setting::default()), Err(RangeError::NoTables));
    check.remove(7, prefix, &[range(1, 2)]).unwrap();
    assert!(check.list().is_empty());
}
