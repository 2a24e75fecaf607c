//! `show ip mfib`, `show ip6 mfib`: tables as VPP prints them.

use std::fmt::{self, Write};
use std::net::IpAddr;

use serde::Serialize;
use shoal_adj::{Adjacencies, Family};
use shoal_fib::TableInfo;
use shoal_interface::Interfaces;
use shoal_module::{Control, Missing};

use crate::control::Entry;
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
struct Table {
    name: String,
    fib_index: u32,
    entries: Vec<Row>,
}

/// `show ip mfib`.
#[derive(Serialize)]
pub(crate) struct MfibView {
    #[serde(skip)]
    family: Family,
    tables: Vec<Table>,
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

impl MfibView {
    pub(crate) fn new(
        control: &Control,
        family: Family,
        tables: &[TableInfo],
        only: Option<IpAddr>,
    ) -> Result<Self, Missing> {
        let (mfib, interfaces) = (control.get::<Mfib>()?, control.get::<Interfaces>()?);
        let adjacencies = control.get::<Adjacencies>()?;
        let words = Words { family, interfaces: &interfaces, adjacencies: &adjacencies };
        let wanted = |entry: &Entry| only.is_none_or(|group| entry.prefix.covers(group));
        let rows = |t: &TableInfo| {
            mfib.entries(family, t.index).iter().filter(|e| wanted(e)).map(|e| words.row(e)).collect()
        };
        let table = |t: &TableInfo| Table { name: t.name.clone(), fib_index: t.index.0, entries: rows(t) };
        Ok(MfibView { family, tables: tables.iter().map(table).collect() })
    }
}

impl fmt::Display for MfibView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in &self.tables {
            writeln!(f, "{}, fib_index:{} flags:none", table.name, table.fib_index)?;
            for row in &table.entries {
                writeln!(
                    f,
                    "{}:  flags:{}, index:{} src:{}",
                    row.prefix,
                    row.flags,
                    row.index,
                    row.sources.join(",")
                )?;
                writeln!(f, " Interfaces:")?;
                for itf in &row.interfaces {
                    writeln!(f, "  {}: {}", itf.interface, itf.flags)?;
                }
                writeln!(f, " multicast-{}-chain", self.family)?;
                if row.replicates_to.is_empty() {
                    writeln!(f, "  [@0]: dpo-drop {}", self.family)?;
                    continue;
                }
                let buckets = row.replicates_to.len();
                writeln!(f, "  [@0]: replicate: [index:{} buckets:{buckets}]", row.index)?;
                for (i, to) in row.replicates_to.iter().enumerate() {
                    writeln!(f, "    [{i}] [@1]: {to}")?;
                }
            }
            // What no entry is for.
            let all = if self.family == Family::Ip4 { "0.0.0.0/0" } else { "::/0" };
            writeln!(f, "(*, {all}):  flags:Drop")?;
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
            entries: mfib.entries(family, t.index).len(),
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
