//! The command-line client: one command, a file of commands, or a session with history and completion.
#![forbid(unsafe_code)]

mod api;
mod client;
mod connection;
mod editor;
mod interactive;
mod interrupt;
mod nat_log;
mod options;
mod pager;
mod ping;
mod script;
mod show;
mod socket;
mod stats;

use std::fmt::Display;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use client::Client;
use options::{Api, ApiAction, LocalCommand, Options};

fn main() -> ExitCode {
    let mut options = Options::parse();
    match options.own.take() {
        Some(LocalCommand::Stats(what)) => ended(stats::run(&what, options.json).map(|()| true)),
        // The router has commands of its own that begin so.
        Some(LocalCommand::Api(Api { action: ApiAction::Other(words), .. })) => {
            options.command = std::iter::once("api".to_owned()).chain(words).collect();
            ended(run(&options))
        }
        Some(LocalCommand::Api(what)) => ended(api::run(&what)),
        Some(LocalCommand::NatLog(what)) => ended(nat_log::run(&what, options.json)),
        None => ended(run(&options)),
    }
}

/// The exit code: whether all was done, or what went wrong.
fn ended(result: Result<bool, impl Display>) -> ExitCode {
    match result {
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
    if let Some(words) = &options.complete {
        return complete(&mut client, words).map(|()| true);
    }
    if !options.command.is_empty() {
        let mut heard = ping::PingOutput::of(&options.command);
        let mut stream = |said: client::Interim<'_>| {
            heard.hear(said);
            show::stream(said)
        };
        let answer = client.execute(&options.command.join(" "), options.json, &mut stream, None)?;
        heard.hear(client::Interim::Said(&answer.text));
        return Ok(show::answer(&answer, "") && !heard.lost_all());
    }
    match &options.file {
        Some(file) if file.as_os_str() != "-" => script::run_file(&mut client, file, options.json),
        None if std::io::stdin().is_terminal() => interactive::run(client, options.json),
        _ => script::run(&mut client, std::io::stdin().lock(), "<stdin>", options.json),
    }
}

/// Prints what may follow words of a command line; the last word is being typed.
fn complete(client: &mut Client, words: &[String]) -> Result<(), client::Error> {
    let line = words.join(" ");
    let (_, candidates) = client.complete(&line, line.len())?;
    for candidate in candidates.iter().filter(|candidate| !candidate.hint) {
        show::print(&format!("{}\n", candidate.text));
    }
    Ok(())
}
