//! How far a TCP connection is (RFC 6146, 3.5.2.2).

/// A FIN among TCP's flags.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;

/// Which side a packet comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The host, by IPv6.
    V6,
    /// The Internet, by IPv4.
    V4,
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// Nothing is known of it.
    #[default]
    Closed,
    /// The Internet asked for it.
    V4Init,
    /// The host asked for it.
    V6Init,
    /// It is open.
    Established,
    /// The Internet has ended its direction.
    V4Fin,
    /// The host has.
    V6Fin,
    /// Both have.
    BothFin,
    /// It was reset, by the one or by a stranger.
    Transitory,
}

impl State {
    /// The state after a packet.
    #[must_use]
    pub fn after(self, from: Side, flags: u8) -> State {
        let (syn, fin, rst) = (flags & SYN != 0, flags & FIN != 0, flags & RST != 0);
        match (self, from) {
            (State::Closed, Side::V6) if syn => State::V6Init,
            (State::Closed, Side::V4) if syn => State::V4Init,
            (State::V4Init, Side::V6) | (State::V6Init, Side::V4) if syn => State::Established,
            (State::Established | State::V4Fin | State::V6Fin, _) if rst => State::Transitory,
            (State::Established, Side::V4) if fin => State::V4Fin,
            (State::Established, Side::V6) if fin => State::V6Fin,
            (State::V4Fin, Side::V6) | (State::V6Fin, Side::V4) if fin => State::BothFin,
            // The reset may be forged: a packet shows that the connection goes on.
            (State::Transitory, _) if !rst => State::Established,
            _ => self,
        }
    }

    /// As a number, for another router.
    pub const fn to_bits(self) -> u8 {
        self as u8
    }

    /// What [`to_bits`](Self::to_bits) gave.
    pub const fn from_bits(bits: u8) -> Option<State> {
        Some(match bits {
            0 => State::Closed,
            1 => State::V4Init,
            2 => State::V6Init,
            3 => State::Established,
            4 => State::V4Fin,
            5 => State::V6Fin,
            6 => State::BothFin,
            7 => State::Transitory,
            _ => return None,
        })
    }

    /// Whether it is open, or was.
    pub const fn was_open(self) -> bool {
        !matches!(self, State::Closed | State::V4Init | State::V6Init)
    }

    /// Whether it lives as long as one that is open.
    pub fn is_open(self) -> bool {
        matches!(self, State::Established | State::V4Fin | State::V6Fin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{V4, V6};

    fn after(packets: &[(Side, u8)]) -> State {
        packets.iter().fold(State::Closed, |state, (from, flags)| state.after(*from, *flags))
    }

    #[test]
    fn a_connection_opens_and_ends_from_either_side() {
        const ACK: u8 = 16;
        assert_eq!(after(&[(V6, SYN)]), State::V6Init);
        assert_eq!(after(&[(V6, SYN), (V6, SYN)]), State::V6Init);
        assert_eq!(after(&[(V6, SYN), (V4, SYN | ACK), (V6, ACK)]), State::Established);
        assert_eq!(after(&[(V4, SYN), (V6, SYN | ACK)]), State::Established);
        let open = [(V6, SYN), (V4, SYN)];
        let with = |more: &[(Side, u8)]| after(&[&open, more].concat());
        assert_eq!(with(&[(V6, FIN)]), State::V6Fin);
        assert_eq!(with(&[(V6, FIN), (V6, FIN), (V4, ACK)]), State::V6Fin);
        assert_eq!(with(&[(V6, FIN), (V4, FIN), (V6, ACK)]), State::BothFin);
        assert_eq!(with(&[(V4, FIN), (V6, FIN)]), State::BothFin);
        assert_eq!(with(&[(V4, RST)]), State::Transitory);
        assert_eq!(with(&[(V4, RST), (V6, ACK)]), State::Established, "a forged reset ends nothing");
        assert!(
            with(&[(V4, FIN)]).is_open() && !with(&[(V4, RST)]).is_open() && !after(&[(V6, SYN)]).is_open()
        );
        assert_eq!(after(&[(V6, ACK)]), State::Closed);
    }
}
