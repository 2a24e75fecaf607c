//! Observers of each answer that a station gives, whether it was asked for or not.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::{Rc, Weak};

use shoal_interface::SwIfIndex;
use shoal_module::Control;
use shoal_wire::MacAddress;

/// A station claimed an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The link.
    pub interface: SwIfIndex,
    /// The address; it may be one of this router, too.
    pub address: IpAddr,
    /// The station.
    pub mac: MacAddress,
}

type Listener = Rc<dyn Fn(&Answer)>;

/// All answers of all families. The same one a thousand times is reported a few times only.
#[derive(Default)]
pub struct Answers {
    listeners: RefCell<Vec<(u64, Listener)>>,
    next: Cell<u64>,
}

/// A listener hears answers until this is dropped.
pub struct Listening {
    answers: Weak<Answers>,
    number: u64,
}

impl Answers {
    /// Those of a router.
    pub fn of(control: &Control) -> Rc<Answers> {
        control.get::<Answers>().unwrap_or_else(|_| control.put(Answers::default()))
    }

    /// Calls `listener` at each answer from now on.
    pub fn listen(self: &Rc<Self>, listener: impl Fn(&Answer) + 'static) -> Listening {
        let number = self.next.replace(self.next.get().wrapping_add(1));
        self.listeners.borrow_mut().push((number, Rc::new(listener)));
        Listening { answers: Rc::downgrade(self), number }
    }

    /// Tells all who listen.
    pub fn tell(&self, answer: &Answer) {
        let listeners = self.listeners.borrow().clone();
        for (_, listener) in listeners {
            listener(answer);
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(answers) = self.answers.upgrade() {
            answers.listeners.borrow_mut().retain(|(number, _)| *number != self.number);
        }
    }
}
