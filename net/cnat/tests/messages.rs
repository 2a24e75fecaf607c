//! Messages of `cnat.api`.

use std::net::IpAddr;

use shoal_cnat::api::snat::*;
use shoal_cnat::api::*;
use shoal_fib::api::IpFlowHashConfigV2;
use shoal_message::{AddressFamily, Count, InterfaceIndex, IpProto, Prefix, Retval};
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::api;

use crate::bed::*;

const NONE: u32 = u32::MAX;

fn endpoint((addr, port): End) -> CnatEndpoint {
    let if_af = if addr.is_ipv6() { AddressFamily::Ip6 } else { AddressFamily::Ip4 };
    CnatEndpoint { addr, sw_if_index: InterfaceIndex(NONE), if_af, port }
}

fn no_source() -> CnatEndpoint {
    endpoint(end("0.0.0.0", 0))
}

fn translation(vip: End, backends: &[End]) -> CnatTranslation {
    let path = |end: &End| CnatEndpointTuple { dst_ep: endpoint(*end), src_ep: no_source(), flags: 0 };
    CnatTranslation {
        vip: endpoint(vip),
        id: NONE,
        ip_proto: IpProto(TCP),
        is_real_ip: 0,
        flags: 0,
        lb_type: CnatLbType(1),
        n_paths: Count::default(),
        flow_hash_config: IpFlowHashConfigV2(0),
        paths: backends.iter().map(path).collect(),
    }
}

#[test]
fn messages_configure_and_list() {
    let mut bed = bed();
    let call = Call::local(bed.nat.router.control());
    let of = translation(vip(true), &[backend(true, 2), backend(true, 3)]);
    let update = |translation| CnatTranslationUpdate { translation }.handle(&call).map(|reply| reply.id);
    assert_eq!(update(of.clone()), Ok(0));
    assert_eq!(update(translation(vip(false), &[backend(false, 2)])), Ok(1));
    assert_eq!(update(of.clone()), Ok(0));
    assert_eq!(update(CnatTranslation { lb_type: CnatLbType(2), ..of.clone() }), Err(Retval::INVALID_VALUE));
    assert_eq!(
        update(CnatTranslation { ip_proto: IpProto(132), ..of.clone() }),
        Err(Retval::INVALID_PROTOCOL)
    );
    let all: Vec<_> = CnatTranslationDump {}.dump(&call).map(|details| details.translation).collect();
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].id, all[0].vip, all[0].flow_hash_config.0), (0, of.vip, 0x9f));
    assert_eq!(all[0].paths, of.paths);
    let inside = InterfaceIndex(bed.nat.inside.index().0);
    for sw_if_index in [inside, InterfaceIndex(bed.nat.outside.index().0)] {
        FeatureCnatEnableDisable { sw_if_index, enable_disable: true }.handle(&call).unwrap();
    }
    let nowhere = FeatureCnatEnableDisable { sw_if_index: InterfaceIndex(99), enable_disable: true };
    assert_eq!(nowhere.handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    bed.comes((client(false, 1000), vip(false)), TCP, 2).unwrap();
    let call = Call::local(bed.nat.router.control());
    let sessions: Vec<_> = CnatSessionDump {}.dump(&call).map(|details| details.session).collect();
    assert_eq!(sessions.len(), 2);
    let (there, back) = (sessions[0], sessions[1]);
    assert_eq!(there.tuple.addr.map(|a| a.0), [client(false, 0).0, vip(false).0]);
    assert_eq!((there.tuple.port, there.flags, back.flags), ([1000, 80], 0, 1));
    assert_eq!(back.tuple.addr.map(|a| a.0), [backend(false, 2).0, client(false, 0).0]);
    CnatSessionPurge {}.handle(&call).unwrap();
    assert_eq!(CnatSessionDump {}.dump(&call).count(), 0);
    assert_eq!(CnatTranslationDump {}.dump(&call).count(), 0, "as VPP");
    assert_eq!(CnatTranslationDel { id: 1 }.handle(&call), Err(Retval::NO_SUCH_ENTRY));
}

#[test]
fn messages_set_shared_addresses_and_the_policy() {
    let bed = bed();
    let call = Call::local(bed.nat.router.control());
    let get = || CnatGetSnatAddresses {}.handle(&call);
    assert_eq!(get().map(|_| ()), Err(Retval::FEATURE_DISABLED));
    let (IpAddr::V4(snat_ip4), IpAddr::V6(snat_ip6)) = (shared(false), shared(true)) else { unreachable!() };
    let set = CnatSetSnatAddresses { snat_ip4, snat_ip6, sw_if_index: InterfaceIndex(NONE) };
    set.handle(&call).unwrap();
    let got = get().unwrap();
    assert_eq!((got.id, got.snat_ip4, got.snat_ip6, got.sw_if_index.0), (0, snat_ip4, snat_ip6, NONE));
    let v2 = |fwd_fib_index, flags| CnatSetSnatAddressesV2 {
        fwd_fib_index,
        ret_fib_index: 0,
        snat_ip4,
        snat_ip6: std::net::Ipv6Addr::UNSPECIFIED,
        sw_if_index: InterfaceIndex(bed.nat.inside.index().0),
        flags: CnatSnatPolicyFlags(flags),
    };
    assert_eq!(v2(7, 4).handle(&call), Err(Retval::NO_SUCH_TABLE));
    assert_eq!(v2(0, 8).handle(&call), Err(Retval::INVALID_VALUE));
    v2(0, 6).handle(&call).unwrap();
    let all: Vec<_> = CnatSnatAddressesDump {}.dump(&call).collect();
    assert_eq!((all.len(), all[0].fwd_table_id4, all[0].ret_table_id6), (1, 0, 0));
    assert_eq!(all[0].snat_ip6, "2001:db8:1::ff".parse::<std::net::Ipv6Addr>().unwrap());
    let excluded = |is_add, len| {
        let prefix = Prefix { address: "10.0.0.0".parse().unwrap(), len };
        CnatSnatPolicyAddDelExcludePfx { is_add, prefix }.handle(&call)
    };
    assert_eq!(excluded(1, 33), Err(Retval::INVALID_VALUE));
    assert_eq!([excluded(1, 8), excluded(1, 8), excluded(0, 8)], [Ok(()); 3]);
    assert_eq!(excluded(0, 8), Err(Retval(1)));
    let interface = |sw_if_index, table| {
        let (sw_if_index, table) = (InterfaceIndex(sw_if_index), CnatSnatPolicyTable(table));
        CnatSnatPolicyAddDelIf { sw_if_index, is_add: 1, table }.handle(&call)
    };
    assert_eq!(interface(1, 3), Ok(()));
    assert_eq!(interface(1, 4), Err(Retval::INVALID_VALUE));
    assert_eq!(interface(99, 0), Err(Retval::INVALID_SW_IF_INDEX));
    let policy = |number| CnatSetSnatPolicy { policy: CnatSnatPolicies(number) }.handle(&call);
    assert_eq!([policy(1), policy(2), policy(3), policy(0)], [Ok(()); 4]);
    assert_eq!(policy(4), Err(Retval(1)));
}

#[test]
fn messages_are_vpps_and_random_ones_do_no_harm() {
    let mut bed = bed();
    if let Some(compared) = api::same_as_vpp(&[&API]) {
        assert!(compared > 0);
    }
    api::random_bytes_do_no_harm(&mut bed.nat.router, &[&API], 2000);
}
