//! The wish to end, as tasks wait for it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Set once; everything that runs until the end waits for it.
#[derive(Default)]
pub struct Stop {
    asked: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Stop {
    /// Asks for the end.
    pub fn ask(&self) {
        self.asked.set(true);
        self.waiting.take().into_iter().for_each(Waker::wake);
    }

    /// Whether it was asked for.
    pub fn is_asked(&self) -> bool {
        self.asked.get()
    }

    /// Waits until it is asked for.
    pub async fn asked(&self) {
        poll_fn(|cx| {
            if self.is_asked() {
                return Poll::Ready(());
            }
            let mut waiting = self.waiting.borrow_mut();
            waiting.retain(|w| !w.will_wake(cx.waker()));
            waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
