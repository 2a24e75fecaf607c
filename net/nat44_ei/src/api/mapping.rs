//! Static mappings.

use std::net::Ipv4Addr;

use shoal_message::{InterfaceIndex, Message, Retval, Text};
use shoal_module::api::{Call, Dump, Request};
use shoal_nat44::mapping::External;

use super::{Nat44EiConfigFlags, all, nat, vrf};
use crate::{Nat44Ei, Spec};

fn set(call: &Call, spec: Spec, on: bool) -> Result<(), Retval> {
    let nat = nat(call)?;
    Ok(if on { nat.add_mapping(spec) } else { nat.del_mapping(&spec) }?)
}

/// Adds a mapping, or takes one away.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiAddDelStaticMapping {
    pub is_add: bool,
    pub flags: Nat44EiConfigFlags,
    pub local_ip_address: Ipv4Addr,
    pub external_ip_address: Ipv4Addr,
    pub protocol: u8,
    pub local_port: u16,
    pub external_port: u16,
    pub external_sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

impl Request for Nat44EiAddDelStaticMapping {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let whole = self.flags.has(Nat44EiConfigFlags::ADDR_ONLY);
        let port = |port| if whole { 0 } else { port };
        let spec = Spec {
            local: self.local_ip_address,
            local_port: port(self.local_port),
            external: External::of_message(self.external_ip_address, self.external_sw_if_index),
            external_port: port(self.external_port),
            protocol: if whole { 0 } else { self.protocol },
            vrf: vrf(self.vrf_id),
            identity: false,
            tag: self.tag.as_str().to_owned(),
        };
        set(call, spec, self.is_add)
    }
}

/// Asks for mappings.
#[derive(Message)]
#[message(request, details = Nat44EiStaticMappingDetails)]
pub struct Nat44EiStaticMappingDump {}

/// A mapping.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiStaticMappingDetails {
    pub flags: Nat44EiConfigFlags,
    pub local_ip_address: Ipv4Addr,
    pub external_ip_address: Ipv4Addr,
    pub protocol: u8,
    pub local_port: u16,
    pub external_port: u16,
    pub external_sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

/// Mappings of addresses that stay what they are, or of others: first all that packets see, with their address; then, as they were
/// asked for, those of interfaces.
fn some(nat: &Nat44Ei, identity: bool) -> Vec<(Spec, Option<Ipv4Addr>)> {
    let all: Vec<_> = nat.mappings().into_iter().filter(|(spec, _)| spec.identity == identity).collect();
    let inside_vrf = nat.enabled().map_or(0, |on| on.inside_vrf);
    let seen = |(spec, address): &(Spec, Option<Ipv4Addr>)| {
        let vrf = Some(spec.vrf.unwrap_or(inside_vrf));
        address.map(|address| (Spec { vrf, ..spec.clone() }, Some(address)))
    };
    let of_interface = all.iter().filter(|(spec, _)| matches!(spec.external, External::Interface(_)));
    all.iter().filter_map(seen).chain(of_interface.map(|(spec, _)| (spec.clone(), None))).collect()
}

fn flags_of(spec: &Spec) -> Nat44EiConfigFlags {
    Nat44EiConfigFlags(if spec.is_address_only() { Nat44EiConfigFlags::ADDR_ONLY } else { 0 })
}

impl Dump for Nat44EiStaticMappingDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EiStaticMappingDetails> + 'static {
        all(call, |nat| some(nat, false)).map(|(spec, address)| Nat44EiStaticMappingDetails {
            flags: flags_of(&spec),
            local_ip_address: spec.local,
            external_ip_address: address.unwrap_or(Ipv4Addr::UNSPECIFIED),
            protocol: spec.protocol,
            local_port: spec.local_port,
            external_port: spec.external_port,
            // A mapping whose address is known shows the address.
            external_sw_if_index: if address.is_some() {
                InterfaceIndex::NONE
            } else {
                spec.external.interface()
            },
            vrf_id: spec.vrf.unwrap_or(u32::MAX),
            tag: Text::from(spec.tag.as_str()),
        })
    }
}

/// Keeps an address, or one of its ports, as it is, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiAddDelIdentityMapping {
    pub is_add: bool,
    pub flags: Nat44EiConfigFlags,
    pub ip_address: Ipv4Addr,
    pub protocol: u8,
    pub port: u16,
    pub sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

impl Request for Nat44EiAddDelIdentityMapping {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let whole = self.flags.has(Nat44EiConfigFlags::ADDR_ONLY);
        let port = if whole { 0 } else { self.port };
        let spec = Spec {
            local: self.ip_address,
            local_port: port,
            external: External::of_message(self.ip_address, self.sw_if_index),
            external_port: port,
            protocol: if whole { 0 } else { self.protocol },
            vrf: vrf(self.vrf_id),
            identity: true,
            tag: self.tag.as_str().to_owned(),
        };
        set(call, spec, self.is_add)
    }
}

/// Asks for addresses that stay as they are.
#[derive(Message)]
#[message(request, details = Nat44EiIdentityMappingDetails)]
pub struct Nat44EiIdentityMappingDump {}

/// An address that stays as it is.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiIdentityMappingDetails {
    pub flags: Nat44EiConfigFlags,
    pub ip_address: Ipv4Addr,
    pub protocol: u8,
    pub port: u16,
    pub sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

impl Dump for Nat44EiIdentityMappingDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EiIdentityMappingDetails> + 'static {
        all(call, |nat| some(nat, true)).map(|(spec, address)| Nat44EiIdentityMappingDetails {
            flags: flags_of(&spec),
            // One that follows an interface has none of its own.
            ip_address: address.unwrap_or(Ipv4Addr::UNSPECIFIED),
            protocol: spec.protocol,
            port: spec.local_port,
            sw_if_index: if address.is_some() { InterfaceIndex::NONE } else { spec.external.interface() },
            vrf_id: spec.vrf.unwrap_or(u32::MAX),
            tag: Text::from(spec.tag.as_str()),
        })
    }
}
