//! One direction through the device: a queue, a server, and frames on their way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::behaviour::{Behaviour, Stalls};
use crate::timeline::nanoseconds;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// When frames leave a device of some capacity: exactly, in nanoseconds and parts of one.
#[derive(Debug, Default)]
pub(super) struct Server {
    capacity: Option<u64>,
    queue: usize,
    stalls: Option<Stalls>,
    /// When the last frame is done: whole nanoseconds, and parts of `capacity`.
    free: (u64, u64),
    /// When each frame that may still be in the device is done, rounded up.
    inside: VecDeque<u64>,
}

impl Server {
    pub(super) fn new(behaviour: &Behaviour) -> Server {
        let capacity = behaviour.capacity.map(|fps| fps.max(1));
        Server { capacity, queue: behaviour.queue, stalls: behaviour.stalls, ..Server::default() }
    }

    /// A frame comes at `now`: when it is done; none if there is no room for it. `origin` is the trial's start.
    pub(super) fn serve(&mut self, now: u64, origin: u64) -> Option<u64> {
        if self.capacity.is_none() && self.stalls.is_none() {
            return Some(now);
        }
        while self.inside.front().is_some_and(|done| *done <= now) {
            self.inside.pop_front();
        }
        if self.inside.len() >= self.queue {
            return None;
        }
        let begins = if self.free.0 >= now { self.free } else { (now, 0) };
        let awake = self.awake(begins.0, origin);
        let begins = if awake > begins.0 { (awake, 0) } else { begins };
        self.free = match self.capacity {
            None => begins,
            Some(capacity) => {
                let parts = begins.1 + SECOND % capacity;
                (begins.0 + SECOND / capacity + parts / capacity, parts % capacity)
            }
        };
        let done = self.free.0 + u64::from(self.free.1 > 0);
        self.inside.push_back(done);
        Some(done)
    }

    /// The first moment from `now` on at which it does not stand still.
    fn awake(&self, now: u64, origin: u64) -> u64 {
        let Some(Stalls { first, every, length }) = self.stalls else { return now };
        let Some(since) = now.saturating_sub(origin).checked_sub(nanoseconds(first)) else { return now };
        let into = match every.map(nanoseconds) {
            Some(every) if every > 0 => since % every,
            _ => since,
        };
        if into < nanoseconds(length) { now + nanoseconds(length) - into } else { now }
    }
}

/// A frame on its way out.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Leaving {
    moment: u64,
    /// Frames of one moment leave in the order in which they came.
    order: u64,
    slot: usize,
    /// Its place among the frames that came in; none for the second of a pair, and for one that is sent back.
    place: Option<u64>,
}

/// Frames that will go out at one side.
#[derive(Debug, Default)]
pub(super) struct Departures {
    heap: BinaryHeap<Reverse<Leaving>>,
    frames: Vec<Vec<u8>>,
    free: Vec<usize>,
    order: u64,
    /// One more than the highest place that has left.
    next: u64,
}

impl Departures {
    /// `frame` goes out at `moment`.
    pub(super) fn add(&mut self, frame: &[u8], moment: u64, place: Option<u64>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.frames.push(Vec::new());
            self.frames.len() - 1
        });
        if let Some(memory) = self.frames.get_mut(slot) {
            memory.clear();
            memory.extend_from_slice(frame);
        }
        self.heap.push(Reverse(Leaving { moment, order: self.order, slot, place }));
        self.order += 1;
    }

    /// When the next goes out.
    pub(super) fn next_moment(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(leaving)| leaving.moment)
    }

    /// Gives the next frame to `take` if its time has come by `now`; whether it was a first one, and whether one that came
    /// in later was earlier.
    pub(super) fn leave(&mut self, now: u64, take: impl FnOnce(&[u8])) -> Option<(bool, bool)> {
        if self.next_moment()? > now {
            return None;
        }
        let Reverse(Leaving { slot, place, .. }) = self.heap.pop()?;
        take(self.frames.get(slot).map(Vec::as_slice).unwrap_or_default());
        self.free.push(slot);
        let Some(place) = place else { return Some((false, false)) };
        let is_reordered = place < self.next;
        self.next = self.next.max(place + 1);
        Some((true, is_reordered))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_server_takes_a_burst_of_its_queue_and_as_many_as_it_forwards_meanwhile() {
        let behaviour = Behaviour { capacity: Some(1_000_000), queue: 10, ..Behaviour::default() };
        let mut server = Server::new(&behaviour);
        let done: Vec<_> = (0..12).map(|_| server.serve(0, 0)).collect();
        assert_eq!(done[..3], [Some(1000), Some(2000), Some(3000)]);
        assert_eq!(done[9..], [Some(10_000), None, None]);
        assert_eq!(server.serve(1000, 0), Some(11_000));
        assert_eq!(server.serve(1999, 0), None);
    }

    #[test]
    fn a_capacity_that_does_not_divide_a_second_is_kept_exactly() {
        let behaviour = Behaviour { capacity: Some(3), queue: 100, ..Behaviour::default() };
        let mut server = Server::new(&behaviour);
        let last = (0..9).filter_map(|_| server.serve(0, 0)).last();
        assert_eq!(last, Some(3_000_000_000));
    }

    #[test]
    fn what_comes_while_it_stands_still_waits() {
        let ms = Duration::from_millis;
        let stalls = Stalls { first: ms(10), every: Some(ms(100)), length: ms(2) };
        let behaviour = Behaviour { stalls: Some(stalls), queue: 2, ..Behaviour::default() };
        let mut server = Server::new(&behaviour);
        let at = |ms: u64| ms * 1_000_000 + 5;
        assert_eq!(server.serve(at(9), 5), Some(at(9)));
        assert_eq!(server.serve(at(11), 5), Some(at(12)));
        assert_eq!(server.serve(at(11), 5), Some(at(12)));
        assert_eq!(server.serve(at(11), 5), None);
        assert_eq!(server.serve(at(13), 5), Some(at(13)));
        assert_eq!(server.serve(at(110), 5), Some(at(112)));
    }
}
