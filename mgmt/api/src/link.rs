//! One client's connection: what it was not sent yet is kept here, up to a bound.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use async_io::{Async, Timer};
use futures_lite::AsyncWriteExt;
use futures_lite::future::or;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use shoal_module::api::Mailbox;
use shoal_module::door::Signal;

/// Bytes a client may leave unread before it is cut off. Only events come to so much: answers wait for room.
const MOST: usize = 16 << 20;
/// Answers wait when there is more than this.
const ROOM: usize = 256 << 10;
/// How long a client may read nothing at all of what waits for it.
const DEADLINE: Duration = Duration::from_secs(20);

/// How soon a request that takes its time is given up after its client has gone.
const LOOK: Duration = Duration::from_millis(200);

/// A connection.
pub struct Link {
    stream: Async<UnixStream>,
    out: RefCell<Vec<u8>>,
    /// Where an answer is written. While it is made, events may come for the same client: they go before it.
    answer: RefCell<Vec<u8>>,
    /// Bytes that were taken out of `out` and are not with the client yet.
    on_the_way: Cell<usize>,
    gone: Cell<bool>,
    name: RefCell<String>,
    changed: Signal,
}

impl Link {
    /// A connection that was just made.
    pub fn new(stream: Async<UnixStream>) -> Self {
        Link {
            stream,
            out: RefCell::default(),
            answer: RefCell::default(),
            on_the_way: Cell::new(0),
            gone: Cell::new(false),
            name: RefCell::default(),
            changed: Signal::default(),
        }
    }

    /// Waits for input, which is read to `chunk` and then taken: a client that sends nothing needs no memory. Tells how much
    /// it was; nothing at the end, and when the client was cut off.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn read(&self, chunk: &RefCell<Vec<u8>>, take: impl FnOnce(&[u8])) -> io::Result<usize> {
        loop {
            let cut_off = async {
                self.changed.until(|| self.gone.get()).await;
                Ok(())
            };
            or(self.stream.readable(), cut_off).await?;
            if self.gone.get() {
                return Ok(0);
            }
            let mut chunk = chunk.borrow_mut();
            match io::Read::read(&mut self.stream.get_ref(), &mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
                Ok(n) => {
                    take(chunk.get(..n).unwrap_or_default());
                    return Ok(n);
                }
            }
        }
    }

    /// What the client calls itself.
    pub fn set_name(&self, name: &str) {
        name.clone_into(&mut self.name.borrow_mut());
    }

    /// Writes answers where they wait for the client.
    pub fn answer<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut answer = self.answer.take();
        let result = write(&mut answer);
        self.out.borrow_mut().extend_from_slice(&answer);
        answer.clear();
        answer.shrink_to(ROOM);
        self.answer.replace(answer);
        self.changed.notify();
        result
    }

    fn unread(&self) -> usize {
        self.out.borrow().len() + self.on_the_way.get()
    }

    /// Whether answers have room.
    pub fn has_room(&self) -> bool {
        self.unread() < ROOM
    }

    /// Waits until answers have room; false when the client is gone.
    pub async fn room(&self) -> bool {
        self.changed.until(|| self.gone.get() || self.has_room()).await;
        !self.gone.get()
    }

    /// Waits until the client has everything, or is gone.
    pub async fn drain(&self) {
        self.changed.until(|| self.gone.get() || self.unread() == 0).await;
    }

    /// Sends what waits; ends when the client is gone.
    pub async fn pump(&self) {
        loop {
            self.changed.until(|| self.gone.get() || !self.out.borrow().is_empty()).await;
            let bytes = self.out.take();
            self.on_the_way.set(bytes.len());
            while self.on_the_way.get() > 0 && !self.gone.get() {
                let rest = bytes.get(bytes.len() - self.on_the_way.get()..).unwrap_or_default();
                let write = async { { &self.stream }.write(rest).await.unwrap_or(0) };
                let late = async {
                    Timer::after(DEADLINE).await;
                    0
                };
                match or(write, late).await {
                    0 => self.leave(),
                    n => self.on_the_way.set(self.on_the_way.get().saturating_sub(n)),
                }
                self.changed.notify();
            }
            if self.gone.get() {
                return;
            }
        }
    }

    /// Waits until the client has hung up, which is looked at now and then. One that only sends no more still listens.
    pub async fn hung_up(&self) {
        loop {
            Timer::after(LOOK).await;
            let mut socket = [PollFd::new(self.stream.get_ref().as_fd(), PollFlags::empty())];
            let asked = poll(&mut socket, PollTimeout::ZERO);
            if self.gone.get() {
                return;
            }
            if asked.is_ok()
                && socket.iter().any(|s| s.revents().is_some_and(|r| r.contains(PollFlags::POLLHUP)))
            {
                return;
            }
        }
    }

    /// Whether the client is gone, or was cut off.
    pub fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// Ends the connection, and says why.
    pub fn cut_off(&self, why: &str) {
        tracing::warn!("API client '{}' {why}: cut off", self.name.borrow());
        self.leave();
    }

    fn leave(&self) {
        self.gone.set(true);
        self.changed.notify();
    }
}

impl Mailbox for Link {
    fn post(&self, bytes: &[u8]) -> bool {
        if self.unread() + bytes.len() > MOST {
            self.cut_off("does not read");
        }
        if self.gone.get() {
            return false;
        }
        self.out.borrow_mut().extend_from_slice(bytes);
        self.changed.notify();
        true
    }

    fn name(&self) -> String {
        self.name.borrow().clone()
    }
}
