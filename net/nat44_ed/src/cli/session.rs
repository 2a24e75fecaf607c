//! Sessions: shown, counted, ended.

use std::fmt::{self, Write};
use std::net::Ipv4Addr;

use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_nat::tuple::{ICMP, TCP, UDP};

use super::{Endpoint, nat, protocol, refused};
use crate::Nat44;
use crate::sessions::{Record, TICKS};
use crate::show::{Flow, Proto};
use crate::way::Marks;

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

fn port(f: &mut String, protocol: u8, port: u16) -> fmt::Result {
    if matches!(protocol, TCP | UDP | ICMP) { write!(f, " port {port}") } else { Ok(()) }
}

fn one(f: &mut String, nat: &Nat44, record: &Record) -> fmt::Result {
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
    let marks = Marks(session.marks);
    if marks.has(Marks::TWICE) {
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
    let (age, most) = (f64::from(record.age), f64::from(nat.timeout_of(record)));
    let ticks = TICKS as f64;
    writeln!(f, "       last heard {:.2} seconds ago", age / ticks)?;
    if most > age {
        writeln!(f, "       timeout in {:.2}", (most - age) / ticks)?;
    } else {
        writeln!(f, "       timed out")?;
    }
    writeln!(f, "       total pkts {}, total bytes {}", record.packets, record.bytes)?;
    let made = if marks.has(Marks::STATIC) { "static" } else { "dynamic" };
    writeln!(f, "       {made} translation")?;
    for (mark, word) in [
        (Marks::BYPASS, "forwarding-bypass"),
        (Marks::BALANCED, "load-balancing"),
        (Marks::TWICE, "twice-nat"),
        (Marks::HAIRPIN, "hairpinning"),
    ] {
        if marks.has(mark) {
            writeln!(f, "       {word}")?;
        }
    }
    writeln!(f)
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (nat, filter) = (nat(control)?, Filter::of(args)?);
    let counts = nat.counts().map_err(refused)?;
    let wanted = filter.clone();
    let fits = move |record: &Record| wanted.as_ref().is_none_or(|filter| filter.fits(record));
    let all = nat.sessions(fits).map_err(refused)?;
    let mut text = "NAT44 ED sessions:\n".to_owned();
    let written = nat.threads().into_iter().try_for_each(|thread| {
        let total = counts.get(&thread).copied().unwrap_or(0);
        writeln!(text, "-------- thread {thread} {}: {total} sessions --------", nat.thread_name(thread))?;
        let mut shown = 0;
        for (_, record) in all.iter().filter(|(of, _)| *of == thread) {
            one(&mut text, &nat, record)?;
            shown += 1;
        }
        if filter.is_some() {
            let left = total.saturating_sub(shown);
            writeln!(text, "Showed: {shown}, Filtered: {left} of total {total} sessions of thread {thread}")?;
        }
        Ok::<(), fmt::Error>(())
    });
    written.map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::text(text))
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
