//! VPP's `lldp.api`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_graph::clock::Time;
use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Get, Request};

use crate::pdu::{Id, MOST_ID};
use crate::{Lldp, LldpError, Look, OnInterface, Settings};

/// The messages.
pub static LLDP: ApiPart = ApiPart {
    file: "lldp",
    folder: Folder::Plugins,
    version: "2.0.0",
    messages: &[
        ApiMessage::request::<LldpConfig>(),
        ApiMessage::request::<SwInterfaceSetLldp>(),
        ApiMessage::get::<LldpDump>(),
        ApiMessage::sent::<LldpDumpReply>(),
        ApiMessage::sent::<LldpDetails>(),
    ],
};

/// What an identity of a port is.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("PORT_ID_SUBTYPE_RESERVED", 0)]
#[entry("PORT_ID_SUBTYPE_INTF_ALIAS", 1)]
#[entry("PORT_ID_SUBTYPE_PORT_COMP", 2)]
#[entry("PORT_ID_SUBTYPE_MAC_ADDR", 3)]
#[entry("PORT_ID_SUBTYPE_NET_ADDR", 4)]
#[entry("PORT_ID_SUBTYPE_INTF_NAME", 5)]
#[entry("PORT_ID_SUBTYPE_AGENT_CIRCUIT_ID", 6)]
#[entry("PORT_ID_SUBTYPE_LOCAL", 7)]
pub struct PortIdSubtype(pub u32);

/// What an identity of a chassis is.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("CHASSIS_ID_SUBTYPE_RESERVED", 0)]
#[entry("CHASSIS_ID_SUBTYPE_CHASSIS_COMP", 1)]
#[entry("CHASSIS_ID_SUBTYPE_INTF_ALIAS", 2)]
#[entry("CHASSIS_ID_SUBTYPE_PORT_COMP", 3)]
#[entry("CHASSIS_ID_SUBTYPE_MAC_ADDR", 4)]
#[entry("CHASSIS_ID_SUBTYPE_NET_ADDR", 5)]
#[entry("CHASSIS_ID_SUBTYPE_INTF_NAME", 6)]
#[entry("CHASSIS_ID_SUBTYPE_LOCAL", 7)]
pub struct ChassisIdSubtype(pub u32);

/// Sets what is the same on all interfaces.
#[derive(Message)]
#[message(request)]
pub struct LldpConfig {
    /// For how many intervals an announcement holds; 0 for as many as now.
    pub tx_hold: u32,
    /// Seconds between PDUs; 0 for as many as now.
    pub tx_interval: u32,
    /// The router's name.
    pub system_name: String,
}

/// Speaks LLDP on an interface, or no longer.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetLldp {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// An address the router is managed by; all zero for none.
    pub mgmt_ip4: Ipv4Addr,
    /// The same of IPv6.
    pub mgmt_ip6: Ipv6Addr,
    /// Which object of SNMP describes it, up to the first zero byte.
    pub mgmt_oid: [u8; 128],
    /// Whether it is to speak.
    #[preset("true")]
    pub enable: bool,
    /// What the interface is for.
    pub port_desc: String,
}

/// Asks for all interfaces that speak LLDP.
#[derive(Message)]
#[message(request, reply = LldpDumpReply, details = LldpDetails)]
pub struct LldpDump {
    /// Where to go on; 0 to begin.
    pub cursor: u32,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
pub struct LldpDumpReply {
    pub retval: i32,
    /// Where to go on; all bits set at the end.
    pub cursor: u32,
}

/// An interface, and who is at the other end of its link.
#[derive(Message)]
#[message(reply)]
pub struct LldpDetails {
    pub sw_if_index: InterfaceIndex,
    /// When the neighbour was last heard, in seconds since the start; 0: never.
    pub last_heard: f64,
    /// When a PDU was last sent.
    pub last_sent: f64,
    pub chassis_id: [u8; 64],
    pub chassis_id_len: u8,
    pub port_id: [u8; 64],
    pub port_id_len: u8,
    /// For how many seconds what the neighbour says holds.
    pub ttl: u16,
    pub port_id_subtype: PortIdSubtype,
    pub chassis_id_subtype: ChassisIdSubtype,
}

fn lldp(call: &Call) -> Result<Rc<Lldp>, Retval> {
    call.get::<Lldp>().map_err(|_| Retval::UNSPECIFIED)
}

fn retval(error: LldpError) -> Retval {
    match error {
        LldpError::Range { .. } | LldpError::TooLong(..) => Retval::INVALID_ARGUMENT,
        LldpError::Unfit(..) => Retval::INVALID_SW_IF_INDEX,
        LldpError::Taken(_) => Retval::UNSPECIFIED,
        LldpError::Interface(e) => e.into(),
    }
}

impl Request for LldpConfig {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let lldp = lldp(call)?;
        let old = lldp.settings();
        let kept = |new: u32, old: u32| if new == 0 { old } else { new };
        let new = Settings {
            system_name: if self.system_name.is_empty() { old.system_name } else { self.system_name },
            tx_hold: kept(self.tx_hold, old.tx_hold),
            tx_interval: kept(self.tx_interval, old.tx_interval),
        };
        lldp.set(new).map_err(retval)
    }
}

impl Request for SwInterfaceSetLldp {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (lldp, index) = (lldp(call)?, SwIfIndex(self.sw_if_index.0));
        if !self.enable {
            return lldp.disable(index).map_err(retval);
        }
        let (ip4, ip6) = (self.mgmt_ip4, self.mgmt_ip6);
        let oid = self.mgmt_oid.iter().copied().take_while(|byte| *byte != 0).collect();
        let on = OnInterface {
            description: self.port_desc,
            management_ip4: (!ip4.is_unspecified()).then_some(ip4),
            management_ip6: (!ip6.is_unspecified()).then_some(ip6),
            management_oid: oid,
        };
        lldp.enable(index, on).map_err(retval)
    }
}

fn bytes(id: &Id) -> ([u8; MOST_ID], u8) {
    let mut all = [0; MOST_ID];
    all.iter_mut().zip(id.bytes()).for_each(|(to, from)| *to = *from);
    (all, id.bytes().len() as u8)
}

fn details(look: &Look) -> LldpDetails {
    let none = Id::new(0, &[]);
    let (chassis, port, ttl) =
        look.heard.map_or((none, none, 0), |(neighbor, _)| (neighbor.chassis, neighbor.port, neighbor.ttl));
    let ((chassis_id, chassis_id_len), (port_id, port_id_len)) = (bytes(&chassis), bytes(&port));
    LldpDetails {
        sw_if_index: InterfaceIndex(look.index.0),
        last_heard: look.heard.map_or(0.0, |(_, at)| at.seconds()),
        last_sent: look.last_sent.map_or(0.0, Time::seconds),
        chassis_id,
        chassis_id_len,
        port_id,
        port_id_len,
        ttl,
        port_id_subtype: PortIdSubtype(port.subtype.into()),
        chassis_id_subtype: ChassisIdSubtype(chassis.subtype.into()),
    }
}

impl Get for LldpDump {
    fn get(self, call: &Call) -> Result<(Vec<LldpDetails>, LldpDumpReply), Retval> {
        /// Details of one answer at most.
        const PAGE: usize = 500;
        let all = lldp(call)?.list();
        let mut left = all.iter().filter(|look| look.index.0 >= self.cursor);
        let page = left.by_ref().take(PAGE).map(details).collect();
        let (retval, cursor) = left.next().map_or((0, u32::MAX), |next| (Retval::EAGAIN.0, next.index.0));
        Ok((page, LldpDumpReply { retval, cursor }))
    }
}
