//! What others may watch: advertisements of routers, and what becomes of this router's addresses.

use std::cell::RefCell;
use std::rc::Rc;

use crate::fact::{AdvertisedLink, Prefixes};
use crate::{AddressState, Key};

/// Something that happened.
pub(crate) enum Observed<'a> {
    /// A router advertised itself.
    Advertised { from: Key, said: &'a AdvertisedLink, prefixes: &'a Prefixes },
    /// An address of this router has another standing; how often the link has been asked for it, and is at most.
    Address { key: Key, standing: AddressState, asked: u32, transmits: u32 },
}

type Observer = Rc<dyn Fn(&Observed<'_>)>;

/// Those who watch.
#[derive(Default)]
pub(crate) struct Observers(RefCell<Vec<Observer>>);

impl Observers {
    pub(crate) fn add(&self, observer: impl Fn(&Observed<'_>) + 'static) {
        self.0.borrow_mut().push(Rc::new(observer));
    }

    pub(crate) fn tell(&self, what: &Observed<'_>) {
        let all = self.0.borrow().clone();
        for observer in all {
            observer(what);
        }
    }
}
