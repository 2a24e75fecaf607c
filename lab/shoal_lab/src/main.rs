//! Measures routers by the RFCs, and says how far to trust the figures.
//!
//! [`args`] is what can be typed, [`cases`] makes results to be had of it, [`campaign`] has them one after the other: for each
//! a [`test_bed`] (a device, and the tester at its ports), the case's [`traffic`], and a test of the [`catalogue`].
#![forbid(unsafe_code)]

#[macro_use]
mod print_macros;

mod args;
mod bases;
mod campaign;
mod cases;
mod catalogue;
mod commands;
mod convergence;
mod doctor;
mod dry_run;
mod energy;
mod exit;
mod gates;
mod history;
mod interrupt;
mod journal;
mod list;
mod nat;
mod profile;
mod replay;
mod resets;
mod revisions;
mod selftest;
mod settings;
mod siitperf;
mod suites;
mod switching;
mod test_bed;
mod traffic;
mod under_way;
mod view;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;
use crate::exit::Exit;

fn main() -> ExitCode {
    // Scripts written for siitperf call it by these names.
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if let Some(program) = siitperf::called_as(arguments.first()) {
        arguments.splice(0..1, ["shoal-lab".into(), program.into()]);
    }
    match Cli::try_parse_from(arguments) {
        Ok(cli) => commands::run(cli).into(),
        Err(error) => {
            let _ = error.print();
            if error.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS }
        }
    }
}
