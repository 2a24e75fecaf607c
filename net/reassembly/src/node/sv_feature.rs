//! `ip4-sv-reassembly-feature`, `ip6-sv-reassembly-feature` and their `-output-feature`: every packet learns what its
//! transport header says, fragments from the first one of their datagram.
//! features of `ip4-unicast` or `ip4-output` -> **ip4-sv-reassembly-feature** -> the next feature | ip4-sv-reassembly

use std::marker::PhantomData;

use shoal_buffer::Packet;
use shoal_buffer::slot::SlotKey;
use shoal_derive::ErrorCounters;
use shoal_graph::{Cx, PacketNode};

use super::Way;
use crate::family::Family;
use crate::l4::L4;
use crate::state::Ticket;

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// packets without the words of a transport header
    #[counter("reass_unsupp_ip_prot")]
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

impl<F: Family, const OUTPUT: bool> PacketNode for SvFeature<F, OUTPUT> {
    const NAME: &'static str = if OUTPUT { F::NODES.sv_output_feature } else { F::NODES.sv_feature };
    type Next = Way<F, true>;
    type Error = Error;
    type Trace = L4;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Self::Next, Error> {
        let next = cx.next_feature(pkt);
        // Behind the rewrite the link's header is in front.
        let link = if OUTPUT {
            let bytes = i32::from(pkt.meta().l3) - i32::from(pkt.current());
            usize::try_from(bytes).map_err(|_| Error::Front)?
        } else {
            0
        };
        pkt.pull(link).ok_or(Error::Front)?;
        if F::is_fragment(pkt) {
            let ticket = Ticket::to(cx.target(next), cx.thread());
            Ticket { link: link as u16, ..ticket }.put(pkt);
            return Ok(Way::FRAGMENT);
        }
        let l4 = F::l4(pkt).unwrap_or_else(|| {
            cx.count(Error::NoWords, 1);
            L4::default()
        });
        *self.words.get_mut(pkt) = l4;
        cx.trace(pkt, || l4);
        pkt.push(link).ok_or(Error::Front)?;
        Ok(Way::On(next))
    }
}
