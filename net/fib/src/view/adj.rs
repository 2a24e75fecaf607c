//! `show adj`, and the line an adjacency gets in `show ip fib`.

use std::fmt::{self, Write};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::Serialize;
use shoal_adj::{Adj, AdjIndex, AdjKind, Adjacencies, Family, Link};
use shoal_interface::{IfFlags, Interfaces, LinkHeader, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{CliError, Listing, Page};
use shoal_wire::{EtherType, MacAddress};

use crate::{Fib, FibIndex};

/// The next hop, or the unspecified address of the packets' family on a link without addresses.
fn next_hop(adj: &Adj) -> IpAddr {
    adj.next_hop().unwrap_or(match adj.link() {
        Link::Ip4 => IpAddr::from([0; 4]),
        Link::Ip6 => IpAddr::from([0u16; 8]),
    })
}

/// The family of the packets an adjacency carries.
fn family(adj: &Adj) -> Family {
    match adj.link() {
        Link::Ip4 => Family::Ip4,
        Link::Ip6 => Family::Ip6,
    }
}

/// Words for adjacencies.
pub(super) struct Words<'a> {
    pub interfaces: &'a Interfaces,
    pub fib: &'a Fib,
}

impl Words<'_> {
    pub fn interface(&self, interface: SwIfIndex) -> String {
        self.interfaces.name(interface).unwrap_or_else(|_| "deleted".into())
    }

    /// A table's name.
    pub fn table(&self, family: Family, fib: FibIndex) -> String {
        self.fib.table(family, fib).map_or_else(|e| e.to_string(), |t| t.name)
    }

    /// One adjacency as VPP prints it behind `[@N]: `; `of` is the family of the packets that end there, `glean` the
    /// connected network, where it is known.
    pub fn adj(&self, adj: &Adj, of: Family, glean: Option<String>) -> String {
        let long = family(adj).long_name();
        match adj.kind() {
            AdjKind::None | AdjKind::Drop => format!("dpo-drop {of}"),
            AdjKind::Unreachable => format!("{of}-null action:send-unreachable"),
            AdjKind::Prohibit => format!("{of}-null action:send-prohibited"),
            AdjKind::Local => "dpo-receive".into(),
            AdjKind::InterfaceRx => format!("interface-rx-dpo: {} {of}", self.interface(adj.tx())),
            AdjKind::Dvr => format!("dvr-{}-dpo-{of}", self.interface(adj.tx())),
            AdjKind::Node => format!("dpo-{}", self.fib.node_of(adj.own())),
            AdjKind::Count => format!("counter of a route: [@{}]", adj.behind()),
            AdjKind::Punt => format!("dpo-punt {of}"),
            AdjKind::Balance => format!("dpo-load-balance: [proto:{of} buckets:{}]", adj.buckets()),
            AdjKind::Lookup => {
                let address = if adj.by_source() { "src" } else { "dst" };
                format!(
                    "{address}-address,unicast lookup in {}",
                    self.table(family(adj), FibIndex(adj.table()))
                )
            }
            AdjKind::Incomplete => {
                format!("arp-{long}: via {} {}", next_hop(adj), self.interface(adj.tx()))
            }
            AdjKind::Closed => {
                format!("{long} via {} {}: session down", next_hop(adj), self.interface(adj.tx()))
            }
            AdjKind::Rewrite => {
                let counts = self
                    .fib
                    .counts(adj.own())
                    .map_or(String::new(), |(packets, bytes)| format!(" counts:[{packets}:{bytes}]"));
                format!("{long} via {} {}{counts}", next_hop(adj), self.rewrite(adj, adj.rewrite()))
            }
            AdjKind::Multicast => format!("{}-mcast: {}", of.long_name(), self.rewrite(adj, adj.rewrite())),
            AdjKind::Glean => {
                let host =
                    || format!("{}/{}", adj.source().unwrap_or_else(|| next_hop(adj)), family(adj).max_len());
                let header = if family(adj) == Family::Ip4 { self.request(adj.tx()) } else { Vec::new() };
                format!("{long}-glean: [src:{}] {}", glean.unwrap_or_else(host), self.rewrite(adj, &header))
            }
        }
    }

    fn rewrite(&self, adj: &Adj, bytes: &[u8]) -> String {
        let mut text =
            format!("{}: mtu:{} next:{} flags:[] ", self.interface(adj.tx()), adj.mtu, adj.edge().0);
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// The Ethernet header of an ARP request sent by an interface.
    fn request(&self, interface: SwIfIndex) -> Vec<u8> {
        let data = self.interfaces.data(interface).ok().filter(|d| d.flags().has(IfFlags::ETHERNET));
        data.map(|d| LinkHeader::new(&d, MacAddress::BROADCAST, EtherType::ARP).to_vec()).unwrap_or_default()
    }
}

#[derive(Serialize)]
struct Row {
    index: u32,
    kind: String,
    interface: Option<String>,
    next_hop: Option<String>,
    locks: usize,
    /// What it has counted, if it counts.
    packets: Option<u64>,
    bytes: Option<u64>,
    text: String,
    #[serde(skip)]
    detail: bool,
}

impl Row {
    fn new((index, adj, locks): (AdjIndex, Adj, usize), fib: &Fib, words: &Words<'_>, detail: bool) -> Self {
        Row {
            index: index.0,
            kind: format!("{:?}", adj.kind()).to_lowercase(),
            interface: (adj.tx().0 != u32::MAX).then(|| words.interface(adj.tx())),
            next_hop: adj.next_hop().map(|a| a.to_string()),
            locks,
            packets: fib.counts(index).map(|(packets, _)| packets),
            bytes: fib.counts(index).map(|(_, bytes)| bytes),
            text: words.adj(&adj, family(&adj), None),
            detail,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[@{}] {}", self.index, self.text)?;
        if self.detail { writeln!(f, "   locks:{}", self.locks) } else { Ok(()) }
    }
}

/// Which adjacencies `show adj` shows, and how.
pub(crate) struct Wanted {
    pub index: Option<u32>,
    pub interface: Option<SwIfIndex>,
    /// Only those of neighbours.
    pub neighbours: bool,
    pub summary: bool,
}

/// `show adj`.
pub(crate) struct AdjListing {
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    adjacencies: Rc<Adjacencies>,
    wanted: Wanted,
    next: Option<AdjIndex>,
    begun: bool,
    count: usize,
}

impl AdjListing {
    pub fn new(control: &Control, wanted: Wanted) -> Result<Self, CliError> {
        let (interfaces, fib) = (control.get::<Interfaces>()?, control.get::<Fib>()?);
        let adjacencies = control.get::<Adjacencies>()?;
        let next = AdjIndex(wanted.index.unwrap_or(0));
        if let Some(index) = wanted.index
            && adjacencies.at_or_after(next).is_none_or(|(found, ..)| found != next)
        {
            let all = adjacencies.list().into_iter().map(|(index, ..)| index.0);
            let nearest = all.min_by_key(|n| n.abs_diff(index)).map(|n| n.to_string());
            return Err(
                CliError::argument("adj-index", format!("adjacency {index} invalid")).nearest(nearest)
            );
        }
        Ok(AdjListing { interfaces, fib, adjacencies, wanted, next: Some(next), begun: false, count: 0 })
    }
}

impl Listing for AdjListing {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if !std::mem::replace(&mut self.begun, true) {
            page.object();
            page.key("adjacencies");
            page.array();
        }
        let Some(found) = self.next.and_then(|next| self.adjacencies.at_or_after(next)) else {
            if self.wanted.summary {
                let counters = if self.adjacencies.all_count() { "enabled" } else { "disabled" };
                page.text(format_args!(
                    "Number of adjacencies: {}\nPer-adjacency counters: {counters}\n",
                    self.count
                ));
            }
            return ControlFlow::Break(());
        };
        let (index, adj, _) = found;
        let one = self.wanted.index;
        self.next = index.0.checked_add(1).filter(|_| one.is_none()).map(AdjIndex);
        let other = self.wanted.neighbours && adj.next_hop().is_none();
        if other || self.wanted.interface.is_some_and(|only| only != adj.tx()) {
            return ControlFlow::Continue(());
        }
        self.count += 1;
        let words = Words { interfaces: &self.interfaces, fib: &self.fib };
        let row = Row::new(found, &self.fib, &words, one.is_some());
        if !self.wanted.summary {
            page.text(&row);
        }
        page.value(&row);
        ControlFlow::Continue(())
    }
}
