//! The one error type of the crate's control side.

use shoal_module::door::FileError;

/// Why an interface could not be made or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The socket's file cannot be had.
    #[error(transparent)]
    File(#[from] FileError),
    /// A path that sockets cannot have.
    #[error("socket file name `{name}': {rule}")]
    FileName {
        /// The name.
        name: String,
        /// What would be right.
        rule: &'static str,
    },
    /// Another interface has this socket.
    #[error("socket {file} is that of {by} already")]
    Taken {
        /// The file.
        file: String,
        /// The interface.
        by: String,
    },
    /// What this driver does not do.
    #[error("packed rings are not offered: leave out `packed', guests use split ones then")]
    Packed,
    /// The interface is not one of a guest.
    #[error("{name} is no vhost-user interface; there are: {there}", there = if there.is_empty() { "none".into() } else { there.join(", ") })]
    NoVhost {
        /// The interface.
        name: String,
        /// All of them.
        there: Vec<String>,
    },
    /// The router's interface could not be made or changed.
    #[error(transparent)]
    Interface(#[from] shoal_interface::InterfaceError),
    /// The control plane is not there: the router ends.
    #[error("the router ends")]
    Ends,
}
