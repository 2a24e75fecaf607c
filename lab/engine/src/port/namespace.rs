//! Opening something inside another network namespace, without moving the engine.

use std::fs::File;
use std::path::Path;

use nix::sched::{CloneFlags, setns};

use super::InterfaceError;

/// Runs `open` in the namespace that the file at `namespace` is, on a thread that lives for this call only: a thread that
/// has entered a namespace is never used for anything else. Sockets stay in the namespace in which they were made.
///
/// # Errors
///
/// The namespace cannot be entered, or what `open` says.
pub fn run_in<T: Send>(
    namespace: Option<&Path>,
    open: impl FnOnce() -> Result<T, InterfaceError> + Send,
) -> Result<T, InterfaceError> {
    let Some(path) = namespace else { return open() };
    let failed = |source| InterfaceError::Namespace { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    std::thread::scope(|scope| {
        let inside = || {
            setns(&file, CloneFlags::CLONE_NEWNET).map_err(|e| failed(e.into()))?;
            open()
        };
        let thread = std::thread::Builder::new().name("lab-namespace".into()).spawn_scoped(scope, inside);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(failed(std::io::Error::other("the thread that entered it panicked"))),
            Err(e) => Err(failed(e)),
        }
    })
}
