//! Which sessions of the command line are open, at whatever socket.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// What a client turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// It has not said anything yet.
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
#[derive(Debug)]
pub struct Session {
    /// Of all sessions since the start, the how many-th.
    pub number: u32,
    /// Its file descriptor.
    pub fd: i32,
    /// The other end: `local`, or an address and port.
    pub peer: String,
    /// What the client is.
    pub style: Cell<Style>,
}

/// Sessions of all sockets.
#[derive(Debug, Default)]
pub struct Sessions {
    last: Cell<u32>,
    open: RefCell<Vec<Weak<Session>>>,
}

impl Sessions {
    /// A new session; it is listed for as long as what is returned lives.
    pub fn open(&self, fd: i32, peer: String) -> Rc<Session> {
        let number = self.last.get().wrapping_add(1);
        self.last.set(number);
        let session = Rc::new(Session { number, fd, peer, style: Cell::default() });
        let mut open = self.open.borrow_mut();
        open.retain(|session| session.strong_count() > 0);
        open.push(Rc::downgrade(&session));
        session
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
        let first = sessions.open(7, "local".into());
        let second = sessions.open(8, "192.0.2.1:5".into());
        let numbers =
            || sessions.list().iter().map(|session| (session.number, session.fd)).collect::<Vec<_>>();
        assert_eq!(numbers(), [(1, 7), (2, 8)]);
        drop(first);
        assert_eq!(numbers(), [(2, 8)]);
        drop(second);
        assert_eq!((numbers(), sessions.open(7, "local".into()).number), (vec![], 3));
    }
}
