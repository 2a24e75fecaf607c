//! What is counted of each interface, and under which names.

use std::io;

use shoal_buffer::{MAX_INTERFACES, SwIfIndex};
use shoal_graph::Graph;
use shoal_graph::counter::{Combined, Simple};

/// Packets by kind of destination: one station, a group, all. In this order.
pub type ByCast = [Combined; 3];

/// The 17 counters of VPP: `/if/<name>`, and `/interfaces/<interface>/<name>`.
pub(crate) struct IfCounters {
    pairs: Vec<(&'static str, Combined)>,
    singles: Vec<(&'static str, Simple)>,
    /// IPv4 packets received, counted where they come in.
    pub ip4: Simple,
    /// The same of IPv6.
    pub ip6: Simple,
    /// What `stats-collect-rx` counts.
    pub rx_by_cast: ByCast,
    /// What `stats-collect-tx` counts.
    pub tx_by_cast: ByCast,
}

impl IfCounters {
    /// Enters those that the graph itself does not keep.
    pub(crate) fn new(graph: &Graph) -> io::Result<Self> {
        let counters = graph.counters();
        let mut pairs = Vec::new();
        let mut by_cast = |names: [&'static str; 3]| -> io::Result<ByCast> {
            let mut one = |name: &'static str| {
                let counter = counters.combined(&format!("/if/{name}"), MAX_INTERFACES)?;
                pairs.push((name, counter.clone()));
                io::Result::Ok(counter)
            };
            let [unicast, multicast, broadcast] = names;
            Ok([one(unicast)?, one(multicast)?, one(broadcast)?])
        };
        let rx_by_cast = by_cast(["rx-unicast", "rx-multicast", "rx-broadcast"])?;
        let tx_by_cast = by_cast(["tx-unicast", "tx-multicast", "tx-broadcast"])?;
        // Nothing counts MPLS yet; clients ask for all 17.
        let of_family = |name: &str| counters.simple(&format!("/if/{name}"), MAX_INTERFACES);
        let (ip4, ip6, mpls) = (of_family("ip4")?, of_family("ip6")?, of_family("mpls")?);
        let c = graph.graph_counters();
        pairs.extend([("rx", c.rx.clone()), ("tx", c.tx.clone())]);
        let singles = vec![
            ("drops", c.drops.clone()),
            ("punt", c.punt.clone()),
            ("ip4", ip4.clone()),
            ("ip6", ip6.clone()),
            ("rx-no-buf", c.rx_no_buf.clone()),
            ("rx-miss", c.rx_miss.clone()),
            ("rx-error", c.rx_error.clone()),
            ("tx-error", c.tx_error.clone()),
            ("mpls", mpls),
        ];
        Ok(IfCounters { pairs, singles, ip4, ip6, rx_by_cast, tx_by_cast })
    }

    /// The names, without what stands before them.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.pairs.iter().map(|(name, _)| *name).chain(self.singles.iter().map(|(name, _)| *name))
    }

    /// Makes room for an interface.
    pub(crate) fn ensure(&self, index: SwIfIndex) {
        let len = index.0 as usize + 1;
        self.pairs.iter().for_each(|(_, c)| c.ensure(len));
        self.singles.iter().for_each(|(_, c)| c.ensure(len));
    }

    /// Resets an interface without a counting thread at the moment.
    pub(crate) fn zero(&self, index: SwIfIndex) {
        self.pairs.iter().for_each(|(_, c)| c.zero(index.0 as usize));
        self.singles.iter().for_each(|(_, c)| c.zero(index.0 as usize));
    }

    /// Something that sets a thread's own rows of some interfaces to zero, on that thread.
    pub(crate) fn clearer(&self, interfaces: &[SwIfIndex]) -> impl Fn(usize) + Clone + Send + Sync + 'static {
        let at: Vec<usize> = interfaces.iter().map(|i| i.0 as usize).collect();
        let pairs: Vec<Combined> = self.pairs.iter().map(|(_, c)| c.clone()).collect();
        let singles: Vec<Simple> = self.singles.iter().map(|(_, c)| c.clone()).collect();
        move |thread| {
            for row in pairs.iter().filter_map(|c| c.row(thread)) {
                for i in &at {
                    zero(row.get(2 * i));
                    zero(row.get(2 * i + 1));
                }
            }
            for row in singles.iter().filter_map(|c| c.row(thread)) {
                for i in &at {
                    zero(row.get(*i));
                }
            }
        }
    }
}

fn zero(cell: Option<&std::sync::atomic::AtomicU64>) {
    if let Some(cell) = cell {
        cell.store(0, std::sync::atomic::Ordering::Relaxed);
    }
}
