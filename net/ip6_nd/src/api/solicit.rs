//! `ip6nd_send_router_solicitation`: routers of a link are asked.

use std::time::Duration;

use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{Call, Request};

use super::{interface, nd};
use crate::Solicit;

/// Asks the routers of a link until one answers, ever less often; or stops that. Times are in seconds.
#[derive(Message)]
#[message(request)]
pub struct Ip6ndSendRouterSolicitation {
    /// The time to the second question.
    pub irt: u32,
    /// Most time between two; 0 for no bound.
    pub mrt: u32,
    /// Most questions; 0 for no bound.
    pub mrc: u32,
    /// For how long questions are asked; 0 for no bound.
    pub mrd: u32,
    /// The link.
    pub sw_if_index: InterfaceIndex,
    /// Whether no more questions are asked.
    pub stop: bool,
}

impl Request for Ip6ndSendRouterSolicitation {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (interface, nd) = (interface(call, self.sw_if_index)?, nd(call)?);
        if self.stop {
            nd.stop_soliciting(interface);
            return Ok(());
        }
        let secs = |n: u32| Duration::from_secs(n.into());
        let bound = |n: u32| (n != 0).then_some(n);
        Ok(nd.solicit(
            interface,
            Solicit {
                first: secs(self.irt),
                most: bound(self.mrt).map(secs),
                count: bound(self.mrc),
                duration: bound(self.mrd).map(secs),
            },
        )?)
    }
}
