//! Messages: `lb.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{AddressWithPrefix, InterfaceIndex, IpDscp, IpProto, Message, Prefix, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};
use shoal_wire::{IpPrefix, IpProtocol};

use crate::vip::{Encap, Policy, Service, Vip, VipKey};
use crate::{LbError, LoadBalancer};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "lb",
    folder: Folder::Plugins,
    version: "1.1.0",
    messages: &[
        ApiMessage::request::<LbConf>(),
        ApiMessage::request::<LbAddDelVip>(),
        ApiMessage::request::<LbAddDelVipV2>(),
        ApiMessage::request::<LbAddDelAs>(),
        ApiMessage::request::<LbFlushVip>(),
        ApiMessage::dump::<LbVipDump>(),
        ApiMessage::sent::<LbVipDetails>(),
        ApiMessage::dump::<LbAsDump>(),
        ApiMessage::sent::<LbAsDetails>(),
        ApiMessage::request::<LbAddDelIntfNat4>(),
        ApiMessage::request::<LbAddDelIntfNat6>(),
    ],
};

/// Bits of a class of service. Others are not looked at.
const DSCP: u8 = 0x3f;
/// A protocol that stands for all of them.
const ANY: u8 = u8::MAX;
/// A number that leaves a setting as it is.
const UNCHANGED: u32 = u32::MAX;

impl From<LbError> for Retval {
    fn from(error: LbError) -> Self {
        match error {
            LbError::VipExists(_) | LbError::ServerExists(..) => Retval::VALUE_EXIST,
            LbError::NoVip(_) | LbError::NoServer(..) | LbError::NoInterface(_) => Retval::NO_SUCH_ENTRY,
            LbError::Family(..) | LbError::ServerFamily(..) => Retval::INVALID_ADDRESS_FAMILY,
            LbError::Size { .. } => Retval::INVALID_MEMORY_SIZE,
            LbError::Value(_) => Retval::INVALID_VALUE,
            LbError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            LbError::Fib(error) => shoal_fib::api::retval(&error),
            LbError::TooMany(_) | LbError::Memory(_) | LbError::Graph(_) => Retval::UNSPECIFIED,
        }
    }
}

fn lb(call: &Call) -> Result<Rc<LoadBalancer>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// How packets reach a server.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("LB_API_ENCAP_TYPE_GRE4", 0)]
#[entry("LB_API_ENCAP_TYPE_GRE6", 1)]
#[entry("LB_API_ENCAP_TYPE_L3DSR", 2)]
#[entry("LB_API_ENCAP_TYPE_NAT4", 3)]
#[entry("LB_API_ENCAP_TYPE_NAT6", 4)]
#[entry("LB_API_ENCAP_N_TYPES", 5)]
pub struct LbEncapType(pub u32);

/// How clients address a translated service.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("LB_API_SRV_TYPE_CLUSTERIP", 0)]
#[entry("LB_API_SRV_TYPE_NODEPORT", 1)]
#[entry("LB_API_SRV_N_TYPES", 2)]
pub struct LbSrvType(pub u32);

/// What tells a virtual address from others.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbVip {
    pub pfx: AddressWithPrefix,
    pub protocol: IpProto,
    pub port: u16,
}

fn prefix(AddressWithPrefix(Prefix { address, len }): AddressWithPrefix) -> Result<IpPrefix, Retval> {
    IpPrefix::new(address, len).map_err(|_| Retval::INVALID_VALUE)
}

/// What a message says: port 0 and protocols without ports are all packets.
fn key(pfx: AddressWithPrefix, protocol: u8, port: u16) -> Result<VipKey, Retval> {
    let port = match (protocol, port) {
        (6 | 17, 1..) => Some((IpProtocol(protocol), port)),
        _ => None,
    };
    Ok(VipKey { prefix: prefix(pfx)?, port })
}

fn of_vip(key: &VipKey) -> LbVip {
    LbVip {
        pfx: AddressWithPrefix(Prefix { address: key.prefix.addr(), len: key.prefix.len() }),
        protocol: IpProto(key.port.map_or(ANY, |(protocol, _)| protocol.0)),
        port: key.port.map_or(0, |(_, port)| port),
    }
}

fn encap(LbEncapType(number): LbEncapType) -> Result<Encap, Retval> {
    Encap::ALL.get(number as usize).map(|(encap, _)| *encap).ok_or(Retval::INVALID_VALUE)
}

/// Sets the source of tunnel packets, and how many flows a thread remembers for how long. All bits set leave a number as it is.
#[derive(Message)]
#[message(request)]
pub struct LbConf {
    pub ip4_src_address: Ipv4Addr,
    pub ip6_src_address: Ipv6Addr,
    #[preset(4294967295)]
    pub sticky_buckets_per_core: u32,
    #[preset(4294967295)]
    pub flow_timeout: u32,
}

impl Request for LbConf {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let lb = lb(call)?;
        let now = lb.settings();
        let given = |new: u32, now: u32| if new == UNCHANGED { now } else { new };
        Ok(lb.set(crate::Settings {
            source4: self.ip4_src_address,
            source6: self.ip6_src_address,
            buckets: given(self.sticky_buckets_per_core, now.buckets),
            timeout: given(self.flow_timeout, now.timeout),
        })?)
    }
}

/// Makes a virtual address, or deletes it.
#[derive(Message)]
#[message(request)]
pub struct LbAddDelVip {
    pub pfx: AddressWithPrefix,
    #[preset(255)]
    pub protocol: u8,
    pub port: u16,
    pub encap: LbEncapType,
    pub dscp: u8,
    pub r#type: LbSrvType,
    pub target_port: u16,
    pub node_port: u16,
    #[preset(1024)]
    pub new_flows_table_length: u32,
    pub is_del: bool,
}

impl Request for LbAddDelVip {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let Self { pfx, protocol, port, encap, dscp, r#type, target_port, node_port, .. } = self;
        let (new_flows_table_length, is_del) = (self.new_flows_table_length, self.is_del);
        LbAddDelVipV2 {
            pfx,
            protocol,
            port,
            encap,
            dscp,
            r#type,
            target_port,
            node_port,
            new_flows_table_length,
            src_ip_sticky: false,
            is_del,
        }
        .handle(call)
    }
}

/// Makes a virtual address, or deletes it.
#[derive(Message)]
#[message(request)]
pub struct LbAddDelVipV2 {
    pub pfx: AddressWithPrefix,
    #[preset(255)]
    pub protocol: u8,
    pub port: u16,
    pub encap: LbEncapType,
    pub dscp: u8,
    pub r#type: LbSrvType,
    pub target_port: u16,
    pub node_port: u16,
    #[preset(1024)]
    pub new_flows_table_length: u32,
    pub src_ip_sticky: bool,
    pub is_del: bool,
}

impl Request for LbAddDelVipV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (lb, key) = (lb(call)?, key(self.pfx, self.protocol, self.port)?);
        if self.is_del {
            return Ok(lb.del_vip(key)?);
        }
        let service = match self.r#type {
            LbSrvType(0) => Service::ClusterIp,
            LbSrvType(1) => Service::NodePort(self.node_port),
            _ => return Err(Retval::INVALID_VALUE),
        };
        let encap = encap(self.encap)?;
        let policy = Policy {
            encap,
            dscp: if encap == Encap::L3dsr { self.dscp & DSCP } else { 0 },
            service,
            target_port: self.target_port,
            new_length: self.new_flows_table_length,
            src_ip_sticky: self.src_ip_sticky,
        };
        lb.add_vip(key, policy)?;
        Ok(())
    }
}

/// Gives a virtual address a server, or takes it away.
#[derive(Message)]
#[message(request)]
pub struct LbAddDelAs {
    pub pfx: AddressWithPrefix,
    #[preset(255)]
    pub protocol: u8,
    pub port: u16,
    pub as_address: IpAddr,
    pub is_del: bool,
    pub is_flush: bool,
}

impl Request for LbAddDelAs {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (lb, key) = (lb(call)?, key(self.pfx, self.protocol, self.port)?);
        Ok(if self.is_del {
            lb.del_servers(&key, &[self.as_address], self.is_flush)
        } else {
            lb.add_servers(&key, &[self.as_address])
        }?)
    }
}

/// Spreads all flows of a virtual address again.
#[derive(Message)]
#[message(request)]
pub struct LbFlushVip {
    pub pfx: AddressWithPrefix,
    pub protocol: u8,
    pub port: u16,
}

impl Request for LbFlushVip {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(lb(call)?.flush(&key(self.pfx, self.protocol, self.port)?)?)
    }
}

/// Which lengths of prefixes are asked for.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixMatcher {
    pub le: u8,
    pub ge: u8,
}

/// Asks for virtual addresses: all, if the prefix is empty.
#[derive(Message)]
#[message(request, details = LbVipDetails)]
pub struct LbVipDump {
    pub pfx: AddressWithPrefix,
    pub pfx_matcher: PrefixMatcher,
    #[preset(255)]
    pub protocol: u8,
    pub port: u16,
}

/// A virtual address.
#[derive(Message)]
#[message(reply)]
pub struct LbVipDetails {
    pub vip: LbVip,
    pub encap: LbEncapType,
    pub dscp: IpDscp,
    pub srv_type: LbSrvType,
    pub target_port: u16,
    pub flow_table_length: u16,
}

/// Whether a client asks for a virtual address. The empty prefix asks for all.
fn is_wanted(vip: &Vip, asked: &Asked) -> bool {
    let Asked { prefix: AddressWithPrefix(Prefix { address, len }), protocol, port, .. } = *asked;
    if len == 0 && address.is_unspecified() {
        return true;
    }
    let of = of_vip(&vip.key);
    let is_port = port == 0 || (of.port == port && of.protocol.0 == protocol);
    let PrefixMatcher { le, ge } = asked.lengths;
    let has = vip.key.prefix.len();
    let is_prefix = match IpPrefix::new(address, len) {
        Ok(prefix) if (le, ge) == (0, 0) => prefix.normalized() == vip.key.prefix,
        Ok(prefix) => prefix.contains(vip.key.prefix.addr()) && has >= ge.max(len) && (le == 0 || has <= le),
        Err(_) => false,
    };
    is_prefix && is_port
}

struct Asked {
    prefix: AddressWithPrefix,
    lengths: PrefixMatcher,
    protocol: u8,
    port: u16,
}

impl Dump for LbVipDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = LbVipDetails> + 'static {
        let all = lb(call).map(|lb| lb.vips()).unwrap_or_default();
        let Self { pfx: prefix, pfx_matcher: lengths, protocol, port } = self;
        let asked = Asked { prefix, lengths, protocol, port };
        all.into_iter().filter(move |vip| is_wanted(vip, &asked)).map(|vip| LbVipDetails {
            vip: of_vip(&vip.key),
            encap: LbEncapType(
                Encap::ALL.iter().zip(0..).find(|((e, _), _)| *e == vip.policy.encap).map_or(0, |(_, n)| n),
            ),
            dscp: IpDscp(vip.policy.dscp),
            srv_type: LbSrvType(u32::from(vip.policy.service != Service::ClusterIp)),
            target_port: vip.policy.target_port,
            flow_table_length: u16::try_from(vip.policy.new_length).unwrap_or(u16::MAX),
        })
    }
}

/// Asks for servers of a virtual address: of all, if the prefix is empty.
#[derive(Message)]
#[message(request, details = LbAsDetails)]
pub struct LbAsDump {
    pub pfx: AddressWithPrefix,
    pub protocol: u8,
    pub port: u16,
}

/// A server.
#[derive(Message)]
#[message(reply)]
pub struct LbAsDetails {
    pub vip: LbVip,
    pub app_srv: IpAddr,
    pub flags: u8,
    pub in_use_since: u32,
}

impl Dump for LbAsDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = LbAsDetails> + 'static {
        let all = lb(call).map(|lb| lb.vips()).unwrap_or_default();
        let Self { pfx: prefix, protocol, port } = self;
        let asked = Asked { prefix, lengths: PrefixMatcher::default(), protocol, port };
        all.into_iter().filter(move |vip| is_wanted(vip, &asked)).flat_map(|vip| {
            let of = of_vip(&vip.key);
            let servers: Vec<LbAsDetails> = vip
                .servers()
                .map(|server| LbAsDetails {
                    vip: of,
                    app_srv: server.address,
                    flags: server.used.into(),
                    in_use_since: u32::try_from(server.since.0 / 1_000_000_000).unwrap_or(u32::MAX),
                })
                .collect();
            servers
        })
    }
}

/// Translates answers of servers that come in by an interface, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct LbAddDelIntfNat4 {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
}

impl Request for LbAddDelIntfNat4 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(lb(call)?.set_return_path(SwIfIndex(self.sw_if_index.0), false, self.is_add)?)
    }
}

/// The same of IPv6.
#[derive(Message)]
#[message(request)]
pub struct LbAddDelIntfNat6 {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
}

impl Request for LbAddDelIntfNat6 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(lb(call)?.set_return_path(SwIfIndex(self.sw_if_index.0), true, self.is_add)?)
    }
}
