//! A session that is up and stays as it is: what any thread can do for it, and the few numbers that change meanwhile.

use super::{Last, Nanos, Poll, Remote, Session};
use crate::packet::{Bits, Control, State};

/// What changes of a session that is up while its parameters and those of the other end stay the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Vital {
    /// When the last control packet was sent.
    pub last_tx: Option<Nanos>,
    /// When the next one is due.
    pub next_tx: Nanos,
    /// When the last one was received.
    pub last_rx: Option<Nanos>,
    /// When the last echo packet came back.
    pub last_echo_rx: Nanos,
    /// When the next one is due.
    pub next_echo: Nanos,
    /// The sequence number of the next signed packet.
    pub sequence: u32,
    /// The one that the other end used last.
    pub remote_sequence: Option<u32>,
}

impl Session {
    /// Whether it is up and neither end waits for the other's answer: packets are sent, heard and missed, and nothing else
    /// happens until one of them says something new.
    pub fn is_steady(&self) -> bool {
        self.state == State::Up
            && self.remote.state == State::Up
            && self.poll == Poll::Idle
            && self.next_auth.is_none()
            && self.last_rx.is_some()
    }

    /// What changes while it is steady.
    pub fn vital(&self) -> Vital {
        Vital {
            last_tx: self.last_tx,
            next_tx: self.next_tx,
            last_rx: self.last_rx,
            last_echo_rx: self.last_echo_rx,
            next_echo: self.next_echo,
            sequence: self.sequence,
            remote_sequence: self.remote.sequence,
        }
    }

    /// Takes over what has changed.
    pub fn set_vital(&mut self, vital: Vital) {
        self.last_tx = vital.last_tx;
        self.next_tx = vital.next_tx;
        self.last_rx = vital.last_rx;
        self.last_echo_rx = vital.last_echo_rx;
        self.next_echo = vital.next_echo;
        self.sequence = vital.sequence;
        self.remote.sequence = vital.remote_sequence;
    }

    /// Whether two differ in nothing but what changes while they are steady.
    pub fn is_like(&self, other: &Session) -> bool {
        let mut mine = self.clone();
        mine.set_vital(other.vital());
        mine == *other
    }

    /// Takes a packet that says nothing new; false, and nothing is changed, if it does or is not signed as it should be.
    pub fn hears(&mut self, control: &Control, bytes: &[u8], now: Nanos) -> bool {
        let is_old = !control.bits.has(Bits::POLL | Bits::FINAL)
            && Remote::of(control, self.remote.sequence) == self.remote;
        if !is_old {
            return false;
        }
        let Some(Last(sequence)) = self.verified(control, bytes, self.auth.as_ref(), now) else {
            return false;
        };
        self.remote.sequence = sequence;
        self.last_rx = Some(now);
        true
    }

    /// Whether a packet is due.
    pub fn is_to_send(&self, now: Nanos) -> bool {
        self.is_periodic() && now >= self.next_tx
    }

    /// As [`sent`](Session::sent) of a steady session, but for the bytes: the sequence number that the packet is signed with.
    pub fn sends(&mut self, now: Nanos, jitter: f64) -> u32 {
        let sequence = self.sequence;
        self.sequence = self.sequence.wrapping_add(u32::from(self.auth.is_some()));
        self.last_tx = Some(now);
        self.next_tx = now + self.irregular(jitter);
        sequence
    }
}
