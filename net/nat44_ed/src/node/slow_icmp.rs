//! ICMP errors: about packets of sessions. RFC 5508, 4: they are translated as the packet was that they are about, and neither
//! make sessions, nor end them, nor keep them.

use shoal_buffer::Packet;
use shoal_nat::icmp::{Fault, Quoted};

use super::fast::{OUT2IN, OUTPUT};
use crate::decide::{Asked, DropReason};
use crate::packet::look_up_in;
use crate::session_direction::Marks;
use crate::sessions::{Sessions, key};

fn why(fault: Fault) -> DropReason {
    match fault {
        Fault::Short | Fault::Checksum => DropReason::CannotTranslate,
        Fault::Unsupported => DropReason::IcmpType,
    }
}

impl Asked<'_> {
    /// Translates an ICMP error, or lets it pass; whether it was translated.
    pub(super) fn icmp_error(
        &self,
        sessions: &mut Sessions,
        pkt: &mut Packet<'_>,
        front: usize,
        way: u8,
    ) -> Result<bool, DropReason> {
        if !self.seen.first {
            return Err(DropReason::IcmpType);
        }
        let header = usize::from(self.seen.header);
        let chained = pkt.is_chained();
        let bytes = pkt.data().get(front..).ok_or(DropReason::CannotTranslate)?;
        let total = bytes.get(2..4).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_be_bytes(*b));
        let whole = (!chained && !self.seen.fragment).then_some(usize::from(total));
        let quoted = match Quoted::read(bytes, header, whole) {
            Ok(quoted) => quoted,
            Err(fault) => return self.about_others(way).then_some(false).ok_or(why(fault)),
        };
        let tuple = quoted.answer;
        let found = sessions.find(key(tuple, quoted.protocol, self.table));
        let Some(entry) = found.and_then(|handle| sessions.way(handle)) else {
            let left = |table| sessions.find(key(tuple.reversed(), quoted.protocol, table)).is_some();
            let left = self.output.is_some_and(|(_, table)| left(table) || left(self.table));
            return (left || self.about_others(way)).then_some(false).ok_or(DropReason::NoTranslation);
        };
        let (to, (src, ())) = (entry.to(), (self.seen.tuple.src, ()));
        let is_inward = entry.marks.has(Marks::INWARD);
        // RFC 5508, REQ-5: a router between host and NAT is not seen from outside, any more than the host is.
        let is_hidden = !is_inward && !entry.marks.has(Marks::BYPASS);
        let src = if src == tuple.src || is_hidden { to.src } else { src };
        let bytes = pkt.data_mut().get_mut(front..).ok_or(DropReason::CannotTranslate)?;
        quoted.write(bytes, header, (src, to.dst), to).map_err(why)?;
        if entry.marks.has(Marks::OTHER_TABLE)
            && let Some(key) = sessions.peer_key(entry.peer)
        {
            look_up_in(pkt, key.table().number());
        }
        Ok(true)
    }

    /// Whether an error without a session passes: it is this router's, or about packets that no NAT translates.
    fn about_others(&self, way: u8) -> bool {
        let (src, dst) = (self.seen.tuple.src, self.seen.tuple.dst);
        let is_own = |table, address| self.shared.reach.is_own(table, address, self.guard);
        if self.config.forwarding {
            return true;
        }
        match way {
            OUT2IN => is_own(self.table, dst),
            OUTPUT => is_own(self.table, src) || self.output.is_some_and(|(_, table)| is_own(table, src)),
            _ => !self.shared.reach.leads_outside(&self.config.outside, self.table, dst, self.guard),
        }
    }
}
