//! `show ip table`, `show ip fib summary` and `show ip fib memory`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::TableInfo;

/// The first line of a table.
#[derive(Serialize)]
pub(super) struct Head {
    table: u32,
    fib_index: u32,
    name: String,
    flow_hash: String,
    locks: BTreeMap<&'static str, usize>,
}

impl Head {
    pub fn new(table: &TableInfo) -> Self {
        let locks = table.locks.iter().map(|(source, n)| (source.name(), *n)).collect();
        let (name, flow_hash) = (table.name.clone(), table.flow_fields.to_string());
        Head { table: table.id, fib_index: table.index.0, name, flow_hash, locks }
    }

    pub fn fib_index(&self) -> u32 {
        self.fib_index
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Head { name, fib_index, flow_hash, .. } = self;
        write!(f, "{name}, fib_index:{fib_index}, flow hash:[{flow_hash}] ")?;
        write!(f, "epoch:0 flags:none locks:[")?;
        self.locks.iter().try_for_each(|(source, n)| write!(f, "{source}:{n}, "))?;
        writeln!(f, "]")
    }
}

/// A value in the middle of its column; the odd blank stands on the left, as in VPP.
struct Centred<T>(T, usize);

impl<T: fmt::Display> fmt::Display for Centred<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let room = self.1.saturating_sub(text.len());
        write!(f, "{:left$}{text}{:right$}", "", "", left = room.div_ceil(2), right = room / 2)
    }
}

#[derive(Serialize)]
struct Lengths {
    #[serde(flatten)]
    head: Head,
    /// Entries by prefix length, where there are any.
    prefix_lengths: BTreeMap<usize, usize>,
}

/// `show ip fib summary`.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct SummaryView(Vec<Lengths>);

impl SummaryView {
    pub fn new(tables: &[TableInfo]) -> Self {
        let lengths = |t: &TableInfo| t.lengths.iter().copied().enumerate().filter(|(_, n)| *n > 0).collect();
        SummaryView(
            tables.iter().map(|t| Lengths { head: Head::new(t), prefix_lengths: lengths(t) }).collect(),
        )
    }
}

impl fmt::Display for SummaryView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in &self.0 {
            write!(f, "{}", table.head)?;
            writeln!(f, "{}{}", Centred("Prefix length", 20), Centred("Count", 16))?;
            for (len, count) in &table.prefix_lengths {
                writeln!(f, "{}{}", Centred(len, 20), Centred(count, 16))?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Memory {
    name: String,
    prefixes: usize,
    mtrie: usize,
    hash: usize,
}

/// `show ip fib memory`: bytes.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct MemoryView(Vec<Memory>);

impl MemoryView {
    pub fn new(tables: &[TableInfo]) -> Self {
        let memory = |t: &TableInfo| Memory {
            name: t.name.clone(),
            prefixes: t.lengths.iter().sum(),
            mtrie: t.trie_bytes,
            hash: t.entry_bytes,
        };
        MemoryView(tables.iter().map(memory).collect())
    }
}

impl fmt::Display for MemoryView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Memory { name, prefixes, mtrie, hash } in &self.0 {
            let each = (mtrie + hash).checked_div(*prefixes).unwrap_or(0);
            writeln!(f, "{name} mtrie:{mtrie} hash:{hash} prefixes:{prefixes} bytes/prefix:{each}")?;
        }
        let (mtrie, hash) = self.0.iter().fold((0, 0), |(m, h), t| (m + t.mtrie, h + t.hash));
        writeln!(f, "totals: mtrie:{mtrie} hash:{hash} all:{}", mtrie + hash)
    }
}

#[derive(Serialize)]
struct Table {
    #[serde(flatten)]
    head: Head,
    prefixes: usize,
}

/// `show ip table`.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct TablesView(Vec<Table>);

impl TablesView {
    pub fn new(tables: &[TableInfo]) -> Self {
        let table = |t: &TableInfo| Table { head: Head::new(t), prefixes: t.lengths.iter().sum() };
        TablesView(tables.iter().map(table).collect())
    }
}

impl fmt::Display for TablesView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Table { head: Head { table, fib_index, name, .. }, .. } in &self.0 {
            writeln!(f, "[{fib_index}] table_id:{table} {name}")?;
        }
        Ok(())
    }
}
