//! Shared source addresses and the policy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Prefix, Retval, Value};
use shoal_module::api::{Call, Dump, Request};
use shoal_wire::IpPrefix;

use super::{NONE, cnat};
use crate::policy::{List, PolicyKind};
use crate::{Cnat, SnatSpec, flags};

/// What is special about shared addresses: any of the bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("CNAT_SNAT_POLICY_F_NONE", 0)]
#[entry("CNAT_SNAT_POLICY_F_BUFFER_NEXT", 1)]
#[entry("CNAT_SNAT_POLICY_F_NO_CLIENT", 2)]
#[entry("CNAT_SNAT_POLICY_F_USE_AS_DEFAULT", 4)]
pub struct CnatSnatPolicyFlags(pub u8);

/// A list of interfaces.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("CNAT_POLICY_INCLUDE_V4", 0)]
#[entry("CNAT_POLICY_INCLUDE_V6", 1)]
#[entry("CNAT_POLICY_POD", 2)]
#[entry("CNAT_POLICY_HOST", 3)]
pub struct CnatSnatPolicyTable(pub u8);

/// The kind of policy.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("CNAT_POLICY_NONE", 0)]
#[entry("CNAT_POLICY_IF_PFX", 1)]
#[entry("CNAT_POLICY_K8S", 2)]
#[entry("CNAT_POLICY_DNAT", 3)]
pub struct CnatSnatPolicies(pub u8);

fn interface(InterfaceIndex(index): InterfaceIndex) -> Option<SwIfIndex> {
    (!matches!(index, 0 | NONE)).then_some(SwIfIndex(index))
}

/// Sets the addresses that connections share; without any, there are none.
#[derive(Message)]
#[message(request)]
pub struct CnatSetSnatAddresses {
    pub snat_ip4: Ipv4Addr,
    pub snat_ip6: Ipv6Addr,
    pub sw_if_index: InterfaceIndex,
}

impl Request for CnatSetSnatAddresses {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let interface = interface(self.sw_if_index);
        let spec = SnatSpec { ip4: self.snat_ip4, ip6: self.snat_ip6, interface, ..SnatSpec::NONE };
        Ok(cnat(call)?.set_snat(spec)?)
    }
}

/// The same of connections that come by a table, `fwd_fib_index`, and whose answers come by another. Both are tables' numbers.
#[derive(Message)]
#[message(request, name = "cnat_set_snat_addresses_v2")]
pub struct CnatSetSnatAddressesV2 {
    pub fwd_fib_index: u32,
    pub ret_fib_index: u32,
    pub snat_ip4: Ipv4Addr,
    pub snat_ip6: Ipv6Addr,
    pub sw_if_index: InterfaceIndex,
    pub flags: CnatSnatPolicyFlags,
}

impl Request for CnatSetSnatAddressesV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let spec = SnatSpec {
            table: self.fwd_fib_index,
            back_table: self.ret_fib_index,
            ip4: self.snat_ip4,
            ip6: self.snat_ip6,
            interface: interface(self.sw_if_index),
            flags: self.flags.0,
        };
        Ok(cnat(call)?.set_snat(spec)?)
    }
}

/// Asks for the addresses that connections share by default.
#[derive(Message)]
#[message(request, reply = CnatGetSnatAddressesReply)]
pub struct CnatGetSnatAddresses {}

/// Those addresses, as they are now.
#[derive(Message)]
#[message(reply)]
pub struct CnatGetSnatAddressesReply {
    pub retval: i32,
    pub id: u32,
    pub snat_ip4: Ipv4Addr,
    pub snat_ip6: Ipv6Addr,
    pub sw_if_index: InterfaceIndex,
}

fn addresses(cnat: &Cnat, spec: &SnatSpec) -> (Ipv4Addr, Ipv6Addr) {
    let ip4 = match cnat.snat_address(spec, Family::Ip4) {
        Some(IpAddr::V4(address)) => address,
        _ => Ipv4Addr::UNSPECIFIED,
    };
    let ip6 = match cnat.snat_address(spec, Family::Ip6) {
        Some(IpAddr::V6(address)) => address,
        _ => Ipv6Addr::UNSPECIFIED,
    };
    (ip4, ip6)
}

fn index(spec: &SnatSpec) -> InterfaceIndex {
    InterfaceIndex(spec.interface.map_or(NONE, |interface| interface.0))
}

impl Request for CnatGetSnatAddresses {
    fn handle(self, call: &Call) -> Result<CnatGetSnatAddressesReply, Retval> {
        let cnat = cnat(call)?;
        let spec = cnat.default_snat().ok_or(Retval::FEATURE_DISABLED)?;
        let (snat_ip4, snat_ip6) = addresses(&cnat, &spec);
        let (id, sw_if_index) = (spec.table, index(&spec));
        Ok(CnatGetSnatAddressesReply { retval: 0, id, snat_ip4, snat_ip6, sw_if_index })
    }
}

/// Asks for all addresses that connections share.
#[derive(Message)]
#[message(request, details = CnatSnatAddressesDetails)]
pub struct CnatSnatAddressesDump {}

/// Addresses that connections share which come by some tables.
#[derive(Message)]
#[message(reply)]
pub struct CnatSnatAddressesDetails {
    pub retval: i32,
    pub fwd_table_id4: u32,
    pub fwd_table_id6: u32,
    pub ret_table_id4: u32,
    pub ret_table_id6: u32,
    pub snat_ip4: Ipv4Addr,
    pub snat_ip6: Ipv6Addr,
    pub sw_if_index: InterfaceIndex,
}

impl Dump for CnatSnatAddressesDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = CnatSnatAddressesDetails> + 'static {
        let cnat = cnat(call).ok();
        let all = cnat.as_ref().map(|cnat| cnat.snats()).unwrap_or_default();
        all.into_iter().filter_map(move |spec| {
            let cnat = cnat.as_ref()?;
            let of = |family, table| cnat.fib().index_of(family, table).map_or(NONE, |_| table);
            let (snat_ip4, snat_ip6) = addresses(cnat, &spec);
            Some(CnatSnatAddressesDetails {
                retval: 0,
                fwd_table_id4: of(Family::Ip4, spec.table),
                fwd_table_id6: of(Family::Ip6, spec.table),
                ret_table_id4: of(Family::Ip4, spec.back_table),
                ret_table_id6: of(Family::Ip6, spec.back_table),
                snat_ip4,
                snat_ip6,
                sw_if_index: index(&spec),
            })
        })
    }
}

/// Excludes destinations: connections to them keep their source. Or does so no more.
#[derive(Message)]
#[message(request)]
pub struct CnatSnatPolicyAddDelExcludePfx {
    pub is_add: u8,
    pub prefix: Prefix,
}

impl Request for CnatSnatPolicyAddDelExcludePfx {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let Prefix { address, len } = self.prefix;
        let prefix = IpPrefix::new(address, len).map_err(|_| Retval::INVALID_VALUE)?;
        Ok(cnat(call)?.set_excluded(prefix, self.is_add != 0)?)
    }
}

/// Puts an interface on a list of the policy, or takes it off.
#[derive(Message)]
#[message(request)]
pub struct CnatSnatPolicyAddDelIf {
    pub sw_if_index: InterfaceIndex,
    pub is_add: u8,
    pub table: CnatSnatPolicyTable,
}

impl Request for CnatSnatPolicyAddDelIf {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let CnatSnatPolicyTable(number) = self.table;
        let (list, _) = List::ALL.get(usize::from(number)).ok_or(Retval::INVALID_VALUE)?;
        let interface = SwIfIndex(self.sw_if_index.0);
        Ok(cnat(call)?.set_policy_interface(interface, *list, self.is_add != 0)?)
    }
}

/// Sets which connections get a shared source.
#[derive(Message)]
#[message(request)]
pub struct CnatSetSnatPolicy {
    pub policy: CnatSnatPolicies,
}

impl Request for CnatSetSnatPolicy {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let CnatSnatPolicies(number) = self.policy;
        // As VPP, which has no name for it.
        let (kind, _) = PolicyKind::ALL.get(usize::from(number)).ok_or(Retval(1))?;
        Ok(cnat(call)?.set_policy(*kind)?)
    }
}

// A policy's bits are those of the messages.
const _: () = assert!(flags::ALL == 7);
