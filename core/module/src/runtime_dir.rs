//! Where sockets lie.

use std::path::PathBuf;

/// The folder of the router's sockets (`unix { runtime-dir }`), for features that have some of their own. The daemon
/// gives it to the control plane before modules start; in tests there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeDir(pub PathBuf);
