//! Datagrams: what is sent to the other router, and what comes from it.

use shoal_datagram::{Checksum, Datagram};
use shoal_fib::FibIndex;
use shoal_graph::clock::Time;
use shoal_nat_state::sync::{Op, Role};

use super::SessionSync;
use crate::association::Heard;
use crate::node::ReceivedDatagram;
use crate::window::{Arrival, ReceiveWindow, SendWindow};
use crate::wire::{HEADER, Header, Kind, RecordOp, Records, TAG};

/// Routers a datagram may pass.
const HOPS: u8 = 64;
/// Network control, as routing protocols have it (RFC 4594).
const TOS: u8 = 192;
/// Strangers are answered so often: what they send may have been recorded long ago.
const ANSWERS: u64 = 20_000_000;
/// Nanoseconds between two times that the other router may ask for all sessions.
const BETWEEN_ASKED: u64 = 1_000_000_000;
/// Datagrams taken in in one go.
const DELIVERED: usize = 32;
/// A packet may be so many seconds younger than the last refresh says, beyond the time between refreshes.
const MARGIN: u32 = 10;

impl SessionSync {
    /// Sends a datagram to the other router.
    pub(super) fn send(&self, header: &Header, records: &[u8]) {
        let Some(peer) = self.peer() else { return };
        let mut bytes = Vec::with_capacity(HEADER + records.len() + TAG);
        header.write(&mut bytes);
        bytes.extend(records);
        if let Some(key) = &peer.key {
            let tag = key.tag(&bytes);
            bytes.extend(tag);
        }
        let datagram = Datagram {
            source: (peer.local, peer.port),
            destination: (peer.address, peer.port),
            table: FibIndex::DEFAULT,
            hops: HOPS,
            tos: TOS,
            checksum: Checksum::Computed,
        };
        self.counters.datagrams_sent.add(0, 0, 1);
        if let Err(e) = datagram.send(&self.graph, &bytes) {
            // It is sent again.
            tracing::debug!("sessions are not sent to {}: {e}", peer.address);
        }
    }

    /// The header of data, or of an acknowledgement.
    pub(super) fn header(&self, kind: Kind, sequence: u64) -> Header {
        let mut state = self.state.borrow_mut();
        state.ack_due = false;
        let (sender, receiver) = state.association.numbers();
        let (ack, behind) = state.receive.ack();
        Header { kind, is_active: state.role == Role::Active, sender, receiver, sequence, ack, behind }
    }

    /// Tells what has come, if anything has that was not told.
    pub(crate) fn acknowledge(&self) {
        if self.state.borrow().ack_due {
            self.send(&self.header(Kind::Ack, 0), &[]);
        }
    }

    /// Says hello, to a stranger or to the router that is known.
    pub(super) fn say_hello(&self, stranger: Option<u64>) {
        let mut state = self.state.borrow_mut();
        let is_active = state.role == Role::Active;
        let header = state.association.hello(stranger, is_active);
        drop(state);
        self.send(&header, &[]);
    }

    /// A datagram came from the other router's address.
    pub(crate) fn hear(&self, datagram: &ReceivedDatagram) {
        let Some(peer) = self.peer() else { return };
        let bytes = datagram.bytes();
        let signed = match &peer.key {
            Some(key) => bytes.split_last_chunk::<TAG>().filter(|(signed, tag)| key.verify(signed, *tag)),
            None => Some((bytes, &[0; TAG])),
        };
        let Some((signed, _)) = signed else { return self.counters.not_authentic.add(0, 0, 1) };
        let (Ok(header), Some(records)) = (Header::read(signed), signed.get(HEADER..)) else {
            return self.counters.malformed.add(0, 0, 1);
        };
        if header.kind != Kind::Data && !records.is_empty() {
            // One of the routers has a key, the other none.
            return self.counters.not_authentic.add(0, 0, 1);
        }
        self.counters.datagrams_received.add(0, 0, 1);
        let now = self.now();
        match header.kind {
            Kind::Hello => self.hear_hello(&header, now),
            Kind::Data | Kind::Ack => self.hear_data(&header, records, now),
        }
    }

    fn hear_hello(&self, header: &Header, now: Time) {
        let heard = self.state.borrow_mut().association.hear(header, now);
        match heard {
            Heard::Up => {
                self.come_up(header.is_active, now);
                self.say_hello(None);
            }
            Heard::Alive => self.hear_role(header.is_active),
            Heard::Old => self.counters.replayed.add(0, 0, 1),
            Heard::Stranger => {
                let mut state = self.state.borrow_mut();
                if now.0.saturating_sub(state.answered.0) < ANSWERS && state.answered.0 != 0 {
                    return self.counters.unanswered.add(0, 0, 1);
                }
                state.answered = now;
                drop(state);
                self.say_hello(Some(header.sender));
            }
        }
    }

    fn hear_data(&self, header: &Header, records: &[u8], now: Time) {
        let mut state = self.state.borrow_mut();
        if !state.association.is_of(header) {
            return self.counters.replayed.add(0, 0, 1);
        }
        state.send.acknowledge(header.ack, header.behind, now);
        if header.kind == Kind::Ack {
            return;
        }
        state.ack_due = true;
        let arrival = state.receive.push(header.sequence, records);
        if arrival == Arrival::New {
            state.association.alive(now);
        }
        drop(state);
        match arrival {
            Arrival::New => {
                self.hear_role(header.is_active);
                self.deliver(now);
            }
            Arrival::Again => self.counters.replayed.add(0, 0, 1),
            Arrival::TooFar => self.counters.too_far.add(0, 0, 1),
        }
    }

    /// The other router says whether it forwards.
    fn hear_role(&self, is_active: bool) {
        let mut state = self.state.borrow_mut();
        let was_active = std::mem::replace(&mut state.peer_is_active, is_active);
        if was_active == is_active {
            return;
        }
        if !is_active {
            // It may have missed what happened while both forwarded.
            for of in &mut state.features {
                (of.tells_all, of.told_at) = (true, None);
            }
        }
        if is_active && state.role == Role::Active {
            tracing::warn!("session-sync: both routers forward");
        }
        drop(state);
        self.bell.ring();
    }

    /// Both routers know each other from now on.
    fn come_up(&self, is_active: bool, now: Time) {
        self.counters.ups.add(0, 0, 1);
        let mut state = self.state.borrow_mut();
        (state.send, state.receive) = (SendWindow::default(), ReceiveWindow::default());
        state.out.clear();
        (state.up_since, state.peer_is_active, state.ack_due) = (Some(now), is_active, false);
        for of in &mut state.features {
            (of.tells_all, of.told_at) = (true, None);
        }
        self.reception.set_own(state.association.own());
        drop(state);
        tracing::info!("session-sync: the other router is there");
        self.give_roles();
        self.bell.ring();
    }

    /// The other router is not known any more.
    pub(super) fn go_down(&self, why: &str) {
        let mut state = self.state.borrow_mut();
        if !state.association.is_up() {
            return;
        }
        state.association.forget();
        self.reception.set_own(state.association.own());
        (state.send, state.receive) = (SendWindow::default(), ReceiveWindow::default());
        state.out.clear();
        (state.up_since, state.peer_is_active) = (None, false);
        drop(state);
        self.counters.downs.add(0, 0, 1);
        tracing::info!("session-sync: {why}");
        self.give_roles();
    }

    /// Takes in data in order, as long as threads keep up.
    pub(super) fn deliver(&self, now: Time) {
        let forgiven = self.timers().refresh.saturating_add(MARGIN);
        for _ in 0..DELIVERED {
            if self.features.iter().any(|feature| feature.is_busy()) {
                break;
            }
            let records = self.state.borrow_mut().receive.pop();
            let Some(records) = records else { break };
            for record in Records(&records) {
                let Ok((number, op, session)) = record else {
                    self.counters.malformed.add(0, 0, 1);
                    break;
                };
                self.take_in((number, op, session), forgiven, now);
            }
        }
        self.features.iter().for_each(|feature| feature.flush(now));
    }

    fn take_in(&self, (number, op, session): (u8, RecordOp, &[u8]), forgiven: u32, now: Time) {
        let found = self.features.iter().enumerate().find(|(_, feature)| feature.number() == number);
        let Some((at, feature)) = found else { return self.counters.malformed.add(0, 0, 1) };
        match op {
            RecordOp::Put => {
                self.counters.puts_received.add(0, 0, 1);
                feature.put(Op::Put, session, forgiven);
            }
            RecordOp::Gone => {
                self.counters.ends_received.add(0, 0, 1);
                feature.put(Op::Gone, session, forgiven);
            }
            RecordOp::BeginAll => {
                feature.flush(now);
                feature.begin_all();
            }
            RecordOp::EndAll => {
                feature.flush(now);
                feature.end_all();
            }
            RecordOp::WantAll => {
                if let Some(of) = self.state.borrow_mut().features.get_mut(at) {
                    of.tells_all = true;
                    // It has its reasons, but may not keep this router busy.
                    of.told_at = of.told_at.filter(|told| now.0.saturating_sub(told.0) < BETWEEN_ASKED);
                }
                self.bell.ring();
            }
        }
    }
}
