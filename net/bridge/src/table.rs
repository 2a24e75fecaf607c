//! What packets read of bridge domains.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use shoal_infra::{Guard, Published, StableArena};
use shoal_interface::SwIfIndex;
use shoal_wire::MacAddress;

use crate::fib::MacTable;

/// Domains there can be, the first of which is the one that drops.
pub const MOST_DOMAINS: usize = 1 << 16;
/// Domains of one chunk, which is made when the first of them is needed.
const CHUNK: usize = 256;

/// A member that frames are flooded to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub interface: SwIfIndex,
    pub group: u8,
    pub is_bvi: bool,
}

/// One domain, as frames see it. It is replaced as a whole.
#[derive(Clone, Default, Debug)]
pub(crate) struct DomainData {
    /// In the order in which they get their frame; the BVI is the last.
    pub members: Box<[Member]>,
    /// The port for packets to unknown stations.
    pub unknown: Option<SwIfIndex>,
    /// The address of each station, for those that ask.
    pub stations: HashMap<IpAddr, MacAddress>,
}

/// How many stations of a domain are learned, and may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count {
    /// They are.
    pub learned: u32,
    /// They may be.
    pub limit: u32,
}

type Chunk = Box<[Published<DomainData>]>;

struct Inner {
    macs: MacTable,
    chunks: Box<[OnceLock<Chunk>]>,
    none: Published<DomainData>,
    /// By domain: learned, limit, minutes after which they are forgotten, moves in a second that are a loop.
    learned: StableArena<AtomicU32>,
    limits: StableArena<AtomicU32>,
    ages: StableArena<AtomicU32>,
    moves: StableArena<AtomicU32>,
    /// Of all domains.
    all_learned: AtomicU32,
    all_limit: AtomicU32,
    /// Whether clients want events of stations.
    news: AtomicBool,
    /// Whether clients want events of arp-term-l2bd.
    asked: AtomicBool,
}

/// All domains. Clones are the same table.
#[derive(Clone)]
pub struct DomainTable(Arc<Inner>);

impl DomainTable {
    pub(crate) fn new(macs: MacTable, limit: u32) -> io::Result<Self> {
        let words = || StableArena::with_capacity(MOST_DOMAINS);
        Ok(DomainTable(Arc::new(Inner {
            macs,
            chunks: (0..MOST_DOMAINS / CHUNK).map(|_| OnceLock::new()).collect(),
            none: Published::new(DomainData::default()),
            learned: words()?,
            limits: words()?,
            ages: words()?,
            moves: words()?,
            all_learned: AtomicU32::new(0),
            all_limit: AtomicU32::new(limit),
            news: AtomicBool::new(false),
            asked: AtomicBool::new(false),
        })))
    }

    /// The stations of all domains.
    #[inline(always)]
    pub fn macs(&self) -> &MacTable {
        &self.0.macs
    }

    fn slot(&self, domain: u16) -> Option<&Published<DomainData>> {
        let chunk = self.0.chunks.get(usize::from(domain) / CHUNK)?.get()?;
        chunk.get(usize::from(domain) % CHUNK)
    }

    /// One domain; one without members when there is none of this index.
    #[inline(always)]
    pub(crate) fn domain<'g>(&self, domain: u16, guard: Guard<'g>) -> &'g DomainData {
        self.slot(domain).unwrap_or(&self.0.none).load(guard)
    }

    pub(crate) fn set_domain(&self, domain: u16, data: DomainData) {
        let Some(chunk) = self.0.chunks.get(usize::from(domain) / CHUNK) else { return };
        let fresh = || (0..CHUNK).map(|_| Published::new(DomainData::default())).collect();
        if let Some(slot) = chunk.get_or_init(fresh).get(usize::from(domain) % CHUNK) {
            slot.replace(data);
        }
    }

    fn word(words: &StableArena<AtomicU32>, domain: u16) -> &AtomicU32 {
        match words.get(usize::from(domain)) {
            Some(word) => word,
            None => unreachable!("there is one for each index"),
        }
    }

    /// Takes the right to learn a station of a domain; false when there are as many as may be.
    #[inline]
    pub(crate) fn may_learn(&self, domain: u16) -> bool {
        let Inner { learned, limits, all_learned, all_limit, .. } = &*self.0;
        if all_learned.fetch_add(1, Ordering::Relaxed) >= all_limit.load(Ordering::Relaxed) {
            all_learned.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let (own, limit) = (Self::word(learned, domain), Self::word(limits, domain));
        if own.fetch_add(1, Ordering::Relaxed) >= limit.load(Ordering::Relaxed) {
            self.unlearned(domain);
            return false;
        }
        true
    }

    /// A learned station of a domain is one no longer.
    pub(crate) fn unlearned(&self, domain: u16) {
        Self::word(&self.0.learned, domain).fetch_sub(1, Ordering::Relaxed);
        self.0.all_learned.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many stations of a domain are learned.
    pub fn count(&self, domain: u16) -> Count {
        let of = |words| Self::word(words, domain).load(Ordering::Relaxed);
        Count { learned: of(&self.0.learned), limit: of(&self.0.limits) }
    }

    /// How many of all domains.
    pub fn count_of_all(&self) -> Count {
        Count {
            learned: self.0.all_learned.load(Ordering::Relaxed),
            limit: self.0.all_limit.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn set_limit(&self, domain: u16, limit: u32) {
        Self::word(&self.0.limits, domain).store(limit, Ordering::Relaxed);
    }

    pub(crate) fn set_limit_of_all(&self, limit: u32) {
        self.0.all_limit.store(limit, Ordering::Relaxed);
    }

    /// Minutes after which stations of a domain are forgotten; 0: never.
    #[inline(always)]
    pub(crate) fn age(&self, domain: u16) -> u32 {
        Self::word(&self.0.ages, domain).load(Ordering::Relaxed)
    }

    pub(crate) fn set_age(&self, domain: u16, minutes: u8) {
        Self::word(&self.0.ages, domain).store(u32::from(minutes), Ordering::Relaxed);
    }

    /// Moves of one station in a second that are a loop in a domain; 0: none are.
    #[inline(always)]
    pub(crate) fn move_limit(&self, domain: u16) -> u16 {
        Self::word(&self.0.moves, domain).load(Ordering::Relaxed) as u16
    }

    pub(crate) fn set_move_limit(&self, domain: u16, moves: u16) {
        Self::word(&self.0.moves, domain).store(u32::from(moves), Ordering::Relaxed);
    }

    /// Whether clients want events of stations that come and move.
    #[inline(always)]
    pub(crate) fn tells_news(&self) -> bool {
        self.0.news.load(Ordering::Relaxed)
    }

    pub(crate) fn tell_news(&self, wanted: bool) {
        self.0.news.store(wanted, Ordering::Relaxed);
    }

    /// Whether clients want events of ARP requests.
    #[inline(always)]
    pub(crate) fn tells_asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn tell_asked(&self, wanted: bool) {
        self.0.asked.store(wanted, Ordering::Relaxed);
    }
}

/// The minute it is, as entries have it.
#[inline(always)]
pub(crate) fn minute(now: shoal_graph::clock::Time) -> u8 {
    (now.0 / 60_000_000_000) as u8
}
