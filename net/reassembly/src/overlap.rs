//! Fragments that lie over others. RFC 791, 3.2 takes them, and what was there first stays; RFC 5722 forbids them in
//! IPv6, whose fragments are not trimmed ([`Items::trim`]) and refused as they are.

use std::hash::Hash;

use shoal_infra::Handle;

use crate::table::{Arrival, Context, Items, Piece, ReleaseReason, Table};

/// Most pieces that one fragment may replace, so that a fragment costs no more than a few look-ups.
const MOST_REPLACED: usize = 64;

impl<K: Copy + Eq + Hash, T> Table<K, T> {
    /// Takes off a fragment what its neighbours have already, and lets go of those that lie inside of it. Where that
    /// cannot be it stays what it was; [`ReleaseReason::Duplicate`] when all of it is there.
    pub(crate) fn make_fit(
        &mut self,
        context: Handle<Context<K, T>>,
        arrival: &mut Arrival,
        item: &mut T,
        items: &mut (impl Items<T> + ?Sized),
    ) -> Option<ReleaseReason> {
        for _ in 0..MOST_REPLACED {
            let (before, after) = self.neighbours(context, arrival.start);
            let before_end = before.and_then(|h| self.pieces.get(h)).map_or(0, |p| p.arrival.end);
            if before_end >= arrival.end {
                return items.trim(item, 0, 0).then_some(ReleaseReason::Duplicate);
            }
            if before_end > arrival.start {
                if !items.trim(item, before_end - arrival.start, 0) {
                    return None;
                }
                arrival.start = before_end;
                // Another may begin there, and have the rest.
                continue;
            }
            let (handle, next) = after.and_then(|h| Some((h, self.pieces.get(h)?.arrival)))?;
            if next.start >= arrival.end {
                return None;
            }
            if next.end > arrival.end {
                // One that says where the datagram ends is wrong when there is more.
                if arrival.more && items.trim(item, 0, arrival.end - next.start) {
                    arrival.end = next.start;
                }
                return None;
            }
            // A fragment that may be trimmed may replace others, too.
            if !items.trim(item, 0, 0) {
                return None;
            }
            arrival.more &= next.more;
            self.take_out(context, handle, items);
        }
        None
    }

    /// Lets go of one fragment.
    fn take_out(
        &mut self,
        context: Handle<Context<K, T>>,
        handle: Handle<Piece<T>>,
        items: &mut (impl Items<T> + ?Sized),
    ) {
        let Some(piece) = self.pieces.remove(handle) else { return };
        if let Some(before) = piece.before.and_then(|h| self.pieces.get_mut(h)) {
            before.after = piece.after;
        }
        if let Some(after) = piece.after.and_then(|h| self.pieces.get_mut(h)) {
            after.before = piece.before;
        }
        if let Some(context) = self.contexts.get_mut(context) {
            if piece.before.is_none() {
                context.first = piece.after;
            }
            if piece.after.is_none() {
                context.last = piece.before;
            }
            context.pieces = context.pieces.saturating_sub(1);
            if !piece.arrival.more {
                context.len = None;
            }
            context.bytes = context.bytes.saturating_sub(piece.arrival.end - piece.arrival.start);
        }
        self.budget.give(piece.arrival.buffers);
        if let Some(item) = piece.item {
            items.gone(item, ReleaseReason::Duplicate, false);
        }
    }
}
