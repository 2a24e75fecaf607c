//! Ctrl-C: the first ends the measurement with its record written and the devices taken away, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Told by everyone who waits.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on signals are remembered instead of ending the program.
    ///
    /// # Errors
    ///
    /// If the system refuses the handlers.
    pub fn install() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset, sets it and does not end the program; the next does.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Interrupt(flag))
    }

    /// Whether someone wants it to end.
    pub fn wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
