//! What else makes DHCPv6 clients ask: addresses that other stations have, and servers that have them ask again.

use std::net::Ipv6Addr;
use std::time::Duration;

use md5::{Digest, Md5};
use shoal_dhcp::Dhcp;
use shoal_dhcp::client_message6::{Association, ClientRequest, Wanted, kind};
use shoal_dhcp::client6::Phase;
use shoal_ip6_nd::Nd;
use shoal_testkit::PacketBuilder;
use shoal_testkit::nat_bed::{FAR, NatBed};
use shoal_wire::nd::{HOP_LIMIT, NaFlags, NeighborAdvertisement};
use shoal_wire::{IpProtocol, MacAddress};

use crate::client6::*;

const KEY: [u8; 16] = *b"the server's key";

fn phase(bed: &NatBed) -> Phase {
    bed.router.get::<Dhcp>().clients6()[0].phase
}

/// Another station says that it has an address.
fn claim(bed: &mut NatBed, address: &str) {
    let (address, all): (Ipv6Addr, Ipv6Addr) = (address.parse().unwrap(), "ff02::1".parse().unwrap());
    let mut room = [0; 64];
    let message = NeighborAdvertisement::new(address, NaFlags::OVERRIDE).write(&mut room);
    let len = message.target_link_layer(FAR).finish(address, all).unwrap();
    let packet = PacketBuilder::ethernet(FAR, MacAddress::for_ip6_multicast(all)).ip6(address, all);
    let packet = packet.ttl(HOP_LIMIT).protocol(IpProtocol::ICMP6).payload(&room[..len]);
    bed.send_outside(packet.build());
    bed.router.run();
}

fn proving(wanted: Wanted) -> NatBed {
    let bed = start(wanted);
    bed.router.get::<Nd>().set_dad(1, Duration::from_secs(1)).unwrap();
    bed
}

// RFC 8415, 18.2.8
#[test]
fn an_address_that_another_station_has_is_declined_and_another_one_asked_for() {
    let mut bed = proving(Wanted::Addresses);
    let offer = given(&[("2001:db8::9/128", 60, 120)], (20, 40));
    bound(&mut bed, Wanted::Addresses, &offer);
    bed.router.advance(Duration::from_millis(100));
    assert_eq!(addresses(&bed), ["2001:db8::9/64"]);
    claim(&mut bed, "2001:db8::9");
    assert!(addresses(&bed).is_empty());
    let decline = last(&mut bed);
    let (kind, asked) = read(&decline);
    assert_eq!((kind, phase(&bed)), (kind::DECLINE, Phase::Decline));
    let items = asked.addresses.unwrap().items;
    assert_eq!(items.iter().map(|item| item.prefix).collect::<Vec<_>>(), [prefix("2001:db8::9/128")]);
    // To the server, and not from that address.
    let has_server = decline[UDP + 8..].windows(10).any(|w| w[..4] == [0, 2, 0, 6] && w[4..] == SERVER);
    assert!(has_server && decline[22..24] == [0xfe, 0x80]);
    // Whatever the server says of it: the client waits, and asks for another one.
    let none = Association { status: 3, ..Association::default() };
    answer(&mut bed, &decline, kind::REPLY, Wanted::Addresses, &none);
    assert_eq!(phase(&bed), Phase::Wait);
    bed.advance(9);
    assert!(sent(&mut bed).is_empty());
    bed.advance(2);
    let other = given(&[("2001:db8::a/128", 60, 120)], (20, 40));
    bound(&mut bed, Wanted::Addresses, &other);
    bed.advance(3);
    assert_eq!((addresses(&bed), phase(&bed)), (vec!["2001:db8::a/64".to_owned()], Phase::Bound));
    assert_eq!(bed.router.get::<Dhcp>().clients6()[0].declined, 1);
    // One that is proved is not given up for a station that comes later.
    claim(&mut bed, "2001:db8::a");
    assert_eq!(addresses(&bed).len(), 1);
    assert!(sent(&mut bed).is_empty());
}

#[test]
fn a_server_that_does_not_answer_is_told_four_times_and_what_is_left_goes_on() {
    let mut bed = proving(Wanted::Addresses);
    let offer = given(&[("2001:db8::9/128", 600, 1200), ("2001:db8::a/128", 600, 1200)], (200, 400));
    bound(&mut bed, Wanted::Addresses, &offer);
    bed.router.advance(Duration::from_millis(100));
    claim(&mut bed, "2001:db8::9");
    let mut told = 0;
    for _ in 0..60 {
        told += sent(&mut bed).iter().filter(|frame| read(frame).0 == kind::DECLINE).count();
        bed.advance(1);
    }
    assert_eq!((told, phase(&bed)), (4, Phase::Bound));
    assert_eq!(addresses(&bed), ["2001:db8::a/64"]);
    // It asks for what is left to go on.
    bed.advance(150);
    let (kind, asked) = read(&last(&mut bed));
    assert_eq!((kind, asked.addresses.unwrap().items.len()), (kind::RENEW, 1));
    // A stranger's claims of what is not the server's change nothing.
    claim(&mut bed, "2001:db8::77");
    assert_eq!(phase(&bed), Phase::Renew);
}

fn option(bytes: &mut Vec<u8>, number: u16, value: &[u8]) {
    bytes.extend([number.to_be_bytes(), (value.len() as u16).to_be_bytes()].concat());
    bytes.extend(value);
}

/// RFC 8415, 20.4: an authentication option with a key (1) or a digest (2).
fn authentication(replay: u64, kind: u8, value: [u8; 16]) -> Vec<u8> {
    [&[3, 1, 0][..], &replay.to_be_bytes(), &[kind], &value].concat()
}

/// The server gives what is asked for, and its key.
fn bound_with_key(bed: &mut NatBed, wanted: Wanted, association: &Association) {
    let solicit = last(bed);
    let says_so = solicit[UDP + 8..].windows(4).any(|w| w == [0, 20, 0, 0]);
    assert!(says_so, "it obeys");
    answer(bed, &solicit, kind::ADVERTISE, wanted, association);
    let request = last(bed);
    let (_, question) = read(&request);
    let id = question.association(wanted).unwrap().id;
    let mut bytes = ClientRequest {
        kind: kind::REPLY,
        transaction: question.transaction,
        client: &question.client,
        server: Some(&SERVER),
        elapsed: 0,
        wanted,
        association: &Association { id, ..association.clone() },
        reconfigures: false,
    }
    .write();
    option(&mut bytes, 11, &authentication(5, 1, KEY));
    reply(bed, &request, &bytes);
    assert_eq!(phase(bed), Phase::Bound);
}

fn hmac(key: &[u8; 16], message: &[u8]) -> [u8; 16] {
    let pad = |with: u8| (0..64).map(|i| key.get(i).copied().unwrap_or(0) ^ with).collect::<Vec<u8>>();
    let inner = Md5::digest([&pad(0x36)[..], message].concat());
    Md5::digest([&pad(0x5c)[..], &inner].concat()).into()
}

/// A message of the server that has the client ask again.
fn reconfigure(bed: &NatBed, asks: u8, replay: u64, key: &[u8; 16]) -> Vec<u8> {
    let mut bytes = vec![kind::RECONFIGURE, 0, 0, 0];
    option(&mut bytes, 1, &bed.router.get::<Dhcp>().duid());
    option(&mut bytes, 2, &SERVER);
    option(&mut bytes, 19, &[asks]);
    option(&mut bytes, 11, &authentication(replay, 2, [0; 16]));
    let (digest, at) = (hmac(key, &bytes), bytes.len() - 16);
    bytes[at..].copy_from_slice(&digest);
    bytes
}

fn send(bed: &mut NatBed, to: &str, message: &[u8]) {
    let (from, to): (Ipv6Addr, Ipv6Addr) = ("fe80::99".parse().unwrap(), to.parse().unwrap());
    let packet = PacketBuilder::ethernet(FAR, bed.outside.mac()).ip6(from, to).udp(547, 546);
    bed.send_outside(packet.payload(message).build());
    bed.router.run();
}

// RFC 8415, 18.2.11 and 20.4
#[test]
fn a_server_with_the_key_has_its_client_renew_rebind_and_ask_what_else_there_is() {
    let mut bed = start(Wanted::Addresses);
    let offer = given(&[("2001:db8::9/128", 600, 1200)], (200, 400));
    bound_with_key(&mut bed, Wanted::Addresses, &offer);
    bed.advance(3);
    for (replay, asks) in [(6, kind::RENEW), (7, kind::REBIND), (9, kind::INFORMATION)] {
        let message = reconfigure(&bed, asks, replay, &KEY);
        send(&mut bed, "2001:db8::9", &message);
        let question = last(&mut bed);
        let (kind, asked) = read(&question);
        assert_eq!(kind, asks);
        assert_eq!(
            asked.addresses.is_some(),
            asks != kind::INFORMATION,
            "nothing is asked for but information"
        );
        if asks == kind::INFORMATION {
            let bytes = ClientRequest {
                kind: kind::REPLY,
                transaction: asked.transaction,
                client: &asked.client,
                server: Some(&SERVER),
                elapsed: 0,
                wanted: Wanted::Addresses,
                association: &Association::default(),
                reconfigures: false,
            };
            reply(&mut bed, &question, &bytes.write());
        } else {
            continue_with(&mut bed, &question, &offer);
        }
    }
    bed.advance(30);
    assert!(sent(&mut bed).is_empty(), "all was answered");
    let info = &bed.router.get::<Dhcp>().clients6()[0];
    assert_eq!((info.phase, info.reconfigured, bed.router.get::<Dhcp>().refused6()), (Phase::Bound, 3, 0));
    // Heard while it asks: one question is enough.
    let first = reconfigure(&bed, kind::RENEW, 20, &KEY);
    send(&mut bed, "2001:db8::9", &first);
    let second = reconfigure(&bed, kind::REBIND, 21, &KEY);
    send(&mut bed, "2001:db8::9", &second);
    assert_eq!((sent(&mut bed).len(), phase(&bed)), (1, Phase::Renew));
}

fn continue_with(bed: &mut NatBed, question: &[u8], association: &Association) {
    answer(bed, question, kind::REPLY, Wanted::Addresses, association);
    assert_eq!(phase(bed), Phase::Bound);
}

// RFC 8415, 16.11
#[test]
fn strangers_have_no_client_ask_again() {
    let mut bed = start(Wanted::Addresses);
    let offer = given(&[("2001:db8::9/128", 600, 1200)], (200, 400));
    bound_with_key(&mut bed, Wanted::Addresses, &offer);
    bed.advance(3);
    sent(&mut bed);
    let good = reconfigure(&bed, kind::RENEW, 6, &KEY);
    let changed = |at: usize| {
        let mut other = good.clone();
        other[at] ^= 1;
        other
    };
    let mut all: Vec<Vec<u8>> = (0..good.len()).map(changed).collect();
    all.extend((4..good.len()).map(|len| good[..len].to_vec()));
    all.push(reconfigure(&bed, kind::RENEW, 5, &KEY));
    all.push(reconfigure(&bed, kind::RENEW, 6, b"another's key..."));
    all.push(reconfigure(&bed, kind::RELEASE, 6, &KEY));
    // What is another kind of message is none that is refused.
    let count = all.iter().filter(|message| message[0] == kind::RECONFIGURE).count() as u64;
    for message in &all {
        send(&mut bed, "2001:db8::9", message);
        assert!(sent(&mut bed).is_empty(), "{message:?}");
    }
    // To all stations of the link.
    send(&mut bed, "ff02::1", &good);
    assert!(sent(&mut bed).is_empty());
    assert!(bed.router.get::<Dhcp>().refused6() >= count);
    // The right one, once.
    send(&mut bed, "2001:db8::9", &good);
    assert_eq!(read(&last(&mut bed)).0, kind::RENEW);
}

#[test]
fn without_a_key_nothing_has_a_client_ask_again() {
    let mut bed = start(Wanted::Prefixes);
    bound(&mut bed, Wanted::Prefixes, &given(&[("2001:db8:77::/56", 600, 1200)], (200, 400)));
    let link_local = bed.router.get::<shoal_ip6::Ip6>().link_local(bed.outside.index()).unwrap().to_string();
    for key in [KEY, [0; 16]] {
        let message = reconfigure(&bed, kind::RENEW, 6, &key);
        send(&mut bed, &link_local, &message);
    }
    assert!(sent(&mut bed).is_empty());
    assert_eq!(bed.router.get::<Dhcp>().refused6(), 2);
}
