//! Descriptors that the service manager has kept for this process (`LISTEN_FDS`).

use std::os::fd::{FromRawFd, OwnedFd};

/// Those whose names begin so, by name. The first call takes them, later ones find none.
pub(crate) fn take(prefix: &str) -> Vec<(String, OwnedFd)> {
    static TAKEN: std::sync::Once = std::sync::Once::new();
    let mut all = Vec::new();
    TAKEN.call_once(|| match sd_notify::listen_fds_with_names() {
        Ok(given) => {
            for (fd, name) in given.filter(|(_, name)| name.starts_with(prefix)) {
                // SAFETY: the service manager opened it for this process, no other code takes descriptors of these names, and
                // this code runs once.
                all.push((name, unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
        Err(error) => tracing::warn!(%error, "what the service manager has kept is not known"),
    });
    all
}
