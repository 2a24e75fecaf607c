//! `show adj`, and the line an adjacency gets in `show ip fib`.

use std::fmt::{self, Write};
use std::net::IpAddr;

use serde::Serialize;
use shoal_adj::{Adj, AdjIndex, AdjKind, Adjacencies, Family, Link};
use shoal_interface::{IfFlags, Interfaces, SwIfIndex};
use shoal_module::{Control, Missing};

use crate::{Fib, FibIndex};

/// The next hop, or nobody of the packets' family on a link without addresses.
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
            AdjKind::Count => format!("counter of a route: [@{}]", adj.behind()),
            AdjKind::Punt => format!("dpo-punt {of}"),
            AdjKind::Balance => format!("dpo-load-balance: [proto:{of} buckets:{}]", adj.buckets()),
            AdjKind::Lookup => {
                format!("dst-address,unicast lookup in {}", self.table(family(adj), FibIndex(adj.table())))
            }
            AdjKind::Incomplete => {
                format!("arp-{long}: via {} {}", next_hop(adj), self.interface(adj.tx()))
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
        data.map(|d| [&[0xff; 6], d.mac().0.as_slice(), &[0x08, 0x06]].concat()).unwrap_or_default()
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
}

/// `show adj`.
#[derive(Serialize)]
pub(crate) struct AdjView {
    adjacencies: Vec<Row>,
    #[serde(skip)]
    all: Vec<u32>,
    #[serde(skip)]
    detail: bool,
    #[serde(skip)]
    summary: bool,
}

impl AdjView {
    pub fn new(
        control: &Control,
        index: Option<u32>,
        interface: Option<SwIfIndex>,
        summary: bool,
    ) -> Result<Self, Missing> {
        let (interfaces, fib) = (control.get::<Interfaces>()?, control.get::<Fib>()?);
        let words = Words { interfaces: &interfaces, fib: &fib };
        let list = control.get::<Adjacencies>()?.list();
        let all = list.iter().map(|(i, ..)| i.0).collect();
        let wanted = |(AdjIndex(i), adj, _): &(AdjIndex, Adj, usize)| {
            index.is_none_or(|index| index == *i) && interface.is_none_or(|interface| interface == adj.tx())
        };
        let row = |(index, adj, locks): (AdjIndex, Adj, usize)| Row {
            index: index.0,
            kind: format!("{:?}", adj.kind()).to_lowercase(),
            interface: (adj.tx().0 != u32::MAX).then(|| words.interface(adj.tx())),
            next_hop: adj.next_hop().map(|a| a.to_string()),
            locks,
            packets: fib.counts(index).map(|(packets, _)| packets),
            bytes: fib.counts(index).map(|(_, bytes)| bytes),
            text: words.adj(&adj, family(&adj), None),
        };
        let adjacencies = list.into_iter().filter(wanted).map(row).collect();
        Ok(AdjView { adjacencies, all, detail: index.is_some(), summary })
    }

    pub fn is_empty(&self) -> bool {
        self.adjacencies.is_empty()
    }

    /// The index nearest to one that is not there.
    pub fn nearest(&self, index: u32) -> Option<u32> {
        self.all.iter().copied().min_by_key(|n| n.abs_diff(index))
    }
}

impl fmt::Display for AdjView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.summary {
            return writeln!(f, "Number of adjacencies: {}", self.adjacencies.len());
        }
        for row in &self.adjacencies {
            writeln!(f, "[@{}] {}", row.index, row.text)?;
            if self.detail {
                writeln!(f, "   locks:{}", row.locks)?;
            }
        }
        Ok(())
    }
}
