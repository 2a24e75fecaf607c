//! Sessions: shown, counted, ended.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::net::Ipv4Addr;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
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

/// A thread as it is shown.
#[derive(Serialize)]
struct ThreadView {
    thread: usize,
    name: String,
    total: usize,
    users: Vec<UserView>,
}

#[derive(Serialize)]
struct SessionsView(Vec<ThreadView>);

impl fmt::Display for SessionsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "NAT44 sessions:")?;
        for ThreadView { thread, name, total, users } in &self.0 {
            writeln!(f, "-------- thread {thread} {name}: {total} sessions --------")?;
            for UserView { address, dynamic, statics, sessions, .. } in users {
                writeln!(f, "  {address}: {dynamic} dynamic translations, {statics} static translations")?;
                sessions.iter().try_for_each(|session| write!(f, "{session}"))?;
            }
        }
        Ok(())
    }
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let counts = nat.counts().map_err(refused)?;
    let mut of_host: BTreeMap<(usize, u32, u32), Vec<SessionView>> = BTreeMap::new();
    if args.has("detail") {
        for (thread, record) in nat.sessions(|_| true).map_err(refused)? {
            let vrf = nat.vrf_of_table(record.session.inside_table);
            let key = (thread, vrf, record.session.inside.0);
            of_host.entry(key).or_default().push(SessionView::of(&record));
        }
    }
    let mut threads: Vec<ThreadView> = counts
        .into_iter()
        .map(|(thread, total)| ThreadView { thread, name: nat.thread_name(thread), total, users: Vec::new() })
        .collect();
    for Listed { address, vrf, thread, sessions: dynamic, statics } in nat.users().map_err(refused)? {
        let sessions = of_host.remove(&(thread, vrf, address.to_bits())).unwrap_or_default();
        if let Some(view) = threads.iter_mut().find(|view| view.thread == thread) {
            view.users.push(UserView { address, vrf, dynamic, statics, sessions });
        }
    }
    let serves = nat.threads();
    threads.retain(|view| serves.contains(&view.thread));
    Ok(Output::view(SessionsView(threads)))
}

fn count(nat: &Nat44Ei, what: impl Fn(&Record) -> bool) -> Result<usize, CliError> {
    Ok(nat.sessions(|_| true).map_err(refused)?.iter().filter(|(_, record)| what(record)).count())
}

fn summary(control: &Control, _: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let most = nat.enabled().map_or(0, |on| on.sessions);
    let of = |protocol: u8| count(&nat, |record| record.session.protocol == protocol);
    let (tcp, udp, icmp) = (of(TCP)?, of(UDP)?, of(ICMP)?);
    let open = count(&nat, |record| record.session.protocol == TCP && record.is_answered)?;
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
