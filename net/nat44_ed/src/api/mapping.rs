//! Static mappings.

use std::net::Ipv4Addr;

use shoal_message::{Count, InterfaceIndex, Message, Retval, Text, Value};
use shoal_module::api::{Call, Dump, Request};

use super::{ADDR_ONLY, NatConfigFlags, OUT2IN_ONLY, all, nat, of_twice, vrf};
use crate::{Balanced, Nat44, Spec};
use shoal_nat44::mapping::{External, TwiceNat};

fn set(call: &Call, spec: Spec, on: bool) -> Result<(), Retval> {
    let nat = nat(call)?;
    Ok(if on { nat.add_mapping(spec) } else { nat.del_mapping(&spec) }?)
}

/// Adds a mapping, or takes one away.
#[derive(Message)]
#[message(request)]
pub struct Nat44AddDelStaticMapping {
    pub is_add: bool,
    pub flags: NatConfigFlags,
    pub local_ip_address: Ipv4Addr,
    pub external_ip_address: Ipv4Addr,
    pub protocol: u8,
    pub local_port: u16,
    pub external_port: u16,
    pub external_sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

impl Request for Nat44AddDelStaticMapping {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let newer = Nat44AddDelStaticMappingV2 {
            is_add: self.is_add,
            match_pool: false,
            flags: self.flags,
            pool_ip_address: Ipv4Addr::UNSPECIFIED,
            local_ip_address: self.local_ip_address,
            external_ip_address: self.external_ip_address,
            protocol: self.protocol,
            local_port: self.local_port,
            external_port: self.external_port,
            external_sw_if_index: self.external_sw_if_index,
            vrf_id: self.vrf_id,
            tag: self.tag,
        };
        newer.handle(call)
    }
}

/// Adds a mapping, or takes one away; it may say which address stands for outside hosts.
#[derive(Message)]
#[message(request)]
pub struct Nat44AddDelStaticMappingV2 {
    pub is_add: bool,
    pub match_pool: bool,
    pub flags: NatConfigFlags,
    pub pool_ip_address: Ipv4Addr,
    pub local_ip_address: Ipv4Addr,
    pub external_ip_address: Ipv4Addr,
    pub protocol: u8,
    pub local_port: u16,
    pub external_port: u16,
    pub external_sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

impl Request for Nat44AddDelStaticMappingV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let address_only = self.flags.has(ADDR_ONLY);
        let port = |port| if address_only { 0 } else { port };
        let spec = Spec {
            local: self.local_ip_address,
            local_port: port(self.local_port),
            external: External::of_message(self.external_ip_address, self.external_sw_if_index),
            external_port: port(self.external_port),
            protocol: if address_only { 0 } else { self.protocol },
            vrf: vrf(self.vrf_id),
            twice: super::twice(self.flags),
            out2in_only: self.flags.has(OUT2IN_ONLY),
            identity: false,
            pool_address: self.match_pool.then_some(self.pool_ip_address),
            tag: self.tag.as_str().to_owned(),
        };
        set(call, spec, self.is_add)
    }
}

/// Asks for mappings.
#[derive(Message)]
#[message(request, details = Nat44StaticMappingDetails)]
pub struct Nat44StaticMappingDump {}

/// A mapping.
#[derive(Message)]
#[message(reply)]
pub struct Nat44StaticMappingDetails {
    pub flags: NatConfigFlags,
    pub local_ip_address: Ipv4Addr,
    pub external_ip_address: Ipv4Addr,
    pub protocol: u8,
    pub local_port: u16,
    pub external_port: u16,
    pub external_sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

/// Mappings of one host: of addresses that stay what they are, or of others.
fn singles(nat: &Nat44, identity: bool) -> Vec<(Spec, Option<Ipv4Addr>)> {
    nat.mappings().into_iter().filter(|(spec, _)| spec.identity == identity).collect()
}

fn flags_of(spec: &Spec) -> NatConfigFlags {
    let only = if spec.out2in_only { OUT2IN_ONLY } else { 0 };
    let address = if spec.is_address_only() { ADDR_ONLY } else { 0 };
    NatConfigFlags(of_twice(spec.twice) | only | address)
}

impl Dump for Nat44StaticMappingDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44StaticMappingDetails> + 'static {
        all(call, |nat| singles(nat, false)).map(|(spec, address)| Nat44StaticMappingDetails {
            flags: flags_of(&spec),
            local_ip_address: spec.local,
            external_ip_address: address.unwrap_or(Ipv4Addr::UNSPECIFIED),
            protocol: spec.protocol,
            local_port: spec.local_port,
            external_port: spec.external_port,
            external_sw_if_index: spec.external.interface(),
            vrf_id: spec.vrf.unwrap_or(u32::MAX),
            tag: Text::from(spec.tag.as_str()),
        })
    }
}

/// Keeps an address, or one of its ports, as it is, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat44AddDelIdentityMapping {
    pub is_add: bool,
    pub flags: NatConfigFlags,
    pub ip_address: Ipv4Addr,
    pub protocol: u8,
    pub port: u16,
    pub sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

impl Request for Nat44AddDelIdentityMapping {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let address_only = self.flags.has(ADDR_ONLY);
        let port = if address_only { 0 } else { self.port };
        let spec = Spec {
            local: self.ip_address,
            local_port: port,
            external: External::of_message(self.ip_address, self.sw_if_index),
            external_port: port,
            protocol: if address_only { 0 } else { self.protocol },
            vrf: vrf(self.vrf_id),
            twice: TwiceNat::No,
            out2in_only: false,
            identity: true,
            pool_address: None,
            tag: self.tag.as_str().to_owned(),
        };
        set(call, spec, self.is_add)
    }
}

/// Asks for addresses that stay as they are.
#[derive(Message)]
#[message(request, details = Nat44IdentityMappingDetails)]
pub struct Nat44IdentityMappingDump {}

/// An address that stays as it is.
#[derive(Message)]
#[message(reply)]
pub struct Nat44IdentityMappingDetails {
    pub flags: NatConfigFlags,
    pub ip_address: Ipv4Addr,
    pub protocol: u8,
    pub port: u16,
    pub sw_if_index: InterfaceIndex,
    pub vrf_id: u32,
    pub tag: Text<64>,
}

impl Dump for Nat44IdentityMappingDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44IdentityMappingDetails> + 'static {
        all(call, |nat| singles(nat, true)).map(|(spec, address)| Nat44IdentityMappingDetails {
            flags: flags_of(&spec),
            ip_address: address.unwrap_or(spec.local),
            protocol: spec.protocol,
            port: spec.local_port,
            sw_if_index: spec.external.interface(),
            vrf_id: spec.vrf.unwrap_or(u32::MAX),
            tag: Text::from(spec.tag.as_str()),
        })
    }
}

/// A host of a service.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat44LbAddrPort {
    pub addr: Ipv4Addr,
    pub port: u16,
    pub probability: u8,
    pub vrf_id: u32,
}

impl From<Nat44LbAddrPort> for (Ipv4Addr, u16, u8, u32) {
    fn from(host: Nat44LbAddrPort) -> Self {
        (host.addr, host.port, host.probability, host.vrf_id)
    }
}

/// Adds a service with several hosts, or takes one away.
#[derive(Message)]
#[message(request)]
pub struct Nat44AddDelLbStaticMapping {
    pub is_add: bool,
    pub flags: NatConfigFlags,
    pub external_addr: Ipv4Addr,
    pub external_port: u16,
    pub protocol: u8,
    /// Seconds that a client keeps its host.
    pub affinity: u32,
    pub tag: Text<64>,
    pub local_num: Count<u32>,
    #[counted_by(local_num)]
    pub locals: Vec<Nat44LbAddrPort>,
}

impl Request for Nat44AddDelLbStaticMapping {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let nat = nat(call)?;
        if !self.is_add {
            return Ok(nat.del_balanced((self.external_addr, self.external_port, self.protocol))?);
        }
        Ok(nat.add_balanced(Balanced {
            external: self.external_addr,
            port: self.external_port,
            protocol: self.protocol,
            locals: self.locals.into_iter().map(Into::into).collect(),
            twice: super::twice(self.flags),
            out2in_only: self.flags.has(OUT2IN_ONLY),
            affinity: self.affinity,
            tag: self.tag.as_str().to_owned(),
        })?)
    }
}

/// Adds a host to a service, or takes one away.
#[derive(Message)]
#[message(request)]
pub struct Nat44LbStaticMappingAddDelLocal {
    pub is_add: bool,
    pub external_addr: Ipv4Addr,
    pub external_port: u16,
    pub protocol: u8,
    pub local: Nat44LbAddrPort,
}

impl Request for Nat44LbStaticMappingAddDelLocal {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let service = (self.external_addr, self.external_port, self.protocol);
        Ok(nat(call)?.set_back_end(service, self.local.into(), self.is_add)?)
    }
}

/// Asks for services with several hosts.
#[derive(Message)]
#[message(request, details = Nat44LbStaticMappingDetails)]
pub struct Nat44LbStaticMappingDump {}

/// A service with several hosts.
#[derive(Message)]
#[message(reply)]
pub struct Nat44LbStaticMappingDetails {
    pub external_addr: Ipv4Addr,
    pub external_port: u16,
    pub protocol: u8,
    pub flags: NatConfigFlags,
    pub affinity: u32,
    pub tag: Text<64>,
    pub local_num: Count<u32>,
    #[counted_by(local_num)]
    pub locals: Vec<Nat44LbAddrPort>,
}

impl Dump for Nat44LbStaticMappingDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44LbStaticMappingDetails> + 'static {
        all(call, super::super::control::Nat44::balanced).map(|many| {
            let only = if many.out2in_only { OUT2IN_ONLY } else { 0 };
            let local = |&(addr, port, probability, vrf_id): &(Ipv4Addr, u16, u8, u32)| Nat44LbAddrPort {
                addr,
                port,
                probability,
                vrf_id,
            };
            Nat44LbStaticMappingDetails {
                external_addr: many.external,
                external_port: many.port,
                protocol: many.protocol,
                flags: NatConfigFlags(of_twice(many.twice) | only),
                affinity: many.affinity,
                locals: many.locals.iter().map(local).collect(),
                local_num: Count::default(),
                tag: Text::from(many.tag.as_str()),
            }
        })
    }
}
