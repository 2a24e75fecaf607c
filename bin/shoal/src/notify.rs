//! Tells systemd how far we are (sd_notify's protocol: one datagram).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Whether somebody wants to know.
pub fn is_wanted() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// Sends a state such as `READY=1`, if somebody wants to know.
pub fn notify(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let send = || {
        let address = match path.as_encoded_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&path)?,
        };
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
    };
    if let Err(error) = send() {
        tracing::warn!("cannot tell the service manager {state}: {error}");
    }
}
