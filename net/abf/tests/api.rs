//! `abf.api`: attachments through the binary API, for both families.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::net::IpAddr;

use shoal_abf::Abf;
use shoal_abf::api::policy::*;
use shoal_abf::api::*;
use shoal_fib::{Family, Via};
use shoal_message::{Count, FibPath, FibPathNh, FibPathNhProto, FibPathType, InterfaceIndex, Retval};
use shoal_module::api::{Call, Dump, Request};
use shoal_rule::Rule;
use shoal_testkit::{Port, Router, STACK, api};

/// A router with policy 1 for IPv4 and policy 2 for IPv6.
fn router() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_abf::MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    for (id, family) in [(1, Family::Ip4), (2, Family::Ip6)] {
        let (src, dst, protocol, sport, dport, dscp, tcp) = (None, None, None, None, None, None, None);
        let rule = Rule { family, src, dst, protocol, sport, dport, dscp, tcp };
        router.get::<Abf>().add(id, rule, &[Via::Drop.into()]).unwrap();
    }
    (router, port)
}

fn attach(port: &Port, policy_id: u32, is_ipv6: bool) -> AbfItfAttach {
    AbfItfAttach { policy_id, sw_if_index: InterfaceIndex(port.index().0), priority: 10, is_ipv6 }
}

fn set(call: &Call, is_add: bool, attach: AbfItfAttach) -> Result<(), Retval> {
    AbfItfAttachAddDel { is_add, attach }.handle(call)
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

#[test]
fn random_bytes_do_no_harm() {
    let (mut router, _) = router();
    api::random_bytes_do_no_harm(&mut router, &[&API], 200);
}

#[test]
fn policies_are_attached_dumped_and_detached() {
    let (router, port) = router();
    let call = Call::local(router.control());
    let (four, six) = (attach(&port, 1, false), attach(&port, 2, true));
    set(&call, true, four).unwrap();
    set(&call, true, six).unwrap();
    let all = || AbfItfAttachDump {}.dump(&call).map(|details| details.attach).collect::<Vec<_>>();
    assert_eq!(all(), [four, six]);
    assert_eq!(set(&call, true, four), Err(Retval::ENTRY_ALREADY_EXISTS));
    set(&call, false, four).unwrap();
    assert_eq!(set(&call, false, four), Err(Retval::NO_SUCH_ENTRY));
    assert_eq!(all(), [six]);
    let version = AbfPluginGetVersion {}.handle(&call).unwrap();
    assert_eq!((version.major, version.minor), (1, 0));
}

fn policy(is_add: bool, id: u32, paths: &[FibPath]) -> AbfPolicyAddDel {
    let (acl_index, n_paths, paths) = (u32::MAX, Count::default(), paths.to_vec());
    AbfPolicyAddDel { is_add, policy: AbfPolicy { policy_id: id, acl_index, n_paths, paths } }
}

#[test]
fn policies_are_made_dumped_and_taken_away() {
    let (router, port) = router();
    let call = Call::local(router.control());
    let dump = || AbfPolicyDump {}.dump(&call).map(|details| details.policy).collect::<Vec<_>>();
    let template = dump()[0].paths[0];
    let by = |address: &str, proto| FibPath {
        sw_if_index: port.index().0,
        r#type: FibPathType::Normal,
        proto,
        nh: FibPathNh { address: address.parse::<IpAddr>().unwrap().into(), ..template.nh },
        ..template
    };
    let (four, six) = (by("10.0.0.2", FibPathNhProto::Ip4), by("2001:db8::2", FibPathNhProto::Ip6));
    policy(true, 3, &[four]).handle(&call).unwrap();
    policy(true, 4, &[six]).handle(&call).unwrap();
    let told: Vec<_> = dump().into_iter().map(|p| (p.policy_id, p.acl_index, p.paths[0].nh)).collect();
    assert_eq!(told[2..], [(3, u32::MAX, four.nh), (4, u32::MAX, six.nh)]);
    assert_eq!(router.get::<Abf>().rule(4).unwrap().family, Family::Ip6);
    set(&call, true, attach(&port, 4, true)).unwrap();
    assert_eq!(policy(false, 4, &[]).handle(&call), Err(Retval::INSTANCE_IN_USE));
    policy(false, 3, &[four]).handle(&call).unwrap();
    assert_eq!(policy(false, 3, &[]).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(policy(true, 5, &[]).handle(&call), Err(Retval::NO_PATHS_IN_ROUTE));
    let mut listed = policy(true, 5, &[four]);
    listed.policy.acl_index = 7;
    assert_eq!(listed.handle(&call), Err(Retval::NO_SUCH_ENTRY));
    assert_eq!(dump().len(), 3);
}

#[test]
fn mistakes_have_vpps_numbers() {
    let (router, port) = router();
    let call = Call::local(router.control());
    assert_eq!(set(&call, true, attach(&port, 9, false)), Err(Retval::INVALID_VALUE));
    assert_eq!(set(&call, true, attach(&port, 1, true)), Err(Retval::INVALID_ADDRESS_FAMILY));
    let nowhere = AbfItfAttach { sw_if_index: InterfaceIndex(77), ..attach(&port, 1, false) };
    assert_eq!(set(&call, true, nowhere), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(AbfItfAttachDump {}.dump(&call).count(), 0);
}
