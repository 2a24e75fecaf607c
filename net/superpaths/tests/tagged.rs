//! Sub-interfaces: the same random frames, with and without tags, through two routers that differ in nothing but
//! `enable_superpath`.

use std::net::Ipv4Addr;

use shoal_bridge::{Bridges, Role, Settings};
use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_icmp::limiter::Rate;
use shoal_icmp::{Icmp, Icmp6};
use shoal_interface::SwIfIndex;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_ip6_nd::{Advertise, Nd, RaConfig};
use shoal_l2::{L2, Mode, TagOp, TagRewrite};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_superpaths::{BRIDGE, IP, IP4, XCONNECT};
use shoal_testkit::{InjectedPacket, PacketBuilder, Port, Rng, Router, STACK, Twin, Twins};
use shoal_wire::MacAddress;

const TWINS: Twins = Twins { make: world, packet: given, flow };
/// Two with routed sub-interfaces beside an own address, one with switched ones.
const PORTS: usize = 3;
/// Numbers of sub-interfaces.
const ROUTED: u16 = 10;
const TWO_TAGS: u16 = 20;
const CROSSED: [u16; 2] = [30, 31];
const BRIDGED: [u16; 2] = [40, 41];
const DOWN: u16 = 50;

fn vid(n: u16) -> Vid {
    Vid::new(n).unwrap()
}

fn host(n: usize, net: usize) -> [u8; 4] {
    [10, net as u8, n as u8, 2]
}

/// An address, and a host behind it.
fn routed(router: &Router, interface: SwIfIndex, n: usize, net: usize) {
    let [a, b, c, _] = host(n, net);
    router.get::<Ip4>().add_address(interface, format!("{a}.{b}.{c}.1/24").parse().unwrap()).unwrap();
    router.get::<Ip6>().add_address(interface, format!("2001:db8:{b}:{c}::1/64").parse().unwrap()).unwrap();
    // Nothing is sent of its own accord.
    router
        .get::<Nd>()
        .set_ra_config(interface, RaConfig { send: Advertise::No, ..RaConfig::default() })
        .unwrap();
    let mac = MacAddress([2, 0xaa, 0, 0, net as u8, n as u8]);
    let arp = router.get::<shoal_arp::Neighbours>();
    arp.set((interface, Ipv4Addr::from(host(n, net))), mac, Origin::Static, FibEntry::Wanted).unwrap();
    let nd = router.get::<shoal_ip6_nd::Neighbours>();
    let six = format!("2001:db8:{b}:{c}::2").parse().unwrap();
    nd.set((interface, six), mac, Origin::Static, FibEntry::Wanted).unwrap();
}

fn world(superpath: bool) -> Twin {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_l2::MODULE, &shoal_bridge::MODULE]);
    let mut router = Router::new(&modules);
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    router.get::<Icmp6>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let ports: Vec<Port> = (0..PORTS as u32).map(|n| router.pg(n)).collect();
    router.interfaces().enable_superpath(superpath).unwrap();
    let (ethernet, l2, bridges) = (router.get::<Ethernet>(), router.get::<L2>(), router.get::<Bridges>());
    bridges.create(10, Settings::default()).unwrap();
    let create = |port: &Port, number: u16, takes| {
        let sub = ethernet.create_sub(port.index(), number.into(), takes).unwrap();
        router.interfaces().set_admin(sub, true).unwrap();
        sub
    };
    for (n, port) in ports.iter().enumerate() {
        routed(&router, port.index(), n, 0);
        routed(&router, create(port, ROUTED, Match::exact_dot1q(vid(ROUTED))), n, 1);
        let (kind, inner) = (TagKind::Dot1ad, Inner::Id(vid(7)));
        let takes = Match::Tags { kind, outer: vid(TWO_TAGS), inner, exact: Exact::Yes };
        routed(&router, create(port, TWO_TAGS, takes), n, 2);
        let crossed = CROSSED.map(|id| create(port, id, Match::exact_dot1q(vid(id))));
        l2.set_mode(crossed[0], Mode::Xconnect(crossed[1])).unwrap();
        l2.set_mode(crossed[1], Mode::Xconnect(crossed[0])).unwrap();
        let ops = [TagOp::Pop1, TagOp::Translate11, TagOp::Push1];
        for sub in crossed {
            l2.set_tags(sub, TagRewrite { op: ops[n], kind: TagKind::Dot1q, ids: [vid(99), vid(0)] })
                .unwrap();
        }
        for id in BRIDGED {
            let sub = create(port, id, Match::exact_dot1q(vid(id)));
            bridges.join(sub, 10, 0, Role::Normal).unwrap();
            l2.set_tags(sub, TagRewrite { op: TagOp::Pop1, kind: TagKind::Dot1q, ids: [vid(0); 2] }).unwrap();
        }
        let down = create(port, DOWN, Match::exact_dot1q(vid(DOWN)));
        routed(&router, down, n, 3);
        router.interfaces().set_admin(down, false).unwrap();
    }
    // All stations of the bridge have been heard.
    for (n, port) in ports.iter().enumerate() {
        for id in BRIDGED {
            let plain = PacketBuilder::ethernet(station(n, id), [0xff; 6]).ip4([1; 4], [2; 4]).build();
            router.send(port, tagged(&plain, &[0x81, 0, 0, id as u8]));
        }
    }
    router.run();
    for port in &ports {
        drop(port.received());
    }
    Twin::new(router, ports)
}

fn station(n: usize, id: u16) -> [u8; 6] {
    [2, 0xbb, 0, 0, n as u8, id as u8]
}

fn tagged(plain: &[u8], tags: &[u8]) -> Vec<u8> {
    [&plain[..12], tags, &plain[12..]].concat()
}

fn ip(rng: &mut Rng, port: &Port, rx: usize, net: usize) -> Vec<u8> {
    let other = if rng.one_in(12) { [9; 6] } else { port.mac().0 };
    let (n, to) = (rng.below(PORTS), rng.below(4));
    let frame = PacketBuilder::ethernet([2, 0xaa, 0, 0, net as u8, rx as u8], other);
    let ttl = if rng.one_in(15) { 1 } else { 64 };
    if rng.one_in(3) {
        let six = |[_, b, c, _]: [u8; 4]| [0x2001, 0xdb8, b.into(), c.into(), 0, 0, 0, 2];
        return frame
            .ip6(six(host(rx, net)), six(host(n, to)))
            .ttl(ttl)
            .udp(1, 2)
            .payload(b"payload")
            .build();
    }
    frame.ip4(host(rx, net), host(n, to)).ttl(ttl).udp(1, 2).payload(b"payload").build()
}

fn given(rng: &mut Rng, port: &Port, rx: usize) -> InjectedPacket {
    let priority = if rng.one_in(5) { 0x60 } else { 0 };
    let dot1q = |id: u16| vec![0x81, 0, priority, id as u8];
    let mut bytes = match rng.below(16) {
        0..=2 => ip(rng, port, rx, 0),
        3..=6 => tagged(&ip(rng, port, rx, 1), &dot1q(ROUTED)),
        7 => tagged(&ip(rng, port, rx, 2), &[0x88, 0xa8, 0, TWO_TAGS as u8, 0x81, 0, 0, 7]),
        8..=9 => tagged(&ip(rng, port, rx, 0), &dot1q(*rng.pick(&CROSSED))),
        10..=12 => {
            let (to, id) = (rng.below(PORTS), *rng.pick(&BRIDGED));
            let from = station(rx, id);
            let plain = PacketBuilder::ethernet(from, station(to, *rng.pick(&BRIDGED))).ip4([1; 4], [2; 4]);
            tagged(&plain.udp(1, 2).payload_len(rng.below(90)).build(), &dot1q(id))
        }
        13 => tagged(&ip(rng, port, rx, 3), &dot1q(DOWN)),
        // Unknown ids, a priority only, types behind a tag that are tags.
        14 => tagged(&ip(rng, port, rx, 0), &dot1q(*rng.pick(&[0, 77]))),
        _ => {
            let kind = *rng.pick(&[[0x81, 0], [0x88, 0xa8], [0x91, 0], [0x92, 0]]);
            let more = [dot1q(*rng.pick(&[ROUTED, 30, 40])), vec![kind[0], kind[1], 0, 5]].concat();
            tagged(&ip(rng, port, rx, 1), &more)
        }
    };
    if rng.one_in(20) {
        bytes.truncate(rng.below(40));
    }
    InjectedPacket::from(bytes)
}

/// Frames of several superpaths may pass each other.
fn flow(packet: &mut [u8]) -> Vec<u8> {
    packet.to_vec()
}

#[test]
fn random_frames_with_tags_fare_on_superpaths_as_from_node_to_node() {
    let seed = Rng::seed(23);
    let names = [IP4.name, IP.name, XCONNECT.name, BRIDGE.name, "ethernet-vlan-superpath"];
    let mut all = [0; 5];
    for n in 0..4 {
        let (plain, fused) = TWINS.run(seed + n, 60);
        for (sum, name) in all.iter_mut().zip(names) {
            assert_eq!(plain.vectors(name), 0, "{name}");
            *sum += fused.vectors(name);
        }
    }
    println!("{names:?}: {all:?}");
    let [ip4, ip, crossed, bridged, sorted] = all;
    assert!(ip4 + ip > 2_000 && crossed > 500 && bridged > 500 && sorted > 5_000, "{all:?}");
}

#[test]
fn ports_are_sorted_by_tags_only_while_they_have_sub_interfaces() {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_l2::MODULE, &shoal_bridge::MODULE]);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    let interfaces = router.interfaces().clone();
    let next = || {
        let data = interfaces.data(port.index()).unwrap();
        router.graph().node_name(data.rx_next(false))
    };
    let before = next();
    let sub = router.get::<Ethernet>().create_sub(port.index(), 5, Match::exact_dot1q(vid(5))).unwrap();
    assert_eq!(next(), "ethernet-vlan-superpath");
    interfaces.enable_superpath(false).unwrap();
    assert_eq!(next(), "ethernet-input");
    interfaces.enable_superpath(true).unwrap();
    assert_eq!(next(), "ethernet-vlan-superpath");
    interfaces.delete(sub).unwrap();
    assert_eq!(next(), before);
}

/// Routed packets from `from` to `to`, numbers of sub-interfaces or 0 for the port itself.
fn between(port: &Port, from: u16, to: usize) -> Vec<u8> {
    let net = usize::from(from != 0);
    let frame = PacketBuilder::ethernet([2, 0xaa, 0, 0, net as u8, 0], port.mac());
    let plain = frame.ip4(host(0, net), host(1, to)).udp(1, 2).payload(b"payload").build();
    if from == 0 { plain } else { tagged(&plain, &[0x81, 0, 0, from as u8]) }
}

#[test]
fn packets_from_and_to_sub_interfaces_pass_no_node_but_superpaths() {
    let mut twin = world(true);
    let (router, ports) = (&mut twin.router, twin.ports.clone());
    let before = ["ethernet-input", "ip4-input", "ip4-lookup", "ip4-rewrite", "interface-output"]
        .map(|name| (name, vectors(router, name)));
    for (from, to) in [(ROUTED, 1), (0, 1), (ROUTED, 0)] {
        let all = vec![between(&ports[0], from, to); 100];
        router.send_all(&ports[0], &all);
        let sent = ports[1].received();
        assert_eq!(sent.len(), 100, "{from} to {to}");
        let has_tag = sent.iter().all(|frame| (frame[12..16] == [0x81, 0, 0, ROUTED as u8]) == (to == 1));
        assert!(has_tag, "{from} to {to}");
    }
    for (name, n) in before {
        assert_eq!(vectors(router, name), n, "{name}");
    }
}

fn vectors(router: &Router, name: &str) -> u64 {
    let node = router.graph().node(name).unwrap();
    router.graph().graph_counters().vectors.sum(node.number() as usize)
}
