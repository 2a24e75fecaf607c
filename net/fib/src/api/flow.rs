//! `set_ip_flow_hash*`: what chooses among several paths.

use shoal_adj::Family;
use shoal_message::{AddressFamily, Message, Retval, Value};
use shoal_module::api::{Call, Request};

use super::table::tables;
use super::{family_if, family_of, retval};
use crate::FlowFields;

/// Fields of a packet that choose its path: any of the bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(flags)]
#[entry("IP_API_FLOW_HASH_SRC_IP", 1)]
#[entry("IP_API_FLOW_HASH_DST_IP", 2)]
#[entry("IP_API_FLOW_HASH_SRC_PORT", 4)]
#[entry("IP_API_FLOW_HASH_DST_PORT", 8)]
#[entry("IP_API_FLOW_HASH_PROTO", 16)]
#[entry("IP_API_FLOW_HASH_REVERSE", 32)]
#[entry("IP_API_FLOW_HASH_SYMETRIC", 64)]
#[entry("IP_API_FLOW_HASH_FLOW_LABEL", 128)]
pub struct IpFlowHashConfig(pub u32);

/// The same, with the tunnel of mobile phones, which this router does not look into.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(flags, name = "ip_flow_hash_config_v2")]
#[entry("IP_API_V2_FLOW_HASH_SRC_IP", 1)]
#[entry("IP_API_V2_FLOW_HASH_DST_IP", 2)]
#[entry("IP_API_V2_FLOW_HASH_SRC_PORT", 4)]
#[entry("IP_API_V2_FLOW_HASH_DST_PORT", 8)]
#[entry("IP_API_V2_FLOW_HASH_PROTO", 16)]
#[entry("IP_API_V2_FLOW_HASH_REVERSE", 32)]
#[entry("IP_API_V2_FLOW_HASH_SYMETRIC", 64)]
#[entry("IP_API_V2_FLOW_HASH_FLOW_LABEL", 128)]
#[entry("IP_API_V2_FLOW_HASH_GTPV1_TEID", 256)]
pub struct IpFlowHashConfigV2(pub u32);

/// Chooses which fields of packets choose among several paths in a table. Without any it is the usual ones.
#[derive(Message)]
#[message(request)]
pub struct SetIpFlowHash {
    /// The table's number.
    pub vrf_id: u32,
    pub is_ipv6: bool,
    /// The source address.
    pub src: bool,
    /// The destination address.
    pub dst: bool,
    /// The source port.
    pub sport: bool,
    /// The destination port.
    pub dport: bool,
    /// The protocol.
    pub proto: bool,
    /// Source and destination change places.
    pub reverse: bool,
    /// Both directions take the same path.
    pub symmetric: bool,
}

/// The same, by bits.
#[derive(Message)]
#[message(request, name = "set_ip_flow_hash_v2")]
pub struct SetIpFlowHashV2 {
    pub table_id: u32,
    pub af: AddressFamily,
    pub flow_hash_config: IpFlowHashConfig,
}

/// The same, with more bits.
#[derive(Message)]
#[message(request, name = "set_ip_flow_hash_v3")]
pub struct SetIpFlowHashV3 {
    pub table_id: u32,
    pub af: AddressFamily,
    pub flow_hash_config: IpFlowHashConfigV2,
}

/// Gives the router a number of its own for the choice among several paths, so that routers in a row choose each their
/// own way.
#[derive(Message)]
#[message(request)]
pub struct SetIpFlowHashRouterId {
    pub router_id: u32,
}

/// In the order of the bits.
const FIELDS: [FlowFields; 8] = [
    FlowFields::SRC,
    FlowFields::DST,
    FlowFields::SPORT,
    FlowFields::DPORT,
    FlowFields::PROTO,
    FlowFields::REVERSE,
    FlowFields::SYMMETRIC,
    FlowFields::FLOW_LABEL,
];

fn set(call: &Call, family: Family, table: u32, bits: u32) -> Result<(), Retval> {
    if bits >> FIELDS.len() != 0 {
        return Err(Retval::UNSUPPORTED);
    }
    let fib = tables(call)?;
    let index = fib.index_of(family, table).map_err(|e| retval(&e))?;
    let chosen = FIELDS.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    let fields = chosen.fold(FlowFields::NONE, |all, (_, field)| all.with(field));
    let fields = if fields == FlowFields::NONE { FlowFields::DEFAULT } else { fields };
    fib.set_flow_fields(family, index, fields).map_err(|e| retval(&e))
}

impl Request for SetIpFlowHash {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let all = [self.src, self.dst, self.sport, self.dport, self.proto, self.reverse, self.symmetric];
        let bits = all.into_iter().enumerate().fold(0, |bits, (bit, on)| bits | u32::from(on) << bit);
        set(call, family_if(self.is_ipv6), self.vrf_id, bits)
    }
}

impl Request for SetIpFlowHashV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        set(call, family_of(self.af), self.table_id, self.flow_hash_config.0)
    }
}

impl Request for SetIpFlowHashV3 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        set(call, family_of(self.af), self.table_id, self.flow_hash_config.0)
    }
}

impl Request for SetIpFlowHashRouterId {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        tables(call)?.set_flow_seed(self.router_id.into());
        Ok(())
    }
}
