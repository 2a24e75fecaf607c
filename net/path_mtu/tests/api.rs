//! Path MTUs by the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::net::{IpAddr, Ipv4Addr};

use shoal_message::Retval;
use shoal_module::Module;
use shoal_module::api::ApiPart;
use shoal_path_mtu::PathMtus;
use shoal_path_mtu::api::IP;
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};
use shoal_testkit::{ApiAsker, Router};

static PARTS: &[&ApiPart] = &[&IP];
const OK: Retval = Retval(0);

const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_neighbor::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_path_mtu::MODULE,
];

fn update(client: &ApiAsker<'_>, table: u32, peer: IpAddr, mtu: u16) -> Retval {
    let mut fields = vec![0; 8];
    fields.extend(table.to_be_bytes());
    fields.push(peer.is_ipv6().into());
    let start = fields.len();
    match peer {
        IpAddr::V4(a) => fields.extend(a.octets()),
        IpAddr::V6(a) => fields.extend(a.octets()),
    }
    fields.resize(start + 16, 0);
    fields.extend(mtu.to_be_bytes());
    client.retval("ip_path_mtu_update", &fields)
}

/// Number, cursor and rows.
fn get(client: &ApiAsker<'_>, cursor: u32) -> (Retval, u32, Vec<Vec<u8>>) {
    let mut rows = client.ask("ip_path_mtu_get", &cursor.to_be_bytes());
    let reply = rows.pop().unwrap();
    let number = |at: usize| u32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
    (Retval(number(0) as i32), number(4), rows)
}

#[test]
fn declared_messages_are_those_of_vpp() {
    same_as_vpp(&[&IP]);
}

#[test]
fn random_bytes_are_answered() {
    let mut router = Router::new(MODULES);
    random_bytes_do_no_harm(&mut router, &[&IP], 200);
}

#[test]
fn they_are_said_told_replaced_and_forgotten() {
    let router = Router::new(MODULES);
    let client = ApiAsker::new(router.control(), PARTS);
    let all = router.get::<PathMtus>();
    assert_eq!(get(&client, 0), (OK, u32::MAX, vec![]));
    for peer in ["192.0.2.1", "2001:db8::1"] {
        let peer: IpAddr = peer.parse().unwrap();
        assert_eq!(update(&client, 0, peer, 1400), OK);
        assert_eq!(update(&client, 0, peer, 1300), OK);
        assert_eq!(all.list()[0].mtu, 1300);
        let (retval, cursor, rows) = get(&client, 0);
        assert_eq!((retval, cursor, rows.len()), (OK, u32::MAX, 1));
        assert_eq!((rows[0][12], &rows[0][29..]), (u8::from(peer.is_ipv6()), &1300u16.to_be_bytes()[..]));
        assert_eq!(get(&client, 1).0, Retval::INVALID_VALUE);
        assert_eq!(update(&client, 0, peer, 30), Retval::INVALID_VALUE);
        assert_eq!(update(&client, 9, peer, 1400), Retval::NO_SUCH_FIB);
        assert_eq!(client.retval("ip_path_mtu_replace_begin", &[]), OK);
        assert_eq!(update(&client, 0, peer, 1300), OK);
        assert_eq!(client.retval("ip_path_mtu_replace_end", &[]), OK);
        assert_eq!(all.list().len(), 1);
        assert_eq!(client.retval("ip_path_mtu_replace_begin", &[]), OK);
        assert_eq!(client.retval("ip_path_mtu_replace_end", &[]), OK);
        assert_eq!(all.list(), []);
        assert_eq!(update(&client, 0, peer, 1400), OK);
        assert_eq!(update(&client, 0, peer, 0), OK);
        assert_eq!(update(&client, 0, peer, 0), Retval::NO_SUCH_ENTRY);
    }
    assert_eq!(update(&client, 0, "224.0.0.1".parse().unwrap(), 1400), Retval::INVALID_VALUE);
}

#[test]
fn many_are_told_piece_by_piece() {
    let router = Router::new(MODULES);
    let client = ApiAsker::new(router.control(), PARTS);
    for n in 0..1200u32 {
        assert_eq!(update(&client, 0, Ipv4Addr::from_bits(0x0a00_0001 + n).into(), 1400), OK);
    }
    let (mut cursor, mut told) = (0, Vec::new());
    let answers = (1..1000).find(|_| {
        let (retval, next, rows) = get(&client, cursor);
        told.extend(rows);
        cursor = next;
        assert!([OK, Retval::EAGAIN].contains(&retval));
        retval == OK
    });
    told.sort();
    told.dedup();
    assert_eq!((answers, told.len(), cursor), (Some(3), 1200, u32::MAX));
}
