//! Messages of the binary API: where fragments are put together, and within which limits.

use std::rc::Rc;

use shoal_buffer::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::{Families, Kind, Reassembly, ReassemblyError, Settings, Side, Version};

/// Messages that VPP has in `ip.api`.
pub static IP: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[
        ApiMessage::request::<IpReassemblySet>(),
        ApiMessage::request::<IpReassemblyGet>(),
        ApiMessage::sent::<IpReassemblyGetReply>(),
        ApiMessage::request::<IpReassemblyEnableDisable>(),
        ApiMessage::request::<IpLocalReassEnableDisable>(),
        ApiMessage::request::<IpLocalReassGet>(),
        ApiMessage::sent::<IpLocalReassGetReply>(),
    ],
};

/// The name by which clients want to know what fragments' transport headers say.
const USER: &str = "api";

/// What is done with fragments.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
enum IpReassType {
    /// They become one packet.
    #[entry("IP_REASS_TYPE_FULL")]
    Full = 0,
    /// They stay what they are, and each knows what the first says of ports.
    #[entry("IP_REASS_TYPE_SHALLOW_VIRTUAL")]
    ShallowVirtual = 1,
}

/// Sets limits and times.
#[derive(Message)]
#[message(request)]
struct IpReassemblySet {
    /// How long a datagram may take.
    timeout_ms: u32,
    /// Datagrams at a time on each thread.
    max_reassemblies: u32,
    /// Fragments of a datagram.
    max_reassembly_length: u32,
    /// How often is looked for datagrams whose time is over.
    expire_walk_interval_ms: u32,
    is_ip6: bool,
    r#type: IpReassType,
}

/// Asks for limits and times.
#[derive(Message)]
#[message(request, reply = IpReassemblyGetReply)]
struct IpReassemblyGet {
    is_ip6: bool,
    r#type: IpReassType,
}

/// Limits and times.
#[derive(Message)]
#[message(reply)]
struct IpReassemblyGetReply {
    retval: i32,
    /// How long a datagram may take.
    timeout_ms: u32,
    /// Datagrams at a time on each thread.
    max_reassemblies: u32,
    /// Fragments of a datagram.
    max_reassembly_length: u32,
    /// How often is looked for datagrams whose time is over.
    expire_walk_interval_ms: u32,
    is_ip6: bool,
}

/// Switches reassembly of what an interface receives on or off.
#[derive(Message)]
#[message(request)]
struct IpReassemblyEnableDisable {
    /// The interface.
    sw_if_index: InterfaceIndex,
    /// Whether that of IPv4 is on.
    enable_ip4: bool,
    /// Whether that of IPv6 is on.
    enable_ip6: bool,
    r#type: IpReassType,
}

/// Switches reassembly of packets for the router itself on or off.
#[derive(Message)]
#[message(request)]
struct IpLocalReassEnableDisable {
    /// Whether that of IPv4 is on.
    enable_ip4: bool,
    /// Whether that of IPv6 is on.
    enable_ip6: bool,
}

/// Asks whether packets for the router itself are put together.
#[derive(Message)]
#[message(request, reply = IpLocalReassGetReply)]
struct IpLocalReassGet {}

/// Whether packets for the router itself are put together.
#[derive(Message)]
#[message(reply)]
struct IpLocalReassGetReply {
    retval: i32,
    /// Those of IPv4.
    ip4_is_enabled: bool,
    /// Those of IPv6.
    ip6_is_enabled: bool,
}

fn reassembly(call: &Call) -> Result<Rc<Reassembly>, Retval> {
    call.get::<Reassembly>().map_err(|_| Retval::UNSPECIFIED)
}

fn retval(error: &ReassemblyError) -> Retval {
    match error {
        ReassemblyError::Range { .. } => Retval::INVALID_VALUE,
        ReassemblyError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
        ReassemblyError::Graph(_) => Retval::CANNOT_ENABLE_DISABLE_FEATURE,
    }
}

const fn version(is_ip6: bool) -> Version {
    if is_ip6 { Version::Ip6 } else { Version::Ip4 }
}

impl From<IpReassType> for Kind {
    fn from(kind: IpReassType) -> Kind {
        match kind {
            IpReassType::Full => Kind::Full,
            IpReassType::ShallowVirtual => Kind::ShallowVirtual,
        }
    }
}

impl Request for IpReassemblySet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let settings = Settings {
            timeout_ms: self.timeout_ms,
            max_reassemblies: self.max_reassemblies,
            max_fragments: self.max_reassembly_length,
            expire_walk_interval_ms: self.expire_walk_interval_ms,
        };
        let done = reassembly(call)?.set(version(self.is_ip6), self.r#type.into(), settings);
        done.map_err(|e| retval(&e))
    }
}

impl Request for IpReassemblyGet {
    fn handle(self, call: &Call) -> Result<IpReassemblyGetReply, Retval> {
        let settings = reassembly(call)?.settings(version(self.is_ip6), self.r#type.into());
        Ok(IpReassemblyGetReply {
            retval: 0,
            timeout_ms: settings.timeout_ms,
            max_reassemblies: settings.max_reassemblies,
            max_reassembly_length: settings.max_fragments,
            expire_walk_interval_ms: settings.expire_walk_interval_ms,
            is_ip6: self.is_ip6,
        })
    }
}

impl Request for IpReassemblyEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (reassembly, interface) = (reassembly(call)?, SwIfIndex(self.sw_if_index.0));
        let families = Families { ip4: self.enable_ip4, ip6: self.enable_ip6 };
        let done = match self.r#type {
            IpReassType::Full => reassembly.set_interface(interface, families),
            IpReassType::ShallowVirtual => {
                let set = |version, on| reassembly.use_sv((interface, version, Side::Input), USER, on);
                set(Version::Ip4, families.ip4).and_then(|()| set(Version::Ip6, families.ip6))
            }
        };
        done.map_err(|e| retval(&e))
    }
}

impl Request for IpLocalReassEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let families = Families { ip4: self.enable_ip4, ip6: self.enable_ip6 };
        reassembly(call)?.set_local(&call.control, families).map_err(|e| retval(&e))
    }
}

impl Request for IpLocalReassGet {
    fn handle(self, call: &Call) -> Result<IpLocalReassGetReply, Retval> {
        let Families { ip4, ip6 } = reassembly(call)?.local();
        Ok(IpLocalReassGetReply { retval: 0, ip4_is_enabled: ip4, ip6_is_enabled: ip6 })
    }
}
