//! `show ip fib`.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;
use shoal_adj::Adjacencies;
use shoal_interface::Interfaces;
use shoal_module::Control;
use shoal_module::cli::CliError;
use shoal_wire::Ip4Prefix;

use super::adj::Words;
use super::tables::Head;
use crate::{Entry, Fib, FibError, List, Path, PathState, TableInfo, Via};

/// Which entries to show.
#[derive(Clone, Copy)]
pub(crate) enum Filter {
    All,
    Longest(Ipv4Addr),
    Exact(Ip4Prefix),
}

#[derive(Serialize)]
struct PathRow {
    kind: &'static str,
    weight: u8,
    preference: u8,
    via: String,
}

#[derive(Serialize)]
struct SourceRow {
    source: &'static str,
    path_list: u32,
    users: usize,
    state: &'static str,
    paths: Vec<PathRow>,
}

#[derive(Serialize)]
struct EntryRow {
    prefix: String,
    /// The one that decides first.
    sources: Vec<SourceRow>,
    adjacency: u32,
    forwarding: String,
}

#[derive(Serialize)]
struct TableRow {
    #[serde(flatten)]
    head: Head,
    entries: Vec<EntryRow>,
}

/// `show ip fib`.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct FibView {
    tables: Vec<TableRow>,
    #[serde(skip)]
    detail: bool,
    #[serde(skip)]
    missing: Option<FibError>,
}

impl FibView {
    pub fn new(
        control: &Control,
        tables: &[TableInfo],
        filter: Filter,
        detail: bool,
    ) -> Result<Self, CliError> {
        let (interfaces, fib) = (control.get::<Interfaces>()?, control.get::<Fib>()?);
        let adjacencies = control.get::<Adjacencies>()?;
        let words = Words { interfaces: &interfaces, fib: &fib };
        let mut view = FibView { tables: Vec::new(), detail, missing: None };
        for table in tables {
            let entries = match filter {
                Filter::All => fib.entries(table.index)?,
                Filter::Longest(addr) => fib.longest(table.index, addr)?.into_iter().collect(),
                Filter::Exact(prefix) => match fib.entry(table.index, prefix) {
                    Ok(entry) => vec![entry],
                    Err(e) => {
                        view.missing = Some(e);
                        Vec::new()
                    }
                },
            };
            let entries: Vec<EntryRow> = entries.iter().map(|e| row(e, &words, &adjacencies)).collect();
            if !entries.is_empty() {
                view.tables.push(TableRow { head: Head::new(table), entries });
            }
        }
        Ok(view)
    }

    /// Why nothing is shown.
    pub fn missing(&self) -> Option<&FibError> {
        self.missing.as_ref().filter(|_| self.tables.is_empty())
    }
}

fn row(entry: &Entry, words: &Words<'_>, adjacencies: &Adjacencies) -> EntryRow {
    let best = entry.lists.first();
    let adjacency = best.map_or(0, |l| l.adj.0);
    let forwarding = best.map_or_else(String::new, |list| forwarding(entry.prefix, list, words, adjacencies));
    let sources = entry.lists.iter().map(|l| source(l, words)).collect();
    EntryRow { prefix: entry.prefix.to_string(), sources, adjacency, forwarding }
}

fn forwarding(prefix: Ip4Prefix, list: &List, words: &Words<'_>, adjacencies: &Adjacencies) -> String {
    let why = match list.state {
        PathState::Resolved => "",
        PathState::Unresolved => " (next hop is not reachable)",
        PathState::Loop => " (next hop leads back here)",
    };
    match list.paths.first().map(|p| p.via) {
        Some(Via::Local { interface: Some(interface), address }) => {
            format!("dpo-receive: {address} on {}", words.interface(interface))
        }
        Some(Via::Attached { source, .. }) => {
            let source = format!("{source}/{}", prefix.len());
            words.adj(&adjacencies.get(list.adj), Some(source))
        }
        _ => format!("{}{why}", words.adj(&adjacencies.get(list.adj), None)),
    }
}

fn source(list: &List, words: &Words<'_>) -> SourceRow {
    let state = match list.state {
        PathState::Resolved => "resolved",
        PathState::Unresolved => "unresolved",
        PathState::Loop => "looped",
    };
    let paths = list.paths.iter().map(|p| path(p, words)).collect();
    SourceRow { source: list.source.name(), path_list: list.index, users: list.users, state, paths }
}

fn path(path: &Path, words: &Words<'_>) -> PathRow {
    let table = |fib| words.fib.table(fib).map_or_else(|e| e.to_string(), |t| t.name);
    let (kind, via) = match path.via {
        Via::Attached { interface, .. } => ("attached", words.interface(interface)),
        Via::NextHop { interface, next_hop } => {
            ("attached-nexthop", format!("{next_hop} {}", words.interface(interface)))
        }
        Via::Recursive { next_hop, fib } => ("recursive", format!("via {next_hop} in {}", table(fib))),
        Via::Broadcast { interface } => ("bcast", words.interface(interface)),
        Via::Local { interface: Some(interface), address } => {
            ("receive", format!("{address} on {}", words.interface(interface)))
        }
        Via::Local { interface: None, .. } => ("receive", "local".into()),
        Via::Lookup(fib) => ("deag", format!("lookup in {}", table(fib))),
        Via::Punt => ("special", "punt".into()),
        Via::NoRoute => ("special", "no route".into()),
        Via::Drop => ("special", "drop".into()),
        Via::Unreachable => ("special", "unreachable".into()),
        Via::Prohibit => ("special", "prohibit".into()),
    };
    PathRow { kind, weight: path.weight, preference: path.preference, via }
}

impl fmt::Display for FibView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in &self.tables {
            write!(f, "{}", table.head)?;
            for entry in &table.entries {
                entry.write(f, &table.head, self.detail)?;
            }
        }
        Ok(())
    }
}

impl EntryRow {
    fn write(&self, f: &mut fmt::Formatter<'_>, head: &Head, detail: bool) -> fmt::Result {
        let list = self.sources.first().map_or(0, |s| s.path_list);
        if detail {
            writeln!(
                f,
                "{} fib:{} index:{list} locks:{}",
                self.prefix,
                head.fib_index(),
                self.sources.len()
            )?;
            for (i, source) in self.sources.iter().enumerate() {
                source.write(f, i == 0)?;
            }
            write!(f, " forwarding: ")?;
        } else {
            writeln!(f, "{}", self.prefix)?;
        }
        // The numbers are those of the path list: there is no load balance of its own yet.
        writeln!(f, "  unicast-ip4-chain")?;
        writeln!(f, "  [@0]: dpo-load-balance: [proto:ip4 index:{list} buckets:1 uRPF:{list} to:[0:0]]")?;
        writeln!(f, "    [0] [@{}]: {}", self.adjacency, self.forwarding)
    }
}

impl SourceRow {
    fn write(&self, f: &mut fmt::Formatter<'_>, decides: bool) -> fmt::Result {
        let flags = if decides { "added,contributing,active," } else { "added," };
        let SourceRow { source, path_list, users, state, paths } = self;
        let shared = if *users > 1 { "shared," } else { "" };
        writeln!(f, "  {source} refs:1 src-flags:{flags}")?;
        writeln!(f, "    path-list:[{path_list}] locks:{users} flags:{shared} uPRF-list:{path_list}")?;
        for PathRow { kind, weight, preference, via } in paths {
            write!(
                f,
                "      path:[{path_list}] pl-index:{path_list} ip4 weight={weight} pref={preference} "
            )?;
            writeln!(f, "{kind}:  oper-flags:{state},")?;
            writeln!(f, "        {via}")?;
        }
        Ok(())
    }
}
