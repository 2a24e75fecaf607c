//! The control plane of multicast forwarding: the only code that writes the tables packets read.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_adj::{AdjIndex, Adjacencies, Family, Link};
use shoal_buffer::SwIfIndex;
use shoal_fib::{Fib, FibIndex};
use shoal_graph::counter::Combined;
use shoal_infra::qsbr::Grace;
use shoal_interface::Interfaces;
use shoal_module::{Control, InitError};

use crate::MfibError;
use crate::family::is_link_group;
use crate::flags::{EntryFlags, ItfFlags};
use crate::table::{EVERY_TABLE, EntryData, Itf as ItfData, Key, Lengths, MOST_ENTRIES, MfibTable};

mod client_entries;
mod look;
mod special;

pub use client_entries::Signal;

mod configured;

/// Most interfaces of one entry.
pub const MOST_INTERFACES: usize = 4096;

/// Which packets an entry is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Prefix {
    group: IpAddr,
    len: u8,
    source: Option<IpAddr>,
}

impl Prefix {
    /// All packets to groups of a prefix, `(*, G/m)`; to one group, `(*, G)`, when the length is the longest one. Bits
    /// beyond the length do not matter.
    ///
    /// # Errors
    /// They are no groups.
    pub fn group(group: IpAddr, len: u8) -> Result<Self, MfibError> {
        let family = Family::of(group);
        let shortest = if family == Family::Ip4 { 4 } else { 8 };
        if !group.is_multicast() || !(shortest..=family.max_len()).contains(&len) {
            return Err(MfibError::NotAGroup(format!("{group}/{len}")));
        }
        let bits = u32::from(family.max_len() - len);
        let group = match group {
            IpAddr::V4(a) => Ipv4Addr::from_bits(a.to_bits() >> bits << bits).into(),
            IpAddr::V6(a) => Ipv6Addr::from_bits(a.to_bits() >> bits << bits).into(),
        };
        Ok(Prefix { group, len, source: None })
    }

    /// Packets of one source to one group, `(S, G)`.
    ///
    /// # Errors
    /// The group is none, the source is not one host, or they are of two families.
    pub fn source_group(source: IpAddr, group: IpAddr) -> Result<Self, MfibError> {
        let prefix = Prefix::group(group, Family::of(group).max_len())?;
        if Family::of(source) != Family::of(group) {
            let (source_address, group) = (source.to_string(), group.to_string());
            return Err(MfibError::Families { source_address, group });
        }
        if source.is_multicast() || source.is_unspecified() || source.is_loopback() {
            return Err(MfibError::NotASource(source.to_string()));
        }
        Ok(Prefix { source: Some(source), ..prefix })
    }

    /// Whether packets to a group may find the entry.
    pub fn covers(&self, group: IpAddr) -> bool {
        let bits_left = u32::from(self.family().max_len() - self.len);
        Family::of(group) == self.family() && (bits(group) ^ bits(self.group)) >> bits_left == 0
    }

    /// Whether none of its groups' packets leaves its link.
    fn stays_on_link(&self) -> bool {
        let whole = if self.family() == Family::Ip4 { 24 } else { 16 };
        self.len >= whole && is_link_group(self.family(), bits(self.group))
    }

    /// Its family.
    pub fn family(&self) -> Family {
        Family::of(self.group)
    }

    fn key(&self, table: u32) -> Key {
        Key { table, group: bits(self.group), len: self.len, source: self.source.map_or(0, bits) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Some(source) => write!(f, "({source}, {}/{})", self.group, self.len),
            None => write!(f, "(*, {}/{})", self.group, self.len),
        }
    }
}

fn bits(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(a) => a.to_bits().into(),
        IpAddr::V6(a) => a.to_bits(),
    }
}

/// Who says something of an entry. What all of them say is added up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// What every table has.
    Special,
    /// The binary API.
    Api,
    /// An operator.
    Cli,
    /// Listeners on a link.
    Listener,
    /// Routing daemons of Linux.
    Linux,
}

impl Source {
    /// The word `show ip mfib` prints.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Special => "special",
            Source::Api => "API",
            Source::Cli => "CLI",
            Source::Listener => "IGMP",
            Source::Linux => "plugin-low",
        }
    }
}

/// An interface of an entry, or this router itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Member {
    /// Packets are delivered to this router.
    Local,
    /// An interface.
    Interface(SwIfIndex),
}

#[derive(Default)]
struct SourceSettings {
    flags: EntryFlags,
    members: BTreeMap<Member, ItfFlags>,
}

impl SourceSettings {
    fn is_empty(&self) -> bool {
        self.flags == EntryFlags::default() && self.members.is_empty()
    }
}

struct EntryState {
    id: u32,
    said: BTreeMap<Source, SourceSettings>,
    adjacencies: BTreeMap<SwIfIndex, AdjIndex>,
}

impl EntryState {
    fn flags(&self) -> EntryFlags {
        self.said.values().fold(EntryFlags::default(), |all, said| all.with(said.flags))
    }

    fn members(&self) -> BTreeMap<Member, ItfFlags> {
        let mut all: BTreeMap<Member, ItfFlags> = BTreeMap::new();
        for (member, flags) in self.said.values().flat_map(|said| &said.members) {
            let merged = all.entry(*member).or_default();
            *merged = merged.with(*flags);
        }
        all
    }
}

/// An interface of an entry, for display.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Itf {
    /// Which.
    pub member: Member,
    /// Its flags.
    pub flags: ItfFlags,
}

/// An entry, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Which packets it is for.
    pub prefix: Prefix,
    /// Its number.
    pub id: u32,
    /// Its flags.
    pub flags: EntryFlags,
    /// Who contributes.
    pub sources: Vec<Source>,
    /// Its interfaces.
    pub interfaces: Vec<Itf>,
    /// Where packets go, besides this router.
    pub adjacencies: Vec<AdjIndex>,
}

pub(crate) type Place = (u32, Prefix);

#[derive(Default)]
struct State {
    entries: BTreeMap<Place, EntryState>,
    /// Numbers whose entry has gone; used again after a grace period at the earliest.
    free: VecDeque<(u32, Grace)>,
    next: u32,
    /// Entries by length of their group, and those with a source.
    lengths: BTreeMap<u8, usize>,
    by_source: usize,
}

impl State {
    fn fresh_id(&mut self, family: Family) -> Result<u32, MfibError> {
        if let Some((id, grace)) = self.free.front().copied()
            && grace.is_over()
        {
            self.free.pop_front();
            return Ok(id);
        }
        if self.next as usize >= MOST_ENTRIES {
            return Err(MfibError::Full { family, most: MOST_ENTRIES });
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    fn count(&mut self, prefix: &Prefix, more: bool) {
        let counter = match prefix.source {
            Some(_) => &mut self.by_source,
            None => self.lengths.entry(prefix.len).or_default(),
        };
        *counter = if more { *counter + 1 } else { counter.saturating_sub(1) };
        self.lengths.retain(|_, n| *n > 0);
    }

    fn lengths(&self) -> Lengths {
        Lengths { by_source: self.by_source > 0, groups: self.lengths.keys().rev().copied().collect() }
    }
}

/// The index of an entry in `/net/mroute`: twice its number, one more for IPv6.
pub(crate) fn counted_at(family: Family, id: u32) -> usize {
    2 * id as usize + usize::from(family == Family::Ip6)
}

/// The control plane.
pub struct Mfib {
    tables: [MfibTable; 2],
    states: [RefCell<State>; 2],
    adjacencies: Rc<Adjacencies>,
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    /// What a client has not set again since it began to send everything.
    stale: RefCell<client_entries::Stale>,
    counter: Combined,
}

/// What becomes of the previous flags.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// They stay.
    More,
    /// They are removed, of the entry and of the members that are named.
    Exactly,
}

/// A change of an entry: flags of its own, and of interfaces.
#[derive(Clone, Default, Debug)]
pub struct Change {
    /// Flags of the entry.
    pub flags: EntryFlags,
    /// Interfaces and the flags of each.
    pub members: Vec<(Member, ItfFlags)>,
}

impl Change {
    /// Whether there are no flags.
    fn is_empty(&self) -> bool {
        self.flags == EntryFlags::default() && self.members.is_empty()
    }
}

impl Mfib {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Self, InitError> {
        // VPP's name. Entries of both families take turns in it: see `counted_at`.
        let counter = control.graph()?.counters().combined("/net/mroute", 2 * MOST_ENTRIES)?;
        let mfib = Mfib {
            counter,
            tables: Family::ALL.map(MfibTable::new),
            states: Default::default(),
            adjacencies: control.get::<Adjacencies>()?,
            interfaces: control.get::<Interfaces>()?,
            fib: control.get::<Fib>()?,
            stale: RefCell::default(),
        };
        mfib.say_what_every_table_has().map_err(|e| InitError::Other(e.to_string()))?;
        Ok(mfib)
    }

    /// The table packets of a family read.
    pub fn table(&self, family: Family) -> MfibTable {
        self.tables.get(family as usize).unwrap_or(&self.tables[0]).clone()
    }

    fn state(&self, family: Family) -> &RefCell<State> {
        self.states.get(family as usize).unwrap_or(&self.states[0])
    }

    /// Says more of an entry, which is made if it is not there.
    ///
    /// # Errors
    /// The table is not there or full, or the flags make no sense.
    pub fn add(
        &self,
        table: FibIndex,
        prefix: Prefix,
        source: Source,
        change: &Change,
    ) -> Result<(), MfibError> {
        self.fib.table(prefix.family(), table)?;
        self.update(table.0, prefix, source, change, How::More)
    }

    fn check(&self, prefix: Prefix, change: &Change) -> Result<(), MfibError> {
        if change.is_empty() {
            return Err(MfibError::Nothing);
        }
        for (member, flags) in &change.members {
            if flags.without(ItfFlags::SIGNAL_PRESENT).is_empty() {
                return Err(MfibError::NoFlags);
            }
            match member {
                Member::Local if *flags != ItfFlags::FORWARD => return Err(MfibError::LocalAccepts),
                Member::Local => {}
                Member::Interface(interface) => {
                    self.interfaces.data(*interface)?;
                    let forwards = flags.has(ItfFlags::FORWARD);
                    if forwards && prefix.stays_on_link() {
                        return Err(MfibError::LinkGroup(prefix.to_string()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Adjacencies that an entry does not hold yet, locked.
    fn adjacencies_for(
        &self,
        known: Option<&EntryState>,
        family: Family,
        change: &Change,
    ) -> Result<Vec<(SwIfIndex, AdjIndex)>, MfibError> {
        let mut fresh: Vec<(SwIfIndex, AdjIndex)> = Vec::new();
        let held = |i: SwIfIndex| known.is_some_and(|held| held.adjacencies.contains_key(&i));
        for (member, flags) in &change.members {
            let Member::Interface(interface) = *member else { continue };
            let there = held(interface) || fresh.iter().any(|(i, _)| *i == interface);
            if flags.has(ItfFlags::FORWARD) && !there {
                match self.adjacencies.multicast(interface, Link::from(family)) {
                    Ok(adj) => fresh.push((interface, adj)),
                    Err(e) => {
                        self.release(&fresh);
                        return Err(e.into());
                    }
                }
            }
        }
        Ok(fresh)
    }

    fn release(&self, fresh: &[(SwIfIndex, AdjIndex)]) {
        for (_, adj) in fresh {
            self.adjacencies.unlock(*adj);
        }
    }

    fn update(
        &self,
        table: u32,
        prefix: Prefix,
        source: Source,
        change: &Change,
        how: How,
    ) -> Result<(), MfibError> {
        self.check(prefix, change)?;
        let family = prefix.family();
        let mut state = self.state(family).borrow_mut();
        let known = state.entries.get(&(table, prefix));
        let interfaces = |held: &EntryState| held.members().len() + change.members.len();
        if known.map_or(change.members.len(), interfaces) > MOST_INTERFACES {
            return Err(MfibError::TooManyInterfaces { prefix, most: MOST_INTERFACES });
        }
        // What may fail comes first.
        let fresh = self.adjacencies_for(known, family, change)?;
        if known.is_none() {
            let id = match state.fresh_id(family) {
                Ok(id) => id,
                Err(e) => {
                    self.release(&fresh);
                    return Err(e);
                }
            };
            if table != EVERY_TABLE
                && let Err(e) = self.fib.lock(family, FibIndex(table), shoal_fib::Source::Cli)
            {
                state.free.push_back((id, Grace::start()));
                self.release(&fresh);
                return Err(e.into());
            }
            // Packets found the number's entry before at the latest a grace period ago.
            let at = counted_at(family, id);
            self.counter.ensure(at + 1);
            self.counter.zero(at);
            state.count(&prefix, true);
            let held = EntryState { id, said: BTreeMap::new(), adjacencies: BTreeMap::new() };
            state.entries.insert((table, prefix), held);
        }
        if let Some(held) = state.entries.get_mut(&(table, prefix)) {
            held.adjacencies.extend(fresh);
            let said = held.said.entry(source).or_default();
            said.flags = if how == How::More { said.flags.with(change.flags) } else { change.flags };
            for (member, flags) in &change.members {
                let merged = said.members.entry(*member).or_default();
                *merged = if how == How::More { merged.with(*flags) } else { *flags };
            }
        }
        self.publish(&mut state, (table, prefix));
        Ok(())
    }

    /// Takes back some of a source's flags of an entry; an entry without flags goes. Without flags all flags of a
    /// member are taken back; an empty change takes back everything.
    ///
    /// # Errors
    /// There is no such entry, or the source did not say that.
    pub fn remove(
        &self,
        table: FibIndex,
        prefix: Prefix,
        source: Source,
        change: &Change,
    ) -> Result<(), MfibError> {
        self.fib.table(prefix.family(), table)?;
        let mut state = self.state(prefix.family()).borrow_mut();
        let place = (table.0, prefix);
        let missing = || {
            let all = state.entries.keys().filter(|(t, _)| *t == table.0).map(|(_, p)| *p);
            MfibError::NoEntry { prefix, nearest: all.min_by_key(|p| distance(p, &prefix)) }
        };
        let Some(said) = state.entries.get(&place).and_then(|held| held.said.get(&source)) else {
            return Err(missing());
        };
        for (member, flags) in &change.members {
            let there = said.members.get(member).copied();
            if there
                .is_none_or(|there| there.without(*flags).0 != there.0 & !flags.0 || flags.0 & !there.0 != 0)
            {
                let what = match member {
                    Member::Local => "local".to_owned(),
                    Member::Interface(i) => self.interfaces.name(*i).unwrap_or_default(),
                };
                return Err(MfibError::NoPath { prefix, what: format!("{what} {flags}") });
            }
        }
        if let Some(held) = state.entries.get_mut(&place) {
            take_back(held, source, |said| {
                if change.is_empty() {
                    *said = SourceSettings::default();
                }
                said.flags = said.flags.without(change.flags);
                for (member, flags) in &change.members {
                    if let Some(there) = said.members.get_mut(member) {
                        *there = if flags.is_empty() { ItfFlags::default() } else { there.without(*flags) };
                    }
                }
            });
        }
        self.publish(&mut state, place);
        Ok(())
    }

    /// An interface goes, and with it all its flags.
    pub(crate) fn forget(&self, interface: SwIfIndex) {
        for family in Family::ALL {
            let mut state = self.state(family).borrow_mut();
            let member = Member::Interface(interface);
            let has = |held: &EntryState| held.said.values().any(|said| said.members.contains_key(&member));
            let places: Vec<Place> =
                state.entries.iter().filter(|(_, held)| has(held)).map(|(place, _)| *place).collect();
            for place in places {
                if let Some(held) = state.entries.get_mut(&place) {
                    for source in held.said.keys().copied().collect::<Vec<_>>() {
                        take_back(held, source, |said| {
                            said.members.remove(&member);
                        });
                    }
                }
                self.publish(&mut state, place);
            }
        }
    }

    /// Lets packets see the present flags of an entry.
    fn publish(&self, state: &mut State, place: Place) {
        let (table, prefix) = place;
        let data = self.table(prefix.family());
        let Some(held) = state.entries.get_mut(&place) else { return };
        let (id, members, flags) = (held.id, held.members(), held.flags());
        let gone = held.said.is_empty();
        let forwards = |i: &SwIfIndex| {
            members.get(&Member::Interface(*i)).is_some_and(|flags| flags.has(ItfFlags::FORWARD))
        };
        let unused: Vec<AdjIndex> =
            held.adjacencies.extract_if(.., |i, _| !forwards(i)).map(|(_, adj)| adj).collect();
        let before = data.entry_now(id);
        let itfs = members.iter().filter_map(|(member, flags)| match member {
            Member::Local => None,
            Member::Interface(interface) => {
                let signalled = before.itf(*interface).is_some_and(|i| i.signalled.load(Ordering::Relaxed));
                let signalled = AtomicBool::new(signalled);
                Some(ItfData { interface: *interface, flags: *flags, signalled })
            }
        });
        let entry = EntryData {
            flags,
            itfs: itfs.collect(),
            local: members.contains_key(&Member::Local),
            out: held.adjacencies.values().copied().collect(),
        };
        if gone {
            // Packets no longer find it; those that have found it see an entry without interfaces.
            data.set_key(prefix.key(table), None);
            state.entries.remove(&place);
            state.count(&prefix, false);
            if table != EVERY_TABLE {
                self.fib.unlock(prefix.family(), FibIndex(table), shoal_fib::Source::Cli);
            }
            state.free.push_back((id, Grace::start()));
            data.set_entry(id, EntryData::default());
        } else {
            data.set_entry(id, entry);
            data.set_key(prefix.key(table), Some(id));
        }
        data.set_lengths(state.lengths());
        for adj in unused {
            self.adjacencies.unlock(adj);
        }
    }

    /// Where packets of all entries are counted.
    pub(crate) fn counter(&self) -> Combined {
        self.counter.clone()
    }

    /// The packets and bytes that an entry has taken, from the network header on.
    pub fn counted(&self, family: Family, id: u32) -> (u64, u64) {
        self.counter.sum(counted_at(family, id))
    }

    /// How many entries a family has, of all tables.
    pub fn count(&self, family: Family) -> usize {
        self.state(family).borrow().entries.len()
    }

    /// All entries of a table, those that every table has last.
    pub fn entries(self: &Rc<Self>, family: Family, table: FibIndex) -> Vec<Entry> {
        self.places(family, table).filter_map(|place| self.entry_at(place)).collect()
    }
}

/// Changes what a source says; one that says nothing any more is forgotten.
fn take_back(held: &mut EntryState, source: Source, change: impl FnOnce(&mut SourceSettings)) {
    if let Some(said) = held.said.get_mut(&source) {
        change(said);
        said.members.retain(|_, flags| !flags.is_empty());
        if said.is_empty() {
            held.said.remove(&source);
        }
    }
}

/// How far one entry is from another: bits of their groups that differ.
fn distance(a: &Prefix, b: &Prefix) -> (u128, bool) {
    (bits(a.group) ^ bits(b.group), a.source != b.source)
}
