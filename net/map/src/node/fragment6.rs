//! `ip4-map-t-fragment`: translated packets that are too large for a domain are cut (MAP-T).
//! ip4-map-t -> **ip4-map-t-fragment** -> ip6-lookup | ip6-load-balance
//!
//! A frame node, because one packet becomes several.

use shoal_buffer::Frame;
use shoal_derive::NextNodes;
use shoal_graph::{FrameCx, FrameNode, NextNodes as _};
use shoal_ip6::node::frag::{Error as CutError, Ip6Frag};
use shoal_wire::IntoBytes;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::Error;

/// What becomes of a packet's pieces, in its scratch.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Cut6 {
    mtu: u16,
    /// Not 0: they go to a next hop that is set.
    has_next_hop: u16,
}

impl Cut6 {
    /// Pieces of at most `mtu` bytes, by a next hop that is set or the table's.
    pub fn new(mtu: u16, has_next_hop: bool) -> Cut6 {
        Cut6 { mtu, has_next_hop: has_next_hop.into() }
    }
}

/// Where pieces go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To the customer.
    #[node("ip6-lookup")]
    Lookup,
    /// The same, by a next hop that is set.
    #[node("ip6-load-balance")]
    LoadBalance,
}

/// The node.
pub struct Fragment6 {
    pub(crate) cutter: Ip6Frag,
}

impl FrameNode for Fragment6 {
    const NAME: &'static str = "ip4-map-t-fragment";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let mut pieces = cx.blank();
        for mut buffer in frame.drain() {
            let mut pkt = cx.cache().packet(&mut buffer);
            let Cut6 { mtu, has_next_hop } = *pkt.scratch::<Cut6>();
            let next = if has_next_hop == 0 { Next::Lookup } else { Next::LoadBalance };
            match self.cutter.cut(&mut pkt, mtu.into(), &mut pieces, cx) {
                Ok(_) => {
                    cx.send_frame(next.edge(), &mut pieces);
                    cx.cache().free(buffer);
                }
                Err(why) => {
                    cx.free_frame(&mut pieces);
                    let why = if why == CutError::NoBuffer {
                        Error::FragmentMemory
                    } else {
                        Error::FragmentMalformed
                    };
                    cx.drop(buffer, why);
                }
            }
        }
        cx.recycle(pieces);
    }
}
