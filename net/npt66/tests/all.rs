//! NPTv6 through a whole router.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv6Addr;
use std::rc::Rc;
use std::time::Duration;

use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_ip6::Ip6;
use shoal_message::{InterfaceIndex, Retval};
use shoal_module::Running;
use shoal_module::api::{Call, Request};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_npt66::api::{API, Npt66BindingAddDel};
use shoal_npt66::{Binding, Npt66, Npt66Error};
use shoal_testkit::{PacketBuilder, Port, Rng, Router, STACK, api, fuzz_all_nodes};
use shoal_wire::{Ip6Prefix, IpPrefix, IpProtocol, MacAddress, TcpFlags};

const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
const FAR: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);
/// A host, its address outside (RFC 6296, 2.1), another host likewise, and one of the world.
const A: &str = "fd01:203:405:1::1234";
const EA: &str = "2001:db8:1:d550::1234";
const C: &str = "fd01:203:405:2::1234";
const EC: &str = "2001:db8:1:d551::1234";
const B: &str = "2001:db8:ffff::9";

type Make = fn(PacketBuilder) -> PacketBuilder;

const KINDS: [Make; 8] = [
    |p| p.tcp(5000, 80, TcpFlags::SYN).payload(b"odd"),
    |p| p.udp(5000, 53).payload(b"even"),
    |p| p.icmp6_echo_request(7, 1).payload(b"ping!"),
    |p| p.ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &[1, 4, 0, 0, 0, 0]).udp(5, 6).payload(b"x"),
    |p| p.ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &[0, 1, 0, 0, 0, 7]).udp(5, 6).payload(b"first fr"),
    |p| {
        let p = p.ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &[0, 64, 0, 0, 0, 7]);
        p.protocol(IpProtocol::UDP).payload(b"a later fragment")
    },
    |p| p.protocol(IpProtocol::GRE).payload(b"no checksum of addresses"),
    |p| p.protocol(IpProtocol::IP6_NONXT),
];

fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn prefix(text: &str) -> Ip6Prefix {
    text.parse().unwrap()
}

fn binding() -> Binding {
    Binding { internal: prefix("fd01:203:405::/48"), external: prefix("2001:db8:1::/48") }
}

struct Bed {
    router: Router,
    inside: Port,
    outside: Port,
    npt: Rc<Npt66>,
}

fn plain() -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_npt66::MODULE]);
    let mut router = Router::new(&modules);
    let (inside, outside) = (router.pg(0), router.pg(1));
    let nd = router.get::<shoal_ip6_nd::Neighbours>();
    let routes = [(&inside, "fd00:", HOST, "fd01:203:405::/48"), (&outside, "2001:db8:1:", FAR, "::/0")];
    for (port, net, mac, to) in routes {
        let i = port.index();
        router.get::<Ip6>().add_address(i, format!("{net}:1/64").parse().unwrap()).unwrap();
        let hop = ip(&format!("{net}:2"));
        nd.set((i, hop), mac, Origin::Static, FibEntry::Wanted).unwrap();
        let to: IpPrefix = to.parse().unwrap();
        router.get::<Fib>().add(FibIndex::DEFAULT, to, Source::Cli, &[Path::next_hop(hop, i)]).unwrap();
    }
    router.advance(Duration::from_secs(3));
    inside.received();
    outside.received();
    let npt = router.get::<Npt66>();
    Bed { router, inside, outside, npt }
}

fn bed() -> Bed {
    let bed = plain();
    bed.npt.add(bed.outside.index(), binding()).unwrap();
    bed
}

fn frame((src, dst): (MacAddress, MacAddress), (from, to): (&str, &str), hops: u8) -> PacketBuilder {
    PacketBuilder::ethernet(src, dst).ip6(ip(from), ip(to)).ttl(hops)
}

impl Bed {
    fn sent(&self, ends: (&str, &str)) -> PacketBuilder {
        frame((HOST, self.inside.mac()), ends, 64)
    }

    fn left(&self, ends: (&str, &str)) -> PacketBuilder {
        frame((self.outside.mac(), FAR), ends, 63)
    }

    fn asked(&self, ends: (&str, &str)) -> PacketBuilder {
        frame((FAR, self.outside.mac()), ends, 64)
    }

    fn came(&self, ends: (&str, &str)) -> PacketBuilder {
        frame((self.inside.mac(), HOST), ends, 63)
    }

    fn out(&mut self, packet: &PacketBuilder) -> Vec<Vec<u8>> {
        let inside = &self.inside;
        self.router.send(inside, packet.clone().build());
        self.outside.received()
    }

    fn back(&mut self, packet: &PacketBuilder) -> Vec<Vec<u8>> {
        let outside = &self.outside;
        self.router.send(outside, packet.clone().build());
        self.inside.received()
    }
}

/// Port unreachable.
fn error(inner: &[u8]) -> Vec<u8> {
    let mut message = vec![1, 4, 0, 0, 0, 0, 0, 0];
    message.extend(inner);
    message
}

/// `PacketBuilder` computes checksums of the addresses: that of a translated packet is the same.
#[test]
fn each_packet_leaves_and_comes_back_as_the_one_made_with_the_other_prefix() {
    let mut bed = bed();
    for make in KINDS {
        let (sent, left) = (make(bed.sent((A, B))), make(bed.left((EA, B))));
        assert_eq!(bed.out(&sent), [left.build()]);
        let (asked, came) = (make(bed.asked((B, EA))), make(bed.came((B, A))));
        assert_eq!(bed.back(&asked), [came.build()]);
    }
    assert_eq!(bed.router.error("npt66-output", "tx"), 8);
    assert_eq!(bed.router.error("npt66-input", "rx"), 8);
}

#[test]
fn other_addresses_and_the_routers_own_are_left_alone() {
    let mut bed = bed();
    let make: Make = |p| p.udp(1, 2);
    let (sent, left) = (make(bed.sent(("fd02::1", B))), make(bed.left(("fd02::1", B))));
    assert_eq!(bed.out(&sent), [left.build()]);
    // The address of the outside interface is one of the external prefix.
    let ping = bed.asked((B, "2001:db8:1::1")).icmp6_echo_request(7, 1);
    assert!(bed.back(&ping).is_empty());
    assert_eq!(bed.outside.received().len(), 1, "the router answers");
}

#[test]
fn hosts_inside_reach_each_other_by_their_outside_addresses() {
    let mut bed = bed();
    for make in KINDS {
        let sent = make(bed.sent((A, EC)));
        let came = make(frame((bed.inside.mac(), HOST), (EA, C), 62));
        assert!(bed.out(&sent).is_empty());
        assert_eq!(bed.inside.received(), [came.build()]);
    }
    let inner = |ends| frame((HOST, HOST), ends, 60).udp(5, 6).build()[14..].to_vec();
    let sent = bed.sent((C, EA)).icmp6(&error(&inner((EA, C))));
    let came = frame((bed.inside.mac(), HOST), (EC, A), 62).icmp6(&error(&inner((A, EC))));
    assert!(bed.out(&sent).is_empty());
    assert_eq!(bed.inside.received(), [came.build()]);
}

#[test]
fn errors_are_about_the_packet_that_was_sent() {
    let mut bed = bed();
    for make in KINDS {
        let inner = |ends| make(frame((HOST, HOST), ends, 60)).build()[14..].to_vec();
        let asked = bed.asked((B, EA)).icmp6(&error(&inner((EA, B))));
        let came = bed.came((B, A)).icmp6(&error(&inner((A, B))));
        assert_eq!(bed.back(&asked), [came.build()]);
        let sent = bed.sent((A, B)).icmp6(&error(&inner((B, A))));
        let left = bed.left((EA, B)).icmp6(&error(&inner((B, EA))));
        assert_eq!(bed.out(&sent), [left.build()]);
        // Of a router inside that has no address of the prefix: what it is about is another.
        let sent = bed.sent(("fd02::1", B)).icmp6(&error(&inner((B, A))));
        bed.router.send(&bed.inside, sent.build());
        assert_eq!(bed.outside.received_one()[86..102], ip(EA).octets());
    }
}

#[test]
fn errors_with_a_wrong_checksum_or_cut_short_are_dropped_and_counted() {
    let mut bed = bed();
    let inner = frame((HOST, HOST), (EA, B), 60).udp(5, 6).build()[14..].to_vec();
    let wrong = bed.asked((B, EA)).icmp6(&error(&inner)).l4_checksum(0x1234);
    assert!(bed.back(&wrong).is_empty());
    assert_eq!(bed.router.error("npt66-input", "icmp6_checksum"), 1);
    for cut in [0, 1, 39] {
        let short = bed.asked((B, EA)).icmp6(&error(&inner[..cut]));
        assert!(bed.back(&short).is_empty());
        let short = bed.sent((A, B)).icmp6(&error(&inner[..cut]));
        assert!(bed.out(&short).is_empty());
    }
    assert_eq!(bed.router.error("npt66-input", "icmp6_truncated"), 3);
    assert_eq!(bed.router.error("npt66-output", "icmp6_truncated"), 3);
    // RFC 6296, 3.4: this subnet has no address outside.
    let none = bed.sent(("fd01:203:405:ffff::1", B)).udp(1, 2);
    assert!(bed.out(&none).is_empty());
    assert_eq!(bed.router.error("npt66-output", "translation"), 1);
}

#[test]
fn mistakes_change_nothing_and_an_interface_takes_its_binding_along() {
    let bed = bed();
    let (npt, i) = (&bed.npt, bed.outside.index());
    assert!(matches!(npt.add(i, binding()), Err(Npt66Error::Exists(_))));
    let long = Binding { internal: prefix("fd00::/65"), external: prefix("2001:db8::/48") };
    assert_eq!(npt.add(bed.inside.index(), long), Err(Npt66Error::TooLong(long.internal)));
    let other = Binding { internal: prefix("fd00::/48"), external: prefix("2001:db8::/48") };
    assert!(matches!(npt.remove(i, Some(other)), Err(Npt66Error::None(_))));
    assert!(matches!(npt.remove(bed.inside.index(), None), Err(Npt66Error::None(_))));
    let mut running = Running::default();
    (shoal_npt66::MODULE.running)(bed.router.control(), &mut running);
    let text: String = running.pieces().collect();
    let line = "set npt66 binding interface pg1 internal fd01:203:405::/48 external 2001:db8:1::/48";
    assert!(text.lines().any(|l| l == line), "{text}");
    npt.remove(i, Some(binding())).unwrap();
    npt.add(i, other).unwrap();
    bed.router.generator().delete_interface(i).unwrap();
    assert!(npt.list().is_empty());
}

#[test]
fn the_trace_has_vpps_words() {
    let mut bed = bed();
    bed.router.trace_add("pg-input", 1);
    let sent = bed.sent((A, B)).udp(1, 2);
    bed.out(&sent);
    let trace = bed.router.trace();
    let line = "npt66: index 0 internal: fd01:203:405:: external: 2001:db8:1::";
    assert!(trace.contains(line), "{trace}");
}

#[test]
fn messages_are_those_of_vpp_and_do_what_commands_do() {
    api::same_as_vpp(&[&API]);
    let mut bed = plain();
    let call = Call::local(bed.router.control());
    let message = |is_add, index, len| {
        let prefix = |text| shoal_message::Ip6Prefix { address: ip(text), len };
        let (internal, external) = (prefix("fd01:203:405::"), prefix("2001:db8:1::"));
        Npt66BindingAddDel { is_add, sw_if_index: InterfaceIndex(index), internal, external }
    };
    let i = bed.outside.index().0;
    for len in [65, 128, 129, 255] {
        assert_eq!(message(true, i, len).handle(&call), Err(Retval::INVALID_VALUE));
    }
    assert_eq!(message(true, 77, 48).handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(message(false, i, 48).handle(&call), Err(Retval::NO_SUCH_ENTRY));
    message(true, i, 48).handle(&call).unwrap();
    assert_eq!(message(true, i, 48).handle(&call), Err(Retval::VALUE_EXIST));
    assert_eq!(bed.npt.list(), [(bed.outside.index(), 0, binding())]);
    message(false, i, 48).handle(&call).unwrap();
    api::random_bytes_do_no_harm(&mut bed.router, &[&API], 200);
}

#[test]
fn rubbish_does_no_harm_to_any_node() {
    let mut bed = bed();
    bed.npt.add(bed.inside.index(), binding()).unwrap();
    bed.router.may_hold(2000);
    fuzz_all_nodes(&mut bed.router, Rng::seed(6296), 1000);
}
