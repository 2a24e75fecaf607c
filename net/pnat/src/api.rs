//! Messages: `pnat.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, IpProto, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Get, Request};
use shoal_nat::Tuple;

use crate::{AttachedTo, Fields, Match, Place, Pnat, PnatError, Rewrite};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "pnat",
    folder: Folder::Plugins,
    version: "0.1.1",
    messages: &[
        ApiMessage::request::<PnatBindingAdd>(),
        ApiMessage::sent::<PnatBindingAddReply>(),
        ApiMessage::request::<PnatBindingAddV2>(),
        ApiMessage::sent::<PnatBindingAddV2Reply>(),
        ApiMessage::request::<PnatBindingDel>(),
        ApiMessage::request::<PnatBindingAttach>(),
        ApiMessage::request::<PnatBindingDetach>(),
        ApiMessage::get::<PnatBindingsGet>(),
        ApiMessage::sent::<PnatBindingsGetReply>(),
        ApiMessage::sent::<PnatBindingsDetails>(),
        ApiMessage::get::<PnatInterfacesGet>(),
        ApiMessage::sent::<PnatInterfacesGetReply>(),
        ApiMessage::sent::<PnatInterfacesDetails>(),
        ApiMessage::request::<PnatFlowLookup>(),
        ApiMessage::sent::<PnatFlowLookupReply>(),
    ],
};

/// Details of one answer at most.
const PAGE: usize = 500;

/// Fields of packets, and what is done: any of these bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("PNAT_SA", 1)]
#[entry("PNAT_DA", 2)]
#[entry("PNAT_SPORT", 4)]
#[entry("PNAT_DPORT", 8)]
#[entry("PNAT_COPY_BYTE", 16)]
#[entry("PNAT_CLEAR_BYTE", 32)]
#[entry("PNAT_PROTO", 64)]
pub struct PnatMask(pub u32);

/// Where packets are looked at.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("PNAT_IP4_INPUT", 0)]
#[entry("PNAT_IP4_OUTPUT", 1)]
#[entry("PNAT_ATTACHMENT_POINT_MAX", 2)]
pub struct PnatAttachmentPoint(pub u32);

/// Which packets.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct PnatMatchTuple {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub proto: IpProto,
    pub sport: u16,
    pub dport: u16,
    pub mask: PnatMask,
}

/// What becomes of them.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct PnatRewriteTuple {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub sport: u16,
    pub dport: u16,
    pub mask: PnatMask,
    /// Which byte is copied, counted from the IP header.
    pub from_offset: u8,
    /// Where to.
    pub to_offset: u8,
    /// Which byte becomes 0.
    pub clear_offset: u8,
}

impl From<PnatMatchTuple> for Match {
    fn from(of: PnatMatchTuple) -> Self {
        let tuple = Tuple { src: of.src.to_bits(), dst: of.dst.to_bits(), sport: of.sport, dport: of.dport };
        Match { mask: Fields(of.mask.0), tuple, protocol: of.proto.0 }
    }
}

impl From<Match> for PnatMatchTuple {
    fn from(of: Match) -> Self {
        PnatMatchTuple {
            src: Ipv4Addr::from_bits(of.tuple.src),
            dst: Ipv4Addr::from_bits(of.tuple.dst),
            proto: IpProto(of.protocol),
            sport: of.tuple.sport,
            dport: of.tuple.dport,
            mask: PnatMask(of.mask.0),
        }
    }
}

impl From<PnatRewriteTuple> for Rewrite {
    fn from(to: PnatRewriteTuple) -> Self {
        Rewrite {
            mask: Fields(to.mask.0),
            tuple: Tuple { src: to.src.to_bits(), dst: to.dst.to_bits(), sport: to.sport, dport: to.dport },
            from_offset: to.from_offset,
            to_offset: to.to_offset,
            clear_offset: to.clear_offset,
        }
    }
}

impl From<Rewrite> for PnatRewriteTuple {
    fn from(to: Rewrite) -> Self {
        PnatRewriteTuple {
            src: Ipv4Addr::from_bits(to.tuple.src),
            dst: Ipv4Addr::from_bits(to.tuple.dst),
            sport: to.tuple.sport,
            dport: to.tuple.dport,
            mask: PnatMask(to.mask.0),
            from_offset: to.from_offset,
            to_offset: to.to_offset,
            clear_offset: to.clear_offset,
        }
    }
}

impl From<PnatError> for Retval {
    fn from(error: PnatError) -> Self {
        match error {
            PnatError::OtherFields(..) => Retval(-2),
            PnatError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            // As VPP's, which has no other number for what is wrong with a binding.
            _ => Retval(-1),
        }
    }
}

fn pnat(call: &Call) -> Result<Rc<Pnat>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

fn place(interface: InterfaceIndex, attachment: PnatAttachmentPoint) -> Result<(SwIfIndex, Place), Retval> {
    let place = match attachment.0 {
        0 => Place::Input,
        1 => Place::Output,
        _ => return Err(Retval::INVALID_VALUE),
    };
    Ok((SwIfIndex(interface.0), place))
}

/// Makes a binding; the protocol is always looked at.
#[derive(Message)]
#[message(request, reply = PnatBindingAddReply)]
pub struct PnatBindingAdd {
    pub r#match: PnatMatchTuple,
    pub rewrite: PnatRewriteTuple,
}

/// The binding's number.
#[derive(Message)]
#[message(reply)]
pub struct PnatBindingAddReply {
    pub retval: i32,
    pub binding_index: u32,
}

impl Request for PnatBindingAdd {
    fn handle(self, call: &Call) -> Result<PnatBindingAddReply, Retval> {
        let mut of = Match::from(self.r#match);
        of.mask = of.mask.or(Fields::PROTO);
        let binding_index = pnat(call)?.add(of, self.rewrite.into())?;
        Ok(PnatBindingAddReply { retval: 0, binding_index })
    }
}

/// Makes a binding; the protocol is looked at if the mask says so.
#[derive(Message)]
#[message(request, reply = PnatBindingAddV2Reply)]
pub struct PnatBindingAddV2 {
    pub r#match: PnatMatchTuple,
    pub rewrite: PnatRewriteTuple,
}

/// The binding's number.
#[derive(Message)]
#[message(reply)]
pub struct PnatBindingAddV2Reply {
    pub retval: i32,
    pub binding_index: u32,
}

impl Request for PnatBindingAddV2 {
    fn handle(self, call: &Call) -> Result<PnatBindingAddV2Reply, Retval> {
        let binding_index = pnat(call)?.add(self.r#match.into(), self.rewrite.into())?;
        Ok(PnatBindingAddV2Reply { retval: 0, binding_index })
    }
}

/// Deletes a binding, wherever it is attached.
#[derive(Message)]
#[message(request)]
pub struct PnatBindingDel {
    pub binding_index: u32,
}

impl Request for PnatBindingDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(pnat(call)?.del(self.binding_index)?)
    }
}

/// Has a binding look at the packets of an interface.
#[derive(Message)]
#[message(request)]
pub struct PnatBindingAttach {
    pub sw_if_index: InterfaceIndex,
    pub attachment: PnatAttachmentPoint,
    pub binding_index: u32,
}

impl Request for PnatBindingAttach {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(pnat(call)?.attach(place(self.sw_if_index, self.attachment)?, self.binding_index)?)
    }
}

/// Has a binding look at the packets of an interface no longer.
#[derive(Message)]
#[message(request)]
pub struct PnatBindingDetach {
    pub sw_if_index: InterfaceIndex,
    pub attachment: PnatAttachmentPoint,
    pub binding_index: u32,
}

impl Request for PnatBindingDetach {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(pnat(call)?.detach(place(self.sw_if_index, self.attachment)?, self.binding_index)?)
    }
}

/// Asks for all bindings.
#[derive(Message)]
#[message(request, reply = PnatBindingsGetReply, details = PnatBindingsDetails)]
pub struct PnatBindingsGet {
    /// Where to go on; 0 to begin.
    pub cursor: u32,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
pub struct PnatBindingsGetReply {
    pub retval: i32,
    /// Where to go on; all bits set at the end.
    pub cursor: u32,
}

/// A binding.
#[derive(Message)]
#[message(reply)]
pub struct PnatBindingsDetails {
    pub r#match: PnatMatchTuple,
    pub rewrite: PnatRewriteTuple,
}

/// Where a list begins that a client asks for.
fn from(cursor: u32) -> u32 {
    if cursor == u32::MAX { 0 } else { cursor }
}

/// The return value and the cursor of an answer after which a list goes on there, or not.
fn rest(next: Option<u32>) -> (i32, u32) {
    next.map_or((0, u32::MAX), |next| (Retval::EAGAIN.0, next))
}

impl Get for PnatBindingsGet {
    fn get(self, call: &Call) -> Result<(Vec<PnatBindingsDetails>, PnatBindingsGetReply), Retval> {
        let mut left = pnat(call)?.bindings(from(self.cursor)).into_iter();
        let one = |(_, of, rewrite): (u32, Match, Rewrite)| PnatBindingsDetails {
            r#match: of.into(),
            rewrite: rewrite.into(),
        };
        let details = left.by_ref().take(PAGE).map(one).collect();
        let (retval, cursor) = rest(left.next().map(|(index, ..)| index));
        Ok((details, PnatBindingsGetReply { retval, cursor }))
    }
}

/// Asks for interfaces with bindings.
#[derive(Message)]
#[message(request, reply = PnatInterfacesGetReply, details = PnatInterfacesDetails)]
pub struct PnatInterfacesGet {
    /// Where to go on; 0 to begin.
    pub cursor: u32,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
pub struct PnatInterfacesGetReply {
    pub retval: i32,
    /// Where to go on; all bits set at the end.
    pub cursor: u32,
}

/// An interface with bindings: of what comes in, and of what goes out.
#[derive(Message)]
#[message(reply)]
pub struct PnatInterfacesDetails {
    pub sw_if_index: InterfaceIndex,
    pub enabled: [bool; 2],
    pub lookup_mask: [PnatMask; 2],
}

impl Get for PnatInterfacesGet {
    fn get(self, call: &Call) -> Result<(Vec<PnatInterfacesDetails>, PnatInterfacesGetReply), Retval> {
        let from = from(self.cursor);
        let mut left = pnat(call)?.interfaces().into_iter().filter(|(interface, _)| interface.0 >= from);
        let one =
            |(interface, AttachedTo { input, output }): (SwIfIndex, AttachedTo)| PnatInterfacesDetails {
                sw_if_index: InterfaceIndex(interface.0),
                enabled: [input.is_some(), output.is_some()],
                lookup_mask: [input, output].map(|mask| PnatMask(mask.unwrap_or_default().0)),
            };
        let details = left.by_ref().take(PAGE).map(one).collect();
        let (retval, cursor) = rest(left.next().map(|(interface, _)| interface.0));
        Ok((details, PnatInterfacesGetReply { retval, cursor }))
    }
}

/// Asks which binding a packet meets.
#[derive(Message)]
#[message(request, reply = PnatFlowLookupReply)]
pub struct PnatFlowLookup {
    pub sw_if_index: InterfaceIndex,
    pub attachment: PnatAttachmentPoint,
    /// The packet's fields.
    pub r#match: PnatMatchTuple,
}

/// The binding.
#[derive(Message)]
#[message(reply)]
pub struct PnatFlowLookupReply {
    pub retval: i32,
    /// Its number; all bits set if there is none.
    pub binding_index: u32,
}

impl Request for PnatFlowLookup {
    fn handle(self, call: &Call) -> Result<PnatFlowLookupReply, Retval> {
        let at = place(self.sw_if_index, self.attachment)?;
        let binding_index = pnat(call)?.find(at, self.r#match.into()).unwrap_or(u32::MAX);
        Ok(PnatFlowLookupReply { retval: 0, binding_index })
    }
}
