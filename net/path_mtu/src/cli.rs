//! Commands: `set ip pmtu`, `show ip pmtu`.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{PathMtuError, PathMtus};

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
    Command::new("show ip pmtu", "Show how long packets to hosts may be", show).examples(&["show ip pmtu"]),
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
        PathMtuError::TooMany(_) => CliError::failed(e.to_string()),
    })?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Row {
    table: u32,
    peer: IpAddr,
    mtu: u16,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Shown(Vec<Row>);

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let row = |p: crate::PathMtu| Row { table: p.table, peer: p.peer, mtu: p.mtu };
    Ok(Output::view(Shown(control.get::<PathMtus>()?.list().into_iter().map(row).collect())))
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "no path MTUs");
        }
        self.0.iter().try_for_each(|Row { table, peer, mtu }| writeln!(f, "{peer} table:{table} pmtu:{mtu}"))
    }
}
