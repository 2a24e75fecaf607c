//! Data that must come, in order: what was sent and not acknowledged, and what came too early. Both are bounded.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use shoal_graph::clock::Time;

/// Datagrams that were not acknowledged, at most.
pub const MOST: usize = 1024;
/// Datagrams that came too early and are kept, at most.
pub const MOST_EARLY: usize = 1024;
/// Datagrams that were acknowledged behind one that was not, before that is sent again.
const OVERTAKEN: u64 = 3;

/// How long an answer may take before a datagram is sent again.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

struct Sent {
    records: Vec<u8>,
    at: Time,
    tries: u32,
    /// Acknowledged before those in front of it.
    has_come: bool,
}

/// What was sent.
pub struct SendWindow {
    first: u64,
    sent: VecDeque<Sent>,
    round_trip: Option<Duration>,
}

impl Default for SendWindow {
    fn default() -> Self {
        SendWindow { first: 1, sent: VecDeque::new(), round_trip: None }
    }
}

impl SendWindow {
    /// Whether no more may be sent for now.
    pub fn is_full(&self) -> bool {
        self.sent.len() >= MOST
    }

    /// Datagrams that were not acknowledged.
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The time of an answer, as it was lately.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// Keeps what is sent now; its sequence.
    pub fn push(&mut self, records: Vec<u8>, now: Time) -> u64 {
        self.sent.push_back(Sent { records, at: now, tries: 0, has_come: false });
        self.first + self.sent.len() as u64 - 1
    }

    /// The other router has all before `ack`, and those behind it that `behind` names. What it cannot have is not believed.
    pub fn acknowledge(&mut self, ack: u64, behind: u64, now: Time) {
        let next = self.first + self.sent.len() as u64;
        if ack > next {
            return;
        }
        while self.first < ack {
            let Some(sent) = self.sent.pop_front() else { return };
            self.first += 1;
            if sent.tries == 0 && !sent.has_come {
                self.measure(now.since(sent.at));
            }
        }
        for bit in 0..64 {
            let place = (ack + 1 + bit).checked_sub(self.first).map(|place| place as usize);
            if behind & 1 << bit != 0
                && let Some(sent) = place.and_then(|place| self.sent.get_mut(place))
            {
                sent.has_come = true;
            }
        }
        // What several were sent behind, and came, is lost, most likely.
        let overtaken = u64::from(behind.count_ones()) >= OVERTAKEN && ack == self.first;
        if overtaken && let Some(first) = self.sent.front_mut().filter(|first| first.tries == 0) {
            first.at = Time(0);
        }
    }

    fn measure(&mut self, took: Duration) {
        self.round_trip = Some(self.round_trip.map_or(took, |old| (old * 7 + took) / 8));
    }

    fn patience(&self, tries: u32) -> Duration {
        let patience = self.round_trip.map_or(SHORTEST * 5, |round_trip| round_trip * 4);
        (patience.clamp(SHORTEST, LONGEST) * (1 << tries.min(4))).min(LONGEST)
    }

    /// Sequences and records to be sent again, up to `most`.
    pub fn again(&mut self, now: Time, most: usize) -> Vec<(u64, Vec<u8>)> {
        let patience: Vec<Duration> = (0..=4).map(|tries| self.patience(tries)).collect();
        let mut again = Vec::new();
        for (sent, sequence) in self.sent.iter_mut().zip(self.first..) {
            let wait = patience.get(sent.tries.min(4) as usize).copied().unwrap_or(LONGEST);
            if again.len() == most {
                break;
            }
            if !sent.has_come && now >= sent.at.after(wait) {
                (sent.at, sent.tries) = (now, sent.tries.saturating_add(1));
                again.push((sequence, sent.records.clone()));
            }
        }
        again
    }

    /// When something is to be sent again, unless an answer comes.
    pub fn due(&self) -> Option<Time> {
        let waiting = self.sent.iter().filter(|sent| !sent.has_come);
        waiting.take(64).map(|sent| sent.at.after(self.patience(sent.tries))).min()
    }
}

/// What became of data that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is new.
    New,
    /// It has come before.
    Again,
    /// It is so far ahead that there is no room for it.
    TooFar,
}

/// What came.
pub struct ReceiveWindow {
    next: u64,
    early: BTreeMap<u64, Vec<u8>>,
}

impl Default for ReceiveWindow {
    fn default() -> Self {
        ReceiveWindow { next: 1, early: BTreeMap::new() }
    }
}

impl ReceiveWindow {
    /// Data came.
    pub fn push(&mut self, sequence: u64, records: &[u8]) -> Arrival {
        if sequence < self.next || self.early.contains_key(&sequence) {
            return Arrival::Again;
        }
        if sequence - self.next >= MOST_EARLY as u64 {
            return Arrival::TooFar;
        }
        self.early.insert(sequence, records.to_vec());
        Arrival::New
    }

    /// The data that is next in order.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        let records = self.early.remove(&self.next)?;
        self.next += 1;
        Some(records)
    }

    /// Datagrams that wait for one before them, or for a thread.
    pub fn len(&self) -> usize {
        self.early.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.early.is_empty()
    }

    /// What is acknowledged: the first that was not taken, and those behind it that are here.
    pub fn ack(&self) -> (u64, u64) {
        let end = self.next.saturating_add(64);
        let behind = self.early.range(self.next + 1..=end).map(|(at, _)| 1u64 << (at - self.next - 1));
        (self.next, behind.fold(0, |all, bit| all | bit))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    /// Sends so many datagrams through a network that loses, repeats and reorders them.
    fn carry(seed: u64, count: u64, loss: u8) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut send, mut receive) = (SendWindow::default(), ReceiveWindow::default());
        let (mut to, mut back) = (Vec::<(u64, Vec<u8>)>::new(), Vec::new());
        let (mut next, mut got, mut now) = (0u64, Vec::new(), Time(0));
        for round in 0.. {
            assert!(round < 100_000, "seed {seed}: it does not come to an end");
            now = now.after(Duration::from_millis(5));
            while next < count && !send.is_full() && random.u8(..4) > 0 {
                let records = next.to_be_bytes().to_vec();
                let sequence = send.push(records.clone(), now);
                to.push((sequence, records));
                next += 1;
            }
            to.extend(send.again(now, 64));
            random.shuffle(&mut to);
            let some = random.usize(..=to.len());
            for (sequence, records) in to.drain(..some) {
                if random.u8(..100) < loss {
                    continue;
                }
                for _ in 0..random.u8(1..3) {
                    receive.push(sequence, &records);
                }
                while let Some(records) = receive.pop() {
                    got.push(u64::from_be_bytes(records.try_into().unwrap()));
                }
                back.push(receive.ack());
            }
            random.shuffle(&mut back);
            for (ack, behind) in back.drain(..) {
                if random.u8(..100) >= loss {
                    send.acknowledge(ack, behind, now);
                }
            }
            if got.len() as u64 == count && send.is_empty() {
                break;
            }
            assert!(send.len() <= MOST && receive.len() <= MOST_EARLY);
        }
        assert_eq!(got, (0..count).collect::<Vec<_>>(), "seed {seed}");
    }

    #[test]
    fn all_comes_once_and_in_order_whatever_is_lost_repeated_or_overtaken() {
        for seed in 0..20 {
            carry(seed, 3000, [0, 1, 10, 40][seed as usize % 4]);
        }
    }

    #[test]
    fn a_lying_peer_changes_nothing_beyond_what_was_sent() {
        let mut send = SendWindow::default();
        for n in 0..3 {
            send.push(vec![n], Time(1));
        }
        send.acknowledge(5, u64::MAX, Time(2));
        send.acknowledge(u64::MAX, u64::MAX, Time(2));
        assert_eq!(send.len(), 3);
        send.acknowledge(4, u64::MAX, Time(2));
        assert!(send.is_empty());
        let mut receive = ReceiveWindow::default();
        for far in [MOST_EARLY as u64 + 1, u64::MAX] {
            assert_eq!(receive.push(far, b""), Arrival::TooFar);
        }
        assert_eq!(receive.push(0, b""), Arrival::Again);
        for sequence in 2..=MOST_EARLY as u64 {
            assert_eq!(receive.push(sequence, b""), Arrival::New);
        }
        assert_eq!((receive.len(), receive.pop()), (MOST_EARLY - 1, None));
    }
}
