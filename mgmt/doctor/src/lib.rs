//! What this machine could do for the router, and what to type.
//!
//! `shoal doctor` looks and changes nothing: [`ports`] reads the interfaces, [`reach`] which of them the machine is
//! reached by, [`advice`] says what can be done with each; [`machine`] reads the rest and [`findings`] judges it.
//! `shoal tune` ([`tune`]) applies a named subset of what was found and can undo it.
//!
//! Everything is read below a folder that the caller names, `/` in life, so that tests are whole machines in small
//! trees. Whatever stands there is taken as hostile: reads are bounded, names are printed escaped, nothing waits.
#![forbid(unsafe_code)]

mod advice;
mod command;
mod cores;
mod drivers;
mod findings;
mod machine;
mod ports;
mod reach;
mod report;
mod root;
mod text;
mod tune;

pub use command::{DOCTOR_USAGE, Outcome, TUNE_USAGE, doctor, tune};

use std::ffi::OsString;
use std::path::PathBuf;

/// The names of `shoal tune`'s subsets.
pub const SUBSETS: [&str; 7] =
    ["hugepages", "thp", "governor", "busy-poll", "vfio", "vfio-noiommu", "vhost-net"];

/// What the two commands are given as facts; the rest they read below `root`.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Where `/proc`, `/sys` and the others are: `/` in life.
    pub root: PathBuf,
    /// The environment's `SSH_CONNECTION`: addresses and ports of the session that asks.
    pub ssh_connection: Option<OsString>,
    /// What this build of the router has.
    pub build: Build,
    /// Whether the answer goes to a terminal and may have colours.
    pub terminal: bool,
}

/// The ways to take a port that this build of the router has; others are named `later`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Build {
    /// `create host-interface`.
    pub af_packet: bool,
    /// `create interface af_xdp`.
    pub af_xdp: bool,
    /// `create tap`.
    pub tap: bool,
    /// `create interface memif`.
    pub memif: bool,
    /// The DPDK plugin.
    pub dpdk: bool,
}

impl Build {
    /// Of a router with these commands, each by its syntax.
    pub fn of_commands<'a>(commands: impl IntoIterator<Item = &'a str>) -> Self {
        let mut build = Self::default();
        for syntax in commands {
            let begins = |words: &str| {
                syntax.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '{']))
            };
            build.af_packet |= begins("create host-interface");
            build.af_xdp |= begins("create interface af_xdp");
            build.tap |= begins("create tap");
            build.memif |= begins("create interface memif");
            build.dpdk |= begins("show dpdk");
        }
        build
    }
}
