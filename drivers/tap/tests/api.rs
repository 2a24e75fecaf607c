//! Messages of TAPs, in a namespace of their own.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_buffer::Packet;
use shoal_graph::{Cx, NoError, NoNext, PacketNode};
use shoal_interface::api::queues::{SwInterfaceSetTxPlacement, SwInterfaceTxPlacementGet};
use shoal_message::{
    Count, InterfaceIndex, Ip4AddressWithPrefix, Ip4Prefix, Ip6AddressWithPrefix, Ip6Prefix, MacAddress,
    Retval, Text,
};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Get, Request};
use shoal_module::{Control, InitError, Module, Running};
use shoal_tap::api::*;
use shoal_testkit::{Router, api};
use support::*;

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

/// But for those that make something of the host's.
static REPEATABLE: ApiPart = ApiPart {
    file: "tapv2",
    folder: Folder::Plugins,
    version: "4.0.0",
    messages: &[ApiMessage::request::<TapDeleteV2>(), ApiMessage::dump::<SwInterfaceTapV2Dump>()],
};

#[test]
fn random_bytes_do_no_harm() {
    let mut router = Router::new(&[&STAND_IN, &shoal_tap::MODULE]);
    api::random_bytes_do_no_harm(&mut router, &[&REPEATABLE], 300);
}

/// Nodes that frames would go to.
static STAND_IN: Module = Module { name: "stand-in", init: stand_in, ..Module::NONE };

struct EthernetSink;

impl PacketNode for EthernetSink {
    const NAME: &'static str = "ethernet-input";
    type Next = NoNext;
    type Error = NoError;
    type Trace = &'static str;

    fn packet(&self, _: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<NoNext, NoError> {
        unreachable!("no TAP receives anything")
    }
}

fn stand_in(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    for name in ["ethernet-input", "ip4-input", "ip6-input"] {
        graph.add_packet_named(name, EthernetSink)?;
    }
    Ok(())
}

/// A message as clients fill it in who say little.
fn plain(name: &str) -> TapCreateV3 {
    TapCreateV3 {
        id: u32::MAX,
        use_random_mac: true,
        mac_address: MacAddress::default(),
        num_rx_queues: 1,
        num_tx_queues: 1,
        tx_ring_sz: 256,
        rx_ring_sz: 256,
        host_mtu_set: false,
        host_mtu_size: 0,
        host_mac_addr_set: false,
        host_mac_addr: MacAddress::default(),
        host_ip4_prefix_set: false,
        host_ip4_prefix: Ip4AddressWithPrefix(Ip4Prefix { address: Ipv4Addr::UNSPECIFIED, len: 0 }),
        host_ip6_prefix_set: false,
        host_ip6_prefix: Ip6AddressWithPrefix(Ip6Prefix { address: Ipv6Addr::UNSPECIFIED, len: 0 }),
        host_ip4_gw_set: false,
        host_ip4_gw: Ipv4Addr::UNSPECIFIED,
        host_ip6_gw_set: false,
        host_ip6_gw: Ipv6Addr::UNSPECIFIED,
        tap_flags: TapFlags(0),
        host_namespace_set: false,
        host_namespace: Text::default(),
        host_if_name_set: true,
        host_if_name: name.into(),
        host_bridge_set: false,
        host_bridge: Text::default(),
        tag: String::new(),
    }
}

#[test]
fn taps_are_created_shown_and_deleted() {
    if !can_run("taps_are_created_shown_and_deleted") {
        return;
    }
    let ns = Namespace::new("tapapi").unwrap();
    let router = start(&ns);
    router.on(|inside| {
        let call = Call::local(&inside.control);
        let create = |wish: TapCreateV3| wish.handle(&call).map(|reply| reply.sw_if_index);
        let rows = |sw_if_index| SwInterfaceTapV2Dump { sw_if_index }.dump(&call).collect::<Vec<_>>();
        let wish = TapCreateV3 {
            id: 7,
            use_random_mac: false,
            mac_address: MacAddress([2, 0, 0, 0, 0, 9]),
            num_tx_queues: 2,
            rx_ring_sz: 512,
            host_mtu_set: true,
            host_mtu_size: 1400,
            host_ip4_prefix_set: true,
            host_ip4_prefix: Ip4AddressWithPrefix(Ip4Prefix { address: Ipv4Addr::new(10, 0, 0, 2), len: 24 }),
            host_ip6_prefix_set: true,
            host_ip6_prefix: Ip6AddressWithPrefix(Ip6Prefix {
                address: "2001:db8::2".parse().unwrap(),
                len: 64,
            }),
            tag: "uplink".into(),
            ..plain("lstack")
        };
        let seven = create(wish.clone()).unwrap();
        let one = rows(seven).pop().unwrap();
        assert_eq!((one.sw_if_index, one.id, one.dev_name.as_str()), (seven.0, 7, "tap7"));
        assert_eq!((one.rx_ring_sz, one.tx_ring_sz, one.host_mtu_size), (512, 256, 1400));
        assert_eq!((one.host_ip4_prefix, one.host_ip6_prefix), (wish.host_ip4_prefix, wish.host_ip6_prefix));
        assert_eq!((one.host_if_name.as_str(), one.tap_flags.0), ("lstack", 3));
        let info = inside.interfaces.info(shoal_interface::SwIfIndex(seven.0)).unwrap();
        assert_eq!((info.tag.as_str(), info.mac.0), ("uplink", [2, 0, 0, 0, 0, 9]));

        let get = || {
            let get = SwInterfaceTxPlacementGet { cursor: 0, sw_if_index: seven }.get(&call).unwrap();
            get.0.into_iter().map(|row| row.threads).collect::<Vec<_>>()
        };
        let place = |queue_id, threads| {
            let (sw_if_index, array_size) = (seven, Count::default());
            SwInterfaceSetTxPlacement { sw_if_index, queue_id, array_size, threads }.handle(&call)
        };
        assert_eq!(get(), [vec![0], vec![]]);
        place(1, vec![0]).unwrap();
        assert_eq!(get(), [vec![], vec![0]]);
        assert_eq!(place(1, vec![9]), Err(Retval::INVALID_WORKER));
        assert_eq!(place(2, vec![0]), Err(Retval::INVALID_QUEUE));

        assert_eq!(create(wish), Err(Retval::SUBIF_ALREADY_EXISTS));
        assert_eq!(create(plain("lstack")), Err(Retval::IF_ALREADY_EXISTS));
        assert_eq!(create(plain("a/b")), Err(Retval::INVALID_VALUE));
        assert_eq!(create(TapCreateV3 { rx_ring_sz: 100, ..plain("x0") }), Err(Retval::INVALID_VALUE));
        let namespace =
            TapCreateV3 { host_namespace_set: true, host_namespace: "no-such".into(), ..plain("x1") };
        assert_eq!(create(namespace), Err(Retval::SYSCALL_ERROR_2));
        let tun = create(TapCreateV3 { tap_flags: TapFlags(TapFlags::TUN), ..plain("x2") }).unwrap();
        assert_eq!(rows(InterfaceIndex::NONE).len(), 2);
        assert_eq!(rows(tun).pop().unwrap().dev_name.as_str(), "tun0");

        // VPP's clients ask for an address of zeroes and mean any. It is the one that is saved.
        let zeroes = TapCreateV3 { use_random_mac: false, host_mac_addr_set: true, ..plain("x3") };
        let any = create(zeroes).unwrap();
        let drawn = inside.interfaces.info(shoal_interface::SwIfIndex(any.0)).unwrap().mac;
        assert_eq!(drawn.0[..2], [2, 0xfe]);
        assert_eq!(rows(any).pop().unwrap().host_mac_addr.0[..2], [2, 0xfe]);
        let mut running = Running::default();
        (shoal_tap::MODULE.running)(&inside.control, &mut running);
        let saved = running.pieces().collect::<String>();
        assert!(saved.contains(&format!("hw-addr {drawn} host-if-name x3")), "{saved}");

        let delete = |sw_if_index| TapDeleteV2 { sw_if_index }.handle(&call);
        delete(any).unwrap();
        delete(seven).unwrap();
        assert_eq!(delete(seven), Err(Retval::INVALID_SW_IF_INDEX));
        assert_eq!(delete(InterfaceIndex(0)), Err(Retval::INVALID_SW_IF_INDEX));
        assert!(rows(seven).is_empty());
        delete(tun).unwrap();
    });
}
