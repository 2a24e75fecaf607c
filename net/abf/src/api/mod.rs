//! Messages: `abf.api`. A policy's rule is an access list there, which this router does not have: policies with a rule are
//! made on the command line, those for all packets by a message.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

pub mod policy;

use std::ops::Bound;
use std::rc::Rc;

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::{Abf, AbfError};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "abf",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<AbfPluginGetVersion>(),
        ApiMessage::sent::<AbfPluginGetVersionReply>(),
        ApiMessage::request::<policy::AbfPolicyAddDel>(),
        ApiMessage::sent::<policy::AbfPolicyDetails>(),
        ApiMessage::dump::<policy::AbfPolicyDump>(),
        ApiMessage::request::<AbfItfAttachAddDel>(),
        ApiMessage::sent::<AbfItfAttachDetails>(),
        ApiMessage::dump::<AbfItfAttachDump>(),
    ],
};

impl From<AbfError> for Retval {
    fn from(error: AbfError) -> Self {
        match error {
            AbfError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            AbfError::NoPolicy { .. } | AbfError::OtherRule { .. } | AbfError::Fib(_) => {
                Retval::INVALID_VALUE
            }
            AbfError::NoPath { .. } | AbfError::NotAttached { .. } => Retval::NO_SUCH_ENTRY,
            AbfError::Attached { .. } => Retval::INSTANCE_IN_USE,
            AbfError::Already { .. } => Retval::ENTRY_ALREADY_EXISTS,
            AbfError::Family { .. } => Retval::INVALID_ADDRESS_FAMILY,
            AbfError::TooMany(_) => Retval::LIMIT_EXCEEDED,
        }
    }
}

fn abf(call: &Call) -> Result<Rc<Abf>, Retval> {
    call.get::<Abf>().map_err(|_| Retval::UNSPECIFIED)
}

/// Asks for the version of these messages.
#[derive(Message)]
#[message(request, reply = AbfPluginGetVersionReply)]
pub struct AbfPluginGetVersion {}

/// The version of these messages.
#[derive(Message)]
#[message(reply)]
pub struct AbfPluginGetVersionReply {
    pub major: u32,
    pub minor: u32,
}

impl Request for AbfPluginGetVersion {
    fn handle(self, _: &Call) -> Result<AbfPluginGetVersionReply, Retval> {
        Ok(AbfPluginGetVersionReply { major: 1, minor: 0 })
    }
}

/// A policy that is asked about an interface's packets.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbfItfAttach {
    pub policy_id: u32,
    pub sw_if_index: InterfaceIndex,
    /// Policies of a lower one are asked first.
    pub priority: u32,
    /// Whether IPv6 packets are meant, else those of IPv4.
    pub is_ipv6: bool,
}

/// Asks a policy about packets that come in by an interface, or no longer.
#[derive(Message)]
#[message(request)]
pub struct AbfItfAttachAddDel {
    pub is_add: bool,
    pub attach: AbfItfAttach,
}

impl Request for AbfItfAttachAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (abf, AbfItfAttach { policy_id, sw_if_index, priority, is_ipv6 }) = (abf(call)?, self.attach);
        let family = if is_ipv6 { Family::Ip6 } else { Family::Ip4 };
        let interface = SwIfIndex(sw_if_index.0);
        Ok(if self.is_add {
            abf.attach(family, interface, policy_id, priority)
        } else {
            abf.detach(family, interface, policy_id)
        }?)
    }
}

/// A policy that is asked about an interface's packets.
#[derive(Message)]
#[message(reply)]
pub struct AbfItfAttachDetails {
    pub attach: AbfItfAttach,
}

/// Asks which policies are asked about which packets.
#[derive(Message)]
#[message(request, details = AbfItfAttachDetails)]
pub struct AbfItfAttachDump {}

impl Dump for AbfItfAttachDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = AbfItfAttachDetails> + 'static {
        let (abf, mut after) = (call.get::<Abf>().ok(), Bound::Unbounded);
        std::iter::from_fn(move || {
            let info = abf.as_ref()?.attachment_after(after)?;
            after = Bound::Excluded(info);
            Some(AbfItfAttachDetails {
                attach: AbfItfAttach {
                    policy_id: info.policy,
                    sw_if_index: InterfaceIndex(info.interface.0),
                    priority: info.priority,
                    is_ipv6: info.family == Family::Ip6,
                },
            })
        })
    }
}
