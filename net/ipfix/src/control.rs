//! Exporters, templates, and what is sent when.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use shoal_adj::Family;
use shoal_datagram::Datagram;
use shoal_fib::{Fib, FibError, FibIndex};
use shoal_graph::Graph;
use shoal_graph::clock::Time;
use shoal_graph::counter::Simple;
use shoal_graph::process::{Receiver, Sender, channel};
use shoal_module::{Control, InitError};

use crate::exporter::{Exporter, INTERVAL, LEAST_MTU, MOST_MTU, Outlet, PATH_MTU, PORT, Waiting};
use crate::message::{HEADER, Message, TEMPLATES};
use crate::template::{ReportKey, Template};

/// Exporters there may be, as with VPP.
pub const MOST_EXPORTERS: usize = 5;
/// Routers a message may pass, as VPP's.
const TTL: u8 = 254;
/// The first number of a template (RFC 7011, 3.4.1).
const FIRST_TEMPLATE: u16 = 256;
/// How long a record waits for others at most.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long nothing may be due.
const LONGEST: Duration = Duration::from_hours(1);

/// Why a setting was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IpfixError {
    /// No collector.
    #[error("collector address required")]
    NoCollector,
    /// No source.
    #[error("src address required")]
    NoSource,
    /// Addresses of two families.
    #[error("collector {0} and src {1} are not of one family")]
    Families(IpAddr, IpAddr),
    /// An address is none of a host.
    #[error("{0} is not the address of a host")]
    NoHost(IpAddr),
    /// Port 0.
    #[error("0 is no port of a collector, nearest {PORT}")]
    Port,
    /// Too long packets.
    #[error("too big path-mtu value, maximum is {MOST_MTU}")]
    TooBig(u32),
    /// Too short packets.
    #[error("too small path-mtu value, minimum is {LEAST_MTU}")]
    TooSmall(u32),
    /// Templates without a pause.
    #[error("too small template-interval value, minimum is 1")]
    Interval,
    /// As many as there may be.
    #[error("there are {MOST_EXPORTERS} exporters already, and there may not be more")]
    TooMany,
    /// No exporter has this collector.
    #[error("no exporter has the collector {0}")]
    NoExporter(IpAddr),
    /// The first exporter stays.
    #[error("the exporter to {0} is the first one: set ipfix exporter disable")]
    First(IpAddr),
    /// There is no such table.
    #[error(transparent)]
    Fib(#[from] FibError),
}

struct Report {
    /// The template's number.
    id: u16,
    template: Template,
    since: Time,
}

/// Which templates are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those whose time has come.
    Due,
    /// Those, too, that the collector does not know.
    Unknown,
}

#[derive(Default)]
struct State {
    /// By number; the first one is always there.
    outlets: BTreeMap<u32, Outlet>,
    reports: BTreeMap<ReportKey, Report>,
    next_report: u32,
    /// The number of each stream's next template. None is used twice (RFC 7011, 8.1: a collector may still know the old one).
    next_template: BTreeMap<(u32, u16), u16>,
    /// Domain and port of classifier streams.
    classify: Option<(u32, u16)>,
}

/// What became of messages and records, by exporter.
struct Counts {
    messages: Simple,
    records: Simple,
    lost: Simple,
}

/// IPFIX of this router.
pub struct Ipfix {
    graph: Rc<Graph>,
    fib: Rc<Fib>,
    state: RefCell<State>,
    counts: Counts,
    bell: Sender<()>,
    heard: Receiver<()>,
}

impl Ipfix {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let counter = |name: &str| {
            let counter = graph.counters().simple(&format!("/ipfix/{name}"), MOST_EXPORTERS)?;
            counter.ensure(MOST_EXPORTERS);
            Ok::<_, InitError>(counter)
        };
        let (messages, records, lost) = (counter("messages")?, counter("records")?, counter("lost")?);
        let (bell, heard) = channel(1);
        let mut state = State::default();
        state.outlets.insert(0, Outlet::new(Exporter::OFF));
        Ok(Rc::new(Ipfix {
            fib: control.get::<Fib>()?,
            state: RefCell::new(state),
            counts: Counts { messages, records, lost },
            bell,
            heard,
            graph,
        }))
    }

    pub(crate) fn heard(&self) -> Receiver<()> {
        self.heard.clone()
    }

    fn ring(&self) {
        // A bell that rings already is heard.
        let _ = self.bell.try_send(());
    }

    fn check(&self, exporter: &Exporter) -> Result<(), IpfixError> {
        exporter.check()?;
        self.table(exporter)?;
        Ok(())
    }

    fn table(&self, exporter: &Exporter) -> Result<FibIndex, FibError> {
        let family = if exporter.collector.is_ipv4() { Family::Ip4 } else { Family::Ip6 };
        self.fib.index_of(family, exporter.vrf.unwrap_or(0))
    }

    fn put(&self, index: u32, exporter: Exporter) {
        let mut state = self.state.borrow_mut();
        let outlet = state.outlets.entry(index).or_insert_with(|| Outlet::new(exporter));
        // Another collector has seen no record yet.
        if (outlet.exporter.collector, outlet.exporter.port) != (exporter.collector, exporter.port) {
            outlet.streams.clear();
        }
        outlet.exporter = exporter;
        outlet.told.clear();
        outlet.since = self.graph.clock().now();
        drop(state);
        self.ring();
    }

    /// Says where the first exporter sends; [`Exporter::OFF`] for nowhere.
    ///
    /// # Errors
    /// A setting is out of its range, or there is no such table.
    pub fn set(&self, exporter: Exporter) -> Result<(), IpfixError> {
        if exporter.is_on() {
            self.check(&exporter)?;
            self.put(0, exporter);
        } else {
            self.put(0, Exporter::OFF);
        }
        Ok(())
    }

    /// Adds an exporter, or changes the one to this collector; tells its number.
    ///
    /// # Errors
    /// A setting is out of its range, there is no such table, or there are as many exporters as there may be.
    pub fn add(&self, exporter: Exporter) -> Result<u32, IpfixError> {
        if !exporter.is_on() {
            return Err(IpfixError::NoCollector);
        }
        self.check(&exporter)?;
        let index = self.index_of(exporter.collector);
        let free = || (1..MOST_EXPORTERS as u32).find(|at| !self.state.borrow().outlets.contains_key(at));
        let index = index.or_else(free).ok_or(IpfixError::TooMany)?;
        self.put(index, exporter);
        Ok(index)
    }

    /// Removes the exporter to a collector; tells the number it had. What waits is sent before.
    ///
    /// # Errors
    /// There is none, or it is the first one.
    pub fn remove(&self, collector: IpAddr) -> Result<u32, IpfixError> {
        match self.index_of(collector).filter(|_| !collector.is_unspecified()) {
            None => Err(IpfixError::NoExporter(collector)),
            Some(0) => Err(IpfixError::First(collector)),
            Some(index) => {
                self.flush();
                self.state.borrow_mut().outlets.remove(&index);
                Ok(index)
            }
        }
    }

    fn index_of(&self, collector: IpAddr) -> Option<u32> {
        let state = self.state.borrow();
        state.outlets.iter().find(|(_, o)| o.exporter.collector == collector).map(|(index, _)| *index)
    }

    /// Exporters from a number on, in order; the first one also while it sends nothing.
    pub fn exporters(&self, from: u32) -> Vec<(u32, Exporter)> {
        let state = self.state.borrow();
        state.outlets.range(from..).map(|(index, outlet)| (*index, outlet.exporter)).collect()
    }

    /// What an exporter has sent: messages, data records, and records that were lost.
    pub fn sent(&self, index: u32) -> (u64, u64, u64) {
        let Counts { messages, records, lost } = &self.counts;
        let at = index as usize;
        (messages.sum(at), records.sum(at), lost.sum(at))
    }

    /// Adds a template; exporters learn it with the first record, by [`Ipfix::flush`], or after five seconds.
    pub fn add_report(&self, template: Template) -> ReportKey {
        let mut state = self.state.borrow_mut();
        let next =
            state.next_template.entry((template.domain, template.source_port)).or_insert(FIRST_TEMPLATE);
        let id = *next;
        *next = next.checked_add(1).unwrap_or(FIRST_TEMPLATE);
        let key = ReportKey(state.next_report);
        state.next_report = state.next_report.wrapping_add(1);
        let since = self.graph.clock().now();
        state.reports.insert(key, Report { id, template, since });
        drop(state);
        self.ring();
        key
    }

    /// Removes a template. Records that wait are sent before. Over UDP collectors get no message about it (RFC 7011,
    /// 8.1).
    pub fn remove_report(&self, key: ReportKey) {
        let now = self.graph.clock().now();
        let mut state = self.state.borrow_mut();
        let State { outlets, reports, .. } = &mut *state;
        let Some(Report { id, template, .. }) = reports.get(&key) else { return };
        let of = (template.domain, template.source_port);
        for (index, outlet) in outlets.iter_mut().filter(|(_, outlet)| outlet.exporter.is_on()) {
            let waiting = outlet.streams.get_mut(&of).and_then(|stream| stream.waiting.remove(id));
            let Some(Waiting { message, since: Some(_) }) = waiting else { continue };
            self.tell_templates(*index, outlet, reports, (now, Which::Unknown));
            let stream = outlet.streams.entry(of).or_default();
            self.send(*index, &outlet.exporter, of, (&mut stream.sequence, message));
        }
        reports.remove(&key);
        for outlet in outlets.values_mut() {
            outlet.told.remove(&key);
        }
    }

    /// Whether a record would be sent to anyone.
    pub fn is_on(&self) -> bool {
        self.state.borrow().outlets.values().any(|outlet| outlet.exporter.is_on())
    }

    /// Sends a record to all exporters, within a second. One whose length is not its template's, or that fits no packet, is lost
    /// and counted.
    pub fn record(&self, key: ReportKey, record: &[u8]) {
        let now = self.graph.clock().now();
        let mut state = self.state.borrow_mut();
        let State { outlets, reports, .. } = &mut *state;
        let Some(Report { id, template, .. }) = reports.get(&key) else { return };
        let stream_key = (template.domain, template.source_port);
        let mut first = false;
        for (index, outlet) in outlets.iter_mut().filter(|(_, outlet)| outlet.exporter.is_on()) {
            let most = outlet.exporter.most();
            let fits = record.len() == template.record_len() && HEADER + 4 + record.len() <= most;
            if !fits {
                self.counts.lost.add(0, *index as usize, 1);
                continue;
            }
            let stream = outlet.streams.entry(stream_key).or_default();
            let waiting = stream.waiting.entry(*id).or_default();
            if waiting.message.add(*id, record, most).is_err() {
                let message = std::mem::take(waiting).message;
                self.tell_templates(*index, outlet, reports, (now, Which::Unknown));
                let stream = outlet.streams.entry(stream_key).or_default();
                self.send(*index, &outlet.exporter, stream_key, (&mut stream.sequence, message));
            }
            let stream = outlet.streams.entry(stream_key).or_default();
            let waiting = stream.waiting.entry(*id).or_default();
            if waiting.since.is_none() && waiting.message.records() == 0 {
                // An empty message has room for a record that fits one.
                let _ = waiting.message.add(*id, record, most);
            }
            first |= waiting.since.is_none();
            waiting.since.get_or_insert(now);
        }
        drop(state);
        if first {
            self.ring();
        }
    }

    /// Sends templates and records that wait.
    pub fn flush(&self) {
        let now = self.graph.clock().now();
        let mut state = self.state.borrow_mut();
        let State { outlets, reports, .. } = &mut *state;
        for (index, outlet) in outlets.iter_mut().filter(|(_, outlet)| outlet.exporter.is_on()) {
            self.tell_templates(*index, outlet, reports, (now, Which::Unknown));
            self.send_waiting(*index, outlet, |_| true);
        }
    }

    /// Sends what is due; tells when there is more.
    pub(crate) fn tick(&self) -> Time {
        let now = self.graph.clock().now();
        let mut next = now.after(LONGEST);
        let mut state = self.state.borrow_mut();
        let State { outlets, reports, .. } = &mut *state;
        for (index, outlet) in outlets.iter_mut().filter(|(_, outlet)| outlet.exporter.is_on()) {
            let is_due = |since: Time| now.since(since) >= PATIENCE;
            let mut waiting = outlet.streams.values().flat_map(|stream| stream.waiting.values());
            let goes = waiting.any(|waiting| waiting.since.is_some_and(is_due));
            let which = if goes { Which::Unknown } else { Which::Due };
            self.tell_templates(*index, outlet, reports, (now, which));
            let due = reports.iter().map(|(key, report)| outlet.due(*key, report.since));
            next = due.fold(next, Time::min);
            self.send_waiting(*index, outlet, is_due);
            let waiting = outlet.streams.values().flat_map(|stream| stream.waiting.values());
            next = waiting
                .filter_map(|waiting| waiting.since)
                .fold(next, |next, since| next.min(since.after(PATIENCE)));
        }
        next
    }

    /// Sends an exporter's templates.
    fn tell_templates(
        &self,
        index: u32,
        outlet: &mut Outlet,
        reports: &BTreeMap<ReportKey, Report>,
        (now, which): (Time, Which),
    ) {
        let most = outlet.exporter.most();
        for (report, Report { id, template, since }) in reports {
            let is_unknown = which == Which::Unknown && !outlet.told.contains_key(report);
            if !is_unknown && now < outlet.due(*report, *since) {
                continue;
            }
            outlet.told.insert(*report, now);
            let key = (template.domain, template.source_port);
            let stream = outlet.streams.entry(key).or_default();
            let mut message = Message::default();
            if message.add(TEMPLATES, &template.bytes(*id), most).is_ok() {
                self.send(index, &outlet.exporter, key, (&mut stream.sequence, message));
            } else {
                self.counts.lost.add(0, index as usize, 1);
            }
        }
    }

    /// Sends records that wait since a moment that `is_due` picks. Each template's are in messages of their own, as are templates: some
    /// collectors look at a message's first set only.
    fn send_waiting(&self, index: u32, outlet: &mut Outlet, is_due: impl Fn(Time) -> bool) {
        for (key, stream) in &mut outlet.streams {
            for waiting in stream.waiting.values_mut() {
                if waiting.since.is_some_and(&is_due) {
                    let message = std::mem::take(waiting).message;
                    self.send(index, &outlet.exporter, *key, (&mut stream.sequence, message));
                }
            }
        }
    }

    fn send(
        &self,
        index: u32,
        exporter: &Exporter,
        (domain, port): (u32, u16),
        (sequence, mut message): (&mut u32, Message),
    ) {
        let (clock, records) = (self.graph.clock(), message.records());
        let wall = clock.wall(clock.now()).duration_since(SystemTime::UNIX_EPOCH);
        let seconds = wall.map_or(0, |wall| wall.as_secs() as u32);
        let bytes = message.take(seconds, *sequence, domain);
        // RFC 7011, 3.1: records, whether or not they arrive.
        *sequence = sequence.wrapping_add(records);
        let sent = self.table(exporter).map_err(|e| e.to_string()).and_then(|table| {
            let datagram = Datagram {
                source: (exporter.source, port),
                destination: (exporter.collector, exporter.port),
                table,
                hops: TTL,
                tos: 0,
                checksum: exporter.checksum,
            };
            datagram.send(&self.graph, &bytes).map_err(|e| e.to_string())
        });
        let at = index as usize;
        match sent {
            Ok(()) => {
                self.counts.messages.add(0, at, 1);
                self.counts.records.add(0, at, records.into());
            }
            Err(e) => {
                tracing::debug!("an IPFIX message was not sent: {e}");
                self.counts.lost.add(0, at, records.into());
            }
        }
    }

    /// Says in which stream records of classifier tables are to be.
    pub fn set_classify_stream(&self, domain: u32, port: u16) {
        self.state.borrow_mut().classify = Some((domain, port));
    }

    /// They are to be in none.
    pub fn forget_classify_stream(&self) {
        self.state.borrow_mut().classify = None;
    }

    /// In which stream they are to be, if one was given.
    pub fn classify_stream(&self) -> Option<(u32, u16)> {
        self.state.borrow().classify
    }
}

impl Exporter {
    /// Settings as VPP's clients send them: all bits set for what is usual.
    pub(crate) fn with_usual(mut self) -> Self {
        let all = u32::MAX;
        if self.port == u16::MAX {
            self.port = PORT;
        }
        for (value, usual) in [(&mut self.path_mtu, PATH_MTU), (&mut self.template_interval, INTERVAL)] {
            if *value == all {
                *value = usual;
            }
        }
        self
    }
}
