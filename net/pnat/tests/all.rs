//! PNAT through a whole router: bytes of all kinds of packets, bad input, messages, commands, saved configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use shoal_message::{InterfaceIndex, Retval};
use shoal_module::Running;
use shoal_module::api::{Call, Get, Request};
use shoal_nat::Tuple;
use shoal_pnat::api::*;
use shoal_pnat::{Fields, Match, Place, Pnat, PnatError, Rewrite};
use shoal_testkit::{PacketBuilder, Port, Rng, Router, STACK, api};
use shoal_wire::packet::Fragment;
use shoal_wire::{IpProtocol, MacAddress, TcpFlags};

const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
const FAR: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);
const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
/// Addresses that only rules know.
const X: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

struct Bed {
    router: Router,
    a: Port,
    b: Port,
    pnat: Rc<Pnat>,
}

fn bed() -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_reassembly::MODULE, &shoal_pnat::MODULE]);
    let mut router = Router::new(&modules);
    let (a, b) = (router.pg(0), router.pg(1));
    router.set_address(&a, "10.0.0.1/24");
    router.set_address(&b, "10.0.1.1/24");
    router.set_neighbour(&a, A, HOST);
    router.set_neighbour(&b, B, FAR);
    router.advance(Duration::from_secs(3));
    a.received();
    b.received();
    let pnat = router.get::<Pnat>();
    Bed { router, a, b, pnat }
}

type Make = fn(PacketBuilder) -> PacketBuilder;

const KINDS: [Make; 5] = [
    |p| p.tcp(5000, 80, TcpFlags::SYN).payload(b"odd"),
    |p| p.udp(5000, 53).payload(b"even"),
    |p| p.udp(5000, 53).payload(b"odd"),
    |p| p.icmp_echo_request(7, 1).payload(b"ping!"),
    |p| p.protocol(IpProtocol::GRE).payload(b"no ports"),
];

fn tuple(src: Ipv4Addr, dst: Ipv4Addr, sport: u16, dport: u16) -> Tuple {
    Tuple { src: src.to_bits(), dst: dst.to_bits(), sport, dport }
}

const NO: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

impl Bed {
    fn sent(&self, ends: (Ipv4Addr, Ipv4Addr), make: Make) -> Vec<u8> {
        make(PacketBuilder::ethernet(HOST, self.a.mac()).ip4(ends.0, ends.1).ttl(64)).build()
    }

    fn left(&self, ends: (Ipv4Addr, Ipv4Addr), make: Make) -> Vec<u8> {
        make(PacketBuilder::ethernet(self.b.mac(), FAR).ip4(ends.0, ends.1).ttl(63)).build()
    }

    fn through(&mut self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        self.router.send(&self.a, bytes);
        self.b.received()
    }

    fn rule(&self, place: Place, of: Match, rewrite: Rewrite) -> u32 {
        let port = if place == Place::Input { &self.a } else { &self.b };
        let index = self.pnat.add(of, rewrite).unwrap();
        self.pnat.attach((port.index(), place), index).unwrap();
        index
    }
}

fn to(mask: Fields, tuple: Tuple) -> Rewrite {
    Rewrite { mask, tuple, ..Rewrite::default() }
}

#[test]
fn addresses_are_replaced_on_the_way_in_and_out_and_checksums_follow() {
    let mut bed = bed();
    let of = Match { mask: Fields::DST, tuple: tuple(NO, X, 0, 0), protocol: 0 };
    bed.rule(Place::Input, of, to(Fields::DST, tuple(NO, B, 0, 0)));
    let of = Match { mask: Fields::SRC, tuple: tuple(A, NO, 0, 0), protocol: 0 };
    bed.rule(Place::Output, of, to(Fields::SRC, tuple(X, NO, 0, 0)));
    for make in KINDS {
        let (sent, left) = (bed.sent((A, X), make), bed.left((X, B), make));
        assert_eq!(bed.through(sent), [left]);
    }
    assert_eq!(bed.router.error("pnat-input", "successfully rewritten"), KINDS.len() as u64);
    assert_eq!(bed.router.error("pnat-output", "successfully rewritten"), KINDS.len() as u64);
    // What matches no rule passes.
    let make: Make = |p| p.udp(1, 2);
    let frame = PacketBuilder::ethernet(HOST, bed.a.mac()).ip4(Ipv4Addr::new(10, 0, 0, 3), B).ttl(64);
    let left = bed.left((Ipv4Addr::new(10, 0, 0, 3), B), make);
    assert_eq!(bed.through(make(frame).build()), [left]);
}

#[test]
fn ports_are_replaced_in_tcp_and_udp_alone() {
    let mut bed = bed();
    let mask = Fields::DST.or(Fields::DPORT).or(Fields::PROTO);
    let new = to(Fields::DST.or(Fields::DPORT).or(Fields::SPORT), tuple(NO, B, 4000, 5555));
    for protocol in [6, 17] {
        bed.rule(Place::Input, Match { mask, tuple: tuple(NO, X, 0, 80), protocol }, new);
    }
    let pairs: [(Make, Make); 2] = [
        (
            |p| p.tcp(5000, 80, TcpFlags::ACK).payload(b"abc"),
            |p| p.tcp(4000, 5555, TcpFlags::ACK).payload(b"abc"),
        ),
        (|p| p.udp(5000, 80).payload(b"abc"), |p| p.udp(4000, 5555).payload(b"abc")),
    ];
    for (before, after) in pairs {
        let (sent, left) = (bed.sent((A, X), before), bed.left((A, B), after));
        assert_eq!(bed.through(sent), [left]);
    }
    // No checksum stays none.
    let mut sent = bed.sent((A, X), |p| p.udp(5000, 80));
    sent[14 + 20 + 6..][..2].fill(0);
    let left = bed.through(sent);
    assert_eq!((left.len(), &left[0][14 + 20..][..8]), (1, &[0x0f, 0xa0, 0x15, 0xb3, 0, 8, 0, 0][..]));
    let other = bed.sent((A, X), |p| p.udp(5000, 81));
    assert!(bed.through(other).is_empty(), "there is no way to that address");
}

#[test]
fn later_fragments_follow_the_ports_of_the_first() {
    let mut bed = bed();
    let mask = Fields::DST.or(Fields::DPORT).or(Fields::PROTO);
    let of = Match { mask, tuple: tuple(NO, X, 0, 80), protocol: 17 };
    bed.rule(Place::Input, of, to(Fields::DST, tuple(NO, B, 0, 0)));
    let first: Make = |p| p.id(9).fragment(0, Fragment::More).udp(5000, 80).payload(&[1; 16]);
    let later: Make = |p| p.id(9).fragment(24, Fragment::Last).protocol(IpProtocol::UDP).payload(&[2; 8]);
    let (one, two) = (bed.sent((A, X), first), bed.sent((A, X), later));
    assert_eq!(bed.through(one).len() + bed.through(two).len(), 2);
}

#[test]
fn bytes_are_copied_and_cleared_and_every_checksum_is_exact() {
    let mut bed = bed();
    let mut rng = Rng::new(7);
    for make in KINDS {
        for _ in 0..64 {
            // Of the IP header and of what is behind it, but no byte of a length, an offset or a checksum of any of these kinds.
            let mut place = || {
                let places = [1, 4, 5, 12, 13, 20, 21, 24, 25];
                places[rng.below(places.len())]
            };
            let rewrite = Rewrite {
                mask: Fields::COPY_BYTE.or(Fields::CLEAR_BYTE),
                from_offset: place(),
                to_offset: place(),
                clear_offset: place(),
                ..Rewrite::default()
            };
            let of = Match { mask: Fields::DST, tuple: tuple(NO, B, 0, 0), protocol: 0 };
            let index = bed.rule(Place::Input, of, rewrite);
            let sent = bed.sent((A, B), make);
            let mut want = sent[14..].to_vec();
            want[usize::from(rewrite.to_offset)] = want[usize::from(rewrite.from_offset)];
            want[usize::from(rewrite.clear_offset)] = 0;
            for left in bed.through(sent) {
                let mut ip = left[14..].to_vec();
                assert_eq!(sum(&ip[..20]), 0, "the header of {rewrite}");
                assert!(transport_is_right(&ip), "the transport of {rewrite}: {ip:02x?}");
                // But for TTL and checksums it is what was wanted.
                for at in [8, 10, 11] {
                    (ip[at], want[at]) = (0, 0);
                }
                let place = match ip[9] {
                    6 => 36,
                    17 => 26,
                    1 => 22,
                    _ => 10,
                };
                for at in [place, place + 1] {
                    (ip[at], want[at]) = (0, 0);
                }
                assert_eq!(ip, want[..ip.len()], "{rewrite}");
            }
            bed.pnat.del(index).unwrap();
        }
    }
}

fn sum(bytes: &[u8]) -> u16 {
    let mut sum = shoal_wire::checksum::Sum::new();
    sum.add(bytes);
    sum.finish()
}

fn transport_is_right(ip: &[u8]) -> bool {
    let (src, dst) = (
        Ipv4Addr::from(<[u8; 4]>::try_from(&ip[12..16]).unwrap()),
        Ipv4Addr::from(<[u8; 4]>::try_from(&ip[16..20]).unwrap()),
    );
    let body = &ip[20..];
    match ip[9] {
        1 => sum(body) == 0,
        protocol @ (6 | 17) => {
            let mut sum =
                shoal_wire::checksum::Sum::pseudo_ip4(src, dst, IpProtocol(protocol), body.len() as u16);
            sum.add(body);
            sum.finish() == 0
        }
        _ => true,
    }
}

#[test]
fn what_is_cut_short_and_bytes_beyond_the_end_are_dropped_and_counted() {
    let mut bed = bed();
    let of = Match { mask: Fields::DST, tuple: tuple(NO, B, 0, 0), protocol: 0 };
    let rewrite = Rewrite { mask: Fields::CLEAR_BYTE, clear_offset: 250, ..Rewrite::default() };
    bed.rule(Place::Input, of, rewrite);
    let sent = bed.sent((A, B), |p| p.udp(1, 2));
    assert!(bed.through(sent).is_empty());
    assert_eq!(bed.router.error("pnat-input", "rewrite failed"), 1);
    let sent = bed.sent((A, B), |p| p.protocol(IpProtocol::TCP).payload(&[0, 1]));
    assert!(bed.through(sent).is_empty());
    assert_eq!(bed.router.error("pnat-input", "packet too short for rewrite"), 1);
}

#[test]
fn mistakes_change_nothing() {
    let bed = bed();
    let pnat = &bed.pnat;
    let of = Match { mask: Fields::DST, tuple: tuple(NO, X, 0, 0), protocol: 0 };
    let rewrite = to(Fields::DST, tuple(NO, B, 0, 0));
    assert_eq!(pnat.add(Match::default(), rewrite), Err(PnatError::Empty));
    assert_eq!(pnat.add(of, Rewrite::default()), Err(PnatError::Empty));
    let bits = Match { mask: Fields(0x102), ..of };
    assert_eq!(pnat.add(bits, rewrite), Err(PnatError::Mask(0x102, 2)));
    let ports = Match { mask: Fields::SPORT.or(Fields::PROTO), protocol: 1, ..of };
    assert_eq!(pnat.add(ports, rewrite), Err(PnatError::NoPorts(1)));
    let index = pnat.add(of, rewrite).unwrap();
    let at = (bed.a.index(), Place::Input);
    assert_eq!(pnat.detach(at, index), Err(PnatError::NotAttached(index)));
    assert_eq!(pnat.attach(at, 77), Err(PnatError::NoBinding(77)));
    let gone = (shoal_interface::SwIfIndex(99), Place::Input);
    assert!(matches!(pnat.attach(gone, index), Err(PnatError::Interface(_))));
    pnat.attach(at, index).unwrap();
    assert_eq!(pnat.attach(at, index), Err(PnatError::Taken(index)));
    let other = pnat.add(Match { mask: Fields::SRC, ..of }, rewrite).unwrap();
    assert_eq!(pnat.attach(at, other), Err(PnatError::OtherFields("DA ".into(), "SA ".into())));
    assert_eq!(pnat.interfaces().len(), 1);
    pnat.del(index).unwrap();
    assert!(pnat.interfaces().is_empty(), "what is deleted is attached nowhere");
    assert_eq!(pnat.del(index), Err(PnatError::NoBinding(index)));
    assert_eq!(pnat.add(of, rewrite), Ok(0), "the lowest free number");
    pnat.attach(at, 0).unwrap();
    bed.router.interfaces().delete(bed.a.index()).unwrap();
    assert!(pnat.interfaces().is_empty());
}

#[test]
fn messages_are_those_of_vpp() {
    let bed = bed();
    api::same_as_vpp(&[&API]);
    let call = Call::local(bed.router.control());
    let r#match = PnatMatchTuple {
        src: NO,
        dst: X,
        proto: shoal_message::IpProto(17),
        sport: 0,
        dport: 53,
        mask: PnatMask(0xa),
    };
    let rewrite = PnatRewriteTuple {
        src: NO,
        dst: B,
        sport: 0,
        dport: 0,
        mask: PnatMask(2),
        from_offset: 0,
        to_offset: 0,
        clear_offset: 0,
    };
    let added = PnatBindingAdd { r#match, rewrite }.handle(&call).unwrap();
    assert_eq!((added.retval, added.binding_index), (0, 0));
    let sw_if_index = InterfaceIndex(bed.a.index().0);
    let attach =
        |binding_index| PnatBindingAttach { sw_if_index, attachment: PnatAttachmentPoint(0), binding_index };
    attach(0).handle(&call).unwrap();
    let without = PnatBindingAddV2 { r#match: PnatMatchTuple { mask: PnatMask(2), ..r#match }, rewrite };
    let other = without.handle(&call).unwrap().binding_index;
    assert_eq!(attach(other).handle(&call).unwrap_err(), Retval(-2));
    assert_eq!(attach(9).handle(&call).unwrap_err(), Retval(-1));
    let (all, reply) = PnatBindingsGet { cursor: 0 }.get(&call).unwrap();
    assert_eq!((all.len(), reply.retval, reply.cursor), (2, 0, u32::MAX));
    assert_eq!(all[0].r#match.mask, PnatMask(0x4a), "the protocol is looked at");
    let (there, _) = PnatInterfacesGet { cursor: 0 }.get(&call).unwrap();
    assert_eq!((there[0].enabled, there[0].lookup_mask), ([true, false], [PnatMask(0x4a), PnatMask(0)]));
    let look = |dport| {
        let r#match = PnatMatchTuple { src: A, sport: 7, dport, ..r#match };
        let asked = PnatFlowLookup { sw_if_index, attachment: PnatAttachmentPoint(0), r#match };
        asked.handle(&call).unwrap().binding_index
    };
    assert_eq!((look(53), look(54)), (0, u32::MAX));
    PnatBindingDetach { sw_if_index, attachment: PnatAttachmentPoint(0), binding_index: 0 }
        .handle(&call)
        .unwrap();
    PnatBindingDel { binding_index: 0 }.handle(&call).unwrap();
    assert_eq!(PnatBindingDel { binding_index: 0 }.handle(&call).unwrap_err(), Retval(-1));
    let nowhere = PnatBindingAttach { sw_if_index, attachment: PnatAttachmentPoint(2), binding_index: other };
    assert_eq!(nowhere.handle(&call).unwrap_err(), Retval::INVALID_VALUE);
}

#[test]
fn attached_rules_are_saved() {
    let bed = bed();
    let mask = Fields::SRC.or(Fields::DPORT).or(Fields::PROTO);
    let of = Match { mask, tuple: tuple(A, NO, 0, 53), protocol: 17 };
    let rewrite = Rewrite {
        mask: Fields::DST.or(Fields::SPORT).or(Fields::COPY_BYTE).or(Fields::CLEAR_BYTE),
        tuple: tuple(NO, B, 99, 0),
        from_offset: 1,
        to_offset: 2,
        clear_offset: 3,
    };
    bed.rule(Place::Input, of, rewrite);
    let mut running = Running::default();
    (shoal_pnat::MODULE.running)(bed.router.control(), &mut running);
    let text = running.pieces().collect::<String>();
    let line = "match src 10.0.0.2 proto 17 dport 53 rewrite dst 10.0.1.2 sport 99 copy byte at offset 1 to 2 \
                clear byte at offset 3 in\n";
    assert!(text.contains(line), "{text}");
}
