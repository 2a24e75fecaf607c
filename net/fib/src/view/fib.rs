//! `show ip fib`.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::Serialize;
use shoal_adj::{Adjacencies, Family};
use shoal_interface::Interfaces;
use shoal_module::Control;
use shoal_module::cli::{CliError, Listing, Page};
use shoal_wire::IpPrefix;

use super::adj::Words;
use super::tables::Head;
use crate::arg::Match;
use crate::{Entry, Fib, FibError, FibIndex, InOrder, List, Path, PathState, TableInfo, Via};

#[derive(Serialize)]
struct PathRow {
    kind: &'static str,
    weight: u8,
    preference: u8,
    via: String,
}

#[derive(Serialize)]
pub(super) struct SourceRow {
    source: &'static str,
    path_list: u32,
    users: usize,
    state: &'static str,
    paths: Vec<PathRow>,
}

#[derive(Serialize)]
pub(super) struct EntryRow {
    prefix: String,
    #[serde(skip)]
    family: &'static str,
    /// The one that decides first.
    sources: Vec<SourceRow>,
    adjacency: u32,
    /// What it has counted, if it counts.
    packets: Option<u64>,
    bytes: Option<u64>,
    /// A row for each bucket; without a balance there is one.
    forwarding: Vec<Bucket>,
}

#[derive(Serialize)]
struct Bucket {
    adjacency: u32,
    text: String,
}

/// An entry as text.
struct Shown<'a> {
    entry: &'a EntryRow,
    head: &'a Head,
    detail: bool,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entry.write(f, self.head.fib_index(), self.detail)
    }
}

/// `show ip fib` of whole tables, entry by entry.
pub(crate) struct FibListing {
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    adjacencies: Rc<Adjacencies>,
    /// Tables to come.
    left: VecDeque<(Family, FibIndex)>,
    /// The table that is being shown, and whether an entry of it was.
    now: Option<(InOrder, Head, bool)>,
    begun: bool,
    detail: bool,
}

impl FibListing {
    pub fn new(control: &Control, tables: &[TableInfo], detail: bool) -> Result<Self, CliError> {
        Ok(FibListing {
            interfaces: control.get()?,
            fib: control.get()?,
            adjacencies: control.get()?,
            left: tables.iter().map(|table| (table.family, table.index)).collect(),
            now: None,
            begun: false,
            detail,
        })
    }
}

impl Listing for FibListing {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if !std::mem::replace(&mut self.begun, true) {
            page.array();
        }
        let Some((walk, head, shown)) = &mut self.now else {
            let Some((family, index)) = self.left.pop_front() else { return ControlFlow::Break(()) };
            // It may have gone since.
            if let (Ok(walk), Ok(table)) = (self.fib.in_order(family, index), self.fib.table(family, index)) {
                self.now = Some((walk, Head::new(&table), false));
            }
            return ControlFlow::Continue(());
        };
        let words = Words { interfaces: &self.interfaces, fib: &self.fib };
        for entry in self.fib.next_entries(walk) {
            if !std::mem::replace(shown, true) {
                page.text(&head);
                page.object();
                page.members(head);
                page.key("entries");
                page.array();
            }
            let entry = row(&entry, &words, &self.adjacencies);
            page.text(Shown { entry: &entry, head, detail: self.detail });
            page.value(&entry);
        }
        if !walk.goes_on() {
            if *shown {
                page.close();
                page.close();
            }
            self.now = None;
        }
        ControlFlow::Continue(())
    }
}

#[derive(Serialize)]
struct TableRow {
    #[serde(flatten)]
    head: Head,
    entries: Vec<EntryRow>,
}

/// `show ip fib` of one address or prefix, in each table.
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
        filter: Match,
        detail: bool,
    ) -> Result<Self, CliError> {
        let (interfaces, fib) = (control.get::<Interfaces>()?, control.get::<Fib>()?);
        let adjacencies = control.get::<Adjacencies>()?;
        let words = Words { interfaces: &interfaces, fib: &fib };
        let mut view = FibView { tables: Vec::new(), detail, missing: None };
        for table in tables {
            let entries = match filter {
                Match::Longest(addr) => fib.longest(table.index, addr)?.into_iter().collect(),
                Match::Exact(prefix) => match fib.entry(table.index, prefix) {
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

pub(super) fn row(entry: &Entry, words: &Words<'_>, adjacencies: &Adjacencies) -> EntryRow {
    let family = crate::address::family(&entry.prefix);
    let best = entry.lists.first();
    let adjacency = best.map_or(0, |l| l.adj.0);
    let forwarding = best.map(|list| forwarding(entry.prefix, list, words, adjacencies)).unwrap_or_default();
    let sources = entry.lists.iter().map(|l| source(family, l, words)).collect();
    EntryRow {
        prefix: entry.prefix.to_string(),
        family: family.name(),
        sources,
        adjacency,
        packets: entry.counted.map(|(packets, _)| packets),
        bytes: entry.counted.map(|(_, bytes)| bytes),
        forwarding,
    }
}

fn forwarding(prefix: IpPrefix, list: &List, words: &Words<'_>, adjacencies: &Adjacencies) -> Vec<Bucket> {
    let family = crate::address::family(&prefix);
    let buckets = adjacencies.members(list.adj).map(|(_, buckets)| buckets).unwrap_or_default();
    if !buckets.is_empty() {
        let text = |adj| words.adj(&adjacencies.get(adj), family, None);
        return buckets.into_iter().map(|adj| Bucket { adjacency: adj.0, text: text(adj) }).collect();
    }
    let why = match list.state {
        PathState::Resolved => "",
        PathState::Unresolved => " (next hop is not reachable)",
        PathState::Loop => " (next hop leads back here)",
    };
    let text = match list.paths.first().map(|p| p.via) {
        Some(Via::Local { interface: Some(interface), address }) if list.paths.len() == 1 => {
            format!("dpo-receive: {address} on {}", words.interface(interface))
        }
        Some(Via::Attached { source, .. }) if list.paths.len() == 1 => {
            let source = format!("{source}/{}", prefix.len());
            words.adj(&adjacencies.get(list.adj), family, Some(source))
        }
        _ => format!("{}{why}", words.adj(&adjacencies.get(list.adj), family, None)),
    };
    vec![Bucket { adjacency: list.adj.0, text }]
}

pub(super) fn source(family: Family, list: &List, words: &Words<'_>) -> SourceRow {
    let state = match list.state {
        PathState::Resolved => "resolved",
        PathState::Unresolved => "unresolved",
        PathState::Loop => "looped",
    };
    let paths = list.paths.iter().map(|p| path(family, p, words)).collect();
    SourceRow { source: list.source.name(), path_list: list.index, users: list.users, state, paths }
}

fn path(family: Family, path: &Path, words: &Words<'_>) -> PathRow {
    let (kind, via) = match path.via {
        Via::Attached { interface, .. } => ("attached", words.interface(interface)),
        Via::NextHop { interface, next_hop } => {
            ("attached-nexthop", format!("{next_hop} {}", words.interface(interface)))
        }
        Via::Recursive { next_hop, fib } => {
            ("recursive", format!("via {next_hop} in {}", words.table(Family::of(next_hop), fib)))
        }
        Via::InterfaceRx { interface } => ("intf-rx", words.interface(interface)),
        Via::Dvr { interface } => ("dvr", words.interface(interface)),
        Via::Node(node) => ("exclusive", node.to_owned()),
        Via::Broadcast { interface } => ("bcast", words.interface(interface)),
        Via::Local { interface: Some(interface), address } => {
            ("receive", format!("{address} on {}", words.interface(interface)))
        }
        Via::Local { interface: None, .. } => ("receive", "local".into()),
        Via::Lookup(fib) => ("deag", format!("lookup in {}", words.table(family, fib))),
        Via::SourceLookup(fib) => ("deag", format!("source lookup in {}", words.table(family, fib))),
        Via::PathMtu { mtu, .. } => ("path-mtu", format!("as without, mtu {mtu}")),
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
                entry.write(f, table.head.fib_index(), self.detail)?;
            }
        }
        Ok(())
    }
}

impl EntryRow {
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, fib_index: u32, detail: bool) -> fmt::Result {
        let list = self.sources.first().map_or(0, |s| s.path_list);
        if detail {
            writeln!(f, "{} fib:{fib_index} index:{list} locks:{}", self.prefix, self.sources.len())?;
            for (i, source) in self.sources.iter().enumerate() {
                source.write(f, self.family, i == 0)?;
            }
            write!(f, " forwarding: ")?;
        } else {
            writeln!(f, "{}", self.prefix)?;
        }
        // VPP's load balance has the path list's number here: there is one for each list, not for each route.
        let (family, n) = (self.family, self.forwarding.len());
        writeln!(f, "  unicast-{family}-chain")?;
        let (packets, bytes) = (self.packets.unwrap_or(0), self.bytes.unwrap_or(0));
        writeln!(
            f,
            "  [@0]: dpo-load-balance: [proto:{family} index:{list} buckets:{n} uRPF:{list} to:[{packets}:{bytes}]]"
        )?;
        let mut buckets = self.forwarding.iter().enumerate();
        buckets.try_for_each(|(i, b)| writeln!(f, "    [{i}] [@{}]: {}", b.adjacency, b.text))
    }
}

impl SourceRow {
    fn write(&self, f: &mut fmt::Formatter<'_>, family: &str, decides: bool) -> fmt::Result {
        let flags = if decides { "added,contributing,active," } else { "added," };
        writeln!(f, "  {} refs:1 src-flags:{flags}", self.source)?;
        self.write_list(f, family, "    ")
    }

    /// The list and its paths, behind `indent`.
    pub(super) fn write_list(&self, f: &mut fmt::Formatter<'_>, family: &str, indent: &str) -> fmt::Result {
        let SourceRow { path_list, users, .. } = self;
        let shared = if *users > 1 { "shared," } else { "" };
        writeln!(f, "{indent}path-list:[{path_list}] locks:{users} flags:{shared} uPRF-list:{path_list}")?;
        self.write_paths(f, family, &format!("{indent}  "))
    }

    /// The paths, behind `indent`. A path has the number of its list.
    pub(super) fn write_paths(&self, f: &mut fmt::Formatter<'_>, family: &str, indent: &str) -> fmt::Result {
        let SourceRow { path_list, state, paths, .. } = self;
        for PathRow { kind, weight, preference, via } in paths {
            write!(
                f,
                "{indent}path:[{path_list}] pl-index:{path_list} {family} weight={weight} pref={preference} "
            )?;
            writeln!(f, "{kind}:  oper-flags:{state},")?;
            writeln!(f, "{indent}  {via}")?;
        }
        Ok(())
    }
}
