//! `gso.api` through the binary API.
#![allow(clippy::unwrap_used)]

use shoal_gso::api::*;
use shoal_gso::{Cutting, Gso};
use shoal_message::{InterfaceIndex, Retval};
use shoal_module::api::{Call, Request};
use shoal_testkit::{Router, STACK, api};

fn router() -> Router {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_gso::MODULE]);
    Router::new(&modules)
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

#[test]
fn random_bytes_do_no_harm() {
    api::random_bytes_do_no_harm(&mut router(), &[&API], 200);
}

#[test]
fn it_is_enabled_and_disabled_and_unknown_interfaces_are_refused() {
    let mut router = router();
    let port = router.pg(0);
    let call = Call::local(router.control());
    let ask = |index, enable_disable| {
        FeatureGsoEnableDisable { sw_if_index: InterfaceIndex(index), enable_disable }.handle(&call)
    };
    for (on, cutting) in
        [(true, Cutting::On), (true, Cutting::On), (false, Cutting::Off), (false, Cutting::Off)]
    {
        assert_eq!(ask(port.index().0, on), Ok(()));
        assert_eq!(router.get::<Gso>().get(port.index()), cutting);
    }
    assert_eq!(ask(77, true), Err(Retval::INVALID_SW_IF_INDEX));
    assert!(router.get::<Gso>().enabled().is_empty());
}
