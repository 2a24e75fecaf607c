//! The sessions, and which of them ends when there are too many.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::link::Link;

/// The owner of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionOwner {
    /// The router's own user, or root, at the UNIX socket.
    Owner,
    /// Anybody else who may connect.
    Other,
}

/// How many sessions there may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// At a time.
    pub most: usize,
    /// Of these, only for the owner.
    pub reserved: usize,
    /// How long one may say nothing before it gives way to another.
    pub idle: Duration,
}

/// Where a new session gets its seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// There is one.
    Free,
    /// The session of this place gives way.
    Of(usize),
    /// There is none.
    None,
}

/// Finds a place among sessions, given their owners and how long they have been idle (not at all while a command runs).
/// The one that has been idle for longest gives way; the owner's give way to the owner only.
pub fn place(sessions: &[(SessionOwner, Duration)], new: SessionOwner, limits: Limits) -> Place {
    let room = match new {
        SessionOwner::Owner => limits.most,
        SessionOwner::Other => limits.most.saturating_sub(limits.reserved),
    };
    if sessions.len() < room {
        return Place::Free;
    }
    let idle = |(_, (whose, idle)): &(usize, &(SessionOwner, Duration))| {
        *idle >= limits.idle && (*whose == SessionOwner::Other || new == SessionOwner::Owner)
    };
    let longest = sessions.iter().enumerate().filter(idle).max_by_key(|(_, (_, idle))| *idle);
    longest.map_or(Place::None, |(at, _)| Place::Of(at))
}

/// All sessions.
#[derive(Default)]
pub struct SessionTable(RefCell<Vec<(SessionOwner, Rc<Link>)>>);

impl SessionTable {
    /// How many there are.
    pub fn open(&self) -> usize {
        self.0.borrow().len()
    }

    /// Gives a new session a seat, if there is one or another gives way; that one is told so and closed.
    pub fn take(&self, whose: SessionOwner, link: &Rc<Link>, limits: Limits) -> bool {
        let mut seats = self.0.borrow_mut();
        let sessions: Vec<(SessionOwner, Duration)> =
            seats.iter().map(|(whose, link)| (*whose, link.idle())).collect();
        match place(&sessions, whose, limits) {
            Place::Free => {}
            Place::Of(at) => {
                let (_, old) = seats.remove(at);
                let idle = old.idle().as_secs();
                tracing::info!(
                    "a session of the command line that said nothing for {idle} s gives way to a new one"
                );
                old.give_way(&format!(
                    "closed after {idle} s without input: another client needs the session"
                ));
            }
            Place::None => return false,
        }
        seats.push((whose, Rc::clone(link)));
        true
    }

    /// Takes a seat back, unless its session gave way.
    pub fn leave(&self, link: &Rc<Link>) {
        self.0.borrow_mut().retain(|(_, other)| !Rc::ptr_eq(link, other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SessionOwner::{Other, Owner};

    const LIMITS: Limits = Limits { most: 4, reserved: 2, idle: Duration::from_mins(1) };

    fn of(sessions: &[(SessionOwner, u64)], new: SessionOwner) -> Place {
        let sessions: Vec<_> = sessions.iter().map(|(whose, s)| (*whose, Duration::from_secs(*s))).collect();
        place(&sessions, new, LIMITS)
    }

    #[test]
    fn some_seats_are_for_the_owner_only() {
        assert_eq!(of(&[(Other, 0)], Other), Place::Free);
        assert_eq!(of(&[(Other, 0), (Other, 0)], Other), Place::None);
        assert_eq!(of(&[(Other, 0), (Other, 0)], Owner), Place::Free);
        assert_eq!(of(&[(Owner, 0); 4], Owner), Place::None);
    }

    #[test]
    fn who_said_nothing_for_longest_gives_way() {
        let sessions = [(Other, 61), (Owner, 900), (Other, 300), (Other, 59)];
        assert_eq!(of(&sessions, Owner), Place::Of(1));
        assert_eq!(of(&sessions, Other), Place::Of(2), "not the owner's");
        assert_eq!(of(&[(Other, 59); 4], Owner), Place::None);
        assert_eq!(of(&[(Owner, 900); 4], Other), Place::None);
    }
}
