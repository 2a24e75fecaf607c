//! The binary API: clients written for VPP connect to a UNIX socket and speak messages.
//!
//! A client says who it is and gets the table of all messages. It finds those it knows by name and checksum, and asks.
//! Its requests are answered in order. Long answers are made piece by piece while it reads, so that packets, timers and
//! other clients never wait for them. One that does not read is cut off; one that sends nonsense is not answered, and
//! that is counted.
//!
//! | question | file |
//! |---|---|
//! | which messages there are, and their numbers | [`table`] |
//! | messages of the server itself | [`memclnt`] |
//! | how a stream becomes messages | [`frames`] |
//! | what all clients may have sent in halves | `pending_bytes.rs` |
//! | what one client is served | `session.rs`, its connection: `link.rs` |
//! | who may connect | `socket.rs`, `server.rs` |
//! | what came last | [`trace`] |
//! | the files and the page that describe the messages | [`reference`] |
#![forbid(unsafe_code)]

mod cli;
pub mod frames;
mod link;
pub mod memclnt;
mod pending_bytes;
pub mod reference;
mod server;
mod server_context;
mod session;
mod socket;
pub mod table;
pub mod trace;

pub use server::{Server, Settings, serve};
pub use socket::ListenError;
pub use table::Table;

use shoal_module::Module;

/// The module. It serves the API when [`Settings`] are on the shelf, and does nothing otherwise.
pub static MODULE: Module = Module {
    name: "api",
    description: "Binary API",
    init: server::init,
    start: server::start,
    commands: cli::COMMANDS,
    ..Module::NONE
};
