//! `ip6_dad_*`: whether the link is asked for a new address before it is used.

use std::time::Duration;

use shoal_message::{Message, Retval};
use shoal_module::api::{Call, Dump, Request};

use super::nd;
use crate::Nd;

/// Sets whether the link is asked for new addresses, and how.
#[derive(Message)]
#[message(request)]
pub struct Ip6DadEnableDisable {
    #[preset("true")]
    pub enable: bool,
    /// How often it is asked.
    #[preset(1)]
    pub dad_transmits: u8,
    /// Seconds between two questions, and behind the last one.
    #[preset(1.0)]
    pub dad_retransmit_delay: f64,
}

impl Request for Ip6DadEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let nd = nd(call)?;
        if !self.enable {
            nd.set_dad_transmits(0);
            return Ok(());
        }
        if self.dad_transmits == 0 {
            return Err(Retval::INVALID_VALUE);
        }
        let delay = Duration::try_from_secs_f64(self.dad_retransmit_delay);
        nd.set_dad(self.dad_transmits.into(), delay.map_err(|_| Retval::INVALID_VALUE)?)?;
        Ok(())
    }
}

/// Asks how the link is asked for new addresses.
#[derive(Message)]
#[message(request, details = Ip6DadDetails)]
pub struct Ip6DadDump {}

/// How the link is asked for new addresses.
#[derive(Message)]
#[message(reply)]
pub struct Ip6DadDetails {
    pub enabled: bool,
    /// How often it is asked.
    pub dad_transmits: u8,
    /// Seconds between two questions, and behind the last one.
    pub dad_retransmit_delay: f64,
}

impl Dump for Ip6DadDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Ip6DadDetails> + 'static {
        let details = |nd: std::rc::Rc<Nd>| Ip6DadDetails {
            enabled: nd.dad_transmits() > 0,
            dad_transmits: u8::try_from(nd.dad_transmits()).unwrap_or(u8::MAX),
            dad_retransmit_delay: nd.dad_retransmit().as_secs_f64(),
        };
        call.get::<Nd>().ok().map(details).into_iter()
    }
}
