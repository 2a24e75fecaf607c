//! `set bridge-domain loop-protection`, `show bridge-domain loops`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::{domain_of, refused};
use crate::{BridgeError, Bridges, LoopProtection};

pub(super) const SET: Command = Command::new(
    "set bridge-domain loop-protection <domain:bridge-domain> {off | moves <moves:u32> [block <block:u32>]}",
    "Report stations that move between members more often than so many times a second",
    set,
)
.doc(
    "Such a station is heard by a loop of the network. With `block` the member it moved to is blocked for so many seconds, \
     in both directions, and then opened again; never the one where the station was before. `off` opens all.",
);

pub(super) const SHOW: Command =
    Command::new("show bridge-domain loops", "Show loops that were seen, and members that are blocked", show)
        .examples(&["show bridge-domain loops"]);

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bridges, number) = (control.get::<Bridges>()?, domain_of(args)?);
    let protection = match args.opt::<u32>("moves")? {
        None => None,
        Some(moves) => {
            let block = args.or("block", 0_u32)?;
            Some(LoopProtection { moves: u16::try_from(moves).unwrap_or(u16::MAX), block })
        }
    };
    bridges.set_loop_protection(number, protection).map_err(|error| match error {
        BridgeError::Range { what, nearest, .. } => {
            let name = if what == "moves" { "moves" } else { "block" };
            CliError::argument(name, error.to_string()).nearest(Some(nearest.to_string()))
        }
        other => refused(other),
    })?;
    Ok(Output::none())
}

/// What a domain does about loops and has seen of them.
#[derive(Serialize)]
pub(super) struct Loops {
    moves_per_second: u16,
    block_seconds: u32,
    seen: u64,
    blocks: u64,
    last: Option<Last>,
    blocked: Vec<BlockedPort>,
}

#[derive(Serialize)]
struct Last {
    mac: String,
    from: String,
    to: String,
    seconds_ago: u64,
}

#[derive(Serialize)]
struct BlockedPort {
    interface: String,
    seconds_left: u64,
}

/// `None`: the domain does not watch for loops.
pub(super) fn read(
    bridges: &Bridges,
    interfaces: &Interfaces,
    number: u32,
) -> Result<Option<Loops>, BridgeError> {
    let Some(protection) = bridges.loop_protection(number)? else { return Ok(None) };
    let state = bridges.loop_state(number)?;
    let name = |port: SwIfIndex| interfaces.name(port).unwrap_or_else(|_| "DELETED".into());
    let blocked = state.blocked.keys().filter_map(|port| {
        let left = bridges.blocked_for(&state, *port)?;
        Some(BlockedPort { interface: name(*port), seconds_left: left.as_secs_f64().ceil() as u64 })
    });
    Ok(Some(Loops {
        moves_per_second: protection.moves,
        block_seconds: protection.block,
        seen: state.seen,
        blocks: state.blocks,
        last: state.last.map(|last| Last {
            mac: last.mac.to_string(),
            from: name(last.from),
            to: name(last.to),
            seconds_ago: bridges.since(last.at).as_secs(),
        }),
        blocked: blocked.collect(),
    }))
}

impl fmt::Display for Loops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  Loop protection: {} moves/s, ", self.moves_per_second)?;
        match self.block_seconds {
            0 => writeln!(f, "report only")?,
            seconds => writeln!(f, "block {seconds} s")?,
        }
        writeln!(f, "    loops seen {}, ports blocked {}", self.seen, self.blocks)?;
        if let Some(Last { mac, from, to, seconds_ago }) = &self.last {
            writeln!(f, "    last: {mac} from {from} to {to}, {seconds_ago} s ago")?;
        }
        for BlockedPort { interface, seconds_left } in &self.blocked {
            writeln!(f, "    {interface} is blocked, {seconds_left} s left")?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Row {
    bd_id: u32,
    #[serde(flatten)]
    loops: Loops,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bridge domain {}\n{}", self.bd_id, self.loops)
    }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (bridges, interfaces) = (control.get::<Bridges>()?, control.get::<Interfaces>()?);
    let mut rows = Vec::new();
    for bd_id in bridges.numbers() {
        if let Some(loops) = read(&bridges, &interfaces, bd_id).map_err(refused)? {
            rows.push(Row { bd_id, loops });
        }
    }
    if rows.is_empty() {
        return Ok(Output::text("no bridge domain watches for loops\n"));
    }
    Ok(Output::rows("", rows.into_iter()))
}
