//! A slab whose handles know when their object is gone.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU32;

/// Objects at small indices, reused after removal, named by handles that never name another object.
pub struct Pool<T> {
    slots: Vec<Slot<T>>,
    /// Indices of slots to use again.
    free: Vec<u32>,
    len: usize,
    limit: u32,
}

struct Slot<T> {
    generation: NonZeroU32,
    value: Option<T>,
}

/// Names one object of a [`Pool`]. After the object's removal it names nothing, for ever.
pub struct Handle<T> {
    index: u32,
    generation: NonZeroU32,
    _object: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// The slot: small, dense, used again after removal. For tables beside the pool.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The handle as a number, for clients.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation.get()) << 32 | u64::from(self.index)
    }

    /// What [`to_bits`](Self::to_bits) made; any other number gives a handle that names nothing, or
    /// nothing at all.
    pub fn from_bits(bits: u64) -> Option<Self> {
        Some(Handle {
            index: bits as u32,
            generation: NonZeroU32::new((bits >> 32) as u32)?,
            _object: PhantomData,
        })
    }
}

/// The pool has as many objects as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFull {
    /// How many that is.
    pub limit: u32,
}

impl fmt::Display for PoolFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pool is full: {} objects", self.limit)
    }
}

impl std::error::Error for PoolFull {}

impl<T> Pool<T> {
    /// An empty pool that grows as far as indices go.
    pub const fn new() -> Self {
        Self::with_limit(u32::MAX)
    }

    /// An empty pool for at most `limit` objects.
    pub const fn with_limit(limit: u32) -> Self {
        Pool { slots: Vec::new(), free: Vec::new(), len: 0, limit }
    }

    /// Adds an object.
    pub fn insert(&mut self, value: T) -> Result<Handle<T>, PoolFull> {
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(index as usize)
        {
            slot.value = Some(value);
            self.len += 1;
            return Ok(Handle { index, generation: slot.generation, _object: PhantomData });
        }
        let index = self.slots.len() as u32;
        if index >= self.limit {
            return Err(PoolFull { limit: self.limit });
        }
        self.len += 1;
        let generation = NonZeroU32::MIN;
        self.slots.push(Slot { generation, value: Some(value) });
        Ok(Handle { index, generation, _object: PhantomData })
    }

    /// Takes an object out.
    pub fn remove(&mut self, handle: Handle<T>) -> Option<T> {
        let slot = self.slot_mut(handle)?;
        let value = slot.value.take()?;
        // A slot that has used up its generations is never used again.
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            self.free.push(handle.index);
        }
        self.len -= 1;
        Some(value)
    }

    /// The object, if it is still there.
    #[inline]
    pub fn get(&self, handle: Handle<T>) -> Option<&T> {
        let slot = self.slots.get(handle.index as usize)?;
        if slot.generation != handle.generation {
            return None;
        }
        slot.value.as_ref()
    }

    /// The object, if it is still there.
    #[inline]
    pub fn get_mut(&mut self, handle: Handle<T>) -> Option<&mut T> {
        self.slot_mut(handle)?.value.as_mut()
    }

    fn slot_mut(&mut self, handle: Handle<T>) -> Option<&mut Slot<T>> {
        self.slots.get_mut(handle.index as usize).filter(|slot| slot.generation == handle.generation)
    }

    /// The handle of the object that is at `index` now.
    pub fn handle_at(&self, index: u32) -> Option<Handle<T>> {
        let slot = self.slots.get(index as usize)?;
        slot.value.as_ref()?;
        Some(Handle { index, generation: slot.generation, _object: PhantomData })
    }

    /// All objects, by rising index.
    pub fn iter(&self) -> impl Iterator<Item = (Handle<T>, &T)> {
        self.slots.iter().zip(0..).filter_map(|(slot, index)| {
            let handle = Handle { index, generation: slot.generation, _object: PhantomData };
            Some((handle, slot.value.as_ref()?))
        })
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

// By hand, because deriving would ask the same of T.
impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.to_bits() == other.to_bits()
    }
}

impl<T> Eq for Handle<T> {}

impl<T> Hash for Handle<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_bits().hash(state);
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}
