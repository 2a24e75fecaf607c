//! The receive queue of packets that this process hands to an interface: tests and diagnostics.

use std::sync::Arc;

use shoal_buffer::SwIfIndex;
use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, RxQueue};
use shoal_interface::IfTable;

use super::input::{Entry, Error, enter};
use crate::interface::Port;

/// Takes injected packets from the port, oldest first.
pub(crate) struct InjectQueue {
    pub(crate) port: Arc<Port>,
    pub(crate) interfaces: IfTable,
    pub(crate) index: SwIfIndex,
}

impl RxQueue for InjectQueue {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        if self.port.waiting() == 0 {
            return 0;
        }
        let mut frame = cx.blank();
        let (mut taken, mut bytes) = (0, 0);
        while !frame.is_full()
            && let Some(packet) = self.port.take_injected()
        {
            taken += 1;
            let Ok(mut buffer) = cx.cache().alloc_data(&packet) else {
                cx.count(Error::NoBuffer, 1);
                cx.counters().rx_no_buf.add(cx.thread(), self.index.0 as usize, 1);
                continue;
            };
            bytes += packet.len();
            cx.cache().packet(&mut buffer).meta_mut().rx = self.index;
            if let Err(buffer) = frame.push(buffer) {
                cx.cache().free(buffer);
            }
        }
        let next = self.interfaces.get(self.index, cx.guard()).rx_next(cx.wants_trace());
        let entry = Entry { stream: None, rx: self.index, next, mode: self.port.mode };
        enter(cx, frame, bytes, &entry);
        taken
    }

    fn deadline(&self, now: Time) -> Option<Time> {
        (self.port.waiting() > 0).then_some(now)
    }

    fn is_parked(&self) -> bool {
        self.port.waiting() == 0
    }
}
