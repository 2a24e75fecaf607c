//! `ip6-not-enabled`: on the unicast arc of every interface without IPv6, so that the others need not ask.
//! ip6-input -> **ip6-not-enabled** -> error-drop

use shoal_buffer::Packet;
use shoal_derive::ErrorCounters;
use shoal_graph::{Cx, NoNext, PacketNode};

use crate::Headers;

/// The node's name, and the feature's.
pub const NOT_ENABLED: &str = "ip6-not-enabled";

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip6 is not enabled on the interface
    NotEnabled,
}

/// Drops everything.
pub struct Ip6NotEnabled;

impl PacketNode for Ip6NotEnabled {
    const NAME: &'static str = NOT_ENABLED;
    type Next = NoNext;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<NoNext, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        Err(Error::NotEnabled)
    }
}
