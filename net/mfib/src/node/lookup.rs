//! `ip4-mfib-forward-lookup`, `ip6-mfib-forward-lookup`: the entry for a packet's source and group.
//! features of `ip4-multicast`, `ip6-multicast` -> **lookup** -> the RPF check | ip6-lookup | ip4-local (IGMP)

use std::fmt;
use std::marker::PhantomData;

use shoal_buffer::{Flags, Packet};
use shoal_derive::ErrorCounters;
use shoal_graph::{Cx, Edge, NextNodes, PacketNode};
use shoal_interface::IfTable;

use super::mark::Mark;
use crate::MfibTable;
use crate::family::{Ip, is_link_group};

/// Where a packet goes next: an edge.
#[derive(Clone, Copy)]
pub(crate) struct Next<F>(u16, PhantomData<F>);

impl<F: Ip> NextNodes for Next<F> {
    const NAMES: &'static [&'static str] = F::LOOKUP_NEXT;

    fn edge(self) -> Edge {
        Edge(self.0)
    }
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// header is cut short
    TooShort,
    /// no multicast route to group
    #[severity(warn)]
    NoRoute,
}

/// What `show trace` says.
pub(crate) struct Trace<H> {
    table: u32,
    entry: Option<u32>,
    headers: H,
}

impl<H: fmt::Display> fmt::Display for Trace<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry {
            Some(entry) => writeln!(f, "fib {} entry {entry}", self.table)?,
            None => writeln!(f, "fib {} no entry", self.table)?,
        }
        self.headers.fmt(f)
    }
}

/// Looks up groups.
pub(crate) struct MfibLookup<F> {
    pub table: MfibTable,
    pub interfaces: IfTable,
    pub family: PhantomData<F>,
}

impl<F: Ip> PacketNode for MfibLookup<F> {
    const NAME: &'static str = F::LOOKUP;
    type Next = Next<F>;
    type Error = Error;
    type Trace = Trace<F::Headers>;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<F>, Error> {
        let (source, group) = F::addresses(pkt).ok_or(Error::TooShort)?;
        // A feature may have chosen another.
        let chosen = pkt.meta().fib().map(|fib| fib.0);
        let table = chosen.unwrap_or_else(|| F::table(&self.interfaces, pkt.rx()));
        let found = self.table.find(table, source, group, cx.guard());
        cx.trace(pkt, || Trace { table, entry: found, headers: F::headers(pkt) });
        if F::is_membership(pkt) {
            // RFC 3376, 4.1.12: a query about a group is sent to the group. No error is sent about it.
            let meta = pkt.meta_mut();
            meta.flags = meta.flags.with(Flags::LINK_MULTICAST);
            return Ok(Next(2, PhantomData));
        }
        let on_link = F::stays_on_link(source, group);
        let aside = |id| F::UNICAST_KNOWS_LINKS && on_link && !self.table.entry(id, cx.guard()).local;
        match found {
            Some(entry) if !aside(entry) => {
                *pkt.scratch::<Mark>() = Mark { entry, done: 0, on_link: u32::from(on_link) };
                Ok(Next(1, PhantomData))
            }
            // RFC 5771, 4: groups of the link are for this router, too.
            _ if F::UNICAST_KNOWS_LINKS || is_link_group(F::FAMILY, group) => Ok(Next(2, PhantomData)),
            _ => Err(Error::NoRoute),
        }
    }
}
