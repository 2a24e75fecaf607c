//! Invariant: the slots `[head, tail)` (counting without wrapping) hold values, all others none. Only
//! the producer moves `tail`, after writing the slot; only the consumer moves `head`, after taking
//! the value out. There is one of each, and they act through `&mut self`.

use std::fmt;
use std::mem::MaybeUninit;

use super::cell::Cell;
use crate::Padded;
use crate::sync::{Arc, AtomicUsize, Ordering};

struct Shared<T> {
    head: Padded<AtomicUsize>,
    tail: Padded<AtomicUsize>,
    /// A power of two of them.
    slots: Box<[Cell<MaybeUninit<T>>]>,
    capacity: usize,
}

// SAFETY: values of a `Send` type are moved from one thread to the other; the invariant gives each
// slot to one side at a time.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above; it owns its values.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    /// The slot of a running index. The mask keeps it in range; `None` never happens.
    #[inline(always)]
    fn slot(&self, index: usize) -> Option<&Cell<MaybeUninit<T>>> {
        self.slots.get(index & self.slots.len().wrapping_sub(1))
    }

    /// Moves the value out of the slot of `index`.
    ///
    /// # Safety
    ///
    /// The slot must hold a value, belong to the caller, and be given up by moving `head` past it.
    unsafe fn take(&self, index: usize) -> Option<T> {
        let slot = self.slot(index)?;
        // SAFETY: the caller's promise: the slot holds a value and no other thread touches it.
        Some(slot.with(|value| unsafe { value.read().assume_init() }))
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let tail = self.tail.0.load(Ordering::Acquire);
        let mut head = self.head.0.load(Ordering::Acquire);
        while head != tail {
            // SAFETY: `&mut self`: both sides are gone. [head, tail) hold values; each index is
            // visited once and the indices are never read again.
            drop(unsafe { self.take(head) });
            head = head.wrapping_add(1);
        }
    }
}

/// The writing end of a ring.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
    /// The consumer's index when last looked at; it can only have moved on since.
    seen_head: usize,
}

/// The reading end of a ring.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    head: usize,
    /// The producer's index when last looked at; it can only have moved on since.
    seen_tail: usize,
}

/// A bounded ring from one thread to another. It holds at most `capacity` values, at least one.
pub fn ring<T: Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.max(1);
    let slots = (0..capacity.next_power_of_two()).map(|_| Cell::new(MaybeUninit::uninit())).collect();
    let shared = Arc::new(Shared {
        head: Padded(AtomicUsize::new(0)),
        tail: Padded(AtomicUsize::new(0)),
        slots,
        capacity,
    });
    let producer = Producer { shared: Arc::clone(&shared), tail: 0, seen_head: 0 };
    let consumer = Consumer { shared, head: 0, seen_tail: 0 };
    (producer, consumer)
}

impl<T: Send> Producer<T> {
    /// Appends `value`, or gives it back when the ring is full.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.tail.wrapping_sub(self.seen_head) >= self.shared.capacity {
            self.seen_head = self.shared.head.0.load(Ordering::Acquire);
            if self.tail.wrapping_sub(self.seen_head) >= self.shared.capacity {
                return Err(value);
            }
        }
        let Some(slot) = self.shared.slot(self.tail) else {
            return Err(value);
        };
        slot.with_mut(|slot| {
            // SAFETY: the slot of `tail` is outside [head, tail) because fewer than `capacity` are
            // in use; the acquire load of `head` says the consumer is done with it.
            unsafe { slot.write(MaybeUninit::new(value)) };
        });
        self.tail = self.tail.wrapping_add(1);
        self.shared.tail.0.store(self.tail, Ordering::Release);
        Ok(())
    }

    /// Whether at least `waiting` values wait in the ring. Looks at the consumer's index, which is in the
    /// consumer's cache, only when the last look left it possible.
    #[inline]
    pub fn is_behind(&mut self, waiting: usize) -> bool {
        if self.tail.wrapping_sub(self.seen_head) < waiting {
            return false;
        }
        self.seen_head = self.shared.head.0.load(Ordering::Acquire);
        self.tail.wrapping_sub(self.seen_head) >= waiting
    }

    /// How many values are in the ring; the consumer may be taking some out.
    pub fn len(&self) -> usize {
        self.tail.wrapping_sub(self.shared.head.0.load(Ordering::Acquire))
    }

    /// Whether the ring was empty at this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most values the ring holds.
    pub fn capacity(&self) -> usize {
        self.shared.capacity
    }

    /// Whether the consumer was dropped, so that no value will ever be taken out.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl<T: Send> Consumer<T> {
    /// Takes the oldest value.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.head == self.seen_tail {
            self.seen_tail = self.shared.tail.0.load(Ordering::Acquire);
            if self.head == self.seen_tail {
                return None;
            }
        }
        // SAFETY: head != tail, so the slot holds a value, which the acquire load of `tail` made
        // visible; `head` moves past it before anything else happens.
        let value = unsafe { self.shared.take(self.head) };
        self.head = self.head.wrapping_add(1);
        self.shared.head.0.store(self.head, Ordering::Release);
        value
    }

    /// How many values are in the ring; the producer may be adding more.
    pub fn len(&self) -> usize {
        self.shared.tail.0.load(Ordering::Acquire).wrapping_sub(self.head)
    }

    /// Whether the ring was empty at this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most values the ring holds.
    pub fn capacity(&self) -> usize {
        self.shared.capacity
    }

    /// Whether the producer was dropped, so that nothing will come after what is in the ring now.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}
