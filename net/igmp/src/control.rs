//! The control plane: groups, timers, reports.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Bound;
use std::rc::Rc;
use std::time::Duration;

use shoal_fib::FibIndex;
use shoal_graph::Graph;
use shoal_graph::clock::Time;
use shoal_graph::process::Sender;
use shoal_interface::{IfFlags, Interfaces, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_mfib::{Change, EntryFlags, ItfFlags, Member, Mfib, MfibError, Prefix, Source};
use shoal_module::{Control, InitError};
use shoal_wire::igmp::{ALL_ROUTERS, ALL_V3_ROUTERS, IgmpVersion, RecordType, ReportWriter, old_message};

use crate::IgmpError;
use crate::group::{Group, Interface};
use crate::node::{Fact, Routers, wanted};
use crate::proxy::Devices;
use crate::ranges::Ranges;
use crate::router::{self, Event};
use crate::send::{HEADERS, LONGEST};

/// RFC 3376, 8.1: a change is reported so often.
pub(crate) const ROBUSTNESS: u32 = 2;
/// RFC 3376, 8.11: most time between two of these.
const UNSOLICITED: Duration = Duration::from_secs(1);
/// RFC 3376, 8.12: how long a querier of an older version is thought to be there.
const OLDER_QUERIER: Duration = Duration::from_secs(2 * 125 + 10);
/// Most groups of an interface.
pub(crate) const MOST_GROUPS: usize = 4096;
/// Most sources of a group; a record of them fits a report.
pub(crate) const MOST_SOURCES: usize = 100;

/// A group, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupInfo {
    /// The group.
    pub group: Ipv4Addr,
    /// Whether all sources are wanted.
    pub any: bool,
    /// Otherwise, which.
    pub sources: Vec<Ipv4Addr>,
}

/// An interface, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterfaceInfo {
    /// The interface.
    pub interface: SwIfIndex,
    /// The version that is spoken now.
    pub version: IgmpVersion,
    /// Groups listened to.
    pub groups: Vec<GroupInfo>,
}

/// Called for every event.
pub(crate) type Observer = Box<dyn Fn(Event)>;

/// IGMP of this router.
pub struct Igmp {
    graph: Rc<Graph>,
    pub(crate) interfaces: Rc<Interfaces>,
    ip4: Rc<Ip4>,
    pub(crate) mfib: Rc<Mfib>,
    pub(crate) all: RefCell<BTreeMap<SwIfIndex, Interface>>,
    pub(crate) routers: RefCell<router::Links>,
    pub(crate) on_routers: Routers,
    pub(crate) timers: Cell<router::Timers>,
    pub(crate) observer: RefCell<Option<Observer>>,
    pub(crate) devices: RefCell<Devices>,
    /// Groups of which listeners name their sources.
    pub(crate) ranges: RefCell<Ranges>,
    /// Rung when something becomes due earlier than the timer's task thinks.
    bell: Sender<()>,
}

impl Igmp {
    pub(crate) fn new(
        control: &Rc<Control>,
        bell: Sender<()>,
        on_routers: Routers,
    ) -> Result<Self, InitError> {
        Ok(Igmp {
            graph: control.graph()?,
            interfaces: control.get()?,
            ip4: control.get()?,
            mfib: control.get()?,
            all: RefCell::default(),
            routers: RefCell::default(),
            on_routers,
            timers: Cell::default(),
            observer: RefCell::default(),
            devices: RefCell::default(),
            ranges: RefCell::default(),
            bell,
        })
    }

    pub(crate) fn now(&self) -> Time {
        self.graph.clock().now()
    }

    pub(crate) fn ring(&self) {
        // Full: it has been rung already.
        let _ = self.bell.try_send(());
    }

    /// Begins to speak as a host on an interface.
    ///
    /// # Errors
    /// There is no such interface, or it does so already.
    pub fn enable(&self, interface: SwIfIndex) -> Result<(), IgmpError> {
        let name = self.interfaces.name(interface)?;
        let mut all = self.all.borrow_mut();
        if all.contains_key(&interface) {
            return Err(IgmpError::Enabled(name));
        }
        if self.is_router(interface) {
            return Err(IgmpError::OtherMode(name, "router"));
        }
        all.insert(interface, Interface::default());
        Ok(())
    }

    /// Ends it, and leaves all groups.
    ///
    /// # Errors
    /// There is no such interface, or it does not speak.
    pub fn disable(&self, interface: SwIfIndex) -> Result<(), IgmpError> {
        if self.is_router(interface) {
            self.end_router(interface);
            return Ok(());
        }
        self.end_upstream(interface);
        self.leave_all(interface)?;
        // What is left to be reported is reported at once: the state goes away now.
        if let Some(mut state) = self.all.borrow_mut().remove(&interface) {
            self.tell_news(interface, &mut state);
        }
        Ok(())
    }

    /// Leaves all groups of an interface.
    ///
    /// # Errors
    /// There is no such interface, or it does not speak.
    pub fn leave_all(&self, interface: SwIfIndex) -> Result<(), IgmpError> {
        let name = self.interfaces.name(interface)?;
        if self.is_router(interface) {
            self.forget_groups(interface);
            return Ok(());
        }
        let groups = self.groups(interface).ok_or(IgmpError::NotEnabled(name))?;
        groups.into_iter().try_for_each(|GroupInfo { group, .. }| self.set_group(interface, group, &[]))
    }

    /// Listens to these sources of a group and to no others; 0.0.0.0 is any. None leave the group.
    ///
    /// # Errors
    /// As [`Igmp::listen`], but that it is none if nothing changes; nothing is changed then.
    pub fn set_group(
        &self,
        interface: SwIfIndex,
        group: Ipv4Addr,
        sources: &[Ipv4Addr],
    ) -> Result<(), IgmpError> {
        let name = self.interfaces.name(interface)?;
        if self.is_router(interface) {
            return Err(IgmpError::OtherMode(name, "router"));
        }
        if !self.all.borrow().contains_key(&interface) {
            return Err(IgmpError::NotEnabled(name));
        }
        check_group(group)?;
        let wanted: BTreeSet<Ipv4Addr> = sources.iter().copied().collect();
        let there = self.sources(interface, group);
        let mut done = Vec::new();
        for source in wanted.difference(&there) {
            if let Err(e) = self.listen(interface, *source, group, Listen::Yes) {
                for source in done {
                    let _ = self.listen(interface, source, group, Listen::No);
                }
                return Err(e);
            }
            done.push(*source);
        }
        there.difference(&wanted).try_for_each(|source| self.listen(interface, *source, group, Listen::No))
    }

    /// The sources of a group that are listened to; 0.0.0.0 is any.
    fn sources(&self, interface: SwIfIndex, group: Ipv4Addr) -> BTreeSet<Ipv4Addr> {
        let all = self.all.borrow();
        let Some(group) = all.get(&interface).and_then(|state| state.groups.get(&group)) else {
            return BTreeSet::new();
        };
        group.sources.iter().copied().chain(group.any.then_some(Ipv4Addr::UNSPECIFIED)).collect()
    }

    /// Listens to a group on an interface, or no longer: from one source, or from any (0.0.0.0). Packets from there are
    /// accepted; where they go is a multicast route's to say.
    ///
    /// # Errors
    /// IGMP does not run on the interface, the addresses are none, or nothing would change.
    pub fn listen(
        &self,
        interface: SwIfIndex,
        source: Ipv4Addr,
        group: Ipv4Addr,
        on: Listen,
    ) -> Result<(), IgmpError> {
        let name = self.interfaces.name(interface)?;
        check_group(group)?;
        if source.is_multicast() || source.is_loopback() || source.is_broadcast() {
            return Err(IgmpError::NotASource(source));
        }
        let any = source.is_unspecified();
        let mut all = self.all.borrow_mut();
        let state = all.get_mut(&interface).ok_or_else(|| IgmpError::NotEnabled(name.clone()))?;
        let known = state.groups.get(&group).cloned().unwrap_or_default();
        let there = if any { known.any } else { known.sources.contains(&source) };
        match (on, there) {
            (Listen::Yes, true) => return Err(IgmpError::Listening(name, source, group)),
            (Listen::No, false) => return Err(IgmpError::NotListening(name, source, group)),
            (Listen::Yes, false) if state.groups.len() >= MOST_GROUPS && !known.is_wanted() => {
                return Err(IgmpError::Full(name, MOST_GROUPS));
            }
            (Listen::Yes, false) if !any && known.sources.len() >= MOST_SOURCES => {
                return Err(IgmpError::Full(name, MOST_SOURCES));
            }
            _ => {}
        }
        self.accept(interface, source, group, on)?;
        let record = state.groups.entry(group).or_default();
        if any {
            record.any = on == Listen::Yes;
            record.mode_left = ROBUSTNESS;
        } else {
            match on {
                Listen::Yes => record.sources.insert(source),
                Listen::No => record.sources.remove(&source),
            };
            record.source_left.insert(source, ROBUSTNESS);
        }
        // RFC 3376, 5.1: a change is reported at once.
        state.news_due = Some(self.now());
        drop(all);
        self.ring();
        Ok(())
    }

    /// The multicast route says the same.
    pub(crate) fn accept(
        &self,
        interface: SwIfIndex,
        source: Ipv4Addr,
        group: Ipv4Addr,
        on: Listen,
    ) -> Result<(), IgmpError> {
        let prefix = if source.is_unspecified() {
            Prefix::group(IpAddr::V4(group), 32)?
        } else {
            Prefix::source_group(IpAddr::V4(source), IpAddr::V4(group))?
        };
        let members = vec![(Member::Interface(interface), ItfFlags::ACCEPT)];
        let change = Change { flags: EntryFlags::default(), members };
        let table = FibIndex(self.interfaces.data(interface)?.fib_ip4);
        match on {
            Listen::Yes => self.mfib.add(table, prefix, Source::Listener, &change)?,
            Listen::No => match self.mfib.remove(table, prefix, Source::Listener, &change) {
                // The interface has moved to another table meanwhile.
                Ok(()) | Err(MfibError::NoEntry { .. } | MfibError::NoPath { .. }) => {}
                Err(e) => return Err(e.into()),
            },
        }
        Ok(())
    }

    /// An interface goes. Its multicast routes see to themselves.
    pub(crate) fn forget(&self, interface: SwIfIndex) {
        self.end_router(interface);
        self.end_upstream(interface);
        self.all.borrow_mut().remove(&interface);
    }

    /// An interface went up or down: routers there do not know our groups.
    pub(crate) fn restart(&self, interface: SwIfIndex) {
        let now = self.now();
        if let Some(state) = self.all.borrow_mut().get_mut(&interface) {
            state.older = [None; 2];
            for group in state.groups.values_mut().filter(|g| g.is_wanted()) {
                group.mode_left = if group.any { ROBUSTNESS } else { group.mode_left };
                group.source_left = group.sources.iter().map(|s| (*s, ROBUSTNESS)).collect();
            }
            state.news_due = Some(now);
        }
        self.ring();
    }

    /// The interfaces IGMP runs on.
    pub fn interfaces(&self) -> Vec<SwIfIndex> {
        self.all.borrow().keys().copied().collect()
    }

    /// The first group of an interface that is listened to behind one; the first of all for `None`.
    pub fn group_after(&self, interface: SwIfIndex, after: Option<Ipv4Addr>) -> Option<GroupInfo> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let all = self.all.borrow();
        let mut groups = all.get(&interface)?.groups.range((from, Bound::Unbounded));
        let (group, state) = groups.find(|(_, state)| state.is_wanted())?;
        let sources = state.sources.iter().copied().collect();
        Some(GroupInfo { group: *group, any: state.any, sources })
    }

    fn groups(&self, interface: SwIfIndex) -> Option<Vec<GroupInfo>> {
        let all = self.all.borrow();
        let info = |(group, state): (Ipv4Addr, &Group)| GroupInfo {
            group,
            any: state.any,
            sources: state.sources.iter().copied().collect(),
        };
        Some(all.get(&interface)?.wanted_groups().map(info).collect())
    }

    /// All interfaces IGMP runs on.
    pub fn list(&self) -> Vec<InterfaceInfo> {
        let now = self.now();
        let info = |(interface, state): (&SwIfIndex, &Interface)| InterfaceInfo {
            interface: *interface,
            version: state.version(now),
            groups: self.groups(*interface).unwrap_or_default(),
        };
        self.all.borrow().iter().map(info).collect()
    }

    /// Takes in a message's content.
    pub(crate) fn hear(&self, fact: Fact) {
        let now = self.now();
        let mut all = self.all.borrow_mut();
        match fact {
            Fact::Queried { interface, version, group, max_response_ms, sources } => {
                let Some(state) = all.get_mut(&interface) else { return };
                match version {
                    IgmpVersion::V1 => state.older[0] = Some(now.after(OLDER_QUERIER)),
                    IgmpVersion::V2 => state.older[1] = Some(now.after(OLDER_QUERIER)),
                    IgmpVersion::V3 => {}
                }
                let wait = Duration::from_millis(max_response_ms.into()).mul_f64(fastrand::f64());
                let due = now.after(wait);
                // RFC 3376, 5.2, rule 1: a general answer that is due earlier says it all.
                if state.general_due.is_some_and(|general| general <= due) {
                    return;
                }
                let Some(group) = group else {
                    state.general_due = Some(due);
                    drop(all);
                    self.ring();
                    return;
                };
                if !state.groups.get(&group).is_some_and(Group::is_wanted) {
                    return;
                }
                let asked = wanted(sources);
                // Rules 3 to 5: answers to several queries about a group are one, at the earlier time.
                let merged = match state.group_due.remove(&group) {
                    None => (due, asked),
                    Some((at, old)) if old.is_empty() || asked.is_empty() => (at.min(due), BTreeSet::new()),
                    Some((at, old)) => {
                        (at.min(due), old.into_iter().chain(asked).take(MOST_SOURCES).collect())
                    }
                };
                state.group_due.insert(group, merged);
                drop(all);
                self.ring();
            }
            Fact::Said { interface, kind, group, sources } => {
                drop(all);
                self.said(interface, kind, group, &wanted(sources));
            }
            Fact::Left { interface, group } => {
                drop(all);
                self.said(interface, RecordType::CHANGE_TO_INCLUDE, group, &BTreeSet::new());
            }
            Fact::Reported { interface, group } if self.is_router(interface) => {
                drop(all);
                self.said(interface, RecordType::CHANGE_TO_EXCLUDE, group, &BTreeSet::new());
            }
            Fact::Reported { interface, group } => {
                // RFC 2236, 3: with routers of old somebody else's report is enough.
                let Some(state) = all.get_mut(&interface) else { return };
                if state.version(now) != IgmpVersion::V3 {
                    state.group_due.remove(&group);
                }
            }
        }
    }

    /// When something is to be done next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let hosts = self.all.borrow().values().filter_map(Interface::deadline).min();
        hosts.into_iter().chain(self.router_deadline()).min()
    }

    /// Does what is due.
    pub(crate) fn tick(&self) {
        let now = self.now();
        self.tick_routers(now);
        for (interface, state) in self.all.borrow_mut().iter_mut() {
            let over = |due: Time| due <= now;
            if state.general_due.is_some_and(over) {
                state.general_due = None;
                if state.version(now) == IgmpVersion::V3 {
                    self.answer(*interface, state, None);
                } else {
                    // Each group at a time of its own, for others to hear.
                    let wanted: Vec<Ipv4Addr> = state.wanted_groups().map(|(group, _)| group).collect();
                    for group in wanted {
                        let due = now.after(UNSOLICITED.mul_f64(fastrand::f64()));
                        state.group_due.entry(group).or_insert((due, BTreeSet::new()));
                    }
                }
            }
            let due: Vec<Ipv4Addr> =
                state.group_due.iter().filter(|(_, (at, _))| over(*at)).map(|(group, _)| *group).collect();
            for group in due {
                let asked = state.group_due.remove(&group).map(|(_, asked)| asked).unwrap_or_default();
                self.answer(*interface, state, Some((group, &asked)));
            }
            if state.news_due.is_some_and(over) {
                self.tell_news(*interface, state);
                let more = state.groups.values().any(Group::has_news);
                let again = UNSOLICITED.mul_f64(0.5 + fastrand::f64() / 2.0);
                state.news_due = more.then(|| now.after(again));
            }
        }
    }

    /// Answers a query: of one group and some sources, or of all groups.
    fn answer(
        &self,
        interface: SwIfIndex,
        state: &Interface,
        about: Option<(Ipv4Addr, &BTreeSet<Ipv4Addr>)>,
    ) {
        let version = state.version(self.now());
        let none = BTreeSet::new();
        let (only, asked) = about.map_or((None, &none), |(group, asked)| (Some(group), asked));
        let groups = state.groups.iter().filter(|(group, _)| only.is_none_or(|only| only == **group));
        if version == IgmpVersion::V3 {
            let records = groups.filter_map(|(group, g)| g.state(asked).map(|(kind, s)| (*group, kind, s)));
            self.report(interface, &records.collect::<Vec<_>>());
            return;
        }
        for (group, _) in groups.filter(|(_, g)| g.is_wanted()) {
            self.send(interface, *group, &old_message(version, false, *group));
        }
    }

    /// Says what has changed.
    fn tell_news(&self, interface: SwIfIndex, state: &mut Interface) {
        let version = state.version(self.now());
        let mut records = Vec::new();
        for (group, record) in &mut state.groups {
            if !record.has_news() {
                continue;
            }
            let said = record.news();
            match version {
                IgmpVersion::V3 => {
                    records.extend(said.into_iter().map(|(kind, sources)| (*group, kind, sources)));
                }
                _ if record.is_wanted() => self.send(interface, *group, &old_message(version, false, *group)),
                // RFC 2236, 3; version 1 just falls silent.
                IgmpVersion::V2 => self.send(interface, ALL_ROUTERS, &old_message(version, true, *group)),
                IgmpVersion::V1 => {}
            }
        }
        state.groups.retain(|_, group| group.is_wanted() || group.has_news());
        self.report(interface, &records);
    }

    /// Sends records, in as many reports as they need.
    pub(crate) fn report(&self, interface: SwIfIndex, mut records: &[(Ipv4Addr, RecordType, Vec<Ipv4Addr>)]) {
        let room = LONGEST - HEADERS - 8;
        while !records.is_empty() {
            let mut left = room;
            let fits = |(_, _, sources): &&(Ipv4Addr, RecordType, Vec<Ipv4Addr>)| {
                let bytes = 8 + 4 * sources.len();
                let fits = bytes <= left;
                left = left.saturating_sub(bytes);
                fits
            };
            let n = records.iter().take_while(fits).count().max(1);
            let (now, later) = records.split_at(n.min(records.len()));
            let mut message = [0; LONGEST];
            let writer =
                now.iter().fold(ReportWriter::new(&mut message), |report, (group, kind, sources)| {
                    report.record(*kind, *group, sources)
                });
            if let Some(bytes) = writer.finish().and_then(|len| message.get(..len)) {
                self.send(interface, ALL_V3_ROUTERS, bytes);
            }
            records = later;
        }
    }

    /// Sends a message, from the interface's address (RFC 3376, 4.2.13: or from 0.0.0.0).
    pub(crate) fn send(&self, interface: SwIfIndex, dst: Ipv4Addr, message: &[u8]) {
        let Ok(data) = self.interfaces.data(interface) else { return };
        if !data.flags().all(IfFlags::ADMIN_UP.set(IfFlags::ETHERNET, true)) {
            return;
        }
        let mut main = self.graph.main();
        let src = self.ip4.primary(interface).unwrap_or(Ipv4Addr::UNSPECIFIED);
        let mut out = [0; LONGEST];
        if let Some(place) = out.get_mut(HEADERS..HEADERS + message.len()) {
            place.copy_from_slice(message);
        }
        let frame = crate::send::write(&mut out, data.mac(), (src, dst), message.len());
        // Without a buffer it is lost, as on a wire.
        if let Some(buffer) =
            frame.and_then(|frame| crate::send::packet(frame, (interface, &data), main.cache()))
        {
            main.inject(self.interfaces.output_node(), buffer);
        }
    }
}

/// Groups of a link's own are not reported (RFC 3376, 5).
pub(crate) fn check_group(group: Ipv4Addr) -> Result<(), IgmpError> {
    let reported = group.is_multicast() && !group.octets().starts_with(&[224, 0, 0]);
    if reported { Ok(()) } else { Err(IgmpError::NotAGroup(group)) }
}

/// Whether a group is listened to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listen {
    /// From now on.
    Yes,
    /// No longer.
    No,
}
