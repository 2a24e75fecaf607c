//! Two routers that know each other: who is there, and whether a datagram is of now.
//!
//! Each router names the next association by a number that it has never used. A router believes a hello only if it has that
//! number in it: then the other router has sent it after it had heard of the number, and nothing of an older association, nor of
//! one before a restart, is taken for a new one. Within an association hellos and data have sequences.
//!
//! ```text
//! A                                     B
//! hello (a, 0) ----------------------->         B does not know A: it answers, and believes nothing yet
//!              <----------------------- hello (b, a)
//! A: up (a, b)
//! hello (a, b) ----------------------->
//!                                       B: up (b, a)
//! ```

use shoal_graph::clock::Time;

use crate::wire::{Header, Kind};

/// What a hello means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// Both know each other from now on: nothing of an older association holds.
    Up,
    /// The other router is still there.
    Alive,
    /// It does not know this router, or that of before: it should be answered.
    Stranger,
    /// It is an old one.
    Old,
}

/// One association, and the number of the next.
#[derive(Clone, Debug)]
pub struct Association {
    next: u64,
    /// Numbers of this router and of the other.
    current: Option<(u64, u64)>,
    heard: Time,
    sent: u64,
    last_hello: u64,
    random: fastrand::Rng,
}

impl Association {
    /// None, with numbers that nothing else has used.
    pub fn new(random: fastrand::Rng) -> Self {
        let mut new = Association { next: 0, current: None, heard: Time(0), sent: 0, last_hello: 0, random };
        new.renew();
        new
    }

    fn renew(&mut self) {
        self.next = self.random.u64(1..);
    }

    /// Whether both know each other.
    pub fn is_up(&self) -> bool {
        self.current.is_some()
    }

    /// The numbers that datagrams to the other router have.
    pub fn numbers(&self) -> (u64, u64) {
        self.current.unwrap_or((self.next, 0))
    }

    /// The numbers of this router by which it may be called: of the current and the next association.
    pub fn own(&self) -> [u64; 2] {
        [self.current.map_or(self.next, |(own, _)| own), self.next]
    }

    /// When the other router was last heard.
    pub fn heard(&self) -> Time {
        self.heard
    }

    /// The other router has been silent for too long, or has another address now.
    pub fn forget(&mut self) {
        self.current = None;
        self.renew();
    }

    /// The header of a hello; to a stranger it has the number of the next association.
    pub fn hello(&mut self, stranger: Option<u64>, is_active: bool) -> Header {
        self.sent += 1;
        let (sender, receiver) = stranger.map_or(self.numbers(), |other| (self.next, other));
        Header { kind: Kind::Hello, is_active, sender, receiver, sequence: self.sent, ack: 0, behind: 0 }
    }

    /// A hello came that is authentic.
    pub fn hear(&mut self, header: &Header, now: Time) -> Heard {
        let Header { sender, receiver, sequence, .. } = *header;
        if sender == 0 {
            return Heard::Old;
        }
        if self.current == Some((receiver, sender)) {
            if sequence <= self.last_hello {
                return Heard::Old;
            }
            (self.last_hello, self.heard) = (sequence, now);
            return Heard::Alive;
        }
        if receiver != self.next {
            return Heard::Stranger;
        }
        self.current = Some((receiver, sender));
        (self.last_hello, self.heard) = (sequence, now);
        self.renew();
        Heard::Up
    }

    /// Whether data or an acknowledgement is of this association.
    pub fn is_of(&self, header: &Header) -> bool {
        self.current == Some((header.receiver, header.sender))
    }

    /// Data came that had not come before.
    pub fn alive(&mut self, now: Time) {
        self.heard = now;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn two() -> [Association; 2] {
        [1, 2].map(|seed| Association::new(fastrand::Rng::with_seed(seed)))
    }

    /// Lets one say hello and the other answer until both are content.
    fn talk(ends: &mut [Association; 2], first: usize, now: Time, all: &mut Vec<(usize, Header)>) {
        let mut on_the_way = vec![(1 - first, ends[first].hello(None, false))];
        while let Some((to, header)) = on_the_way.pop() {
            all.push((to, header));
            match ends[to].hear(&header, now) {
                Heard::Up => on_the_way.push((1 - to, ends[to].hello(None, false))),
                Heard::Stranger => on_the_way.push((1 - to, ends[to].hello(Some(header.sender), false))),
                Heard::Alive | Heard::Old => {}
            }
        }
    }

    fn agree(ends: &[Association; 2]) -> bool {
        let ((a, b), (c, d)) = (ends[0].numbers(), ends[1].numbers());
        ends.iter().all(Association::is_up) && (a, b) == (d, c)
    }

    #[test]
    fn two_come_to_know_each_other_whichever_speaks_first_and_again_after_either_restarts() {
        for first in 0..2 {
            for restarted in 0..2 {
                let (mut ends, mut all) = (two(), Vec::new());
                talk(&mut ends, first, Time(1), &mut all);
                assert!(agree(&ends));
                let before = ends[0].numbers();
                talk(&mut ends, first, Time(2), &mut all);
                assert_eq!(ends[0].numbers(), before, "a hello changes nothing");
                ends[restarted] = Association::new(fastrand::Rng::with_seed(3));
                talk(&mut ends, first, Time(3), &mut all);
                talk(&mut ends, 1 - first, Time(3), &mut all);
                assert!(agree(&ends) && ends[0].numbers() != before);
            }
        }
    }

    #[test]
    fn whatever_is_replayed_no_association_changes_and_none_is_kept_alive() {
        let (mut ends, mut all) = (two(), Vec::new());
        talk(&mut ends, 0, Time(1), &mut all);
        ends[0] = Association::new(fastrand::Rng::with_seed(9));
        talk(&mut ends, 0, Time(2), &mut all);
        ends[1].forget();
        talk(&mut ends, 1, Time(3), &mut all);
        talk(&mut ends, 0, Time(4), &mut all);
        let (before, heard) = ([ends[0].numbers(), ends[1].numbers()], ends[1].heard());
        for (to, header) in all {
            let heard = ends[to].hear(&header, Time(100));
            assert!(matches!(heard, Heard::Old | Heard::Stranger), "{header:?}");
        }
        assert_eq!([ends[0].numbers(), ends[1].numbers()], before);
        assert_eq!(ends[1].heard(), heard, "a replay does not show that it is alive");
    }
}
