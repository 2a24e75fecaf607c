//! The device as a whole: what becomes of a frame that comes in.

use shoal_lab_plan::Side;

use super::behaviour::{Behaviour, BehaviourCounts};
use super::bridge::Bridge;
use super::nat::Nat;
use super::path::{Departures, Server};
use crate::sides::{at, at_mut};
use crate::timeline::nanoseconds;

/// A device with two ports.
#[derive(Debug)]
pub(super) struct Device {
    behaviour: Behaviour,
    /// By the side at which frames come in.
    servers: [Server; 2],
    told: [BehaviourCounts; 2],
    chances: [fastrand::Rng; 2],
    /// By the side at which frames go out.
    leavings: [Departures; 2],
    nat: Option<Nat>,
    bridge: Option<Bridge>,
    origin: u64,
    incoming: Vec<u8>,
}

impl Device {
    pub(super) fn new(behaviour: Behaviour) -> Device {
        let seed = behaviour.seed;
        Device {
            servers: [Server::new(&behaviour), Server::new(&behaviour)],
            told: [BehaviourCounts::default(); 2],
            chances: [0, 1].map(|side| fastrand::Rng::with_seed(seed.wrapping_mul(2).wrapping_add(side))),
            leavings: [Departures::default(), Departures::default()],
            nat: behaviour.nat.map(Nat::new),
            bridge: behaviour.bridge.map(Bridge::new),
            origin: 0,
            incoming: Vec::new(),
            behaviour,
        }
    }

    /// From now on it does something else; what is on its way goes out as it was to.
    pub(super) fn behave(&mut self, behaviour: Behaviour) {
        self.servers = [Server::new(&behaviour), Server::new(&behaviour)];
        if behaviour.nat != self.behaviour.nat {
            self.nat = behaviour.nat.map(Nat::new);
        }
        if behaviour.bridge != self.behaviour.bridge {
            self.bridge = behaviour.bridge.map(Bridge::new);
        }
        self.behaviour = behaviour;
    }

    pub(super) fn flush_addresses(&mut self) {
        if let Some(bridge) = &mut self.bridge {
            bridge.flush();
        }
    }

    pub(super) fn flush_nat(&mut self) {
        if let Some(nat) = &mut self.nat {
            nat.flush();
        }
    }

    /// Times of stalls and resets count from `moment`, and what it did from now on.
    pub(super) fn begin(&mut self, moment: u64) {
        self.origin = moment;
        self.told = [BehaviourCounts::default(); 2];
    }

    pub(super) fn told(&self) -> [BehaviourCounts; 2] {
        self.told
    }

    /// A frame of `length` bytes that `write` makes comes in at `side`.
    pub(super) fn take(&mut self, side: Side, now: u64, length: usize, write: &mut impl FnMut(&mut [u8])) {
        let mut frame = std::mem::take(&mut self.incoming);
        frame.clear();
        frame.resize(length, 0);
        write(&mut frame);
        self.forward(side, now, &mut frame);
        self.incoming = frame;
    }

    fn forward(&mut self, side: Side, now: u64, frame: &mut [u8]) {
        let does = &self.behaviour;
        let (Some(told), Some(chance)) =
            (self.told.get_mut(side.index()), self.chances.get_mut(side.index()))
        else {
            return;
        };
        let mut happens = |share: f64| share > 0.0 && chance.f64() < share;
        let place = told.taken;
        told.taken += 1;
        let since = now.saturating_sub(self.origin);
        if let Some((from, length)) = does.dead
            && since >= nanoseconds(from)
            && since < nanoseconds(from.saturating_add(length))
        {
            told.dead += 1;
            return;
        }
        if happens(does.loss) {
            told.lost += 1;
            return;
        }
        let is_known = match (&mut self.nat, side) {
            (None, _) => true,
            (Some(nat), Side::Left) => nat.outward(frame),
            (Some(nat), Side::Right) => nat.inward(frame),
        };
        if !is_known {
            told.untranslated += 1;
            return;
        }
        if let Some(bridge) = &mut self.bridge
            && !bridge.passes(side, now, frame)
        {
            told.filtered += 1;
            return;
        }
        let Some(done) = at_mut(&mut self.servers, side).serve(now, self.origin) else {
            told.overrun += 1;
            return;
        };
        if happens(does.corrupt) {
            let at = frame.len().checked_sub(1 + does.corrupt_at);
            if let Some(byte) = at.and_then(|at| frame.get_mut(at)) {
                *byte ^= 0x55;
                told.corrupted += 1;
            }
        }
        let is_looped = happens(does.looped);
        let hold = if happens(does.reordered) { nanoseconds(does.hold) } else { 0 };
        let is_twice = happens(does.duplicates);
        let jitter = nanoseconds(does.jitter);
        let jitter = if jitter > 0 { chance.u64(0..=jitter) } else { 0 };
        let moment = done + nanoseconds(does.delay) + jitter + hold;
        told.looped += u64::from(is_looped);
        told.duplicated += u64::from(is_twice);
        let out = if is_looped { side } else { side.other() };
        let leavings = at_mut(&mut self.leavings, out);
        leavings.add(frame, moment, (!is_looped).then_some(place));
        if is_twice {
            leavings.add(frame, moment, None);
        }
    }

    /// Gives up to `most` frames that go out at `side` by `now` to `give`.
    pub(super) fn give(&mut self, side: Side, now: u64, most: usize, give: &mut impl FnMut(&[u8])) -> usize {
        let leavings = at_mut(&mut self.leavings, side);
        for count in 0..most {
            let Some((is_first, is_reordered)) = leavings.leave(now, &mut *give) else { return count };
            let told = at_mut(&mut self.told, side.other());
            told.delivered += u64::from(is_first);
            told.reordered += u64::from(is_reordered);
        }
        most
    }

    pub(super) fn next_moment(&self, side: Side) -> Option<u64> {
        at(&self.leavings, side).next_moment()
    }
}
