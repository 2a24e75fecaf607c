//! Messages of AF_XDP interfaces, in a namespace of their own.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use shoal_af_xdp::api::*;
use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Retval};
use shoal_module::api::{Call, Request};
use shoal_testkit::api;
use support::*;

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

fn wish(host_if: &str) -> AfXdpCreateV3 {
    AfXdpCreateV3 {
        host_if: host_if.into(),
        name: "".into(),
        rxq_num: 1,
        rxq_size: 0,
        txq_size: 0,
        mode: AfXdpMode::Auto,
        flags: AfXdpFlag::default(),
        prog: "".into(),
        netns: "".into(),
    }
}

#[test]
fn interfaces_are_created_and_deleted() {
    if !can_run("interfaces_are_created_and_deleted") {
        return;
    }
    let ns = Namespace::new("xdpapi").unwrap();
    ns.ip("link add v0 numrxqueues 2 numtxqueues 2 type veth peer name v1 numrxqueues 2 numtxqueues 2");
    let router = start(&ns);
    router.on(|inside| {
        let call = Call::local(&inside.control);
        let create = |wish: AfXdpCreateV3| wish.handle(&call).map(|reply| reply.sw_if_index);
        let delete = |sw_if_index| AfXdpDelete { sw_if_index }.handle(&call);
        let made = create(wish("v0")).unwrap();
        let name = |index: InterfaceIndex| inside.interfaces.name(SwIfIndex(index.0)).unwrap();
        assert_eq!(name(made), "v0/0");
        assert_eq!(create(wish("v0")).err(), Some(Retval::IF_ALREADY_EXISTS));
        assert_eq!(create(wish("v9")).err(), Some(Retval::INVALID_INTERFACE));
        let other = |change: fn(&mut AfXdpCreateV3)| {
            let mut wish = wish("v1");
            change(&mut wish);
            create(wish)
        };
        assert_eq!(other(|w| w.rxq_num = 0).err(), Some(Retval::INVALID_VALUE));
        assert_eq!(other(|w| w.rxq_num = 9).err(), Some(Retval::INVALID_VALUE));
        assert_eq!(other(|w| w.rxq_size = 1000).err(), Some(Retval::INVALID_VALUE));
        assert_eq!(other(|w| w.mode = AfXdpMode::ZeroCopy).err(), Some(Retval::UNSUPPORTED));
        assert_eq!(other(|w| w.prog = "/x.o".into()).err(), Some(Retval::UNSUPPORTED));
        assert_eq!(other(|w| w.netns = "nosuch".into()).err(), Some(Retval::SYSCALL_ERROR_2));
        assert_eq!(other(|w| w.name = "v0/0".into()).err(), Some(Retval::IF_ALREADY_EXISTS));
        let all = other(|w| {
            w.rxq_num = u16::MAX;
            w.name = "wan".into();
            w.flags = AfXdpFlag(AfXdpFlag::MAC_REUSE | AfXdpFlag::NO_SYSCALL_LOCK);
            w.mode = AfXdpMode::Copy;
            (w.rxq_size, w.txq_size) = (512, 256);
        });
        let all = all.unwrap();
        assert_eq!(name(all), "wan");
        let info = xdps(inside).list(Some(SwIfIndex(all.0))).unwrap().remove(0);
        assert_eq!((info.queues, info.rings), (2, [512, 256]));
        let mac = std::fs::read_to_string("/sys/class/net/v1/address").unwrap_or_default();
        let mac_of =
            |index: InterfaceIndex| inside.interfaces.info(SwIfIndex(index.0)).unwrap().mac.to_string();
        assert!(mac.is_empty() || mac.trim() == mac_of(all), "{mac} {}", mac_of(all));
        assert!(mac_of(made).starts_with("02:fe"), "{}", mac_of(made));
        assert_eq!(delete(InterfaceIndex(0)), Err(Retval::INVALID_SW_IF_INDEX));
        assert_eq!(delete(InterfaceIndex(77)), Err(Retval::INVALID_SW_IF_INDEX));
        delete(made).unwrap();
        assert_eq!(delete(made), Err(Retval::INVALID_SW_IF_INDEX));
        delete(all).unwrap();
    });
    router.end();
}
