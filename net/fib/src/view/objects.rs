//! `show fib entry`, `show fib path-lists`, `show fib paths`, `show fib memory`.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::Serialize;
use shoal_adj::{Adjacencies, Family};
use shoal_interface::Interfaces;
use shoal_module::Control;
use shoal_module::cli::{CliError, Listing, Page};

use super::adj::Words;
use super::fib::{EntryRow, SourceRow, row, source};
use crate::control::show::PathList;
use crate::{Fib, FibIndex, InOrder, TableInfo};

/// What is printed of each path list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PathListDetail {
    /// The list.
    Lists,
    /// Its paths.
    Paths,
}

/// All path lists, or one.
pub(crate) struct PathListing {
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    adjacencies: Rc<Adjacencies>,
    of: PathListDetail,
    one: Option<u32>,
    /// Where it goes on.
    next: Option<u32>,
    begun: bool,
}

impl PathListing {
    pub fn new(control: &Control, of: PathListDetail, one: Option<u32>) -> Result<Self, CliError> {
        let fib = control.get::<Fib>()?;
        let next = one.unwrap_or(0);
        if one.is_some() && fib.path_list(next).is_none_or(|list| list.index != next) {
            let what = if of == PathListDetail::Lists { "path-list" } else { "path" };
            let nearest = fib.path_list(next).or_else(|| fib.path_list(0)).map(|list| list.index.to_string());
            return Err(CliError::argument("index", format!("{what} {next} invalid")).nearest(nearest));
        }
        let (interfaces, adjacencies) = (control.get()?, control.get()?);
        Ok(PathListing { interfaces, fib, adjacencies, of, one, next: Some(next), begun: false })
    }
}

#[derive(Serialize)]
struct Row {
    family: &'static str,
    #[serde(flatten)]
    list: SourceRow,
    adjacency: u32,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    of: PathListDetail,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { family, list, adjacency, text, of } = self;
        if *of == PathListDetail::Lists {
            list.write_list(f, family, "")?;
        } else {
            list.write_paths(f, family, "")?;
        }
        writeln!(f, "  [@{adjacency}]: {text}")
    }
}

impl Listing for PathListing {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if !std::mem::replace(&mut self.begun, true) {
            if self.one.is_none() {
                page.text(if self.of == PathListDetail::Lists { "FIB Path Lists\n" } else { "FIB Paths\n" });
            }
            page.array();
        }
        let Some(found) = self.next.and_then(|next| self.fib.path_list(next)) else {
            return ControlFlow::Break(());
        };
        self.next = found.index.checked_add(1).filter(|_| self.one.is_none());
        let words = Words { interfaces: &self.interfaces, fib: &self.fib };
        let PathList { family, list, .. } = found;
        let text = words.adj(&self.adjacencies.get(list.adj), family, None);
        let (adjacency, list) = (list.adj.0, source(family, &list, &words));
        page.row(&Row { family: family.name(), list, adjacency, text, of: self.of });
        ControlFlow::Continue(())
    }
}

/// All entries of all tables, or one, by the number of their place.
pub(crate) struct EntryListing {
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    adjacencies: Rc<Adjacencies>,
    left: VecDeque<(Family, FibIndex)>,
    now: Option<InOrder>,
    one: Option<u32>,
    number: u32,
    begun: bool,
    found: bool,
}

impl EntryListing {
    pub fn new(control: &Control, one: Option<u32>) -> Result<Self, CliError> {
        let fib = control.get::<Fib>()?;
        let tables = Family::ALL.into_iter().flat_map(|family| fib.list_tables(family));
        let left = tables.map(|table: TableInfo| (table.family, table.index)).collect();
        let (interfaces, adjacencies) = (control.get()?, control.get()?);
        let (now, number) = (None, 0);
        Ok(EntryListing { interfaces, fib, adjacencies, left, now, one, number, begun: false, found: false })
    }
}

#[derive(Serialize)]
struct Numbered {
    index: u32,
    #[serde(flatten)]
    entry: EntryRow,
    #[serde(skip)]
    fib_index: u32,
    #[serde(skip)]
    detail: bool,
}

impl fmt::Display for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@", self.index)?;
        self.entry.write(f, self.fib_index, self.detail)
    }
}

impl Listing for EntryListing {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if !std::mem::replace(&mut self.begun, true) {
            if self.one.is_none() {
                page.text("FIB Entries:\n");
            }
            page.array();
        }
        let Some(walk) = &mut self.now else {
            let Some((family, index)) = self.left.pop_front().filter(|_| !self.found) else {
                if let (Some(one), false) = (self.one, self.found) {
                    page.text(format_args!("entry {one} invalid\n"));
                }
                return ControlFlow::Break(());
            };
            // It may have gone since.
            self.now = self.fib.in_order(family, index).ok();
            return ControlFlow::Continue(());
        };
        let (words, fib_index) = (Words { interfaces: &self.interfaces, fib: &self.fib }, walk.table.0);
        for entry in self.fib.next_entries(walk) {
            let index = self.number;
            self.number += 1;
            if self.one.is_none_or(|one| one == index) {
                self.found = self.one.is_some();
                let entry = row(&entry, &words, &self.adjacencies);
                page.row(&Numbered { index, entry, fib_index, detail: self.found });
            }
        }
        if !walk.goes_on() || self.found {
            self.now = None;
        }
        ControlFlow::Continue(())
    }
}

/// One kind of tables.
#[derive(Serialize)]
struct Kind {
    safi: &'static str,
    tables: usize,
    bytes: usize,
}

/// `show fib memory`.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct FibMemory(Vec<Kind>);

impl FibMemory {
    pub fn new(fib: &Fib) -> Self {
        let kind = |(family, safi)| {
            let tables = fib.list_tables(family);
            let bytes = tables.iter().map(|table| table.trie_bytes + table.entry_bytes).sum();
            Kind { safi, tables: tables.len(), bytes }
        };
        FibMemory([(Family::Ip4, "IPv4 unicast"), (Family::Ip6, "IPv6 unicast")].map(kind).into())
    }
}

/// Text centred in `width` columns, the odd blank on the left: VPP's `%=`.
fn centred(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(text.len());
    format!("{:2$}{text}{:3$}", "", "", blanks.div_ceil(2), blanks / 2)
}

impl fmt::Display for FibMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "FIB memory\n  Tables:")?;
        writeln!(f, "{} {} {}", centred("SAFI", 30), centred("Number", 6), centred("Bytes", 12))?;
        self.0.iter().try_for_each(|Kind { safi, tables, bytes }| {
            let (number, bytes) = (centred(&tables.to_string(), 6), centred(&bytes.to_string(), 12));
            writeln!(f, "{} {number} {bytes}", centred(safi, 30))
        })
    }
}
