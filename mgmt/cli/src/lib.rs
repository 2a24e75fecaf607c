//! The command line: parser, completion, help and the socket behind `shoalctl` and `vppctl`.
//!
//! Features declare [commands](shoal_module::cli) as data. [`Cli`] merges those of all modules into one tree
//! of words and runs lines against it; it needs no socket. [`server`] puts it on one.
//!
//! A line's way: `lex` finds words, `table` and `parse` find the command by VPP's rules, `matcher`
//! matches the rest against the command's `grammar`, `session` runs it, `complaint` explains what went
//! wrong. `complete` and `help` ask the same matcher what could have come next, so they cannot disagree
//! with the parser.
#![forbid(unsafe_code)]

mod api;
mod bpf_image;
mod builtin;
pub mod commands;
mod complaint;
mod complete;
mod exec;
pub mod filter;
mod forms;
mod grammar;
mod help;
mod lex;
mod listing;
mod matcher;
mod output_filter;
mod parse;
mod plan;
mod progress;
mod reference;
mod reply;
pub mod server;
mod session;
mod sessions;
mod table;
mod vpp;

pub use complaint::Complaint;
pub use complete::{Candidate, Completion};
pub use forms::Forms;
pub use grammar::SyntaxError;
pub use lex::{in_line, words};
pub use reply::Reply;
pub use session::{Cli, FileRun};
pub use sessions::{Session, Sessions};
pub use table::TableError;
