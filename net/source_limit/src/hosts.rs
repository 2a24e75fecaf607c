//! What a thread knows of hosts that send: who sent how much lately.
//!
//! A host is a source address on an interface. Its entry says when its next packet is due: a packet that comes earlier than
//! the limit lets it is dropped (the *virtual scheduling* form of the generic cell rate algorithm, ITU-T I.371, Annex A:
//! one word for each host, no refilling).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_flow::{FlowTable, Search, Settings, Sweep, SweepAction, TableError, Tick, Timeout};
use shoal_graph::clock::Time;
use shoal_interface::SwIfIndex;

use crate::limits::Pace;

/// Hosts that a thread knows at most.
pub const MOST_HOSTS: u32 = 1 << 16;
/// How long a host is known that is silent, in ticks.
const SILENT: u32 = 10;
/// Silent hosts that are forgotten at once.
const FORGOTTEN_AT_ONCE: usize = 64;
/// Nanoseconds of a tick: a second.
const TICK: u64 = 1_000_000_000;
/// All hosts are forgotten alike.
const ALIKE: Timeout = Timeout::new(0);

/// A source address, and the interface it sends by.
pub type Key = [u64; 3];
/// A look-up under way.
pub type HostSearch = Search<Key>;

/// What is known of one host.
#[derive(Clone, Copy, Default)]
struct Sender {
    /// When its next packet is due, in nanoseconds.
    due: u64,
    /// Packets it lost.
    lost: u64,
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is within the limit.
    Within,
    /// It is too much.
    Beyond,
    /// No more hosts can be known: it passes.
    Unknown,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Within => "within its limit",
            Verdict::Beyond => "beyond its limit",
            Verdict::Unknown => "not known, too many are",
        }
    }
}

/// The hosts of one thread.
pub struct Hosts {
    /// `None` when there was no memory for it: all packets pass, and are counted.
    table: Option<FlowTable<Key, Sender>>,
}

fn tick(now: Time) -> Tick {
    Tick(now.0 / TICK)
}

/// The key of an IPv4 host.
#[inline(always)]
pub fn ip4_key(source: u32, interface: SwIfIndex) -> Key {
    [0, u64::from(source), u64::from(interface.0) << 1]
}

/// The key of an IPv6 host.
#[inline(always)]
pub fn ip6_key(source: u128, interface: SwIfIndex) -> Key {
    [(source >> 64) as u64, source as u64, u64::from(interface.0) << 1 | 1]
}

/// What a key was made of.
pub fn parts([high, low, rest]: Key) -> (IpAddr, SwIfIndex) {
    let address = if rest & 1 == 0 {
        IpAddr::V4(Ipv4Addr::from_bits(low as u32))
    } else {
        IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)))
    };
    (address, SwIfIndex((rest >> 1) as u32))
}

impl Hosts {
    /// No host is known.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(most: u32) -> Result<Self, TableError> {
        let settings = Settings::flows(most).timeout(ALIKE, SILENT);
        Ok(Hosts { table: Some(FlowTable::new(settings, Tick(0))?) })
    }

    /// For a thread without memory.
    pub(crate) const NONE: Hosts = Hosts { table: None };

    /// Begins to look for a host.
    #[inline(always)]
    pub fn search(&self, key: Key) -> HostSearch {
        self.table.as_ref().map_or_else(HostSearch::default, |table| table.search(key))
    }

    /// Goes on with several.
    #[inline(always)]
    pub fn seek(&self, searches: &mut [HostSearch]) {
        if let Some(table) = &self.table {
            table.seek(searches);
        }
    }

    /// A packet of a host came now.
    #[inline(always)]
    pub(crate) fn packet(&mut self, search: &HostSearch, pace: Pace, now: Time) -> Verdict {
        let Some(table) = &mut self.table else { return Verdict::Unknown };
        let Some(mut flow) = table.find(search) else {
            let first = Sender { due: now.0 + u64::from(pace.interval), lost: 0 };
            let known = table.insert(*search.key(), first, ALIKE, tick(now));
            return if known.is_ok() { Verdict::Within } else { Verdict::Unknown };
        };
        flow.touch(tick(now));
        let sender = flow.value_mut();
        let due = sender.due.max(now.0);
        if due - now.0 > pace.early {
            sender.lost += 1;
            return Verdict::Beyond;
        }
        sender.due = due + u64::from(pace.interval);
        Verdict::Within
    }

    /// A packet of a host came now, in a chain; `None`, and nothing is noted, when it is for the node: it is too much, or
    /// its host is not known yet.
    #[inline(always)]
    pub(crate) fn pass(&mut self, key: Key, pace: Pace, now: Time) -> Option<()> {
        let table = self.table.as_mut()?;
        let mut search = table.search(key);
        table.seek(std::slice::from_mut(&mut search));
        let mut flow = table.find(&search)?;
        let due = flow.value_mut().due.max(now.0);
        if due - now.0 > pace.early {
            return None;
        }
        flow.touch(tick(now));
        flow.value_mut().due = due + u64::from(pace.interval);
        Some(())
    }

    /// When a host may be forgotten.
    #[inline(always)]
    pub(crate) fn due(&self) -> Option<Time> {
        let Tick(tick) = self.table.as_ref()?.next_expiry()?;
        Some(Time(tick.saturating_mul(TICK)))
    }

    /// Forgets some that are silent; tells how many.
    pub(crate) fn forget(&mut self, now: Time) -> usize {
        let Some(table) = &mut self.table else { return 0 };
        table.expire(tick(now), FORGOTTEN_AT_ONCE, |_, _| {}).removed
    }

    /// Up to `most` that lost packets, and how many each.
    pub(crate) fn losers(&mut self, most: usize) -> Vec<(Key, u64)> {
        let (mut list, mut sweep) = (Vec::new(), Sweep::default());
        let Some(table) = &mut self.table else { return list };
        let look = |key: &Key, sender: &mut Sender| {
            if sender.lost > 0 && list.len() < most {
                list.push((*key, sender.lost));
            }
            SweepAction::Keep
        };
        table.sweep(&mut sweep, MOST_HOSTS as usize + 1, look);
        list
    }

    /// Forgets the hosts of an interface.
    pub(crate) fn forget_interface(&mut self, interface: SwIfIndex) {
        let Some(table) = &mut self.table else { return };
        let judge = |key: &Key, _: &mut Sender| {
            if parts(*key).1 == interface { SweepAction::Remove } else { SweepAction::Keep }
        };
        table.sweep(&mut Sweep::default(), MOST_HOSTS as usize + 1, judge);
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.table.as_ref().map_or(0, FlowTable::len)
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
