//! Where a slow command prints while it runs.

use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::Form;

/// The client has left, or has interrupted the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct ClientGone;

/// The reader.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Client {
    /// The number of its session, if it stays for more than one command.
    pub session: Option<u32>,
    /// The user it belongs to, as far as the system knows, or where it is; empty for the router itself.
    pub user: String,
}

/// The reading end of a [`Sink`]; the CLI's sessions implement it.
pub trait Reader {
    /// Takes text to be shown. Fails once the client has left or does not read.
    fn write(&self, text: &str) -> Result<(), ClientGone>;
    /// Shows how far a long run is; for people who watch, never part of the answer.
    fn progress(&self, _text: &str) {}
    /// In which form [listings](super::Listing) are written while they are made; `None`: not at all, they are kept to be
    /// made later.
    fn form(&self) -> Option<Form> {
        None
    }
    /// Takes a piece of a listing, in the form that was asked for. Text unless told otherwise.
    fn piece(&self, piece: &str) -> Result<(), ClientGone> {
        self.write(piece)
    }
    /// Ready when the client has read so much that there is room for another piece, or has gone.
    fn poll_room(&self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
    /// Ready when the client has left or has interrupted the command.
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()>;
    /// Whether the client has left or has interrupted the command.
    fn is_gone(&self) -> bool;
    /// Who it is. The router itself unless told otherwise.
    fn client(&self) -> Client {
        Client::default()
    }
}

/// Prints to the client of a running command.
#[derive(Clone)]
pub struct Sink(Rc<dyn Reader>);

impl Sink {
    /// A sink that prints to `reader`.
    pub fn new(reader: Rc<dyn Reader>) -> Self {
        Self(reader)
    }

    /// Prints one line, without waiting for the client.
    pub fn line(&self, line: impl fmt::Display) -> Result<(), ClientGone> {
        self.0.write(&format!("{line}\n"))
    }

    /// Prints text as it stands.
    pub fn text(&self, text: &str) -> Result<(), ClientGone> {
        self.0.write(text)
    }

    /// Shows the client how far a long run is; clients without a place for it show nothing.
    pub fn progress(&self, text: &str) {
        self.0.progress(text);
    }

    /// In which form listings are written while they are made, if they are.
    pub fn form(&self) -> Option<Form> {
        self.0.form()
    }

    /// Prints a piece of a listing.
    pub fn piece(&self, piece: &str) -> Result<(), ClientGone> {
        self.0.piece(piece)
    }

    /// Waits until the client has read so much that there is room for another piece.
    ///
    /// # Errors
    /// It has left, or has interrupted the command.
    pub async fn room(&self) -> Result<(), ClientGone> {
        poll_fn(|cx| self.0.poll_room(cx)).await;
        if self.0.is_gone() { Err(ClientGone) } else { Ok(()) }
    }

    /// Whether the client has left or has interrupted the command.
    pub fn is_gone(&self) -> bool {
        self.0.is_gone()
    }

    /// Who the client is.
    pub fn client(&self) -> Client {
        self.0.client()
    }

    /// Waits until the client leaves or interrupts the command; race it against the work.
    pub async fn gone(&self) {
        poll_fn(|cx| self.0.poll_gone(cx)).await;
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").field("gone", &self.is_gone()).finish()
    }
}
