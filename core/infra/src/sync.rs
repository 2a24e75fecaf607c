//! The standard library's synchronisation, or loom's model of it when built with `--cfg loom`.

#[cfg(not(loom))]
pub(crate) use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence},
    },
    thread::yield_now,
    thread_local,
};

#[cfg(loom)]
pub(crate) use loom::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence},
    },
    thread::yield_now,
    thread_local,
};

pub(crate) use std::sync::{Arc, atomic::Ordering};

/// Locks `mutex`. A panic of an earlier holder is ignored: every critical section of this crate
/// leaves its data whole at each step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
