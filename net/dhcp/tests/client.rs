//! A client and its server.

use std::net::Ipv4Addr;

use shoal_dhcp::client::State;
use shoal_dhcp::message4::{BROADCAST, Draft, Kind, option};
use shoal_dhcp::{ClientIdentity, Dhcp, DhcpError};
use shoal_ip4::Ip4;
use shoal_testkit::PacketBuilder;
use shoal_testkit::nat_bed::{FAR, NatBed};

use crate::common::{bare, ends, message};

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const GIVEN: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// What came out since the last look, ARP left out.
fn sent(bed: &mut NatBed) -> Vec<Vec<u8>> {
    bed.router.run();
    bed.outside.received().into_iter().filter(|frame| frame[12..14] == [8, 0]).collect()
}

/// A server's answer to the last question, to all stations or to the address that is given.
fn answer(bed: &mut NatBed, question: &[u8], kind: Kind, lease: u32, to: Ipv4Addr) {
    let transaction = message(question).unwrap().transaction();
    let seconds = lease.to_be_bytes();
    let options: Vec<(u8, &[u8])> = vec![
        (option::MASK, &[255, 255, 255, 0]),
        (option::ROUTER, &[198, 51, 100, 1]),
        (option::NAME_SERVERS, &[198, 51, 100, 3, 198, 51, 100, 4]),
        (option::SERVER, &[198, 51, 100, 1]),
        (option::LEASE, &seconds),
    ];
    let (client, mac) = (Ipv4Addr::UNSPECIFIED, bed.outside.mac());
    let mut data = Draft { kind, transaction, flags: 0, client, mac, seconds: 0, options }.write();
    data[0] = 2;
    data[16..20].copy_from_slice(&GIVEN.octets());
    let frame = PacketBuilder::ethernet(FAR, bed.outside.mac()).ip4(SERVER, to).udp(67, 68);
    bed.send_outside(frame.payload(&data).build());
    bed.router.run();
}

fn begin(bed: &mut NatBed) -> Vec<u8> {
    let asks = ClientIdentity { hostname: "gw".to_owned(), id: b"me".to_vec(), ..ClientIdentity::default() };
    bed.router.get::<Dhcp>().add_client(bed.outside.index(), asks).unwrap();
    sent(bed).pop().unwrap()
}

fn bound(bed: &mut NatBed, lease: u32) {
    let discover = begin(bed);
    answer(bed, &discover, Kind::Offer, lease, Ipv4Addr::BROADCAST);
    let request = sent(bed).pop().unwrap();
    answer(bed, &request, Kind::Ack, lease, Ipv4Addr::BROADCAST);
}

#[test]
fn an_interface_gets_address_and_route_and_loses_them_with_the_lease() {
    let mut bed = bare();
    let outside = bed.outside.index();
    let discover = begin(&mut bed);
    assert_eq!(ends(&discover), ([0; 4], 68, [255; 4], 67));
    assert_eq!(discover[..6], [0xff; 6]);
    let read = message(&discover).unwrap();
    assert_eq!((read.kind(), read.option(option::HOST_NAME)), (Some(Kind::Discover), Some(&b"gw"[..])));
    assert_eq!(read.option(option::CLIENT), Some(&b"\0me"[..]));
    assert_eq!(discover[42 + 10..42 + 12], BROADCAST.to_be_bytes());
    // The answer may go to the address that is not the router's yet.
    answer(&mut bed, &discover, Kind::Offer, 100, GIVEN);
    let request = sent(&mut bed).pop().unwrap();
    let read = message(&request).unwrap();
    assert_eq!(read.address_option(option::REQUESTED), Some(GIVEN));
    assert_eq!(read.address_option(option::SERVER), Some(SERVER));
    answer(&mut bed, &request, Kind::Ack, 100, Ipv4Addr::BROADCAST);
    let ip4 = bed.router.get::<Ip4>();
    assert_eq!(ip4.primary(outside), Some(GIVEN));
    let asked: Vec<Vec<u8>> = bed.outside.received().into_iter().filter(|f| f[12..14] == [8, 6]).collect();
    assert!(asked.iter().any(|frame| frame[38..42] == SERVER.octets()), "the router is asked for");
    let info = &bed.router.get::<Dhcp>().clients()[0];
    assert_eq!(info.state, State::Bound);
    assert_eq!(info.lease.as_ref().unwrap().name_servers.len(), 2);
    assert!(ip4.is_learnt(outside, "198.51.100.7/24".parse().unwrap()), "it is not saved");
    // The server does not renew it.
    bed.advance(101);
    assert_eq!(ip4.primary(outside), None);
    assert_eq!(bed.router.get::<Dhcp>().clients()[0].state, State::Discover);
    assert!(sent(&mut bed).iter().any(|f| message(f).is_some_and(|m| m.kind() == Some(Kind::Discover))));
}

#[test]
fn a_lease_goes_on_when_the_server_says_so() {
    let mut bed = bare();
    bound(&mut bed, 100);
    let neighbours = bed.router.get::<shoal_arp::Neighbours>();
    let (origin, entry) = (shoal_neighbor::table::Origin::Static, shoal_neighbor::table::FibEntry::Wanted);
    neighbours.set((bed.outside.index(), SERVER), FAR, origin, entry).unwrap();
    sent(&mut bed);
    bed.advance(51);
    let renews = sent(&mut bed).pop().unwrap();
    assert_eq!(ends(&renews), (GIVEN.octets(), 68, SERVER.octets(), 67));
    assert_eq!(message(&renews).unwrap().option(option::SERVER), None, "RFC 2131, 4.3.2");
    answer(&mut bed, &renews, Kind::Ack, 100, GIVEN);
    bed.advance(60);
    assert_eq!(bed.router.get::<Ip4>().primary(bed.outside.index()), Some(GIVEN));
}

#[test]
fn a_client_that_is_taken_away_takes_its_address_along() {
    let mut bed = bare();
    let dhcp = bed.router.get::<Dhcp>();
    let outside = bed.outside.index();
    bound(&mut bed, 100);
    let again = dhcp.add_client(outside, ClientIdentity::default());
    assert_eq!(
        again.unwrap_err().to_string(),
        format!("dhcp client already enabled on {}", bed.outside.name())
    );
    dhcp.del_client(outside).unwrap();
    assert_eq!(bed.router.get::<Ip4>().primary(outside), None);
    assert!(matches!(dhcp.del_client(outside), Err(DhcpError::NoClient(_))));
    let long = ClientIdentity { hostname: "x".repeat(64), ..ClientIdentity::default() };
    assert!(matches!(dhcp.add_client(outside, long), Err(DhcpError::TooLong(..))));
    // An interface that goes.
    bound(&mut bed, 100);
    bed.router.generator().delete_interface(outside).unwrap();
    assert_eq!(dhcp.clients().len(), 0);
}

#[test]
fn a_lease_is_renewed_before_another_is_looked_for() {
    let mut bed = bare();
    bound(&mut bed, 100);
    sent(&mut bed);
    bed.advance(51);
    let discover = begin_again(&mut bed);
    assert!(discover.is_none(), "it renews first");
    assert_eq!(bed.router.get::<Dhcp>().clients()[0].state, State::Bound);
    // What waits for the server's link-layer address.
    bed.router.may_hold(8);
}

fn begin_again(bed: &mut NatBed) -> Option<Vec<u8>> {
    sent(bed).into_iter().find(|f| message(f).is_some_and(|m| m.kind() == Some(Kind::Discover)))
}
