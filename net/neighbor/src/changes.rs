//! Observers of neighbours that come, change and go.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_module::Control;

use crate::table::Neighbour;

/// What became of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It is known from now on, or known otherwise.
    Added,
    /// It is known no longer.
    Removed,
}

/// A change of a neighbour table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// What happened.
    pub event: Event,
    /// The link.
    pub interface: SwIfIndex,
    /// The neighbour's address.
    pub address: IpAddr,
    /// What is known of it, or was.
    pub neighbour: Neighbour,
}

type Observer = Rc<dyn Fn(&Change)>;

/// All changes of all families' tables.
#[derive(Default)]
pub struct Changes(RefCell<Vec<Observer>>);

impl Changes {
    /// Those of a router.
    pub fn of(control: &Control) -> Rc<Changes> {
        control.get::<Changes>().unwrap_or_else(|_| control.put(Changes::default()))
    }

    /// Calls `observer` at each change from now on.
    pub fn subscribe(&self, observer: impl Fn(&Change) + 'static) {
        self.0.borrow_mut().push(Rc::new(observer));
    }

    /// Tells all who want to know.
    pub(crate) fn tell(&self, change: &Change) {
        let observers = self.0.borrow().clone();
        for observer in observers {
            observer(change);
        }
    }
}
