//! A value behind a trait, with its type beside it.

use std::any::{Any, TypeId};

use crate::state::AnyState;

/// A box of a value seen by its trait, which gives the value itself to those who name its type. `Any` does the same by a
/// call through a pointer, which a stage of a chain must not make for each packet.
///
/// Invariant: `id` is of the type that `value` is of.
pub(crate) struct Known<T: ?Sized> {
    id: TypeId,
    value: Box<T>,
}

impl Known<dyn AnyState> {
    pub(crate) fn new<S: AnyState>(value: Box<S>) -> Self {
        Known { id: TypeId::of::<S>(), value }
    }

    /// The value, if it is an `S`.
    #[inline(always)]
    pub(crate) fn get<S: Any>(&mut self) -> Option<&mut S> {
        if self.id != TypeId::of::<S>() {
            return None;
        }
        // SAFETY: the value is an `S` by the invariant, and it is borrowed mutably for as long as the reference lives.
        Some(unsafe { &mut *(&raw mut *self.value).cast::<S>() })
    }

    pub(crate) fn into_box(self) -> Box<dyn AnyState> {
        self.value
    }
}
