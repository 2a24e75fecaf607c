//! What nodes and control plane share.

use std::io;
use std::sync::Arc;

use shoal_buffer::slot::SlotKey;
use shoal_graph::counter::{Counters, Simple};
use shoal_infra::Published;
use shoal_interface::{IfTable, MAX_INTERFACES, SwIfIndex};
use shoal_nat::Kind;
use shoal_nat44::counters::{PathCounters, set_gauge};
use shoal_nat44::reach::Reach;
use shoal_nat44::session_events::{Exhausted, NewsChannel};
use shoal_reassembly::L4;

use crate::blocks::BlockEvent;
use crate::config::Config;
use crate::sessions::{Event, Record, SessionNews, Sessions};

/// What a thread tells the main thread.
#[derive(Clone, Copy, Debug)]
pub enum ThreadEvent {
    /// Something happened to a session.
    Session {
        /// The thread.
        thread: usize,
        /// What happened.
        event: Event,
        /// The session.
        record: Record,
    },
    /// A host has a block of ports, or has it no more.
    Block(BlockEvent),
    /// A packet could not be translated.
    Exhausted(Exhausted),
    /// A command has changed sessions: what happened to them waits in a list of its own.
    Changed,
}

impl ThreadEvent {
    /// What a thread has to tell.
    pub fn of(thread: usize, news: SessionNews) -> ThreadEvent {
        match news {
            SessionNews::Session(event, record) => ThreadEvent::Session { thread, event, record },
            SessionNews::Block(block) => ThreadEvent::Block(block),
        }
    }
}

impl From<Exhausted> for ThreadEvent {
    fn from(what: Exhausted) -> Self {
        ThreadEvent::Exhausted(what)
    }
}

/// All counters.
pub struct EiCounters {
    /// From hosts: of sessions that were known, and of others.
    pub in2out: [PathCounters; 2],
    /// To hosts. VPP counts all of them as of the slow path.
    pub out2in: [PathCounters; 2],
    /// Packets between two hosts.
    pub hairpinning: Simple,
    sessions: Simple,
    users: Simple,
    limit_reached: Simple,
}

impl EiCounters {
    fn new(counters: &Counters) -> io::Result<Self> {
        let path = |path: &str| PathCounters::new(counters, &format!("/nat44-ei/{path}"));
        let one = |name: &str| {
            let counter = counters.simple(&format!("/nat44-ei/{name}"), 1)?;
            counter.ensure(1);
            Ok::<_, io::Error>(counter)
        };
        Ok(EiCounters {
            in2out: [path("in2out/fastpath")?, path("in2out/slowpath")?],
            out2in: [path("out2in/fastpath")?, path("out2in/slowpath")?],
            hairpinning: counters.simple("/nat44-ei/hairpinning", MAX_INTERFACES)?,
            sessions: one("total-sessions")?,
            users: one("total-users")?,
            limit_reached: one("user-limit-reached")?,
        })
    }

    /// Makes room for so many interfaces.
    pub fn ensure(&self, interfaces: usize) {
        self.in2out.iter().chain(&self.out2in).for_each(|path| path.ensure(interfaces));
        self.hairpinning.ensure(interfaces);
    }

    /// A thread has so many sessions, of so many hosts.
    pub fn set_totals(&self, thread: usize, sessions: usize, users: usize) {
        set_gauge(&self.sessions, thread, sessions);
        set_gauge(&self.users, thread, users);
    }

    /// A host could not be translated because there are as many as there may be.
    pub fn limit_reached(&self, thread: usize) {
        self.limit_reached.add(thread, 0, 1);
    }

    /// A packet between two hosts.
    pub fn hairpin(&self, thread: usize, interface: SwIfIndex) {
        self.hairpinning.add(thread, interface.0 as usize, 1);
    }

    /// The counters of a packet's path.
    pub fn path(&self, to_host: bool, is_slow: bool, kind: Kind) -> &PathCounters {
        let paths = if to_host { &self.out2in } else { &self.in2out };
        let [fast, slow] = paths;
        let is_icmp = matches!(kind, Kind::Query | Kind::Error | Kind::OtherIcmp);
        if to_host || is_slow || is_icmp { slow } else { fast }
    }
}

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// Counters.
    pub counters: EiCounters,
    /// Where packets lead.
    pub reach: Reach,
    /// Interfaces.
    pub interfaces: IfTable,
    /// What the first fragment says.
    pub words: SlotKey<L4>,
    /// What happens, for the main thread.
    pub news: NewsChannel<ThreadEvent>,
}

impl Shared {
    pub(crate) fn new(
        counters: &Counters,
        reach: Reach,
        (interfaces, words): (IfTable, SlotKey<L4>),
        news: NewsChannel<ThreadEvent>,
    ) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Shared {
            config: Published::new(Config::default()),
            counters: EiCounters::new(counters)?,
            reach,
            interfaces,
            words,
            news,
        }))
    }

    /// A thread's numbers have changed.
    pub fn count(&self, thread: usize, sessions: &Sessions) {
        self.counters.set_totals(thread, sessions.len(), sessions.users.len());
    }

    /// Tells the main thread what happened to a thread's sessions, if anything listens. A main thread that is behind misses some.
    pub fn pass_on(&self, thread: usize, sessions: &mut Sessions) {
        if sessions.events.is_empty() {
            return;
        }
        let are_wanted = self.news.are_wanted();
        for news in sessions.events.drain(..).filter(|_| are_wanted) {
            self.news.send(ThreadEvent::of(thread, news));
        }
    }
}
