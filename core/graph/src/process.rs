//! Process tasks: `async` functions of the main thread, for timers, sockets and events.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use async_executor::LocalExecutor;
use futures_lite::future;

use crate::clock::{Clock, Time};

/// How long tasks run before the main thread looks at its queues again.
const MOST: Duration = Duration::from_micros(500);

/// Something that makes the main thread look at its tasks again.
pub trait Wake: Send + Sync + 'static {
    /// Wakes it.
    fn wake(&self);
}

struct MainWaker(Arc<dyn Wake>);

impl std::task::Wake for MainWaker {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }
}

/// What `show runtime` prints of a process.
#[derive(Clone, Debug)]
pub struct ProcessInfo {
    /// Its name.
    pub name: &'static str,
    /// How often it ran until it had to wait.
    pub suspends: u64,
    /// Clocks it took.
    pub clocks: u64,
    /// Whether it has ended.
    pub ended: bool,
}

#[derive(Default)]
struct Account {
    name: &'static str,
    suspends: Cell<u64>,
    clocks: Cell<u64>,
    ended: Cell<bool>,
}

#[derive(Default)]
struct Timers {
    due: BinaryHeap<Reverse<(Time, u64)>>,
    wakers: BTreeMap<u64, Waker>,
    next: u64,
}

/// The tasks of one router's main thread. Clones are the same set.
#[derive(Clone)]
pub struct Processes {
    executor: Rc<LocalExecutor<'static>>,
    clock: Clock,
    timers: Rc<RefCell<Timers>>,
    accounts: Rc<RefCell<Vec<Rc<Account>>>>,
    tick: Rc<RefCell<Option<Tick>>>,
}

type Tick = Pin<Box<dyn Future<Output = ()>>>;

impl Processes {
    /// No tasks yet.
    pub fn new(clock: Clock) -> Self {
        Processes {
            executor: Rc::new(LocalExecutor::new()),
            clock,
            timers: Rc::default(),
            accounts: Rc::default(),
            tick: Rc::default(),
        }
    }

    /// Starts a task under a name that `show runtime` prints.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + 'static) {
        let account = Rc::new(Account { name, ..Account::default() });
        self.accounts.borrow_mut().push(Rc::clone(&account));
        self.executor.spawn(Accounted { task: Box::pin(task), account }).detach();
    }

    /// Starts a task that takes each message of a channel, one after the other.
    pub fn spawn_hearing<T: 'static>(
        &self,
        name: &'static str,
        heard: Receiver<T>,
        hear: impl Fn(T) + 'static,
    ) {
        self.spawn(name, async move {
            while let Ok(message) = heard.recv().await {
                hear(message);
            }
        });
    }

    /// Starts a task that runs `tick` now, each time `bell` rings, and at the moment that `tick` tells.
    pub fn spawn_ticking(
        self: &Rc<Self>,
        name: &'static str,
        bell: Receiver<()>,
        tick: impl Fn() -> Option<Time> + 'static,
    ) {
        let processes = Rc::clone(self);
        self.spawn(name, async move {
            loop {
                processes.rung_or_due(&bell, tick()).await;
            }
        });
    }

    /// Starts a task that is not listed: one connection of many, one command.
    pub fn spawn_unlisted(&self, task: impl Future<Output = ()> + 'static) {
        self.executor.spawn(task).detach();
    }

    /// Waits on the router's clock.
    pub fn sleep(&self, wait: Duration) -> Sleep {
        Sleep {
            until: self.clock.now().after(wait),
            timers: Rc::clone(&self.timers),
            clock: self.clock.clone(),
            id: None,
        }
    }

    /// Waits until `bell` rings, or until `due`; if there is no `due`, for the bell alone.
    pub async fn rung_or_due(&self, bell: &Receiver<()>, due: Option<Time>) {
        let rung = async {
            // An error means that no sender is left.
            if bell.recv().await.is_err() {
                future::pending::<()>().await;
            }
        };
        match due {
            Some(due) => future::or(rung, self.sleep(due.since(self.clock().now()))).await,
            None => rung.await,
        }
    }

    /// The clock tasks wait on.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// When the next sleeper is due.
    pub fn deadline(&self) -> Option<Time> {
        self.timers.borrow().due.peek().map(|Reverse((time, _))| *time)
    }

    /// Wakes the sleepers that are due and runs tasks until all wait, but no more than `most` steps, and none after
    /// half a millisecond, because packets wait meanwhile; tells whether any ran. When all wait, `wake` is called as
    /// soon as one may go on.
    pub fn run(&self, most: usize, wake: &Arc<dyn Wake>) -> bool {
        self.fire();
        let mut ran = false;
        let begun = Instant::now();
        for _ in 0..most {
            let waker = Waker::from(Arc::new(MainWaker(Arc::clone(wake))));
            let mut tick = self.tick.borrow_mut();
            let future = tick.get_or_insert_with(|| {
                let executor = Rc::clone(&self.executor);
                Box::pin(async move { executor.tick().await })
            });
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(()) => {
                    *tick = None;
                    ran = true;
                    if begun.elapsed() >= MOST {
                        break;
                    }
                }
                Poll::Pending => break,
            }
        }
        ran
    }

    /// Runs tasks until all wait; for tests.
    pub fn run_until_idle(&self) -> bool {
        let mut ran = false;
        loop {
            self.fire();
            if !self.executor.try_tick() {
                return ran;
            }
            ran = true;
        }
    }

    fn fire(&self) {
        let now = self.clock.now();
        loop {
            let waker = {
                let mut timers = self.timers.borrow_mut();
                match timers.due.peek() {
                    Some(Reverse((time, id))) if *time <= now => {
                        let id = *id;
                        timers.due.pop();
                        timers.wakers.remove(&id)
                    }
                    _ => return,
                }
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// All named tasks.
    pub fn list(&self) -> Vec<ProcessInfo> {
        let info = |a: &Rc<Account>| ProcessInfo {
            name: a.name,
            suspends: a.suspends.get(),
            clocks: a.clocks.get(),
            ended: a.ended.get(),
        };
        self.accounts.borrow().iter().map(info).collect()
    }

    /// Restarts all tasks' counts.
    pub fn clear(&self) {
        for account in self.accounts.borrow().iter() {
            account.suspends.set(0);
            account.clocks.set(0);
        }
    }
}

struct Accounted {
    task: Pin<Box<dyn Future<Output = ()>>>,
    account: Rc<Account>,
}

impl Future for Accounted {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let start = crate::clock::tsc();
        let result = self.task.as_mut().poll(cx);
        let account = &self.account;
        account.clocks.set(account.clocks.get() + crate::clock::tsc().wrapping_sub(start));
        account.suspends.set(account.suspends.get() + 1);
        account.ended.set(result.is_ready());
        result
    }
}

/// A wait on the router's clock, see [`Processes::sleep`].
pub struct Sleep {
    until: Time,
    timers: Rc<RefCell<Timers>>,
    clock: Clock,
    id: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.until {
            return Poll::Ready(());
        }
        let mut timers = self.timers.borrow_mut();
        let id = self.id.unwrap_or(timers.next);
        if self.id.is_none() {
            timers.next += 1;
            timers.due.push(Reverse((self.until, id)));
        }
        timers.wakers.insert(id, cx.waker().clone());
        drop(timers);
        self.id = Some(id);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.timers.borrow_mut().wakers.remove(&id);
        }
    }
}

/// A bounded channel from nodes of any thread to a task of the main thread. A full channel refuses: the sender
/// counts it.
pub fn channel<T>(capacity: usize) -> (async_channel::Sender<T>, async_channel::Receiver<T>) {
    async_channel::bounded(capacity)
}

pub use async_channel::{Receiver, Sender};

/// Runs work that waits for a disk or thinks for long on a thread of its own, and gives way until it is done.
///
/// # Errors
/// There can be no other thread, or the work panicked.
pub async fn aside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, done) = channel(1);
    let run = move || {
        // The waiting task may have been dropped.
        let _ = sender.send_blocking(work());
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
    done.recv().await.map_err(|_| io::Error::other("the work was given up"))
}
