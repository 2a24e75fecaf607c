//! Relays of both families.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::Family;
use shoal_dhcp::message4::{Draft, Kind, option};
use shoal_dhcp::message6::{RELAY_FORWARD, RELAY_REPLY};
use shoal_dhcp::{Dhcp, DhcpError, Server, VirtualSubnet};
use shoal_ip6::Ip6;
use shoal_testkit::PacketBuilder;
use shoal_testkit::nat_bed::{FAR, NatBed};
use shoal_wire::MacAddress;

use crate::common::{HOST, LINK, OWN, SERVER, bed, ends, message};

fn relayed() -> NatBed {
    let bed = bed();
    bed.router.get::<Dhcp>().add_server(0, server(), OWN.into()).unwrap();
    bed
}

fn server() -> Server {
    Server { address: SERVER.into(), vrf: 0 }
}

fn asks(bed: &mut NatBed, kind: Kind) -> Vec<Vec<u8>> {
    let client = Ipv4Addr::UNSPECIFIED;
    let draft = Draft { kind, transaction: 7, flags: 0, client, mac: HOST, seconds: 0, options: Vec::new() };
    let frame = PacketBuilder::ethernet(HOST, MacAddress::BROADCAST).ip4(client, Ipv4Addr::BROADCAST);
    bed.send_inside(frame.udp(68, 67).payload(&draft.write()).build());
    bed.router.run();
    bed.outside.received()
}

fn answers(bed: &mut NatBed, from: Ipv4Addr, kind: Kind, information: &[u8]) -> Vec<Vec<u8>> {
    let options = vec![(option::RELAY, information)];
    let client = Ipv4Addr::UNSPECIFIED;
    let mut data = Draft { kind, transaction: 7, flags: 0, client, mac: HOST, seconds: 0, options }.write();
    data[0] = 2;
    let frame = PacketBuilder::ethernet(FAR, bed.outside.mac()).ip4(from, OWN).udp(67, 67);
    bed.send_outside(frame.payload(&data).build());
    bed.router.run();
    bed.inside.received()
}

#[test]
fn a_hosts_message_reaches_the_server_and_the_answer_the_host() {
    let mut bed = relayed();
    let sent = asks(&mut bed, Kind::Discover);
    assert_eq!(sent.len(), 1, "{:?}", bed.router.errors());
    assert_eq!(ends(&sent[0]), (OWN.octets(), 68, SERVER.octets(), 67));
    let message = message(&sent[0]).unwrap();
    let information = message.option(option::RELAY).unwrap().to_vec();
    let interface = bed.inside.index().0.to_be_bytes();
    assert_eq!(information, [&[1, 4][..], &interface, &[5, 4], &LINK.octets()].concat());
    let came = answers(&mut bed, SERVER, Kind::Offer, &information);
    assert_eq!(came.len(), 1, "{:?}", bed.router.errors());
    assert_eq!(ends(&came[0]), (LINK.octets(), 67, [255; 4], 68));
    assert_eq!(came[0][..6], [0xff; 6]);
    // From another than a server, for another interface, for a link that is none.
    assert_eq!(answers(&mut bed, Ipv4Addr::new(192, 0, 2, 3), Kind::Offer, &information).len(), 0);
    for at in [5, 11] {
        let mut wrong = information.clone();
        wrong[at] ^= 9;
        assert_eq!(answers(&mut bed, SERVER, Kind::Offer, &wrong).len(), 0, "{at}");
    }
    assert_eq!(answers(&mut bed, SERVER, Kind::Offer, &information[..4]).len(), 0);
    bed.router.get::<Dhcp>().del_server(0, server()).unwrap();
    assert_eq!(asks(&mut bed, Kind::Discover).iter().filter(|f| f[23] == 17).count(), 0);
}

#[test]
fn all_servers_are_asked_for_an_offer_and_one_for_the_rest() {
    let mut bed = relayed();
    let dhcp = bed.router.get::<Dhcp>();
    let second = Server { address: "192.0.2.3".parse().unwrap(), vrf: 0 };
    dhcp.add_server(0, second, OWN.into()).unwrap();
    assert_eq!(dhcp.add_server(0, second, OWN.into()), Err(DhcpError::ServerExists(second.address)));
    assert_eq!(asks(&mut bed, Kind::Discover).len(), 2);
    assert_eq!(asks(&mut bed, Kind::Request).len(), 1);
}

#[test]
fn servers_hear_which_vpn_a_host_is_in() {
    let mut bed = relayed();
    let dhcp = bed.router.get::<Dhcp>();
    dhcp.set_subnet(Family::Ip4, 0, VirtualSubnet::Number { organisation: 4, vpn: 1 }).unwrap();
    let sent = asks(&mut bed, Kind::Discover);
    let information = message(&sent[0]).unwrap().option(option::RELAY).unwrap().to_vec();
    assert_eq!(information[12..], [151, 8, 1, 0, 0, 4, 0, 0, 0, 1, 152, 0]);
    dhcp.del_subnet(Family::Ip4, 0).unwrap();
    assert_eq!(dhcp.del_subnet(Family::Ip4, 0), Err(DhcpError::NoSubnet(0)));
    let large = VirtualSubnet::Number { organisation: 1 << 24, vpn: 1 };
    assert!(matches!(dhcp.set_subnet(Family::Ip4, 0, large), Err(DhcpError::Subnet(_))));
}

#[test]
fn servers_and_sources_that_do_not_go_together_are_refused() {
    let bed = bed();
    let dhcp = bed.router.get::<Dhcp>();
    let (four, six): (IpAddr, IpAddr) = (OWN.into(), "2001:db8::1".parse().unwrap());
    assert_eq!(dhcp.add_server(0, server(), six), Err(DhcpError::Families(SERVER.into(), six)));
    assert_eq!(dhcp.add_server(0, server(), Ipv4Addr::UNSPECIFIED.into()), Err(DhcpError::NoSource));
    let none = Server { address: Ipv4Addr::UNSPECIFIED.into(), vrf: 0 };
    assert_eq!(dhcp.add_server(0, none, four), Err(DhcpError::NoServer(none.address)));
    assert_eq!(dhcp.del_server(0, server()), Err(DhcpError::UnknownServer(SERVER.into())));
}

#[test]
fn dhcpv6_is_relayed_with_the_senders_link_layer_address() {
    let mut bed = bed();
    let ip6 = bed.router.get::<Ip6>();
    ip6.add_address(bed.inside.index(), "2001:db8:a::1/64".parse().unwrap()).unwrap();
    ip6.add_address(bed.outside.index(), "2001:db8:b::1/64".parse().unwrap()).unwrap();
    bed.advance(5);
    let (own, far): (Ipv6Addr, Ipv6Addr) =
        ("2001:db8:b::1".parse().unwrap(), "2001:db8:b::2".parse().unwrap());
    let dhcp = bed.router.get::<Dhcp>();
    dhcp.add_server(0, Server { address: far.into(), vrf: 0 }, own.into()).unwrap();
    let neighbours = bed.router.get::<shoal_ip6_nd::Neighbours>();
    let (origin, entry) = (shoal_neighbor::table::Origin::Static, shoal_neighbor::table::FibEntry::Wanted);
    neighbours.set((bed.outside.index(), far), FAR, origin, entry).unwrap();
    bed.inside.received();
    bed.outside.received();
    let peer: Ipv6Addr = "fe80::9".parse().unwrap();
    let group: Ipv6Addr = "ff02::1:2".parse().unwrap();
    let frame = PacketBuilder::ethernet(HOST, MacAddress([0x33, 0x33, 0, 1, 0, 2])).ip6(peer, group);
    bed.send_inside(frame.udp(546, 547).payload(&[1, 0, 0, 7]).build());
    bed.router.run();
    let sent: Vec<Vec<u8>> = bed.outside.received().into_iter().filter(|f| f[20] == 17).collect();
    assert_eq!(sent.len(), 1, "{:?}", bed.router.errors());
    let data = &sent[0][62..];
    assert_eq!((data[0], &data[18..34]), (RELAY_FORWARD, &peer.octets()[..]));
    let mac = [&[0, 79, 0, 8, 0, 1][..], &HOST.0].concat();
    assert!(data.windows(mac.len()).any(|window| window == mac), "{data:?}");
    // The answer.
    let mut reply = vec![RELAY_REPLY, 0];
    reply.extend([0; 16]);
    reply.extend(peer.octets());
    reply.extend(
        [&[0, 18, 0, 4][..], &bed.inside.index().0.to_be_bytes(), &[0, 9, 0, 4, 2, 0, 0, 7]].concat(),
    );
    let frame = PacketBuilder::ethernet(FAR, bed.outside.mac()).ip6(far, own).udp(547, 547);
    bed.send_outside(frame.payload(&reply).build());
    bed.router.run();
    let came: Vec<Vec<u8>> = bed.inside.received().into_iter().filter(|f| f[20] == 17).collect();
    assert_eq!(came.len(), 1, "{:?}", bed.router.errors());
    assert_eq!((&came[0][38..54], &came[0][62..]), (&peer.octets()[..], &[2, 0, 0, 7][..]));
}
