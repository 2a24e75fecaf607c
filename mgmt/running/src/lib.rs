//! The router's configuration: what it is now, what was saved, and what is different.
//!
//! Each module writes the commands that rebuild it ([`shoal_module::Running`]). This crate gathers them piece by piece
//! ([`gather`]), keeps them on disk so that no crash leaves half of anything there ([`Store`]), and compares. The
//! daemon reads the commands again: it has the command line.
#![forbid(unsafe_code)]

mod cli;
mod configuration;
mod difference;
mod gather;
mod saved;
mod store;
mod time;

pub use configuration::{Configuration, ConfigurationError, Restoring, Settings};
pub use difference::{Difference, difference};
pub use gather::{Text, gather};
pub use saved::{Origin, Saved, body};
pub use store::{Outcome, Revision, SaveOrigin, Store, StoreError};

use shoal_module::Module;
use shoal_module::config::{Body, Effect, Key, Kind, Section};

/// Where configurations are kept unless the start-up file names another place.
pub const DIRECTORY: &str = "/var/lib/shoal";

/// Revisions that are kept unless the start-up file says how many.
pub const REVISIONS: u64 = 50;

/// The module. It keeps configurations where the [`Settings`] on the shelf say; without any it only shows them.
pub static MODULE: Module = Module {
    name: "running",
    description: "The configuration as commands: shown, saved, compared",
    init: configuration::init,
    commands: cli::COMMANDS,
    sections: &[SECTION],
    ..Module::NONE
};

const SECTION: Section = Section {
    name: "configuration",
    doc: "where `write` saves the configuration, and whether it is there again after the next start",
    effect: Effect::Honoured,
    body: Body::Keys(&[
        Key::new(
            "directory",
            Kind::Path,
            "where configurations are kept; default /var/lib/shoal, or below it for another runtime-dir or prefix",
        ),
        Key::new("restore", Kind::Switch, "run what was saved at the start, before `exec`; default on"),
        Key::new("revisions", Kind::U64 { min: 1, max: 10_000 }, "how many are kept; default 50"),
    ]),
};
