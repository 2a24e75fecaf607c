//! Commands: `dslite add pool address`, `dslite set ...`, `show dslite ...`.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_nat::tuple::{ICMP, TCP};

use crate::config::TunnelAddresses;
use crate::{Dslite, DsliteError};

/// An AFTR's address in its tunnels (RFC 6333, 5.7).
const AFTR_IP4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 1);
/// A B4's.
const B4_IP4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 2);

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "dslite add pool address <first:ip4-address> [- <last:ip4-address>] [del]",
        "Have hosts behind DS-Lite tunnels share an address, or a range of them",
        pool,
    )
    .examples(&["dslite add pool address 192.0.2.1", "dslite add pool address 192.0.2.10 - 192.0.2.20"]),
    Command::new(
        "dslite set aftr-tunnel-endpoint-address <address:ip6-address>",
        "Set the AFTR's end of DS-Lite tunnels",
        aftr,
    )
    .examples(&["dslite set aftr-tunnel-endpoint-address 2001:db8::1"])
    .doc("An AFTR takes packets of tunnels there, a B4 (`dslite { ce }` in the start-up file) sends them there. `::` takes it away."),
    Command::new(
        "dslite set b4-tunnel-endpoint-address <address:ip6-address>",
        "Set the B4's end of its DS-Lite tunnel",
        b4,
    )
    .doc("For a router whose start-up file has `dslite { ce }`. `::` takes it away."),
    Command::new("show dslite pool", "Show addresses that hosts behind DS-Lite tunnels share", show_pool)
        .examples(&["show dslite pool"]),
    Command::new("show dslite aftr-tunnel-endpoint-address", "Show the AFTR's end of DS-Lite tunnels", show_aftr)
        .examples(&["show dslite aftr-tunnel-endpoint-address"]),
    Command::new("show dslite b4-tunnel-endpoint-address", "Show the B4's end of its DS-Lite tunnel", show_b4)
        .examples(&["show dslite b4-tunnel-endpoint-address"]),
    Command::new("show dslite sessions", "Show sessions of hosts behind DS-Lite tunnels", show_sessions)
        .examples(&["show dslite sessions"]),
];

fn pool(control: &Control, args: &Args) -> Result<Output, CliError> {
    let dslite = control.get::<Dslite>()?;
    let first: Ipv4Addr = args.get("first")?;
    let last = args.opt("last")?.unwrap_or(first);
    let done = if args.has("del") {
        dslite.del_addresses((first, last))
    } else {
        dslite.add_addresses((first, last))
    };
    done.map_err(|e| CliError::argument("first", e.to_string()))?;
    Ok(Output::none())
}

fn failed(what: &str, error: &DsliteError) -> CliError {
    CliError::failed(format!("Set DS-Lite {what} tunnel endpoint address failed.: {error}"))
}

fn aftr(control: &Control, args: &Args) -> Result<Output, CliError> {
    let ends = TunnelAddresses { ip4: AFTR_IP4, ip6: args.get("address")? };
    control.get::<Dslite>()?.set_aftr(ends).map_err(|e| failed("AFTR", &e))?;
    Ok(Output::none())
}

fn b4(control: &Control, args: &Args) -> Result<Output, CliError> {
    let ends = TunnelAddresses { ip4: B4_IP4, ip6: args.get("address")? };
    control.get::<Dslite>()?.set_b4(ends).map_err(|e| failed("B4", &e))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct PoolView {
    addresses: Vec<Ipv4Addr>,
}

impl fmt::Display for PoolView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "DS-Lite pool:")?;
        self.addresses.iter().try_for_each(|address| writeln!(f, "{address}"))
    }
}

fn show_pool(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(PoolView { addresses: control.get::<Dslite>()?.addresses() }))
}

#[derive(Serialize)]
struct EndView {
    address: Option<Ipv6Addr>,
}

impl fmt::Display for EndView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.address.unwrap_or(Ipv6Addr::UNSPECIFIED))
    }
}

fn show_aftr(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(EndView { address: control.get::<Dslite>()?.aftr().map(|ends| ends.ip6) }))
}

fn show_b4(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(EndView { address: control.get::<Dslite>()?.b4().map(|ends| ends.ip6) }))
}

#[derive(Serialize)]
struct Row {
    inside: (Ipv4Addr, u16),
    outside: (Ipv4Addr, u16),
    protocol: &'static str,
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct OfB4 {
    b4: Ipv6Addr,
    sessions: Vec<Row>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct SessionsView(Vec<OfB4>);

fn show_sessions(control: &Control, _: &Args) -> Result<Output, CliError> {
    let records = control.get::<Dslite>()?.sessions().map_err(|e| CliError::failed(e.to_string()))?;
    let mut all: Vec<OfB4> = Vec::new();
    for record in records {
        let row = Row {
            inside: (record.inside.address, record.inside.port),
            outside: (record.outside.address, record.outside.port),
            protocol: match record.inside.protocol {
                TCP => "tcp",
                ICMP => "icmp",
                _ => "udp",
            },
            packets: record.packets,
            bytes: record.bytes,
        };
        match all.last_mut().filter(|last| last.b4 == record.inside.b4) {
            Some(last) => last.sessions.push(row),
            None => all.push(OfB4 { b4: record.inside.b4, sessions: vec![row] }),
        }
    }
    Ok(Output::view(SessionsView(all)))
}

impl fmt::Display for SessionsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for OfB4 { b4, sessions } in &self.0 {
            writeln!(f, "B4 {b4} {} sessions", sessions.len())?;
            for Row { inside, outside, protocol, packets, bytes } in sessions {
                let (inside, outside) =
                    (format!("{}:{}", inside.0, inside.1), format!("{}:{}", outside.0, outside.1));
                writeln!(f, "  in {inside} out {outside} protocol {protocol}")?;
                writeln!(f, "    total pkts {packets}, total bytes {bytes}")?;
            }
        }
        Ok(())
    }
}
