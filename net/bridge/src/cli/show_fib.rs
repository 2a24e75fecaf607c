//! `show l2fib`: a listing, because there may be millions of stations.

use std::fmt::{self, Write as _};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use shoal_graph::Graph;
use shoal_interface::cli::column::{centre, line, number, whole};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Listing, Output, Page};

use super::DomainArg;
use crate::entry::Entry;
use crate::table::minute;
use crate::{Bridges, MacInfo};

pub(super) const SHOW: Command = Command::new(
    "show l2fib [verbose | all | bd_id <domain:bridge-domain> | bd_index <index:u16>] [learn | add] [raw]",
    "Show where the stations of bridge domains are",
    show,
)
.examples(&["show l2fib", "show l2fib verbose", "show l2fib all learn"])
.doc(
    "Without a word only how many there are. `learn`: only those that were learned, `add`: only those that were entered. \
     `raw`: also those that are out of date and will be forgotten.",
);

#[derive(Clone, Copy, PartialEq, Eq)]
enum FibFilter {
    All,
    Learned,
    Added,
}

#[derive(Serialize)]
struct Row {
    mac: String,
    bd_index: u16,
    sw_if_index: i32,
    bsn: u8,
    isn: u8,
    age: String,
    #[serde(rename = "static")]
    is_static: bool,
    filter: bool,
    bvi: bool,
    interface: String,
}

fn mark(on: bool, width: usize) -> String {
    centre(if on { "*" } else { "-" }, width)
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&line(&[
            centre(&self.mac, 19),
            number(self.bd_index, 7),
            number(self.sw_if_index, 7),
            whole(format_args!("{:3}/{:<3}", self.bsn, self.isn), 8),
            centre(&self.age, 9),
            mark(self.is_static, 7),
            mark(self.filter, 7),
            mark(self.bvi, 5),
            whole(&self.interface, 30),
        ]))
    }
}

fn head() -> String {
    line(&[
        centre("Mac-Address", 19),
        centre("BD-Idx", 7),
        centre("If-Idx", 7),
        centre("BSN-ISN", 8),
        centre("Age(min)", 9),
        centre("static", 7),
        centre("filter", 7),
        centre("bvi", 5),
        centre("Interface-Name", 30),
    ])
}

/// Seconds as VPP prints them here.
fn seconds(time: Duration) -> String {
    format!("{:.4e}sec", time.as_secs_f64())
}

struct Stations {
    bridges: Rc<Bridges>,
    interfaces: Rc<Interfaces>,
    graph: Rc<Graph>,
    domain: Option<u16>,
    which: FibFilter,
    raw: bool,
    /// The next group; `None` before the first.
    next: Option<usize>,
    /// Rows are wanted at all.
    rows: bool,
}

impl Stations {
    fn row(&self, info: &MacInfo) -> Row {
        let entry = info.entry;
        let [bsn, isn] = entry.sequence().to_be_bytes();
        let age = if !entry.is_learned() {
            "no".to_owned()
        } else if self.bridges.table().age(info.domain) == 0 {
            "-".into()
        } else {
            minute(self.graph.clock().now()).wrapping_sub(entry.minute()).to_string()
        };
        let interface = entry.interface();
        Row {
            mac: info.mac.to_string(),
            bd_index: info.domain,
            sw_if_index: interface.0 as i32,
            bsn,
            isn,
            age,
            is_static: entry.has(Entry::STATIC),
            filter: entry.has(Entry::FILTER),
            bvi: entry.has(Entry::BVI),
            interface: if interface == SwIfIndex::NONE {
                "N/A".into()
            } else {
                self.interfaces.name(interface).unwrap_or_else(|_| "Stale".into())
            },
        }
    }

    fn wants(&self, info: &MacInfo) -> bool {
        let learned = info.entry.is_learned();
        self.domain.is_none_or(|only| only == info.domain)
            && (self.raw || self.bridges.is_current(info))
            && match self.which {
                FibFilter::All => true,
                FibFilter::Learned => learned,
                FibFilter::Added => !learned,
            }
    }

    fn total(&self) -> String {
        let (all, count) = (self.bridges.table().macs().len(), self.bridges.learned());
        let scanned = self.bridges.scanned();
        let mut text = format!(
            "L2FIB total/learned entries: {all}/{}  Last scan time: {}  Learn limit: {} \n",
            count.learned,
            seconds(scanned.all),
            count.limit
        );
        if let Some((client, most)) = crate::api::news_client(&self.bridges) {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "L2MAC events client PID: {client}  Last e-scan time: {}  Delay: {:.2e}sec  Max macs in event: {most}",
                seconds(scanned.news),
                self.bridges.scan_delay().as_secs_f64()
            );
        }
        text
    }
}

impl Listing for Stations {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        let macs = self.bridges.table().macs().clone();
        let Some(group) = self.next else {
            if macs.is_empty() {
                page.text("no l2fib entries\n");
                page.object();
                page.key("entries");
                page.array();
                return ControlFlow::Break(());
            }
            if self.rows {
                page.text(head());
            }
            page.object();
            page.key("entries");
            page.array();
            self.next = Some(if self.rows { 0 } else { macs.groups().end });
            return ControlFlow::Continue(());
        };
        if group >= macs.groups().end {
            page.close();
            page.text(self.total());
            page.key("total");
            page.value(&macs.len());
            page.key("learned");
            page.value(&self.bridges.learned().learned);
            page.key("learn_limit");
            page.value(&self.bridges.learned().limit);
            return ControlFlow::Break(());
        }
        for info in self.bridges.stations_of(group) {
            if self.wants(&info) {
                page.row(&self.row(&info));
            }
        }
        let next = (group + 1..macs.groups().end).find(|group| macs.occupied(*group) > 0);
        self.next = Some(next.unwrap_or(macs.groups().end));
        ControlFlow::Continue(())
    }
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let bridges = control.get::<Bridges>()?;
    let domain = match (args.opt::<DomainArg>("domain")?, args.opt::<u16>("index")?) {
        (Some(DomainArg(number)), _) => Some(bridges.index_of(number)?),
        (None, index) => index,
    };
    let which = match (args.has("learn"), args.has("add")) {
        (true, _) => FibFilter::Learned,
        (_, true) => FibFilter::Added,
        _ => FibFilter::All,
    };
    let raw = args.has("raw");
    let rows = domain.is_some() || which != FibFilter::All || raw || args.has("verbose") || args.has("all");
    let (interfaces, graph) = (control.get::<Interfaces>()?, control.graph()?);
    Ok(Output::listing(Stations { bridges, interfaces, graph, domain, which, raw, next: None, rows }))
}
