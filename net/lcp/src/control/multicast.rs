//! Multicast routes of Linux, taken over: what a routing daemon (PIM) beside the router decides.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use std::collections::BTreeMap;
use std::net::IpAddr;

use shoal_fib::{Family, Fib, FibIndex};
use shoal_interface::{EventOrigin, HostMulticastRoute};
use shoal_mfib::{Change, EntryFlags, ItfFlags, Member, Mfib, Prefix, Source};

use super::netlink::{Difference, Subject};
use super::*;

/// The kernel's table that daemons use unless they ask for another.
const DEFAULT: u32 = 253;

/// Table, source and group.
pub(super) type MulticastKey = (u32, IpAddr, IpAddr);

/// An entry of the multicast table, with its interfaces.
type MulticastEntry = (FibIndex, Prefix, Vec<Member>);

/// Multicast routes of one namespace.
#[derive(Default)]
pub(super) struct MulticastRoutes {
    known: BTreeMap<MulticastKey, HostMulticastRoute>,
    /// What the multicast table has been given: of which entry which interfaces.
    installed: BTreeMap<MulticastKey, MulticastEntry>,
    /// Those that have been named since the kernel began to tell all.
    seen: Option<BTreeSet<MulticastKey>>,
}

impl MulticastRoutes {
    /// The kernel begins to tell all that there is.
    pub fn begin(&mut self) {
        self.seen = Some(BTreeSet::new());
    }

    /// Those that it has not named.
    pub fn unseen(&mut self) -> Vec<MulticastKey> {
        let Some(seen) = self.seen.take() else { return Vec::new() };
        self.known.keys().filter(|key| !seen.contains(key)).copied().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// How many of them packets find.
    pub fn installed(&self) -> usize {
        self.installed.len()
    }
}

/// The packets that a route is for; nothing if none that this router forwards.
fn prefix(route: &HostMulticastRoute) -> Option<Prefix> {
    let whole = Family::of(route.group).max_len();
    let prefix = if route.source.is_unspecified() {
        Prefix::group(route.group, whole)
    } else {
        Prefix::source_group(route.source, route.group)
    };
    prefix.ok()
}

fn take_members(mfib: &Mfib, (table, prefix): (FibIndex, Prefix), gone: &[Member]) {
    if !gone.is_empty()
        && let Err(e) = mfib.take_members(table, prefix, Source::Linux, gone)
    {
        tracing::debug!("linux-cp: multicast route {prefix} of Linux: {e}");
    }
}

impl Lcp {
    pub(super) fn hear_multicast(
        &self,
        netns: &Option<String>,
        told: EventOrigin,
        route: HostMulticastRoute,
        present: bool,
    ) {
        let key = (route.table, route.source, route.group);
        self.with(netns, |mirror| {
            let routes = &mut mirror.multicast;
            if !present {
                routes.known.remove(&key);
                return;
            }
            routes.seen.iter_mut().for_each(|seen| seen.extend([key]));
            if routes.known.insert(key, route).is_none() && mirror.watch.is_check(told) {
                mirror.watch.note(Subject::MulticastRoute(Box::new(key)), Difference::Missing);
            }
        });
        self.decide_multicast(netns, key);
    }

    /// The kernel has told all that there is.
    pub(super) fn sweep_multicast(&self, netns: &Option<String>) {
        for key in self.with(netns, |mirror| mirror.multicast.unseen()).unwrap_or_default() {
            self.with(netns, |mirror| {
                mirror.multicast.known.remove(&key);
                mirror.watch.note(Subject::MulticastRoute(Box::new(key)), Difference::Gone);
            });
            self.decide_multicast(netns, key);
        }
    }

    /// Pairs have changed, or none is left.
    pub(super) fn decide_all_multicast(&self, netns: &Option<String>, forget: bool) {
        let keys: BTreeSet<MulticastKey> = self
            .with(netns, |mirror| {
                let routes = &mut mirror.multicast;
                let keys = routes.known.keys().chain(routes.installed.keys()).copied().collect();
                if forget {
                    routes.known.clear();
                }
                keys
            })
            .unwrap_or_default();
        for key in keys {
            self.decide_multicast(netns, key);
        }
    }

    /// The interfaces of a route, once packets can be taken from an interface of this router.
    fn members(&self, netns: &Option<String>, route: &HostMulticastRoute) -> Option<Vec<(Member, ItfFlags)>> {
        let input = self.phy_of(netns, route.input?)?;
        let outputs = route.outputs.iter().filter_map(|output| self.phy_of(netns, *output));
        let outputs: BTreeSet<SwIfIndex> = outputs.filter(|output| *output != input).collect();
        let forward = outputs.into_iter().map(|output| (Member::Interface(output), ItfFlags::FORWARD));
        Some(std::iter::once((Member::Interface(input), ItfFlags::ACCEPT)).chain(forward).collect())
    }

    fn decide_multicast(&self, netns: &Option<String>, key: MulticastKey) {
        let Some(control) = self.control.upgrade() else { return };
        let (Ok(mfib), Ok(fib)) = (control.get::<Mfib>(), control.get::<Fib>()) else { return };
        let route = self.with(netns, |mirror| mirror.multicast.known.get(&key).cloned()).flatten();
        let wanted = route.and_then(|route| {
            let prefix = prefix(&route)?;
            let id = match route.table {
                DEFAULT => self.main_tables(netns).of(prefix.family()),
                table => self.table_in(netns, prefix.family(), table),
            };
            let table = fib.index_of(prefix.family(), id).ok()?;
            Some((table, prefix, self.members(netns, &route)?))
        });
        let before = self.with(netns, |mirror| mirror.multicast.installed.remove(&key)).flatten();
        let (before, elsewhere) = match (before, &wanted) {
            (Some(before), Some((table, ..))) if before.0 != *table => (None, Some(before)),
            (before, _) => (before, None),
        };
        if let Some(elsewhere) = elsewhere {
            self.withdraw_multicast(netns, (&mfib, &fib), elsewhere);
        }
        if let Some((table, prefix, members)) = wanted {
            let names = members.iter().map(|(member, _)| *member).collect();
            let change = Change { flags: EntryFlags::default(), members };
            match mfib.set(table, prefix, Source::Linux, &change) {
                Ok(()) => {
                    self.with(netns, |mirror| mirror.multicast.installed.insert(key, (table, prefix, names)));
                    // The table stays as long as its entries.
                    if before.is_none()
                        && let Ok(id) = fib.id_of(prefix.family(), table)
                        && let Err(e) = self.hold(netns, &fib, (prefix.family(), id))
                    {
                        tracing::debug!("linux-cp: table {id}: {e}");
                    }
                }
                Err(e) => tracing::warn!("linux-cp: multicast route {prefix} of Linux not taken over: {e}"),
            }
        }
        let now = self.with(netns, |mirror| mirror.multicast.installed.get(&key).cloned()).flatten();
        match (before, now) {
            (Some(before), None) => self.withdraw_multicast(netns, (&mfib, &fib), before),
            (Some((table, prefix, mut gone)), Some((.., names))) => {
                gone.retain(|member| !names.contains(member));
                take_members(&mfib, (table, prefix), &gone);
            }
            (None, Some((table, prefix, _))) => self.mark(&mfib, (table, prefix), true),
            (None, None) => {}
        }
    }

    /// Takes an entry out of the multicast table.
    fn withdraw_multicast(
        &self,
        netns: &Option<String>,
        (mfib, fib): (&Mfib, &Fib),
        (table, prefix, members): MulticastEntry,
    ) {
        self.mark(mfib, (table, prefix), false);
        take_members(mfib, (table, prefix), &members);
        if let Ok(id) = fib.id_of(prefix.family(), table) {
            self.let_go(netns, fib, (prefix.family(), id));
        }
    }

    /// Packets of an entry go to the kernel now and then, or no longer.
    fn mark(&self, mfib: &Mfib, (table, prefix): (FibIndex, Prefix), is_route: bool) {
        let [ip4, ip6] = &self.groups;
        let groups = if prefix.family() == Family::Ip4 { ip4 } else { ip6 };
        if let Some(entry) = mfib.number(table, prefix) {
            groups.mark(entry, is_route);
        }
    }
}
