//! Messages of `l2.api` about interfaces: cross-connects, tags, features.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::rc::Rc;

use shoal_ethernet::{TagKind, Vid};
use shoal_interface::{InterfaceError, SwIfIndex};
use shoal_message::{InterfaceIndex, MacAddress, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::{
    Bitmap, Input, L2, L2Error, Mode, Output, Patches, PbbOp, PbbRewrite, ServiceId, TagOp, TagRewrite,
};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "l2",
    folder: Folder::Core,
    version: "3.3.0",
    messages: &[
        ApiMessage::dump::<L2XconnectDump>(),
        ApiMessage::sent::<L2XconnectDetails>(),
        ApiMessage::request::<SwInterfaceSetL2Xconnect>(),
        ApiMessage::request::<L2InterfaceVlanTagRewrite>(),
        ApiMessage::request::<L2InterfacePbbTagRewrite>(),
        ApiMessage::request::<L2InterfaceEfpFilter>(),
        ApiMessage::request::<SwInterfaceSetVpath>(),
        ApiMessage::request::<L2PatchAddDel>(),
        ApiMessage::request::<L2Flags>(),
        ApiMessage::sent::<L2FlagsReply>(),
        ApiMessage::request::<L2FlagsGet>(),
        ApiMessage::sent::<L2FlagsGetReply>(),
        ApiMessage::request::<L2FlagsSet>(),
        ApiMessage::request::<L2InterfaceFeatFlagsGet>(),
        ApiMessage::sent::<L2InterfaceFeatFlagsGetReply>(),
        ApiMessage::request::<L2InterfaceFeatFlagsSet>(),
    ],
};

fn l2(call: &Call) -> Result<Rc<L2>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

impl From<L2Error> for Retval {
    fn from(error: L2Error) -> Self {
        match error {
            L2Error::Itself(_) => Retval::SAME_SRC_DST,
            L2Error::TooFewTags(_) => Retval::INVALID_VLAN_TAG_COUNT,
            L2Error::Table(_) => Retval::UNSPECIFIED,
            L2Error::NotEthernet(_) | L2Error::Interface(InterfaceError::NotPossible(..)) => {
                Retval::INVALID_INTERFACE
            }
            L2Error::Interface(error) => error.into(),
        }
    }
}

/// An interface that is there.
fn there(l2: &L2, index: InterfaceIndex) -> Result<SwIfIndex, Retval> {
    let index = SwIfIndex(index.0);
    match l2.check(index) {
        Err(L2Error::Interface(_)) => Err(Retval::INVALID_SW_IF_INDEX),
        _ => Ok(index),
    }
}

/// Asks for all cross-connects.
#[derive(Message)]
#[message(request, details = L2XconnectDetails)]
pub struct L2XconnectDump {}

/// A cross-connect.
#[derive(Message)]
#[message(reply)]
pub struct L2XconnectDetails {
    pub rx_sw_if_index: InterfaceIndex,
    pub tx_sw_if_index: InterfaceIndex,
}

impl Dump for L2XconnectDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = L2XconnectDetails> + 'static {
        let modes = l2(call).map(|l2| l2.modes()).unwrap_or_default();
        modes.into_iter().filter_map(|(rx, mode)| match mode {
            Mode::Xconnect(tx) => Some(L2XconnectDetails {
                rx_sw_if_index: InterfaceIndex(rx.0),
                tx_sw_if_index: InterfaceIndex(tx.0),
            }),
            _ => None,
        })
    }
}

/// Sends all frames of an interface out of another one, or routes its packets again.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetL2Xconnect {
    pub rx_sw_if_index: InterfaceIndex,
    pub tx_sw_if_index: InterfaceIndex,
    #[preset("true")]
    pub enable: bool,
}

impl Request for SwInterfaceSetL2Xconnect {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let l2 = l2(call)?;
        let rx = there(&l2, self.rx_sw_if_index)?;
        let mode = if self.enable {
            // VPP says so of either.
            Mode::Xconnect(there(&l2, self.tx_sw_if_index)?)
        } else {
            Mode::L3
        };
        Ok(l2.set_mode(rx, mode)?)
    }
}

/// Says what an interface does to tags.
#[derive(Message)]
#[message(request)]
pub struct L2InterfaceVlanTagRewrite {
    pub sw_if_index: InterfaceIndex,
    /// 0: nothing; 1, 2: push; 3, 4: pop; 5 to 8: translate 1-1, 1-2, 2-1, 2-2.
    pub vtr_op: u32,
    /// Whether the first tag that is put on is of type 0x8100; else it is of type 0x88a8.
    pub push_dot1q: u32,
    pub tag1: u32,
    pub tag2: u32,
}

impl Request for L2InterfaceVlanTagRewrite {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let l2 = l2(call)?;
        let interface = there(&l2, self.sw_if_index)?;
        let op = TagOp::ALL.get(self.vtr_op as usize).copied().ok_or(Retval::INVALID_VALUE)?;
        let (_, push) = op.counts();
        let id = |tag: u32, wanted: bool| {
            let id = u16::try_from(tag).ok().and_then(Vid::new);
            if wanted { id } else { Vid::new(0) }
        };
        let (Some(outer), Some(inner)) = (id(self.tag1, push > 0), id(self.tag2, push > 1)) else {
            return Err(Retval::INVALID_VLAN);
        };
        let kind = if self.push_dot1q == 0 { TagKind::Dot1ad } else { TagKind::Dot1q };
        Ok(l2.set_tags(interface, TagRewrite { op, kind, ids: [outer, inner] })?)
    }
}

/// Says what an interface does to headers of provider backbone bridging (802.1ah).
#[derive(Message)]
#[message(request)]
pub struct L2InterfacePbbTagRewrite {
    pub sw_if_index: InterfaceIndex,
    /// 0: nothing; 2: push; 4: pop; 7: take the header off and put a service VLAN tag on.
    pub vtr_op: u32,
    /// The id of that tag.
    pub outer_tag: u16,
    pub b_dmac: MacAddress,
    pub b_smac: MacAddress,
    pub b_vlanid: u16,
    /// 24 bits.
    pub i_sid: u32,
}

impl L2InterfacePbbTagRewrite {
    fn rewrite(&self) -> Result<PbbRewrite, Retval> {
        let vid = |number| Vid::new(number).ok_or(Retval::INVALID_VLAN);
        let op = match self.vtr_op {
            0 => return Ok(PbbRewrite::none()),
            2 => PbbOp::Push,
            4 => PbbOp::Pop,
            7 => PbbOp::Translate(vid(self.outer_tag)?),
            _ => return Err(Retval::INVALID_VALUE),
        };
        let service = ServiceId::new(self.i_sid).ok_or(Retval::INVALID_VALUE)?;
        let [dst, src] = [self.b_dmac, self.b_smac].map(|mac| shoal_wire::MacAddress(mac.0));
        Ok(PbbRewrite { op, dst, src, vlan: vid(self.b_vlanid)?, service })
    }
}

impl Request for L2InterfacePbbTagRewrite {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let l2 = l2(call)?;
        let interface = there(&l2, self.sw_if_index)?;
        Ok(l2.set_pbb(interface, self.rewrite()?)?)
    }
}

/// Switches the feature on or off that measures the path of an interface's frames.
///
/// No node of this router does: as in VPP without a plugin for it, frames of an interface in layer 2 are dropped meanwhile and
/// counted.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetVpath {
    pub sw_if_index: InterfaceIndex,
    #[preset(4294967295)]
    pub enable: bool,
}

impl Request for SwInterfaceSetVpath {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let l2 = l2(call)?;
        let interface = there(&l2, self.sw_if_index)?;
        Ok(l2.keep_input(interface, Input::Vpath, self.enable)?)
    }
}

/// Sends what an interface receives out of another one, past everything, or no longer.
#[derive(Message)]
#[message(request)]
pub struct L2PatchAddDel {
    pub rx_sw_if_index: InterfaceIndex,
    pub tx_sw_if_index: InterfaceIndex,
    #[preset("true")]
    pub is_add: bool,
}

impl Request for L2PatchAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let l2 = l2(call)?;
        let rx = there(&l2, self.rx_sw_if_index)?;
        let tx = there(&l2, self.tx_sw_if_index)?;
        let patches = call.get::<Patches>().map_err(|_| Retval::UNSPECIFIED)?;
        Ok(patches.set(rx, self.is_add.then_some(tx))?)
    }
}

/// Has frames dropped on their way out whose tags are not the interface's own, or no longer.
#[derive(Message)]
#[message(request)]
pub struct L2InterfaceEfpFilter {
    pub sw_if_index: InterfaceIndex,
    #[preset("true")]
    pub enable_disable: bool,
}

impl Request for L2InterfaceEfpFilter {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let l2 = l2(call)?;
        let interface = there(&l2, self.sw_if_index)?;
        let output = l2.output(interface);
        let output = if self.enable_disable {
            output.with(Output::EfpFilter)
        } else {
            output.without(Output::EfpFilter)
        };
        Ok(l2.set_output(interface, output)?)
    }
}

fn changed(all: Bitmap, bits: Bitmap, is_set: bool) -> Bitmap {
    if is_set { all.or(bits) } else { all.minus(bits) }
}

/// Features of frames that come in as VPP numbers them.
fn input_of(number: u32) -> Bitmap {
    Bitmap::of_number(number, Input::Xconnect)
}

/// Switches features of frames that come in on or off, by their numbers.
#[derive(Message)]
#[message(request, reply = L2FlagsReply)]
pub struct L2Flags {
    pub sw_if_index: InterfaceIndex,
    pub is_set: bool,
    /// 1: learn, 2: forward, 4: flood, 8: flood for unknown stations, 16: answer ARP.
    pub feature_bitmap: u32,
}

/// All features.
#[derive(Message)]
#[message(reply)]
pub struct L2FlagsReply {
    pub retval: i32,
    pub resulting_feature_bitmap: u32,
}

impl Request for L2Flags {
    fn handle(self, call: &Call) -> Result<L2FlagsReply, Retval> {
        let l2 = l2(call)?;
        let interface = there(&l2, self.sw_if_index)?;
        let bits = of_flags(self.feature_bitmap);
        l2.set_input(interface, changed(l2.input(interface), bits, self.is_set))?;
        let [input, _] = l2.flags(interface);
        let resulting_feature_bitmap = input.number(Input::Xconnect);
        Ok(L2FlagsReply { retval: 0, resulting_feature_bitmap })
    }
}

/// Asks for features of both ways.
#[derive(Message)]
#[message(request, reply = L2FlagsGetReply)]
pub struct L2FlagsGet {
    pub sw_if_index: InterfaceIndex,
}

/// The features of both ways.
#[derive(Message)]
#[message(reply)]
pub struct L2FlagsGetReply {
    pub retval: i32,
    pub input_feature_bitmap: u32,
    pub output_feature_bitmap: u32,
}

impl Request for L2FlagsGet {
    fn handle(self, call: &Call) -> Result<L2FlagsGetReply, Retval> {
        let l2 = l2(call)?;
        let interface = there(&l2, self.sw_if_index)?;
        let [input, output] = l2.flags(interface);
        Ok(L2FlagsGetReply {
            retval: 0,
            input_feature_bitmap: input.number(Input::Xconnect),
            output_feature_bitmap: output.number(Output::Span),
        })
    }
}

/// Switches features of both ways on or off.
#[derive(Message)]
#[message(request)]
pub struct L2FlagsSet {
    pub sw_if_index: InterfaceIndex,
    pub is_set: bool,
    pub input_feature_bitmap: u32,
    pub output_feature_bitmap: u32,
}

impl Request for L2FlagsSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let l2 = l2(call)?;
        let interface = there(&l2, self.sw_if_index)?;
        let input = changed(l2.input(interface), input_of(self.input_feature_bitmap), self.is_set);
        let bits = Bitmap::of_number(self.output_feature_bitmap, Output::Span);
        l2.set_output(interface, changed(l2.output(interface), bits, self.is_set))?;
        Ok(l2.set_input(interface, input)?)
    }
}

/// Features of a bridge's members: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("L2_INTF_FEAT_NONE", 0)]
#[entry("L2_INTF_FEAT_LEARN", 1)]
#[entry("L2_INTF_FEAT_FWD", 2)]
#[entry("L2_INTF_FEAT_FLOOD", 4)]
#[entry("L2_INTF_FEAT_UU_FLOOD", 8)]
#[entry("L2_INTF_FEAT_ARP_TERM", 16)]
#[entry("L2_INTF_FEAT_ARP_UFWD", 32)]
pub struct L2IntfFeatFlags(pub u32);

const FLAGS: [(u32, Input); 6] = [
    (1, Input::Learn),
    (2, Input::Forward),
    (4, Input::Flood),
    (8, Input::UnknownFlood),
    (16, Input::ArpTerm),
    (32, Input::ArpForward),
];

fn of_flags(flags: u32) -> Bitmap {
    let there = FLAGS.iter().filter(|(bit, _)| flags & bit != 0);
    there.fold(Bitmap::default(), |all, (_, feature)| all.with(*feature))
}

/// Asks which features of a bridge's members are on.
#[derive(Message)]
#[message(request, reply = L2InterfaceFeatFlagsGetReply)]
pub struct L2InterfaceFeatFlagsGet {
    pub sw_if_index: InterfaceIndex,
}

/// They are.
#[derive(Message)]
#[message(reply)]
pub struct L2InterfaceFeatFlagsGetReply {
    pub retval: i32,
    pub flags: L2IntfFeatFlags,
}

impl Request for L2InterfaceFeatFlagsGet {
    fn handle(self, call: &Call) -> Result<L2InterfaceFeatFlagsGetReply, Retval> {
        let l2 = l2(call)?;
        let input = l2.input(there(&l2, self.sw_if_index)?);
        let there = FLAGS.iter().filter(|(_, feature)| input.has(*feature));
        let flags = L2IntfFeatFlags(there.fold(0, |all, (bit, _)| all | bit));
        Ok(L2InterfaceFeatFlagsGetReply { retval: 0, flags })
    }
}

/// Switches features of a bridge's members on or off.
#[derive(Message)]
#[message(request)]
pub struct L2InterfaceFeatFlagsSet {
    pub sw_if_index: InterfaceIndex,
    pub is_set: bool,
    pub flags: L2IntfFeatFlags,
}

impl Request for L2InterfaceFeatFlagsSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let l2 = l2(call)?;
        let interface = there(&l2, self.sw_if_index)?;
        let L2IntfFeatFlags(flags) = self.flags;
        Ok(l2.set_input(interface, changed(l2.input(interface), of_flags(flags), self.is_set))?)
    }
}
