//! Messages: `mss_clamp.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_message::{InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Get, Request};

use crate::{Directions, MssClamp, MssError, Setting};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "mss_clamp",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<MssClampEnableDisable>(),
        ApiMessage::get::<MssClampGet>(),
        ApiMessage::sent::<MssClampGetReply>(),
        ApiMessage::sent::<MssClampDetails>(),
    ],
};

/// Details of one answer at most.
const PAGE: usize = 500;

/// Which packets of an interface are looked at: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(flags)]
#[entry("MSS_CLAMP_DIR_NONE", 0)]
#[entry("MSS_CLAMP_DIR_RX", 1)]
#[entry("MSS_CLAMP_DIR_TX", 2)]
pub struct MssClampDir(pub u8);

impl From<MssClampDir> for Directions {
    fn from(MssClampDir(bits): MssClampDir) -> Self {
        Directions { rx: bits & 1 != 0, tx: bits & 2 != 0 }
    }
}

impl From<Directions> for MssClampDir {
    fn from(directions: Directions) -> Self {
        MssClampDir(u8::from(directions.rx) | u8::from(directions.tx) << 1)
    }
}

impl From<MssError> for Retval {
    fn from(error: MssError) -> Self {
        match error {
            MssError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            MssError::TooSmall(_) => Retval::INVALID_VALUE,
        }
    }
}

/// Says how large the segments of an interface's connections may be.
#[derive(Message)]
#[message(request)]
pub struct MssClampEnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub ipv4_mss: u16,
    pub ipv6_mss: u16,
    pub ipv4_direction: MssClampDir,
    pub ipv6_direction: MssClampDir,
}

impl Request for MssClampEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        // Bits without a name are a mistake.
        if (self.ipv4_direction.0 | self.ipv6_direction.0) & !3 != 0 {
            return Err(Retval::INVALID_VALUE);
        }
        let clamp = call.get::<MssClamp>().map_err(|_| Retval::UNSPECIFIED)?;
        let ip4 = Setting { directions: self.ipv4_direction.into(), mss: self.ipv4_mss };
        let ip6 = Setting { directions: self.ipv6_direction.into(), mss: self.ipv6_mss };
        Ok(clamp.set(SwIfIndex(self.sw_if_index.0), [Some(ip4), Some(ip6)])?)
    }
}

/// Asks how large segments may be, on one interface or all.
#[derive(Message)]
#[message(request, reply = MssClampGetReply, details = MssClampDetails)]
pub struct MssClampGet {
    /// Where to go on; 0 to begin.
    pub cursor: u32,
    /// The interface; all bits set for all.
    pub sw_if_index: InterfaceIndex,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
pub struct MssClampGetReply {
    pub retval: i32,
    /// Where to go on; all bits set at the end.
    pub cursor: u32,
}

/// How large the segments of an interface's connections may be.
#[derive(Message)]
#[message(reply)]
pub struct MssClampDetails {
    pub sw_if_index: InterfaceIndex,
    pub ipv4_mss: u16,
    pub ipv6_mss: u16,
    pub ipv4_direction: MssClampDir,
    pub ipv6_direction: MssClampDir,
}

impl MssClampDetails {
    fn new(interface: SwIfIndex, [ip4, ip6]: [Setting; 2]) -> Self {
        MssClampDetails {
            sw_if_index: InterfaceIndex(interface.0),
            ipv4_mss: ip4.mss,
            ipv6_mss: ip6.mss,
            ipv4_direction: ip4.directions.into(),
            ipv6_direction: ip6.directions.into(),
        }
    }
}

impl Get for MssClampGet {
    fn get(self, call: &Call) -> Result<(Vec<MssClampDetails>, MssClampGetReply), Retval> {
        let clamp = call.get::<MssClamp>().map_err(|_| Retval::UNSPECIFIED)?;
        let (all, end) = (clamp.settings(), u32::MAX);
        if self.sw_if_index != InterfaceIndex::NONE {
            let interface = SwIfIndex(self.sw_if_index.0);
            let interfaces = call.get::<Interfaces>().map_err(|_| Retval::UNSPECIFIED)?;
            interfaces.data(interface).map_err(|_| Retval::INVALID_SW_IF_INDEX)?;
            let one = all.iter().find(|(i, _)| *i == interface).map(|(_, s)| *s).unwrap_or_default();
            let details = vec![MssClampDetails::new(interface, one)];
            return Ok((details, MssClampGetReply { retval: 0, cursor: end }));
        }
        let from = if self.cursor == end { 0 } else { self.cursor };
        let mut left = all.into_iter().filter(|(interface, _)| interface.0 >= from);
        let details =
            left.by_ref().take(PAGE).map(|(i, settings)| MssClampDetails::new(i, settings)).collect();
        let reply = match left.next() {
            Some((next, _)) => MssClampGetReply { retval: Retval::EAGAIN.0, cursor: next.0 },
            None => MssClampGetReply { retval: 0, cursor: end },
        };
        Ok((details, reply))
    }
}
