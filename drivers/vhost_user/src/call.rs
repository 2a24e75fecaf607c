//! How a guest is woken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_link::EventFd;

/// How a guest is woken. The hypervisor changes it while packets flow, so it is looked up with each call, which is a
/// system call anyway.
#[derive(Clone, Debug, Default)]
pub struct Call(Arc<Mutex<Option<EventFd>>>);

impl Call {
    fn event(&self) -> MutexGuard<'_, Option<EventFd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the guest, if there is a way to.
    pub fn kick(&self) {
        if let Some(event) = &*self.event() {
            event.kick();
        }
    }

    /// Puts another way in the place of the old one. The guest is woken by it: it may have missed a call meanwhile.
    pub fn set(&self, event: Option<EventFd>) {
        let old = std::mem::replace(&mut *self.event(), event);
        drop(old);
        self.kick();
    }

    /// The descriptor's number; -1 if there is none.
    pub fn number(&self) -> i32 {
        self.event().as_ref().map_or(-1, EventFd::raw)
    }
}
