//! What a session is in, and which timeout that gives it: of TCP, by the flags that both sides have sent.
//!
//! A connection is established when SYN and ACK were seen from both sides (RFC 5382, REQ-2: in whatever order, so that both may open
//! it at once), and closing from the first FIN or RST on (REQ-5): what was seen is forgotten then, so that it can be opened again.

use shoal_flow::Timeout;
use shoal_nat::tuple::{ICMP, TCP, UDP};

/// Timeouts of flow tables.
pub const UDP_TIMEOUT: Timeout = Timeout::new(0);
/// An established connection.
pub const ESTABLISHED: Timeout = Timeout::new(1);
/// A connection that is not.
pub const TRANSITORY: Timeout = Timeout::new(2);
/// An ICMP query.
pub const ICMP_TIMEOUT: Timeout = Timeout::new(3);
/// All other protocols.
pub const OTHER: Timeout = Timeout::new(4);
/// The direction whose timer does not run: the other's does for both.
pub const FOLLOWS: Timeout = Timeout::new(15);

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const LOOKED_AT: u8 = FIN | SYN | RST | ACK;

/// The upper bits: the state. The lower five of TCP: flags this direction has had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State(u8);

const OPENING: u8 = 1 << 6;
const OPEN: u8 = 2 << 6;
const CLOSING: u8 = 3 << 6;
const PHASE: u8 = 3 << 6;

/// What a change of a connection means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It is established.
    Opened,
    /// It ends.
    Closing,
}

impl State {
    /// Of a new session.
    pub const fn new(protocol: u8) -> State {
        State(match protocol {
            TCP => OPENING,
            UDP => UDP_TIMEOUT.number(),
            ICMP => ICMP_TIMEOUT.number(),
            _ => OTHER.number(),
        })
    }

    /// As a number, for another router.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// What [`to_bits`](Self::to_bits) gave of a session of this protocol; `None`: it is no state of one.
    pub const fn from_bits(protocol: u8, bits: u8) -> Option<State> {
        match protocol {
            TCP if bits & PHASE == 0 => None,
            TCP => Some(State(bits & (PHASE | LOOKED_AT))),
            _ => Some(State::new(protocol)),
        }
    }

    /// Whether the session is a TCP connection.
    pub const fn is_tcp(self) -> bool {
        self.0 & PHASE != 0
    }

    /// Whether it is an established one.
    pub const fn is_established(self) -> bool {
        self.0 & PHASE == OPEN
    }

    /// The word an operator reads.
    pub const fn name(self) -> &'static str {
        match self.0 & PHASE {
            OPENING => "closed",
            OPEN => "established",
            CLOSING => "closing",
            _ => "",
        }
    }

    /// The timeout it gives.
    #[inline(always)]
    pub const fn timeout(self) -> Timeout {
        match self.0 & PHASE {
            0 => Timeout::new(self.0),
            OPEN => ESTABLISHED,
            _ => TRANSITORY,
        }
    }

    /// Whether a packet with these flags may change anything.
    #[inline(always)]
    pub const fn is_moved_by(self, flags: u8) -> bool {
        let flags = flags & LOOKED_AT;
        match self.0 & PHASE {
            0 => false,
            OPEN => flags & (FIN | RST) != 0,
            _ => self.0 | flags != self.0,
        }
    }

    /// A packet of this direction with these flags; `other` is what the other direction has had. Gives both states.
    pub const fn after(self, other: State, flags: u8) -> (State, State, Option<Change>) {
        // The flags of the last connection in this direction do not count for the one that it begins.
        let begins = self.0 & PHASE == CLOSING && flags & SYN != 0 && self.0 & SYN == 0;
        let had = if begins { self.0 & PHASE } else { self.0 };
        let mine = State(had | flags & LOOKED_AT);
        match self.0 & PHASE {
            OPEN if (mine.0 | other.0) & (FIN | RST) != 0 => {
                (State(CLOSING), State(CLOSING), Some(Change::Closing))
            }
            OPENING | CLOSING if mine.0 & other.0 & LOOKED_AT == SYN | ACK => {
                // What was a FIN of the last connection is none of the new one.
                let open = State(OPEN | SYN | ACK);
                (open, open, Some(Change::Opened))
            }
            _ => (mine, other, None),
        }
    }
}

/// Whether a TCP packet may begin a session: SYN alone.
pub const fn is_first(flags: u8) -> bool {
    flags & LOOKED_AT == SYN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_opens_closes_and_opens_again_only_when_both_sides_say_so() {
        let (mut a, mut b) = (State::new(TCP), State::new(TCP));
        let mut changes = Vec::new();
        let mut say = |from_a: bool, flags: u8| {
            let (mine, other) = if from_a { (a, b) } else { (b, a) };
            let moved = mine.is_moved_by(flags);
            let (mine, other, change) = mine.after(other, flags);
            assert!(moved || change.is_none());
            (a, b) = if from_a { (mine, other) } else { (other, mine) };
            changes.extend(change);
            (a.timeout(), b.timeout())
        };
        assert_eq!(say(true, SYN), (TRANSITORY, TRANSITORY));
        assert_eq!(say(false, SYN | ACK), (TRANSITORY, TRANSITORY));
        assert_eq!(say(true, ACK), (ESTABLISHED, ESTABLISHED));
        assert_eq!(say(true, ACK | 8), (ESTABLISHED, ESTABLISHED));
        assert_eq!(say(false, FIN | ACK), (TRANSITORY, TRANSITORY));
        assert_eq!(say(true, FIN | ACK), (TRANSITORY, TRANSITORY));
        assert_eq!(say(true, SYN), (TRANSITORY, TRANSITORY), "one side alone");
        assert_eq!(say(false, SYN | ACK), (TRANSITORY, TRANSITORY));
        assert_eq!(say(true, ACK), (ESTABLISHED, ESTABLISHED));
        assert_eq!(say(true, RST), (TRANSITORY, TRANSITORY));
        assert_eq!(changes, [Change::Opened, Change::Closing, Change::Opened, Change::Closing]);
    }

    #[test]
    fn other_protocols_have_their_timeout_whatever_the_flags() {
        for (protocol, timeout) in [(UDP, UDP_TIMEOUT), (ICMP, ICMP_TIMEOUT), (47, OTHER)] {
            let state = State::new(protocol);
            assert_eq!((state.timeout(), state.is_tcp(), state.is_moved_by(0xff)), (timeout, false, false));
        }
    }
}
