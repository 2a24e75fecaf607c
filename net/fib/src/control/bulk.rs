//! Many prefixes that get the same paths: all of them or none.
//!
//! What is done at a time is done in rising order of addresses, shorter prefixes first: neighbours share cache lines of
//! the trie, and nothing is written that the next one writes over. Entries lie about at random, so they are fetched
//! some prefixes ahead.

use std::rc::Rc;

use shoal_adj::Family;
use shoal_infra::budget::Notes;
use shoal_infra::qsbr;
use shoal_wire::IpPrefix;

use super::{Fib, Mode};
use crate::change::State;
use crate::list::ListId;
use crate::path::of_host;
use crate::{FibError, FibIndex, Path, Source, address};

/// Prefixes ahead of which entries are fetched.
const AHEAD: usize = 12;

/// What each prefix gets.
struct Wanted {
    fib: FibIndex,
    source: Source,
    mode: Mode,
    given: Vec<Path>,
    /// The paths as entries have them.
    paths: Vec<Path>,
    /// The list of the paths. Held while the change lasts, so that it is not rebuilt for each prefix.
    held: ListId,
}

/// A bulk that is under way.
pub(super) struct Pending {
    family: Family,
    wanted: Wanted,
    /// What was done: each prefix, and what the source contributed before.
    done: Notes<(IpPrefix, Option<ListId>)>,
}

impl Pending {
    /// Notes what is to be done: a change that cannot be noted could not be undone.
    fn note(&mut self, prefixes: impl Iterator<Item = IpPrefix>) -> Result<(), (usize, FibError)> {
        for prefix in prefixes {
            let done = &mut self.done;
            if address::family(&prefix) != self.family {
                return Err((0, FibError::Mixed(prefix)));
            }
            done.reserve().map_err(|why| (0, FibError::Bulk { fit: done.len(), why }))?;
            done.push((prefix.normalized(), None));
        }
        Ok(())
    }
}

impl State {
    pub(super) fn begin_bulk(
        &mut self,
        (family, fib): (Family, FibIndex),
        source: Source,
        given: &[Path],
        mode: Mode,
    ) -> Result<Pending, FibError> {
        self.existing(family, fib)?;
        let paths = self.checked(family, given)?.into_owned();
        let held = self.acquire(family, &paths)?;
        let wanted = Wanted { fib, source, mode, given: given.to_vec(), paths, held };
        Ok(Pending { family, wanted, done: Notes::default() })
    }

    /// Does some more prefixes, or none of them.
    pub(super) fn continue_bulk(
        &mut self,
        bulk: &mut Pending,
        prefixes: impl Iterator<Item = IpPrefix>,
    ) -> Result<(), FibError> {
        let from = bulk.done.len();
        let noted = bulk.note(prefixes);
        let all = bulk.done.items_from(from);
        all.sort_unstable_by_key(|(prefix, _)| address::place(prefix));
        let done = noted.and_then(|()| self.apply(bulk, from));
        done.map_err(|(count, e)| {
            self.undo_some(bulk, from, count);
            e
        })
    }

    /// Does what was noted from a place on; on error with the number of those that were done.
    fn apply(&mut self, bulk: &mut Pending, from: usize) -> Result<(), (usize, FibError)> {
        let Pending { family, wanted, done } = bulk;
        let all = done.items_from(from);
        for at in 0..all.len() {
            if let (Some((ahead, _)), Some(table)) = (all.get(at + AHEAD), self.table(*family, wanted.fib)) {
                table.prefetch(ahead);
            }
            let Some((prefix, old)) = all.get_mut(at) else { break };
            *old = self.change(wanted, prefix).map_err(|e| (at, e))?;
        }
        Ok(())
    }

    /// Gives one prefix the paths, or those that are its own; tells what the source contributed before.
    fn change(&mut self, wanted: &Wanted, prefix: &IpPrefix) -> Result<Option<ListId>, FibError> {
        let Wanted { fib, source, mode, ref given, ref paths, held } = *wanted;
        qsbr::admit()?;
        match of_host(prefix, source, given) {
            Some(own) => self.change_own(fib, prefix, source, &own, mode),
            None => self.change_one(fib, prefix, source, (paths, held), mode),
        }
    }

    /// Takes the last changes back, of which `count` from a place on were done and the rest was only noted.
    fn undo_some(&mut self, bulk: &mut Pending, from: usize, count: usize) {
        bulk.done.truncate(from + count);
        for at in (from..from + count).rev() {
            let Some((prefix, old)) = bulk.done.items().get(at).copied() else { continue };
            self.put_back(bulk.wanted.fib, &prefix, bulk.wanted.source, old);
        }
        bulk.done.truncate(from);
    }

    /// Takes up to `most` of the last changes back; `false` when none is left.
    pub(super) fn undo_bulk(&mut self, bulk: &mut Pending, most: usize) -> bool {
        let count = bulk.done.len().min(most);
        self.undo_some(bulk, bulk.done.len() - count, count);
        !bulk.done.is_empty()
    }

    /// Forgets how up to `most` of the changes would be undone; `false` when none is left.
    pub(super) fn keep_bulk(&mut self, bulk: &mut Pending, most: usize) -> bool {
        let from = bulk.done.len().saturating_sub(most);
        for (_, old) in bulk.done.items_from(from) {
            if let Some(old) = old.take() {
                self.release(old);
            }
        }
        bulk.done.truncate(from);
        !bulk.done.is_empty()
    }

    pub(super) fn end_bulk(&mut self, bulk: &Pending) {
        self.release(bulk.wanted.held);
    }
}

/// Many prefixes that get the same paths, piece by piece, so that others are served meanwhile. Packets and everybody
/// else see what was done so far. Dropped before it was [kept](Self::keep), it takes everything back.
pub struct Bulk {
    control: Rc<Fib>,
    pending: Pending,
}

impl Bulk {
    /// Does some more prefixes, or none of them.
    ///
    /// # Errors
    /// As [`Fib::add_many`]. What was done before is still done.
    pub fn add(&mut self, prefixes: impl IntoIterator<Item = IpPrefix>) -> Result<(), FibError> {
        self.control.state.borrow_mut().continue_bulk(&mut self.pending, prefixes.into_iter())
    }

    /// How many prefixes are done.
    pub fn done(&self) -> usize {
        self.pending.done.len()
    }

    /// Takes up to `most` back, the last ones first; `false` when none is left.
    pub fn undo(&mut self, most: usize) -> bool {
        self.control.state.borrow_mut().undo_bulk(&mut self.pending, most)
    }

    /// All that was done stays; forgets how up to `most` of it would be undone, and is to be called until there is no
    /// more: `false`.
    pub fn keep(&mut self, most: usize) -> bool {
        self.control.state.borrow_mut().keep_bulk(&mut self.pending, most)
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        let mut state = self.control.state.borrow_mut();
        state.undo_bulk(&mut self.pending, usize::MAX);
        state.end_bulk(&self.pending);
    }
}

impl Fib {
    /// Begins to give many entries of one table the same paths, besides those that the source gave before.
    ///
    /// # Errors
    /// The table is not there, there is no path, or one cannot be.
    pub fn begin_paths(
        self: &Rc<Self>,
        (family, fib): (Family, FibIndex),
        source: Source,
        paths: &[Path],
    ) -> Result<Bulk, FibError> {
        let pending = self.state.borrow_mut().begin_bulk((family, fib), source, paths, Mode::Append)?;
        Ok(Bulk { control: Rc::clone(self), pending })
    }

    /// All prefixes at once.
    pub(super) fn change_many(
        &self,
        fib: FibIndex,
        prefixes: impl IntoIterator<Item = impl Into<IpPrefix>>,
        source: Source,
        paths: &[Path],
        mode: Mode,
    ) -> Result<usize, FibError> {
        let mut state = self.state.borrow_mut();
        let mut prefixes = prefixes.into_iter().map(Into::into).peekable();
        let first = prefixes.next();
        // One alone needs no notes.
        if let (Some(only), None) = (&first, prefixes.peek()) {
            return state.change_alone(fib, &only.normalized(), source, paths, mode).map(|()| 1);
        }
        // All of one family, which the first one says; without any there is nothing to do but to check.
        let family = first.as_ref().map_or(Family::Ip4, address::family);
        let mut bulk = state.begin_bulk((family, fib), source, paths, mode)?;
        let done = state.continue_bulk(&mut bulk, first.into_iter().chain(prefixes));
        let count = bulk.done.len();
        state.keep_bulk(&mut bulk, usize::MAX);
        state.end_bulk(&bulk);
        done.map(|()| count)
    }
}
