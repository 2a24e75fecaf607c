//! What is sent, and what is made of packets that came.

use shoal_adj::AdjKind;
use shoal_datagram::{Checksum, Datagram, DatagramError};
use shoal_fib::FibIndex;

use super::{Bfd, Entry, Hop, SessionKey};
use crate::node::{ECHO, MULTI_HOP, ReceivedPacket, SINGLE_HOP};
use crate::packet::{Control as ControlPacket, Echo};
use crate::session::{Nanos, Refused, Todo};

/// RFC 5881, 5.
const TTL: u8 = 255;
/// Source ports (RFC 5881, 4).
const PORTS: std::ops::Range<u16> = 49_152..65_535;

impl Bfd {
    fn source_port(discr: u32) -> u16 {
        let ports = u32::from(PORTS.end - PORTS.start);
        PORTS.start + (discr % ports) as u16
    }

    fn table(&self, key: SessionKey) -> FibIndex {
        let Hop::Single(interface) = key.hop else { return FibIndex::DEFAULT };
        self.interfaces.data(interface).map_or(FibIndex::DEFAULT, |data| {
            FibIndex(if key.local.is_ipv4() { data.fib_ip4 } else { data.fib_ip6 })
        })
    }

    pub(super) fn send(&self, index: u32, bits: u8, now: Nanos) {
        let jitter = fastrand::f64();
        let (key, discr, bytes) = {
            let mut sessions = self.sessions.borrow_mut();
            let Some(entry) = sessions.all.get_mut(&index) else { return };
            (entry.key, entry.session.discr, entry.session.sent(bits, now, jitter))
        };
        let port = if key.hop == Hop::Multi { MULTI_HOP } else { SINGLE_HOP };
        let datagram = Datagram {
            source: (key.local, Self::source_port(discr)),
            destination: (key.peer, port),
            table: self.table(key),
            hops: TTL,
            tos: self.tos.get(),
            checksum: Checksum::Computed,
        };
        match self.send_to(index, &datagram, &bytes) {
            Ok(()) => self.counts.tx.add(0, index as usize, 1, bytes.len() as u64),
            Err(e) => tracing::debug!("bfd: nothing is sent to {}: {e}", key.peer),
        }
    }

    /// To a neighbour a packet goes whatever the table says: it drops what else goes there while the session is not up.
    fn send_to(&self, index: u32, datagram: &Datagram, bytes: &[u8]) -> Result<(), DatagramError> {
        let probe = self.sessions.borrow().all.get(&index).and_then(|entry| entry.probe);
        match probe.map(|probe| (probe, self.adjacencies.get(probe).kind())) {
            Some((probe, AdjKind::Rewrite)) => datagram.send_by(&self.graph, probe, bytes),
            Some((probe, AdjKind::Incomplete)) => datagram.ask_by(&self.graph, probe, bytes),
            _ => datagram.send(&self.graph, bytes),
        }
    }

    pub(super) fn send_echo(&self, index: u32, expires: Nanos) {
        let Some((key, discr)) = self.sessions.borrow().all.get(&index).map(|e| (e.key, e.session.discr))
        else {
            return;
        };
        let Some(source) = self.echo_address(key.peer) else { return };
        let bytes = Echo { discr, expires }.write(&self.secret);
        // The other end sends it back to our address: it goes out although that is here.
        let datagram = Datagram {
            source: (source, Self::source_port(discr)),
            destination: (key.local, ECHO),
            table: self.table(key),
            hops: TTL,
            tos: self.tos.get(),
            checksum: Checksum::Computed,
        };
        let Some(probe) = self.sessions.borrow().all.get(&index).and_then(|entry| entry.probe) else {
            return;
        };
        match datagram.send_by(&self.graph, probe, &bytes) {
            Ok(()) => self.counts.echo_tx.add(0, index as usize, 1, bytes.len() as u64),
            Err(e) => tracing::debug!("bfd: no echo packet is sent to {}: {e}", key.peer),
        }
    }

    /// A control packet came.
    pub(crate) fn hear(&self, heard: &ReceivedPacket) {
        let Ok(control) = ControlPacket::read(heard.bytes()) else { return };
        let is_multi = heard.port == MULTI_HOP;
        let found = {
            let sessions = self.sessions.borrow();
            if control.your_discr != 0 {
                sessions.by_discr.get(&control.your_discr).copied()
            } else {
                let hop = if is_multi { Hop::Multi } else { Hop::Single(heard.interface) };
                sessions.by_key.get(&SessionKey { hop, local: heard.dst, peer: heard.src }).copied()
            }
        };
        let Some(index) = found else { return self.counts.no_session.add(0, 0, 1) };
        let fits = self.sessions.borrow().all.get(&index).is_some_and(|Entry { key, .. }| {
            let hop = match key.hop {
                Hop::Single(interface) => !is_multi && interface == heard.interface,
                Hop::Multi => is_multi,
            };
            hop && (key.local, key.peer) == (heard.dst, heard.src)
        });
        if !fits {
            return self.counts.mismatch.add(0, 0, 1);
        }
        let mut refused = None;
        self.with(index, |session, now| {
            session.receive(&control, heard.bytes(), now).unwrap_or_else(|why| {
                refused = Some(why);
                Todo::default()
            })
        });
        match refused {
            None => self.counts.rx.add(0, index as usize, 1, heard.length.into()),
            Some(Refused::AdminDown) => self.counts.admin_down.add(0, 0, 1),
            Some(Refused::Verification) => self.counts.verification.add(0, 0, 1),
        }
    }

    /// An echo packet came back.
    pub(crate) fn hear_echo(&self, heard: &ReceivedPacket) {
        let now = self.now();
        let echo = Echo::read(heard.bytes(), &self.secret);
        let index = echo.and_then(|echo| self.sessions.borrow().by_discr.get(&echo.discr).copied());
        let (Some(echo), Some(index)) = (echo, index) else { return self.counts.echo_bad.add(0, 0, 1) };
        self.counts.echo_rx.add(0, index as usize, 1, heard.length.into());
        if echo.expires >= now {
            self.with(index, |session, now| {
                session.echo_came(now);
                Todo::default()
            });
        }
    }
}
