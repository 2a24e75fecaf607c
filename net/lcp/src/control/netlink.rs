//! How well Linux is followed: its messages, what listings found that was not known, and which routes wait.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use std::collections::VecDeque;
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_interface::{EventOrigin, HostEvent, HostRoute, HostWay, ListingCause};

use super::routes::Key;
use super::*;

/// Between two audits, unless the start-up file says otherwise.
pub(super) const AUDIT_INTERVAL: Duration = Duration::from_mins(10);

/// Differences that are kept, the latest ones.
const KEPT: usize = 64;

/// Announcements by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Announced {
    /// Of interfaces.
    pub links: u64,
    /// Of addresses.
    pub addresses: u64,
    /// Of neighbours.
    pub neighbors: u64,
    /// Of next-hop objects and groups.
    pub next_hops: u64,
    /// Of routes.
    pub routes: u64,
    /// Of multicast routes.
    pub multicast_routes: u64,
}

/// A listing of all that there is.
#[derive(Clone, Copy, Debug)]
pub struct ListingInfo {
    /// Why it was asked for.
    pub cause: ListingCause,
    /// When it began.
    pub began: Time,
    /// How long it took; none of one that is under way.
    pub took: Option<Duration>,
    /// Things in it.
    pub entries: u64,
}

/// What the kernel lists and announces, by what it is told apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// An interface, by the kernel's number.
    Link(u32),
    /// A route: its table in Linux, its prefix, its metric; all routes of the prefix without.
    Route(u32, (IpAddr, u8), Option<u32>),
    /// An address of an interface, by the kernel's number.
    Address(u32, (IpAddr, u8)),
    /// A neighbour of an interface, by the kernel's number.
    Neighbor(u32, IpAddr),
    /// A next-hop object or group.
    NextHop(u32),
    /// A multicast route: its table in Linux, source and group.
    MulticastRoute(Box<(u32, IpAddr, IpAddr)>),
}

/// How what was known differed from what Linux listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// It was not known.
    Missing,
    /// Something else was known.
    Other,
    /// It was known and is not there.
    Gone,
}

/// Something that was not as it was known.
#[derive(Clone, Debug)]
pub struct Drift {
    /// When the listing began that found it; it was mended then.
    pub found: Time,
    /// By which listing.
    pub cause: ListingCause,
    /// What.
    pub subject: Subject,
    /// In which way.
    pub difference: Difference,
}

/// What is remembered of one namespace.
#[derive(Default)]
pub(super) struct Watch {
    announced: Announced,
    listings: BTreeMap<ListingCause, u64>,
    last: Option<ListingInfo>,
    drift: VecDeque<Drift>,
    drifted: u64,
}

impl Watch {
    pub fn begin(&mut self, cause: ListingCause, now: Time) {
        *self.listings.entry(cause).or_default() += 1;
        self.last = Some(ListingInfo { cause, began: now, took: None, entries: 0 });
    }

    pub fn end(&mut self, now: Time) {
        if let Some(last) = &mut self.last {
            last.took.get_or_insert_with(|| now.since(last.began));
        }
    }

    /// Counts the messages, but those about routes.
    pub fn count(&mut self, told: EventOrigin, event: &HostEvent) {
        if told == EventOrigin::Listed {
            if let Some(last) = &mut self.last
                && !matches!(event, HostEvent::Begin(_) | HostEvent::End)
            {
                last.entries += 1;
            }
            return;
        }
        let all = &mut self.announced;
        match event {
            HostEvent::Begin(_) | HostEvent::End | HostEvent::Route { .. } => {}
            HostEvent::Link(_) | HostEvent::Gone { .. } => all.links += 1,
            HostEvent::Address { .. } => all.addresses += 1,
            HostEvent::Neighbor { .. } => all.neighbors += 1,
            HostEvent::NextHop { .. } => all.next_hops += 1,
            HostEvent::MulticastRoute { .. } => all.multicast_routes += 1,
        }
    }

    /// The same for a route.
    pub fn count_route(&mut self, told: EventOrigin) {
        match (told, &mut self.last) {
            (EventOrigin::Announced, _) => self.announced.routes += 1,
            (EventOrigin::Listed, Some(last)) => last.entries += 1,
            (EventOrigin::Listed, None) => {}
        }
    }

    /// The listing under way that must find nothing new: after others, news is what they are for.
    fn checks(&self) -> Option<ListingCause> {
        let last = self.last.filter(|last| last.took.is_none())?;
        matches!(last.cause, ListingCause::Audit | ListingCause::Lost).then_some(last.cause)
    }

    /// Whether a difference in what is told counts.
    pub fn is_check(&self, told: EventOrigin) -> bool {
        told == EventOrigin::Listed && self.checks().is_some()
    }

    /// The listing under way, if it must find nothing new.
    pub fn check(&self) -> Option<Check> {
        Some(Check { cause: self.checks()?, began: self.last?.began })
    }

    /// A listing that must find nothing new has found something.
    pub fn note(&mut self, subject: Subject, difference: Difference) {
        self.note_by(self.check(), subject, difference);
    }

    /// The same of one that may be over.
    pub fn note_by(&mut self, check: Option<Check>, subject: Subject, difference: Difference) {
        let Some(Check { cause, began }) = check else { return };
        self.drifted += 1;
        if self.drift.len() == KEPT {
            self.drift.pop_front();
        }
        self.drift.push_back(Drift { found: began, cause, subject, difference });
    }
}

/// A listing that must find nothing new.
#[derive(Clone, Copy)]
pub(super) struct Check {
    cause: ListingCause,
    began: Time,
}

/// Whether two routes are the same, in whatever order their next hops stand. Of one that names its next hop by number the
/// kernel writes out what that means now.
pub(super) fn same(a: &HostRoute, b: &HostRoute) -> bool {
    let plain =
        |route: &HostRoute| (route.table, route.prefix, route.metric, route.protocol, route.next_hop_id);
    if a.next_hop_id.is_some() {
        return plain(a) == plain(b);
    }
    let (HostWay::Via(of_a), HostWay::Via(of_b)) = (&a.way, &b.way) else { return a == b };
    let sorted = |paths: &[shoal_interface::HostPath]| {
        let mut all: Vec<_> = paths.iter().map(|p| (p.host_index, p.next_hop, p.weight)).collect();
        all.sort_unstable();
        all
    };
    plain(a) == plain(b) && sorted(of_a) == sorted(of_b)
}

/// How one namespace is followed.
#[derive(Clone, Debug)]
pub struct FollowInfo {
    /// The namespace, none for the router's own.
    pub netns: Option<String>,
    /// This router's tables for Linux's main table.
    pub main: TablePair,
    /// What was announced.
    pub announced: Announced,
    /// Prefixes that are known.
    pub prefixes: usize,
    /// Those that the forwarding table has been given.
    pub installed: usize,
    /// Those that wait.
    pub pending: usize,
    /// Multicast routes that are known.
    pub multicast_routes: usize,
    /// Those that packets find.
    pub multicast_installed: usize,
    /// Next-hop objects and groups that are known.
    pub next_hops: usize,
    /// Neighbours that are known.
    pub neighbors: usize,
    /// Addresses that are known.
    pub addresses: usize,
    /// VRFs.
    pub vrfs: usize,
    /// VLANs that have a sub-interface here.
    pub vlans: usize,
    /// How often a VRF or VLAN could not be followed.
    pub refusals: u64,
    /// Listings so far, by cause.
    pub listings: BTreeMap<ListingCause, u64>,
    /// The last one.
    pub last: Option<ListingInfo>,
    /// Differences that listings have found, which must find none.
    pub drifted: u64,
}

/// A route that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRoute {
    /// The namespace, none for the router's own.
    pub netns: Option<String>,
    /// Its table in Linux, and its prefix.
    pub key: (u32, (IpAddr, u8)),
    /// Its metric.
    pub metric: u32,
    /// What it waits for.
    pub waits_for: String,
}

impl Lcp {
    /// The time now.
    pub fn now(&self) -> Time {
        let processes = self.control.upgrade().and_then(|control| control.processes().ok());
        processes.map_or(Time::default(), |processes| processes.clock().now())
    }

    /// How each namespace with images is followed.
    pub fn followed(&self) -> Vec<FollowInfo> {
        let info = |(netns, mirror): (&Option<String>, &mirror::Mirror)| FollowInfo {
            netns: netns.clone(),
            main: mirror.main,
            announced: mirror.watch.announced,
            prefixes: mirror.routes.prefixes(),
            installed: mirror.routes.installed(),
            pending: mirror.pending.len(),
            multicast_routes: mirror.multicast.len(),
            multicast_installed: mirror.multicast.installed(),
            next_hops: mirror.next_hops.len(),
            neighbors: mirror.neighbors.len(),
            addresses: mirror.addresses.len(),
            vrfs: mirror.vrf_count(),
            vlans: self.vlans_in(netns),
            refusals: mirror.refusals,
            listings: mirror.watch.listings.clone(),
            last: mirror.watch.last,
            drifted: mirror.watch.drifted,
        };
        self.mirrors.borrow().iter().map(info).collect()
    }

    /// The latest differences that listings have found, with their namespaces.
    pub fn drift(&self) -> Vec<(Option<String>, Drift)> {
        let mirrors = self.mirrors.borrow();
        let all =
            mirrors.iter().flat_map(|(netns, m)| m.watch.drift.iter().map(|d| (netns.clone(), d.clone())));
        all.collect()
    }

    /// The kernel's name of an interface.
    pub fn host_name(&self, netns: &Option<String>, host_index: u32) -> String {
        let known = self.with(netns, |mirror| mirror.links.get(&host_index).map(|link| link.name.clone()));
        known
            .flatten()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| format!("interface {host_index} of Linux"))
    }

    /// The first route that waits behind this one, in order of namespace, table and prefix.
    pub fn next_pending(&self, after: Option<&(Option<String>, Key)>) -> Option<PendingRoute> {
        use std::ops::Bound::{Excluded, Unbounded};
        let (netns, key) = {
            let mirrors = self.mirrors.borrow();
            let in_same = after.and_then(|(netns, key)| {
                let more = mirrors.get(netns)?.pending.range((Excluded(*key), Unbounded)).next()?;
                Some((netns.clone(), *more))
            });
            let from = after.map_or(Unbounded, |(netns, _)| Excluded(netns.clone()));
            let first = |(netns, mirror): (&Option<String>, &mirror::Mirror)| {
                Some((netns.clone(), *mirror.pending.first()?))
            };
            in_same.or_else(|| mirrors.range((from, Unbounded)).find_map(first))?
        };
        let best = self.with(&netns, |mirror| {
            let route = mirror.routes.get(&key)?.first()?;
            Some((route.metric, mirror.lacks(route)))
        });
        let (metric, lacks) = best.flatten()?;
        let waits_for = match lacks {
            MissingPart::Images(all) => {
                let names: Vec<String> = all.into_iter().map(|i| self.host_name(&netns, i)).collect();
                format!("an image of this router: {} is none", names.join(", "))
            }
            MissingPart::OtherTable(vrf) => {
                format!("another table: {} is the VRF that it is in itself", self.host_name(&netns, vrf))
            }
            MissingPart::NextHop(id) => format!("next hop {id}, which Linux has not named"),
            MissingPart::Plain => "a next hop without encapsulation that is up".into(),
            MissingPart::Nothing => "the forwarding table, which has refused it".into(),
        };
        Some(PendingRoute { netns, key, metric, waits_for })
    }

    /// Between two audits; zero if there are none.
    pub fn audit_interval(&self) -> Duration {
        self.audit_interval.get()
    }

    /// Sets it, before the router starts.
    pub(crate) fn set_audit_interval(&self, interval: Duration) {
        self.audit_interval.set(interval);
    }

    /// Audits again and again.
    pub(crate) fn audit_regularly(self: &Rc<Self>) {
        let Some(processes) = self.control.upgrade().and_then(|control| control.processes().ok()) else {
            return;
        };
        let (lcp, interval) = (Rc::downgrade(self), self.audit_interval());
        if interval.is_zero() {
            return;
        }
        let sleeper = Rc::clone(&processes);
        processes.spawn_unlisted(async move {
            loop {
                sleeper.sleep(interval).await;
                let Some(lcp) = lcp.upgrade() else { return };
                lcp.audit();
            }
        });
    }

    /// Has Linux list all that there is, in each namespace that is followed: what differs is mended, counted and kept for
    /// [`Lcp::drift`].
    pub fn audit(&self) {
        self.mirrors.borrow().values().filter_map(|mirror| mirror.listening.as_ref()).for_each(|l| l.audit());
    }
}

/// What a route lacks.
pub(super) enum MissingPart {
    /// Images: the kernel's numbers of the interfaces it leaves by.
    Images(BTreeSet<u32>),
    /// A table that is not the one of the VRF that it leads into.
    OtherTable(u32),
    /// The next hop that it names by number.
    NextHop(u32),
    /// A next hop that this router can use.
    Plain,
    /// Nothing that Linux could name.
    Nothing,
}

impl mirror::Mirror {
    fn lacks(&self, route: &HostRoute) -> MissingPart {
        if let Some(id) = route.next_hop_id.filter(|id| !self.next_hops.contains(*id)) {
            return MissingPart::NextHop(id);
        }
        match &*self.way(route) {
            HostWay::Via(paths) if paths.is_empty() => MissingPart::Plain,
            HostWay::Via(paths) => {
                let vrf = paths.iter().find(|path| self.vrf_table(path.host_index) == Some(route.table));
                match vrf {
                    Some(path) => MissingPart::OtherTable(path.host_index),
                    None => MissingPart::Images(paths.iter().map(|path| path.host_index).collect()),
                }
            }
            _ => MissingPart::Nothing,
        }
    }
}
