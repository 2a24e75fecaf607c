//! `pnat-input`, `pnat-output`: packets that match a rule are rewritten.
//! features of `ip4-unicast` | of `ip4-output` -> **pnat-input** -> the next feature

use std::fmt;
use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_nat::{ParsedPacket, Sum};

use crate::apply::apply;
use crate::config::{Rule, Shared};
use crate::rule::{Match, Place};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature.
    Feature(Edge),
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// successfully rewritten
    #[severity(info)]
    #[counter("none")]
    Rewritten,
    /// rewrite failed
    Rewrite,
    /// packet too short for rewrite
    #[severity(info)]
    Tooshort,
}

/// What `show trace` says of the rule.
struct Found(Option<Rule>);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(Rule { index, of, rewrite }) => {
                write!(f, "pnat: index {index}\n      match: {of}\n      rewrite: {rewrite}")
            }
            None => f.write_str("pnat: no match"),
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{found}")]
pub struct Trace {
    found: Found,
}

/// The code of both nodes.
pub struct Node<const OUTPUT: bool> {
    pub(crate) shared: Arc<Shared>,
}

impl<const OUTPUT: bool> Node<OUTPUT> {
    /// Where the IP header begins: on the way out the link's header is in front already.
    #[inline(always)]
    fn front(pkt: &Packet<'_>) -> usize {
        if OUTPUT {
            usize::try_from(i32::from(pkt.meta().l3) - i32::from(pkt.current())).unwrap_or(usize::MAX)
        } else {
            0
        }
    }

    /// Reads a packet; `None` if it is cut short.
    #[inline(always)]
    fn seen(&self, pkt: &Packet<'_>, front: usize) -> Option<ParsedPacket> {
        let mut seen = ParsedPacket::read(pkt.data().get(front..)?)?;
        if seen.fragment && !seen.first {
            let words = self.shared.words.get(pkt);
            if words.protocol == seen.protocol {
                (seen.tuple.sport, seen.tuple.dport) = (words.src_port, words.dst_port);
            }
        }
        Some(seen)
    }
}

impl<const OUTPUT: bool> PacketNode for Node<OUTPUT> {
    const NAME: &'static str = if OUTPUT { "pnat-output" } else { "pnat-input" };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let at = if OUTPUT { (pkt.tx(), Place::Output) } else { (pkt.rx(), Place::Input) };
        let config = self.shared.config.load(cx.guard());
        let Some(mask) = config.masks.get(&at).copied() else {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        };
        let front = Self::front(pkt);
        let seen = self.seen(pkt, front).ok_or(Error::Tooshort)?;
        let key = Match { mask, tuple: seen.tuple, protocol: seen.protocol }.masked(mask);
        let found = config.rules.get(&(at, key)).copied();
        cx.trace(pkt, || Trace { found: Found(found) });
        if let Some(rule) = found {
            let sum = Sum::of(pkt);
            let bytes = pkt.data_mut().get_mut(front..).ok_or(Error::Tooshort)?;
            apply(&rule.rewrite, bytes, &seen, sum).map_err(|_| Error::Rewrite)?;
            cx.count(Error::Rewritten, 1);
        }
        Ok(Next::Feature(cx.next_feature(pkt)))
    }
}
