//! The part of a router: who listens to what on a link, as VPP's router has it. RFC 3376, 6, without what listeners do not
//! want to hear (sources that are excluded) and without an election of the querier.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use shoal_fib::FibIndex;
use shoal_graph::clock::Time;
use shoal_interface::SwIfIndex;
use shoal_mfib::{Change, EntryFlags, ItfFlags, Member, MfibError, Prefix, Source};
use shoal_wire::igmp::{ALL_SYSTEMS, RecordType, write_query};

use crate::control::{MOST_GROUPS, MOST_SOURCES, ROBUSTNESS, check_group};
use crate::{Igmp, IgmpError};

/// RFC 3376, 8.3: listeners answer within so many tenths of a second.
const ANSWER: u8 = 100;

/// Whether a source is listened to from now on, or no longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filter {
    /// It is.
    Include,
    /// It is not.
    Exclude,
}

/// A change of what is listened to on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The link.
    pub interface: SwIfIndex,
    /// What has changed.
    pub filter: Filter,
    /// The source; 0.0.0.0 for any.
    pub source: Ipv4Addr,
    /// The group.
    pub group: Ipv4Addr,
}

/// How long things take, in seconds, with VPP's values at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// Between general queries.
    pub query: u32,
    /// For how long a report holds.
    pub src: u32,
    /// For how long what a listener leaves is still wanted, unless another one says so.
    pub leave: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Timers { query: 60, src: 180, leave: 60 }
    }
}

/// Sources of a group, and until when they are wanted; 0.0.0.0 is any.
type Sources = BTreeMap<Ipv4Addr, Time>;

/// A link with listeners.
pub(crate) struct Link {
    groups: BTreeMap<Ipv4Addr, Sources>,
    query_due: Time,
}

/// All links on which the router speaks as a router.
pub(crate) type Links = BTreeMap<SwIfIndex, Link>;

/// A group with listeners, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listeners {
    /// The group.
    pub group: Ipv4Addr,
    /// Each source, and for how long it is still wanted.
    pub sources: Vec<(Ipv4Addr, Duration)>,
}

fn after(now: Time, seconds: u32) -> Time {
    now.after(Duration::from_secs(seconds.into()))
}

impl Igmp {
    /// Whether the router speaks as a router on an interface.
    pub fn is_router(&self, interface: SwIfIndex) -> bool {
        self.routers.borrow().contains_key(&interface)
    }

    /// Begins to speak as a router on an interface: asks who listens, and forwards to those who do.
    ///
    /// # Errors
    /// There is no such interface, or IGMP runs there already.
    pub fn enable_router(&self, interface: SwIfIndex) -> Result<(), IgmpError> {
        let name = self.interfaces.name(interface)?;
        if self.is_router(interface) {
            return Err(IgmpError::Enabled(name));
        }
        if self.all.borrow().contains_key(&interface) {
            return Err(IgmpError::OtherMode(name, "host"));
        }
        let query_due = after(self.now(), self.timers.get().query);
        self.routers.borrow_mut().insert(interface, Link { groups: BTreeMap::new(), query_due });
        self.on_routers.set(interface, true);
        self.ring();
        Ok(())
    }

    /// Ends it, if it does.
    pub(crate) fn end_router(&self, interface: SwIfIndex) {
        if self.is_router(interface) {
            self.on_routers.set(interface, false);
            self.forget_groups(interface);
            self.routers.borrow_mut().remove(&interface);
            self.leave_device(interface);
        }
    }

    /// Forgets who listens on a link.
    pub(crate) fn forget_groups(&self, interface: SwIfIndex) {
        let groups = match self.routers.borrow_mut().get_mut(&interface) {
            Some(link) => std::mem::take(&mut link.groups),
            None => return,
        };
        for group in groups.into_keys() {
            self.forward(interface, group, Filter::Exclude);
        }
        self.merge(interface);
    }

    /// Who listens on a link, by group.
    pub fn listeners(&self, interface: SwIfIndex) -> Vec<Listeners> {
        let (routers, now) = (self.routers.borrow(), self.now());
        let Some(link) = routers.get(&interface) else { return Vec::new() };
        let sources = |sources: &Sources| sources.iter().map(|(s, until)| (*s, until.since(now))).collect();
        link.groups.iter().map(|(group, all)| Listeners { group: *group, sources: sources(all) }).collect()
    }

    /// The links on which the router speaks as a router.
    pub fn router_interfaces(&self) -> Vec<SwIfIndex> {
        self.routers.borrow().keys().copied().collect()
    }

    /// How long things take.
    pub fn timers(&self) -> Timers {
        self.timers.get()
    }

    /// How long things take from now on. Links ask again within the new interval.
    pub fn set_timers(&self, timers: Timers) {
        self.timers.set(timers);
        let due = after(self.now(), timers.query);
        for link in self.routers.borrow_mut().values_mut() {
            link.query_due = link.query_due.min(due);
        }
        self.ring();
    }

    /// Calls `observer` when what is listened to changes.
    pub fn observe(&self, observer: impl Fn(Event) + 'static) {
        *self.observer.borrow_mut() = Some(Box::new(observer));
    }

    fn tell(&self, interface: SwIfIndex, filter: Filter, source: Ipv4Addr, group: Ipv4Addr) {
        if let Some(observer) = &*self.observer.borrow() {
            observer(Event { interface, filter, source, group });
        }
    }

    /// A listener's report of a group.
    pub(crate) fn said(
        &self,
        interface: SwIfIndex,
        kind: RecordType,
        group: Ipv4Addr,
        sources: &BTreeSet<Ipv4Addr>,
    ) {
        if !self.is_router(interface) || check_group(group).is_err() {
            return;
        }
        let any = BTreeSet::from([Ipv4Addr::UNSPECIFIED]);
        match kind {
            // To no sources at all: it leaves.
            RecordType::MODE_IS_INCLUDE | RecordType::CHANGE_TO_INCLUDE | RecordType::ALLOW_NEW_SOURCES
                if sources.is_empty() =>
            {
                self.block(interface, group, &any);
            }
            RecordType::MODE_IS_INCLUDE | RecordType::CHANGE_TO_INCLUDE | RecordType::ALLOW_NEW_SOURCES => {
                self.want(interface, group, sources);
            }
            // RFC 4604, 2.2.1: groups with sources have no listener to any source.
            RecordType::MODE_IS_EXCLUDE | RecordType::CHANGE_TO_EXCLUDE
                if sources.is_empty() && !self.ranges.borrow().is_ssm(group) =>
            {
                self.want(interface, group, &any);
            }
            RecordType::BLOCK_OLD_SOURCES => {
                self.block(interface, group, if sources.is_empty() { &any } else { sources });
            }
            // As VPP: sources that are excluded are nothing this router keeps.
            _ => {}
        }
    }

    fn want(&self, interface: SwIfIndex, group: Ipv4Addr, sources: &BTreeSet<Ipv4Addr>) {
        let until = after(self.now(), self.timers.get().src);
        let (mut new, mut first) = (Vec::new(), false);
        if let Some(link) = self.routers.borrow_mut().get_mut(&interface) {
            let known = link.groups.len();
            let wanted = match link.groups.entry(group) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) if known < MOST_GROUPS => {
                    first = true;
                    entry.insert(Sources::new())
                }
                std::collections::btree_map::Entry::Vacant(_) => return,
            };
            for source in sources {
                if wanted.len() >= MOST_SOURCES && !wanted.contains_key(source) {
                    continue;
                }
                if wanted.insert(*source, until).is_none() {
                    new.push(*source);
                }
            }
        }
        if first {
            self.forward(interface, group, Filter::Include);
        }
        for source in &new {
            self.tell(interface, Filter::Include, *source, group);
        }
        self.merge(interface);
        self.ring();
    }

    /// A listener leaves: others are asked, and have some time to say that they stay.
    fn block(&self, interface: SwIfIndex, group: Ipv4Addr, sources: &BTreeSet<Ipv4Addr>) {
        let until = after(self.now(), self.timers.get().leave);
        {
            let mut routers = self.routers.borrow_mut();
            let Some(wanted) = routers.get_mut(&interface).and_then(|link| link.groups.get_mut(&group))
            else {
                return;
            };
            for source in sources {
                if let Some(due) = wanted.get_mut(source) {
                    *due = until;
                }
            }
        }
        let asked: Vec<Ipv4Addr> = sources.iter().copied().filter(|s| !s.is_unspecified()).collect();
        self.query(interface, Some(group), &asked);
        self.ring();
    }

    /// Asks who listens.
    fn query(&self, interface: SwIfIndex, group: Option<Ipv4Addr>, sources: &[Ipv4Addr]) {
        let mut message = [0; 12 + 4 * MOST_SOURCES];
        let interval = u8::try_from(self.timers.get().query).unwrap_or(u8::MAX);
        let written = write_query(&mut message, (group, sources), (ANSWER, ROBUSTNESS as u8, interval));
        if let Some(bytes) = written.and_then(|len| message.get(..len)) {
            self.send(interface, group.unwrap_or(ALL_SYSTEMS), bytes);
        }
    }

    /// The group's multicast route forwards to the link, or no longer.
    fn forward(&self, interface: SwIfIndex, group: Ipv4Addr, filter: Filter) {
        if let Err(e) = self.try_forward(interface, group, filter) {
            tracing::warn!(sw_if_index = interface.0, %group, "the multicast route stays as it is: {e}");
        }
    }

    fn try_forward(&self, interface: SwIfIndex, group: Ipv4Addr, filter: Filter) -> Result<(), IgmpError> {
        let prefix = Prefix::group(IpAddr::V4(group), 32)?;
        let members = vec![(Member::Interface(interface), ItfFlags::FORWARD)];
        let change = Change { flags: EntryFlags::default(), members };
        let table = FibIndex(self.interfaces.data(interface)?.fib_ip4);
        match filter {
            Filter::Include => self.mfib.add(table, prefix, Source::Listener, &change)?,
            Filter::Exclude => match self.mfib.remove(table, prefix, Source::Listener, &change) {
                // The interface has moved to another table meanwhile.
                Ok(()) | Err(MfibError::NoEntry { .. } | MfibError::NoPath { .. }) => {}
                Err(e) => return Err(e.into()),
            },
        }
        Ok(())
    }

    /// When something of links with listeners is due.
    pub(crate) fn router_deadline(&self) -> Option<Time> {
        let due = |link: &Link| {
            link.groups.values().flat_map(Sources::values).copied().chain([link.query_due]).min()
        };
        self.routers.borrow().values().filter_map(due).min()
    }

    /// Does what is due.
    pub(crate) fn tick_routers(&self, now: Time) {
        let (mut ask, mut gone, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        let interval = self.timers.get().query;
        for (interface, link) in self.routers.borrow_mut().iter_mut() {
            if link.query_due <= now {
                link.query_due = after(now, interval.max(1));
                ask.push(*interface);
            }
            link.groups.retain(|group, sources| {
                sources.retain(|source, until| {
                    let stays = *until > now;
                    if !stays {
                        gone.push((*interface, *source, *group));
                    }
                    stays
                });
                if sources.is_empty() {
                    ended.push((*interface, *group));
                }
                !sources.is_empty()
            });
        }
        for (interface, group) in ended {
            self.forward(interface, group, Filter::Exclude);
        }
        let mut links = BTreeSet::new();
        for (interface, source, group) in gone {
            self.tell(interface, Filter::Exclude, source, group);
            links.insert(interface);
        }
        for interface in links {
            self.merge(interface);
        }
        for interface in ask {
            self.query(interface, None, &[]);
        }
    }

    /// Whether a source of a group is wanted on a link.
    pub(crate) fn wanted_on(&self, interface: SwIfIndex) -> Vec<(Ipv4Addr, Ipv4Addr)> {
        let routers = self.routers.borrow();
        let Some(link) = routers.get(&interface) else { return Vec::new() };
        link.groups.iter().flat_map(|(group, all)| all.keys().map(move |source| (*group, *source))).collect()
    }
}
