//! Packets that are translated without a session: by static mappings, where no sessions are kept, and of protocols without ports.

use shoal_buffer::Packet;
use shoal_nat::{Kind, Tuple};
use shoal_nat44::packet::look_up_in;

use super::asked::{Asked, Disposition};
use crate::error::Error;
use crate::session_direction::replace;
use crate::sessions::Sessions;

impl Asked<'_> {
    /// By the mapping of a packet's port or address; of a protocol without ports, by that of an address, since nothing else tells
    /// hosts apart.
    pub(super) fn stateless(
        &mut self,
        pkt: &mut Packet<'_>,
        sessions: &Sessions,
        to_host: bool,
    ) -> Result<Disposition, Error> {
        let (tuple, protocol) = (self.seen.tuple, self.seen.protocol);
        if to_host {
            return self.stateless_to_host(pkt, sessions, tuple);
        }
        if !self.is_translated(sessions) {
            return Ok(Disposition::Passed);
        }
        let of_host = (tuple.src, tuple.sport, protocol);
        let mapping = self.config.mappings.local(of_host, self.table, self.config.inside_table);
        if mapping.is_some_and(|mapping| mapping.identity) {
            return Ok(Disposition::Passed);
        }
        let Some((end, table)) = self.outside_of(sessions, (tuple.src, tuple.sport), protocol) else {
            return Err(if self.seen.kind == Kind::Other {
                Error::UnsupportedProtocol
            } else {
                Error::NoTranslation
            });
        };
        let to = replace(tuple, end, false, self.seen.kind == Kind::Query);
        self.rewrite(pkt, tuple, to)?;
        if table != self.table {
            look_up_in(pkt, table);
        }
        (self.seen.tuple, self.table) = (to, table);
        if self.host_of(sessions, (to.dst, to.dport), protocol).is_some() {
            self.shared.counters.hairpin(self.thread, pkt.rx());
            return self.stateless_to_host(pkt, sessions, to);
        }
        Ok(Disposition::Translated(None))
    }

    fn stateless_to_host(
        &self,
        pkt: &mut Packet<'_>,
        sessions: &Sessions,
        tuple: Tuple,
    ) -> Result<Disposition, Error> {
        let protocol = self.seen.protocol;
        let mapping = self.config.mappings.external(tuple.dst, tuple.dport, protocol);
        if mapping.is_some_and(|mapping| mapping.identity) {
            return Ok(Disposition::Passed);
        }
        let Some((host, table)) = self.host_of(sessions, (tuple.dst, tuple.dport), protocol) else {
            return self.unasked().then_some(Disposition::Passed).ok_or(Error::NoTranslation);
        };
        self.rewrite(pkt, tuple, replace(tuple, host, true, self.seen.kind == Kind::Query))?;
        if table != self.table {
            look_up_in(pkt, table);
        }
        Ok(Disposition::Translated(None))
    }
}
