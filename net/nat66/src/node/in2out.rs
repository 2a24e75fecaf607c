//! `nat66-in2out`: what hosts send to the outside has an outside address.
//! ip6-input -> **nat66-in2out** -> the next feature

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_derive::TraceLine;
use shoal_fib::FibIndex;
use shoal_graph::{Cx, PacketNode};
use shoal_ip6::IcmpError;
use shoal_nat::Ip6Seen;

use super::{Error, Next};
use crate::config::Shared;
use crate::translate::{arrive, is_expiring, leave};

/// What `show trace` says.
#[derive(TraceLine)]
#[line("NAT66-in2out: sw_if_index {interface}, next index {next}")]
pub struct Trace {
    interface: u32,
    next: u32,
}

/// Translates what hosts send.
pub struct In2out {
    pub(crate) shared: Arc<Shared>,
}

impl PacketNode for In2out {
    const NAME: &'static str = "nat66-in2out";
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
        let table = pkt.meta().fib().map_or_else(|| shared.interfaces.ip6_table(rx), |fib| fib.0);
        let served = config.external.get(&seen.dst).is_some();
        let way = if served { Some(table) } else { shared.way_out(config, table, seen.dst, cx.guard()) };
        let Some(way) = way else { return Ok(Next::Feature(cx.next_feature(pkt))) };
        let is_host = config.local.get(&(seen.src, FibIndex(table))).is_some();
        if is_host && is_expiring(pkt) {
            IcmpError::HOP_LIMIT.ask(pkt);
            return Ok(Next::IcmpError);
        }
        let left = leave(pkt, &seen, config, FibIndex(table)).map_err(|_| Error::Unknown)?;
        let Some(pair) = left else { return Ok(Next::Feature(cx.next_feature(pkt))) };
        shared.mappings.add(cx.thread(), pair.counter as usize, 1, pkt.len() as u64);
        shared.in2out.add(cx.thread(), rx.0 as usize, 1);
        if served {
            // Both ends are hosts inside that know each other by their outside addresses. The checksum has changed meanwhile.
            let seen = Ip6Seen::read(pkt.data()).map_err(|_| Error::Unknown)?;
            if let Some(pair) = arrive(pkt, &seen, config).map_err(|_| Error::Unknown)? {
                pkt.meta_mut().set_fib(Some(pair.table));
                shared.mappings.add(cx.thread(), pair.counter as usize, 1, pkt.len() as u64);
            }
        } else if way != table {
            pkt.meta_mut().set_fib(Some(FibIndex(way)));
        }
        Ok(Next::Feature(cx.next_feature(pkt)))
    }
}
