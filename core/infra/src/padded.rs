//! Cache lines of one's own.

use core::ops::{Deref, DerefMut};

/// A value alone on its pair of cache lines: nothing that another thread writes shares a line with it.
///
/// A pair, because processors fetch lines by twos. What one thread writes often and others read, or the other way
/// round, belongs in one each; so do numbers of several threads side by side.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(128))]
pub struct Padded<T>(pub T);

/// Bytes a [`Padded`] value is aligned to, and a multiple of which it takes.
pub const PADDING: usize = 128;

const _: () = assert!(align_of::<Padded<u8>>() == PADDING && size_of::<Padded<u8>>() == PADDING);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
