//! Queues: how they are waited for, and which threads run them.

use shoal_message::{Count, InterfaceIndex, Message, Retval, RxMode};
use shoal_module::api::{Call, Dump, Get, Request};

use super::{interfaces, mode_of, walk};
use crate::SwIfIndex;

/// Rows that one answer has at most.
const MOST_ROWS: usize = 500;

fn asked_for(mode: RxMode) -> Option<shoal_graph::RxMode> {
    match mode {
        RxMode::Unknown => None,
        RxMode::Polling => Some(shoal_graph::RxMode::Polling),
        RxMode::Interrupt => Some(shoal_graph::RxMode::Interrupt),
        RxMode::Adaptive | RxMode::Default => Some(shoal_graph::RxMode::Adaptive),
    }
}

/// Chooses how packets are taken from an interface's receive queues.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetRxMode {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether one queue is meant.
    pub queue_id_valid: bool,
    /// The queue.
    pub queue_id: u32,
    /// How.
    pub mode: RxMode,
}

impl Request for SwInterfaceSetRxMode {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (interfaces, index) = (interfaces(call)?, SwIfIndex(self.sw_if_index.0));
        interfaces.data(index)?;
        // VPP says of a queue that is not there and of a mode that is none that it cannot do it.
        let mode = match self.mode {
            RxMode::Default => interfaces.default_rx_mode(),
            mode => asked_for(mode).ok_or(Retval::UNIMPLEMENTED)?,
        };
        let queue = self.queue_id_valid.then_some(self.queue_id);
        interfaces.set_rx_mode(index, queue, mode).map_err(|_| Retval::UNIMPLEMENTED)
    }
}

/// Moves a receive queue to another thread while packets flow.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetRxPlacement {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The queue.
    pub queue_id: u32,
    /// The worker, from 0.
    pub worker_id: u32,
    /// Whether it is to be the main thread instead.
    pub is_main: bool,
}

impl Request for SwInterfaceSetRxPlacement {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (interfaces, index) = (interfaces(call)?, SwIfIndex(self.sw_if_index.0));
        interfaces.data(index)?;
        let thread = if self.is_main { 0 } else { (self.worker_id as usize).saturating_add(1) };
        if !interfaces.graph().threads().iter().any(|t| t.index == thread) {
            return Err(Retval::INVALID_WORKER);
        }
        Ok(interfaces.place_queue(index, self.queue_id, thread)?)
    }
}

/// Asks which thread runs which receive queue.
#[derive(Message)]
#[message(request, details = SwInterfaceRxPlacementDetails)]
pub struct SwInterfaceRxPlacementDump {
    /// The interface; all bits set for all.
    pub sw_if_index: InterfaceIndex,
}

/// A receive queue.
#[derive(Message)]
#[message(indexed)]
pub struct SwInterfaceRxPlacementDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The queue.
    pub queue_id: u32,
    /// The thread: 0 is the main thread, the first worker is 1.
    pub worker_id: u32,
    /// How it is waited for.
    pub mode: RxMode,
}

impl Dump for SwInterfaceRxPlacementDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwInterfaceRxPlacementDetails> + 'static {
        let only = (self.sw_if_index != InterfaceIndex::NONE).then_some(SwIfIndex(self.sw_if_index.0));
        walk(call, only).flat_map(|(interfaces, index)| {
            let row = move |queue: shoal_graph::QueueInfo| SwInterfaceRxPlacementDetails {
                sw_if_index: InterfaceIndex(index.0),
                queue_id: queue.queue,
                worker_id: queue.thread as u32,
                mode: mode_of(queue.mode),
            };
            interfaces.queues(index).unwrap_or_default().into_iter().map(row)
        })
    }
}

/// Lets some threads, and no others, send by a transmit queue. Others that did so send by the next queue.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetTxPlacement {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The queue.
    pub queue_id: u32,
    /// How many threads.
    pub array_size: Count<u32>,
    /// The threads: 0 is the main thread, the first worker is 1.
    #[counted_by(array_size)]
    pub threads: Vec<u32>,
}

impl Request for SwInterfaceSetTxPlacement {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let threads: Vec<usize> = self.threads.iter().map(|thread| *thread as usize).collect();
        Ok(interfaces(call)?.place_tx(SwIfIndex(self.sw_if_index.0), self.queue_id, &threads)?)
    }
}

/// Asks which threads send by which transmit queue.
#[derive(Message)]
#[message(request, reply = SwInterfaceTxPlacementGetReply, details = SwInterfaceTxPlacementDetails)]
pub struct SwInterfaceTxPlacementGet {
    /// Where to go on: 0 at first.
    pub cursor: u32,
    /// The interface; all bits set for all.
    pub sw_if_index: InterfaceIndex,
}

/// Whether that was all.
#[derive(Message)]
#[message(reply)]
pub struct SwInterfaceTxPlacementGetReply {
    /// 0: all; EAGAIN: there are more.
    pub retval: i32,
    /// Where to go on.
    pub cursor: u32,
}

/// A transmit queue.
#[derive(Message)]
#[message(indexed)]
pub struct SwInterfaceTxPlacementDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The queue.
    pub queue_id: u32,
    /// Whether several threads send by it.
    pub shared: u8,
    /// How many threads.
    pub array_size: Count<u32>,
    /// The threads: 0 is the main thread, the first worker is 1.
    #[counted_by(array_size)]
    pub threads: Vec<u32>,
}

impl Get for SwInterfaceTxPlacementGet {
    fn get(
        self,
        call: &Call,
    ) -> Result<(Vec<SwInterfaceTxPlacementDetails>, SwInterfaceTxPlacementGetReply), Retval> {
        let rows = |interfaces: &crate::Interfaces, index: SwIfIndex| {
            let queues = interfaces.tx_queues(index).unwrap_or_default();
            queues.into_iter().map(move |queue| SwInterfaceTxPlacementDetails {
                sw_if_index: InterfaceIndex(index.0),
                queue_id: queue.number,
                shared: u8::from(queue.threads.len() > 1),
                array_size: Count::default(),
                threads: queue.threads.into_iter().map(|thread| thread as u32).collect(),
            })
        };
        let all = self.sw_if_index == InterfaceIndex::NONE;
        if !all {
            let (interfaces, index) = (interfaces(call)?, SwIfIndex(self.sw_if_index.0));
            interfaces.data(index)?;
            let rows: Vec<_> = rows(&interfaces, index).collect();
            let end = SwInterfaceTxPlacementGetReply { retval: 0, cursor: u32::MAX };
            return if rows.is_empty() { Err(Retval::INVALID_QUEUE) } else { Ok((rows, end)) };
        }
        // The cursor is the interface to go on with.
        let (mut found, interfaces) = (Vec::new(), interfaces(call)?);
        let mut at = interfaces.at_or_after(SwIfIndex(self.cursor));
        while let Some(index) = at {
            if found.len() >= MOST_ROWS {
                return Ok((
                    found,
                    SwInterfaceTxPlacementGetReply { retval: Retval::EAGAIN.0, cursor: index.0 },
                ));
            }
            found.extend(rows(&interfaces, index));
            at = index.0.checked_add(1).and_then(|next| interfaces.at_or_after(SwIfIndex(next)));
        }
        Ok((found, SwInterfaceTxPlacementGetReply { retval: 0, cursor: u32::MAX }))
    }
}

/// Chooses how packets are taken from receive queues that are made from now on.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetDefaultRxMode {
    /// How.
    pub mode: RxMode,
}

impl Request for SwInterfaceSetDefaultRxMode {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let mode = asked_for(self.mode).ok_or(Retval::INVALID_VALUE)?;
        interfaces(call)?.set_default_rx_mode(mode);
        Ok(())
    }
}

/// Asks how packets are taken from new receive queues.
#[derive(Message)]
#[message(request, reply = SwInterfaceGetDefaultRxModeReply)]
pub struct SwInterfaceGetDefaultRxMode {}

/// How packets are taken from new receive queues.
#[derive(Message)]
#[message(reply)]
pub struct SwInterfaceGetDefaultRxModeReply {
    /// 0.
    pub retval: i32,
    /// How.
    pub mode: RxMode,
}

impl Request for SwInterfaceGetDefaultRxMode {
    fn handle(self, call: &Call) -> Result<SwInterfaceGetDefaultRxModeReply, Retval> {
        let mode = mode_of(interfaces(call)?.default_rx_mode());
        Ok(SwInterfaceGetDefaultRxModeReply { retval: 0, mode })
    }
}
