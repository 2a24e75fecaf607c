//! How a guest is woken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_link::Doorbell;

/// How a guest is woken. The hypervisor changes it while packets flow, so it is looked up with each call, which is a
/// system call anyway.
#[derive(Clone, Debug, Default)]
pub struct Call(Arc<Mutex<Option<Doorbell>>>);

impl Call {
    fn doorbell(&self) -> MutexGuard<'_, Option<Doorbell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the guest, if there is a way to.
    pub fn kick(&self) {
        if let Some(doorbell) = &*self.doorbell() {
            doorbell.ring();
        }
    }

    /// Puts another way in the place of the old one. The guest is woken by it: it may have missed a call meanwhile.
    pub fn set(&self, doorbell: Option<Doorbell>) {
        let old = std::mem::replace(&mut *self.doorbell(), doorbell);
        drop(old);
        self.kick();
    }

    /// The descriptor's number; -1 if there is none.
    pub fn number(&self) -> i32 {
        self.doorbell().as_ref().map_or(-1, |doorbell| doorbell.event().raw())
    }
}
