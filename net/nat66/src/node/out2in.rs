//! `nat66-out2in`: what comes from outside reaches the host that has the address.
//! ip6-input -> **nat66-out2in** -> the next feature

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_derive::TraceLine;
use shoal_graph::{Cx, PacketNode};
use shoal_ip6::IcmpError;
use shoal_nat::Ip6Seen;

use super::{Error, Next};
use crate::config::Shared;
use crate::translate::{arrive, is_expiring};

/// What `show trace` says.
#[derive(TraceLine)]
#[line("NAT66-out2in: sw_if_index {interface}, next index {next}")]
pub struct Trace {
    interface: u32,
    next: u32,
}

/// Translates what is sent to hosts.
pub struct Out2in {
    pub(crate) shared: Arc<Shared>,
}

impl PacketNode for Out2in {
    const NAME: &'static str = "nat66-out2in";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let (rx, shared) = (pkt.rx(), &self.shared);
        let config = shared.config.load(cx.guard());
        if !config.on {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        }
        let Ok(seen) = Ip6Seen::read(pkt.data()) else {
            cx.trace(pkt, || Trace { interface: rx.0, next: 1 });
            return Err(Error::Unknown);
        };
        cx.trace(pkt, || Trace { interface: rx.0, next: 0 });
        if config.external.get(&seen.dst).is_none() {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        }
        // The packet in the error is to have the address that its sender sent it to.
        if is_expiring(pkt) {
            IcmpError::HOP_LIMIT.ask(pkt);
            return Ok(Next::IcmpError);
        }
        if let Some(pair) = arrive(pkt, &seen, config).map_err(|_| Error::Unknown)? {
            pkt.meta_mut().set_fib(Some(pair.table));
            shared.mappings.add(cx.thread(), pair.counter as usize, 1, pkt.len() as u64);
            shared.out2in.add(cx.thread(), rx.0 as usize, 1);
        }
        Ok(Next::Feature(cx.next_feature(pkt)))
    }
}
