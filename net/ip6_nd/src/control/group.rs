//! Groups this router listens to on each link, and the reports that say so. RFC 3810, the part of a listener.

use std::net::Ipv6Addr;
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_interface::SwIfIndex;
use shoal_wire::ip6_address::{ALL_MLD2_ROUTERS, ALL_NODES, ALL_ROUTERS, solicited_node};
use shoal_wire::mld::{HOP_LIMIT, MldHeader, MldVersion, ROUTER_ALERT, RecordType, ReportWriter};
use shoal_wire::{Icmp6Type, Ip6Prefix, IpProtocol};

use super::{Nd, anycast_of, of};
use crate::counters::Kind;
use crate::frame::{HEADERS, LONGEST, MessageRoute};

/// RFC 3810 9.1: a change is reported so often.
const ROBUSTNESS: u32 = 2;
/// RFC 3810 9.11: most time between two of these.
const UNSOLICITED: Duration = Duration::from_secs(1);
/// RFC 3810 9.12: how long a querier of version 1 is thought to be there.
const OLDER_QUERIER: Duration = Duration::from_secs(2 * 125 + 10);
/// Records of 20 bytes in one report, so that it fits the smallest MTU.
const MOST_RECORDS: usize = 56;

/// A group on an interface.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// Who listens: addresses that share a solicited-node group, and this router.
    users: u32,
    /// How often it must still be reported that we have joined; 0 and a due time: a query is to be answered.
    left: u32,
    pub(super) due: Option<Time>,
}

/// RFC 4291 2.8: the groups that an address makes a router join, those of the network's anycast address among them.
fn groups_of(own: Ip6Prefix) -> impl Iterator<Item = Ipv6Addr> {
    let mine = std::iter::once(own.addr()).chain(anycast_of(own)).map(solicited_node);
    [ALL_NODES, ALL_ROUTERS].into_iter().chain(mine)
}

impl Nd {
    /// Groups of an interface.
    pub fn groups(&self, interface: SwIfIndex) -> Vec<Ipv6Addr> {
        self.groups.borrow().range(of(interface)).map(|((_, group), _)| *group).collect()
    }

    pub(super) fn join_for(&self, interface: SwIfIndex, own: Ip6Prefix) {
        groups_of(own).for_each(|group| self.join(interface, group));
    }

    pub(super) fn leave_for(&self, interface: SwIfIndex, own: Ip6Prefix) {
        groups_of(own).for_each(|group| self.leave(interface, group));
    }

    /// One user more of a group. The first one has it reported.
    pub(super) fn join(&self, interface: SwIfIndex, group: Ipv6Addr) {
        let (up, now) = (self.is_up(interface), self.now());
        let mut groups = self.groups.borrow_mut();
        let new = || {
            // RFC 3810 section 6: the group of all nodes is never reported.
            let left = if group == ALL_NODES { 0 } else { ROBUSTNESS };
            Group { users: 0, left, due: (up && left > 0).then_some(now) }
        };
        groups.entry((interface, group)).or_insert_with(new).users += 1;
        drop(groups);
        self.ring();
    }

    /// The same without a report: who joins sends one.
    pub(super) fn join_quietly(&self, interface: SwIfIndex, group: Ipv6Addr) {
        let mut groups = self.groups.borrow_mut();
        groups.entry((interface, group)).or_insert(Group { users: 0, left: 0, due: None }).users += 1;
    }

    /// One user less; the last one has it reported.
    pub(super) fn leave(&self, interface: SwIfIndex, group: Ipv6Addr) {
        {
            let mut groups = self.groups.borrow_mut();
            let Some(old) = groups.get_mut(&(interface, group)) else { return };
            old.users = old.users.saturating_sub(1);
            if old.users > 0 {
                return;
            }
            groups.remove(&(interface, group));
        }
        if group != ALL_NODES && self.is_up(interface) {
            self.report(interface, &[group], RecordType::CHANGE_TO_INCLUDE);
        }
    }

    /// An interface came up: routers there do not know our groups.
    pub(super) fn announce_groups(&self, interface: SwIfIndex) {
        let (up, now) = (self.is_up(interface), self.now());
        for ((_, group), state) in self.groups.borrow_mut().range_mut(of(interface)) {
            if *group != ALL_NODES {
                state.left = ROBUSTNESS;
                state.due = up.then_some(now);
            }
        }
        self.ring();
    }

    /// A router asks. RFC 3810 6.2: the answer comes within the time it gives.
    pub(super) fn queried(
        &self,
        interface: SwIfIndex,
        version: MldVersion,
        asked: Option<Ipv6Addr>,
        max_response_ms: u32,
    ) {
        let now = self.now();
        if version == MldVersion::V1 {
            self.older_queriers.borrow_mut().insert(interface, now.after(OLDER_QUERIER));
        }
        for ((_, group), state) in self.groups.borrow_mut().range_mut(of(interface)) {
            if *group == ALL_NODES || asked.is_some_and(|only| only != *group) {
                continue;
            }
            let wait = Duration::from_millis(max_response_ms.into()).mul_f64(fastrand::f64());
            let due = now.after(wait);
            state.due = Some(state.due.map_or(due, |earlier| earlier.min(due)));
        }
        self.ring();
    }

    pub(super) fn tick_groups(&self, now: Time) {
        let mut due: Vec<(SwIfIndex, Ipv6Addr, u32)> = Vec::new();
        for ((interface, group), state) in self.groups.borrow_mut().iter_mut() {
            if state.due.is_some_and(|at| at <= now) {
                due.push((*interface, *group, state.left));
                state.left = state.left.saturating_sub(1);
                // Between half and the whole of the time, so that reports of many stations spread.
                let again = || now.after(UNSOLICITED.mul_f64(0.5 + fastrand::f64() / 2.0));
                state.due = (state.left > 0).then(again);
            }
        }
        for link in due.chunk_by(|a, b| a.0 == b.0) {
            let Some((interface, ..)) = link.first() else { continue };
            let those = |joined: bool| -> Vec<Ipv6Addr> {
                link.iter().filter(|(_, _, left)| (*left > 0) == joined).map(|(_, group, _)| *group).collect()
            };
            self.report(*interface, &those(true), RecordType::CHANGE_TO_EXCLUDE);
            self.report(*interface, &those(false), RecordType::MODE_IS_EXCLUDE);
        }
    }

    /// RFC 3810 8.2.1: whether a querier of version 1 was heard of late.
    fn speaks_version_1(&self, interface: SwIfIndex) -> bool {
        self.older_queriers.borrow().get(&interface).is_some_and(|until| self.now() < *until)
    }

    /// RFC 2710 4: a report to each group, or "done" to all routers of the link.
    fn report_version_1(
        &self,
        interface: SwIfIndex,
        way: MessageRoute,
        groups: &[Ipv6Addr],
        kind: RecordType,
    ) {
        let done = kind == RecordType::CHANGE_TO_INCLUDE;
        let message =
            if done { Icmp6Type::MULTICAST_LISTENER_DONE } else { Icmp6Type::MULTICAST_LISTENER_REPORT };
        for group in groups {
            let dst = if done { ALL_ROUTERS } else { *group };
            let way = MessageRoute::to_group(way.src_mac, way.src, dst);
            let mut out = [0; HEADERS + ROUTER_ALERT.len() + MldHeader::LEN];
            let Some(place) = out.get_mut(HEADERS + ROUTER_ALERT.len()..) else { return };
            let Some(len) = MldHeader::new(message, *group).write(place, way.src, dst) else { return };
            self.send_report(interface, &way, &mut out, len);
        }
    }

    /// Writes the headers in front of a message and sends it.
    fn send_report(&self, interface: SwIfIndex, way: &MessageRoute, out: &mut [u8], len: usize) {
        let behind = HEADERS + ROUTER_ALERT.len();
        if let Some(alert) = out.get_mut(HEADERS..behind) {
            alert.copy_from_slice(&ROUTER_ALERT);
        }
        let written = way.write(out, IpProtocol(0), HOP_LIMIT, ROUTER_ALERT.len() + len);
        if let (Some(()), Some(bytes)) = (written, out.get(..behind + len))
            && self.send(interface, bytes)
        {
            self.counters.count_tx(Kind::ListenerReport, 0, interface);
        }
    }

    /// Reports groups. RFC 3810 5.2.13, RFC 3590: from the unspecified address as long as there is no link-local
    /// address.
    pub(super) fn report(&self, interface: SwIfIndex, groups: &[Ipv6Addr], kind: RecordType) {
        let Ok(data) = self.interfaces.data(interface) else { return };
        let src = self.links.now(interface).and_then(|l| l.link_local()).unwrap_or(Ipv6Addr::UNSPECIFIED);
        let way = MessageRoute::to_group(data.mac(), src, ALL_MLD2_ROUTERS);
        if self.speaks_version_1(interface) {
            self.report_version_1(interface, way, groups, kind);
            return;
        }
        for some in groups.chunks(MOST_RECORDS) {
            let mut out = [0; LONGEST];
            let behind = HEADERS + ROUTER_ALERT.len();
            let Some(place) = out.get_mut(behind..) else { return };
            let report = ReportWriter::new(place);
            let report = some.iter().fold(report, |report, group| report.record(kind, *group, &[]));
            let Some(len) = report.finish(src, ALL_MLD2_ROUTERS) else { continue };
            self.send_report(interface, &way, &mut out, len);
        }
    }
}
