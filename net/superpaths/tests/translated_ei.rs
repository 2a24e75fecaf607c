//! NAT44-EI as stages of a superpath: the same random packets of hosts and of the world through two routers that differ in nothing but
//! `enable_superpath`. Hosts' ports have mappings, so that both routers give them the same ports.

use std::net::Ipv4Addr;

use shoal_nat44::mapping::External;
use shoal_nat44_ei::sessions::Record;
use shoal_nat44_ei::{Enable, Nat44Ei, Side, Spec};
use shoal_pg::Mode;
use shoal_superpaths::{IP_FEATURES_EI, IP4_NAT44_EI, IP4_ONLY_EI};
use shoal_testkit::{InjectedPacket, PacketBuilder, Port, Rng, Router, Twin, Twins};
use shoal_wire::EthernetHeader;

use crate::translated::{
    FIRST, NatKind, SHARED, WORLD, address, both, flow, given_with, make, station, translated,
};

const TWINS: Twins = Twins { make: world, packet: given, flow };

const EI: &NatKind = &NatKind { set: map_ports, ..*DYNAMIC };

/// Without mappings.
const DYNAMIC: &NatKind =
    &NatKind { module: &shoal_nat44_ei::MODULE, ports: Mode::Ethernet, set: translate, given };

/// On ports without a link header.
const WITHOUT_LINK_HEADER: &NatKind = &NatKind { ports: Mode::Ip4, given: given_without_link_header, ..*EI };

fn given(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    given_with(rng, port, rx, true)
}

fn given_without_link_header(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    let InjectedPacket { mut bytes, .. } = given(rng, port, rx);
    bytes.drain(..EthernetHeader::LEN);
    InjectedPacket::from(bytes)
}

fn flow_without_link_header(packet: &mut [u8]) -> Vec<u8> {
    flow(&mut [&[0; EthernetHeader::LEN], &*packet].concat())
}

fn world(superpath: bool) -> Twin {
    make(superpath, false, EI)
}

fn world_without_link_header(superpath: bool) -> Twin {
    make(superpath, false, WITHOUT_LINK_HEADER)
}

/// Hosts' sources are checked, too: NAT is not the only feature.
fn checked_world(superpath: bool) -> Twin {
    make(superpath, true, EI)
}

fn translate(router: &Router, ports: &[Port]) {
    let nat = router.get::<Nat44Ei>();
    nat.enable(Enable { sessions: 2000, ..Enable::default() }).unwrap();
    for (n, port) in ports.iter().enumerate().take(3) {
        let side = if n == WORLD { Side::Outside } else { Side::Inside };
        nat.set_side(port.index(), side, true).unwrap();
    }
    let shared = SHARED.parse().unwrap();
    nat.add_addresses((shared, shared), None).unwrap();
}

/// Each port that a host uses is the same port of the shared address; the last host of a network has none.
fn map_ports(router: &Router, ports: &[Port]) {
    translate(router, ports);
    let nat = router.get::<Nat44Ei>();
    for (network, host, nth) in (0..2).flat_map(|n| (2..5).flat_map(move |h| (0..3).map(move |p| (n, h, p))))
    {
        let port = FIRST + (network * 100 + host * 10 + nth) as u16;
        for protocol in [1, 6, 17] {
            let external = External::Address(SHARED.parse::<Ipv4Addr>().unwrap().to_bits());
            let (local, tag) = (address(network, host), String::new());
            let spec = Spec {
                local,
                local_port: port,
                external,
                external_port: port,
                protocol,
                vrf: None,
                identity: false,
                tag,
            };
            nat.add_mapping(spec).unwrap();
        }
    }
}

#[test]
fn random_packets_are_translated_on_a_superpath_as_from_node_to_node() {
    translates_as_from_node_to_node(&TWINS, IP4_NAT44_EI.name);
}

#[test]
fn random_packets_are_translated_on_a_superpath_with_other_features_as_from_node_to_node() {
    translates_as_from_node_to_node(&Twins { make: checked_world, ..TWINS }, IP_FEATURES_EI.name);
}

#[test]
fn random_packets_without_a_link_header_are_translated_on_a_superpath_as_from_node_to_node() {
    let (make, packet, flow) =
        (world_without_link_header, given_without_link_header, flow_without_link_header);
    translates_as_from_node_to_node(&Twins { make, packet, flow }, IP4_ONLY_EI.name);
}

fn translates_as_from_node_to_node(twins: &Twins, superpath: &str) {
    let seed = Rng::seed(20_261_129);
    let (mut on_chain, mut passed, mut fast, mut hairpins) = (0, 0, 0, 0);
    for n in 0..8 {
        let (plain, fused) = twins.run(seed + n, 60);
        let counted = |twin: &Twin| translated(&twin.router, "nat44-ei");
        assert_eq!(both(&counted(&plain)), both(&counted(&fused)));
        let sessions = |twin: &Twin| {
            let all = twin.router.get::<Nat44Ei>().sessions(|_| true).unwrap();
            all.into_iter()
                .map(|(_, Record { session, packets, bytes, is_answered, .. })| {
                    let both = (session.inside, session.outside, session.protocol);
                    format!("{both:?} {packets} packets {bytes} bytes, answered: {is_answered}")
                })
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(sessions(&plain), sessions(&fused));
        let hairpinned = |twin: &Twin| twin.router.counter("/nat44-ei/hairpinning");
        assert_eq!(hairpinned(&plain), hairpinned(&fused));
        hairpins += hairpinned(&fused);
        on_chain += fused.vectors(superpath);
        passed += fused.vectors("nat44-ei-in2out") + fused.vectors("nat44-ei-out2in");
        fast += fused.router.counter("/nat44-ei/in2out/fastpath/udp");
    }
    assert!(on_chain > 5000, "only {on_chain} packets were on the superpath");
    assert!(passed < on_chain, "{passed} packets of {on_chain} left it for NAT's nodes");
    assert!(
        fast > 500 && hairpins > 50,
        "only {fast} packets were of known sessions, {hairpins} of two hosts"
    );
}

#[test]
fn packets_of_a_known_session_pass_no_node_of_nat() {
    let Twin { mut router, ports, .. } = make(true, false, DYNAMIC);
    let taken = |port: &Port| router.interfaces().superpath_of(port.index()).unwrap().taken;
    assert_eq!(taken(&ports[0]), Some(IP4_NAT44_EI.name));
    assert_eq!(taken(&ports[WORLD]), Some(IP4_NAT44_EI.name));
    let (host, far, shared) = (address(0, 2), address(WORLD, 2), SHARED.parse::<Ipv4Addr>().unwrap());
    let out =
        |id| PacketBuilder::ethernet(station(0), ports[0].mac()).ip4(host, far).icmp_echo_request(id, 1);
    let udp = PacketBuilder::ethernet(station(0), ports[0].mac()).ip4(host, far).udp(2020, 53).build();
    let all = |router: &Router| {
        ["nat44-ei-in2out", "nat44-ei-out2in", IP4_NAT44_EI.name].map(|name| {
            let node = router.graph().node(name).unwrap();
            router.graph().graph_counters().vectors.sum(node.number() as usize)
        })
    };
    let sent = |router: &mut Router, from: usize, bytes: &[u8], to: usize| {
        router.send(&ports[from], bytes);
        ports[to].received().remove(0)
    };
    for bytes in [udp, out(7).build()] {
        let first = sent(&mut router, 0, &bytes, WORLD);
        let port = u16::from_be_bytes([first[34], first[35]]);
        let back = PacketBuilder::ethernet(station(WORLD), ports[WORLD].mac());
        let back = if bytes[23] == 17 {
            back.ip4(far, shared).udp(53, port)
        } else {
            back.ip4(far, shared).icmp_echo_reply(u16::from_be_bytes([first[38], first[39]]), 1)
        };
        let back = back.build();
        let [in2out, out2in, fused] = all(&router);
        for _ in 0..3 {
            let there = sent(&mut router, 0, &bytes, WORLD);
            assert_eq!((&there[26..30], &there[34..]), (&shared.octets()[..], &first[34..]));
            assert_eq!(sent(&mut router, WORLD, &back, 0)[30..34], host.octets());
        }
        assert_eq!(all(&router), [in2out, out2in, fused + 6]);
    }
    // Fragments that wait for others.
    router.advance(std::time::Duration::from_mins(2));
}
