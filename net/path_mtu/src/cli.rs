//! Commands: `set ip pmtu`, `set ip pmtu-learning`, `show ip pmtu`.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use shoal_graph::clock::Time;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Learning, Learnt, PathMtuError, PathMtus};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set ip pmtu <peer:ip-address> {<mtu:u32> | del} [table <table:u32>]",
        "Say how long packets to a host may be",
        set,
    )
    .examples(&["set ip pmtu 192.0.2.1 1400", "set ip pmtu 2001:db8::1 1280 table 0"])
    .doc(
        "IPv4 packets to the host that are longer are cut, unless that is forbidden; the senders of others are told \
         (fragmentation needed, packet too big). The way there follows the routes as before; packets to others are not \
         concerned.",
    ),
    Command::new(
        "set ip pmtu-learning {on | off} [lifetime <lifetime:u32>] [least <least:u16>]",
        "Say whether path MTUs are learnt from ICMP errors about packets of the router itself",
        learning,
    )
    .examples(&["set ip pmtu-learning on lifetime 900", "set ip pmtu-learning off", "set ip pmtu-learning on"])
    .doc(
        "`lifetime`: seconds until what was learnt is forgotten (600). `least`: no way of IPv4 is believed to carry \
         less (552); of IPv6 no error is believed that says less than 1280. What is not named is as at the start. `off` \
         forgets what was learnt.",
    ),
    Command::new("show ip pmtu", "Show how long packets to hosts may be, and since when that is known", show)
        .examples(&["show ip pmtu"]),
];

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let all = control.get::<PathMtus>()?;
    let (peer, table) = (args.get::<IpAddr>("peer")?, args.opt::<u32>("table")?.unwrap_or(0));
    let done = if args.has("del") {
        all.delete(table, peer)
    } else {
        let mtu = args.get::<u32>("mtu")?;
        let fits = u16::try_from(mtu).map_err(|_| {
            CliError::argument("mtu", format!("path MTU {mtu} is not possible: 65535 at most, nearest 65535"))
                .nearest(Some("65535".into()))
        })?;
        all.update(table, peer, fits)
    };
    done.map_err(|e| match &e {
        PathMtuError::Range { .. } => {
            CliError::argument("mtu", e.to_string()).nearest(e.nearest().map(|n| n.to_string()))
        }
        PathMtuError::NotAHost(_) | PathMtuError::None { .. } => CliError::argument("peer", e.to_string()),
        PathMtuError::Fib(_) => CliError::argument("table", e.to_string()),
        PathMtuError::TooMany(_) | PathMtuError::Lifetime { .. } | PathMtuError::Least { .. } => {
            CliError::failed(e.to_string())
        }
    })?;
    Ok(Output::none())
}

fn learning(control: &Control, args: &Args) -> Result<Output, CliError> {
    let usual = Learning::default();
    let lifetime = args.opt::<u32>("lifetime")?.map_or(usual.lifetime, |s| Duration::from_secs(s.into()));
    let new = Learning { on: args.has("on"), lifetime, least: args.or("least", usual.least)? };
    control.get::<PathMtus>()?.set_learning(new).map_err(|e| match &e {
        PathMtuError::Lifetime { nearest, .. } => {
            CliError::argument("lifetime", e.to_string()).nearest(Some(nearest.to_string()))
        }
        PathMtuError::Least { nearest, .. } => {
            CliError::argument("least", e.to_string()).nearest(Some(nearest.to_string()))
        }
        _ => CliError::failed(e.to_string()),
    })?;
    Ok(Output::none())
}

/// What an error reported, in seconds.
#[derive(Serialize)]
struct EchoAnswer {
    mtu: u16,
    age: u64,
    expires: u64,
}

#[derive(Serialize)]
struct Row {
    table: u32,
    peer: IpAddr,
    mtu: u16,
    learnt: Option<EchoAnswer>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Shown(Vec<Row>);

fn heard(learnt: Learnt, now: Time) -> EchoAnswer {
    let Learnt { mtu, at, until } = learnt;
    EchoAnswer { mtu, age: now.since(at).as_secs(), expires: until.since(now).as_secs() }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let now = control.graph()?.clock().now();
    let row = |p: crate::PathMtu| {
        let learnt = p.learnt.map(|learnt| heard(learnt, now));
        Row { table: p.table, peer: p.peer, mtu: p.mtu, learnt }
    };
    Ok(Output::view(Shown(control.get::<PathMtus>()?.list().into_iter().map(row).collect())))
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "no path MTUs");
        }
        for Row { table, peer, mtu, learnt } in &self.0 {
            write!(f, "{peer} table:{table} pmtu:{mtu}")?;
            match learnt {
                Some(EchoAnswer { mtu, age, expires }) => {
                    writeln!(f, " learnt:{mtu} age:{age}s expires:{expires}s")?;
                }
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}
