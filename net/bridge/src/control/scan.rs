//! What becomes of stations over time: they are forgotten when they are silent or out of date, and clients get events.
//!
//! Only groups of buckets that hold something are looked at, some hundred stations at a time, and only when something can
//! be found: after a flush, each minute while a domain forgets, and as often as a client wants to hear of news, where
//! only groups with news are.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_lite::future;
use shoal_graph::clock::Time;
use shoal_graph::process::{Processes, Receiver};
use shoal_interface::SwIfIndex;
use shoal_wire::MacAddress;

use super::{Bridges, MacInfo};
use crate::entry::{Entry, Key};
use crate::table::minute;

/// How often silent stations are looked for.
const MINUTE: Duration = Duration::from_mins(1);
/// Groups that are looked at without a pause.
const AT_ONCE: usize = 64;
/// VPP's pause between two looks for news.
const EVENT_SCAN_PAUSE: Duration = Duration::from_millis(100);

/// What happened to a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewsKind {
    /// It was learned.
    Added,
    /// It was forgotten.
    Deleted,
    /// It is elsewhere.
    Moved,
}

/// A station that came, went or moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MacNews {
    /// Its address.
    pub mac: MacAddress,
    /// Where it is.
    pub interface: SwIfIndex,
    /// What happened.
    pub kind: NewsKind,
}

/// How long the last looks took.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Scanned {
    /// For silent stations.
    pub all: Duration,
    /// For news.
    pub news: Duration,
}

pub type Reporter = Rc<dyn Fn(&[MacNews])>;

/// What the task keeps.
#[derive(Default)]
pub(crate) struct State {
    wanted: Cell<bool>,
    retired: RefCell<BTreeSet<u16>>,
    last: Cell<Option<Time>>,
    scanned: Cell<Scanned>,
    delay: Cell<Option<Duration>>,
    reporter: RefCell<Option<Reporter>>,
}

impl State {
    /// Something is out of date.
    pub(crate) fn want(&self) {
        self.wanted.set(true);
    }

    /// A domain is gone; its index is free when nothing bears it.
    pub(crate) fn retire(&self, index: u16) {
        self.retired.borrow_mut().insert(index);
        self.wanted.set(true);
    }
}

impl Bridges {
    /// Reports events of stations from now on, or stops that.
    pub fn report(&self, to: Option<Reporter>) {
        self.table.tell_news(to.is_some());
        *self.scan.reporter.borrow_mut() = to;
        self.ring();
    }

    /// How many stations may be learned of all domains.
    pub fn set_learn_limit_of_all(&self, limit: u32) {
        self.table.set_limit_of_all(limit);
    }

    /// How often news is looked for.
    pub fn set_scan_delay(&self, delay: Duration) {
        self.scan.delay.set(Some(delay));
        self.ring();
    }

    /// How often that is.
    pub fn scan_delay(&self) -> Duration {
        self.scan.delay.get().unwrap_or(EVENT_SCAN_PAUSE)
    }

    /// How long the last looks took.
    pub fn scanned(&self) -> Scanned {
        self.scan.scanned.get()
    }

    fn forgets(&self) -> bool {
        self.domains.borrow().values().any(|domain| domain.settings.mac_age != 0)
    }

    fn tell(&self, news: &[MacNews]) {
        let reporter = self.scan.reporter.borrow().clone();
        if let Some(reporter) = reporter.filter(|_| !news.is_empty()) {
            reporter(news);
        }
    }

    /// Whether a station is to be forgotten.
    fn is_over(&self, info: &MacInfo, now: u8, gone: &BTreeSet<u16>) -> bool {
        if gone.contains(&info.domain) || !self.is_current(info) {
            return true;
        }
        let age = self.table.age(info.domain);
        let silent = now.wrapping_sub(info.entry.minute());
        info.entry.is_learned() && age != 0 && u32::from(silent) >= age
    }

    /// Looks through some groups; what was forgotten.
    fn scan_some(&self, groups: std::ops::Range<usize>, gone: &BTreeSet<u16>) -> Vec<MacNews> {
        let now = minute(self.graph.clock().now());
        let mut news = Vec::new();
        for group in groups {
            for info in self.stations_of(group) {
                if self.is_over(&info, now, gone) {
                    let learned = info.entry.is_learned();
                    self.take_out(Key::new(info.mac, info.domain));
                    let interface = info.entry.interface();
                    if learned {
                        news.push(MacNews { mac: info.mac, interface, kind: NewsKind::Deleted });
                    }
                }
            }
        }
        news
    }

    /// What is new in some groups.
    fn news_of(&self, group: usize) -> Vec<MacNews> {
        let macs = self.table.macs();
        if !macs.take_news(group) {
            return Vec::new();
        }
        let mut news = Vec::new();
        for info in self.stations_of(group) {
            if !info.entry.has(Entry::LEARN_EVENT) {
                continue;
            }
            let kind = if info.entry.has(Entry::LEARN_MOVE) { NewsKind::Moved } else { NewsKind::Added };
            let told = info.entry.with_flags(info.entry.flags() & !(Entry::LEARN_EVENT | Entry::LEARN_MOVE));
            let found = macs.find(&macs.search(Key::new(info.mac, info.domain)));
            if let Some(found) = found.filter(|found| found.entry == info.entry) {
                macs.change(&found, told);
                news.push(MacNews { mac: info.mac, interface: info.entry.interface(), kind });
            }
        }
        news
    }
}

/// The task.
pub(crate) async fn run(bridges: Rc<Bridges>, processes: Rc<Processes>, bell: Receiver<()>) {
    loop {
        let now = processes.clock().now();
        let reports = bridges.scan.reporter.borrow().is_some();
        let due = bridges.scan.last.get().map_or(now, |last| last.after(MINUTE));
        let aged = bridges.forgets() && due <= now;
        if bridges.scan.wanted.take() || aged {
            bridges.scan.last.set(Some(now));
            scan_all(&bridges, &processes).await;
        }
        if reports {
            let begun = Instant::now();
            for group in bridges.table.macs().groups() {
                let news = bridges.news_of(group);
                bridges.tell(&news);
            }
            let scanned = bridges.scan.scanned.get();
            bridges.scan.scanned.set(Scanned { news: begun.elapsed(), ..scanned });
        }
        let wait = match (reports, bridges.forgets()) {
            (true, _) => Some(bridges.scan_delay()),
            (false, true) => {
                let now = processes.clock().now();
                Some(bridges.scan.last.get().map_or(MINUTE, |last| last.after(MINUTE).since(now)))
            }
            (false, false) => None,
        };
        let due = wait.map(|wait| processes.clock().now().after(wait));
        processes.rung_or_due(&bell, due).await;
    }
}

async fn scan_all(bridges: &Bridges, processes: &Processes) {
    let begun = Instant::now();
    let gone = std::mem::take(&mut *bridges.scan.retired.borrow_mut());
    let mut seen = 0;
    for group in bridges.table.macs().groups() {
        if bridges.table.macs().occupied(group) == 0 {
            continue;
        }
        let news = bridges.scan_some(group..group + 1, &gone);
        bridges.tell(&news);
        seen += 1;
        if seen % AT_ONCE == 0 {
            processes.sleep(Duration::ZERO).await;
            future::yield_now().await;
        }
    }
    for index in gone {
        bridges.give_back(index);
    }
    let scanned = bridges.scan.scanned.get();
    bridges.scan.scanned.set(Scanned { all: begun.elapsed(), ..scanned });
}
