//! `create_subif`, `create_vlan_subif`, `delete_subif`.

use std::rc::Rc;

use shoal_interface::{Exact, Inner, InterfaceError, Match, SwIfIndex, TagKind, Vid};
use shoal_message::{InterfaceIndex, Message, Retval, SubIfFlags};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::{Ethernet, SubError};

/// The messages.
pub(crate) static API: ApiPart = ApiPart {
    file: "interface",
    folder: Folder::Core,
    version: "3.2.4",
    messages: &[
        ApiMessage::request::<CreateVlanSubif>(),
        ApiMessage::sent::<CreateVlanSubifReply>(),
        ApiMessage::request::<CreateSubif>(),
        ApiMessage::sent::<CreateSubifReply>(),
        ApiMessage::request::<DeleteSubif>(),
    ],
};

impl From<SubError> for Retval {
    fn from(error: SubError) -> Self {
        match error {
            SubError::NotEthernet(_) | SubError::IsSub(..) => Retval::INVALID_INTERFACE,
            SubError::Member(..) => Retval::BOND_SLAVE_NOT_ALLOWED,
            SubError::NoVlan | SubError::NoSuchVlan(_) => Retval::INVALID_VLAN,
            SubError::Exists(_) | SubError::Interface(InterfaceError::Exists(_)) => {
                Retval::SUBIF_ALREADY_EXISTS
            }
            SubError::AnyExact | SubError::OuterAny | SubError::InUse(_) | SubError::Full => {
                Retval::SUBIF_CREATE_FAILED
            }
            SubError::NotSub(_) | SubError::End(..) => Retval::INVALID_SUB_SW_IF_INDEX,
            SubError::Interface(e) => e.into(),
        }
    }
}

fn ethernet(call: &Call) -> Result<Rc<Ethernet>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// Creates a sub-interface for the frames of one VLAN with one tag.
#[derive(Message)]
#[message(request, reply = CreateVlanSubifReply)]
pub struct CreateVlanSubif {
    /// The port.
    pub sw_if_index: InterfaceIndex,
    /// The VLAN, 1 to 4095, and the sub-interface's number.
    pub vlan_id: u32,
}

/// The new sub-interface.
#[derive(Message)]
#[message(reply)]
pub struct CreateVlanSubifReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for CreateVlanSubif {
    fn handle(self, call: &Call) -> Result<CreateVlanSubifReply, Retval> {
        let vid = u16::try_from(self.vlan_id).ok().and_then(Vid::new).filter(|vid| *vid != Vid::NONE);
        let takes = Match::exact_dot1q(vid.ok_or(Retval::INVALID_VLAN)?);
        let port = SwIfIndex(self.sw_if_index.0);
        let created = ethernet(call)?.create_sub(port, self.vlan_id, takes).map_err(|e| match e {
            // VPP's words for the same.
            SubError::Exists(_) => Retval::VLAN_ALREADY_EXISTS,
            SubError::InUse(_) | SubError::Full => Retval::INVALID_REGISTRATION,
            e => e.into(),
        })?;
        Ok(CreateVlanSubifReply { retval: 0, sw_if_index: InterfaceIndex(created.0) })
    }
}

/// Creates a sub-interface for frames with some tags.
#[derive(Message)]
#[message(request, reply = CreateSubifReply)]
pub struct CreateSubif {
    /// The port.
    pub sw_if_index: InterfaceIndex,
    /// The sub-interface's number on it.
    pub sub_id: u32,
    /// How many tags frames have, of which kind, and whether further ones may follow.
    pub sub_if_flags: SubIfFlags,
    /// The VLAN of the outer tag.
    pub outer_vlan_id: u16,
    /// The VLAN of the inner tag.
    pub inner_vlan_id: u16,
}

/// The new sub-interface.
#[derive(Message)]
#[message(reply)]
pub struct CreateSubifReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl CreateSubif {
    fn takes(&self) -> Result<Match, SubError> {
        let has = |bit: u32| self.sub_if_flags.0 & bit != 0;
        if has(SubIfFlags::NO_TAGS) {
            return Ok(Match::Untagged);
        }
        if has(SubIfFlags::DEFAULT) {
            return Ok(Match::Default);
        }
        if has(SubIfFlags::OUTER_VLAN_ID_ANY) {
            return Err(SubError::OuterAny);
        }
        let vid = |id: u16| Vid::new(id).ok_or(SubError::NoSuchVlan(id.into()));
        let inner = match () {
            () if has(SubIfFlags::ONE_TAG) => Inner::None,
            () if has(SubIfFlags::INNER_VLAN_ID_ANY) => Inner::Any,
            () if has(SubIfFlags::TWO_TAGS) => Inner::Id(vid(self.inner_vlan_id)?),
            // Without a number of tags there is one at least: the outer one.
            () => Inner::None,
        };
        let kind = if has(SubIfFlags::DOT1AD) { TagKind::Dot1ad } else { TagKind::Dot1q };
        let exact = if has(SubIfFlags::EXACT_MATCH) { Exact::Yes } else { Exact::No };
        Ok(Match::Tags { kind, outer: vid(self.outer_vlan_id)?, inner, exact })
    }
}

impl Request for CreateSubif {
    fn handle(self, call: &Call) -> Result<CreateSubifReply, Retval> {
        let takes = self.takes()?;
        let created = ethernet(call)?.create_sub(SwIfIndex(self.sw_if_index.0), self.sub_id, takes)?;
        Ok(CreateSubifReply { retval: 0, sw_if_index: InterfaceIndex(created.0) })
    }
}

/// Deletes a sub-interface.
#[derive(Message)]
#[message(request)]
pub struct DeleteSubif {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for DeleteSubif {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(ethernet(call)?.delete_sub(SwIfIndex(self.sw_if_index.0))?)
    }
}
