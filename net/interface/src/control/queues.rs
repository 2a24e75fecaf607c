//! Receive queues of interfaces and where they run.

use super::{Interfaces, NodeIndex, QueueId, QueueInfo, RxMode, RxQueue};
use crate::{Event, InterfaceError, TxPlacement};
use shoal_buffer::SwIfIndex;

/// A receive queue of an interface.
pub struct Queue {
    /// Its number on the interface.
    pub number: u32,
    /// The input node it runs under.
    pub node: NodeIndex,
    /// The queue.
    pub queue: Box<dyn RxQueue>,
    /// The thread to run on; `None` for the one with the fewest queues.
    pub thread: Option<usize>,
}

/// A transmit queue of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxQueueInfo {
    /// Its number on the interface.
    pub number: u32,
    /// The threads that send by it.
    pub threads: Vec<usize>,
}

impl Interfaces {
    /// How receive queues that are made from now on are waited for.
    pub fn default_rx_mode(&self) -> RxMode {
        self.default_rx_mode.get()
    }

    /// Chooses how receive queues that are made from now on are waited for.
    pub fn set_default_rx_mode(&self, mode: RxMode) {
        self.default_rx_mode.set(mode);
    }

    /// An interface's transmit queues; none if its device has none that threads choose from.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn tx_queues(&self, index: SwIfIndex) -> Result<Vec<TxQueueInfo>, InterfaceError> {
        let (_, device) = self.device(index)?;
        let Some(placement) = device.tx_placement() else { return Ok(Vec::new()) };
        let threads: Vec<usize> = self.graph.threads().iter().map(|t| t.index).collect();
        let of = |number: usize| TxQueueInfo {
            number: number as u32,
            threads: placement.threads(number, threads.iter().copied()),
        };
        Ok((0..placement.queues()).map(of).collect())
    }

    /// Lets these threads, and no others, send by a transmit queue. Others that did so send by the next queue.
    ///
    /// # Errors
    /// There is no such interface, queue or thread, or a thread would be left without a queue.
    pub fn place_tx(&self, index: SwIfIndex, number: u32, threads: &[usize]) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        let queues = device.tx_placement().map_or(0, TxPlacement::queues);
        let found = device.tx_placement().filter(|_| (number as usize) < queues);
        let placement = found.ok_or(InterfaceError::NoTxQueue(name.clone(), number, queues))?;
        let there: Vec<usize> = self.graph.threads().iter().map(|t| t.index).collect();
        if let Some(thread) = threads.iter().find(|t| !there.contains(t)) {
            let last = there.last().copied().unwrap_or(0);
            return Err(InterfaceError::NoThread(*thread, last));
        }
        if queues == 1 && there.iter().any(|t| !threads.contains(t)) {
            let why = "it has one transmit queue, which all threads need".into();
            return Err(InterfaceError::NotPossible(name, why));
        }
        placement.place(number as usize, threads);
        Ok(())
    }

    /// Gives an interface a receive queue.
    ///
    /// # Errors
    /// There is no such interface or thread.
    pub fn add_queue(&self, index: SwIfIndex, queue: Queue) -> Result<QueueId, InterfaceError> {
        let name = self.name(index)?;
        let Queue { number, node, queue, thread } = queue;
        let id = self.graph.add_queue(&name, number, node, thread, queue)?;
        if self.default_rx_mode.get() != RxMode::default() {
            self.graph.set_queue_mode(id, self.default_rx_mode.get())?;
        }
        if let Some(interface) = self.all.borrow_mut().get_mut(&index) {
            interface.queues.push((number, id));
        }
        self.lead_queues(index)?;
        self.tell(Event::Queues(index));
        Ok(id)
    }

    /// Gives an interface a receive queue. If it has one of that number the new one takes its place: on its thread, in its mode.
    ///
    /// # Errors
    /// There is no such interface or thread.
    pub fn put_queue(&self, index: SwIfIndex, queue: Queue) -> Result<QueueId, InterfaceError> {
        let number = queue.number;
        let Some(before) = self.queues(index)?.into_iter().find(|q| q.queue == number) else {
            return self.add_queue(index, queue);
        };
        drop(self.remove_queue(index, number)?);
        let id = self.add_queue(index, Queue { thread: Some(before.thread), ..queue })?;
        self.set_rx_mode(index, Some(number), before.mode)?;
        Ok(id)
    }

    /// Takes away all receive queues of an interface but the first ones, the last first.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn keep_queues(&self, index: SwIfIndex, first: usize) -> Result<(), InterfaceError> {
        for queue in self.queues(index)?.iter().rev().filter(|q| q.queue as usize >= first) {
            drop(self.remove_queue(index, queue.queue)?);
        }
        Ok(())
    }

    /// Gives the input nodes of an interface's queues edges to where its frames go, for those who look at the graph.
    pub(super) fn lead_queues(&self, index: SwIfIndex) -> Result<(), InterfaceError> {
        let data = self.data(index)?;
        for queue in self.queues(index)? {
            for next in [data.rx_next(false), data.rx_next(true)] {
                self.graph.add_edge(queue.node, next)?;
            }
        }
        Ok(())
    }

    /// Takes one receive queue away from an interface.
    ///
    /// # Errors
    /// There is no such interface or queue.
    pub fn remove_queue(&self, index: SwIfIndex, number: u32) -> Result<Box<dyn RxQueue>, InterfaceError> {
        let id = self.queue_id(index, number)?;
        if let Some(interface) = self.all.borrow_mut().get_mut(&index) {
            interface.queues.retain(|(_, q)| *q != id);
        }
        let queue = self.graph.remove_queue(id)?;
        self.tell(Event::Queues(index));
        Ok(queue)
    }

    /// Gives an interface another number of receive queues, while packets flow.
    ///
    /// # Errors
    /// There is no such interface, or why its device cannot; nothing is changed then.
    pub fn set_rx_queues(&self, index: SwIfIndex, queues: u32) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        device.set_rx_queues(queues).map_err(|why| InterfaceError::NotPossible(name, why))
    }

    fn queue_id(&self, index: SwIfIndex, number: u32) -> Result<QueueId, InterfaceError> {
        let all = self.all.borrow();
        let interface = all.get(&index).ok_or(InterfaceError::NoIndex(index))?;
        let found = interface.queues.iter().find(|(n, _)| *n == number).map(|(_, id)| *id);
        found.ok_or_else(|| InterfaceError::NoQueue(interface.name.clone(), number, interface.queues.len()))
    }

    /// Moves a receive queue to another thread while packets flow.
    ///
    /// # Errors
    /// There is no such interface, queue or thread.
    pub fn place_queue(&self, index: SwIfIndex, number: u32, thread: usize) -> Result<(), InterfaceError> {
        self.graph.move_queue(self.queue_id(index, number)?, thread)?;
        self.keep_placement(index, number, thread);
        Ok(())
    }

    /// Changes how a queue is waited for; all queues of the interface when no number is given.
    ///
    /// # Errors
    /// There is no such interface or queue.
    pub fn set_rx_mode(
        &self,
        index: SwIfIndex,
        number: Option<u32>,
        mode: RxMode,
    ) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        let ids: Vec<QueueId> = if let Some(number) = number {
            vec![self.queue_id(index, number)?]
        } else {
            let all = self.all.borrow();
            let interface = all.get(&index).ok_or(InterfaceError::NoIndex(index))?;
            interface.queues.iter().map(|(_, id)| *id).collect()
        };
        device.set_rx_mode(mode).map_err(|why| InterfaceError::NotPossible(name, why))?;
        ids.into_iter().try_for_each(|id| Ok(self.graph.set_queue_mode(id, mode)?))
    }

    /// An interface's receive queues.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn queues(&self, index: SwIfIndex) -> Result<Vec<QueueInfo>, InterfaceError> {
        let all = self.all.borrow();
        let interface = all.get(&index).ok_or(InterfaceError::NoIndex(index))?;
        Ok(interface.queues.iter().filter_map(|(_, id)| self.graph.queue(*id)).collect())
    }
}
