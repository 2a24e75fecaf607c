//! `ip4-sv-reassembly-feature`, `ip6-sv-reassembly-feature` and their `-output-feature`: every packet learns what its
//! transport header says, fragments from the first one of their datagram.
//! features of `ip4-unicast` or `ip4-output` -> **ip4-sv-reassembly-feature** -> the next feature | ip4-sv-reassembly

use std::marker::PhantomData;

use shoal_buffer::slot::SlotKey;
use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::ErrorCounters;
use shoal_graph::superpath::{Optional, Pass};
use shoal_graph::{Cx, PacketNode};
use shoal_infra::Guard;

use super::FragmentNext;
use crate::family::Family;
use crate::l4::{L4, Words};
use crate::state::Ticket;

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// unsupported ip protocol
    #[counter("reass_unsupp_ip_prot")]
    Unsupported4,
    /// unsupported ip protocol
    #[counter("reass_unsupp_ip_proto")]
    Unsupported6,
    /// packets without the words of a transport header
    #[counter("reass_no_words")]
    #[severity(info)]
    NoWords,
    /// link-layer header is not where it was
    #[counter("reass_internal_error")]
    Front,
}

/// Reads what there is to read.
pub struct SvFeature<F, const OUTPUT: bool> {
    words: SlotKey<L4>,
    family: PhantomData<F>,
}

impl<F, const OUTPUT: bool> SvFeature<F, OUTPUT> {
    /// It leaves what it reads in this slot.
    pub fn new(words: SlotKey<L4>) -> Self {
        SvFeature { words, family: PhantomData }
    }
}

/// On a fused path, packets that are no fragments pass; the node sees to the others. One that says all by itself learns only
/// that it is none.
impl<F: Family, const OUTPUT: bool> Optional for SvFeature<F, OUTPUT> {
    const NAME: &'static str = <Self as PacketNode>::NAME;
    type Facts<'g> = ();

    fn facts(&self, _: SwIfIndex, _: Guard<'_>) {}

    #[inline(always)]
    fn pass(&self, (): (), pkt: &mut Packet<'_>, _: &Cx<'_, Self>) -> Pass {
        let Some(link) = Self::link(pkt).filter(|link| pkt.pull(*link).is_some()) else {
            return Pass::Leave;
        };
        let words = Self::words(pkt);
        if pkt.push(link).is_none() {
            return Pass::Leave;
        }
        let Some(words) = words else { return Pass::Leave };
        words.put(self.words.get_mut(pkt));
        Pass::On
    }
}

impl<F: Family, const OUTPUT: bool> SvFeature<F, OUTPUT> {
    /// Bytes of the link's header that are in front: there are some behind the rewrite.
    #[inline(always)]
    fn link(pkt: &Packet<'_>) -> Option<usize> {
        if !OUTPUT {
            return Some(0);
        }
        usize::try_from(i32::from(pkt.meta().l3) - i32::from(pkt.current())).ok()
    }

    /// What is noted of a packet on a fused path.
    #[inline(always)]
    fn words(pkt: &Packet<'_>) -> Option<Words> {
        if F::is_fragment(pkt) {
            None
        } else if F::has_transport(pkt) {
            Some(Words::default())
        } else {
            F::l4(pkt)
        }
    }
}

impl<F: Family, const OUTPUT: bool> PacketNode for SvFeature<F, OUTPUT> {
    const NAME: &'static str = if OUTPUT { F::NODES.sv_output_feature } else { F::NODES.sv_feature };
    type Next = FragmentNext<F>;
    type Error = Error;
    type Trace = L4;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Self::Next, Error> {
        let next = cx.next_feature(pkt);
        // Behind the rewrite the link's header is in front.
        let link = Self::link(pkt).ok_or(Error::Front)?;
        pkt.pull(link).ok_or(Error::Front)?;
        if F::is_fragment(pkt) {
            // A first fragment without ports has no words for the others.
            if F::l4(pkt).is_some_and(|words| !words.l4().is_known()) && F::is_first(pkt) {
                return Err(if F::NAME == "ip4" { Error::Unsupported4 } else { Error::Unsupported6 });
            }
            let ticket = Ticket::to(cx.target(next), cx.thread());
            Ticket { link: link as u16, ..ticket }.put(pkt);
            return Ok(FragmentNext::FRAGMENT);
        }
        let words = F::l4(pkt).unwrap_or_else(|| {
            cx.count(Error::NoWords, 1);
            Words::default()
        });
        words.put(self.words.get_mut(pkt));
        cx.trace(pkt, || words.l4());
        pkt.push(link).ok_or(Error::Front)?;
        Ok(FragmentNext::On(next))
    }
}
