//! Software receive offload: TCP segments of one flow that follow each other become a superframe, the reverse of
//! [`crate::Segments`].
//!
//! What is merged is what cutting restores to the byte: same headers but for what counts up, same size but for the last,
//! nothing but ACK and PSH set, PSH on the last only, a checksum that is right, no IP option, extension header or
//! fragment. Everything else goes on as it came, and so does the order of a flow's packets.
//!
//! It works inside one frame and holds nothing back, so it needs no timer and no memory, and a packet that waits for no
//! other is not later for it.

use std::num::NonZeroU16;

use shoal_buffer::{Cache, Flags, Frame, Memory, Packet};

use crate::bytes::{be16, be32, ethernet_payload, put};
use crate::checksum::Sum;
use crate::hdr::{Csum, Gso, GsoKind, Offload};

/// Flows that are looked at side by side; another one takes the place of the oldest.
const FLOWS: usize = 8;
/// Most segments in a superframe.
const MOST_SEGMENTS: u16 = 64;
/// Most buffers in a superframe: what one system call takes, and a list of segments holds.
const MOST_BUFFERS: usize = 96;
/// Largest IPv4 packet, and largest payload of an IPv6 packet.
const LONGEST: usize = 65_535;

const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;
const IPPROTO_ICMP: u8 = 1;
const IPPROTO_ICMP6: u8 = 58;
const TCP_ACK: u8 = 0x10;
const TCP_PSH: u8 = 0x08;
const MORE_OR_OFFSET: u16 = 0x3fff;

/// What the frames begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// An Ethernet header.
    Ethernet,
    /// An IP header.
    Ip,
}

/// Where the parts of a TCP segment are, in bytes from its front.
#[derive(Clone, Copy, Debug)]
struct Layout {
    ip6: bool,
    net: usize,
    transport: usize,
    header: usize,
    payload: usize,
}

/// What a packet is to a flow.
enum Kind {
    /// A TCP segment, whole and without anything unusual in front of it.
    Tcp(Layout),
    /// Of no TCP flow.
    Other,
    /// It may be of any flow.
    Unclear,
}

/// A flow of which a packet may become a superframe.
#[derive(Clone, Copy)]
struct Flow {
    /// Its first packet's place.
    slot: usize,
    layout: Layout,
    /// Payload bytes so far.
    payload: usize,
    segments: u16,
    buffers: usize,
    psh: bool,
    /// Nothing is added any more.
    full: bool,
}

/// Merges what can be merged in a frame; tells how many packets have become part of another. `spare` is an empty frame
/// and is so again.
pub fn coalesce(frame: &mut Frame, spare: &mut Frame, cache: &mut Cache, front: Front) -> usize {
    if frame.len() < 2 {
        return 0;
    }
    let memory = cache.memory();
    let (mut table, mut merged) = (Table { flows: [None; FLOWS], oldest: 0 }, 0);
    for mut buffer in frame.drain() {
        let mut pkt = cache.packet(&mut buffer);
        let into = match kind(&pkt, front) {
            Kind::Other => None,
            Kind::Unclear => {
                table.finish(spare, memory);
                None
            }
            Kind::Tcp(layout) => table.take(&mut pkt, layout, spare, memory),
        };
        match into.and_then(|slot| spare.packet(memory, slot)) {
            Some(mut first) => {
                let added = cache.append(&mut first, buffer);
                debug_assert!(added.is_ok(), "what was just received shares nothing");
                merged += 1;
            }
            None => {
                if let Err(buffer) = spare.push(buffer) {
                    cache.free(buffer);
                }
            }
        }
    }
    table.finish(spare, memory);
    frame.append(spare);
    merged
}

struct Table {
    flows: [Option<Flow>; FLOWS],
    oldest: usize,
}

impl Table {
    /// Ends all superframes.
    fn finish(&mut self, frame: &mut Frame, memory: Memory) {
        self.flows.iter_mut().for_each(|flow| finish(flow.take(), frame, memory));
    }

    /// The place of the packet that this one, its headers taken off, is to be put behind; `None` when it stays one of
    /// its own, at the end of the frame.
    fn take(
        &mut self,
        pkt: &mut Packet<'_>,
        layout: Layout,
        frame: &mut Frame,
        memory: Memory,
    ) -> Option<usize> {
        let is_its = |flow: &Flow| {
            frame.packet(memory, flow.slot).is_some_and(|first| same_flow(&first, flow.layout, pkt, layout))
        };
        let mut is_its = is_its;
        let at = self.flows.iter().position(|flow| flow.as_ref().is_some_and(&mut is_its));
        let Some(place) = at.and_then(|at| self.flows.get_mut(at)) else {
            if let Some(new) = Flow::begin(pkt, layout, frame.len()) {
                // A free place, or that of the flow that has been there longest.
                let free = self.flows.iter().position(Option::is_none).unwrap_or(self.oldest % FLOWS);
                self.oldest = free + 1;
                if let Some(place) = self.flows.get_mut(free) {
                    finish(place.replace(new), frame, memory);
                }
            }
            return None;
        };
        if let Some(flow) = place
            && let Some(first) = frame.packet(memory, flow.slot)
            && flow.goes_on_with(&first, pkt, layout)
        {
            let (psh, buffers) = (tcp_flags(pkt, layout) & TCP_PSH != 0, pkt.segments().count());
            if pkt.pull(layout.header).is_some() {
                flow.add(layout.payload, buffers, psh);
                return Some(flow.slot);
            }
        }
        finish(place.take(), frame, memory);
        *place = Flow::begin(pkt, layout, frame.len());
        None
    }
}

impl Flow {
    /// A packet that others may be put behind, if it is one.
    fn begin(pkt: &Packet<'_>, layout: Layout, slot: usize) -> Option<Flow> {
        let psh = plain_flags(pkt, layout)? & TCP_PSH != 0;
        let (payload, buffers) = (layout.payload, pkt.segments().count());
        let plain = payload > 0 && layout.header <= pkt.segment_len() && !pkt.flags().has(Flags::GSO);
        plain.then_some(Flow { slot, layout, payload, segments: 1, buffers, psh, full: psh })
    }

    /// Whether a packet of this flow is what follows.
    fn goes_on_with(&self, first: &Packet<'_>, pkt: &Packet<'_>, layout: Layout) -> bool {
        let short = layout.payload > 0 && layout.payload <= self.layout.payload;
        let bytes = self.payload + layout.payload + self.layout.header - self.layout.net;
        let room = bytes <= LONGEST
            && self.segments < MOST_SEGMENTS
            && self.buffers + pkt.segments().count() <= MOST_BUFFERS;
        !self.full
            && short
            && room
            && layout.header == self.layout.header
            && !pkt.flags().has(Flags::GSO)
            && plain_flags(pkt, layout).is_some()
            && self.follows(first, pkt).unwrap_or(false)
            // What is wrong must not be made right by merging.
            && is_sound(pkt, layout)
            && (self.segments > 1 || is_sound(first, self.layout))
    }

    /// Whether its headers are the first packet's but for what counts up.
    fn follows(&self, first: &Packet<'_>, pkt: &Packet<'_>) -> Option<bool> {
        let Layout { ip6, net, transport, header, .. } = self.layout;
        let (a, b) = (first.data(), pkt.data());
        let same = |from: usize, to: usize| Some(a.get(from..to)? == b.get(from..to)?);
        let network = if ip6 {
            same(net, net + 4)? && same(net + 6, transport)?
        } else {
            let id = be16(a, net + 4)?.wrapping_add(self.segments);
            same(net, net + 2)?
                && be16(b, net + 4)? == id
                && same(net + 6, net + 10)?
                && same(net + 12, transport)?
        };
        let seq = be32(a, transport + 4)?.wrapping_add(self.payload as u32);
        // Ports, acknowledgement, length; window; urgent pointer and options. The flags were looked at.
        let tcp = same(transport, transport + 4)?
            && be32(b, transport + 4)? == seq
            && same(transport + 8, transport + 13)?
            && same(transport + 14, transport + 16)?
            && same(transport + 18, header)?;
        Some(same(0, net)? && network && tcp)
    }

    fn add(&mut self, payload: usize, buffers: usize, psh: bool) {
        self.payload += payload;
        self.segments += 1;
        self.buffers += buffers;
        self.psh |= psh;
        self.full = psh || payload < self.layout.payload;
    }
}

/// Makes a packet that others were put behind a superframe.
fn finish(flow: Option<Flow>, frame: &mut Frame, memory: Memory) {
    if let Some(flow) = flow.filter(|flow| flow.segments > 1)
        && let Some(mut pkt) = frame.packet(memory, flow.slot)
    {
        // Its headers lie in its first segment: that was looked at.
        let written = write_headers(&mut pkt, &flow);
        debug_assert!(written.is_some(), "headers of a superframe");
    }
}

fn write_headers(pkt: &mut Packet<'_>, flow: &Flow) -> Option<()> {
    let Layout { ip6, net, transport, header, payload, .. } = flow.layout;
    let l4_len = u16::try_from(header - transport + flow.payload).ok()?;
    let head = pkt.data_mut().get_mut(..header)?;
    let mut pseudo = Sum::default();
    pseudo.add_u16(u16::from(IPPROTO_TCP));
    pseudo.add_u16(l4_len);
    let ip = head.get_mut(net..transport)?;
    if ip6 {
        put(ip, 4, &l4_len.to_be_bytes())?;
        pseudo.add(ip.get(8..40)?);
    } else {
        put(ip, 2, &u16::try_from(usize::from(l4_len) + 20).ok()?.to_be_bytes())?;
        put(ip, 10, &[0, 0])?;
        let mut sum = Sum::default();
        sum.add(ip);
        put(ip, 10, &sum.finish().to_be_bytes())?;
        pseudo.add(ip.get(12..20)?);
    }
    if flow.psh {
        *head.get_mut(transport + 13)? |= TCP_PSH;
    }
    put(head, transport + 16, &(!pseudo.finish()).to_be_bytes())?;
    let gso = Gso {
        kind: if ip6 { GsoKind::Tcp6 } else { GsoKind::Tcp4 },
        size: NonZeroU16::new(payload as u16)?,
        header_len: header as u16,
        ecn: false,
    };
    Offload { csum: Csum::Partial { start: transport as u16, offset: 16 }, gso: Some(gso) }.store(pkt).ok()
}

/// What a packet is, by its first segment.
fn kind(pkt: &Packet<'_>, front: Front) -> Kind {
    let data = pkt.data();
    let net = match front {
        Front::Ip => Some(0),
        Front::Ethernet => ethernet_payload(data),
    };
    let Some(net) = net else { return Kind::Unclear };
    if front == Front::Ethernet && !matches!(be16(data, net - 2), Some(0x0800 | 0x86dd)) {
        return Kind::Other;
    }
    layout(data, net, pkt.len()).unwrap_or(Kind::Unclear)
}

/// `None` for what is cut short, lies, or has something in front of its transport header.
fn layout(data: &[u8], net: usize, len: usize) -> Option<Kind> {
    let first = *data.get(net)?;
    let (ip6, protocol, transport, end) = match first >> 4 {
        4 if first == 0x45 && be16(data, net + 6)? & MORE_OR_OFFSET == 0 => {
            (false, *data.get(net + 9)?, net + 20, net + usize::from(be16(data, net + 2)?))
        }
        6 => (true, *data.get(net + 6)?, net + 40, net + 40 + usize::from(be16(data, net + 4)?)),
        _ => return None,
    };
    match protocol {
        IPPROTO_TCP => {}
        IPPROTO_UDP | IPPROTO_ICMP | IPPROTO_ICMP6 => return Some(Kind::Other),
        _ => return None,
    }
    let header = transport + usize::from(*data.get(transport + 12)? >> 4) * 4;
    // Padding behind the end would become payload.
    let whole = end == len && header >= transport + 20 && header <= end && header <= data.len();
    whole.then(|| Kind::Tcp(Layout { ip6, net, transport, header, payload: end - header }))
}

fn tcp_flags(pkt: &Packet<'_>, layout: Layout) -> u8 {
    pkt.data().get(layout.transport + 13).copied().unwrap_or(0)
}

/// The flags when they are no others than ACK and PSH, and the four bits in front of them are zero.
fn plain_flags(pkt: &Packet<'_>, layout: Layout) -> Option<u8> {
    let flags = tcp_flags(pkt, layout);
    let reserved = pkt.data().get(layout.transport + 12)? & 0xf;
    (flags & !TCP_PSH == TCP_ACK && reserved == 0).then_some(flags)
}

/// Whether two packets have the same addresses and ports.
fn same_flow(first: &Packet<'_>, a: Layout, pkt: &Packet<'_>, b: Layout) -> bool {
    // Side by side in both families.
    let tuple = |at: Layout| at.net + if at.ip6 { 8 } else { 12 }..at.transport + 4;
    a.ip6 == b.ip6 && first.data().get(tuple(a)) == pkt.data().get(tuple(b))
}

/// Whether the checksums are right, or the transport's is still to be computed by the sender that vouches for the
/// bytes. A right checksum in a form that cutting would not write is none: a sum of 0 is written as all ones.
fn is_sound(pkt: &Packet<'_>, layout: Layout) -> bool {
    if !layout.ip6 {
        let mut sum = Sum::default();
        sum.add(pkt.data().get(layout.net..layout.transport).unwrap_or_default());
        if sum.finish() != 0 {
            return false;
        }
    }
    let flags = pkt.flags();
    if flags.has(Flags::L4_CHECKSUM_OFFLOAD) {
        // Left open as it is left open here, nowhere else.
        return usize::try_from(i32::from(pkt.meta().l4) - i32::from(pkt.current())) == Ok(layout.transport)
            && pkt.meta().checksum_offset == 16;
    }
    if be16(pkt.data(), layout.transport + 16).is_none_or(|sum| sum == 0) {
        return false;
    }
    if flags.has(Flags::L4_CHECKSUM_OK) {
        return true;
    }
    let mut sum = Sum::default();
    sum.add_u16(u16::from(IPPROTO_TCP));
    sum.add_u16((layout.header - layout.transport + layout.payload) as u16);
    let addresses = if layout.ip6 { layout.net + 8 } else { layout.net + 12 };
    // Addresses and transport lie side by side.
    let mut skip = addresses;
    for segment in pkt.segments() {
        sum.add(segment.get(skip..).unwrap_or_default());
        skip = skip.saturating_sub(segment.len());
    }
    sum.finish() == 0
}
