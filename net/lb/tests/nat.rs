//! Services that are translated, there and back.

use shoal_lb::vip::{Encap, Policy, Service};
use shoal_lb::{LbError, LoadBalancer};
use shoal_testkit::nat_bed::icmp_error;
use shoal_wire::{IpProtocol, TcpFlags};
use std::net::Ipv4Addr;

use crate::bed::*;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn translated(protocol: IpProtocol) -> Bed {
    let bed = bed();
    let policy = Policy { target_port: 5353, ..Policy::new(Encap::Nat4) };
    bed.serve(&host_key(VIP, Some((protocol, 53))), policy, &[server(2)]);
    let policy = Policy { target_port: 5353, ..Policy::new(Encap::Nat6) };
    bed.serve(&host_key(vip6(), Some((protocol, 53))), policy, &[server6(2)]);
    for is_ip6 in [false, true] {
        bed.lb.set_return_path(bed.nat.inside.index(), is_ip6, true).unwrap();
    }
    bed
}

#[test]
fn datagrams_and_connections_are_translated_both_ways() {
    for protocol in [IpProtocol::UDP, IpProtocol::TCP] {
        let mut bed = translated(protocol);
        let with = |packet: shoal_testkit::PacketBuilder, (from, to)| match protocol {
            IpProtocol::UDP => packet.udp(from, to).payload(b"odd"),
            _ => packet.tcp(from, to, TcpFlags::ACK).payload(b"odd"),
        };
        let got = bed.forward(with(bed.client_frame().ip4(CLIENT, VIP), (1000, 53)));
        assert_eq!((addresses(&got[0]), ports(&got[0][20..])), ((CLIENT, SERVER), (1000, 5353)));
        assert!(is_whole(&got[0]) && got[0][8] == 63);
        let got = bed.answer(with(bed.server_frame().ip4(SERVER, CLIENT), (5353, 1000)));
        assert_eq!((addresses(&got[0]), ports(&got[0][20..])), ((VIP, CLIENT), (53, 1000)));
        assert!(is_whole(&got[0]));
        let server: std::net::Ipv6Addr = server6(2).to_string().parse().unwrap();
        let got = bed.forward(with(bed.client_frame().ip6(client6(), vip6()), (1000, 53)));
        assert_eq!((addresses6(&got[0]), ports(&got[0][40..])), ((client6(), server), (1000, 5353)));
        assert!(is_whole6(&got[0]));
        let got = bed.answer(with(bed.server_frame().ip6(server, client6()), (5353, 1000)));
        assert_eq!((addresses6(&got[0]), ports(&got[0][40..])), ((vip6(), client6()), (53, 1000)));
        assert!(is_whole6(&got[0]));
        // What else the server sends passes as it is.
        let got = bed.answer(bed.server_frame().ip4(SERVER, CLIENT).udp(7, 8).payload(b"x"));
        assert_eq!((addresses(&got[0]), ports(&got[0][20..])), ((SERVER, CLIENT), (7, 8)));
        let got = bed.answer(bed.server_frame().ip4(SERVER, CLIENT).icmp_echo_request(7, 8));
        assert_eq!(addresses(&got[0]), (SERVER, CLIENT));
    }
}

#[test]
fn errors_about_packets_of_a_service_are_translated_with_what_they_carry() {
    let mut bed = translated(IpProtocol::UDP);
    // A client says that the service's answer did not reach it.
    let carried = bed.client_frame().ip4(VIP, CLIENT).udp(53, 1000).payload(b"answer").build();
    let start = bed.client_frame().ip4(CLIENT, VIP).icmp_echo_request(1, 1).build();
    let got = bed.forward_frame(icmp_error(&start, &carried[ETHER..]));
    assert!(is_whole(&got[0]) && addresses(&got[0]) == (CLIENT, SERVER));
    let inner = &got[0][28..];
    assert_eq!((addresses(inner), ports(&inner[20..])), ((SERVER, CLIENT), (5353, 1000)));
    // A server says that its port is closed.
    let carried = bed.server_frame().ip4(CLIENT, SERVER).udp(1000, 5353).payload(b"question").build();
    let start = bed.server_frame().ip4(SERVER, CLIENT).icmp_echo_request(1, 1).build();
    let error = icmp_error(&start, &carried[ETHER..]);
    bed.nat.send_inside(error);
    let got = &bed.nat.outside.received()[0][ETHER..];
    assert!(is_whole(got) && addresses(got) == (VIP, CLIENT));
    assert_eq!((addresses(&got[28..]), ports(&got[48..])), ((CLIENT, VIP), (1000, 53)));
    // The same of IPv6: type 1, code 4.
    let server: std::net::Ipv6Addr = server6(2).to_string().parse().unwrap();
    let carried = bed.client_frame().ip6(vip6(), client6()).udp(53, 1000).payload(b"answer").build();
    let message = [&[1, 4, 0, 0, 0, 0, 0, 0][..], &carried[ETHER..]].concat();
    let got = bed.forward(bed.client_frame().ip6(client6(), vip6()).icmp6(&message));
    assert!(is_whole6(&got[0]) && addresses6(&got[0]) == (client6(), server));
    let inner = &got[0][48..];
    assert_eq!((addresses6(inner), ports(&inner[40..])), ((server, client6()), (5353, 1000)));
    let carried = bed.server_frame().ip6(client6(), server).udp(1000, 5353).payload(b"question").build();
    let message = [&[1, 4, 0, 0, 0, 0, 0, 0][..], &carried[ETHER..]].concat();
    let got = bed.answer(bed.server_frame().ip6(server, client6()).icmp6(&message));
    assert!(is_whole6(&got[0]) && addresses6(&got[0]) == (vip6(), client6()));
    let inner = &got[0][48..];
    assert_eq!((addresses6(inner), ports(&inner[40..])), ((client6(), vip6()), (1000, 53)));
}

#[test]
fn a_port_of_the_router_leads_to_servers_too() {
    let mut bed = bed();
    let key = host_key(VIP, Some((IpProtocol::UDP, 53)));
    let policy = Policy { target_port: 5353, service: Service::NodePort(30_053), ..Policy::new(Encap::Nat4) };
    bed.serve(&key, policy, &[server(2)]);
    let to_router = |bed: &Bed| bed.client_frame().ip4(CLIENT, [192, 0, 2, 1]).udp(1000, 30_053);
    let got = bed.forward(to_router(&bed));
    assert_eq!((addresses(&got[0]).1, ports(&got[0][20..])), (SERVER, (1000, 5353)));
    let other = host_key([198, 51, 100, 2], Some((IpProtocol::UDP, 53)));
    assert!(matches!(bed.lb.add_vip(other, policy), Err(LbError::Value(_))));
    assert!(bed.lb.vip(&other).is_err());
    bed.lb.del_vip(key).unwrap();
    assert!(bed.forward(to_router(&bed)).is_empty());
    bed.lb.add_vip(other, policy).unwrap();
}

#[test]
fn answers_of_a_server_of_two_services_are_the_first_ones_until_it_goes() {
    let mut bed = translated(IpProtocol::UDP);
    let (first, second) = (
        host_key(VIP, Some((IpProtocol::UDP, 53))),
        host_key([198, 51, 100, 2], Some((IpProtocol::UDP, 54))),
    );
    let policy = Policy { target_port: 5353, ..Policy::new(Encap::Nat4) };
    bed.serve(&second, policy, &[server(2)]);
    let answer = |bed: &mut Bed| {
        let got = bed.answer(bed.server_frame().ip4(SERVER, CLIENT).udp(5353, 1000));
        (addresses(&got[0]).0, ports(&got[0][20..]).0)
    };
    assert_eq!(answer(&mut bed), (VIP, 53));
    bed.lb.del_vip(first).unwrap();
    assert_eq!(answer(&mut bed), (Ipv4Addr::new(198, 51, 100, 2), 54));
    bed.lb.del_servers(&second, &[server(2)], true).unwrap();
    assert_eq!(answer(&mut bed), (SERVER, 5353));
    let interface = bed.nat.inside.index();
    let lb: &LoadBalancer = &bed.lb;
    lb.set_return_path(interface, false, false).unwrap();
    assert!(lb.set_return_path(interface, false, false).is_err());
    assert_eq!(lb.return_paths(), [(interface, true)]);
}
