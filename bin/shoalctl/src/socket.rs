//! Where the router's socket is.

use std::path::{Path, PathBuf};

/// Whether the program was started as `vppctl`.
fn named_vppctl() -> bool {
    let program = std::env::args_os().next().unwrap_or_default();
    Path::new(&program).file_name().is_some_and(|name| name == "vppctl")
}

/// The sockets to try, in order. One that the user names is the only one.
pub fn candidates(named: Option<&Path>) -> Vec<PathBuf> {
    let from_environment = || std::env::var_os("SHOAL_CLI_SOCK").filter(|s| !s.is_empty()).map(PathBuf::from);
    if let Some(path) = named.map(Path::to_owned).or_else(from_environment) {
        return vec![path];
    }
    let mut all: Vec<PathBuf> =
        ["/run/shoal/cli.sock", "/run/vpp/cli.sock", "./cli.sock"].map(Into::into).into();
    if named_vppctl() {
        // By that name it looks where VPP's client looks.
        all.swap(0, 1);
    }
    all
}
