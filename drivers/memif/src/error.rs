//! The one error type of the crate's control side.

use std::io;

use shoal_module::door::FileError;

/// Why a memif or a socket could not be made or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{what}: {source}")]
    Os {
        /// What was being done.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
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
    /// A number out of its range.
    #[error("{what} {value} is not possible: {rule}, nearest {nearest}")]
    Range {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What would be right.
        rule: &'static str,
        /// The nearest that is right.
        nearest: u64,
    },
    /// The rings and packets of an interface take too much memory.
    #[error(
        "{queues} queues of {ring} buffers of {buffer} bytes are {bytes} bytes, at most 4 GiB: ask for fewer or smaller ones"
    )]
    Memory {
        /// Queues of both directions.
        queues: u64,
        /// Entries of a ring.
        ring: u64,
        /// Bytes of a buffer.
        buffer: u64,
        /// All of it.
        bytes: u64,
    },
    /// The secret is longer than the protocol has room for.
    #[error("secret of {0} bytes, at most 24")]
    Secret(usize),
    /// What this driver does not do.
    #[error("mode punt-inject is not offered: ethernet or ip")]
    PuntInject,
    /// There is no such socket.
    #[error("no memif socket {id}; there are: {there}")]
    NoSocket {
        /// Its number.
        id: u32,
        /// The numbers there are.
        there: String,
    },
    /// There is one of this number with another file.
    #[error("memif socket {id} is {filename} already")]
    SocketExists {
        /// Its number.
        id: u32,
        /// Its file.
        filename: String,
    },
    /// The file belongs to a socket of another number.
    #[error("{filename} is memif socket {id} already")]
    FileTaken {
        /// That number.
        id: u32,
        /// The file.
        filename: String,
    },
    /// The number is not for operators.
    #[error("memif socket {0} is always there")]
    FixedSocket(u32),
    /// Interfaces use it.
    #[error("memif socket {id} is used by {by}: delete that first")]
    SocketInUse {
        /// Its number.
        id: u32,
        /// An interface.
        by: String,
    },
    /// Interfaces of the other role use the socket.
    #[error("memif socket {id} is for {there}s, as {by} is one: create another socket for {wanted}s")]
    Role {
        /// The socket's number.
        id: u32,
        /// The role of those there are.
        there: &'static str,
        /// One of them.
        by: String,
        /// The role that was asked for.
        wanted: &'static str,
    },
    /// The interface is no memif.
    #[error("{name} is no memif; there are: {there}", there = if there.is_empty() { "none".into() } else { there.join(", ") })]
    NoMemif {
        /// The interface.
        name: String,
        /// All memifs.
        there: Vec<String>,
    },
    /// The router's interface could not be made or changed.
    #[error(transparent)]
    Interface(#[from] shoal_interface::InterfaceError),
    /// The control plane is not there: the router ends.
    #[error("{0}")]
    Ends(String),
}
