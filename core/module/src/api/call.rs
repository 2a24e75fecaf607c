//! The client that asks.

use std::rc::Rc;

use crate::api::Clients;
use crate::{Control, Missing};

/// A connected client, by the number that it was given. No number is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientIndex(pub u32);

impl ClientIndex {
    /// No connected client: the router itself, or a test.
    pub const NONE: ClientIndex = ClientIndex(0);
}

/// One request being handled.
#[derive(Clone)]
pub struct Call {
    /// The control plane.
    pub control: Rc<Control>,
    /// Who asked.
    pub client: ClientIndex,
    /// What the client knows the request by.
    pub context: u32,
}

impl Call {
    /// A request without a connected client.
    pub fn local(control: &Rc<Control>) -> Self {
        Call { control: Rc::clone(control), client: ClientIndex::NONE, context: 0 }
    }

    /// The control object of type `T`.
    ///
    /// # Errors
    /// It is not part of this router.
    pub fn get<T: 'static>(&self) -> Result<Rc<T>, Missing> {
        self.control.get::<T>()
    }

    /// A connected client.
    ///
    /// # Errors
    /// This router has no binary API.
    pub fn clients(&self) -> Result<Rc<Clients>, Missing> {
        self.control.get::<Clients>()
    }
}
