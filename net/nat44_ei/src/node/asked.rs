//! A packet that needs a decision, and what is known of it.

use shoal_graph::clock::Time;
use shoal_infra::Guard;
use shoal_interface::SwIfIndex;
use shoal_nat::tuple::UDP;
use shoal_nat::{Kind, ParsedPacket, Tuple};
use shoal_nat44::mapping::Mapping;

use crate::config::Config;
use crate::sessions::{Endpoint, Sessions, inside_key, outside_key};
use crate::shared::Shared;

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// It goes on, as it was.
    Passed,
    /// It goes on, translated, by this session, if it is of one.
    Translated(Option<u32>),
    /// The same, and it goes to a host whose sessions are on another thread.
    Elsewhere(usize),
    /// Its sender gets an error that it came too far.
    Expired,
}

/// A packet, and where it is.
pub struct Asked<'a> {
    pub config: &'a Config,
    pub shared: &'a Shared,
    pub guard: Guard<'a>,
    pub now: Time,
    pub thread: usize,
    /// The table it came by.
    pub table: u32,
    /// Of an output feature: where it goes out, and that interface's table.
    pub output: Option<(SwIfIndex, u32)>,
    /// Where its IP header is.
    pub front: usize,
    /// What it is.
    pub seen: ParsedPacket,
}

/// A host to which a packet from outside goes, and its table.
pub type Host = (Endpoint, u32);

impl Asked<'_> {
    pub fn tuple(&self) -> Tuple {
        self.seen.tuple
    }

    /// The outside address and port that stand for a host's.
    pub fn outside_of(&self, sessions: &Sessions, host: Endpoint, protocol: u8) -> Option<(Endpoint, u32)> {
        if let Some(handle) = sessions.find(inside_key(host, protocol, self.table)) {
            let way = sessions.way(handle)?;
            return Some((way.to(), sessions.peer_table(way.peer)?));
        }
        let mapping =
            self.config.mappings.local((host.0, host.1, protocol), self.table, self.config.inside_table)?;
        let outside = self.config.outside.table;
        (!mapping.identity).then(|| ((mapping.external.0, mapping.external_port(host.1)), outside))
    }

    /// The host that an outside address and port stand for.
    pub fn host_of(&self, sessions: &Sessions, end: Endpoint, protocol: u8) -> Option<Host> {
        let found = [self.table, self.config.outside.table]
            .into_iter()
            .find_map(|table| sessions.find(outside_key(end, protocol, table)));
        if let Some(handle) = found {
            let way = sessions.way(handle)?;
            return Some((way.to(), sessions.peer_table(way.peer)?));
        }
        let mapping = self.config.mappings.external(end.0, end.1, protocol)?;
        local_of(mapping, end.1)
    }

    /// Whether the destination is a host of this router, by its outside address.
    fn is_served(&self, sessions: &Sessions) -> bool {
        let Tuple { dst, dport, .. } = self.tuple();
        self.config.known.may_have(dst)
            && (self.host_of(sessions, (dst, dport), self.seen.protocol).is_some()
                || self.config.is_pool(dst) && self.config.of_port(dport, dst) != self.thread)
    }

    /// Whether a packet of an output feature has been translated when it came in, or is a host's answer to one that was.
    fn left(&self, sessions: &Sessions, tx_table: u32) -> bool {
        let (Tuple { src, sport, dst, dport }, protocol) = (self.tuple(), self.seen.protocol);
        let tables = [tx_table, self.table];
        tables.iter().any(|table| {
            sessions.find(outside_key((src, sport), protocol, *table)).is_some()
                || sessions.find(inside_key((dst, dport), protocol, *table)).is_some()
        })
    }

    pub fn is_translated(&self, sessions: &Sessions) -> bool {
        let Tuple { src, sport, dst, .. } = self.tuple();
        if self.config.is_exempt(dst) {
            return false;
        }
        match self.output {
            // A host that asks all for an address (DHCP).
            Some((_, table)) => dst != u32::MAX && !self.left(sessions, table),
            None if self.is_served(sessions) => true,
            // With forwarding, only what a mapping is for.
            None if self.config.forwarding => {
                let of_host = (src, sport, self.seen.protocol);
                let mappings = &self.config.mappings;
                mappings.local(of_host, self.table, self.config.inside_table).is_some()
                    && self.leads_outside()
            }
            None => self.leads_outside(),
        }
    }

    pub fn leads_outside(&self) -> bool {
        let Asked { config, shared, guard, table, .. } = *self;
        shared.reach.leads_outside(&config.outside, table, self.tuple().dst, guard)
    }

    pub fn way_out(&self) -> u32 {
        let Asked { config, shared, guard, table, .. } = *self;
        match self.output {
            Some((_, table)) => table,
            None => shared.reach.way_out(&config.outside, table, self.tuple().dst, guard),
        }
    }

    /// Whether a packet that nothing is known of passes: forwarding is on, it is for a DHCP client of this router or says what
    /// another router's sessions are, or it is a ping of the router itself.
    pub fn unasked(&self) -> bool {
        let (seen, Tuple { dst, dport, .. }) = (&self.seen, self.tuple());
        let is_own = || self.shared.reach.is_own(self.table, dst, self.guard) && !self.config.is_pool(dst);
        self.config.forwarding
            || seen.protocol == UDP && (dport == 68 || self.config.listener == Some((dst, dport)))
            || matches!(seen.kind, Kind::Query | Kind::Error) && is_own()
    }
}

/// The host of a mapping, by one of its outside ports.
pub fn local_of(mapping: &Mapping, port: u16) -> Option<Host> {
    let local = mapping.locals.first().filter(|_| !mapping.identity)?;
    let port = if mapping.is_address_only() { port } else { local.port };
    Some(((local.address, port), local.table))
}
