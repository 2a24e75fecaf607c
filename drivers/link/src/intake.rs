//! From received frames into the graph: what one poll of a receive queue brings.

use shoal_buffer::{Buffer, Cache, Frame, SwIfIndex};
use shoal_graph::{FrameCx, NodeIndex};
use shoal_interface::IfTable;
use shoal_vnet::{VnetHdr, fill};

/// What frames of an interface begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// An Ethernet header.
    Ethernet,
    /// An IP header; where IPv6 goes, if anything takes it.
    Ip {
        /// `ip6-input`, where there is one.
        ip6: Option<NodeIndex>,
    },
}

/// Why a frame does not become a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No buffer is free.
    NoBuffer,
    /// The vnet header does not fit its frame.
    BadOffload,
}

/// A frame as a packet that owes what its vnet header says, received on `interface`.
///
/// # Errors
/// No buffer is free, or the header is wrong; nothing is kept then.
#[inline]
pub fn packet(
    cache: &mut Cache,
    interface: SwIfIndex,
    bytes: &[u8],
    vnet: VnetHdr,
) -> Result<Buffer, Refused> {
    let offload = vnet.validate(&[bytes]).map_err(|_| Refused::BadOffload)?;
    let mut buffer = fill(cache, bytes).ok_or(Refused::NoBuffer)?;
    let mut pkt = cache.packet(&mut buffer);
    pkt.meta_mut().rx = interface;
    if offload.store(&mut pkt).is_ok() {
        return Ok(buffer);
    }
    cache.free(buffer);
    Err(Refused::BadOffload)
}

/// A packet that is neither IPv4 nor an IPv6 that anybody takes, on an interface without link layer.
#[derive(Debug)]
pub struct NotIp(pub Buffer);

/// What one poll of a receive queue brings into the graph. Made when the first frame is there, so that an empty poll
/// costs nothing.
pub struct Intake {
    interface: SwIfIndex,
    layer: Layer,
    next: NodeIndex,
    frame: Box<Frame>,
    /// Packets and bytes that were received.
    taken: (u64, u64),
    up: bool,
    traced: bool,
}

impl Intake {
    /// Begins. An interface's state and next node are read once for the whole poll.
    pub fn begin(cx: &mut FrameCx<'_>, interfaces: &IfTable, interface: SwIfIndex, layer: Layer) -> Self {
        let data = *interfaces.get(interface, cx.guard());
        let traced = cx.wants_trace();
        let (next, up) = (data.rx_next(traced), data.is_up());
        Intake { interface, layer, next, frame: cx.blank(), taken: (0, 0), up, traced }
    }

    /// Whether the interface takes packets.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Whether packets are to be traced.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.traced
    }

    /// Where the packets go.
    pub fn next(&self) -> NodeIndex {
        self.next
    }

    /// Takes a packet in. At most a frame's worth of them: [`shoal_buffer::FRAME_SIZE`].
    ///
    /// # Errors
    /// It comes back when it is no IP packet on an interface without link layer.
    #[inline]
    pub fn take(&mut self, cx: &mut FrameCx<'_>, mut buffer: Buffer) -> Result<(), NotIp> {
        let pkt = cx.cache().packet(&mut buffer);
        let len = pkt.len() as u64;
        match (self.layer, pkt.data().first().map(|b| b >> 4)) {
            (Layer::Ethernet, _) | (Layer::Ip { .. }, Some(4)) => {
                // There is room for as many as the caller may take.
                if let Err(buffer) = self.frame.push(buffer) {
                    cx.cache().free(buffer);
                }
            }
            (Layer::Ip { ip6: Some(ip6) }, Some(6)) => cx.send_to(ip6, buffer),
            (Layer::Ip { .. }, _) => return Err(NotIp(buffer)),
        }
        self.taken.0 += 1;
        self.taken.1 += len;
        Ok(())
    }

    /// Counts what was received and sends it on.
    pub fn finish(self, cx: &mut FrameCx<'_>) {
        let (packets, bytes) = self.taken;
        if packets > 0 {
            cx.counters().rx.add(cx.thread(), self.interface.0 as usize, packets, bytes);
        }
        cx.forward(self.next, self.frame);
    }
}
