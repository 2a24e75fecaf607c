//! The end of an interface inside this process: tests look here at what was sent.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most packets a sink keeps; the oldest give way.
pub const CAPACITY: usize = 65_536;

/// What an interface sent, oldest first.
#[derive(Default)]
pub struct Sink {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    packets: VecDeque<Vec<u8>>,
    overrun: u64,
}

impl Sink {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, packet: Vec<u8>) {
        let mut state = self.lock();
        if state.packets.len() == CAPACITY {
            state.packets.pop_front();
            state.overrun += 1;
        }
        state.packets.push_back(packet);
    }

    /// Takes everything sent so far.
    pub fn take(&self) -> Vec<Vec<u8>> {
        self.lock().packets.drain(..).collect()
    }

    /// Packets in the sink.
    pub fn len(&self) -> usize {
        self.lock().packets.len()
    }

    /// Whether nothing was sent since the last look.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Packets that were lost because no reader took them in time.
    pub fn overrun(&self) -> u64 {
        self.lock().overrun
    }
}
