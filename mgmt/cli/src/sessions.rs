//! Which sessions of the command line are open, at whatever socket.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use shoal_module::cli::Client;
use shoal_module::door::Signal;

/// Messages that wait for a session to show them; the oldest are lost when there are more.
const MOST_MESSAGES: usize = 16;

/// What a client turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// It has not sent anything yet.
    #[default]
    Unknown,
    /// `vppctl` with a command.
    Program,
    /// It sends lines and echoes them itself.
    Lines,
    /// A terminal that wants echo.
    Screen,
    /// It speaks lines of JSON, as `shoalctl` does.
    Json,
}

/// One open session.
pub struct Session {
    /// Of all sessions since the start, the how many-th.
    pub number: u32,
    /// Its file descriptor.
    pub fd: i32,
    /// The other end: `local`, or an address and port.
    pub peer: String,
    /// What the client is.
    pub style: Cell<Style>,
    /// The user at the other end, as the system knows it, or where that is.
    pub user: String,
    /// Whether it is there for people or programs that say one thing after the other, and not for one command.
    pub stays: Cell<bool>,
    messages: RefCell<VecDeque<String>>,
    told: Signal,
}

impl Session {
    /// Who commands of this session are from.
    pub fn client(&self) -> Client {
        Client { session: self.stays.get().then_some(self.number), user: self.user.clone() }
    }

    fn tell(&self, message: &str) {
        let mut messages = self.messages.borrow_mut();
        if messages.len() >= MOST_MESSAGES {
            messages.pop_front();
        }
        messages.push_back(message.to_owned());
        drop(messages);
        self.told.notify();
    }

    /// The oldest message that was not shown yet.
    pub(crate) fn message(&self) -> Option<String> {
        self.messages.borrow_mut().pop_front()
    }

    /// Waits until there is a message.
    pub(crate) async fn told(&self) {
        self.told.until(|| !self.messages.borrow().is_empty()).await;
    }
}

/// Sessions of all sockets.
#[derive(Default)]
pub struct Sessions {
    last: Cell<u32>,
    open: RefCell<Vec<Weak<Session>>>,
}

impl Sessions {
    /// A new session; it is listed for as long as what is returned lives.
    pub fn open(&self, fd: i32, peer: String, user: String) -> Rc<Session> {
        let number = self.last.get().wrapping_add(1);
        self.last.set(number);
        let session = Rc::new(Session {
            number,
            fd,
            peer,
            style: Cell::default(),
            user,
            stays: Cell::new(false),
            messages: RefCell::default(),
            told: Signal::default(),
        });
        let mut open = self.open.borrow_mut();
        open.retain(|session| session.strong_count() > 0);
        open.push(Rc::downgrade(&session));
        session
    }

    /// Tells people at all sessions that stay.
    pub fn tell(&self, message: &str) {
        self.list().iter().filter(|session| session.stays.get()).for_each(|session| session.tell(message));
    }

    /// Whether the session of this number is open.
    pub fn is_open(&self, number: u32) -> bool {
        self.open.borrow().iter().filter_map(Weak::upgrade).any(|session| session.number == number)
    }

    /// All that are open, the oldest first.
    pub fn list(&self) -> Vec<Rc<Session>> {
        self.open.borrow().iter().filter_map(Weak::upgrade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_listed_while_it_is_open() {
        let sessions = Sessions::default();
        let first = sessions.open(7, "local".into(), "root".into());
        let second = sessions.open(8, "192.0.2.1:5".into(), String::new());
        let numbers =
            || sessions.list().iter().map(|session| (session.number, session.fd)).collect::<Vec<_>>();
        assert_eq!(numbers(), [(1, 7), (2, 8)]);
        drop(first);
        assert_eq!(numbers(), [(2, 8)]);
        drop(second);
        assert_eq!((numbers(), sessions.open(7, "local".into(), "root".into()).number), (vec![], 3));
    }
}
