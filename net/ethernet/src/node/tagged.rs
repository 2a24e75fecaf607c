//! Frames with tags in `ethernet-input`: as if the sub-interface that takes them had received them.

use shoal_buffer::{Packet, SwIfIndex};
use shoal_graph::Cx;
use shoal_interface::{IfData, IfFlags};
use shoal_wire::{EtherType, EthernetHeader};

use super::input::{Error, EthernetInput, Next, carries};
use crate::vlan::{Tags, is_outer};

/// Bytes of the addresses a frame begins with.
pub(super) const ADDRESSES: usize = 12;

/// Whether a frame has tags.
#[inline(always)]
pub(super) fn is_tagged(pkt: &Packet<'_>) -> bool {
    pkt.header::<EthernetHeader>().is_some_and(|header| is_outer(header.ether_type()))
}

/// Takes tags out of a frame. The addresses move to where the header of a frame without tags has them: nodes behind look for it
/// there.
#[inline(always)]
pub(super) fn strip(pkt: &mut Packet<'_>, tags: usize) -> Option<()> {
    match tags {
        0 => Some(()),
        4 => strip_front::<4, { ADDRESSES + 4 }>(pkt),
        _ => strip_front::<8, { ADDRESSES + 8 }>(pkt),
    }
}

#[inline(always)]
fn strip_front<const TAGS: usize, const FRONT: usize>(pkt: &mut Packet<'_>) -> Option<()> {
    let front = pkt.data_mut().first_chunk_mut::<FRONT>()?;
    let addresses: [u8; ADDRESSES] = *front.first_chunk()?;
    *front.last_chunk_mut()? = addresses;
    pkt.pull(TAGS).map(drop)
}

impl EthernetInput {
    /// A frame with tags is for the sub-interface that takes them; for a port in layer 2 itself, if none does.
    #[inline(never)]
    pub(super) fn tagged(&self, pkt: Packet<'_>, cx: &Cx<'_, Self>) -> Result<Next, Error> {
        let port = self.interfaces.get(pkt.rx(), cx.guard());
        if !port.is_up() {
            return Err(Error::Down);
        }
        // Not by `ok_or`, which makes bytes of the tags that are then waited for.
        let Some(tags) = Tags::of_frame(pkt.data()) else { return Err(Error::TooShort) };
        match self.vlans.tagged(pkt.rx(), &tags) {
            Some(sub) if sub != pkt.rx() => self.take_by(sub, pkt, tags.len(), cx),
            // A tag that carries a priority only.
            Some(_) => self.take_untagged(pkt, port, tags.len(), cx),
            None if port.flags().has(IfFlags::L2) => self.take(pkt, port, cx),
            None => Err(Error::Vlan),
        }
    }

    /// A frame goes on as received by a sub-interface.
    #[inline(always)]
    pub(super) fn take_by(
        &self,
        sub: SwIfIndex,
        mut pkt: Packet<'_>,
        tags: usize,
        cx: &Cx<'_, Self>,
    ) -> Result<Next, Error> {
        let data = self.interfaces.get(sub, cx.guard());
        let bytes = pkt.len() as u64;
        pkt.meta_mut().rx = sub;
        cx.counters().rx.add(cx.thread(), sub.0 as usize, 1, bytes);
        if !data.is_routed() {
            return if data.is_up() { self.take_untagged(pkt, data, tags, cx) } else { Err(Error::SubDown) };
        }
        strip(&mut pkt, tags).ok_or(Error::TooShort)?;
        if carries(EtherType::IP4, data, &mut pkt) {
            return Ok(Next::Ip4);
        }
        if carries(EtherType::IP6, data, &mut pkt) {
            return Ok(Next::Ip6);
        }
        self.take(pkt, data, cx)
    }

    /// Takes tags off, unless the frame stays in layer 2, where they are part of it.
    fn take_untagged(
        &self,
        mut pkt: Packet<'_>,
        data: &IfData,
        tags: usize,
        cx: &Cx<'_, Self>,
    ) -> Result<Next, Error> {
        if !data.flags().has(IfFlags::L2) {
            strip(&mut pkt, tags).ok_or(Error::TooShort)?;
        }
        self.take(pkt, data, cx)
    }
}
