//! A client of the binary API that only listens: the events it gets, without a socket.

use std::cell::RefCell;
use std::rc::Rc;

use shoal_message::{Input, Message};
use shoal_module::api::answers::FRAME;
use shoal_module::api::{ApiPart, Call, ClientIndex, Clients, Mailbox};

use crate::Router;

/// A connected client.
pub struct Listener {
    client: ClientIndex,
    told: Rc<RecordingMailbox>,
    names: Vec<&'static str>,
}

#[derive(Default)]
struct RecordingMailbox(RefCell<Vec<Vec<u8>>>);

impl Mailbox for RecordingMailbox {
    fn post(&self, bytes: &[u8]) -> bool {
        self.0.borrow_mut().push(bytes.to_vec());
        true
    }

    fn name(&self) -> String {
        "listener".to_owned()
    }
}

impl Listener {
    /// Connects a client that knows the messages of these parts, always the same ones of a router.
    pub fn new(router: &Router, parts: &[&ApiPart]) -> Self {
        let control = router.control();
        let clients = control.get::<Clients>().unwrap_or_else(|_| control.put(Clients::default()));
        let names: Vec<_> = parts.iter().flat_map(|p| p.messages).map(|m| m.described.name).collect();
        clients.number(names.iter().copied().zip(1..));
        let told = Rc::new(RecordingMailbox::default());
        Listener { client: clients.add(Rc::clone(&told) as _), told, names }
    }

    /// A request of this client.
    pub fn call(&self, router: &Router) -> Call {
        Call { client: self.client, ..Call::local(router.control()) }
    }

    /// Takes the events of a kind that came since the last look; others stay.
    pub fn events<M: Message>(&self) -> Vec<M> {
        let id = self.names.iter().position(|name| *name == M::NAME).unwrap() as u16 + 1;
        let (mine, others) = self
            .told
            .0
            .take()
            .into_iter()
            .partition::<Vec<_>, _>(|message| message[FRAME..FRAME + 2] == id.to_be_bytes());
        *self.told.0.borrow_mut() = others;
        let client = self.client.0.to_be_bytes();
        let header = 2 + 4 * M::HEADER.fields().len();
        let event = |message: Vec<u8>| {
            // A bare message does not say whose it is.
            if !M::HEADER.fields().is_empty() {
                assert_eq!(message[FRAME + 2..FRAME + 6], client, "{} is for another client", M::NAME);
            }
            M::decode(&mut Input::new(&message[FRAME + header..])).unwrap()
        };
        mine.into_iter().map(event).collect()
    }

    /// Leaves.
    pub fn leave(&self, router: &Router) {
        router.get::<Clients>().remove(self.client);
    }
}
