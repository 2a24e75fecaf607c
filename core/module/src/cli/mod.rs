//! CLI declarations: what a feature writes down so that its commands exist.
//!
//! A feature's `cli.rs` holds a static slice of [`Command`] and, if it brings words for live objects, one of
//! [`ArgType`]. It translates and decides nothing: a handler reads its [`Args`], calls the feature's
//! `control` module and wraps the answer in an [`Output`]. Parsing, completion, help and the sockets are in
//! `shoal-cli`; nothing here knows about them.
//!
//! # The syntax string
//!
//! | written | meaning |
//! |---|---|
//! | `set interface state` | words; those before the first other item are the command's path |
//! | `<interface>`, `<peer:interface>` | an argument, named first, then its type (same as the name if left out) |
//! | `[del]`, `[table <table:u32>]` | may be left out; neighbouring groups come in any order |
//! | `{up \| down}` | exactly one of them |
//! | `{src <a:ip4-address> & dst <b:ip4-address> & [ttl <n:u8>]}` | all of them, in any order |
//! | `[<interface>] ...`, `{via <next-hop:word>} ...` | the item before it any number of times (at least once for `{}`) |
//! | `<x:rest>` | the rest of the line, as it stands |
//! | `<x:rest-or-quoted>` | a quoted string, or else the rest of the line |
//! | `<x:block>` | the inside of a balanced `{ ... }`, over several lines, or else the rest of the line |
//!
//! ```
//! use shoal_module::Control;
//! use shoal_module::cli::{Args, CliError, Command, Output};
//!
//! pub static COMMANDS: &[Command] = &[Command::new(
//!     "greet <who:word> [times <n:u8>]",
//!     "Say hello",
//!     greet,
//! )
//! .examples(&["greet world times 2"])];
//!
//! fn greet(_control: &Control, args: &Args) -> Result<Output, CliError> {
//!     let who: String = args.get("who")?;
//!     let times = args.or("n", 1u8)?;
//!     Ok(Output::text(format!("hello {who}\n").repeat(times.into())))
//! }
//! ```

mod arg_type;
mod args;
mod command;
mod error;
mod from_arg;
mod listing;
mod nearest;
mod output;
mod pace;
mod sink;
mod wire_args;

pub use arg_type::{ArgType, BUILT_IN, check};
pub use args::{Args, Item, Text};
pub use command::{AsyncHandler, Command, Handler, Later, Long, Run};
pub use error::{CliError, Expected};
pub use from_arg::{FromArg, Toggle};
pub use listing::{Form, Listing, Page};
pub use nearest::nearest;
pub use output::{Output, View};
pub use pace::Pace;
pub use sink::{Client, ClientGone, Reader, Sink};
pub use wire_args::WIRE;
