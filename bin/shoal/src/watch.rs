//! A thread that watches the others: which of them is stuck stands in the log, and the service manager's watchdog is
//! fed only while all move.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use shoal_graph::stall::{Change, StallMonitor, ThreadList};
use shoal_graph::thread::ThreadShared;

use crate::notify::Watchdog;

/// How often it looks.
const PERIOD: Duration = Duration::from_millis(250);

/// Starts it; it ends with the process.
pub fn start(roster: Arc<ThreadList>) -> io::Result<()> {
    std::thread::Builder::new().name("watch".into()).spawn(move || watch(&roster, Watchdog::wanted()))?;
    Ok(())
}

fn watch(roster: &ThreadList, mut watchdog: Option<Watchdog>) {
    let period = watchdog.as_ref().map_or(PERIOD, |dog| PERIOD.min(dog.interval() / 2));
    let mut pulse = StallMonitor::default();
    loop {
        for (thread, change) in pulse.look(Instant::now(), &roster.threads()) {
            tell(&thread, change);
        }
        if let Some(dog) = watchdog.as_mut().filter(|_| !pulse.is_any_stuck()) {
            dog.feed(Instant::now());
        }
        std::thread::sleep(period);
    }
}

fn tell(thread: &ThreadShared, change: Change) {
    let (name, lwp) = (&thread.name, thread.lwp.load(Ordering::Relaxed));
    match change {
        Change::Stuck(still) => {
            tracing::error!(
                "thread {name} (LWP {lwp}) is stuck: it has not moved for {:.1} s",
                still.as_secs_f64()
            );
        }
        Change::Moves(still) => {
            tracing::warn!("thread {name} (LWP {lwp}) moves again after {:.1} s", still.as_secs_f64());
        }
    }
}
