//! Sessions: shown, counted, ended.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Listing, Output, Page};
use shoal_nat::tuple::{ICMP, TCP, UDP};

use super::{Endpoint, nat, protocol, refused, text};
use crate::sessions::{Record, TICKS};
use crate::{Listed, Nat44Ei};

pub(super) const SHOW: Command =
    Command::new("show nat44 ei sessions [detail]", "Show hosts and their sessions", show)
        .examples(&["show nat44 ei sessions", "show nat44 ei sessions detail"])
        .doc("Without `detail` only how many each host has.");

pub(super) const SUMMARY: Command =
    Command::new("show nat44 ei summary", "Show how many sessions there are, of which kind", summary)
        .examples(&["show nat44 ei summary"]);

pub(super) const DEL: Command = Command::new(
    "nat44 ei del session {in | out} <end:word> {tcp | udp | icmp} [vrf <vrf:u32>]",
    "End a session",
    del,
)
.doc("`end` is an address with a port: a host's after `in`, what stands for it after `out`.");

pub(super) const DEL_USER: Command = Command::new(
    "nat44 ei del user <host:ip4-address> [fib <fib:u32>]",
    "End all sessions of a host",
    del_user,
)
.doc("`fib` is the index of the host's table.");

pub(super) const CLEAR: Command =
    Command::new("clear nat44 ei sessions", "End all sessions", clear).examples(&["clear nat44 ei sessions"]);

fn proto(protocol: u8) -> &'static str {
    match protocol {
        TCP => "tcp",
        UDP => "udp",
        ICMP => "icmp",
        _ => "unknown",
    }
}

/// A session as it is shown.
#[derive(Serialize)]
struct SessionView {
    inside: Ipv4Addr,
    inside_port: u16,
    inside_fib: u32,
    outside: Ipv4Addr,
    outside_port: u16,
    outside_fib: u32,
    protocol: &'static str,
    index: u32,
    is_static: bool,
    packets: u32,
    bytes: u64,
    /// Seconds since its last packet.
    last_heard: f64,
}

impl SessionView {
    fn of(record: &Record) -> Self {
        let session = &record.session;
        SessionView {
            inside: session.inside.0.into(),
            inside_port: session.inside.1,
            inside_fib: session.inside_table,
            outside: session.outside.0.into(),
            outside_port: session.outside.1,
            outside_fib: session.outside_table,
            protocol: proto(session.protocol),
            index: record.index,
            is_static: session.is_static,
            packets: record.packets,
            bytes: record.bytes,
            last_heard: f64::from(record.age) / TICKS as f64,
        }
    }
}

impl fmt::Display for SessionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let proto = self.protocol;
        writeln!(
            f,
            "    i2o {} proto {proto} port {} fib {}",
            self.inside, self.inside_port, self.inside_fib
        )?;
        writeln!(
            f,
            "  o2i {} proto {proto} port {} fib {}",
            self.outside, self.outside_port, self.outside_fib
        )?;
        writeln!(f, "       index {}", self.index)?;
        writeln!(f, "       last heard {:.2} seconds ago", self.last_heard)?;
        writeln!(f, "       total pkts {}, total bytes {}", self.packets, self.bytes)?;
        writeln!(f, "       {} translation\n", if self.is_static { "static" } else { "dynamic" })
    }
}

/// A host as it is shown.
#[derive(Serialize)]
struct UserView {
    address: Ipv4Addr,
    vrf: u32,
    dynamic: u32,
    statics: u32,
    sessions: Vec<SessionView>,
}

impl fmt::Display for UserView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UserView { address, dynamic, statics, sessions, .. } = self;
        writeln!(f, "  {address}: {dynamic} dynamic translations, {statics} static translations")?;
        sessions.iter().try_for_each(|session| write!(f, "{session}"))
    }
}

/// Hosts and their sessions, a host at a time.
struct Hosts {
    nat: Rc<Nat44Ei>,
    detail: bool,
    counts: BTreeMap<usize, usize>,
    /// Threads whose hosts come next, the next one last.
    threads: Vec<usize>,
    /// Hosts of the thread that come next, the next one last.
    users: Vec<Listed>,
    began: bool,
}

impl Hosts {
    fn begin_thread(&mut self, thread: usize, page: &mut Page) {
        if self.began {
            page.close();
            page.close();
        }
        self.began = true;
        let (total, name) = (self.counts.get(&thread).copied().unwrap_or(0), self.nat.thread_name(thread));
        page.text(format_args!("-------- thread {thread} {name}: {total} sessions --------\n"));
        page.object();
        for (key, value) in [("thread", thread), ("total", total)] {
            page.key(key);
            page.value(&value);
        }
        page.key("name");
        page.value(&name);
        page.key("users");
        page.array();
        let mut users = self.nat.users_of(thread).unwrap_or_default();
        users.reverse();
        self.users = users;
    }
}

impl Listing for Hosts {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if let Some(user) = self.users.pop() {
            let records =
                if self.detail { self.nat.sessions_of_user(&user).unwrap_or_default() } else { Vec::new() };
            let Listed { address, vrf, sessions: dynamic, statics, .. } = user;
            let sessions = records.iter().map(SessionView::of).collect();
            page.row(&UserView { address, vrf, dynamic, statics, sessions });
            return ControlFlow::Continue(());
        }
        if !self.began {
            page.text("NAT44 sessions:\n");
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
    let nat = nat(control)?;
    let counts = nat.counts().map_err(refused)?;
    let mut threads = nat.threads();
    threads.reverse();
    let (detail, users, began) = (args.has("detail"), Vec::new(), false);
    Ok(Output::listing(Hosts { nat, detail, counts, threads, users, began }))
}

fn summary(control: &Control, _: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let most = nat.enabled().map_or(0, |on| on.sessions);
    let (mut tcp, mut open, mut udp, mut icmp) = (0, 0, 0, 0);
    nat.each_session(|record| match record.session.protocol {
        TCP => {
            tcp += 1;
            open += u32::from(record.is_answered);
        }
        UDP => udp += 1,
        _ => icmp += 1,
    })
    .map_err(refused)?;
    text(|f| {
        writeln!(f, "max translations per thread: {most}")?;
        writeln!(f, "total sessions: {}", tcp + udp + icmp)?;
        writeln!(f, "total tcp sessions: {tcp}")?;
        writeln!(f, "total tcp established sessions: {open}")?;
        writeln!(f, "total tcp transitory sessions: {}", tcp - open)?;
        writeln!(f, "total udp sessions: {udp}")?;
        writeln!(f, "total icmp sessions: {icmp}")
    })
}

fn del(control: &Control, args: &Args) -> Result<Output, CliError> {
    let Endpoint(address, port) = args.get("end")?;
    nat(control)?
        .del_session((address, port), args.has("in"), protocol(args), args.or("vrf", 0)?)
        .map_err(refused)?;
    Ok(Output::none())
}

fn del_user(control: &Control, args: &Args) -> Result<Output, CliError> {
    nat(control)?.del_user(args.get("host")?, args.or("fib", 0)?).map_err(refused)?;
    Ok(Output::none())
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    nat(control)?.clear_sessions().map_err(refused)?;
    Ok(Output::none())
}
