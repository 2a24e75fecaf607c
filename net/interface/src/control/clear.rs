//! Starting interface counters anew.

use shoal_buffer::SwIfIndex;

use super::Interfaces;
use crate::InterfaceError;

impl Interfaces {
    /// Sets the counters of some interfaces to zero. Each thread clears its own row between two rounds, so that no
    /// count is torn.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn clear_counters(&self, interfaces: &[SwIfIndex]) -> Result<(), InterfaceError> {
        let counters = self.graph.graph_counters().clone();
        let at: Vec<usize> = interfaces.iter().map(|i| i.0 as usize).collect();
        let c = &counters;
        let pairs = [c.rx.clone(), c.tx.clone()];
        let singles = [&c.drops, &c.punt, &c.ip4, &c.ip6, &c.rx_no_buf, &c.rx_miss, &c.rx_error, &c.tx_error]
            .map(Clone::clone);
        Ok(self.graph.on_every_thread(move |worker| {
            let thread = worker.thread();
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
        })?)
    }
}

fn zero(cell: Option<&std::sync::atomic::AtomicU64>) {
    if let Some(cell) = cell {
        cell.store(0, std::sync::atomic::Ordering::Relaxed);
    }
}
