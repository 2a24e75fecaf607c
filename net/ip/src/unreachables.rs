//! Whether senders get an error when there is no route for their packets, or no neighbour that answers.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_module::Control;

/// A switch for both families; clones are the same. Off at first, as in VPP: such packets are dropped and counted. On, it
/// is as RFC 1812, 5.2.7.1 and RFC 4443, 3.1 want it. Routes that say `unreachable` or `prohibit` tell senders anyway.
#[derive(Clone, Default, Debug)]
pub struct Unreachables(Arc<AtomicBool>);

impl Unreachables {
    /// The router's switch, made by the family that asks first.
    pub fn of(control: &Control) -> Unreachables {
        let there = control.get::<Unreachables>().unwrap_or_else(|_| control.put(Unreachables::default()));
        Rc::unwrap_or_clone(there)
    }

    /// Whether senders get errors.
    pub fn are_sent(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Tells senders from now on, or does not.
    pub fn send(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }
}
