//! The receive queue of a stream.
//!
//! Described packets of one size are copied from a template into a whole frame of fresh buffers; everything else
//! (captures, sizes that change, packets longer than a buffer) is made packet by packet.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_buffer::{DATA_SIZE, Flags, Frame, Packet, SwIfIndex};
use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NodeIndex, RxQueue};
use shoal_interface::IfTable;

use super::input::{Entry, Error, enter};
use crate::Mode;
use crate::data::{Blueprint, Offload, Order, Random, Template};
use crate::receive::Receive;
use crate::stream::{Pace, Shared, Size};

/// What a stream's packets are made of.
pub(crate) enum Filler {
    Template(Template),
    Packets(Vec<Vec<u8>>),
    Sizes { blueprint: Blueprint, size: Size, scratch: Vec<u8> },
}

/// Metadata that all packets of a stream begin with.
#[derive(Clone, Copy)]
pub(crate) struct Marks {
    pub(crate) rx: SwIfIndex,
    pub(crate) tx: SwIfIndex,
    pub(crate) flags: Flags,
    pub(crate) l3: i16,
    pub(crate) l4: i16,
    pub(crate) checksum_offset: u16,
    pub(crate) gso_size: u16,
    pub(crate) gso_header: u16,
}

/// A stream, as the thread runs it.
pub(crate) struct StreamQueue {
    pub(crate) index: u32,
    pub(crate) shared: Arc<Shared>,
    pub(crate) interfaces: IfTable,
    pub(crate) node: Option<NodeIndex>,
    pub(crate) mode: Mode,
    pub(crate) marks: Marks,
    /// What the interface's device says of packets of a capture.
    pub(crate) receive: Receive,
    pub(crate) offload: Offload,
    pub(crate) filler: Filler,
    pub(crate) random: Random,
    pub(crate) pace: Pace,
    pub(crate) started: u64,
    /// Number of the next packet, counted from the stream's start.
    pub(crate) number: u64,
}

#[inline(always)]
fn mark(pkt: &mut Packet<'_>, marks: &Marks) {
    let meta = pkt.meta_mut();
    (meta.rx, meta.tx, meta.flags) = (marks.rx, marks.tx, marks.flags);
    (meta.l3, meta.l4, meta.checksum_offset) = (marks.l3, marks.l4, marks.checksum_offset);
    (meta.gso_size, meta.gso_header) = (marks.gso_size, marks.gso_header);
}

impl StreamQueue {
    /// How many packets are due now.
    fn due(&mut self, now: Time) -> usize {
        if self.started != self.shared.start() {
            self.started = self.shared.start();
            self.pace = Pace::begin(now);
            self.number = 0;
        }
        let most = self.shared.maxframe.load(Ordering::Relaxed).min(self.shared.left());
        let rate = self.shared.rate();
        if rate <= 0.0 {
            return most as usize;
        }
        let due = self.pace.take(now, rate, most);
        self.shared.set_due(self.pace.next(rate));
        due as usize
    }

    /// Fills a whole frame from the template; tells how many bytes.
    #[inline(always)]
    fn copies(&mut self, cx: &mut FrameCx<'_>, frame: &mut Frame, count: usize) -> usize {
        let Filler::Template(template) = &self.filler else { return 0 };
        let memory = cx.memory();
        let n = cx.cache().alloc(frame, count);
        for i in 0..n {
            memory.prefetch(frame, i + 4);
            let Some(mut pkt) = frame.packet(memory, i) else { continue };
            let fits = pkt.set_data(&template.bytes);
            debug_assert!(fits.is_some(), "longer packets are not made from a template");
            mark(&mut pkt, &self.marks);
            template.vary(self.number, &mut self.random, pkt.data_mut());
            self.number += 1;
        }
        n * template.bytes.len()
    }

    /// Makes packets one by one; tells how many bytes.
    fn singles(&mut self, cx: &mut FrameCx<'_>, frame: &mut Frame, count: usize) -> usize {
        let mut total = 0;
        let replayed = matches!(self.filler, Filler::Packets(_));
        for _ in 0..count {
            let bytes = match &mut self.filler {
                Filler::Packets(packets) => {
                    let at = self.number % packets.len().max(1) as u64;
                    packets.get(at as usize).map(Vec::as_slice).unwrap_or_default()
                }
                Filler::Sizes { blueprint, size, scratch } => {
                    let sizes = (size.most - size.least + 1) as u64;
                    let step = match size.order {
                        Order::Increment => self.number % sizes,
                        Order::Random => self.random.below(sizes),
                    };
                    blueprint.render(size.least + step as usize, self.offload, scratch);
                    if !blueprint.fields.is_empty() {
                        vary_slowly(blueprint, self.number, &mut self.random, self.offload, scratch);
                    }
                    scratch.as_slice()
                }
                Filler::Template(template) => template.bytes.as_slice(),
            };
            let Ok(mut buffer) = cx.cache().alloc_data(bytes) else { break };
            total += bytes.len();
            let mut pkt = cx.cache().packet(&mut buffer);
            mark(&mut pkt, &self.marks);
            if replayed {
                self.receive.mark(&mut pkt, self.mode);
            }
            self.number += 1;
            if let Err(buffer) = frame.push(buffer) {
                cx.cache().free(buffer);
            }
        }
        total
    }
}

/// Writes the changing fields of a packet whose size changes, too, and recomputes its checksums.
fn vary_slowly(blueprint: &Blueprint, number: u64, random: &mut Random, offload: Offload, packet: &mut [u8]) {
    for field in &blueprint.fields {
        field.put(field.value(number, random), packet);
    }
    blueprint.finish(offload, packet);
}

impl RxQueue for StreamQueue {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        if !self.shared.is_enabled() {
            return 0;
        }
        let want = self.due(cx.now());
        if want == 0 {
            return 0;
        }
        let mut frame = cx.blank();
        let flat = matches!(&self.filler, Filler::Template(t) if t.bytes.len() <= DATA_SIZE);
        let bytes = if flat { self.copies(cx, &mut frame, want) } else { self.singles(cx, &mut frame, want) };
        let made = frame.len();
        if made < want {
            // The rest is made when buffers are back; nothing is lost.
            cx.count(Error::NoBuffer, 1);
            cx.counters().rx_no_buf.add(cx.thread(), self.marks.rx.0 as usize, 1);
        }
        let traced = cx.wants_trace();
        let of_interface = || self.interfaces.get(self.marks.rx, cx.guard()).rx_next(traced);
        let next = self.node.unwrap_or_else(of_interface);
        let entry = Entry { stream: Some(self.index), rx: self.marks.rx, next, mode: self.mode };
        enter(cx, frame, bytes, &entry);
        self.shared.add(made as u64);
        made
    }

    fn deadline(&self, _now: Time) -> Option<Time> {
        self.shared.deadline()
    }

    fn is_parked(&self) -> bool {
        !self.shared.is_enabled()
    }
}
