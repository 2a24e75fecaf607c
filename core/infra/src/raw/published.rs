//! Invariant: the pointer always equals `Arc::as_ptr` of the `Arc` under the mutex, and an `Arc` that
//! leaves the mutex is handed to `qsbr::retire`, never dropped at once. So what a reader loads under
//! a guard lives at least until that reader's next quiescent point.

use std::fmt;

use crate::qsbr::{Guard, retire};
use crate::sync::{Arc, AtomicPtr, Mutex, Ordering, lock};

/// A value that readers see whole and that a writer replaces whole.
///
/// Readers pay one acquire load. Old values, and the last one when the `Published` itself is
/// dropped, are retired through [`crate::qsbr`].
pub struct Published<T: Send + Sync + 'static> {
    pointer: AtomicPtr<T>,
    /// `None` only while it is being dropped.
    current: Mutex<Option<Arc<T>>>,
}

impl<T: Send + Sync + 'static> Published<T> {
    /// Publishes a first value.
    pub fn new(value: T) -> Self {
        Self::from_arc(Arc::new(value))
    }

    /// Publishes a value that is shared already.
    pub fn from_arc(value: Arc<T>) -> Self {
        Published {
            pointer: AtomicPtr::new(Arc::as_ptr(&value).cast_mut()),
            current: Mutex::new(Some(value)),
        }
    }

    /// The current value. The reference lives as long as the guard, even when the value is replaced
    /// or the `Published` dropped meanwhile.
    #[inline]
    pub fn load<'g>(&self, _guard: Guard<'g>) -> &'g T {
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: the pointer comes from a live `Arc` (file invariant). If it was unlinked, the
        // `Arc` is dropped only after a grace period, which cannot end before this thread's reader
        // is quiescent, which needs `&mut Reader`, which the guard's borrow for 'g excludes.
        // Nothing ever takes `&mut T`: the `Arc` is not exposed mutably.
        unsafe { &*pointer }
    }

    /// Publishes `value`; the old one is retired.
    pub fn replace(&self, value: T) {
        self.replace_arc(Arc::new(value));
    }

    /// As [`replace`](Self::replace), for a value that is shared already.
    pub fn replace_arc(&self, value: Arc<T>) {
        let mut current = lock(&self.current);
        self.pointer.store(Arc::as_ptr(&value).cast_mut(), Ordering::Release);
        let old = current.replace(value);
        drop(current);
        retire(move || drop(old));
    }

    /// The current value for control code: needs no reader, takes a lock.
    pub fn get(&self) -> Arc<T> {
        let current = lock(&self.current);
        match &*current {
            Some(value) => Arc::clone(value),
            None => unreachable!("only drop() empties the slot, and drop() has the only reference"),
        }
    }
}

impl<T: Send + Sync + 'static> Drop for Published<T> {
    fn drop(&mut self) {
        let last = lock(&self.current).take();
        retire(move || drop(last));
    }
}

impl<T: Send + Sync + fmt::Debug + 'static> fmt::Debug for Published<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Published").field(&self.get()).finish()
    }
}
