//! Invariant: a type is `Zeroable` only if all bytes zero is a valid value of it, and it needs no
//! `drop`. Memory fresh from the kernel is then an array of such values.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16, AtomicU32,
    AtomicU64, AtomicUsize,
};

/// Types whose all-zero bytes are a valid value and that need no `drop`.
///
/// Crates that forbid unsafe code declare their own with [`zeroable_struct!`](crate::zeroable_struct).
///
/// # Safety
///
/// All bytes zero must be a valid value of the type, and the type must not need to be dropped.
pub unsafe trait Zeroable: Sized {
    /// The value whose bytes are all zero.
    fn zeroed() -> Self {
        // SAFETY: the trait's contract: all bytes zero is a valid value.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }
}

macro_rules! zeroable {
    ($($name:ty),*) => {
        $(
            // SAFETY: integers, booleans and their atomics are valid when all zero; none is dropped.
            unsafe impl Zeroable for $name {}
        )*
    };
}

zeroable!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, bool, ());
zeroable!(AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, AtomicBool);
zeroable!(AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize);

// SAFETY: an array of valid values, without padding of its own.
unsafe impl<T: Zeroable, const N: usize> Zeroable for [T; N] {}

// SAFETY: `UnsafeCell` has the layout and validity of what it holds.
unsafe impl<T: Zeroable> Zeroable for UnsafeCell<T> {}

/// Declares a struct that is [`Zeroable`] because all its fields are.
///
/// ```
/// #![forbid(unsafe_code)]
/// use shoal_infra::{Zeroable, zeroable_struct};
///
/// zeroable_struct! {
///     /// Where a packet goes next.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub struct NextHop {
///         /// Interface to send to.
///         pub tx: u32,
///         rewrite: [u8; 16],
///     }
/// }
/// assert_eq!(NextHop::zeroed(), NextHop { tx: 0, rewrite: [0; 16] });
/// ```
///
/// A field that is not zeroable is refused:
///
/// ```compile_fail
/// shoal_infra::zeroable_struct! { struct Bad { name: &'static str } }
/// ```
#[macro_export]
macro_rules! zeroable_struct {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident : $type:ty),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type),*
        }
        const _: () = {
            const fn zeroable<T: $crate::Zeroable>() {}
            $(zeroable::<$type>();)*
            assert!(!::core::mem::needs_drop::<$name>());
        };
        // SAFETY: the check above: every field is zeroable, and nothing is dropped.
        unsafe impl $crate::Zeroable for $name {}
    };
}
