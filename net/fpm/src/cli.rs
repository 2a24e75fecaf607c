//! Commands: `fpm listen`, `show fpm`, `clear fpm`.

use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::control::USUAL;
use crate::netlink::RouteExit;
use crate::table::Key;
use crate::{Fpm, FpmError, Listen, State};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "fpm listen {off | <address:word> [netns <netns:word>]}",
        "Take routes from FRR's zebra at a loopback address and port, or take none and withdraw those it gave",
        listen,
    )
    .examples(&["fpm listen 127.0.0.1:2620", "fpm listen 127.0.0.1:2620 netns dataplane", "fpm listen off"])
    .doc(
        "Zebra runs with `-M dplane_fpm_nl` and is told `fpm address 127.0.0.1 port 2620`. One connection is taken at a time. \
         Routes leave by interfaces that have an image in the namespace of zebra (`lcp create`); those of others wait. \
         `fpm { listen 127.0.0.1:2620 netns dataplane sweep-after 60 }` in the start-up file says the same.",
    ),
    Command::new("show fpm", "Show whether zebra is connected and how many routes it gave", show).examples(&["show fpm"]),
    Command::new("show fpm routes", "Show the routes that zebra gave; those that wait need an interface or a next hop", routes)
        .examples(&["show fpm routes", "show fpm routes | include waits"]),
    Command::new("clear fpm", "Withdraw all routes that zebra gave", clear)
        .examples(&["clear fpm"])
        .doc("Zebra does not tell them again until it connects again."),
];

fn fpm(control: &Control) -> Result<Rc<Fpm>, CliError> {
    Ok(control.get::<Fpm>()?)
}

fn listen(control: &Control, args: &Args) -> Result<Output, CliError> {
    let fpm = fpm(control)?;
    if args.has("off") {
        fpm.stop();
        return Ok(Output::none());
    }
    fpm.listen(&Listen::of(args, USUAL)?).map_err(FpmError::of_command)?;
    Ok(Output::none())
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    fpm(control)?.clear();
    Ok(Output::none())
}

#[derive(Serialize)]
struct Summary {
    address: Option<String>,
    netns: Option<String>,
    connection: Option<u64>,
    connected_seconds: Option<f64>,
    routes: usize,
    installed: usize,
    waiting: usize,
    next_hops: usize,
}

impl From<State> for Summary {
    fn from(state: State) -> Self {
        Summary {
            address: state.listen.as_ref().map(|listen| listen.at.to_string()),
            netns: state.listen.and_then(|listen| listen.netns),
            connection: state.connected.map(|(number, _)| number),
            connected_seconds: state.connected.map(|(_, since)| since.as_secs_f64()),
            routes: state.routes,
            installed: state.installed,
            waiting: state.routes.saturating_sub(state.installed),
            next_hops: state.next_hops,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            None => writeln!(f, "fpm is off")?,
            Some(address) => {
                write!(f, "fpm listens at {address}")?;
                if let Some(netns) = &self.netns {
                    write!(f, " netns {netns}")?;
                }
                writeln!(f)?;
            }
        }
        match (self.connection, self.connected_seconds) {
            (Some(number), Some(seconds)) => {
                writeln!(f, "zebra is connected for {seconds:.1} s, connection {number}")?;
            }
            _ => writeln!(f, "zebra is not connected")?,
        }
        let Summary { routes, installed, waiting, next_hops, .. } = self;
        writeln!(
            f,
            "routes: {routes}, installed {installed}, waiting {waiting}; next hops and groups: {next_hops}"
        )
    }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Summary::from(fpm(control)?.state())))
}

#[derive(Serialize)]
struct Row {
    table: u32,
    prefix: String,
    next_hop: Option<u32>,
    way: String,
    connection: u64,
    installed: bool,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { table, prefix, way, connection, installed, .. } = self;
        let state = if *installed { "" } else { ", waits" };
        writeln!(f, "table {table} {prefix} {way}, connection {connection}{state}")
    }
}

/// So many routes are told in order; of more, those of each part of the table come as they are, because sorting would hold up others.
const MOST_SORTED: usize = 20_000;

/// Walks over the routes, some at a time.
struct Rows {
    fpm: Rc<Fpm>,
    /// The part of the table that comes next.
    next: Option<usize>,
    ready: VecDeque<Key>,
}

impl Rows {
    fn new(fpm: Rc<Fpm>) -> Self {
        let mut rows = Rows { fpm, next: Some(0), ready: VecDeque::new() };
        if rows.fpm.told.borrow().routes() <= MOST_SORTED {
            while rows.more() {}
            rows.ready.make_contiguous().sort_unstable();
        }
        rows
    }

    /// Takes the keys of another part; `false` if there is none.
    fn more(&mut self) -> bool {
        let Some(number) = self.next else { return false };
        let (keys, next) = self.fpm.told.borrow().part(number, |_| true);
        self.ready.extend(keys);
        self.next = next;
        true
    }
}

impl Iterator for Rows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        loop {
            while let Some(key) = self.ready.pop_front() {
                let told = self.fpm.told.borrow();
                let Some(entry) = told.get(&key) else { continue };
                let next_hop = if let RouteExit::Id(id) = entry.way { Some(id) } else { None };
                let way = match &entry.way {
                    RouteExit::Id(id) => format!("next hop {id}"),
                    RouteExit::Direct(way) => format!("{way:?}"),
                };
                let (table, prefix) = (key.0, key.1.to_string());
                return Some(Row {
                    table,
                    prefix,
                    next_hop,
                    way,
                    connection: entry.generation,
                    installed: entry.installed.is_some(),
                });
            }
            if !self.more() {
                return None;
            }
        }
    }
}

fn routes(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::rows("", Rows::new(fpm(control)?)))
}
