//! A message of a client that is sent again until it is answered (RFC 8415, 15).

use std::time::Duration;

use shoal_graph::clock::Time;

use crate::client_message6::Association;

/// What is sent, and how often. A number of 0 has no limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// What kind of message it is.
    pub kind: u8,
    /// The server it is for, by its number.
    pub server: Option<u32>,
    /// Seconds until it is sent again.
    pub irt: u32,
    /// Most seconds between two.
    pub mrt: u32,
    /// How often it is sent.
    pub mrc: u32,
    /// Seconds for which it is sent.
    pub mrd: u32,
    /// What is asked for.
    pub association: Association,
}

/// What is to be done now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// Nothing yet.
    Later,
    /// It is sent; since its first time so many hundredths of a second have passed.
    Send(u16),
    /// It was sent often enough.
    Ended,
}

/// A message that waits for its answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchange {
    /// What is sent.
    pub question: Question,
    /// What its answers are known by.
    pub transaction: [u8; 3],
    began: Time,
    wait: Duration,
    sent: u32,
    /// When it is looked at next.
    pub next: Time,
}

impl Exchange {
    /// It is sent at once.
    pub fn new(question: Question, transaction: [u8; 3], now: Time) -> Self {
        Exchange { question, transaction, began: now, wait: Duration::ZERO, sent: 0, next: now }
    }

    /// Its time may have come. `jitter` is between -0.1 and 0.1.
    pub fn due(&mut self, now: Time, jitter: f64) -> Due {
        if now < self.next {
            return Due::Later;
        }
        let Question { irt, mrt, mrc, mrd, .. } = self.question;
        let age = now.since(self.began);
        let is_long = mrd > 0 && self.sent > 0 && age >= Duration::from_secs(mrd.into());
        if is_long || (mrc > 0 && self.sent >= mrc) {
            return Due::Ended;
        }
        let (first, longest) = (Duration::from_secs(irt.max(1).into()), Duration::from_secs(mrt.into()));
        self.wait =
            if self.sent == 0 { first.mul_f64(1.0 + jitter) } else { self.wait.mul_f64(2.0 + jitter) };
        if mrt > 0 && self.wait > longest {
            self.wait = longest.mul_f64(1.0 + jitter);
        }
        self.sent += 1;
        self.next = now.after(self.wait);
        if mrd > 0 {
            self.next = self.next.min(self.began.after(Duration::from_secs(mrd.into())));
        }
        Due::Send(u16::try_from(age.as_millis() / 10).unwrap_or(u16::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time(milliseconds * 1_000_000)
    }

    fn exchange(mrt: u32, mrc: u32, mrd: u32) -> Exchange {
        let question =
            Question { kind: 1, server: None, irt: 1, mrt, mrc, mrd, association: Association::default() };
        Exchange::new(question, [0, 0, 1], at(0))
    }

    #[test]
    fn it_is_sent_more_and_more_rarely() {
        let mut exchange = exchange(4, 0, 0);
        let mut times = Vec::new();
        for now in 0..20_000 {
            if let Due::Send(elapsed) = exchange.due(at(now), 0.0) {
                times.push((now, elapsed));
            }
        }
        assert_eq!(
            times,
            [(0, 0), (1000, 100), (3000, 300), (7000, 700), (11_000, 1100), (15_000, 1500), (19_000, 1900)]
        );
        let mut late = Exchange { next: at(0), ..exchange.clone() };
        assert_eq!(late.due(at(900_000_000), 0.1), Due::Send(u16::MAX));
    }

    #[test]
    fn it_ends_after_so_many_or_so_long() {
        let mut few = exchange(0, 2, 0);
        assert_eq!((few.due(at(0), 0.0), few.due(at(1000), 0.0)), (Due::Send(0), Due::Send(100)));
        assert_eq!((few.due(at(2999), 0.0), few.due(at(3000), 0.0)), (Due::Later, Due::Ended));
        let mut long = exchange(0, 0, 5);
        assert_eq!((long.due(at(0), 0.1), long.due(at(1100), 0.0)), (Due::Send(0), Due::Send(110)));
        assert_eq!(long.due(at(3300), 0.0), Due::Send(330));
        // Not after the end, but then.
        assert_eq!((long.due(at(4999), 0.0), long.due(at(5000), 0.0)), (Due::Later, Due::Ended));
    }
}
