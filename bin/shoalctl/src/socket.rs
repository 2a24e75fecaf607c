//! Where the router's socket is.

use std::path::{Path, PathBuf};

/// The sockets to try, in order. One that the user names is the only one.
pub fn candidates(named: Option<&Path>) -> Vec<PathBuf> {
    let from_environment = || std::env::var_os("SHOAL_CLI_SOCK").filter(|s| !s.is_empty()).map(PathBuf::from);
    match named.map(Path::to_owned).or_else(from_environment) {
        Some(path) => vec![path],
        None => vec!["/run/shoal/cli.sock".into(), "./cli.sock".into()],
    }
}
