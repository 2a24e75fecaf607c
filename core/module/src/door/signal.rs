//! Waiting for a condition among tasks of one thread.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// Wakes the tasks that wait for something to change.
#[derive(Default)]
pub struct Signal(RefCell<Vec<Waker>>);

impl Signal {
    /// Something has changed.
    pub fn notify(&self) {
        let waiting = self.0.take();
        for waker in waiting {
            waker.wake();
        }
    }

    /// Ready when `condition` holds; otherwise the task is woken at the next change.
    pub fn poll(&self, cx: &mut Context<'_>, condition: impl Fn() -> bool) -> Poll<()> {
        if condition() {
            return Poll::Ready(());
        }
        let mut waiting = self.0.borrow_mut();
        if !waiting.iter().any(|w| w.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Waits until `condition` holds.
    pub async fn until(&self, condition: impl Fn() -> bool) {
        poll_fn(|cx| self.poll(cx, &condition)).await;
    }
}
