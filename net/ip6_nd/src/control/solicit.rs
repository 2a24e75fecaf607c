//! Questions to the routers of a link that somebody else wants to be asked. Their times are those of RFC 8415 15, as
//! RFC 7559 2 says for solicitations.

use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_interface::{IfFlags, SwIfIndex};

use super::Nd;
use crate::NdError;

/// How routers are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Solicit {
    /// The time to the second question (IRT).
    pub first: Duration,
    /// Most time between two (MRT).
    pub most: Option<Duration>,
    /// Most questions (MRC).
    pub count: Option<u32>,
    /// For how long questions are asked (MRD).
    pub duration: Option<Duration>,
}

/// Questions that are being asked.
pub(super) struct Soliciting {
    how: Solicit,
    begun: Time,
    sent: u32,
    wait: Duration,
    due: Time,
}

/// A time, and a tenth of it more or less at most (RAND).
fn about(time: Duration) -> Duration {
    time.mul_f64(0.9 + 0.2 * fastrand::f64())
}

impl Soliciting {
    /// What is to be waited behind a question.
    fn next_wait(&self) -> Duration {
        // A tenth more of the last time, or less, is on top of the doubled one.
        let wait = if self.sent == 0 { about(self.how.first) } else { self.wait + about(self.wait) };
        match self.how.most {
            Some(most) if wait > most => about(most),
            _ => wait,
        }
    }

    fn is_over(&self, now: Time) -> bool {
        self.how.count.is_some_and(|most| self.sent >= most)
            || self.how.duration.is_some_and(|most| now.since(self.begun) >= most)
    }
}

impl Nd {
    /// Asks the routers of a link, at once and again until one answers; a new way to ask replaces the old one.
    ///
    /// # Errors
    /// There is no such Ethernet interface, or a time is out of range.
    pub fn solicit(&self, interface: SwIfIndex, how: Solicit) -> Result<(), NdError> {
        let name = self.interfaces.name(interface)?;
        if !self.interfaces.data(interface)?.flags().has(IfFlags::ETHERNET) {
            return Err(NdError::NotEthernet(name));
        }
        /// Longer than any router's silence.
        const MOST: u32 = 7 * 24 * 3600;
        let range = |what, time: Duration, least: u32| {
            let value = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
            let fits = (least..=MOST).contains(&value);
            if fits { Ok(()) } else { Err(NdError::Range { what, value, least, most: MOST }) }
        };
        range("seconds to the second question", how.first, 1)?;
        range("seconds between two questions", how.most.unwrap_or(how.first), 1)?;
        let now = self.now();
        let new = Soliciting { how, begun: now, sent: 0, wait: Duration::ZERO, due: now };
        self.soliciting.borrow_mut().insert(interface, new);
        self.ring();
        Ok(())
    }

    /// Asks no more. One may have answered already.
    pub fn stop_soliciting(&self, interface: SwIfIndex) {
        self.soliciting.borrow_mut().remove(&interface);
    }

    /// RFC 7559 2: a router that lets itself be used is answer enough.
    pub(super) fn router_answered(&self, interface: SwIfIndex, lifetime_secs: u16) {
        if lifetime_secs > 0 {
            self.soliciting.borrow_mut().remove(&interface);
        }
    }

    pub(super) fn soliciting_deadline(&self) -> Option<Time> {
        self.soliciting.borrow().values().map(|one| one.due).min()
    }

    pub(super) fn tick_soliciting(&self, now: Time) {
        let mut due = Vec::new();
        self.soliciting.borrow_mut().retain(|interface, one| {
            if one.due > now {
                return true;
            }
            if one.is_over(now) {
                return false;
            }
            due.push(*interface);
            one.wait = one.next_wait();
            one.sent += 1;
            one.due = now.after(one.wait);
            one.how.count.is_none_or(|most| one.sent < most)
        });
        for interface in due.into_iter().filter(|interface| self.is_up(*interface)) {
            self.solicit_routers(interface);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_come_ever_less_often_up_to_a_bound() {
        let secs = Duration::from_secs;
        let how = Solicit { first: secs(1), most: Some(secs(10)), count: None, duration: None };
        let mut one = Soliciting { how, begun: Time(0), sent: 0, wait: secs(0), due: Time(0) };
        for n in 0..100 {
            let (was, wait) = (one.wait, one.next_wait());
            assert!(wait <= secs(11), "{wait:?}");
            assert!(n == 0 || wait >= secs(9) || (wait >= was.mul_f64(1.9) && wait <= was.mul_f64(2.1)));
            (one.wait, one.sent) = (wait, one.sent + 1);
        }
        assert!(one.wait >= secs(9));
    }
}
