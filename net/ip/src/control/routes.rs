//! The routes that come with addresses.

use std::collections::BTreeMap;
use std::fmt::Display;

use shoal_fib::{Fib, FibError, FibIndex, Path, Source, Via};
use shoal_wire::IpPrefix;

/// The routes that an interface's addresses give its table.
pub type Routes<P> = BTreeMap<P, Via>;

/// Routes on their way from what an interface had to what it is to have.
pub struct RouteChange<'a, P> {
    fib: &'a Fib,
    new: FibIndex,
    had: Routes<P>,
    wants: Routes<P>,
    done: Vec<P>,
}

impl<'a, P: Copy + Ord + Display + Into<IpPrefix>> RouteChange<'a, P> {
    /// Enters what is new into a table; what is to go stays for now.
    ///
    /// # Errors
    /// The table refused; nothing was changed.
    pub fn begin(fib: &'a Fib, new: FibIndex, had: Routes<P>, wants: Routes<P>) -> Result<Self, FibError> {
        let mut change = RouteChange { fib, new, had, wants, done: Vec::new() };
        for (prefix, via) in change.wants.iter().filter(|(p, via)| change.had.get(*p) != Some(*via)) {
            if let Err(e) = fib.add(new, *prefix, Source::Interface, &[Path::from(*via)]) {
                change.undo();
                return Err(e);
            }
            change.done.push(*prefix);
        }
        Ok(change)
    }

    /// Puts back what was there.
    pub fn undo(self) {
        for prefix in &self.done {
            match self.had.get(prefix) {
                Some(via) => {
                    let back = self.fib.add(self.new, *prefix, Source::Interface, &[Path::from(*via)]);
                    if let Err(e) = back {
                        tracing::warn!("{prefix} cannot be put back: {e}");
                    }
                }
                None => self.withdraw(self.new, *prefix),
            }
        }
    }

    /// Takes away what is not wanted any more, from the table it was in.
    pub fn finish(self, old: FibIndex) {
        for prefix in self.had.keys().filter(|prefix| !self.wants.contains_key(*prefix)) {
            self.withdraw(old, *prefix);
        }
    }

    fn withdraw(&self, fib: FibIndex, prefix: P) {
        match self.fib.remove(fib, prefix, Source::Interface) {
            // The table forgets a deleted interface's paths by itself, and may have been first.
            Ok(()) | Err(FibError::NoEntry { .. } | FibError::OtherSource { .. }) => {}
            Err(e) => tracing::warn!("{prefix} cannot be withdrawn: {e}"),
        }
    }
}
