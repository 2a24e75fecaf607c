//! What nodes and control plane share.

use std::io;

use shoal_buffer::slot::SlotKey;
use shoal_graph::counter::{Counters, Simple};
use shoal_infra::Published;
use shoal_interface::{IfTable, MAX_INTERFACES};
use shoal_ip4::Ip4IfTable;
use shoal_nat44::counters::{PathCounters, set_gauge};
use shoal_nat44::reach::Reach;
use shoal_nat44::session_events::{Exhausted, NewsChannel};
use shoal_reassembly::L4;

use crate::config::Config;
use crate::sessions::{Event, Session, Sessions};

/// What a thread tells the main thread.
#[derive(Clone, Copy, Debug)]
pub enum ThreadEvent {
    /// Something happened to a session.
    Session(Event, Session),
    /// A packet could not be translated.
    Exhausted(Exhausted),
    /// The main thread itself has ended sessions: they wait for it in a list of their own.
    Ended,
}

impl From<Exhausted> for ThreadEvent {
    fn from(what: Exhausted) -> Self {
        ThreadEvent::Exhausted(what)
    }
}

/// All counters.
pub struct NatCounters {
    /// From hosts, and to them: of sessions that were known.
    pub fast: [PathCounters; 2],
    /// Of packets that needed a decision.
    pub slow: [PathCounters; 2],
    /// Packets between two hosts.
    pub hairpinning: Simple,
    /// Sessions of each thread, at place 0.
    pub sessions: Simple,
}

impl NatCounters {
    fn new(counters: &Counters) -> io::Result<Self> {
        let path = |way: &str, path: &str| PathCounters::new(counters, &format!("/nat44-ed/{way}/{path}"));
        let all = NatCounters {
            fast: [path("in2out", "fastpath")?, path("out2in", "fastpath")?],
            slow: [path("in2out", "slowpath")?, path("out2in", "slowpath")?],
            hairpinning: counters.simple("/nat44-ed/hairpinning", MAX_INTERFACES)?,
            sessions: counters.simple("/nat44-ed/total-sessions", 1)?,
        };
        all.sessions.ensure(1);
        Ok(all)
    }

    /// Makes room for so many interfaces.
    pub fn ensure(&self, interfaces: usize) {
        self.fast.iter().chain(&self.slow).for_each(|path| path.ensure(interfaces));
        self.hairpinning.ensure(interfaces);
    }

    /// A thread has so many sessions.
    pub fn set_sessions(&self, thread: usize, sessions: usize) {
        set_gauge(&self.sessions, thread, sessions);
    }
}

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// Counters.
    pub counters: NatCounters,
    /// Where packets lead.
    pub reach: Reach,
    /// Interfaces.
    pub interfaces: IfTable,
    /// Their addresses.
    pub addresses: Ip4IfTable,
    /// What the first fragment says.
    pub words: SlotKey<L4>,
    /// What happens, for the main thread.
    pub news: NewsChannel<ThreadEvent>,
}

impl Shared {
    /// As the control plane makes it.
    ///
    /// # Errors
    /// There is no room for counters.
    pub fn new(
        counters: &Counters,
        reach: Reach,
        (interfaces, addresses): (IfTable, Ip4IfTable),
        words: SlotKey<L4>,
        news: NewsChannel<ThreadEvent>,
    ) -> io::Result<Self> {
        let counters = NatCounters::new(counters)?;
        let config = Published::new(Config::default());
        Ok(Shared { config, counters, reach, interfaces, addresses, words, news })
    }

    /// Tells the main thread what happened to a thread's sessions. A main thread that is behind misses some.
    pub fn pass_on(&self, sessions: &mut Sessions) {
        for (event, session) in sessions.take_events() {
            self.news.send(ThreadEvent::Session(event, session));
        }
    }
}
