//! Doing something inside another network namespace, without moving the caller.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use nix::sched::{CloneFlags, setns};

use crate::Error;

/// A namespace as VPP writes it: `NAME`, `/PATH` or `pid:N`. The handle stays good when the name is removed.
#[derive(Debug)]
pub(crate) struct Netns(File);

impl Netns {
    pub(crate) fn open(text: &str) -> Result<Self, Error> {
        let path = match (text.strip_prefix("pid:"), text.starts_with('/')) {
            (Some(pid), _) => PathBuf::from(format!("/proc/{pid}/ns/net")),
            (None, true) => PathBuf::from(text),
            (None, false) => PathBuf::from("/var/run/netns").join(text),
        };
        let netns = |source| Error::Netns { netns: text.to_owned(), source };
        if text.is_empty() || (!text.starts_with('/') && text.contains('/')) {
            return Err(netns(io::Error::new(io::ErrorKind::InvalidInput, "a name, /PATH or pid:N")));
        }
        File::open(path).map(Netns).map_err(netns)
    }
}

/// Runs `f` inside `netns` on a thread that lives for this call only: a thread that has entered a
/// namespace is never used for anything else. Without a namespace `f` runs where it is.
pub(crate) fn run_in<T: Send>(
    netns: Option<&Netns>,
    f: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let Some(Netns(netns)) = netns else { return f() };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("af-xdp-netns".into()).spawn_scoped(scope, || {
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
