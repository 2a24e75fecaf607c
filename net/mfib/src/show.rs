//! `show ip mfib`, `show ip6 mfib`: tables as VPP prints them.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::Serialize;
use shoal_adj::{Adjacencies, Family};
use shoal_fib::{FibIndex, TableInfo};
use shoal_interface::Interfaces;
use shoal_module::cli::{Listing, Page};
use shoal_module::{Control, Missing};

use crate::control::{Entry, Place};
use crate::{EntryFlags, Member, Mfib};

#[derive(Serialize)]
struct ItfRow {
    interface: String,
    flags: String,
}

#[derive(Serialize)]
struct Row {
    prefix: String,
    index: u32,
    flags: String,
    sources: Vec<&'static str>,
    interfaces: Vec<ItfRow>,
    replicates_to: Vec<String>,
}

#[derive(Serialize)]
struct Head {
    name: String,
    fib_index: u32,
}

struct Words<'a> {
    family: Family,
    interfaces: &'a Interfaces,
    adjacencies: &'a Adjacencies,
}

impl Words<'_> {
    fn row(&self, entry: &Entry) -> Row {
        let name = |member| match member {
            Member::Local => "local".to_owned(),
            Member::Interface(i) => self.interfaces.name(i).unwrap_or_else(|_| "deleted".into()),
        };
        let interfaces = entry
            .interfaces
            .iter()
            .map(|itf| ItfRow { interface: name(itf.member), flags: itf.flags.to_string() });
        let local = entry.interfaces.iter().any(|itf| itf.member == Member::Local);
        let out = entry.adjacencies.iter().map(|index| self.adjacency(*index));
        let replicates_to = local.then(|| "dpo-receive".to_owned()).into_iter().chain(out);
        Row {
            prefix: entry.prefix.to_string(),
            index: entry.id,
            flags: entry.flags.to_string(),
            sources: entry.sources.iter().map(|s| s.name()).collect(),
            replicates_to: if entry.flags.has(EntryFlags::DROP) {
                Vec::new()
            } else {
                replicates_to.collect()
            },
            interfaces: interfaces.collect(),
        }
    }

    fn adjacency(&self, index: shoal_adj::AdjIndex) -> String {
        let adj = self.adjacencies.get(index);
        let name = self.interfaces.name(adj.tx()).unwrap_or_else(|_| "deleted".into());
        let family = self.family.long_name();
        let mut text = format!("{family}-mcast: {name}: mtu:{} next:{} flags:[] ", adj.mtu, adj.edge().0);
        for byte in adj.rewrite() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

/// `show ip mfib`, entry by entry.
pub(crate) struct MfibListing {
    family: Family,
    mfib: Rc<Mfib>,
    interfaces: Rc<Interfaces>,
    adjacencies: Rc<Adjacencies>,
    /// Entries of this group only.
    only: Option<IpAddr>,
    /// Tables to come, and the places of the one that is being shown.
    left: VecDeque<Head>,
    places: Option<Box<dyn Iterator<Item = Place>>>,
    begun: bool,
}

impl MfibListing {
    pub(crate) fn new(
        control: &Control,
        family: Family,
        tables: &[TableInfo],
        only: Option<IpAddr>,
    ) -> Result<Self, Missing> {
        let head = |t: &TableInfo| Head { name: t.name.clone(), fib_index: t.index.0 };
        Ok(MfibListing {
            family,
            mfib: control.get()?,
            interfaces: control.get()?,
            adjacencies: control.get()?,
            only,
            left: tables.iter().map(head).collect(),
            places: None,
            begun: false,
        })
    }

    fn entry(&self, entry: &Entry, page: &mut Page) {
        let words =
            Words { family: self.family, interfaces: &self.interfaces, adjacencies: &self.adjacencies };
        let row = words.row(entry);
        page.text(Shown { row: &row, family: self.family });
        page.value(&row);
    }
}

impl Listing for MfibListing {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if !std::mem::replace(&mut self.begun, true) {
            page.object();
            page.key("tables");
            page.array();
        }
        let Some(places) = &mut self.places else {
            let Some(head) = self.left.pop_front() else { return ControlFlow::Break(()) };
            page.text(format_args!("{}, fib_index:{} flags:none\n", head.name, head.fib_index));
            page.object();
            page.members(&head);
            page.key("entries");
            page.array();
            self.places = Some(Box::new(self.mfib.places(self.family, FibIndex(head.fib_index))));
            return ControlFlow::Continue(());
        };
        if let Some(place) = places.next() {
            let entry = self.mfib.entry_at(place);
            let wanted = |entry: &Entry| self.only.is_none_or(|group| entry.prefix.covers(group));
            if let Some(entry) = entry.filter(wanted) {
                self.entry(&entry, page);
            }
        } else {
            // What no entry is for.
            let all = if self.family == Family::Ip4 { "0.0.0.0/0" } else { "::/0" };
            page.text(format_args!("(*, {all}):  flags:Drop\n"));
            page.close();
            page.close();
            self.places = None;
        }
        ControlFlow::Continue(())
    }
}

/// An entry as text.
struct Shown<'a> {
    row: &'a Row,
    family: Family,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { row, family } = self;
        let sources = row.sources.join(",");
        writeln!(f, "{}:  flags:{}, index:{} src:{sources}", row.prefix, row.flags, row.index)?;
        writeln!(f, " Interfaces:")?;
        for itf in &row.interfaces {
            writeln!(f, "  {}: {}", itf.interface, itf.flags)?;
        }
        writeln!(f, " multicast-{family}-chain")?;
        if row.replicates_to.is_empty() {
            return writeln!(f, "  [@0]: dpo-drop {family}");
        }
        let buckets = row.replicates_to.len();
        writeln!(f, "  [@0]: replicate: [index:{} buckets:{buckets}]", row.index)?;
        for (i, to) in row.replicates_to.iter().enumerate() {
            writeln!(f, "    [{i}] [@1]: {to}")?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Count {
    name: String,
    fib_index: u32,
    entries: usize,
}

/// `show ip mfib summary`.
#[derive(Serialize)]
pub(crate) struct SummaryView {
    tables: Vec<Count>,
}

impl SummaryView {
    pub(crate) fn new(control: &Control, family: Family, tables: &[TableInfo]) -> Result<Self, Missing> {
        let mfib = control.get::<Mfib>()?;
        let count = |t: &TableInfo| Count {
            name: t.name.clone(),
            fib_index: t.index.0,
            entries: mfib.places(family, t.index).count(),
        };
        Ok(SummaryView { tables: tables.iter().map(count).collect() })
    }
}

impl fmt::Display for SummaryView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Count { name, fib_index, entries } in &self.tables {
            writeln!(f, "{name}, fib_index:{fib_index} flags:none entries:{entries}")?;
        }
        Ok(())
    }
}
