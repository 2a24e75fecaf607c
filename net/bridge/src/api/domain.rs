//! Domains and their members.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::IpAddr;

use shoal_l2::{Input, Role};
use shoal_message::{InterfaceIndex, MacAddress, Message, Retval, Text, Value};
use shoal_module::api::{Call, Dump, Request};

use super::{bridges, no_entry, there};
use crate::{Bridges, Settings, Switch};

/// The options of a domain when it is created.
struct DomainOptions {
    on: [(Switch, bool); 6],
    mac_age: u8,
    tag: String,
}

fn add_del(bridges: &Bridges, number: u32, is_add: bool, said: DomainOptions) -> Result<u32, Retval> {
    if !is_add {
        bridges.delete(number)?;
        return Ok(number);
    }
    let mut settings = Settings::default();
    (settings.mac_age, settings.tag) = (said.mac_age, said.tag);
    said.on.into_iter().for_each(|(switch, on)| settings.set(switch, on));
    // VPP chooses a number for this one.
    let number = if number == u32::MAX { bridges.free_number() } else { number };
    bridges.create(number, settings)?;
    Ok(number)
}

/// Creates a domain, or deletes it.
#[derive(Message)]
#[message(request)]
pub struct BridgeDomainAddDel {
    pub bd_id: u32,
    pub flood: bool,
    pub uu_flood: bool,
    pub forward: bool,
    pub learn: bool,
    pub arp_term: bool,
    pub arp_ufwd: bool,
    pub mac_age: u8,
    pub bd_tag: Text<64>,
    #[preset("true")]
    pub is_add: bool,
}

impl Request for BridgeDomainAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let on = [
            (Switch::Flood, self.flood),
            (Switch::UnknownFlood, self.uu_flood),
            (Switch::Forward, self.forward),
            (Switch::Learn, self.learn),
            (Switch::ArpTerm, self.arp_term),
            (Switch::ArpForward, self.arp_ufwd),
        ];
        let said = DomainOptions { on, mac_age: self.mac_age, tag: self.bd_tag.as_str().to_owned() };
        add_del(&*bridges(call)?, self.bd_id, self.is_add, said).map(drop)
    }
}

/// Creates a domain, or deletes it; tells its number.
#[derive(Message)]
#[message(request, name = "bridge_domain_add_del_v2", reply = BridgeDomainAddDelV2Reply)]
pub struct BridgeDomainAddDelV2 {
    /// All bits set: one that no domain has.
    pub bd_id: u32,
    pub flood: bool,
    pub uu_flood: bool,
    pub forward: bool,
    pub learn: bool,
    pub arp_term: bool,
    pub arp_ufwd: bool,
    pub mac_age: u8,
    pub bd_tag: Text<64>,
    #[preset("true")]
    pub is_add: bool,
}

/// The domain's number.
#[derive(Message)]
#[message(reply, name = "bridge_domain_add_del_v2_reply")]
pub struct BridgeDomainAddDelV2Reply {
    pub retval: i32,
    pub bd_id: u32,
}

impl Request for BridgeDomainAddDelV2 {
    fn handle(self, call: &Call) -> Result<BridgeDomainAddDelV2Reply, Retval> {
        let on = [
            (Switch::Flood, self.flood),
            (Switch::UnknownFlood, self.uu_flood),
            (Switch::Forward, self.forward),
            (Switch::Learn, self.learn),
            (Switch::ArpTerm, self.arp_term),
            (Switch::ArpForward, self.arp_ufwd),
        ];
        let said = DomainOptions { on, mac_age: self.mac_age, tag: self.bd_tag.as_str().to_owned() };
        let bd_id = add_del(&*bridges(call)?, self.bd_id, self.is_add, said)?;
        Ok(BridgeDomainAddDelV2Reply { retval: 0, bd_id })
    }
}

/// Asks for domains.
#[derive(Message)]
#[message(request, details = BridgeDomainDetails)]
pub struct BridgeDomainDump {
    /// All bits set for all.
    #[preset(4294967295)]
    pub bd_id: u32,
    /// Only the domain of which it is a member; all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// A member.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct BridgeDomainSwIf {
    pub context: u32,
    pub sw_if_index: InterfaceIndex,
    pub shg: u8,
}

/// A domain.
#[derive(Message)]
#[message(reply)]
pub struct BridgeDomainDetails {
    pub bd_id: u32,
    pub flood: bool,
    pub uu_flood: bool,
    pub forward: bool,
    pub learn: bool,
    pub arp_term: bool,
    pub arp_ufwd: bool,
    pub mac_age: u8,
    pub bd_tag: Text<64>,
    pub bvi_sw_if_index: InterfaceIndex,
    pub uu_fwd_sw_if_index: InterfaceIndex,
    pub n_sw_ifs: shoal_message::Count<u32>,
    #[counted_by(n_sw_ifs)]
    pub sw_if_details: Vec<BridgeDomainSwIf>,
}

fn details(bridges: &Bridges, number: u32) -> Option<BridgeDomainDetails> {
    let settings = bridges.settings(number).ok()?;
    let [bvi, unknown] = bridges.special(number).ok()?;
    let index = |interface: Option<shoal_interface::SwIfIndex>| {
        interface.map_or(InterfaceIndex::NONE, |interface| InterfaceIndex(interface.0))
    };
    let member = |member: crate::MemberInfo| BridgeDomainSwIf {
        context: 0,
        sw_if_index: InterfaceIndex(member.interface.0),
        shg: member.port.group,
    };
    Some(BridgeDomainDetails {
        bd_id: number,
        flood: settings.has(Switch::Flood),
        uu_flood: settings.has(Switch::UnknownFlood),
        forward: settings.has(Switch::Forward),
        learn: settings.has(Switch::Learn),
        arp_term: settings.has(Switch::ArpTerm),
        arp_ufwd: settings.has(Switch::ArpForward),
        mac_age: settings.mac_age,
        bd_tag: Text::from(settings.tag.as_str()),
        bvi_sw_if_index: index(bvi),
        uu_fwd_sw_if_index: index(unknown),
        n_sw_ifs: shoal_message::Count::default(),
        sw_if_details: bridges.members(number).ok()?.into_iter().map(member).collect(),
    })
}

impl Dump for BridgeDomainDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = BridgeDomainDetails> + 'static {
        let bridges = bridges(call).ok();
        let numbers = bridges.as_ref().map(|bridges| bridges.numbers()).unwrap_or_default();
        let (only, member) = (self.bd_id, self.sw_if_index);
        let wanted = numbers.into_iter().filter(move |number| only == u32::MAX || only == *number);
        wanted.filter_map(move |number| details(bridges.as_ref()?, number)).filter(move |details| {
            member == InterfaceIndex::NONE || details.sw_if_details.iter().any(|m| m.sw_if_index == member)
        })
    }
}

/// What can be switched in a domain: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("BRIDGE_API_FLAG_NONE", 0)]
#[entry("BRIDGE_API_FLAG_LEARN", 1)]
#[entry("BRIDGE_API_FLAG_FWD", 2)]
#[entry("BRIDGE_API_FLAG_FLOOD", 4)]
#[entry("BRIDGE_API_FLAG_UU_FLOOD", 8)]
#[entry("BRIDGE_API_FLAG_ARP_TERM", 16)]
#[entry("BRIDGE_API_FLAG_ARP_UFWD", 32)]
pub struct BdFlags(pub u32);

/// Switches something in a domain on or off.
#[derive(Message)]
#[message(request, reply = BridgeFlagsReply)]
pub struct BridgeFlags {
    pub bd_id: u32,
    pub is_set: bool,
    pub flags: BdFlags,
}

/// All features of its members.
#[derive(Message)]
#[message(reply)]
pub struct BridgeFlagsReply {
    pub retval: i32,
    pub resulting_feature_bitmap: u32,
}

impl Request for BridgeFlags {
    fn handle(self, call: &Call) -> Result<BridgeFlagsReply, Retval> {
        let bridges = bridges(call)?;
        bridges.settings(self.bd_id).map_err(no_entry)?;
        for switch in Switch::ALL {
            if self.flags.0 & switch.bit() != 0 {
                bridges.switch(self.bd_id, switch, self.is_set)?;
            }
        }
        let resulting_feature_bitmap = bridges.features(self.bd_id)?.number(Input::Xconnect);
        Ok(BridgeFlagsReply { retval: 0, resulting_feature_bitmap })
    }
}

/// Says after how many minutes stations are forgotten.
#[derive(Message)]
#[message(request)]
pub struct BridgeDomainSetMacAge {
    pub bd_id: u32,
    /// 0: never.
    pub mac_age: u8,
}

impl Request for BridgeDomainSetMacAge {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(bridges(call)?.set_age(self.bd_id, self.mac_age)?)
    }
}

/// Says how many stations may be learned in a domain.
#[derive(Message)]
#[message(request)]
pub struct BridgeDomainSetLearnLimit {
    pub bd_id: u32,
    pub learn_limit: u32,
}

impl Request for BridgeDomainSetLearnLimit {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(bridges(call)?.set_learn_limit(self.bd_id, Some(self.learn_limit))?)
    }
}

/// Says how many stations may be learned in domains that are created from now on.
#[derive(Message)]
#[message(request)]
pub struct BridgeDomainSetDefaultLearnLimit {
    pub learn_limit: u32,
}

impl Request for BridgeDomainSetDefaultLearnLimit {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        bridges(call)?.set_default_learn_limit(self.learn_limit);
        Ok(())
    }
}

/// What a member is there for.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum L2PortType {
    /// Stations are behind it.
    #[entry("L2_API_PORT_TYPE_NORMAL")]
    Normal = 0,
    /// The domain's packets are routed there.
    #[entry("L2_API_PORT_TYPE_BVI")]
    Bvi = 1,
    /// It gets what is for unknown stations.
    #[entry("L2_API_PORT_TYPE_UU_FWD")]
    UuFwd = 2,
}

/// Makes an interface a member of a domain, or routes its packets again.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetL2Bridge {
    pub rx_sw_if_index: InterfaceIndex,
    pub bd_id: u32,
    pub port_type: L2PortType,
    pub shg: u8,
    #[preset("true")]
    pub enable: bool,
}

impl Request for SwInterfaceSetL2Bridge {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let bridges = bridges(call)?;
        let interface = there(&bridges, self.rx_sw_if_index)?;
        if !self.enable {
            return Ok(bridges.leave(interface)?);
        }
        let role = match self.port_type {
            L2PortType::Normal => Role::Normal,
            L2PortType::Bvi => Role::Bvi,
            L2PortType::UuFwd => Role::UnknownForward,
        };
        Ok(bridges.join_or_create(interface, self.bd_id, self.shg, role)?)
    }
}

/// Which station has an address.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct BdIpMac {
    pub bd_id: u32,
    pub ip: IpAddr,
    pub mac: MacAddress,
}

/// Says which station has an address, for those who ask, or that it does not.
#[derive(Message)]
#[message(request)]
pub struct BdIpMacAddDel {
    #[preset("true")]
    pub is_add: bool,
    pub entry: BdIpMac,
}

impl Request for BdIpMacAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let bridges = bridges(call)?;
        let BdIpMac { bd_id, ip, mac } = self.entry;
        let mac = shoal_wire::MacAddress(mac.0);
        bridges.settings(bd_id).map_err(no_entry)?;
        if self.is_add {
            return Ok(bridges.bind(bd_id, ip, mac)?);
        }
        bridges.unbind(bd_id, ip, mac).map_err(|_| Retval::UNSPECIFIED)
    }
}

/// No station has any address.
#[derive(Message)]
#[message(request)]
pub struct BdIpMacFlush {
    pub bd_id: u32,
}

impl Request for BdIpMacFlush {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(bridges(call)?.unbind_all(self.bd_id)?)
    }
}

/// Asks which stations have which addresses.
#[derive(Message)]
#[message(request, details = BdIpMacDetails)]
pub struct BdIpMacDump {
    /// All bits set for all.
    pub bd_id: u32,
}

/// A station and its address.
#[derive(Message)]
#[message(reply)]
pub struct BdIpMacDetails {
    pub entry: BdIpMac,
}

impl Dump for BdIpMacDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = BdIpMacDetails> + 'static {
        let bridges = bridges(call).ok();
        let numbers = bridges.as_ref().map(|bridges| bridges.numbers()).unwrap_or_default();
        let only = self.bd_id;
        let wanted = numbers.into_iter().filter(move |number| only == u32::MAX || only == *number);
        wanted.flat_map(move |bd_id| {
            let all = bridges.as_ref().and_then(|bridges| bridges.bindings(bd_id).ok()).unwrap_or_default();
            all.into_iter()
                .map(move |(ip, mac)| BdIpMacDetails { entry: BdIpMac { bd_id, ip, mac: MacAddress(mac.0) } })
        })
    }
}
