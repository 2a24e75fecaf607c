//! When each of many numbered things is due, and which is due first.

use std::collections::BTreeSet;

use crate::clock::Time;

/// At most one deadline for each number.
#[derive(Debug, Default)]
pub struct Deadlines {
    by_time: BTreeSet<(Time, u32)>,
    of: Vec<Option<Time>>,
}

impl Deadlines {
    /// The deadline of a number.
    pub fn of(&self, index: u32) -> Option<Time> {
        self.of.get(index as usize).copied().flatten()
    }

    /// The first deadline of all.
    pub fn first(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Gives a number another deadline, or none; returns whether it is before those of all others now.
    pub fn set(&mut self, index: u32, at: Option<Time>) -> bool {
        let old = self.of(index);
        if old == at {
            return false;
        }
        if let Some(old) = old {
            self.by_time.remove(&(old, index));
        }
        let place = index as usize;
        if place >= self.of.len() {
            self.of.resize(place + 1, None);
        }
        if let Some(of) = self.of.get_mut(place) {
            *of = at;
        }
        let Some(at) = at else { return false };
        let first = self.by_time.first().copied();
        self.by_time.insert((at, index));
        self.by_time.first().copied() != first
    }

    /// Takes the deadline of the number that is due first, if it is due by now.
    pub fn take_due(&mut self, now: Time) -> Option<u32> {
        let index = self.by_time.first().filter(|(at, _)| *at <= now).map(|(_, index)| *index)?;
        self.set(index, None);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_in_order_and_once() {
        let mut all = Deadlines::default();
        assert!(all.set(7, Some(Time(30))), "the only one is the first");
        assert!(all.set(2, Some(Time(10))));
        assert!(!all.set(3, Some(Time(20))) && !all.set(3, Some(Time(20))));
        assert_eq!((all.first(), all.of(3), all.of(9)), (Some(Time(10)), Some(Time(20)), None));
        assert!(all.set(3, Some(Time(5))), "it is before all others now");
        assert!(!all.set(2, None));
        assert_eq!(all.take_due(Time(4)), None);
        assert_eq!([all.take_due(Time(29)), all.take_due(Time(29))], [Some(3), None]);
        assert_eq!([all.take_due(Time(30)), all.take_due(Time(30))], [Some(7), None]);
        assert_eq!(all.first(), None);
    }
}
