//! The synthetic device's learning of addresses.

use std::collections::{BTreeMap, HashMap};

use shoal_lab_plan::Side;

use super::behaviour::{AddressTable, Behaviour, WhenFull};
use super::path::Server;

type Mac = [u8; 6];

/// Addresses that are being learnt at once: one, and one that waits.
const AT_ONCE: usize = 2;

/// Who is where.
#[derive(Debug)]
pub(super) struct Bridge {
    table: AddressTable,
    /// Of each address its side, and when it was last heard, as a number that rises.
    known: HashMap<Mac, (Side, u64)>,
    /// The same from the longest silent on.
    heard: BTreeMap<u64, Mac>,
    moment: u64,
    learner: Server,
}

impl Bridge {
    pub(super) fn new(table: AddressTable) -> Bridge {
        let learns = Behaviour { capacity: table.learns, queue: AT_ONCE, ..Behaviour::default() };
        Bridge {
            table,
            known: HashMap::new(),
            heard: BTreeMap::new(),
            moment: 0,
            learner: Server::new(&learns),
        }
    }

    /// All addresses are forgotten.
    pub(super) fn flush(&mut self) {
        self.known.clear();
        self.heard.clear();
    }

    /// A frame comes in at `side` at `now`: its source is learnt. Whether it goes out at the other side, which it does
    /// if its destination is there or unknown.
    pub(super) fn passes(&mut self, side: Side, now: u64, frame: &[u8]) -> bool {
        let (Some(destination), Some(source)) = (mac(frame, 0), mac(frame, 6)) else { return false };
        // IEEE 802.1Q: a group address belongs to no station.
        if source.first().is_some_and(|first| first & 1 == 0) {
            self.learn(source, side, now);
        }
        self.known.get(&destination).is_none_or(|(at, _)| *at != side)
    }

    fn learn(&mut self, source: Mac, side: Side, now: u64) {
        if let Some((_, heard)) = self.known.get(&source) {
            self.heard.remove(heard);
        } else {
            if self.learner.serve(now, 0).is_none() {
                return;
            }
            if self.known.len() >= self.table.size {
                let oldest = match self.table.full {
                    WhenFull::Refuse => None,
                    WhenFull::ForgetOldest => self.heard.pop_first(),
                };
                let Some((_, oldest)) = oldest else { return };
                self.known.remove(&oldest);
            }
        }
        self.moment += 1;
        self.known.insert(source, (side, self.moment));
        self.heard.insert(self.moment, source);
    }
}

fn mac(frame: &[u8], at: usize) -> Option<Mac> {
    frame.get(at..at + 6)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(destination: u8, source: u8) -> [u8; 14] {
        let mut frame = [0; 14];
        (frame[5], frame[11]) = (destination, source);
        frame
    }

    fn bridge(size: usize, full: WhenFull) -> Bridge {
        Bridge::new(AddressTable { size, full, learns: None })
    }

    #[test]
    fn what_is_known_on_a_side_is_filtered_there_and_passes_from_the_other() {
        let mut bridge = bridge(10, WhenFull::Refuse);
        assert!(bridge.passes(Side::Left, 0, &frame(2, 1)), "2 is not known");
        assert!(!bridge.passes(Side::Left, 0, &frame(1, 3)));
        assert!(bridge.passes(Side::Right, 0, &frame(1, 2)));
        // It moves to the right.
        bridge.passes(Side::Right, 0, &frame(9, 1));
        assert!(bridge.passes(Side::Left, 0, &frame(1, 3)));
        bridge.flush();
        assert!(bridge.passes(Side::Right, 0, &frame(1, 2)));
    }

    #[test]
    fn a_full_table_refuses_or_forgets_the_oldest() {
        let floods = |full| {
            let mut bridge = bridge(2, full);
            for source in [1, 2, 3] {
                bridge.passes(Side::Left, 0, &frame(9, source));
            }
            // Asked by 2, which is known either way.
            [1, 3].map(|destination| bridge.passes(Side::Left, 0, &frame(destination, 2)))
        };
        assert_eq!(floods(WhenFull::Refuse), [false, true]);
        assert_eq!(floods(WhenFull::ForgetOldest), [true, false]);
    }

    #[test]
    fn addresses_that_come_too_fast_are_not_learnt() {
        let table = AddressTable { size: 10, full: WhenFull::Refuse, learns: Some(1_000) };
        let mut bridge = Bridge::new(table);
        for source in [1, 2, 3] {
            assert!(bridge.passes(Side::Left, 0, &frame(9, source)));
        }
        bridge.passes(Side::Left, 1_000_000, &frame(9, 4));
        let known = [1, 2, 3, 4].map(|to| !bridge.passes(Side::Left, 2_000_000, &frame(to, 1)));
        assert_eq!(known, [true, true, false, true]);
    }
}
