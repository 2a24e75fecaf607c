//! How long a session may be without a packet: of TCP, by the flags that both sides have sent.
//!
//! A connection is open once both sides have sent an ACK, whatever came before: one that began before the router knew of it opens, too.
//! It ends with a RST, or when both sides have sent a FIN, and restarts with a SYN.

use shoal_flow::Timeout;

/// Whatever is no open connection: `session-max-age`.
pub const DEFAULT: Timeout = Timeout::new(0);
/// An open connection: `tcp-max-age`.
pub const OPEN: Timeout = Timeout::new(1);
/// A connection that ends.
pub const CLOSING: Timeout = Timeout::new(2);
/// The direction whose timer does not run: the other's does for both.
pub const FOLLOWS: Timeout = Timeout::new(15);

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const LOOKED_AT: u8 = FIN | SYN | RST | ACK;

/// The upper bits: what the connection is in. The lower five: flags this direction has had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State(u8);

const IS_OPEN: u8 = 1 << 6;
const IS_CLOSING: u8 = 2 << 6;
const PHASE: u8 = 3 << 6;

impl State {
    /// The timeout it gives.
    #[inline(always)]
    pub const fn timeout(self) -> Timeout {
        match self.0 & PHASE {
            IS_OPEN => OPEN,
            IS_CLOSING => CLOSING,
            _ => DEFAULT,
        }
    }

    /// Whether a packet with these flags may change anything.
    #[inline(always)]
    pub const fn is_moved_by(self, flags: u8) -> bool {
        let flags = flags & LOOKED_AT;
        self.0 | flags != self.0 || (self.0 & PHASE == IS_CLOSING && flags & SYN != 0)
    }

    /// A packet of this direction with these flags; `other` is what the other direction has had, if there is one. Gives both.
    pub const fn after(self, other: Option<State>, flags: u8) -> (State, State) {
        let flags = flags & LOOKED_AT;
        if self.0 & PHASE == IS_CLOSING && flags & (SYN | ACK) == SYN {
            return (State(flags), State(0));
        }
        let mine = self.0 & !PHASE | flags;
        let theirs = match other {
            Some(other) => other.0 & !PHASE,
            // Nothing comes back this way: the one direction speaks for both.
            None => mine,
        };
        let phase = if (mine | theirs) & RST != 0 || mine & theirs & FIN != 0 {
            IS_CLOSING
        } else if mine & theirs & ACK != 0 {
            IS_OPEN
        } else {
            0
        };
        (State(phase | mine), State(phase | theirs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_opens_closes_and_opens_again() {
        let (mut a, mut b) = (State::default(), State::default());
        let mut say = |from_a: bool, flags: u8| {
            let (mine, other) = if from_a { (a, b) } else { (b, a) };
            let moved = mine.is_moved_by(flags);
            let after = mine.after(Some(other), flags);
            assert!(moved || after == (mine, other));
            (a, b) = if from_a { after } else { (after.1, after.0) };
            assert_eq!(a.timeout(), b.timeout());
            a.timeout()
        };
        assert_eq!(say(true, SYN), DEFAULT);
        assert_eq!(say(false, SYN | ACK), DEFAULT);
        assert_eq!(say(true, ACK), OPEN);
        assert_eq!(say(true, ACK | 8), OPEN);
        assert_eq!(say(false, FIN | ACK), OPEN, "half closed");
        assert_eq!(say(true, ACK), OPEN);
        assert_eq!(say(true, FIN | ACK), CLOSING);
        assert_eq!(say(false, ACK), CLOSING);
        assert_eq!(say(true, SYN), DEFAULT, "again");
        assert_eq!(say(false, SYN | ACK), DEFAULT);
        assert_eq!(say(true, ACK), OPEN);
        assert_eq!(say(false, RST), CLOSING);
    }

    #[test]
    fn one_direction_alone_speaks_for_both() {
        let (mine, _) = State::default().after(None, SYN);
        assert_eq!(mine.timeout(), DEFAULT);
        let (mine, _) = mine.after(None, ACK);
        assert_eq!(mine.timeout(), OPEN);
        assert_eq!(mine.after(None, FIN | ACK).0.timeout(), CLOSING);
    }
}
