//! Which thread may call what of a plugin, as types.
//!
//! The ABI has functions of the main thread, functions of a queue, which one thread at a time calls, and functions of
//! all threads (a node's). The first need a [`MainThread`]. The second need the queue's one handle, [`RxHandle`] or
//! [`TxHandle`], which an [`OpenDevice`] gives out once. A device is closed by its [`OpenDevice`], and only when all
//! handles on it are gone: no queue is called after `close`.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_module::Control;

use super::{Driver, NewDevice};

/// Proof that the calling thread is the main thread that the ABI speaks of. It cannot leave its thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MainThread<'a>(PhantomData<(&'a (), *const ())>);

impl MainThread<'static> {
    /// A router's modules live on one thread, and neither they nor references to them leave it.
    pub(crate) fn of(_: &Control) -> Self {
        MainThread(PhantomData)
    }
}

/// In a program that is no router: the lock whose holder is the main thread. There is one in a process.
pub(crate) struct MainLock<T>(Mutex<T>);

/// Its holder.
pub(crate) struct MainGuard<'a, T>(MutexGuard<'a, T>);

impl<T> MainLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        MainLock(Mutex::new(value))
    }

    /// Becomes the main thread until the guard is dropped.
    pub(crate) fn lock(&self) -> MainGuard<'_, T> {
        MainGuard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> MainGuard<'_, T> {
    #[allow(clippy::unused_self)] // it is the proof
    pub(crate) fn thread(&self) -> MainThread<'_> {
        MainThread(PhantomData)
    }
}

impl<T> Deref for MainGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for MainGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// An open device of a driver, as its handles know it.
pub(super) struct Opened {
    pub(super) driver: Arc<Driver>,
    pub(super) number: u32,
}

/// An open device. It stays open when this is dropped: [`close`](Self::close) closes it.
pub(crate) struct OpenDevice {
    opened: Arc<Opened>,
    /// Queues whose handles are still to be given out, the next one and how many there are.
    rx: std::ops::Range<u32>,
    tx: std::ops::Range<u32>,
}

impl OpenDevice {
    pub(super) fn new(driver: &Arc<Driver>, device: &NewDevice) -> Self {
        let opened = Arc::new(Opened { driver: Arc::clone(driver), number: device.number });
        OpenDevice { opened, rx: 0..device.rx_queues, tx: 0..device.tx_queues }
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.opened.driver
    }

    /// The plugin's number of it.
    pub(crate) fn number(&self) -> u32 {
        self.opened.number
    }

    /// The handle of the next receive queue, in their order.
    pub(crate) fn next_rx(&mut self) -> Option<RxHandle> {
        let queue = self.rx.next()?;
        Some(RxHandle { opened: Arc::clone(&self.opened), queue, one_thread: PhantomData })
    }

    /// The handle of the next transmit queue, in their order.
    pub(crate) fn next_tx(&mut self) -> Option<TxHandle> {
        let queue = self.tx.next()?;
        Some(TxHandle { opened: Arc::clone(&self.opened), queue, one_thread: PhantomData })
    }

    /// Closes it, if no thread can be calling its queues any more; gives it back otherwise.
    pub(crate) fn close(self, main: MainThread<'_>) -> Result<(), Self> {
        let OpenDevice { opened, rx, tx } = self;
        match Arc::try_unwrap(opened) {
            Ok(Opened { driver, number }) => {
                driver.close(main, number);
                Ok(())
            }
            Err(opened) => Err(OpenDevice { opened, rx, tx }),
        }
    }
}

/// The right to call a receive queue's functions: one thread at a time has it.
pub(crate) struct RxHandle {
    pub(super) opened: Arc<Opened>,
    pub(super) queue: u32,
    one_thread: PhantomData<Cell<()>>,
}

/// The right to call a transmit queue's functions: one thread at a time has it.
pub(crate) struct TxHandle {
    pub(super) opened: Arc<Opened>,
    pub(super) queue: u32,
    one_thread: PhantomData<Cell<()>>,
}

/// What must not compile. Each line is ambiguous, and so an error, for a type that has the trait it must not have.
#[cfg(test)]
mod tests {
    use super::*;

    trait NotSend<A> {
        fn holds() {}
    }
    impl<T: ?Sized> NotSend<()> for T {}
    impl<T: ?Sized + Send> NotSend<u8> for T {}

    trait NotSync<A> {
        fn holds() {}
    }
    impl<T: ?Sized> NotSync<()> for T {}
    impl<T: ?Sized + Sync> NotSync<u8> for T {}

    trait NotClone<A> {
        fn holds() {}
    }
    impl<T: ?Sized> NotClone<()> for T {}
    impl<T: Clone> NotClone<u8> for T {}

    fn is_send<T: Send>() {}

    #[test]
    fn the_proof_of_the_main_thread_stays_there_and_a_queue_s_handle_is_one_thread_s() {
        <MainThread<'static> as NotSend<_>>::holds();
        <MainThread<'static> as NotSync<_>>::holds();
        <Control as NotSend<_>>::holds();
        <Control as NotSync<_>>::holds();
        <RxHandle as NotSync<_>>::holds();
        <RxHandle as NotClone<_>>::holds();
        <TxHandle as NotSync<_>>::holds();
        <TxHandle as NotClone<_>>::holds();
        <OpenDevice as NotClone<_>>::holds();
        is_send::<RxHandle>();
        is_send::<TxHandle>();
    }
}
