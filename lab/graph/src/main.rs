//! Clocks, instructions and allocations per packet of the graph's paths, in one process and without I/O.
//!
//! ```text
//! scenario ---> router | ruler | flows     what runs: all are `Work`
//!                  |
//!    window (slices, control loop) -> statistics -> results -> report, JSON, compare
//!    instructions (perf or valgrind)     |
//!    allocations -------------------------
//! ```
//! `docs/bench.md` says how the figures are won and how to read them.
#![deny(unsafe_code)]

mod arguments;
mod compare;
mod control_loop;
mod flows;
mod fragmented;
mod full_table;
mod instructions;
mod learning;
mod machine;
mod measurement_loop;
mod memory;
mod meter;
mod natted;
mod report;
mod results;
mod router;
mod run;
mod scaling;
mod scenario;
mod statistics;
mod switched;
mod sys;
mod tables;
mod window;
mod work;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use shoal_testkit::alloc::CountingAllocator;

use arguments::{Arguments, Command};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What goes wrong here ends the program, with a sentence.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Some(Command::Compare { a, b }) => compare::files(a, b).map(|text| print!("{text}")),
        Some(Command::Count { scenario, slices }) => instructions::count_here(scenario, *slices),
        Some(Command::Tables { json, only, rounds }) => tables::run(json, only, *rounds),
        None if arguments.scenario.is_empty() => run::all(&arguments)
            .and_then(|()| tables::run(std::path::Path::new(tables::RESULTS), &[], tables::ROUNDS)),
        None => run::all(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bench: {e}");
            ExitCode::FAILURE
        }
    }
}
