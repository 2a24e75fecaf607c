//! Resetting interface counters.

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
        let clear = self.counters.clearer(interfaces);
        self.graph.on_every_thread(move |worker| clear(worker.thread()))?;
        self.graph.mark_cleared();
        Ok(())
    }
}
