//! What every session needs, and what was counted.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use shoal_module::Control;
use shoal_module::api::Clients;

use crate::pending_bytes::PendingBytes;
use crate::table::Table;
use crate::trace::Trace;

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// The server.
pub struct ServerContext {
    /// The control plane.
    pub control: Rc<Control>,
    /// All messages.
    pub table: Rc<Table>,
    /// Connected clients.
    pub clients: Rc<Clients>,
    /// The last messages.
    pub trace: Trace,
    /// Connections, those without a client's index among them.
    pub open: Cell<usize>,
    /// What clients sent that could not be looked at yet.
    pub held: PendingBytes,
    /// Where sessions read, one at a time.
    pub chunk: RefCell<Vec<u8>>,
    handled: Cell<u64>,
    dropped: [Cell<u64>; Dropped::ALL.len()],
}

/// Why a message was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// It is shorter than its fields.
    Short,
    /// Its connection ended within it.
    Half,
    /// It claims to be longer than any is.
    TooLong,
    /// Its number is none.
    NoMessage,
    /// It is none that is sent to a router.
    NoHandler,
    /// Its client's index is none, or another's.
    NoClient,
    /// Its client was cut off, because all clients together sent too much without an end.
    NoRoom,
}

impl Dropped {
    /// All reasons and their words.
    pub const ALL: [(Dropped, &'static str); 7] = [
        (Dropped::Short, "shorter than its fields"),
        (Dropped::Half, "cut off by the end of the connection"),
        (Dropped::TooLong, "longer than any message"),
        (Dropped::NoMessage, "no message has its number"),
        (Dropped::NoHandler, "not a request"),
        (Dropped::NoClient, "the client's index is none or another's"),
        (Dropped::NoRoom, "halves of messages of all clients together are too long"),
    ];
}

impl ServerContext {
    /// A server of these messages.
    pub fn new(control: Rc<Control>, table: Rc<Table>, clients: Rc<Clients>, trace: Trace) -> Self {
        ServerContext {
            control,
            table,
            clients,
            trace,
            open: Cell::new(0),
            held: PendingBytes::default(),
            chunk: RefCell::new(vec![0; CHUNK]),
            handled: Cell::new(0),
            dropped: Default::default(),
        }
    }

    /// Counts a request.
    pub fn handled(&self) {
        self.handled.set(self.handled.get() + 1);
    }

    /// Counts a message that was not answered.
    pub fn dropped(&self, why: Dropped) {
        if let Some(count) = self.dropped.get(why as usize) {
            count.set(count.get() + 1);
        }
    }

    /// Requests that came.
    pub fn requests(&self) -> u64 {
        self.handled.get()
    }

    /// Messages that were not answered, by reason.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Dropped::ALL.iter().zip(&self.dropped).map(|((_, why), count)| (*why, count.get()))
    }
}
