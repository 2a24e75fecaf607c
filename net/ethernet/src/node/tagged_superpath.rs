//! `ethernet-vlan-superpath`: frames of a port that has sub-interfaces go to the superpaths of those that take them.
//! driver -> **ethernet-vlan-superpath** -> a superpath | ethernet-input
//!
//! What `ethernet-input` does to a frame with tags is done here for many at once: the sub-interface is found once for frames
//! that follow each other with the same tag, and they are counted together. All that a superpath does not take goes to
//! `ethernet-input` as it came, and so do all frames while packets are traced.

use shoal_buffer::{FRAME_SIZE, Frame, Packet, SwIfIndex};
use shoal_derive::NextNodes;
use shoal_graph::{Edge, FrameCx, FrameNode, NoError, NodeIndex};
use shoal_infra::Guard;
use shoal_interface::{IfFlags, IfTable};
use shoal_wire::EtherType;

use super::tagged::{ADDRESSES, strip};
use crate::vlan::{Tags, VlanTable, is_outer};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The ordinary way.
    #[node("ethernet-input")]
    Ethernet,
}

/// The edge of [`Next::Ethernet`].
const ETHERNET: Edge = Edge(1);
/// Bytes of a frame up to the type behind one tag.
const HEAD: usize = ADDRESSES + 6;

/// What becomes of a frame.
#[derive(Clone, Copy)]
struct FrameTarget {
    /// The receiver: a sub-interface, or none but the port.
    sub: Option<SwIfIndex>,
    /// Bytes of tags that are taken out.
    strip: usize,
    node: NodeIndex,
}

/// Frames that follow each other with the same tag.
struct SameTagRun {
    rx: SwIfIndex,
    /// Type, id and the type behind.
    tag: [u8; 6],
    to: FrameTarget,
    packets: u64,
    bytes: u64,
}

/// Needs to know which sub-interface takes which tags.
pub struct TaggedSuperpath {
    /// All interfaces.
    pub interfaces: IfTable,
    /// Which sub-interface takes which tags.
    pub vlans: VlanTable,
    /// `ethernet-input`.
    pub ethernet: NodeIndex,
}

/// The tag of a frame whose first one says it all: it has one, or none.
#[inline(always)]
fn one_tag(pkt: &Packet<'_>) -> Option<[u8; 6]> {
    let head: &[u8; HEAD] = pkt.data().first_chunk()?;
    let tag: &[u8; 6] = head.last_chunk()?;
    let [.., inner_high, inner_low] = *tag;
    if !is_outer(EtherType(u16::from_be_bytes([tag[0], tag[1]]))) {
        return Some([0; 6]);
    }
    let one = EtherType(u16::from_be_bytes([inner_high, inner_low])) != EtherType::VLAN;
    let mut tag = *tag;
    // The priority is of no account.
    tag[2] &= 0x0f;
    one.then_some(tag)
}

impl TaggedSuperpath {
    fn find(&self, pkt: &Packet<'_>, guard: Guard<'_>) -> FrameTarget {
        let (rx, ordinary) = (pkt.rx(), FrameTarget { sub: None, strip: 0, node: self.ethernet });
        let port = self.interfaces.get(rx, guard);
        let own = FrameTarget { node: port.superpath().unwrap_or(self.ethernet), ..ordinary };
        let Some(tags) = Tags::of_frame(pkt.data()) else { return own };
        let Some(sub) = self.vlans.tagged(rx, &tags).filter(|sub| *sub != rx) else { return own };
        let data = self.interfaces.get(sub, guard);
        let Some(node) = data.superpath().filter(|_| port.is_up()) else { return ordinary };
        if data.is_routed() {
            let at = ADDRESSES + tags.len();
            let behind = pkt.data().get(at..).and_then(<[u8]>::first_chunk::<2>);
            let more = behind.is_none_or(|kind| is_outer(EtherType(u16::from_be_bytes(*kind))));
            return if more { ordinary } else { FrameTarget { sub: Some(sub), strip: tags.len(), node } };
        }
        if data.is_up() && data.flags().has(IfFlags::L2) {
            return FrameTarget { sub: Some(sub), strip: 0, node };
        }
        ordinary
    }
}

/// Does it to a packet; the node it goes to.
#[inline(always)]
fn turn(pkt: &mut Packet<'_>, to: FrameTarget) -> NodeIndex {
    let Some(sub) = to.sub else { return to.node };
    pkt.meta_mut().rx = sub;
    // There are as many bytes: the tags were read.
    let _ = strip(pkt, to.strip);
    to.node
}

impl FrameNode for TaggedSuperpath {
    const NAME: &'static str = "ethernet-vlan-superpath";
    type Next = Next;
    type Error = NoError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        if cx.tracing() {
            return cx.send_frame(ETHERNET, frame);
        }
        let (guard, memory, thread) = (cx.guard(), cx.memory(), cx.thread());
        let mut nodes = [self.ethernet; FRAME_SIZE];
        let nowhere = FrameTarget { sub: None, strip: 0, node: self.ethernet };
        let mut same = SameTagRun { rx: SwIfIndex::NONE, tag: [0; 6], to: nowhere, packets: 0, bytes: 0 };
        let counters = cx.counters();
        let count = |same: &mut SameTagRun| {
            if let Some(sub) = same.to.sub.filter(|_| same.packets > 0) {
                counters.rx.add(thread, sub.0 as usize, same.packets, same.bytes);
            }
            (same.packets, same.bytes) = (0, 0);
        };
        let mut alike = true;
        let mut first = None;
        frame.each(memory, |i, pkt| {
            let rx = pkt.rx();
            let known = one_tag(pkt);
            if known != Some(same.tag) || rx != same.rx {
                count(&mut same);
                same.to = self.find(pkt, guard);
                // Of several tags or of a short frame nothing is remembered.
                (same.rx, same.tag) = known.map_or((SwIfIndex::NONE, [0; 6]), |tag| (rx, tag));
            }
            (same.packets, same.bytes) = (same.packets + 1, same.bytes + pkt.len() as u64);
            let node = turn(pkt, same.to);
            alike &= *first.get_or_insert(node) == node;
            if let Some(slot) = nodes.get_mut(i) {
                *slot = node;
            }
        });
        count(&mut same);
        match first {
            Some(node) if alike => {
                let mut whole = cx.blank();
                whole.append(frame);
                cx.forward(node, whole);
            }
            _ => frame.drain().zip(nodes).for_each(|(buffer, node)| cx.send_to(node, buffer)),
        }
    }
}
