//! Connected clients, and the events that they want.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use shoal_message::{Header, Message, Retval};

use super::{Call, ClientIndex, answers};
use crate::Control;

/// Where a client's messages go.
pub trait Mailbox {
    /// Adds whole messages; false when the client is gone, or is cut off now because it does not read.
    fn post(&self, bytes: &[u8]) -> bool;
    /// What the client calls itself.
    fn name(&self) -> String;
}

/// All connected clients.
#[derive(Default)]
pub struct Clients {
    there: RefCell<BTreeMap<ClientIndex, Rc<dyn Mailbox>>>,
    last: Cell<u32>,
    numbers: OnceCell<HashMap<String, u16>>,
}

/// Set in every client's number, as VPP does for those of a socket.
const SOCKET: u32 = 1 << 31;

impl Clients {
    /// Takes over which number each message has.
    pub fn number(&self, numbers: impl IntoIterator<Item = (impl Into<String>, u16)>) {
        // The table is made once.
        let _: Result<(), _> =
            self.numbers.set(numbers.into_iter().map(|(name, id)| (name.into(), id)).collect());
    }

    /// A client has come.
    pub fn add(&self, mailbox: Rc<dyn Mailbox>) -> ClientIndex {
        self.last.set(self.last.get() % (SOCKET - 1) + 1);
        let index = ClientIndex(self.last.get() | SOCKET);
        self.there.borrow_mut().insert(index, mailbox);
        index
    }

    /// A client has gone.
    pub fn remove(&self, client: ClientIndex) {
        self.there.borrow_mut().remove(&client);
    }

    /// Whether a client is connected.
    pub fn is_there(&self, client: ClientIndex) -> bool {
        self.there.borrow().contains_key(&client)
    }

    /// All of them and what they call themselves.
    pub fn list(&self) -> Vec<(ClientIndex, String)> {
        self.there.borrow().iter().map(|(index, mailbox)| (*index, mailbox.name())).collect()
    }

    /// Tells a client of an event; false when it is gone.
    pub fn send<M: Message>(&self, client: ClientIndex, pid: u32, event: &M) -> bool {
        debug_assert!(matches!(M::HEADER, Header::Event | Header::Bare));
        let Some(mailbox) = self.there.borrow().get(&client).cloned() else { return false };
        let Some(id) = self.numbers.get().and_then(|all| all.get(M::NAME)) else { return false };
        let mut bytes = Vec::new();
        answers::frame(&mut bytes, |to| {
            to.extend(id.to_be_bytes());
            // Some events have fields of their own for these.
            if M::HEADER == Header::Event {
                to.extend(client.0.to_be_bytes());
                to.extend(pid.to_be_bytes());
            }
            event.encode(to);
        });
        mailbox.post(&bytes)
    }
}

/// Clients that want one kind of event, and which of them.
#[derive(Debug)]
pub struct Subscribers<Of = ()>(RefCell<Vec<Subscriber<Of>>>);

#[derive(Debug, Clone, Copy)]
struct Subscriber<Of> {
    client: ClientIndex,
    pid: u32,
    of: Of,
}

impl<Of> Default for Subscribers<Of> {
    fn default() -> Self {
        Subscribers(RefCell::default())
    }
}

impl<Of: PartialEq + Copy> Subscribers<Of> {
    /// Adds or removes the one who calls.
    ///
    /// # Errors
    /// It is there already, or was not.
    pub fn set(&self, call: &Call, pid: u32, of: Of, is_wanted: bool) -> Result<(), Retval> {
        let clients = call.clients().map_err(|_| Retval::INVALID_REGISTRATION)?;
        let mut all = self.0.borrow_mut();
        // No event tells when a client goes; there are no more of those than came since the last call.
        all.retain(|one| clients.is_there(one.client));
        let place = all.iter().position(|one| one.client == call.client && one.of == of);
        match (place, is_wanted) {
            (None, true) => all.push(Subscriber { client: call.client, pid, of }),
            (Some(place), false) => drop(all.remove(place)),
            (Some(_), true) | (None, false) => return Err(Retval::INVALID_REGISTRATION),
        }
        Ok(())
    }

    /// All of them: who, with which number of its own, and of what.
    pub fn list(&self) -> Vec<(ClientIndex, u32, Of)> {
        self.0.borrow().iter().map(|one| (one.client, one.pid, one.of)).collect()
    }

    /// Whether no client is registered.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Tells those who want to know of it.
    pub fn publish<M: Message>(&self, control: &Control, wanted: impl Fn(Of) -> bool, event: &M) {
        self.tell(control, |clients, one| !wanted(one.of) || clients.send(one.client, one.pid, event));
    }

    /// Calls `tell` for each; a client that is gone by its answer is forgotten.
    fn tell(&self, control: &Control, tell: impl Fn(&Clients, &Subscriber<Of>) -> bool) {
        if self.is_empty() {
            return;
        }
        let Ok(clients) = control.get::<Clients>() else { return };
        self.0.borrow_mut().retain(|one| tell(&clients, one));
    }
}
