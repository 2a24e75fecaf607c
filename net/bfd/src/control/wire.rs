//! What is sent, and what is made of packets that came.

use std::net::IpAddr;

use shoal_adj::AdjKind;
use shoal_datagram::{Checksum, Datagram, DatagramError};
use shoal_fib::FibIndex;

use super::{Bfd, Entry, Hop, SessionKey};
use crate::node::{ECHO, MULTI_HOP, ReceivedPacket, SINGLE_HOP};
use crate::packet::{Control as ControlPacket, Echo};
use crate::session::{Nanos, Refused, Todo};

/// RFC 5881, 5.
pub(super) const TTL: u8 = 255;
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

    /// From where to where control packets of a session go.
    pub(super) fn control_datagram(&self, key: SessionKey, discr: u32) -> Datagram {
        let port = if key.hop == Hop::Multi { MULTI_HOP } else { SINGLE_HOP };
        self.datagram(key, (key.local, Self::source_port(discr)), (key.peer, port))
    }

    /// The same of echo packets. The other end sends them back to our address: they go out although that is here.
    pub(super) fn echo_datagram(&self, key: SessionKey, discr: u32, source: IpAddr) -> Datagram {
        self.datagram(key, (source, Self::source_port(discr)), (key.local, ECHO))
    }

    fn datagram(&self, key: SessionKey, source: (IpAddr, u16), destination: (IpAddr, u16)) -> Datagram {
        let (table, tos) = (self.table(key), self.tos.get());
        Datagram { source, destination, table, hops: TTL, tos, checksum: Checksum::Computed }
    }

    pub(super) fn send(&self, index: u32, bits: u8, now: Nanos) {
        let jitter = fastrand::f64();
        let (key, discr, bytes) = {
            let mut sessions = self.sessions.borrow_mut();
            let Some(entry) = sessions.all.get_mut(&index) else { return };
            (entry.key, entry.session.discr, entry.change(|session| session.sent(bits, now, jitter)))
        };
        let datagram = self.control_datagram(key, discr);
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
        let of = |entry: &super::Entry| (entry.key, entry.session.discr, entry.session.echo_wish.is_some());
        let Some((key, discr, is_wished)) = self.sessions.borrow().all.get(&index).map(of) else { return };
        let Some(source) = self.echo_address(key, is_wished) else { return };
        let bytes = Echo { discr, expires }.write(&self.secret);
        let datagram = self.echo_datagram(key, discr, source);
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
        if let Some(session) = &heard.session {
            session.has_waited();
        }
        if heard.port == ECHO { self.hear_echo(heard) } else { self.hear_control(heard) }
    }

    fn hear_control(&self, heard: &ReceivedPacket) {
        let Ok(control) = ControlPacket::read(heard.bytes()) else { return };
        let found = {
            let sessions = self.sessions.borrow();
            if control.your_discr != 0 {
                sessions.by_discr.get(&control.your_discr).copied()
            } else {
                let hop = if heard.port == MULTI_HOP { Hop::Multi } else { Hop::Single(heard.interface) };
                sessions.by_key.get(&SessionKey { hop, local: heard.dst, peer: heard.src }).copied()
            }
        };
        let Some(index) = found else { return self.counts.no_session.add(0, 0, 1) };
        let fits = |entry: &Entry| (entry.shared.fits(heard), heard.ttl >= entry.least_ttl);
        match self.sessions.borrow().all.get(&index).map(fits) {
            Some((true, true)) => {}
            Some((true, false)) => return self.counts.ttl.add(0, 0, 1),
            _ => return self.counts.mismatch.add(0, 0, 1),
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
    fn hear_echo(&self, heard: &ReceivedPacket) {
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
