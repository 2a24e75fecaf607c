//! Memory for what clients sent and the server could not look at yet: halves of messages, and messages behind one that
//! takes its time. Each client is bounded by the longest message; this bounds all of them together.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use crate::link::Link;

/// Bytes that all clients together may have there: four of the longest messages at once.
pub const MOST: usize = 16 << 20;

/// What one client has there.
struct Holder {
    bytes: usize,
    /// Since when it has had something there without a break.
    since: Instant,
    link: Rc<Link>,
}

/// What all clients have there.
#[derive(Default)]
pub struct PendingBytes {
    holders: RefCell<BTreeMap<u64, Holder>>,
    bytes: Cell<usize>,
    last: Cell<u64>,
}

/// One client's part.
pub struct Part<'a> {
    held: &'a PendingBytes,
    number: u64,
    link: &'a Rc<Link>,
}

impl PendingBytes {
    /// The part of a client that has just come.
    pub fn part<'a>(&'a self, link: &'a Rc<Link>) -> Part<'a> {
        self.last.set(self.last.get() + 1);
        Part { held: self, number: self.last.get(), link }
    }

    /// Bytes of all clients.
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// The client with most bytes there, and longest.
    fn largest(&self) -> Option<(u64, Rc<Link>, usize)> {
        let holders = self.holders.borrow();
        let most = holders.iter().max_by_key(|(_, holder)| (holder.bytes, std::cmp::Reverse(holder.since)));
        most.map(|(number, holder)| (*number, Rc::clone(&holder.link), holder.bytes))
    }
}

impl Part<'_> {
    /// The client has so many bytes there now. When all together have too many, the clients with most are cut off:
    /// tells how many that were.
    pub fn set(&self, bytes: usize) -> u64 {
        let held = self.held;
        let before = held.holders.borrow().get(&self.number).map_or(0, |holder| holder.bytes);
        if bytes == 0 {
            held.holders.borrow_mut().remove(&self.number);
        } else {
            let new = || Holder { bytes, since: Instant::now(), link: Rc::clone(self.link) };
            held.holders.borrow_mut().entry(self.number).or_insert_with(new).bytes = bytes;
        }
        held.bytes.set(held.bytes.get() - before + bytes);
        let mut cut = 0;
        while held.bytes() > MOST
            && let Some((number, link, bytes)) = held.largest()
        {
            held.holders.borrow_mut().remove(&number);
            held.bytes.set(held.bytes.get() - bytes);
            let all = MOST >> 20;
            link.cut_off(&format!(
                "sent {bytes} bytes of a message without its end, where all clients may have {all} MiB"
            ));
            cut += 1;
        }
        cut
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.set(0);
    }
}
