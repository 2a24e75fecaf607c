//! Places in a packet's scratch line that features claim when the router starts.
//!
//! The first half of the line is for what one node says to the next ([`Packet::scratch`]): any node in between may write
//! there. What has to last longer, past nodes of other features, is kept in a slot of the second half: claimed once, by
//! its type, for all packets; no other feature is given the place. The key that the claim gives is the only way to it,
//! so only code to which a feature gives its key reads and writes what the feature leaves in packets.
//!
//! A slot's content is as the last packet in the buffer left it until the feature writes it: write before you read.

use std::any::{TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Packet;

/// Bytes of the scratch line for what one node says to the next.
pub const SCRATCH: usize = 32;
/// Bytes of it for slots.
pub const SLOTS: usize = 64 - SCRATCH;

/// What can be kept in a slot.
pub trait SlotValue: FromBytes + IntoBytes + KnownLayout + Immutable + 'static {}

impl<T: FromBytes + IntoBytes + KnownLayout + Immutable + 'static> SlotValue for T {}

/// A place in every packet for a `T`.
pub struct SlotKey<T> {
    at: usize,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for SlotKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SlotKey<T> {}

impl<T> fmt::Debug for SlotKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", type_name::<T>(), self.at)
    }
}

impl<T: SlotValue> SlotKey<T> {
    /// What a packet has there.
    #[inline(always)]
    pub fn get<'p>(&self, pkt: &'p Packet<'_>) -> &'p T {
        let bytes = pkt.slots().get(self.at..self.at + size_of::<T>()).unwrap_or_default();
        match T::ref_from_bytes(bytes) {
            Ok(value) => value,
            Err(_) => unreachable!("a claim is in the line, and aligned"),
        }
    }

    /// What a packet has there, for changes.
    #[inline(always)]
    pub fn get_mut<'p>(&self, pkt: &'p mut Packet<'_>) -> &'p mut T {
        let bytes = pkt.slots_mut().get_mut(self.at..self.at + size_of::<T>()).unwrap_or_default();
        match T::mut_from_bytes(bytes) {
            Ok(value) => value,
            Err(_) => unreachable!("a claim is in the line, and aligned"),
        }
    }
}

/// Why a place cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotError {
    /// Another feature claimed a place for the same type.
    Taken {
        /// The type.
        what: &'static str,
        /// Who claims it now.
        by: &'static str,
        /// Who claimed it before.
        before: &'static str,
    },
    /// There is no room.
    Full {
        /// The type.
        what: &'static str,
        /// Who claims it.
        by: &'static str,
        /// Bytes it takes.
        bytes: usize,
        /// Bytes that are left.
        left: usize,
        /// The owners of the others.
        others: Vec<&'static str>,
    },
    /// No feature claimed a place for the type.
    Unclaimed(&'static str),
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotError::Taken { what, by, before } => {
                write!(f, "{by} claims a place in packets for {what}, which {before} has claimed")
            }
            SlotError::Full { what, by, bytes, left, others } => {
                write!(
                    f,
                    "{by} claims {bytes} bytes in packets for {what}: {left} are left beside those of "
                )?;
                f.write_str(&others.join(", "))
            }
            SlotError::Unclaimed(what) => write!(f, "no feature keeps {what} in packets"),
        }
    }
}

impl std::error::Error for SlotError {}

struct Claim {
    id: TypeId,
    at: usize,
    by: &'static str,
}

/// The owner of each place, in all packets of a router.
#[derive(Default)]
pub struct Slots {
    claims: Vec<Claim>,
    used: usize,
}

impl Slots {
    /// A place for a `T`, for the feature that is named.
    ///
    /// # Errors
    /// There is no room, or another feature has a place for the same type; all are named.
    pub fn claim<T: SlotValue>(&mut self, by: &'static str) -> Result<SlotKey<T>, SlotError> {
        const { assert!(align_of::<T>() <= SLOTS, "slots are aligned to half a line") }
        let what = type_name::<T>();
        if let Some(claim) = self.claims.iter().find(|claim| claim.id == TypeId::of::<T>()) {
            return Err(SlotError::Taken { what, by, before: claim.by });
        }
        let (at, bytes) = (self.used.next_multiple_of(align_of::<T>()), size_of::<T>());
        let left = SLOTS.saturating_sub(at);
        if bytes > left {
            let others = self.claims.iter().map(|claim| claim.by).collect();
            return Err(SlotError::Full { what, by, bytes, left, others });
        }
        self.used = at + bytes;
        self.claims.push(Claim { id: TypeId::of::<T>(), at, by });
        Ok(SlotKey { at, value: PhantomData })
    }

    /// The place that another feature has claimed for a `T`.
    ///
    /// # Errors
    /// None has.
    pub fn of<T: SlotValue>(&self) -> Result<SlotKey<T>, SlotError> {
        let claim = self.claims.iter().find(|claim| claim.id == TypeId::of::<T>());
        let claim = claim.ok_or(SlotError::Unclaimed(type_name::<T>()))?;
        Ok(SlotKey { at: claim.at, value: PhantomData })
    }
}
