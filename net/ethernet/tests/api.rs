//! Messages of sub-interfaces: VPP's bytes, fields and return values.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // helpers of tests

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_message::Retval;
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};
use shoal_testkit::{ApiAsker, Router, STACK};

const NO_TAGS: u32 = 1;
const ONE: u32 = 2;
const TWO: u32 = 4;
const DOT1AD: u32 = 8;
const EXACT: u32 = 16;
const DEFAULT: u32 = 32;
const OUTER_ANY: u32 = 64;
const INNER_ANY: u32 = 128;

fn parts() -> Vec<&'static shoal_module::api::ApiPart> {
    [shoal_ethernet::MODULE.api, shoal_interface::MODULE.api].concat()
}

fn vlan(port: SwIfIndex, id: u32) -> Vec<u8> {
    [port.0.to_be_bytes(), id.to_be_bytes()].concat()
}

fn subif(port: SwIfIndex, id: u32, flags: u32, outer: u16, inner: u16) -> Vec<u8> {
    let words = [port.0, id, flags].map(u32::to_be_bytes).concat();
    [&words[..], &outer.to_be_bytes(), &inner.to_be_bytes()].concat()
}

#[test]
fn messages_are_those_of_vpp() {
    same_as_vpp(&parts());
}

#[test]
fn sub_interfaces_come_and_go_with_the_return_values_of_vpp() {
    let mut router = Router::new(STACK);
    let port = router.pg(0).index();
    let parts = parts();
    let asker = ApiAsker::new(router.control(), &parts);
    let create = |name, fields: &[u8]| {
        let answer = asker.ask(name, fields).pop().unwrap();
        SwIfIndex(u32::from_be_bytes(answer[4..8].try_into().unwrap()))
    };
    let retval = |name, fields: Vec<u8>| asker.retval(name, &fields);
    let one = create("create_vlan_subif", &vlan(port, 100));
    assert_eq!(retval("create_vlan_subif", vlan(port, 100)), Retval::VLAN_ALREADY_EXISTS);
    for id in [0, 4096, u32::MAX] {
        assert_eq!(retval("create_vlan_subif", vlan(port, id)), Retval::INVALID_VLAN);
    }
    assert_eq!(retval("create_vlan_subif", vlan(SwIfIndex(99), 1)), Retval::INVALID_SW_IF_INDEX);
    assert_eq!(retval("create_vlan_subif", vlan(one, 1)), Retval::INVALID_INTERFACE);
    let new = |id, flags, outer, inner| create("create_subif", &subif(port, id, flags, outer, inner));
    let both = new(8, TWO | DOT1AD | EXACT, 10, 20);
    let any = new(9, TWO | INNER_ANY, 11, 0);
    let default = new(10, DEFAULT, 0, 0);
    let untagged = new(11, NO_TAGS | EXACT, 0, 0);
    let refused = |id, flags, outer| retval("create_subif", subif(port, id, flags, outer, 0));
    assert_eq!(refused(8, ONE | EXACT, 9), Retval::SUBIF_ALREADY_EXISTS);
    assert_eq!(refused(12, ONE | EXACT, 100), Retval::SUBIF_CREATE_FAILED);
    assert_eq!(refused(12, ONE | OUTER_ANY, 0), Retval::SUBIF_CREATE_FAILED);
    assert_eq!(refused(12, TWO | INNER_ANY | EXACT, 7), Retval::SUBIF_CREATE_FAILED);
    assert_eq!(refused(12, ONE | EXACT, 0), Retval::INVALID_VLAN);
    assert_eq!(refused(12, ONE | EXACT, 4096), Retval::INVALID_VLAN);

    // The details of all of them: sup_sw_if_index, type, sub_id, tags, outer, inner, flags.
    let interfaces = router.get::<Interfaces>();
    let details = |index: SwIfIndex| {
        let fields = [&index.0.to_be_bytes()[..], &[0], &[0; 4]].concat();
        let answer = asker.ask("sw_interface_dump", &fields).pop().unwrap();
        let word = |at: usize| u32::from_be_bytes(answer[at..at + 4].try_into().unwrap());
        let half = |at: usize| u16::from_be_bytes(answer[at..at + 2].try_into().unwrap());
        (word(4), word(18), word(48), answer[52], half(53), half(55), word(57))
    };
    let sub = 1;
    assert_eq!(details(one), (port.0, sub, 100, 1, 100, 0, ONE | EXACT));
    assert_eq!(details(both), (port.0, sub, 8, 2, 10, 20, TWO | DOT1AD | EXACT));
    assert_eq!(details(any), (port.0, sub, 9, 2, 11, 0, TWO | INNER_ANY));
    assert_eq!(details(default), (port.0, sub, 10, 0, 0, 0, DEFAULT));
    assert_eq!(details(untagged), (port.0, sub, 11, 0, 0, 0, NO_TAGS | EXACT));
    assert_eq!(details(port), (port.0, 0, 0, 0, 0, 0, 0));

    let delete = |index: SwIfIndex| retval("delete_subif", index.0.to_be_bytes().to_vec());
    assert_eq!(delete(port), Retval::INVALID_SUB_SW_IF_INDEX);
    assert_eq!(delete(SwIfIndex(99)), Retval::INVALID_SW_IF_INDEX);
    for index in [one, both, any, default, untagged] {
        assert_eq!(delete(index), Retval(0));
    }
    assert_eq!(interfaces.subs_of(port), []);
}

#[test]
fn an_mtu_of_its_own_is_set_and_taken_back() {
    let mut router = Router::new(STACK);
    let port = router.pg(0).index();
    let parts = parts();
    let asker = ApiAsker::new(router.control(), &parts);
    asker.ask("create_vlan_subif", &vlan(port, 100));
    let sub = router.interfaces().sub_of(port, 100).unwrap();
    let set = |l3: u32| {
        let words = [sub.0, l3, 0, 0, 0].map(u32::to_be_bytes).concat();
        assert_eq!(asker.retval("sw_interface_set_mtu", &words), Retval(0));
        router.interfaces().data(sub).unwrap().mtu
    };
    assert_eq!((set(1400), set(0)), (1400, 9000));
    let hardware = [&sub.0.to_be_bytes()[..], &1400u16.to_be_bytes()].concat();
    assert_eq!(asker.retval("hw_interface_set_mtu", &hardware), Retval::INVALID_VALUE);
}

#[test]
fn no_bytes_of_these_messages_do_harm() {
    let mut router = Router::new(STACK);
    router.pg(0);
    random_bytes_do_no_harm(&mut router, shoal_ethernet::MODULE.api, 300);
}
