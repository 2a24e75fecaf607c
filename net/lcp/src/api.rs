//! Messages: `lcp.api`, those of images of interfaces.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::rc::Rc;

use shoal_buffer::SwIfIndex;
use shoal_interface::HostLayer;
use shoal_message::{Count, InterfaceIndex, Message, Retval, Text, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Get, Request};
use shoal_wire::EtherType;

use crate::{Lcp, LcpError, PairInfo, Sync};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "lcp",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<LcpDefaultNsSet>(),
        ApiMessage::request::<LcpDefaultNsGet>(),
        ApiMessage::sent::<LcpDefaultNsGetReply>(),
        ApiMessage::request::<LcpItfPairAddDel>(),
        ApiMessage::request::<LcpItfPairAddDelV2>(),
        ApiMessage::sent::<LcpItfPairAddDelV2Reply>(),
        ApiMessage::request::<LcpItfPairAddDelV3>(),
        ApiMessage::sent::<LcpItfPairAddDelV3Reply>(),
        ApiMessage::get::<LcpItfPairGet>(),
        ApiMessage::sent::<LcpItfPairGetReply>(),
        ApiMessage::get::<LcpItfPairGetV2>(),
        ApiMessage::sent::<LcpItfPairGetV2Reply>(),
        ApiMessage::sent::<LcpItfPairDetails>(),
        ApiMessage::request::<LcpEthertypeEnable>(),
        ApiMessage::request::<LcpEthertypeGet>(),
        ApiMessage::sent::<LcpEthertypeGetReply>(),
        ApiMessage::request::<LcpOsiProtoEnable>(),
        ApiMessage::request::<LcpOsiProtoGet>(),
        ApiMessage::sent::<LcpOsiProtoGetReply>(),
        ApiMessage::request::<LcpSyncUnnumberedSet>(),
        ApiMessage::request::<LcpSyncUnnumberedGet>(),
        ApiMessage::sent::<LcpSyncUnnumberedGetReply>(),
        ApiMessage::request::<LcpItfPairReplaceBegin>(),
        ApiMessage::request::<LcpItfPairReplaceEnd>(),
    ],
};

/// Details of one answer at most.
const PAGE: usize = 500;

impl From<LcpError> for Retval {
    fn from(error: LcpError) -> Self {
        match error {
            LcpError::Interface(_) | LcpError::NotPaired(_) => Retval::INVALID_SW_IF_INDEX,
            LcpError::Paired(..) => Retval::VALUE_EXIST,
            LcpError::IsHost(..) | LcpError::NotEthernet(_) | LcpError::NotExact(_) => {
                Retval::INVALID_INTERFACE
            }
            LcpError::Name(_) => Retval::INVALID_ARGUMENT,
            LcpError::Type(_) => Retval::INVALID_VALUE,
            LcpError::Host { .. } => Retval::SYSCALL_ERROR_1,
            LcpError::NoDriver | LcpError::OfLinux(_) => Retval::UNSUPPORTED,
            LcpError::OsiDisabled => Retval::FEATURE_DISABLED,
            LcpError::OsiProtocol(_) => Retval::INVALID_REGISTRATION,
        }
    }
}

fn lcp(call: &Call) -> Result<Rc<Lcp>, Retval> {
    call.get::<Lcp>().map_err(|_| Retval::UNSPECIFIED)
}

/// A namespace, unless it has no name.
fn named(netns: &Text<32>) -> Option<&str> {
    Some(netns.as_str()).filter(|name| !name.is_empty())
}

/// Sets the network namespace of images that name none.
#[derive(Message)]
#[message(request)]
pub struct LcpDefaultNsSet {
    /// A name under `/run/netns`; none for the router's own.
    pub netns: Text<32>,
}

impl Request for LcpDefaultNsSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        lcp(call)?.set_default_netns(named(&self.netns));
        Ok(())
    }
}

/// Asks for the network namespace of images that name none.
#[derive(Message)]
#[message(request, reply = LcpDefaultNsGetReply)]
pub struct LcpDefaultNsGet {}

/// The network namespace of images that name none.
#[derive(Message)]
#[message(reply)]
pub struct LcpDefaultNsGetReply {
    /// A name under `/run/netns`; none for the router's own.
    pub netns: Text<32>,
}

impl Request for LcpDefaultNsGet {
    fn handle(self, call: &Call) -> Result<LcpDefaultNsGetReply, Retval> {
        let netns = lcp(call)?.default_netns().unwrap_or_default();
        Ok(LcpDefaultNsGetReply { netns: netns.as_str().into() })
    }
}

/// What an image is.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(width = u8)]
pub enum LcpItfHostType {
    /// One with Ethernet headers.
    #[entry("LCP_API_ITF_HOST_TAP")]
    Tap = 0,
    /// One without.
    #[entry("LCP_API_ITF_HOST_TUN")]
    Tun = 1,
}

/// Gives an interface an image in Linux, or takes it away.
#[derive(Message)]
#[message(request)]
pub struct LcpItfPairAddDel {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    /// The image's name in Linux.
    pub host_if_name: Text<16>,
    pub host_if_type: LcpItfHostType,
    /// A name under `/run/netns`; none for the default.
    pub netns: Text<32>,
}

impl Request for LcpItfPairAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let LcpItfPairAddDel { is_add, sw_if_index, host_if_name, host_if_type, netns } = self;
        LcpItfPairAddDelV3 { is_add, sw_if_index, host_if_name, host_if_type, netns }.handle(call)?;
        Ok(())
    }
}

/// Gives an interface an image in Linux, or takes it away; tells the image's number in the router.
#[derive(Message)]
#[message(request, reply = LcpItfPairAddDelV2Reply)]
pub struct LcpItfPairAddDelV2 {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    /// The image's name in Linux.
    pub host_if_name: Text<16>,
    pub host_if_type: LcpItfHostType,
    /// A name under `/run/netns`; none for the default.
    pub netns: Text<32>,
}

/// The image's number.
#[derive(Message)]
#[message(reply)]
pub struct LcpItfPairAddDelV2Reply {
    pub retval: i32,
    /// In the router.
    pub host_sw_if_index: InterfaceIndex,
}

impl Request for LcpItfPairAddDelV2 {
    fn handle(self, call: &Call) -> Result<LcpItfPairAddDelV2Reply, Retval> {
        let LcpItfPairAddDelV2 { is_add, sw_if_index, host_if_name, host_if_type, netns } = self;
        let newer = LcpItfPairAddDelV3 { is_add, sw_if_index, host_if_name, host_if_type, netns };
        let LcpItfPairAddDelV3Reply { retval, host_sw_if_index, .. } = newer.handle(call)?;
        Ok(LcpItfPairAddDelV2Reply { retval, host_sw_if_index })
    }
}

/// Gives an interface an image in Linux, or takes it away; tells the image's numbers.
#[derive(Message)]
#[message(request, reply = LcpItfPairAddDelV3Reply)]
pub struct LcpItfPairAddDelV3 {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    /// The image's name in Linux.
    pub host_if_name: Text<16>,
    pub host_if_type: LcpItfHostType,
    /// A name under `/run/netns`; none for the default.
    pub netns: Text<32>,
}

/// The image's numbers.
#[derive(Message)]
#[message(reply)]
pub struct LcpItfPairAddDelV3Reply {
    pub retval: i32,
    /// In Linux.
    pub vif_index: u32,
    /// In the router.
    pub host_sw_if_index: InterfaceIndex,
}

impl Request for LcpItfPairAddDelV3 {
    fn handle(self, call: &Call) -> Result<LcpItfPairAddDelV3Reply, Retval> {
        let (lcp, phy) = (lcp(call)?, SwIfIndex(self.sw_if_index.0));
        if !self.is_add {
            lcp.delete(phy)?;
            let none = InterfaceIndex::NONE;
            return Ok(LcpItfPairAddDelV3Reply { retval: 0, vif_index: u32::MAX, host_sw_if_index: none });
        }
        let layer = match self.host_if_type {
            LcpItfHostType::Tap => HostLayer::Ethernet,
            LcpItfHostType::Tun => HostLayer::Ip,
        };
        let host = lcp.create_of(phy, self.host_if_name.as_str(), named(&self.netns), layer)?;
        let vif_index = lcp.host_index(host).unwrap_or(u32::MAX);
        Ok(LcpItfPairAddDelV3Reply { retval: 0, vif_index, host_sw_if_index: InterfaceIndex(host.0) })
    }
}

/// Asks for all images.
#[derive(Message)]
#[message(request, reply = LcpItfPairGetReply, details = LcpItfPairDetails)]
pub struct LcpItfPairGet {
    /// Where to go on; 0 to begin.
    pub cursor: u32,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
pub struct LcpItfPairGetReply {
    pub retval: i32,
    /// Where to go on; all bits set at the end.
    pub cursor: u32,
}

impl Get for LcpItfPairGet {
    fn get(self, call: &Call) -> Result<(Vec<LcpItfPairDetails>, LcpItfPairGetReply), Retval> {
        let newer = LcpItfPairGetV2 { cursor: self.cursor, sw_if_index: InterfaceIndex::NONE };
        let (details, LcpItfPairGetV2Reply { retval, cursor }) = newer.get(call)?;
        Ok((details, LcpItfPairGetReply { retval, cursor }))
    }
}

/// Asks for the image of an interface, or of all.
#[derive(Message)]
#[message(request, reply = LcpItfPairGetV2Reply, details = LcpItfPairDetails)]
pub struct LcpItfPairGetV2 {
    /// Where to go on; 0 to begin.
    pub cursor: u32,
    /// The interface; all bits set for all.
    pub sw_if_index: InterfaceIndex,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
pub struct LcpItfPairGetV2Reply {
    pub retval: i32,
    /// Where to go on; all bits set at the end.
    pub cursor: u32,
}

/// An interface and its image.
#[derive(Message)]
#[message(reply)]
pub struct LcpItfPairDetails {
    pub phy_sw_if_index: InterfaceIndex,
    pub host_sw_if_index: InterfaceIndex,
    /// The image's number in Linux.
    pub vif_index: u32,
    pub host_if_name: Text<16>,
    pub host_if_type: LcpItfHostType,
    pub netns: Text<32>,
}

impl From<PairInfo> for LcpItfPairDetails {
    fn from(pair: PairInfo) -> Self {
        LcpItfPairDetails {
            phy_sw_if_index: InterfaceIndex(pair.phy.0),
            host_sw_if_index: InterfaceIndex(pair.host.0),
            vif_index: pair.host_index,
            host_if_name: pair.name.as_str().into(),
            host_if_type: match pair.layer {
                HostLayer::Ethernet => LcpItfHostType::Tap,
                HostLayer::Ip => LcpItfHostType::Tun,
            },
            netns: pair.netns.unwrap_or_default().as_str().into(),
        }
    }
}

impl Get for LcpItfPairGetV2 {
    fn get(self, call: &Call) -> Result<(Vec<LcpItfPairDetails>, LcpItfPairGetV2Reply), Retval> {
        let (all, end) = (lcp(call)?.list(), u32::MAX);
        if self.sw_if_index != InterfaceIndex::NONE {
            let one = all.into_iter().find(|pair| pair.phy.0 == self.sw_if_index.0);
            let one = one.ok_or(Retval::INVALID_SW_IF_INDEX)?;
            return Ok((vec![one.into()], LcpItfPairGetV2Reply { retval: 0, cursor: end }));
        }
        let from = if self.cursor == end { 0 } else { self.cursor };
        let mut left = all.into_iter().filter(|pair| pair.index >= from);
        let details = left.by_ref().take(PAGE).map(LcpItfPairDetails::from).collect();
        let reply = match left.next() {
            Some(next) => LcpItfPairGetV2Reply { retval: Retval::EAGAIN.0, cursor: next.index },
            None => LcpItfPairGetV2Reply { retval: 0, cursor: end },
        };
        Ok((details, reply))
    }
}

/// Marks all images: those that are not asked for again go when the replacement ends.
#[derive(Message)]
#[message(request)]
pub struct LcpItfPairReplaceBegin {}

impl Request for LcpItfPairReplaceBegin {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        lcp(call)?.begin_replacement();
        Ok(())
    }
}

/// Takes away the images that are still marked.
#[derive(Message)]
#[message(request)]
pub struct LcpItfPairReplaceEnd {}

impl Request for LcpItfPairReplaceEnd {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(lcp(call)?.end_replacement()?)
    }
}

/// Lets frames of a type pass between interfaces and their images.
#[derive(Message)]
#[message(request)]
pub struct LcpEthertypeEnable {
    pub ethertype: u16,
}

impl Request for LcpEthertypeEnable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(lcp(call)?.enable_type(EtherType(self.ethertype))?)
    }
}

/// Asks which types of frames pass.
#[derive(Message)]
#[message(request, reply = LcpEthertypeGetReply)]
pub struct LcpEthertypeGet {}

/// The types of frames that pass besides IP and ARP.
#[derive(Message)]
#[message(reply)]
pub struct LcpEthertypeGetReply {
    pub retval: i32,
    pub count: Count<u16>,
    #[counted_by(count)]
    pub ethertypes: Vec<u16>,
}

impl Request for LcpEthertypeGet {
    fn handle(self, call: &Call) -> Result<LcpEthertypeGetReply, Retval> {
        let ethertypes = lcp(call)?.types().into_iter().map(|kind| kind.0).collect();
        Ok(LcpEthertypeGetReply { retval: 0, count: Count::default(), ethertypes })
    }
}

/// Lets packets of an OSI protocol pass.
#[derive(Message)]
#[message(request)]
pub struct LcpOsiProtoEnable {
    pub osi_proto: u8,
}

impl Request for LcpOsiProtoEnable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(lcp(call)?.enable_osi(self.osi_proto)?)
    }
}

/// Asks which OSI protocols pass.
#[derive(Message)]
#[message(request, reply = LcpOsiProtoGetReply)]
pub struct LcpOsiProtoGet {}

/// The OSI protocols that pass.
#[derive(Message)]
#[message(reply)]
pub struct LcpOsiProtoGetReply {
    pub retval: i32,
    pub count: Count<u8>,
    #[counted_by(count)]
    pub osi_protos: Vec<u8>,
}

impl Request for LcpOsiProtoGet {
    fn handle(self, call: &Call) -> Result<LcpOsiProtoGetReply, Retval> {
        let osi_protos = lcp(call)?.osi_protocols();
        Ok(LcpOsiProtoGetReply { retval: 0, count: Count::default(), osi_protos })
    }
}

/// Sets whether borrowed addresses are mirrored, where addresses are at all.
#[derive(Message)]
#[message(request)]
pub struct LcpSyncUnnumberedSet {
    pub is_enable: bool,
}

impl Request for LcpSyncUnnumberedSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        lcp(call)?.set_sync_unnumbered(if self.is_enable { Sync::On } else { Sync::Off });
        Ok(())
    }
}

/// Asks whether borrowed addresses are mirrored.
#[derive(Message)]
#[message(request, reply = LcpSyncUnnumberedGetReply)]
pub struct LcpSyncUnnumberedGet {}

/// Whether borrowed addresses are mirrored.
#[derive(Message)]
#[message(reply)]
pub struct LcpSyncUnnumberedGetReply {
    pub retval: i32,
    pub is_enable: bool,
}

impl Request for LcpSyncUnnumberedGet {
    fn handle(self, call: &Call) -> Result<LcpSyncUnnumberedGetReply, Retval> {
        let is_enable = lcp(call)?.sync_unnumbered() == Sync::On;
        Ok(LcpSyncUnnumberedGetReply { retval: 0, is_enable })
    }
}
