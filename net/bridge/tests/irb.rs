//! A bridge domain with a routed interface, in both families; questions that are answered in place of stations.

use std::net::IpAddr;
use std::time::Duration;

use shoal_bridge::{Role, Switch};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_l2::{L2, Mode};
use shoal_testkit::{PacketBuilder, Port};
use shoal_wire::MacAddress;

use crate::world::{BD, World, station};

struct Irb {
    world: World,
    bvi: shoal_interface::SwIfIndex,
    mac: [u8; 6],
    /// A routed port.
    out: Port,
}

fn irb(group: u8) -> Irb {
    let mut world = World::new(2);
    let interfaces = world.router.interfaces().clone();
    let bvi = interfaces.create_bvi(None, None).unwrap();
    interfaces.set_admin(bvi, true).unwrap();
    world.bridges.join(bvi, BD, group, Role::Bvi).unwrap();
    let out = world.router.pg(9);
    for (interface, ip4, ip6) in
        [(bvi, "10.1.0.1/24", "2001:db8:1::1/64"), (out.index(), "10.2.0.1/24", "2001:db8:2::1/64")]
    {
        world.router.get::<Ip4>().add_address(interface, ip4.parse().unwrap()).unwrap();
        world.router.get::<Ip6>().add_address(interface, ip6.parse().unwrap()).unwrap();
    }
    world.router.advance(Duration::from_secs(3));
    out.received();
    world.ports.iter().for_each(|port| drop(port.received()));
    let mac = interfaces.data(bvi).unwrap().mac().0;
    Irb { world, bvi, mac, out }
}

/// An ARP packet: its sender's and its target's addresses.
fn arp(opcode: u8, from: ([u8; 6], [u8; 4]), to: ([u8; 6], [u8; 4]), dst: [u8; 6]) -> Vec<u8> {
    let head = [&dst[..], &from.0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, opcode]].concat();
    [&head[..], &from.0, &from.1, &to.0, &to.1].concat()
}

#[test]
fn a_host_of_the_bridge_reaches_a_routed_one_and_back_over_ipv4() {
    let Irb { mut world, mac, out, .. } = irb(0);
    let host = station(1);
    // The host asks for its router.
    let (a, b) = (world.ports[0].clone(), world.ports[1].clone());
    world.router.send(&a, arp(1, (host, [10, 1, 0, 7]), ([0; 6], [10, 1, 0, 1]), [0xff; 6]));
    let answer = a.received_one();
    assert_eq!(answer[..42], arp(2, (mac, [10, 1, 0, 1]), (host, [10, 1, 0, 7]), host)[..42]);
    assert_eq!(b.received().len(), 1, "the question is flooded");
    // A packet for the far side: the router asks there.
    let packet = PacketBuilder::ethernet(host, mac).ip4([10, 1, 0, 7], [10, 2, 0, 9]).udp(1, 2).build();
    world.router.send(&a, &packet);
    let far = station(9);
    assert_eq!(out.received_one()[20..22], [0, 1]);
    world.router.send(&out, arp(2, (far, [10, 2, 0, 9]), (out.mac().0, [10, 2, 0, 1]), out.mac().0));
    world.router.run();
    let sent = out.received_one();
    assert_eq!((&sent[..6], sent[22]), (&far[..], 63), "it was routed");
    // And back: only to the port where the host is.
    let back = PacketBuilder::ethernet(far, out.mac()).ip4([10, 2, 0, 9], [10, 1, 0, 7]).udp(2, 1).build();
    world.router.send(&out, &back);
    world.router.run();
    let sent: Vec<_> = a.received().into_iter().filter(|frame| frame[12..14] == [8, 0]).collect();
    assert_eq!(sent.len(), 1);
    assert_eq!((&sent[0][..6], &sent[0][6..12]), (&host[..], &mac[..]));
    assert_eq!(b.received().iter().filter(|frame| frame[12..14] == [8, 0]).count(), 0);
}

#[test]
fn the_router_asks_the_bridge_for_a_host_that_it_does_not_know() {
    for group in [0, 3] {
        let Irb { mut world, mac, out, .. } = irb(group);
        if group != 0 {
            // What asks goes to all groups.
            world.bridges.join(world.ports[0].index(), BD, group, Role::Normal).unwrap();
        }
        let packet = PacketBuilder::ethernet(station(9), out.mac()).ip4([10, 2, 0, 9], [10, 1, 0, 8]).build();
        world.router.send(&out, &packet);
        world.router.run();
        for port in &world.ports {
            let asked = port.received_one();
            assert_eq!((&asked[6..12], &asked[38..42]), (&mac[..], &[10, 1, 0, 8][..]));
        }
        let (host, b) = (station(8), world.ports[1].clone());
        world.router.send(&b, arp(2, (host, [10, 1, 0, 8]), (mac, [10, 1, 0, 1]), mac));
        world.router.run();
        assert_eq!(b.received_one()[..6], host);
        assert!(world.ports[0].received().is_empty());
    }
}

#[test]
fn ipv6_is_routed_through_the_bridge_as_well() {
    let Irb { mut world, bvi, mac, out } = irb(0);
    let nd = world.router.get::<shoal_ip6_nd::Neighbours>();
    let (known, dynamic) = (shoal_neighbor::table::FibEntry::Wanted, shoal_neighbor::table::Origin::Static);
    let host: std::net::Ipv6Addr = "2001:db8:1::7".parse().unwrap();
    nd.set((bvi, host), MacAddress(station(1)), dynamic, known).unwrap();
    nd.set((out.index(), "2001:db8:2::9".parse().unwrap()), MacAddress(station(9)), dynamic, known).unwrap();
    let (us, them) = ([0x2001, 0xdb8, 1, 0, 0, 0, 0, 7], [0x2001, 0xdb8, 2, 0, 0, 0, 0, 9]);
    let a = world.ports[0].clone();
    world.router.send(&a, PacketBuilder::ethernet(station(1), mac).ip6(us, them).udp(1, 2).build());
    assert_eq!(out.received_one()[..6], station(9));
    world.router.send(&out, PacketBuilder::ethernet(station(9), out.mac()).ip6(them, us).udp(2, 1).build());
    let sent = a.received_one();
    assert_eq!((&sent[..6], &sent[6..12], sent[21]), (&station(1)[..], &mac[..], 63));
    assert!(world.ports[1].received().is_empty());
}

/// As in VPP, whose clients route through bridges whose loopback they never set up.
#[test]
fn what_a_bvi_receives_is_routed_also_while_the_bvi_is_down() {
    let Irb { mut world, bvi, mac, out } = irb(0);
    world.router.interfaces().set_admin(bvi, false).unwrap();
    let a = world.ports[0].clone();
    world.router.send(&a, PacketBuilder::ethernet(station(1), mac).ip4([10, 1, 0, 7], [10, 2, 0, 9]).build());
    assert_eq!(out.received_one()[20..22], [0, 1], "it asks for the host");
    world.router.send(&out, arp(2, (station(9), [10, 2, 0, 9]), (out.mac().0, [10, 2, 0, 1]), out.mac().0));
    world.router.run();
    assert_eq!(out.received_one()[..6], station(9), "it was routed");
}

#[test]
fn a_bvi_takes_frames_for_more_addresses_than_its_own() {
    let Irb { mut world, bvi, out, .. } = irb(0);
    let (virtual_mac, a) = ([0, 0, 0x5e, 0, 1, 7], world.ports[0].clone());
    let frame = PacketBuilder::ethernet(station(1), virtual_mac).ip4([10, 1, 0, 7], [10, 2, 0, 9]).build();
    world.router.may_hold(1);
    let interfaces = world.router.interfaces().clone();
    interfaces.add_mac(bvi, MacAddress(virtual_mac)).unwrap();
    world.router.send(&a, &frame);
    assert_eq!(out.received_one()[20..22], [0, 1], "it was routed: the far side is asked for");
    assert!(world.ports[1].received().is_empty());
    interfaces.del_mac(bvi, MacAddress(virtual_mac)).unwrap();
    assert!(interfaces.del_mac(bvi, MacAddress(virtual_mac)).is_err());
    world.router.send(&a, &frame);
    assert!(out.received().is_empty());
    assert_eq!(world.ports[1].received().len(), 1);
}

#[test]
fn no_host_takes_the_routers_address_and_frames_for_another_are_not_routed() {
    let Irb { mut world, mac, bvi, .. } = irb(0);
    let a = world.ports[0].clone();
    // A station that claims to be the router.
    world.router.send(&a, PacketBuilder::ethernet(mac, station(5)).ip4([10, 1, 0, 7], [10, 1, 0, 5]).build());
    assert_eq!(world.router.error("l2-learn", "L2 mac move violations"), 1);
    // An unknown station is not the router.
    world
        .router
        .send(&a, PacketBuilder::ethernet(station(1), station(77)).ip4([1; 4], [10, 1, 0, 1]).build());
    assert_eq!(world.ports[1].received().len(), 1);
    // Its address changes with it.
    world.router.interfaces().set_mac(bvi, MacAddress([2, 0xbe, 0, 0, 0, 1])).unwrap();
    let old = world.bridges.station(MacAddress(mac), BD);
    let new = world.bridges.station(MacAddress([2, 0xbe, 0, 0, 0, 1]), BD);
    assert!(old.is_none() && new.is_some_and(|info| info.entry.interface() == bvi));
    let refused = world.bridges.join(a.index(), BD, 0, Role::Bvi).unwrap_err();
    assert_eq!(refused.to_string(), "bridge-domain already has a bvi interface");
    assert!(matches!(world.router.get::<L2>().mode(a.index()), Mode::Bridge(_)));
    world.router.interfaces().delete_bvi(bvi).unwrap();
    assert_eq!(world.bridges.special(BD).unwrap(), [None, None]);
    assert!(world.bridges.station(MacAddress([2, 0xbe, 0, 0, 0, 1]), BD).is_none());
}

#[test]
fn questions_for_known_stations_are_answered_in_their_place() {
    let mut world = World::new(2);
    let known = MacAddress(station(0x77));
    for address in ["10.0.0.77", "2001:db8::77"] {
        world.bridges.bind(BD, address.parse::<IpAddr>().unwrap(), known).unwrap();
    }
    let (a, b) = (world.ports[0].clone(), world.ports[1].clone());
    let host = station(1);
    let asked = arp(1, (host, [10, 0, 0, 2]), ([0; 6], [10, 0, 0, 77]), [0xff; 6]);
    world.router.send(&a, &asked);
    assert_eq!(b.received_one(), asked, "not before it is switched on");
    world.bridges.switch(BD, Switch::ArpTerm, true).unwrap();
    world.router.send(&a, &asked);
    assert_eq!(a.received_one(), arp(2, (known.0, [10, 0, 0, 77]), (host, [10, 0, 0, 2]), host));
    assert!(b.received().is_empty());
    assert_eq!(world.router.error("arp-term-l2bd", "ARP replies sent"), 1);
    // An unknown station is asked for, and a station that lies about itself is not heard.
    let other = arp(1, (host, [10, 0, 0, 2]), ([0; 6], [10, 0, 0, 78]), [0xff; 6]);
    world.router.send(&a, &other);
    assert_eq!(b.received_one(), other);
    let mut lie = other.clone();
    lie[27] ^= 1;
    world.router.send(&a, &lie);
    assert_eq!(world.router.error("arp-term-l2bd", "ARP hw addr does not match L2 frame src addr"), 1);
    // IPv6.
    let target: std::net::Ipv6Addr = "2001:db8::77".parse().unwrap();
    let asker: std::net::Ipv6Addr = "2001:db8::2".parse().unwrap();
    let solicitation = solicitation(host, asker, target);
    world.router.send(&a, &solicitation);
    let answer = a.received_one();
    assert_eq!((&answer[..6], &answer[6..12]), (&host[..], &known.0[..]));
    assert_eq!((answer[54], answer[58], answer[21]), (136, 0x60, 255));
    assert_eq!((&answer[62..78], &answer[80..86]), (&target.octets()[..], &known.0[..]));
    assert!(b.received().is_empty());
}

fn solicitation(mac: [u8; 6], from: std::net::Ipv6Addr, target: std::net::Ipv6Addr) -> Vec<u8> {
    use shoal_wire::nd::NeighborSolicitation;
    use shoal_wire::{EtherType, EthernetHeader, IntoBytes, Ip6Header, IpProtocol};
    let octets = target.octets();
    let group = std::net::Ipv6Addr::from([
        0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, octets[13], octets[14], octets[15],
    ]);
    let mut message = [0; 64];
    let len = NeighborSolicitation::new(target)
        .write(&mut message)
        .source_link_layer(MacAddress(mac))
        .finish(from, group)
        .unwrap();
    let ethernet = EthernetHeader::new(MacAddress(mac), MacAddress::for_ip6_multicast(group), EtherType::IP6);
    let ip = Ip6Header::new(from, group, IpProtocol::ICMP6, 255, len as u16);
    [ethernet.as_bytes(), ip.as_bytes(), &message[..len]].concat()
}
