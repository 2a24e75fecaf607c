//! A counter of instructions that can be made to rest.

use crate::sys;

/// Counts the instructions of this thread in user mode.
#[derive(Debug)]
pub enum Meter {
    /// The processor counts.
    Perf(sys::Instructions),
    /// Valgrind counts, if this runs under it; what it counted it prints itself.
    Valgrind,
}

impl Meter {
    /// Counts from now on.
    pub fn resume(&self) {
        match self {
            Meter::Perf(counter) => counter.enable(),
            Meter::Valgrind => sys::valgrind_toggle_collect(),
        }
    }

    /// Counts no more, until [`Meter::resume`].
    pub fn pause(&self) {
        match self {
            Meter::Perf(counter) => counter.disable(),
            Meter::Valgrind => sys::valgrind_toggle_collect(),
        }
    }
}
