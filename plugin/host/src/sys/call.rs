//! A frame is shown to a node, and what the node decided is read back.

use std::mem::MaybeUninit;

use shoal_buffer::{FRAME_SIZE, Flags, Frame, HEADROOM, Memory, Packet};
use shoal_plugin_abi as abi;

use super::Code;
use super::library::printable;

const _: () = assert!(FRAME_SIZE == abi::SHOAL_FRAME_SIZE as usize);
const _: () = assert!(shoal_graph::MAX_THREADS == abi::SHOAL_MAX_THREADS as usize);

/// What is the same for a whole frame.
pub(crate) struct Call<'a> {
    pub(crate) memory: Memory,
    pub(crate) thread: usize,
    /// Nanoseconds.
    pub(crate) now: u64,
    /// The node's counters, zero.
    pub(crate) counts: &'a mut [u64],
}

/// What a node decided about one packet: unchecked numbers.
pub(crate) struct Decision<'a> {
    view: &'a abi::Packet,
    code: &'a Code,
}

impl Decision<'_> {
    /// Where the bytes begin, from the start of the headroom, and how many there are.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.view.start as usize, self.view.length as usize)
    }

    /// A position among the next nodes, or one of the ABI's words.
    pub(crate) fn next(&self) -> u16 {
        self.view.next
    }

    /// Why it is dropped.
    pub(crate) fn error(&self) -> u16 {
        self.view.error
    }

    /// The node's trace line for the packet, which it is shown again: what it made of its own view may be anything. For
    /// traced packets only: it allocates.
    pub(crate) fn said(&self, pkt: &mut Packet<'_>) -> Option<String> {
        let trace = self.code.trace?;
        let shown = abi::Packet { next: self.view.next, error: self.view.error, ..view(pkt) };
        let mut text = [0u8; abi::SHOAL_TRACE_SIZE as usize];
        // SAFETY: the function is the plugin's for this context; the view is alive, and so are the bytes it points to,
        // as the caller holds the packet; the text has the room that is told.
        let n = unsafe { trace(self.code.context, &raw const shown, text.as_mut_ptr().cast(), text.len()) };
        let said = printable(text.get(..n)?);
        (!said.is_empty()).then_some(said)
    }
}

/// What a node sees of a packet.
fn view(pkt: &mut Packet<'_>) -> abi::Packet {
    let (start, length) = (pkt.headroom(), pkt.segment_len());
    let (chained, rest) = (pkt.is_chained(), pkt.len() - length);
    let meta = pkt.meta();
    let flags = [
        (Flags::TRACED, abi::SHOAL_PACKET_TRACED),
        (Flags::L4_CHECKSUM_OFFLOAD, abi::SHOAL_PACKET_CHECKSUM_LEFT),
        (Flags::GSO, abi::SHOAL_PACKET_GSO),
    ];
    let set = |all: u32, (ours, theirs)| if meta.flags.has(ours) { all | theirs } else { all };
    let flags = flags.into_iter().fold(0, set);
    let l3 = (HEADROOM as i32 + i32::from(meta.l3)).max(0).cast_unsigned();
    let (rx, tx) = (pkt.rx().0, pkt.tx().0);
    let scratch = pkt.scratch_line().as_mut_ptr();
    let area = pkt.area_mut();
    abi::Packet {
        base: area.as_mut_ptr(),
        scratch,
        start: start as u32,
        length: length as u32,
        capacity: if chained { start + length } else { area.len() } as u32,
        rest: rest as u32,
        l3,
        rx_sw_if_index: rx,
        tx_sw_if_index: tx,
        flags,
        next: abi::SHOAL_NEXT_UNDECIDED,
        error: 0,
        reserved: [0; 3],
    }
}

/// Calls a node for a frame; then shows each packet with what was decided about it, in order.
pub(crate) fn process(
    code: &Code,
    frame: &mut Frame,
    call: Call<'_>,
    mut decided: impl FnMut(usize, &mut Packet<'_>, &Decision<'_>),
) {
    // Not set to zero: sixteen kilobytes a call.
    let mut views = [const { MaybeUninit::<abi::Packet>::uninit() }; FRAME_SIZE];
    frame.each(call.memory, |i, pkt| {
        if let Some(slot) = views.get_mut(i) {
            slot.write(view(pkt));
        }
    });
    let mut shown = abi::Frame {
        size: size_of::<abi::Frame>() as u32,
        thread: call.thread as u32,
        count: frame.len() as u32,
        counters: call.counts.len() as u32,
        packets: views.as_mut_ptr().cast(),
        counts: call.counts.as_mut_ptr(),
        now: call.now,
    };
    // SAFETY: the function is the plugin's for this context. The first `count` views were written above and point to
    // memory of packets of this frame, which is borrowed mutably; counts are as many as told. What the plugin may not
    // touch it is not given.
    unsafe { (code.process)(code.context, &raw mut shown) };
    frame.each(call.memory, |i, pkt| {
        if let Some(view) = views.get(i) {
            // SAFETY: written above: the frame holds the same packets as then. Whatever the plugin wrote is a value of
            // the type, which is made of integers and pointers.
            let view = unsafe { view.assume_init_ref() };
            decided(i, pkt, &Decision { view, code });
        }
    });
}
