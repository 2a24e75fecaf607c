//! ICMP errors: about packets of sessions. RFC 5508, 4: they are translated as the packet was that they are about, and neither
//! make sessions, nor end them, nor keep them.

use shoal_buffer::Packet;
use shoal_nat::Tuple;
use shoal_nat::icmp::Quoted;
use shoal_nat::tuple::ICMP;
use shoal_nat44::packet::look_up_in;

use super::asked::{Asked, Disposition};
use crate::error::Error;
use crate::session_direction::replace;
use crate::sessions::Sessions;

impl Asked<'_> {
    fn quoted(&self, pkt: &Packet<'_>) -> Result<Quoted, Error> {
        if !self.seen.first {
            return Err(Error::BadIcmpType);
        }
        let bytes = pkt.data().get(self.front..).ok_or(Error::CannotTranslate)?;
        let total = bytes.get(2..4).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_be_bytes(*b));
        let whole = (!pkt.is_chained() && !self.seen.fragment).then_some(usize::from(total));
        Ok(Quoted::read(bytes, self.seen.header.into(), whole)?)
    }

    fn write(
        &self,
        pkt: &mut Packet<'_>,
        quoted: &Quoted,
        outer: (u32, u32),
        to: Tuple,
    ) -> Result<(), Error> {
        let bytes = pkt.data_mut().get_mut(self.front..).ok_or(Error::CannotTranslate)?;
        Ok(quoted.write(bytes, self.seen.header.into(), outer, to)?)
    }

    /// A host's, or of a router between it and this one.
    pub(super) fn error_from_host(
        &mut self,
        pkt: &mut Packet<'_>,
        sessions: &Sessions,
    ) -> Result<Disposition, Error> {
        let passes = |asked: &Self| {
            let own = asked.output.is_some_and(|(_, table)| {
                [table, asked.table]
                    .iter()
                    .any(|table| asked.shared.reach.is_own(*table, asked.seen.tuple.src, asked.guard))
            });
            own || asked.config.forwarding || !asked.is_translated(sessions)
        };
        let quoted = match self.quoted(pkt) {
            Ok(quoted) => quoted,
            Err(why) => return passes(self).then_some(Disposition::Passed).ok_or(why),
        };
        let (answer, protocol) = (quoted.answer, quoted.protocol);
        let Some((end, table)) = self.outside_of(sessions, (answer.src, answer.sport), protocol) else {
            return passes(self).then_some(Disposition::Passed).ok_or(Error::BadIcmpType);
        };
        let to = replace(answer, end, false, protocol == ICMP);
        // RFC 5508, REQ-5: a router between host and NAT is not seen from outside, any more than the host is.
        self.write(pkt, &quoted, (end.0, self.seen.tuple.dst), to)?;
        if table != self.table {
            look_up_in(pkt, table);
        }
        self.seen.tuple.src = end.0;
        self.table = table;
        if !self.config.known.may_have(self.seen.tuple.dst) {
            return Ok(Disposition::Translated(None));
        }
        let owner = self.config.of_outside(to, protocol);
        if owner != self.thread && self.config.is_known(to.dst, to.dport, protocol) {
            return Ok(Disposition::Elsewhere(owner));
        }
        if self.host_of(sessions, (to.dst, to.dport), protocol).is_none() {
            return Ok(Disposition::Translated(None));
        }
        self.shared.counters.hairpin(self.thread, pkt.rx());
        self.error_to_host(pkt, sessions)
    }

    /// One about a host's packet.
    pub(super) fn error_to_host(
        &self,
        pkt: &mut Packet<'_>,
        sessions: &Sessions,
    ) -> Result<Disposition, Error> {
        let quoted = match self.quoted(pkt) {
            Ok(quoted) => quoted,
            Err(why) => return self.unasked().then_some(Disposition::Passed).ok_or(why),
        };
        let (answer, protocol) = (quoted.answer, quoted.protocol);
        let Some((host, table)) = self.host_of(sessions, (answer.dst, answer.dport), protocol) else {
            return self.unasked().then_some(Disposition::Passed).ok_or(Error::NoTranslation);
        };
        let to = replace(answer, host, true, protocol == ICMP);
        self.write(pkt, &quoted, (self.seen.tuple.src, host.0), to)?;
        look_up_in(pkt, table);
        Ok(Disposition::Translated(None))
    }
}
