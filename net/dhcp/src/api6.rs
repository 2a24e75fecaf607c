//! Messages about DHCPv6 clients: `dhcp6_ia_na_client_cp.api`, `dhcp6_pd_client_cp.api`, and those of `dhcp.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]
#![allow(non_snake_case, reason = "clients know two fields by the names T1 and T2")]

use std::net::Ipv6Addr;
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{Count, InterfaceIndex, Ip6AddressWithPrefix, Ip6Prefix, Message, Retval, Text, Value};
use shoal_module::Control;
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request, Subscribers};

use crate::client_message6::{Association, Item, Wanted};
use crate::exchange6::Question;
use crate::{Dhcp, Replied};

/// Messages about addresses of interfaces.
pub static ADDRESSES: ApiPart = ApiPart {
    file: "dhcp6_ia_na_client_cp",
    folder: Folder::Plugins,
    version: "1.0.1",
    messages: &[ApiMessage::request::<Dhcp6ClientEnableDisable>()],
};

/// Messages about prefixes.
pub static PREFIXES: ApiPart = ApiPart {
    file: "dhcp6_pd_client_cp",
    folder: Folder::Plugins,
    version: "2.0.0",
    messages: &[
        ApiMessage::request::<Dhcp6PdClientEnableDisable>(),
        ApiMessage::request::<Ip6AddDelAddressUsingPrefix>(),
    ],
};

/// A number that stands for no server.
const NO_SERVER: u32 = u32::MAX;

fn dhcp(call: &Call) -> Result<Rc<Dhcp>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

fn prefix(address: Ipv6Addr, len: u8) -> Result<shoal_wire::Ip6Prefix, Retval> {
    shoal_wire::Ip6Prefix::new(address, len).map_err(|_| Retval::INVALID_VALUE)
}

/// Has an interface get addresses from a DHCPv6 server, or no longer.
#[derive(Message)]
#[message(request)]
pub struct Dhcp6ClientEnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub enable: bool,
}

impl Request for Dhcp6ClientEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (dhcp, interface) = (dhcp(call)?, SwIfIndex(self.sw_if_index.0));
        Ok(if self.enable {
            dhcp.add_client6(interface, Wanted::Addresses, "")
        } else {
            dhcp.del_client6(interface, Wanted::Addresses)
        }?)
    }
}

/// Has an interface get prefixes for a group from a DHCPv6 server, or no longer.
#[derive(Message)]
#[message(request)]
pub struct Dhcp6PdClientEnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub prefix_group: Text<64>,
    pub enable: bool,
}

impl Request for Dhcp6PdClientEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (dhcp, interface) = (dhcp(call)?, SwIfIndex(self.sw_if_index.0));
        Ok(if self.enable {
            dhcp.add_client6(interface, Wanted::Prefixes, self.prefix_group.as_str())
        } else {
            dhcp.del_client6(interface, Wanted::Prefixes)
        }?)
    }
}

/// Gives an interface an address from a group's prefix, or takes it away.
#[derive(Message)]
#[message(request)]
pub struct Ip6AddDelAddressUsingPrefix {
    pub sw_if_index: InterfaceIndex,
    pub prefix_group: Text<64>,
    pub address_with_prefix: Ip6AddressWithPrefix,
    pub is_add: bool,
}

impl Request for Ip6AddDelAddressUsingPrefix {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let Self { sw_if_index, prefix_group, address_with_prefix, is_add } = self;
        let Ip6AddressWithPrefix(Ip6Prefix { address, len }) = address_with_prefix;
        let (dhcp, interface, rest) = (dhcp(call)?, SwIfIndex(sw_if_index.0), prefix(address, len)?);
        let group = prefix_group.as_str();
        Ok(if is_add {
            dhcp.add_from_prefix(interface, group, rest)
        } else {
            dhcp.del_from_prefix(interface, group, rest)
        }?)
    }
}

/// Which message of DHCPv6.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("DHCPV6_MSG_API_SOLICIT", 1)]
#[entry("DHCPV6_MSG_API_ADVERTISE", 2)]
#[entry("DHCPV6_MSG_API_REQUEST", 3)]
#[entry("DHCPV6_MSG_API_CONFIRM", 4)]
#[entry("DHCPV6_MSG_API_RENEW", 5)]
#[entry("DHCPV6_MSG_API_REBIND", 6)]
#[entry("DHCPV6_MSG_API_REPLY", 7)]
#[entry("DHCPV6_MSG_API_RELEASE", 8)]
#[entry("DHCPV6_MSG_API_DECLINE", 9)]
#[entry("DHCPV6_MSG_API_RECONFIGURE", 10)]
#[entry("DHCPV6_MSG_API_INFORMATION_REQUEST", 11)]
#[entry("DHCPV6_MSG_API_RELAY_FORW", 12)]
#[entry("DHCPV6_MSG_API_RELAY_REPL", 13)]
pub struct Dhcpv6MsgType(pub u32);

/// An address and how long it is given for.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dhcp6AddressInfo {
    pub address: Ipv6Addr,
    pub valid_time: u32,
    pub preferred_time: u32,
}

/// A prefix and how long it is given for.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dhcp6PdPrefixInfo {
    pub prefix: Ip6Prefix,
    pub valid_time: u32,
    pub preferred_time: u32,
}

/// Sets the link-layer address, with what comes before it, that servers know the router by.
#[derive(Message)]
#[message(request)]
pub struct Dhcp6DuidLlSet {
    pub duid_ll: [u8; 10],
}

impl Request for Dhcp6DuidLlSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(dhcp(call)?.set_duid(&self.duid_ll)?)
    }
}

/// Takes answers of servers for clients of the binary API, or no longer.
#[derive(Message)]
#[message(request)]
pub struct Dhcp6ClientsEnableDisable {
    pub enable: bool,
}

impl Request for Dhcp6ClientsEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        dhcp(call)?.set_listens6(self.enable);
        Ok(())
    }
}

/// Sends a message about addresses until it is answered, or stops that.
#[derive(Message)]
#[message(request)]
pub struct Dhcp6SendClientMessage {
    pub sw_if_index: InterfaceIndex,
    pub server_index: u32,
    pub irt: u32,
    pub mrt: u32,
    pub mrc: u32,
    pub mrd: u32,
    pub stop: bool,
    pub msg_type: Dhcpv6MsgType,
    pub T1: u32,
    pub T2: u32,
    pub n_addresses: Count<u32>,
    #[counted_by(n_addresses)]
    pub addresses: Vec<Dhcp6AddressInfo>,
}

/// Sends a message about prefixes until it is answered, or stops that.
#[derive(Message)]
#[message(request)]
pub struct Dhcp6PdSendClientMessage {
    pub sw_if_index: InterfaceIndex,
    pub server_index: u32,
    pub irt: u32,
    pub mrt: u32,
    pub mrc: u32,
    pub mrd: u32,
    pub stop: bool,
    pub msg_type: Dhcpv6MsgType,
    pub T1: u32,
    pub T2: u32,
    pub n_prefixes: Count<u32>,
    #[counted_by(n_prefixes)]
    pub prefixes: Vec<Dhcp6PdPrefixInfo>,
}

/// What both have in common.
struct Sending {
    interface: SwIfIndex,
    server: u32,
    often: (u32, u32, u32, u32),
    kind: Dhcpv6MsgType,
    times: (u32, u32),
}

impl Sending {
    fn question(&self, items: Vec<Item>) -> Result<Question, Retval> {
        let (irt, mrt, mrc, mrd) = self.often;
        let kind = u8::try_from(self.kind.0).map_err(|_| Retval::INVALID_VALUE)?;
        let (t1, t2) = self.times;
        let association = Association { id: self.interface.0, t1, t2, items, status: 0 };
        let server = (self.server != NO_SERVER).then_some(self.server);
        Ok(Question { kind, server, irt, mrt, mrc, mrd, association })
    }
}

impl Request for Dhcp6SendClientMessage {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let sending = Sending {
            interface: SwIfIndex(self.sw_if_index.0),
            server: self.server_index,
            often: (self.irt, self.mrt, self.mrc, self.mrd),
            kind: self.msg_type,
            times: (self.T1, self.T2),
        };
        let item = |info: &Dhcp6AddressInfo| Item {
            prefix: shoal_wire::Ip6Prefix::host(info.address),
            preferred: info.preferred_time,
            valid: info.valid_time,
        };
        let items = self.addresses.iter().map(item).collect();
        let question = if self.stop { None } else { Some(sending.question(items)?) };
        Ok(dhcp(call)?.ask6(sending.interface, Wanted::Addresses, question)?)
    }
}

impl Request for Dhcp6PdSendClientMessage {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let sending = Sending {
            interface: SwIfIndex(self.sw_if_index.0),
            server: self.server_index,
            often: (self.irt, self.mrt, self.mrc, self.mrd),
            kind: self.msg_type,
            times: (self.T1, self.T2),
        };
        let item = |info: &Dhcp6PdPrefixInfo| {
            let prefix = prefix(info.prefix.address, info.prefix.len)?;
            Ok(Item { prefix, preferred: info.preferred_time, valid: info.valid_time })
        };
        let items = self.prefixes.iter().map(item).collect::<Result<Vec<Item>, Retval>>()?;
        let question = if self.stop { None } else { Some(sending.question(items)?) };
        Ok(dhcp(call)?.ask6(sending.interface, Wanted::Prefixes, question)?)
    }
}

/// A server answered about addresses.
#[derive(Message)]
#[message(event)]
pub struct Dhcp6ReplyEvent {
    pub sw_if_index: InterfaceIndex,
    pub server_index: u32,
    pub msg_type: Dhcpv6MsgType,
    pub T1: u32,
    pub T2: u32,
    pub inner_status_code: u16,
    pub status_code: u16,
    pub preference: u8,
    pub n_addresses: Count<u32>,
    #[counted_by(n_addresses)]
    pub addresses: Vec<Dhcp6AddressInfo>,
}

/// A server answered about prefixes.
#[derive(Message)]
#[message(event)]
pub struct Dhcp6PdReplyEvent {
    pub sw_if_index: InterfaceIndex,
    pub server_index: u32,
    pub msg_type: Dhcpv6MsgType,
    pub T1: u32,
    pub T2: u32,
    pub inner_status_code: u16,
    pub status_code: u16,
    pub preference: u8,
    pub n_prefixes: Count<u32>,
    #[counted_by(n_prefixes)]
    pub prefixes: Vec<Dhcp6PdPrefixInfo>,
}

/// Wants to know of answers about addresses, or no longer.
#[derive(Message)]
#[message(request, events = Dhcp6ReplyEvent)]
pub struct WantDhcp6ReplyEvents {
    pub enable_disable: u8,
    pub pid: u32,
}

/// Wants to know of answers about prefixes, or no longer.
#[derive(Message)]
#[message(request, events = Dhcp6PdReplyEvent)]
pub struct WantDhcp6PdReplyEvents {
    pub enable_disable: bool,
    pub pid: u32,
}

/// The clients that want events of addresses.
#[derive(Default)]
struct OfAddresses(Subscribers);

/// The clients that want events of prefixes.
#[derive(Default)]
struct OfPrefixes(Subscribers);

fn of_addresses(replied: &Replied) -> Dhcp6ReplyEvent {
    let of = &replied.association;
    let info = |item: &Item| Dhcp6AddressInfo {
        address: item.prefix.addr(),
        valid_time: item.valid,
        preferred_time: item.preferred,
    };
    Dhcp6ReplyEvent {
        sw_if_index: InterfaceIndex(replied.interface.0),
        server_index: replied.server,
        msg_type: Dhcpv6MsgType(replied.kind.into()),
        T1: of.t1,
        T2: of.t2,
        inner_status_code: of.status,
        status_code: replied.status,
        preference: replied.preference,
        n_addresses: Count::default(),
        addresses: of.items.iter().map(info).collect(),
    }
}

fn of_prefixes(replied: &Replied) -> Dhcp6PdReplyEvent {
    let of = &replied.association;
    let info = |item: &Item| Dhcp6PdPrefixInfo {
        prefix: Ip6Prefix { address: item.prefix.addr(), len: item.prefix.len() },
        valid_time: item.valid,
        preferred_time: item.preferred,
    };
    Dhcp6PdReplyEvent {
        sw_if_index: InterfaceIndex(replied.interface.0),
        server_index: replied.server,
        msg_type: Dhcpv6MsgType(replied.kind.into()),
        T1: of.t1,
        T2: of.t2,
        inner_status_code: of.status,
        status_code: replied.status,
        preference: replied.preference,
        n_prefixes: Count::default(),
        prefixes: of.items.iter().map(info).collect(),
    }
}

pub(crate) fn follow(control: &Rc<Control>, dhcp: &Dhcp) {
    let (addresses, prefixes) = (control.put(OfAddresses::default()), control.put(OfPrefixes::default()));
    let weak = Rc::downgrade(control);
    dhcp.observe_replies(move |replied| {
        let Some(control) = weak.upgrade() else { return };
        match replied.wanted {
            Wanted::Addresses => addresses.0.publish(&control, |()| true, &of_addresses(replied)),
            Wanted::Prefixes => prefixes.0.publish(&control, |()| true, &of_prefixes(replied)),
        }
    });
}

impl Request for WantDhcp6ReplyEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let watchers = call.get::<OfAddresses>().map_err(|_| Retval::UNSPECIFIED)?;
        watchers.0.set(call, self.pid, (), self.enable_disable != 0)
    }
}

impl Request for WantDhcp6PdReplyEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let watchers = call.get::<OfPrefixes>().map_err(|_| Retval::UNSPECIFIED)?;
        watchers.0.set(call, self.pid, (), self.enable_disable)
    }
}
