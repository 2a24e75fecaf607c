//! What becomes of a packet: the session it has or gets, and its bytes.

use shoal_buffer::Packet;
use shoal_flow::Handle;
use shoal_nat::tuple::TCP;
use shoal_nat::{Kind, Rewrite, Sum, Tuple};
use shoal_nat44::packet::{clamp, look_up_in};

use super::asked::{Asked, Disposition, local_of};
use crate::config::Mode;
use crate::error::Error;
use crate::ports::Ports;
use crate::session_direction::{Marks, replace};
use crate::sessions::{Session, Sessions, TICKS, inside_key, outside_key, tick};

impl Asked<'_> {
    /// The session of a host's packet, made if need be; `None`: the packet stays as it is.
    pub fn of_host(&self, sessions: &mut Sessions) -> Result<Option<Handle>, Error> {
        let (config, Tuple { src, sport, dst, dport }) = (self.config, self.tuple());
        let protocol = self.seen.protocol;
        if let Some(handle) = sessions.find(inside_key((src, sport), protocol, self.table)) {
            return Ok(Some(handle));
        }
        if !self.is_translated(sessions) {
            return Ok(None);
        }
        let mapping = config.mappings.local((src, sport, protocol), self.table, config.inside_table);
        if mapping.is_some_and(|mapping| mapping.identity) {
            return Ok(None);
        }
        let outside_table = self.way_out();
        let ports = Ports { config, thread: self.thread, host: (src, self.table), protocol, outside_table };
        if mapping.is_none() && config.mode != Mode::Dynamic {
            return Err(Error::NoTranslation);
        }
        sessions.make_room((src, self.table), config)?;
        let outside = match mapping {
            Some(mapping) => (mapping.external.0, mapping.external_port(sport)),
            None => ports.give(sessions, self.now).ok_or(Error::OutOfPorts)?,
        };
        let session = Session {
            inside: (src, sport),
            inside_table: self.table,
            outside,
            outside_table,
            protocol,
            is_static: mapping.is_some(),
            remote: (dst, dport),
        };
        Ok(Some(sessions.create(session, self.now)?))
    }

    /// The session of a packet to a host; `None`: the packet stays as it is.
    pub fn at_host(&self, sessions: &mut Sessions) -> Result<Option<Handle>, Error> {
        let (config, Tuple { src, sport, dst, dport }) = (self.config, self.tuple());
        let protocol = self.seen.protocol;
        if let Some(handle) = sessions.find(outside_key((dst, dport), protocol, self.table)) {
            return Ok(Some(handle));
        }
        let Some(mapping) = config.mappings.external(dst, dport, protocol) else {
            return self.unasked().then_some(None).ok_or(Error::NoTranslation);
        };
        if mapping.identity {
            return Ok(None);
        }
        let (inside, inside_table) = local_of(mapping, dport).ok_or(Error::NoTranslation)?;
        sessions.make_room((inside.0, inside_table), config)?;
        let session = Session {
            inside,
            inside_table,
            outside: (dst, dport),
            outside_table: self.table,
            protocol,
            is_static: true,
            remote: (src, sport),
        };
        let made = sessions.create(session, self.now)?;
        Ok(sessions.peer(made))
    }

    /// Changes a packet's source or destination without a session.
    pub fn rewrite(&self, pkt: &mut Packet<'_>, from: Tuple, to: Tuple) -> Result<(), Error> {
        let seen = &self.seen;
        let sum = Sum::of(pkt);
        let bytes = pkt.data_mut().get_mut(self.front..).ok_or(Error::CannotTranslate)?;
        Rewrite::new(from, to, seen.protocol)
            .write(bytes, seen.header.into(), seen.kind, seen.first, sum)
            .ok_or(Error::CannotTranslate)
    }

    /// A packet whose source is translated goes to another host of this router, if its destination is one's outside address. RFC
    /// 4787, REQ-9: the other sees its outside address and port.
    pub fn hairpin(&self, pkt: &mut Packet<'_>, sessions: &Sessions) -> Result<Option<usize>, Error> {
        let (config, thread) = (self.config, self.thread);
        let tuple = self.tuple();
        if !config.known.may_have(tuple.dst) {
            return Ok(None);
        }
        let owner = config.of_outside(tuple, self.seen.protocol);
        if owner != thread {
            let is_one = config.is_known(tuple.dst, tuple.dport, self.seen.protocol);
            return Ok(is_one.then_some(owner));
        }
        let Some((host, table)) = self.host_of(sessions, (tuple.dst, tuple.dport), self.seen.protocol) else {
            return Ok(None);
        };
        let to = replace(tuple, host, true, self.seen.kind == Kind::Query);
        self.rewrite(pkt, tuple, to)?;
        look_up_in(pkt, table);
        self.shared.counters.hairpin(thread, pkt.rx());
        Ok(None)
    }

    /// The packet becomes what its session says.
    pub fn translate(
        &mut self,
        pkt: &mut Packet<'_>,
        handle: Handle,
        sessions: &mut Sessions,
    ) -> Result<Disposition, Error> {
        let (config, now, seen, front) = (self.config, self.now, self.seen, self.front);
        let table = sessions.table().ok_or(Error::NoTranslation)?;
        table.touch(handle, tick(now));
        let way = table.get_mut(handle).ok_or(Error::NoTranslation)?;
        way.count(pkt.len().saturating_sub(front));
        let rewrite = way.rewrite(seen.tuple, seen.kind);
        let (peer, marks) = (way.peer, way.marks);
        let sum = Sum::of(pkt);
        let bytes = pkt.data_mut().get_mut(front..).ok_or(Error::CannotTranslate)?;
        rewrite.write(bytes, seen.header.into(), seen.kind, seen.first, sum).ok_or(Error::CannotTranslate)?;
        if seen.protocol == TCP {
            clamp(config.mss, &seen, pkt, front);
        }
        sessions.used(handle, config.refresh.saturating_mul(TICKS as u32), now);
        if marks.has(Marks::OTHER_TABLE)
            && let Some(table) = sessions.peer_table(peer)
        {
            look_up_in(pkt, table);
        }
        if marks.has(Marks::INWARD) {
            return Ok(Disposition::Translated(Some(handle.index())));
        }
        self.seen.tuple = rewrite.to;
        self.table = sessions.peer_table(peer).unwrap_or(config.outside.table);
        Ok(match self.hairpin(pkt, sessions)? {
            Some(thread) => Disposition::Elsewhere(thread),
            None => Disposition::Translated(Some(handle.index())),
        })
    }
}
