//! Punting by the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::net::IpAddr;

use shoal_adj::Family;
use shoal_message::Retval;
use shoal_module::Module;
use shoal_module::api::ApiPart;
use shoal_punt::api::{IP, PUNT};
use shoal_punt::{L4, Punt, Registered};
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};
use shoal_testkit::{ApiAsker, Router};

static PARTS: &[&ApiPart] = &[&PUNT, &IP];
const OK: Retval = Retval(0);
const ALL: u32 = u32::MAX;

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
    &shoal_punt::MODULE,
];

fn address(addr: &str) -> Vec<u8> {
    let addr: IpAddr = addr.parse().unwrap();
    let mut bytes = match addr {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    };
    bytes.resize(16, 0);
    bytes
}

#[test]
fn declared_messages_are_those_of_vpp() {
    same_as_vpp(&[&PUNT, &IP]);
}

#[test]
fn random_bytes_are_answered() {
    let mut router = Router::new(MODULES);
    random_bytes_do_no_harm(&mut router, &[&PUNT, &IP], 300);
}

#[test]
fn ports_and_protocols_become_the_hosts() {
    let router = Router::new(MODULES);
    let client = ApiAsker::new(router.control(), PARTS);
    let punt = router.get::<Punt>();
    let set = |add: u8, kind: u8, arm: [u8; 4]| {
        client.retval("set_punt", &[&[add, 0, 0, 0, kind][..], &arm].concat())
    };
    for (af, family) in [(0, Family::Ip4), (1, Family::Ip6)] {
        for (kind, arm, l4) in [
            (0, [af, 17, 0, 53], L4::Udp(53)),
            (0, [af, 17, 0xff, 0xff], L4::AllUdp),
            (0, [af, 6, 0xff, 0xff], L4::AllTcp),
            (1, [af, 89, 0, 0], L4::Protocol(89)),
        ] {
            assert_eq!(set(1, kind, arm), OK, "{l4:?}");
            assert_eq!(punt.registered(), [Registered { family, l4 }]);
            assert_eq!(set(0, kind, arm), OK);
            assert_eq!(set(0, kind, arm), Retval::UNSPECIFIED);
        }
        assert_eq!(set(1, 0, [af, 6, 0, 22]), Retval::UNSPECIFIED);
        assert_eq!(set(1, 0, [af, 132, 0, 22]), Retval::UNSPECIFIED);
        assert_eq!(set(1, 1, [af, 17, 0, 0]), Retval::UNSPECIFIED);
    }
    assert_eq!(set(1, 0, [9, 17, 0, 53]), Retval::INVALID_VALUE);
    assert_eq!(set(1, 2, [0, 0, 0, 1]), Retval::UNSPECIFIED);
    assert_eq!(set(1, 3, [0, 0, 0, 1]), Retval::INVALID_VALUE);
}

#[test]
fn punted_packets_are_redirected() {
    let mut router = Router::new(MODULES);
    let port = router.pg(0);
    let client = ApiAsker::new(router.control(), PARTS);
    let index = port.index().0;
    for (af, next_hop) in [(0u8, "192.0.2.1"), (1, "2001:db8::1")] {
        let first = |rx: u32, tx: u32, add: u8| {
            let mut fields = [rx.to_be_bytes(), tx.to_be_bytes()].concat();
            fields.push(af);
            fields.extend(address(next_hop));
            fields.push(add);
            client.retval("ip_punt_redirect", &fields)
        };
        assert_eq!(first(ALL, index, 1), OK);
        assert_eq!(first(index, index, 1), OK);
        let told = |rx: u32| client.ask("ip_punt_redirect_dump", &[&rx.to_be_bytes()[..], &[af]].concat());
        assert_eq!((told(ALL).len(), told(index).len(), told(77).len()), (2, 1, 0));
        let row = [&index.to_be_bytes()[..], &index.to_be_bytes(), &[af], &address(next_hop)].concat();
        assert_eq!(told(index), [row]);
        let later = |name: &str, rx: u32, af: u8| client.ask(name, &[&rx.to_be_bytes()[..], &[af]].concat());
        let rows = later("ip_punt_redirect_v2_dump", index, af);
        assert_eq!((rows.len(), rows[0][4], &rows[0][5..9]), (1, af, &[0, 0, 0, 1][..]));
        // What was told is what a client may say.
        let again = [&[1][..], &rows[0]].concat();
        assert_eq!(client.retval("add_del_ip_punt_redirect_v2", &again), OK);
        let mut none = again.clone();
        none.truncate(1 + 5);
        none.extend([0; 4]);
        assert_eq!(client.retval("add_del_ip_punt_redirect_v2", &none), OK, "as with VPP it leads nowhere");
        none[0] = 0;
        for _ in 0..2 {
            assert_eq!(client.retval("add_del_ip_punt_redirect_v2", &none), OK);
        }
        assert_eq!((first(ALL, index, 0), told(ALL).len()), (OK, 0));
        assert_eq!(first(99, index, 1), Retval::INVALID_SW_IF_INDEX);
        assert_eq!(first(ALL, 99, 1), Retval::INVALID_SW_IF_INDEX);
    }
}
