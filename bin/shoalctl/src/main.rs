//! The command-line client: one command, a file of commands, or a session with history and completion.
#![forbid(unsafe_code)]

mod client;
mod editor;
mod interactive;
mod interrupt;
mod options;
mod pager;
mod script;
mod show;
mod socket;
mod stats;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use client::Client;
use options::{Options, Own};

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(Own::Stats(what)) = &options.own {
        return match stats::run(what, options.json) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("shoalctl: {error}");
                ExitCode::FAILURE
            }
        };
    }
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("shoalctl: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the options ask for; false if a command failed.
fn run(options: &Options) -> Result<bool, client::Error> {
    let mut client = Client::connect(&socket::candidates(options.socket.as_deref()))?;
    if !options.command.is_empty() {
        let answer = client.execute(&options.command.join(" "), options.json, &mut show::stream, None)?;
        return Ok(show::answer(&answer, ""));
    }
    match &options.file {
        Some(file) if file.as_os_str() != "-" => script::run_file(&mut client, file, options.json),
        None if std::io::stdin().is_terminal() => interactive::run(client, options.json),
        _ => script::run(&mut client, std::io::stdin().lock(), "<stdin>", options.json),
    }
}
