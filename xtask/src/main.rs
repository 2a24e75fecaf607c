//! What is too long for make: the checks of the house.
//!
//! Each subcommand prints every violation with a hint, then one line that sums up, and fails if there was one.
#![forbid(unsafe_code)]

mod docs;
mod files;
mod layers;
mod plugin_header;
mod sizes;
mod test_files;
mod unsafe_count;
mod words;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The checks of the house.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Crates depend inward only, and every file of their tests is in a program that runs.
    Layers,
    /// Unsafe code is on its islands, and UNSAFE.md counts it right.
    Unsafe {
        /// Write the counts into UNSAFE.md.
        #[arg(long)]
        write: bool,
    },
    /// No file is longer than people can hold in their heads.
    Sizes,
    /// Documents are there, in plain words, and name no path of somebody's machine.
    DocsCheck,
    /// The C header of the plugin ABI is what its types say.
    PluginHeader {
        /// Print what it should be.
        #[arg(long)]
        print: bool,
    },
}

/// What a check found: violations, and a line for when there are none.
pub struct Outcome {
    violations: Vec<String>,
    summary: String,
}

/// Two checks of what crates are made of, as one.
fn both(first: Result<Outcome>, second: Result<Outcome>) -> Result<Outcome> {
    let (mut first, second) = (first?, second?);
    first.violations.extend(second.violations);
    Ok(Outcome { summary: format!("{}; {}", first.summary, second.summary), ..first })
}

/// The error of anything that should just work: reading files, running cargo.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let (name, outcome) = match Arguments::parse().task {
        Task::Layers => ("layers", both(layers::check(), test_files::check())),
        Task::Unsafe { write } => ("unsafe", unsafe_count::check(write)),
        Task::Sizes => ("sizes", sizes::check()),
        Task::DocsCheck => ("docs-check", docs::check()),
        Task::PluginHeader { print: false } => ("plugin-header", plugin_header::check()),
        Task::PluginHeader { print: true } => {
            return match plugin_header::print() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("plugin-header: {error}");
                    ExitCode::FAILURE
                }
            };
        }
    };
    match outcome {
        Ok(Outcome { violations, summary }) if violations.is_empty() => {
            println!("{name}: {summary}");
            ExitCode::SUCCESS
        }
        Ok(Outcome { violations, .. }) => {
            for violation in &violations {
                println!("{violation}");
            }
            println!("{name}: {} to mend", violations.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
