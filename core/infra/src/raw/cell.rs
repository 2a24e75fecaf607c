//! Invariant: none of its own. `Cell` is `UnsafeCell` with the two accessors of loom's, which checks
//! every access when the crate is built with `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell as Cell;

#[cfg(not(loom))]
#[repr(transparent)]
pub(crate) struct Cell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> Cell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Cell(core::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
