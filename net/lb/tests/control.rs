//! What is refused, messages, saved configuration.

use shoal_lb::api::*;
use shoal_lb::vip::{Encap, Policy, Service};
use shoal_lb::{LbError, MODULE};
use shoal_message::{AddressWithPrefix, InterfaceIndex, Prefix, Retval};
use shoal_module::Running;
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::api;
use shoal_wire::IpProtocol;

use crate::bed::*;

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let bed = bed();
    let all = host_key(VIP, None);
    let gre4 = Policy::new(Encap::Gre4);
    let port = |port| host_key(VIP, Some((IpProtocol::UDP, port)));
    let nat4 = Policy { target_port: 99, ..Policy::new(Encap::Nat4) };
    let bad = [
        (all, Policy { new_length: 1000, ..gre4 }, Retval::INVALID_MEMORY_SIZE),
        (all, Policy { new_length: 0, ..gre4 }, Retval::INVALID_MEMORY_SIZE),
        (all, Policy { new_length: 1 << 21, ..gre4 }, Retval::INVALID_MEMORY_SIZE),
        (all, Policy::new(Encap::Nat6), Retval::INVALID_ADDRESS_FAMILY),
        (host_key(vip6(), None), Policy::new(Encap::L3dsr), Retval::INVALID_ADDRESS_FAMILY),
        (all, Policy { dscp: 64, ..Policy::new(Encap::L3dsr) }, Retval::INVALID_VALUE),
        (all, nat4, Retval::INVALID_VALUE),
        (port(53), Policy::new(Encap::Nat4), Retval::INVALID_VALUE),
        (port(53), Policy { service: Service::NodePort(0), ..nat4 }, Retval::INVALID_VALUE),
        (all, Policy { service: Service::NodePort(9), ..gre4 }, Retval::INVALID_VALUE),
    ];
    for (key, policy, retval) in bad {
        let error = bed.lb.add_vip(key, policy).unwrap_err();
        assert_eq!(Retval::from(error), retval, "{key} {policy:?}");
    }
    assert!(bed.lb.vips().is_empty());
    let size = LbError::Size { what: "buckets", value: 1000, most: 1 << 20 };
    assert!(size.to_string().ends_with("nearest 1024"), "{size}");
    bed.lb.add_vip(port(53), gre4).unwrap();
    // A prefix has one for all packets or some for ports.
    for key in [port(53), all] {
        assert!(matches!(bed.lb.add_vip(key, gre4), Err(LbError::VipExists(_))));
    }
    bed.lb.add_vip(port(54), gre4).unwrap();
    bed.lb.del_vip(port(53)).unwrap();
    assert!(bed.lb.add_vip(all, gre4).is_err());
    bed.lb.del_vip(port(54)).unwrap();
    assert_eq!(bed.lb.add_vip(all, gre4), Ok(1));
    assert!(matches!(bed.lb.add_servers(&all, &[server6(2)]), Err(LbError::ServerFamily(..))));
    assert!(matches!(bed.lb.add_servers(&all, &[server(2), server(2)]), Err(LbError::ServerExists(..))));
    bed.lb.add_servers(&all, &[server(2)]).unwrap();
    assert!(matches!(bed.lb.add_servers(&all, &[server(3), server(2)]), Err(LbError::ServerExists(..))));
    assert!(matches!(bed.lb.del_servers(&all, &[server(2), server(3)], true), Err(LbError::NoServer(..))));
    assert_eq!(bed.lb.vip(&all).unwrap().servers().count(), 1);
    // A server that was to go comes back.
    bed.lb.del_servers(&all, &[server(2)], false).unwrap();
    bed.lb.add_servers(&all, &[server(2)]).unwrap();
    assert!(bed.lb.vip(&all).unwrap().by_address(server(2)).unwrap().used);
    assert!(bed.lb.set_return_path(shoal_interface::SwIfIndex(99), false, true).is_err());
}

fn prefix(text: &str) -> AddressWithPrefix {
    let prefix: shoal_wire::IpPrefix = text.parse().unwrap();
    AddressWithPrefix(Prefix { address: prefix.addr(), len: prefix.len() })
}

fn add(pfx: &str, port: u16) -> LbAddDelVipV2 {
    LbAddDelVipV2 {
        pfx: prefix(pfx),
        protocol: if port == 0 { 255 } else { 17 },
        port,
        encap: LbEncapType(0),
        dscp: 0,
        r#type: LbSrvType(0),
        target_port: 0,
        node_port: 0,
        new_flows_table_length: 1024,
        src_ip_sticky: false,
        is_del: false,
    }
}

#[test]
fn messages_configure_and_list() {
    let bed = bed();
    let call = Call::local(bed.nat.router.control());
    add("90.0.0.0/8", 0).handle(&call).unwrap();
    assert_eq!(add("90.0.0.0/8", 0).handle(&call), Err(Retval::VALUE_EXIST));
    add("2001:db8:99::/48", 20_000).handle(&call).unwrap();
    assert_eq!(
        LbAddDelVipV2 { encap: LbEncapType(9), ..add("91.0.0.0/8", 0) }.handle(&call),
        Err(Retval::INVALID_VALUE)
    );
    // A protocol without ports has no port, and what is not L3DSR's has no class of service.
    let all = LbAddDelVipV2 { protocol: 99, dscp: 255, ..add("91.0.0.0/8", 9) };
    all.handle(&call).unwrap();
    assert_eq!(add("91.0.0.0/8", 0).handle(&call), Err(Retval::VALUE_EXIST));
    let dsr = LbAddDelVipV2 { encap: LbEncapType(2), dscp: 0x49, ..add("93.0.0.0/8", 0) };
    dsr.handle(&call).unwrap();
    let classes = |pfx: &str| {
        let all = LbVipDump {
            pfx: prefix(pfx),
            pfx_matcher: PrefixMatcher { le: 0, ge: 0 },
            protocol: 255,
            port: 0,
        };
        all.dump(&call).map(|vip| vip.dscp.0).collect::<Vec<u8>>()
    };
    assert_eq!((classes("91.0.0.0/8"), classes("93.0.0.0/8")), (vec![0], vec![9]));
    for vip in ["91.0.0.0/8", "93.0.0.0/8"] {
        LbAddDelVipV2 { is_del: true, ..add(vip, 0) }.handle(&call).unwrap();
    }
    let server = |is_del| LbAddDelAs {
        pfx: prefix("90.0.0.0/8"),
        protocol: 255,
        port: 0,
        as_address: "10.0.0.1".parse().unwrap(),
        is_del,
        is_flush: true,
    };
    server(false).handle(&call).unwrap();
    assert_eq!(server(false).handle(&call), Err(Retval::VALUE_EXIST));
    let dump = |pfx: &str, (ge, le), port| {
        let (pfx, protocol) = (prefix(pfx), if port == 0 { 255 } else { 17 });
        let asked = LbVipDump { pfx, pfx_matcher: PrefixMatcher { le, ge }, protocol, port };
        asked.dump(&call).map(|vip| vip.vip.pfx.0.to_string_for_test()).collect::<Vec<_>>()
    };
    assert_eq!(dump("0.0.0.0/0", (0, 0), 0), ["90.0.0.0/8", "2001:db8:99::/48"]);
    assert_eq!(dump("90.0.0.0/8", (0, 0), 0), ["90.0.0.0/8"]);
    assert_eq!(dump("2001:db8::/32", (33, 64), 20_000), ["2001:db8:99::/48"]);
    assert!(dump("2001:db8::/32", (49, 64), 0).is_empty());
    assert!(dump("2001:db8:99::/48", (0, 0), 1).is_empty());
    let servers: Vec<LbAsDetails> =
        LbAsDump { pfx: prefix("90.0.0.0/8"), protocol: 255, port: 0 }.dump(&call).collect();
    assert_eq!((servers.len(), servers[0].flags, servers[0].vip.protocol.0), (1, 1, 255));
    LbFlushVip { pfx: prefix("90.0.0.0/8"), protocol: 255, port: 0 }.handle(&call).unwrap();
    server(true).handle(&call).unwrap();
    assert_eq!(server(true).handle(&call), Err(Retval::NO_SUCH_ENTRY));
    let conf = |buckets| LbConf {
        ip4_src_address: SOURCE,
        ip6_src_address: source6(),
        sticky_buckets_per_core: buckets,
        flow_timeout: u32::MAX,
    };
    assert_eq!(conf(1000).handle(&call), Err(Retval::INVALID_MEMORY_SIZE));
    conf(u32::MAX).handle(&call).unwrap();
    assert_eq!((bed.lb.settings().buckets, bed.lb.settings().timeout), (1024, 40));
    let interface = |index, is_add| LbAddDelIntfNat4 { is_add, sw_if_index: InterfaceIndex(index) };
    assert_eq!(interface(99, true).handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    let inside = bed.nat.inside.index().0;
    interface(inside, true).handle(&call).unwrap();
    interface(inside, false).handle(&call).unwrap();
    LbAddDelVipV2 { is_del: true, ..add("90.0.0.0/8", 0) }.handle(&call).unwrap();
    assert_eq!(
        LbAddDelVipV2 { is_del: true, ..add("90.0.0.0/8", 0) }.handle(&call),
        Err(Retval::NO_SUCH_ENTRY)
    );
}

trait ToStringForTest {
    fn to_string_for_test(&self) -> String;
}

impl ToStringForTest for Prefix {
    fn to_string_for_test(&self) -> String {
        format!("{}/{}", self.address, self.len)
    }
}

#[test]
fn messages_are_vpps_and_random_ones_do_no_harm() {
    let mut bed = bed();
    if let Some(compared) = api::same_as_vpp(&[&API]) {
        assert!(compared > 0);
    }
    api::random_bytes_do_no_harm(&mut bed.nat.router, &[&API], 2000);
}

#[test]
fn the_configuration_is_saved() {
    let bed = bed();
    bed.gre4([3, 2].into_iter());
    let policy = Policy {
        target_port: 5353,
        service: Service::NodePort(30_053),
        new_length: 64,
        src_ip_sticky: true,
        ..Policy::new(Encap::Nat4)
    };
    let dns = key("198.51.101.0/24", Some((IpProtocol::UDP, 53)));
    bed.serve(&dns, policy, &[server(4)]);
    let dsr = key("198.51.102.0/24", None);
    bed.serve(&dsr, Policy { dscp: 9, ..Policy::new(Encap::L3dsr) }, &[]);
    bed.lb.set_return_path(bed.nat.inside.index(), true, true).unwrap();
    bed.lb.set(shoal_lb::Settings { buckets: 64, timeout: 9, ..bed.lb.settings() }).unwrap();
    let mut running = Running::default();
    (MODULE.running)(bed.nat.router.control(), &mut running);
    let lines = running.pieces().collect::<String>();
    assert_eq!(
        lines.lines().filter(|line| line.starts_with("lb")).collect::<Vec<_>>(),
        [
            "lb conf ip4-src-address 39.40.41.42",
            "lb conf ip6-src-address 2004::1",
            "lb conf buckets 64",
            "lb conf timeout 9",
            "lb vip 198.51.100.1/32 encap gre4",
            "lb as 198.51.100.1/32 10.0.0.2",
            "lb as 198.51.100.1/32 10.0.0.3",
            "lb vip 198.51.101.0/24 protocol udp port 53 encap nat4 type nodeport target_port 5353 node_port 30053 new_len 64 src_ip_sticky",
            "lb as 198.51.101.0/24 protocol udp port 53 10.0.0.4",
            "lb vip 198.51.102.0/24 encap l3dsr dscp 9",
            "lb set interface nat6 in pg0",
        ]
    );
}
