//! Messages: `arping.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, MacAddress, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Task};

use crate::arping::{ArpingError, Counted, INTERVALS, Question};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "arping",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::task::<Arping>(),
        ApiMessage::sent::<ArpingReply>(),
        ApiMessage::task::<ArpingAcd>(),
        ApiMessage::sent::<ArpingAcdReply>(),
    ],
};

impl From<ArpingError> for Retval {
    fn from(error: ArpingError) -> Self {
        match error {
            ArpingError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            ArpingError::NotEthernet(_) => Retval::INVALID_INTERFACE,
            ArpingError::NoHost(_) => Retval::INVALID_VALUE,
            ArpingError::NoSource(..) => Retval::NO_SUCH_ENTRY,
            ArpingError::Missing(_) => Retval::UNSPECIFIED,
        }
    }
}

/// Asks a link for an address, or announces one; the answer comes when it has asked often enough.
#[derive(Message)]
#[message(request, reply = ArpingReply)]
pub struct Arping {
    pub address: IpAddr,
    /// The link.
    pub sw_if_index: InterfaceIndex,
    /// Whether the address is announced rather than asked for.
    pub is_garp: bool,
    /// How often.
    #[preset(1)]
    pub repeat: u32,
    /// Seconds from one to the next.
    #[preset(1.0)]
    pub interval: f64,
}

/// How many answers came.
#[derive(Message)]
#[message(reply)]
pub struct ArpingReply {
    pub retval: i32,
    pub reply_count: u32,
}

/// Asks a link for an address, or announces one, and reports its station.
#[derive(Message)]
#[message(request, reply = ArpingAcdReply)]
pub struct ArpingAcd {
    pub address: IpAddr,
    /// The link.
    pub sw_if_index: InterfaceIndex,
    /// Whether the address is announced rather than asked for.
    pub is_garp: bool,
    /// How often.
    #[preset(1)]
    pub repeat: u32,
    /// Seconds from one to the next.
    #[preset(1.0)]
    pub interval: f64,
}

/// How many answers came, and who gave the last one.
#[derive(Message)]
#[message(reply)]
pub struct ArpingAcdReply {
    pub retval: i32,
    pub reply_count: u32,
    pub mac_address: MacAddress,
}

impl Task for Arping {
    async fn run(self, call: Call) -> Result<ArpingReply, Retval> {
        let Arping { address, sw_if_index, is_garp, repeat, interval } = self;
        let acd = ArpingAcd { address, sw_if_index, is_garp, repeat, interval };
        let ArpingAcdReply { retval, reply_count, .. } = acd.run(call).await?;
        Ok(ArpingReply { retval, reply_count })
    }
}

impl Task for ArpingAcd {
    async fn run(self, call: Call) -> Result<ArpingAcdReply, Retval> {
        if !INTERVALS.contains(&self.interval) {
            return Err(Retval::INVALID_VALUE);
        }
        let arping = crate::Arping {
            interface: SwIfIndex(self.sw_if_index.0),
            address: self.address,
            question: if self.is_garp { Question::Announce } else { Question::WhoHas },
            repeat: self.repeat,
            interval: Duration::from_secs_f64(self.interval),
        };
        let Counted { received, mac, .. } = arping.run(Rc::clone(&call.control), None).await?;
        let mac_address = MacAddress(mac.map_or([0; 6], |mac| mac.0));
        Ok(ArpingAcdReply { retval: 0, reply_count: received, mac_address })
    }
}
