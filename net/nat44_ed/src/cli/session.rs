//! Sessions: shown, counted, ended.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::{Serialize, Serializer};
use serde_json::json;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Listing, Output, Page};
use shoal_nat::Tuple;
use shoal_nat::tuple::{ICMP, TCP, UDP};

use super::{Endpoint, nat, protocol, refused};
use crate::session_direction::Marks;
use crate::sessions::{Record, TICKS};
use crate::show::{Flow, Proto};
use crate::{Nat44, Slice};

pub(super) const SHOW: Command = Command::new(
    "show nat44 sessions [filter {i2o | o2i} {saddr <saddr:ip4-address> | sport <sport:u16> | daddr <daddr:ip4-address> | \
     dport <dport:u16> | proto <proto:word>} ...]",
    "Show sessions",
    show,
)
.examples(&["show nat44 sessions", "show nat44 sessions filter i2o saddr 10.0.0.5"]);

pub(super) const SUMMARY: Command =
    Command::new("show nat44 summary", "Show how many sessions there are, of which kind", summary)
        .examples(&["show nat44 summary"]);

pub(super) const DEL: Command = Command::new(
    "nat44 del session {in | out} <host:word> {tcp | udp | icmp} external-host <external-host:word> [vrf <vrf:u32>]",
    "End a session",
    del,
)
.doc("`host` and `external-host` are addresses with ports, as the session's tuple has them on one side.");

pub(super) const CLEAR: Command =
    Command::new("clear nat44 ed sessions", "End all sessions", clear).examples(&["clear nat44 ed sessions"]);

/// What is looked for.
#[derive(Clone, Default)]
struct Filter {
    o2i: bool,
    saddr: Option<u32>,
    sport: Option<u16>,
    daddr: Option<u32>,
    dport: Option<u16>,
    proto: Option<u8>,
}

impl Filter {
    fn of(args: &Args) -> Result<Option<Filter>, CliError> {
        if !args.has("filter") {
            return Ok(None);
        }
        let proto = args.text("proto").map(|text| match text {
            "tcp" | "TCP" => Ok(TCP),
            "udp" | "UDP" => Ok(UDP),
            "icmp" | "ICMP" => Ok(ICMP),
            other => {
                other.parse().map_err(|_| CliError::argument("proto", "expected tcp, udp, icmp or a number"))
            }
        });
        Ok(Some(Filter {
            o2i: args.has("o2i"),
            saddr: args.opt::<Ipv4Addr>("saddr")?.map(Ipv4Addr::to_bits),
            sport: args.opt("sport")?,
            daddr: args.opt::<Ipv4Addr>("daddr")?.map(Ipv4Addr::to_bits),
            dport: args.opt("dport")?,
            proto: proto.transpose()?,
        }))
    }

    fn fits(&self, record: &Record) -> bool {
        let flow = if self.o2i { Flow::o2i(&record.session) } else { Flow::i2o(&record.session) };
        let from = flow.from;
        self.saddr.is_none_or(|a| a == from.src)
            && self.sport.is_none_or(|p| p == from.sport)
            && self.daddr.is_none_or(|a| a == from.dst)
            && self.dport.is_none_or(|p| p == from.dport)
            && self.proto.is_none_or(|p| p == flow.protocol)
    }
}

fn port(f: &mut fmt::Formatter<'_>, protocol: u8, port: u16) -> fmt::Result {
    if matches!(protocol, TCP | UDP | ICMP) { write!(f, " port {port}") } else { Ok(()) }
}

/// A session as it is shown.
struct SessionRow<'a> {
    record: &'a Record,
    /// Ticks that it may be silent.
    timeout: u32,
}

impl SessionRow<'_> {
    fn kinds(&self) -> impl Iterator<Item = &'static str> + use<> {
        let marks = Marks(self.record.session.marks);
        [
            (Marks::BYPASS, "forwarding-bypass"),
            (Marks::BALANCED, "load-balancing"),
            (Marks::TWICE, "twice-nat"),
            (Marks::HAIRPIN, "hairpinning"),
        ]
        .into_iter()
        .filter(move |(mark, _)| marks.has(*mark))
        .map(|(_, word)| word)
    }

    fn made(&self) -> &'static str {
        if Marks(self.record.session.marks).has(Marks::STATIC) { "static" } else { "dynamic" }
    }

    fn seconds(&self) -> f64 {
        f64::from(self.record.age) / TICKS as f64
    }
}

impl fmt::Display for SessionRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.record;
        let session = &record.session;
        let (inside, outside, protocol) = (session.inside, session.outside, session.protocol);
        let proto = Proto(protocol);
        write!(f, "    i2o {} proto {proto}", inside.source().0)?;
        port(f, protocol, inside.sport)?;
        writeln!(f, " fib {}", session.inside_table)?;
        write!(f, "    o2i {} proto {proto}", outside.source().0)?;
        port(f, protocol, outside.sport)?;
        writeln!(f, " fib {}", session.outside_table)?;
        let ((host, hport), (seen, sport)) = (outside.destination(), inside.destination());
        if Marks(session.marks).has(Marks::TWICE) {
            writeln!(f, "       external host o2i {host}:{hport} i2o {seen}:{sport}")?;
        } else {
            writeln!(f, "       external host {host}:{hport}")?;
        }
        writeln!(f, "       i2o flow: {}", Flow::i2o(session))?;
        writeln!(f, "       o2i flow: {}", Flow::o2i(session))?;
        writeln!(f, "       index {}", record.index)?;
        if protocol == TCP {
            writeln!(f, "       state {}", record.states.0.name())?;
        }
        writeln!(f, "       last heard {:.2} seconds ago", self.seconds())?;
        if self.timeout > record.age {
            writeln!(f, "       timeout in {:.2}", f64::from(self.timeout - record.age) / TICKS as f64)?;
        } else {
            writeln!(f, "       timed out")?;
        }
        writeln!(f, "       total pkts {}, total bytes {}", record.packets, record.bytes)?;
        writeln!(f, "       {} translation", self.made())?;
        for kind in self.kinds() {
            writeln!(f, "       {kind}")?;
        }
        writeln!(f)
    }
}

impl Serialize for SessionRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (record, session) = (self.record, &self.record.session);
        let tuple = |tuple: Tuple| {
            let ((src, sport), (dst, dport)) = (tuple.source(), tuple.destination());
            json!({ "source": src, "source_port": sport, "destination": dst, "destination_port": dport })
        };
        let row = json!({
            "inside": tuple(session.inside), "inside_fib": session.inside_table,
            "outside": tuple(session.outside), "outside_fib": session.outside_table,
            "protocol": Proto(session.protocol).to_string(), "index": record.index,
            "state": (session.protocol == TCP).then(|| record.states.0.name()),
            "last_heard": self.seconds(), "is_timed_out": record.age >= self.timeout,
            "packets": record.packets, "bytes": record.bytes,
            "translation": self.made(), "kinds": self.kinds().collect::<Vec<_>>(),
        });
        row.serialize(serializer)
    }
}

/// Sessions, some at a time.
struct Sessions {
    nat: Rc<Nat44>,
    filter: Option<Filter>,
    counts: BTreeMap<usize, usize>,
    /// Threads that come next, the next one last.
    threads: Vec<usize>,
    /// Where to go on.
    at: Option<Slice>,
    /// Sessions of the thread that were shown.
    shown: usize,
    began: bool,
}

impl Sessions {
    fn begin_thread(&mut self, thread: usize, page: &mut Page) {
        let (total, name) = (self.counts.get(&thread).copied().unwrap_or(0), self.nat.thread_name(thread));
        page.text(format_args!("-------- thread {thread} {name}: {total} sessions --------\n"));
        page.object();
        for (key, value) in [("thread", thread), ("total", total)] {
            page.key(key);
            page.value(&value);
        }
        page.key("name");
        page.value(&name);
        page.key("sessions");
        page.array();
        (self.at, self.shown) = (Some(Slice { thread, from: 0 }), 0);
    }

    fn end_thread(&mut self, thread: usize, page: &mut Page) {
        if self.filter.is_some() {
            let (total, shown) = (self.counts.get(&thread).copied().unwrap_or(0), self.shown);
            let left = total.saturating_sub(shown);
            page.text(format_args!(
                "Showed: {shown}, Filtered: {left} of total {total} sessions of thread {thread}\n"
            ));
        }
        if page.is_json() {
            page.close();
            page.close();
        }
    }
}

impl Listing for Sessions {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if let Some(slice) = self.at {
            let wanted = self.filter.clone();
            let fits = move |record: &Record| wanted.as_ref().is_none_or(|filter| filter.fits(record));
            // A thread that does not answer has nothing to show.
            let (records, next) = self.nat.slice(slice, fits).unwrap_or_default();
            for record in &records {
                page.row(&SessionRow { record, timeout: self.nat.timeout_of(record) });
            }
            self.shown += records.len();
            self.at = next;
            if next.is_none() {
                self.end_thread(slice.thread, page);
            }
            return ControlFlow::Continue(());
        }
        if !self.began {
            self.began = true;
            page.text("NAT44 ED sessions:\n");
            page.array();
        }
        match self.threads.pop() {
            Some(thread) => {
                self.begin_thread(thread, page);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (nat, filter) = (nat(control)?, Filter::of(args)?);
    let counts = nat.counts().map_err(refused)?;
    let mut threads = nat.threads();
    threads.reverse();
    Ok(Output::listing(Sessions { nat, filter, counts, threads, at: None, shown: 0, began: false }))
}

/// Sessions, and those of them whose time is over.
#[derive(Clone, Copy, Default)]
struct Counted {
    total: u32,
    dead: u32,
}

impl Counted {
    fn add(&mut self, dead: bool) {
        self.total += 1;
        self.dead += u32::from(dead);
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (timed out: {})", self.total, self.dead)
    }
}

fn summary(control: &Control, _: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let most = nat.enabled().map_or(0, |on| on.sessions);
    let (mut all, mut tcp, mut open, mut others) =
        (Counted::default(), Counted::default(), Counted::default(), [Counted::default(); 3]);
    for (_, record) in nat.sessions(|_| true).map_err(refused)? {
        let dead = record.age >= nat.timeout_of(&record);
        all.add(dead);
        let [udp, icmp, other] = &mut others;
        match record.session.protocol {
            TCP => {
                tcp.add(dead);
                if record.states.0.is_established() {
                    open.add(dead);
                }
            }
            UDP => udp.add(dead),
            ICMP => icmp.add(dead),
            _ => other.add(dead),
        }
    }
    let opening = Counted { total: tcp.total - open.total, dead: tcp.dead - open.dead };
    let [udp, icmp, other] = others;
    let mut text = String::new();
    let mut write = || {
        writeln!(text, "max translations per thread: {most} fib 0")?;
        for (vrf, limit) in nat.limits() {
            writeln!(text, "max translations per thread: {limit} vrf {vrf}")?;
        }
        writeln!(text, "total sessions: {all}")?;
        writeln!(text, "tcp sessions:\n    total: {tcp}")?;
        writeln!(text, "        established: {open}\n        transitory: {opening}")?;
        for (name, count) in [("udp", udp), ("icmp", icmp), ("other", other)] {
            writeln!(text, "{name} sessions:\n    total: {count}")?;
        }
        Ok::<(), fmt::Error>(())
    };
    write().map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::text(text))
}

fn del(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (Endpoint(host, port), Endpoint(other, other_port)) = (args.get("host")?, args.get("external-host")?);
    let (protocol, vrf) = (protocol(args), args.or("vrf", 0)?);
    nat(control)?.del_session((host, port), (other, other_port), protocol, vrf).map_err(refused)?;
    Ok(Output::none())
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    nat(control)?.clear_sessions().map_err(refused)?;
    Ok(Output::none())
}
