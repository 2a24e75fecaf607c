//! Doing something inside another network namespace, without moving the caller.

use std::fs::File;
use std::io;

use nix::sched::{CloneFlags, setns};

use crate::{Error, NetnsRef};

/// Opens a namespace by the operator's reference to it. The handle stays good when the name is removed or
/// the process ends.
pub(crate) fn open(netns: &NetnsRef) -> Result<File, Error> {
    let path = netns.path();
    File::open(&path).map_err(|source| Error::Netns { netns: path.display().to_string(), source })
}

/// Runs `f` inside `netns` on a thread that lives for this call only: a thread that has entered a
/// namespace is never used for anything else. Without a namespace `f` runs where it is.
pub(crate) fn run_in<T: Send>(
    netns: Option<&File>,
    f: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let Some(netns) = netns else { return f() };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("tap-netns".into()).spawn_scoped(scope, || {
            setns(netns, CloneFlags::CLONE_NEWNET).map_err(|e| Error::os("setns")(e.into()))?;
            f()
        });
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Error::os("setns thread")(io::Error::other("it panicked"))),
            Err(e) => Err(Error::os("setns thread")(e)),
        }
    })
}
