//! Where reports are listened to: shared by both planes.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_infra::StableArena;
use shoal_interface::{MAX_INTERFACES, SwIfIndex};

/// The interfaces on which the router speaks as a router. Clones are the same.
#[derive(Clone)]
pub(crate) struct Routers(StableArena<AtomicBool>);

impl Routers {
    pub fn new() -> io::Result<Self> {
        Ok(Routers(StableArena::with_capacity(MAX_INTERFACES)?))
    }

    pub fn is_on(&self, interface: SwIfIndex) -> bool {
        self.0.get(interface.0 as usize).is_some_and(|cell| cell.load(Ordering::Relaxed))
    }

    pub fn set(&self, interface: SwIfIndex, on: bool) {
        if let Some(cell) = self.0.get(interface.0 as usize) {
            cell.store(on, Ordering::Relaxed);
        }
    }
}
