//! Messages of host interfaces, in a namespace of their own.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use shoal_af_packet::api::*;
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_message::{InterfaceIndex, MacAddress, Retval};
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::api;
use support::*;

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

fn wish(name: &str, flags: u32) -> AfPacketCreateV3 {
    AfPacketCreateV3 {
        mode: AfPacketMode::Ethernet,
        hw_addr: MacAddress([2, 0, 0, 0, 0, 9]),
        use_random_hw_addr: false,
        host_if_name: name.into(),
        rx_frame_size: 0,
        tx_frame_size: 0,
        rx_frames_per_block: 0,
        tx_frames_per_block: 0,
        flags: AfPacketFlags(flags),
        num_rx_queues: 1,
        num_tx_queues: 1,
    }
}

#[test]
fn host_interfaces_are_created_shown_and_deleted() {
    if !can_run("host_interfaces_are_created_shown_and_deleted") {
        return;
    }
    let ns = Namespace::new("afapi").unwrap();
    ns.ip("link add v0 type veth peer name v1");
    let router = start(&ns);
    router.on(|inside| {
        let call = Call::local(&inside.control);
        let create = |wish: AfPacketCreateV3| wish.handle(&call);
        let rows = || {
            let all = AfPacketDump {}.dump(&call);
            all.map(|row| (row.sw_if_index, row.host_if_name.as_str().to_owned())).collect::<Vec<_>>()
        };
        let made = create(wish("v0", AfPacketFlags::CKSUM_GSO)).unwrap();
        assert_eq!(made.retval, 0);
        assert_eq!(rows(), [(made.sw_if_index, "v0".to_owned())]);
        let again = create(wish("v0", 0)).unwrap();
        assert_eq!((again.retval, again.sw_if_index), (Retval::IF_ALREADY_EXISTS.0, made.sw_if_index));
        assert_eq!(create(wish("v9", 0)).err(), Some(Retval::INVALID_INTERFACE));
        let ip = AfPacketCreateV3 { mode: AfPacketMode::Ip, ..wish("v1", 0) };
        assert_eq!(create(ip).err(), Some(Retval::INVALID_VALUE));

        let index = SwIfIndex(made.sw_if_index.0);
        let info = || inside.interfaces.info(index).unwrap();
        assert_eq!(info().mac.0, [2, 0, 0, 0, 0, 9]);
        assert!(info().flags.has(IfFlags::TX_CHECKSUM));
        let offload = |sw_if_index, set| AfPacketSetL4CksumOffload { sw_if_index, set }.handle(&call);
        offload(made.sw_if_index, false).unwrap();
        assert!(!info().flags.has(IfFlags::TX_CHECKSUM) && !info().device.contains("cksum-gso-enabled"));
        offload(made.sw_if_index, true).unwrap();
        assert!(info().flags.has(IfFlags::TX_GSO) && info().device.contains("cksum-gso-enabled"));
        assert_eq!(offload(InterfaceIndex(0), true), Err(Retval::INVALID_SW_IF_INDEX));
        assert_eq!(offload(InterfaceIndex(77), true), Err(Retval::INVALID_SW_IF_INDEX));
        let other = create(wish("v1", AfPacketFlags::QDISC_BYPASS)).unwrap().sw_if_index;
        assert_eq!(offload(other, true), Err(Retval::UNIMPLEMENTED));

        let delete = |name: &str| AfPacketDelete { host_if_name: name.into() }.handle(&call);
        delete("v0").unwrap();
        assert_eq!(delete("v0"), Err(Retval::SYSCALL_ERROR_1));
        delete("v1").unwrap();
        assert!(rows().is_empty());
        let random = AfPacketCreate {
            hw_addr: MacAddress::default(),
            use_random_hw_addr: true,
            host_if_name: "v1".into(),
        };
        random.handle(&call).unwrap();
        delete("v1").unwrap();
    });
}
