//! A receive queue that tests fill with packets as a driver would hand them over.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use shoal_buffer::{Buffer, Flags, SwIfIndex};
use shoal_graph::{FrameCx, Graph, NoError, NoNext, QueueId, RxQueue};
use shoal_interface::IfTable;

use crate::{Port, Router};

/// A packet as a driver would hand it over.
#[derive(Clone, Debug, Default)]
pub struct InjectedPacket {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Lengths of the first segments; the rest follows in buffers as full as they get.
    pub cuts: Vec<usize>,
    /// What the device says of it.
    pub flags: Flags,
    /// Bytes of payload of each packet it is to be cut into.
    pub gso_size: u16,
    /// Where the transport header lies.
    pub l4: i16,
    /// Where in it the checksum lies.
    pub checksum_offset: u16,
    /// Bytes of the transport header.
    pub gso_header: u16,
}

impl From<Vec<u8>> for InjectedPacket {
    fn from(bytes: Vec<u8>) -> Self {
        InjectedPacket { bytes, ..InjectedPacket::default() }
    }
}

/// A receive queue of one interface that tests fill.
struct InjectedQueue {
    given: Arc<Mutex<VecDeque<InjectedPacket>>>,
    interfaces: IfTable,
    rx: SwIfIndex,
}

impl InjectedQueue {
    fn make(&self, given: &InjectedPacket, cx: &mut FrameCx<'_>) -> Option<Buffer> {
        let mut rest = given.bytes.as_slice();
        let mut parts = Vec::new();
        for cut in &given.cuts {
            let (now, later) = rest.split_at((*cut).min(rest.len()).min(shoal_buffer::DATA_SIZE));
            parts.push(now);
            rest = later;
        }
        parts.extend(rest.chunks(shoal_buffer::DATA_SIZE));
        let mut parts = parts.into_iter();
        let mut first = cx.cache().alloc_data(parts.next().unwrap_or_default()).ok()?;
        for part in parts {
            let Ok(segment) = cx.cache().alloc_data(part) else {
                cx.cache().free(first);
                return None;
            };
            let mut pkt = cx.cache().packet(&mut first);
            cx.cache().append(&mut pkt, segment).expect("nothing of it is shared");
        }
        let mut pkt = cx.cache().packet(&mut first);
        let meta = pkt.meta_mut();
        meta.rx = self.rx;
        (meta.flags, meta.gso_size, meta.gso_header) = (given.flags, given.gso_size, given.gso_header);
        (meta.l4, meta.checksum_offset) = (given.l4, given.checksum_offset);
        Some(first)
    }
}

impl RxQueue for InjectedQueue {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        let mut frame = cx.blank();
        let (mut taken, mut bytes) = (0, 0);
        while !frame.is_full()
            && let Some(given) = self.given.lock().unwrap().pop_front()
        {
            taken += 1;
            bytes += given.bytes.len() as u64;
            match self.make(&given, cx) {
                Some(buffer) => frame.push(buffer).unwrap(),
                None => cx.counters().rx_no_buf.add(cx.thread(), self.rx.0 as usize, 1),
            }
        }
        let tracing = cx.wants_trace();
        if tracing {
            let memory = cx.memory();
            for i in 0..frame.len() {
                cx.begin_trace(&mut frame.packet(memory, i).unwrap(), "given");
            }
        }
        cx.counters().rx.add(cx.thread(), self.rx.0 as usize, frame.len() as u64, bytes);
        let next = self.interfaces.get(self.rx, cx.guard()).rx_next(tracing);
        cx.forward(next, frame);
        taken
    }

    fn is_parked(&self) -> bool {
        self.given.lock().unwrap().is_empty()
    }
}

/// The node that traces of given packets begin with.
pub const HAND: &str = "test-hand";

/// What a test holds of a [`InjectedQueue`].
pub struct PacketInjector {
    given: Arc<Mutex<VecDeque<InjectedPacket>>>,
    /// The queue.
    pub queue: QueueId,
}

impl PacketInjector {
    /// A queue of an interface on a thread.
    pub fn new(router: &Router, port: &Port, thread: usize) -> PacketInjector {
        let graph: &Graph = router.graph();
        let node = graph.node(HAND).or_else(|_| graph.add_input::<NoNext, NoError>(HAND)).unwrap();
        let given: Arc<Mutex<VecDeque<InjectedPacket>>> = Arc::default();
        let interfaces = router.interfaces().table();
        let hand = InjectedQueue { given: Arc::clone(&given), interfaces, rx: port.index() };
        let queue = graph.add_queue(port.name(), 9, node, Some(thread), Box::new(hand)).unwrap();
        PacketInjector { given, queue }
    }

    /// Leaves a packet to be received.
    pub fn give(&self, packet: impl Into<InjectedPacket>) {
        self.given.lock().unwrap().push_back(packet.into());
    }

    /// Packets that are still in the queue.
    pub fn waiting(&self) -> usize {
        self.given.lock().unwrap().len()
    }
}
