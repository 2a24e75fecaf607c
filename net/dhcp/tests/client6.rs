//! DHCPv6 clients and their server: addresses, prefixes, what becomes of them, messages of the binary API.

use std::net::Ipv6Addr;

use shoal_dhcp::api6::*;
use shoal_dhcp::client_message6::{Answer, Association, ClientRequest, Item, Wanted, kind};
use shoal_dhcp::client6::Phase;
use shoal_dhcp::{Dhcp, DhcpError, MODULE};
use shoal_fib::{Fib, FibIndex, Source};
use shoal_interface::Interfaces;
use shoal_ip6::Ip6;
use shoal_message::{Count, InterfaceIndex, Ip6AddressWithPrefix, Ip6Prefix as Prefix6, Retval};
use shoal_module::Running;
use shoal_module::api::Request;
use shoal_testkit::nat_bed::{FAR, NatBed};
use shoal_testkit::{Listener, PacketBuilder};
use shoal_wire::Ip6Prefix;

use crate::common::bare;

pub const SERVER: [u8; 6] = [0, 2, 0, 0, 0, 9];
pub const UDP: usize = 14 + 40;

pub fn prefix(text: &str) -> Ip6Prefix {
    text.parse().unwrap()
}

/// DHCPv6 messages that came out since the last look, with the frames they were in.
pub fn sent(bed: &mut NatBed) -> Vec<Vec<u8>> {
    bed.router.run();
    let is = |frame: &Vec<u8>| {
        frame.len() > UDP + 8 && frame[20] == 17 && frame[UDP + 2..UDP + 4] == 547u16.to_be_bytes()
    };
    bed.outside.received().into_iter().filter(is).collect()
}

pub fn last(bed: &mut NatBed) -> Vec<u8> {
    sent(bed).pop().expect("a message")
}

/// What a client says: kind, transaction, its identifier and what it asks for.
pub fn read(frame: &[u8]) -> (u8, Answer) {
    let mut message = frame[UDP + 8..].to_vec();
    let kind = std::mem::replace(&mut message[0], kind::REPLY);
    // A server's message has the same form, and names a server.
    message.extend([0, 2, 0, 1, 0]);
    (kind, Answer::read(&message).unwrap())
}

pub fn items(all: &[(&str, u32, u32)]) -> Vec<Item> {
    let item = |(text, preferred, valid): &(&str, u32, u32)| Item {
        prefix: prefix(text),
        preferred: *preferred,
        valid: *valid,
    };
    all.iter().map(item).collect()
}

/// A server's answer to a frame.
pub fn answer(bed: &mut NatBed, asked: &[u8], kind: u8, wanted: Wanted, association: &Association) {
    let (_, question) = read(asked);
    let bytes = ClientRequest {
        reconfigures: false,
        kind,
        transaction: question.transaction,
        client: &question.client,
        server: Some(&SERVER),
        elapsed: 0,
        wanted,
        association: &Association { id: question.association(wanted).unwrap().id, ..association.clone() },
    }
    .write();
    reply(bed, asked, &bytes);
}

pub fn reply(bed: &mut NatBed, asked: &[u8], message: &[u8]) {
    let client = Ipv6Addr::from(<[u8; 16]>::try_from(&asked[22..38]).unwrap());
    let from: Ipv6Addr = "fe80::99".parse().unwrap();
    let packet = PacketBuilder::ethernet(FAR, bed.outside.mac()).ip6(from, client).udp(547, 546);
    bed.send_outside(packet.payload(message).build());
    bed.router.run();
}

pub fn given(all: &[(&str, u32, u32)], (t1, t2): (u32, u32)) -> Association {
    Association { t1, t2, items: items(all), ..Association::default() }
}

pub fn start(wanted: Wanted) -> NatBed {
    let mut bed = bare();
    let group = if wanted == Wanted::Prefixes { "isp" } else { "" };
    bed.router.get::<Dhcp>().add_client6(bed.outside.index(), wanted, group).unwrap();
    bed.router.run();
    bed
}

/// Asks and gets.
pub fn bound(bed: &mut NatBed, wanted: Wanted, association: &Association) {
    let solicit = last(bed);
    answer(bed, &solicit, kind::ADVERTISE, wanted, association);
    let request = last(bed);
    answer(bed, &request, kind::REPLY, wanted, association);
}

pub fn addresses(bed: &NatBed) -> Vec<String> {
    bed.router.get::<Ip6>().addresses(bed.outside.index()).iter().map(ToString::to_string).collect()
}

#[test]
fn an_interface_gets_its_address_renews_it_and_loses_it() {
    let mut bed = start(Wanted::Addresses);
    let solicit = last(&mut bed);
    // To all servers and relays of the link, from its link-local address.
    assert_eq!(solicit[..6], [0x33, 0x33, 0, 1, 0, 2]);
    assert_eq!((&solicit[22..24], &solicit[38..40]), (&[0xfe, 0x80][..], &[0xff, 0x02][..]));
    assert_eq!(solicit[UDP..UDP + 4], [2, 34, 2, 35]);
    let (kind, asked) = read(&solicit);
    let association = asked.addresses.as_ref().unwrap();
    assert_eq!((kind, association.id, association.items.len()), (kind::SOLICIT, bed.outside.index().0, 0));
    assert_eq!(asked.client, bed.router.get::<Dhcp>().duid());
    assert_eq!(asked.client[..4], [0, 3, 0, 1]);
    // Without an answer the client repeats the message, at longer and longer intervals.
    bed.advance(1);
    bed.advance(1);
    assert_eq!(sent(&mut bed).len(), 1);
    bed.advance(10);
    let again = last(&mut bed);
    assert_eq!(read(&again).1.transaction, asked.transaction);

    let offer = given(&[("2001:db8::9/128", 60, 120)], (20, 40));
    answer(&mut bed, &again, kind::ADVERTISE, Wanted::Addresses, &offer);
    let request = last(&mut bed);
    let (kind, asked) = read(&request);
    assert_eq!((kind, asked.addresses.unwrap().items), (kind::REQUEST, offer.items.clone()));
    assert!(addresses(&bed).is_empty());
    answer(&mut bed, &request, kind::REPLY, Wanted::Addresses, &offer);
    assert_eq!(addresses(&bed), ["2001:db8::9/64"]);
    let info = &bed.router.get::<Dhcp>().clients6()[0];
    assert_eq!((info.phase, info.server.as_deref()), (Phase::Bound, Some(&SERVER[..])));
    assert_eq!(info.leases, [(prefix("2001:db8::9/128"), Some(60), Some(120))]);
    bed.advance(10);
    assert!(sent(&mut bed).is_empty());
    bed.advance(11);
    let renew = last(&mut bed);
    assert_eq!(read(&renew).0, kind::RENEW);
    let longer = given(&[("2001:db8::9/128", 90, 120), ("2001:db8::10/128", 90, 120)], (20, 40));
    answer(&mut bed, &renew, kind::REPLY, Wanted::Addresses, &longer);
    assert_eq!(addresses(&bed).len(), 2);
    // One is taken back.
    bed.advance(21);
    let renew = last(&mut bed);
    let less = given(&[("2001:db8::9/128", 90, 120), ("2001:db8::10/128", 0, 0)], (20, 40));
    answer(&mut bed, &renew, kind::REPLY, Wanted::Addresses, &less);
    assert_eq!(addresses(&bed), ["2001:db8::9/64"]);
    // The server is silent: all servers are asked, and in the end the address goes.
    bed.advance(41);
    assert!(sent(&mut bed).iter().any(|frame| read(frame).0 == kind::REBIND));
    bed.advance(80);
    assert!(addresses(&bed).is_empty());
    assert_eq!(read(&last(&mut bed)).0, kind::SOLICIT);
}

#[test]
fn a_client_that_ends_says_so() {
    let mut bed = start(Wanted::Addresses);
    bound(&mut bed, Wanted::Addresses, &given(&[("2001:db8::9/128", 60, 120)], (20, 40)));
    let (dhcp, outside) = (bed.router.get::<Dhcp>(), bed.outside.index());
    assert!(matches!(dhcp.add_client6(outside, Wanted::Addresses, ""), Err(DhcpError::ClientExists(_))));
    dhcp.del_client6(outside, Wanted::Addresses).unwrap();
    assert!(addresses(&bed).is_empty());
    let release = last(&mut bed);
    let (kind, asked) = read(&release);
    assert_eq!((kind, asked.addresses.unwrap().items[0].prefix), (kind::RELEASE, prefix("2001:db8::9/128")));
    answer(&mut bed, &release, kind::REPLY, Wanted::Addresses, &Association::default());
    bed.advance(60);
    assert!(sent(&mut bed).is_empty());
    assert!(matches!(dhcp.del_client6(outside, Wanted::Addresses), Err(DhcpError::NoClient(_))));
}

#[test]
fn other_interfaces_get_addresses_from_a_prefix() {
    let mut bed = start(Wanted::Prefixes);
    let (dhcp, inside) = (bed.router.get::<Dhcp>(), bed.inside.index());
    let rest = prefix("::7:0:0:0:1/64");
    dhcp.add_from_prefix(inside, "isp", rest).unwrap();
    assert!(matches!(dhcp.add_from_prefix(inside, "isp", rest), Err(DhcpError::FromPrefixExists(..))));
    dhcp.add_from_prefix(inside, "other", prefix("::8:0:0:0:1/64")).unwrap();
    // What does not fit is left out.
    dhcp.add_from_prefix(inside, "isp", prefix("::1/40")).unwrap();
    bound(&mut bed, Wanted::Prefixes, &given(&[("2001:db8:ab00::/56", 60, 120)], (20, 40)));
    let ip6 = bed.router.get::<Ip6>();
    let own = || ip6.addresses(inside).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(own(), ["2001:db8:ab00:7::1/64"]);
    // Hosts there learn it, for as long as it is given.
    let advertised = |bed: &mut NatBed| {
        bed.advance(4);
        let all = bed.inside.received();
        let is = |frame: &&Vec<u8>| frame[12..14] == [0x86, 0xdd] && frame[20] == 58 && frame[54] == 134;
        let last = all.iter().rev().find(is).expect("an advertisement").clone();
        let of = |prefix: &[u8]| {
            let at = last.windows(prefix.len()).position(|window| window == prefix)?;
            let word = |at: usize| u32::from_be_bytes(last[at..at + 4].try_into().unwrap());
            // Valid and preferred come twelve and eight bytes before the prefix.
            Some((word(at - 12), word(at - 8)))
        };
        (of(&[0x20, 1, 0xd, 0xb8, 0xab, 0, 0, 7]), of(&[0x20, 1, 0xd, 0xb8, 0xcd, 0, 0, 7]))
    };
    let (first, second) = advertised(&mut bed);
    assert!(
        first
            .is_some_and(|(valid, preferred)| (110..=120).contains(&valid) && (50..=60).contains(&preferred))
    );
    assert_eq!(second, None);
    // What no link uses goes nowhere.
    let fib = bed.router.get::<Fib>();
    let entry = fib.entry(FibIndex::DEFAULT, prefix("2001:db8:ab00::/56")).unwrap();
    assert_eq!(entry.lists[0].source, Source::Dhcp);
    // Another prefix takes the place of the first one.
    bed.advance(21);
    let renew = last(&mut bed);
    assert_eq!(read(&renew).0, kind::RENEW);
    let other = given(&[("2001:db8:ab00::/56", 0, 0), ("2001:db8:cd00::/56", 60, 120)], (20, 40));
    answer(&mut bed, &renew, kind::REPLY, Wanted::Prefixes, &other);
    assert_eq!(own(), ["2001:db8:cd00:7::1/64"]);
    let (first, second) = advertised(&mut bed);
    assert_eq!(first, Some((0, 0)), "hosts are told that it has gone");
    assert!(second.is_some_and(|(valid, _)| valid > 100));
    assert!(fib.entry(FibIndex::DEFAULT, prefix("2001:db8:ab00::/56")).is_err());
    dhcp.del_from_prefix(inside, "isp", rest).unwrap();
    assert!(own().is_empty());
    assert!(dhcp.del_from_prefix(inside, "isp", rest).is_err());
    dhcp.add_from_prefix(inside, "isp", rest).unwrap();
    assert_eq!(own(), ["2001:db8:cd00:7::1/64"]);
    dhcp.del_client6(bed.outside.index(), Wanted::Prefixes).unwrap();
    assert!(own().is_empty());
    assert!(fib.entry(FibIndex::DEFAULT, prefix("2001:db8:cd00::/56")).is_err());
}

/// What is wrong with an answer: its transaction, the client it is for, what it gives.
type Change<'a> = &'a dyn Fn(&mut [u8; 3], &mut Vec<u8>, &mut Association);

#[test]
fn strangers_answers_change_nothing() {
    let mut bed = start(Wanted::Addresses);
    let solicit = last(&mut bed);
    let offer = given(&[("2001:db8::9/128", 60, 120)], (20, 40));
    let (_, question) = read(&solicit);
    let id = question.addresses.as_ref().unwrap().id;
    let write = |change: Change<'_>| {
        let (mut transaction, mut client) = (question.transaction, question.client.clone());
        let mut association = Association { id, ..offer.clone() };
        change(&mut transaction, &mut client, &mut association);
        let (kind, wanted) = (kind::ADVERTISE, Wanted::Addresses);
        ClientRequest {
            reconfigures: false,
            kind,
            transaction,
            client: &client,
            server: Some(&SERVER),
            elapsed: 0,
            wanted,
            association: &association,
        }
        .write()
    };
    let wrong = [
        write(&|transaction, _, _| transaction[0] ^= 1),
        write(&|_, client, _| client[5] ^= 1),
        write(&|_, _, association| association.id += 1),
        write(&|_, _, association| association.items.clear()),
    ];
    for message in &wrong {
        reply(&mut bed, &solicit, message);
        assert!(sent(&mut bed).is_empty());
    }
    // A reply to what was not requested.
    answer(&mut bed, &solicit, kind::REPLY, Wanted::Addresses, &offer);
    assert!(addresses(&bed).is_empty());
    let mut rng = shoal_testkit::Rng::new(shoal_testkit::Rng::seed(3));
    let good = write(&|_, _, _| {});
    for _ in 0..2000 {
        let mut bytes = good.clone();
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.next_u64() as u8;
        }
        bytes.truncate(rng.below(bytes.len() + 1));
        reply(&mut bed, &solicit, &bytes);
    }
    sent(&mut bed);
    assert_eq!(bed.router.buffers_in_use(), 0);
}

#[test]
fn an_interface_that_comes_back_asks_whether_it_is_the_same_link() {
    let mut bed = start(Wanted::Addresses);
    bound(&mut bed, Wanted::Addresses, &given(&[("2001:db8::9/128", 60, 120)], (20, 40)));
    let interfaces = bed.router.get::<Interfaces>();
    interfaces.set_admin(bed.outside.index(), false).unwrap();
    interfaces.set_admin(bed.outside.index(), true).unwrap();
    bed.advance(1);
    assert_eq!(read(&sent(&mut bed)[0]).0, kind::REBIND);
    interfaces.delete(bed.outside.index()).unwrap();
    assert!(bed.router.get::<Dhcp>().clients6().is_empty());
}

#[test]
fn clients_of_the_api_send_messages_and_hear_answers() {
    let mut bed = bare();
    let listener = Listener::new(&bed.router, &[&shoal_dhcp::api::API, &ADDRESSES, &PREFIXES]);
    let call = listener.call(&bed.router);
    let outside = InterfaceIndex(bed.outside.index().0);
    bed.router.get::<Ip6>().enable(bed.outside.index(), true).unwrap();
    Dhcp6ClientsEnableDisable { enable: true }.handle(&call).unwrap();
    WantDhcp6ReplyEvents { enable_disable: 1, pid: 1 }.handle(&call).unwrap();
    WantDhcp6PdReplyEvents { enable_disable: true, pid: 1 }.handle(&call).unwrap();
    let duid_ll = [0, 3, 0, 1, 2, 0, 0, 0, 0, 0x77];
    Dhcp6DuidLlSet { duid_ll }.handle(&call).unwrap();
    let send = |server_index, msg_type, sw_if_index| Dhcp6SendClientMessage {
        sw_if_index,
        server_index,
        irt: 1,
        mrt: 0,
        mrc: 2,
        mrd: 0,
        stop: false,
        msg_type: Dhcpv6MsgType(msg_type),
        T1: 20,
        T2: 40,
        n_addresses: Count::default(),
        addresses: vec![Dhcp6AddressInfo {
            address: "1:2:3::5".parse().unwrap(),
            valid_time: 120,
            preferred_time: 60,
        }],
    };
    assert_eq!(send(0, 1, outside).handle(&call), Err(Retval::NO_SUCH_ENTRY));
    assert_eq!(send(u32::MAX, 2, outside).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(send(u32::MAX, 1, InterfaceIndex(99)).handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    send(u32::MAX, 1, outside).handle(&call).unwrap();
    let solicit = last(&mut bed);
    let (kind, asked) = read(&solicit);
    let association = asked.addresses.clone().unwrap();
    assert_eq!((kind, &asked.client[..], association.t1, association.t2), (1, &duid_ll[..], 20, 40));
    assert_eq!(association.items, items(&[("1:2:3::5/128", 60, 120)]));
    let offer = given(&[("1:2:3::5/128", 60, 120)], (21, 41));
    answer(&mut bed, &solicit, kind::ADVERTISE, Wanted::Addresses, &offer);
    let events = listener.events::<Dhcp6ReplyEvent>();
    let event = &events[0];
    assert_eq!((event.sw_if_index, event.server_index, event.msg_type.0), (outside, 0, 2));
    assert_eq!((event.T1, event.T2, event.addresses.len(), event.addresses[0].valid_time), (21, 41, 1, 120));
    // It is answered, so it is not sent again; the server is known by its number now.
    bed.advance(5);
    assert!(sent(&mut bed).is_empty());
    send(0, 3, outside).handle(&call).unwrap();
    bed.advance(5);
    assert_eq!(
        sent(&mut bed).iter().filter(|frame| read(frame).0 == kind::REQUEST).count(),
        2,
        "twice, as it was asked"
    );
    let stop = Dhcp6SendClientMessage { stop: true, ..send(0, 3, outside) };
    stop.handle(&call).unwrap();

    let pd = Dhcp6PdSendClientMessage {
        sw_if_index: outside,
        server_index: u32::MAX,
        irt: 1,
        mrt: 0,
        mrc: 1,
        mrd: 0,
        stop: false,
        msg_type: Dhcpv6MsgType(1),
        T1: 20,
        T2: 40,
        n_prefixes: Count::default(),
        prefixes: vec![Dhcp6PdPrefixInfo {
            prefix: Prefix6 { address: "7:8::".parse().unwrap(), len: 56 },
            valid_time: 120,
            preferred_time: 60,
        }],
    };
    pd.handle(&call).unwrap();
    let solicit = last(&mut bed);
    assert_eq!(read(&solicit).1.prefixes.unwrap().items, items(&[("7:8::/56", 60, 120)]));
    answer(&mut bed, &solicit, kind::ADVERTISE, Wanted::Prefixes, &given(&[("7:8::/56", 60, 120)], (1, 2)));
    let events = listener.events::<Dhcp6PdReplyEvent>();
    assert_eq!((events[0].prefixes[0].prefix.len, events[0].T2), (56, 2));
}

#[test]
fn messages_switch_clients_and_the_configuration_is_saved() {
    let bed = bare();
    let call = shoal_module::api::Call::local(bed.router.control());
    let (outside, inside) = (InterfaceIndex(bed.outside.index().0), InterfaceIndex(bed.inside.index().0));
    let client = |sw_if_index, enable| Dhcp6ClientEnableDisable { sw_if_index, enable }.handle(&call);
    client(outside, true).unwrap();
    assert_eq!(client(outside, true), Err(Retval::INVALID_VALUE));
    assert_eq!(client(InterfaceIndex(99), true), Err(Retval::INVALID_SW_IF_INDEX));
    let pd = |group: &str, enable| {
        Dhcp6PdClientEnableDisable { sw_if_index: outside, prefix_group: group.into(), enable }.handle(&call)
    };
    assert_eq!(pd("", true), Err(Retval::INVALID_VALUE));
    pd("isp", true).unwrap();
    let address = |is_add| {
        Ip6AddDelAddressUsingPrefix {
            sw_if_index: inside,
            prefix_group: "isp".into(),
            address_with_prefix: Ip6AddressWithPrefix(Prefix6 { address: "::1".parse().unwrap(), len: 64 }),
            is_add,
        }
        .handle(&call)
    };
    address(true).unwrap();
    assert_eq!(address(true), Err(Retval::VALUE_EXIST));
    bed.router.get::<Dhcp>().set_duid(&[0, 3, 0, 1, 2, 0, 0, 0, 0, 7]).unwrap();
    assert!(matches!(bed.router.get::<Dhcp>().set_duid(&[0]), Err(DhcpError::Duid(1))));
    let mut running = Running::default();
    (MODULE.running)(bed.router.control(), &mut running);
    let lines = running.pieces().collect::<String>();
    assert_eq!(
        lines.lines().filter(|line| line.contains("ip6") || line.contains("dhcp6")).collect::<Vec<_>>(),
        [
            "dhcp6 duid 00030001020000000007",
            "dhcp6 client pg1",
            "dhcp6 pd client pg1 prefix group isp",
            "set ip6 address pg0 prefix group isp ::1/64",
        ]
    );
    address(false).unwrap();
    assert_eq!(address(false), Err(Retval::NO_SUCH_ENTRY));
    client(outside, false).unwrap();
    assert_eq!(client(outside, false), Err(Retval::NO_SUCH_ENTRY));
    pd("isp", false).unwrap();
}
