//! Doing something inside another network namespace, without moving the caller.

use std::fs::File;
use std::io;

use nix::sched::{CloneFlags, setns};

use crate::{Error, NetnsRef};

/// Runs `f` inside `netns` on a thread that lives for this call only: a thread that has entered a
/// namespace is never used for anything else. Without a namespace `f` runs where it is.
pub(crate) fn run_in<T: Send>(
    netns: Option<&NetnsRef>,
    f: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let Some(netns) = netns else { return f() };
    let path = netns.path();
    let failed = |source| Error::Netns { netns: path.display().to_string(), source };
    let file = File::open(&path).map_err(failed)?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("tap-netns".into()).spawn_scoped(scope, || {
            setns(&file, CloneFlags::CLONE_NEWNET).map_err(|e| failed(e.into()))?;
            f()
        });
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(failed(io::Error::other("the helper thread failed"))),
            Err(e) => Err(failed(e)),
        }
    })
}
