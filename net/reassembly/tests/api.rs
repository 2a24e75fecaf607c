//! Reassembly by the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::MODULES;
use shoal_message::Retval;
use shoal_module::api::ApiPart;
use shoal_reassembly::api::IP;
use shoal_reassembly::{Families, Reassembly};
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};
use shoal_testkit::{ApiAsker, Router};

static PARTS: &[&ApiPart] = &[&IP];
const OK: Retval = Retval(0);

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
fn limits_and_times_are_set_and_told() {
    let router = Router::new(MODULES);
    let client = ApiAsker::new(router.control(), PARTS);
    for (is_ip6, kind) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let values = [1_000_000u32, 1000, 1000 + u32::from(is_ip6), 10_000].map(u32::to_be_bytes).concat();
        let set = [&values[..], &[is_ip6, 0, 0, 0, kind]].concat();
        assert_eq!(client.retval("ip_reassembly_set", &set), OK);
        let told = client.ask("ip_reassembly_get", &[is_ip6, 0, 0, 0, kind]).remove(0);
        assert_eq!(told, [&[0; 4][..], &values, &[is_ip6]].concat());
        let mut wrong = set.clone();
        wrong[8..12].fill(0);
        assert_eq!(client.retval("ip_reassembly_set", &wrong), Retval::INVALID_VALUE);
        assert_eq!(client.ask("ip_reassembly_get", &[is_ip6, 0, 0, 0, kind]).remove(0), told);
    }
    assert_eq!(client.retval("ip_reassembly_get", &[0, 0, 0, 0, 2]), Retval::INVALID_VALUE);
}

#[test]
fn it_is_switched_by_interface_and_for_the_router_itself() {
    let mut router = Router::new(MODULES);
    let port = router.pg(0);
    let client = ApiAsker::new(router.control(), PARTS);
    let reassembly = router.get::<Reassembly>();
    let set = |interface: u32, ip4: u8, ip6: u8, kind: u8| {
        let fields = [&interface.to_be_bytes()[..], &[ip4, ip6, 0, 0, 0, kind]].concat();
        client.retval("ip_reassembly_enable_disable", &fields)
    };
    let index = port.index();
    for families in [Families::BOTH, Families { ip4: false, ip6: true }, Families::NONE] {
        let (ip4, ip6) = (families.ip4.into(), families.ip6.into());
        assert_eq!((set(index.0, ip4, ip6, 0), reassembly.interface(index)), (OK, families));
        assert_eq!(set(index.0, ip4, ip6, 1), OK);
    }
    assert_eq!(
        (set(99, 1, 1, 0), set(99, 1, 1, 1)),
        (Retval::INVALID_SW_IF_INDEX, Retval::INVALID_SW_IF_INDEX)
    );
    assert_eq!(client.ask("ip_local_reass_get", &[]), [vec![0, 0, 0, 0, 1, 1]]);
    assert_eq!(client.retval("ip_local_reass_enable_disable", &[1, 0]), OK);
    assert_eq!(client.ask("ip_local_reass_get", &[]), [vec![0, 0, 0, 0, 1, 0]]);
}
