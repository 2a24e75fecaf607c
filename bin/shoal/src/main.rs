//! The router daemon.
//!
//! [`modules`] is the table of everything this router is made of. [`router`] starts it, runs it and ends it;
//! the rest are the parts of a UNIX process: log, signals, files, console.
//!
//! The whole configuration is read and checked before anything is touched. Exit codes: 0 after an orderly end,
//! 1 when the start or the end went wrong, 2 for a mistake in the command line or the configuration.
#![forbid(unsafe_code)]

mod background;
mod console;
mod files;
#[cfg(test)]
mod lifecycle;
mod logging;
#[cfg(test)]
mod many;
mod modules;
#[cfg(test)]
mod neighbours;
mod notify;
mod restore;
mod router;
#[cfg(test)]
mod running;
#[cfg(test)]
mod saved;
mod script;
mod settings;
mod signals;
mod stop;
#[cfg(test)]
mod transactions;
mod watch;

use std::process::ExitCode;

use shoal_config::{Input, Invocation, Machine, USAGE};

use settings::Settings;

/// The command line or the configuration is wrong.
const EXIT_BAD_CONFIG: u8 = 2;

fn main() -> ExitCode {
    // For `make gen`: what docs/reference/cli.md holds.
    if std::env::args_os().skip(1).eq(["--cli-reference"]) {
        return match modules::reference() {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(error) => complain(&error),
        };
    }
    // And what docs/reference/api.md and share/api hold.
    if std::env::args_os().skip(1).eq(["--api-reference"]) {
        return match shoal_api::reference::page(modules::messages()) {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(error) => complain(&error),
        };
    }
    // And what docs/reference/startup.md holds.
    if std::env::args_os().skip(1).eq(["--startup-reference"]) {
        print!("{}", shoal_config::markdown(&modules::sections()));
        return ExitCode::SUCCESS;
    }
    if let [word, directory] = std::env::args_os().skip(1).collect::<Vec<_>>().as_slice()
        && word == "--api-json"
    {
        return match files::api_json(std::path::Path::new(directory)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&error),
        };
    }
    let invocation = match Invocation::parse(std::env::args_os().skip(1)) {
        Ok(invocation) => invocation,
        Err(error) => return complain(&error),
    };
    match invocation {
        Invocation::Help => print!("{USAGE}"),
        Invocation::Version => println!("{}", shoal_cli::commands::version_line()),
        Invocation::Doctor(words) => return answer(&shoal_doctor::doctor(&words, &surroundings())),
        Invocation::Tune(words) => return answer(&shoal_doctor::tune(&words, &surroundings())),
        Invocation::CheckConfig(input) => match check(&input) {
            Ok(settings) => {
                for line in settings.notes {
                    eprintln!("{line}");
                }
                println!("the configuration is good");
                if let Some(faults) = settings.exec_faults {
                    eprintln!("{faults}");
                    return ExitCode::FAILURE;
                }
            }
            Err(code) => return code,
        },
        Invocation::Run(input) => match check(&input) {
            Ok(Settings {
                process: settings::Process { exec_strict: true, .. },
                exec_faults: Some(faults),
                ..
            }) => {
                return complain(&faults);
            }
            Ok(settings) => return run(settings),
            Err(code) => return code,
        },
    }
    ExitCode::SUCCESS
}

/// Reads, checks and translates everything, and says what is wrong.
fn check(input: &Input) -> Result<Settings, ExitCode> {
    let sources = input.sources().map_err(|e| complain(&e))?;
    let sections = modules::sections();
    let startup = shoal_config::check(&sources, &sections, &Machine::read()).map_err(|e| complain(&e))?;
    let mut settings = Settings::translate(startup).map_err(|e| complain(&e))?;
    settings.exec_faults = script::faults(&settings);
    Ok(settings)
}

fn run(settings: Settings) -> ExitCode {
    if settings.process.background && background::wanted() {
        return background::start();
    }
    // Before the first thread, so that all threads inherit it.
    if let Err(error) = signals::block() {
        return fail(&error);
    }
    let log = logging::install(&settings.log);
    name_as_vpp();
    match router::run(settings, &log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// A process that was started as `vpp` has the name that VPP gives its main thread: scripts look for it.
fn name_as_vpp() {
    let program = std::env::args_os().next().unwrap_or_default();
    if std::path::Path::new(&program).file_name().is_some_and(|name| name == "vpp") {
        // Fails only where there is no /proc.
        let _ = std::fs::write("/proc/self/comm", "vpp_main");
    }
}

/// The machine as described to the doctor.
fn surroundings() -> shoal_doctor::Surroundings {
    use std::io::IsTerminal;
    let commands = modules::all().flat_map(|m| m.commands).map(|command| command.syntax);
    shoal_doctor::Surroundings {
        root: "/".into(),
        ssh_connection: std::env::var_os("SSH_CONNECTION"),
        build: shoal_doctor::Build::of_commands(commands),
        terminal: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}

fn answer(outcome: &shoal_doctor::Outcome) -> ExitCode {
    use std::io::Write;
    // The reader may have seen enough: `shoal doctor | head`.
    let _ = std::io::stdout().write_all(outcome.out.as_bytes());
    if !outcome.error.is_empty() {
        eprintln!("shoal: {}", outcome.error);
    }
    ExitCode::from(outcome.code)
}

fn complain(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("shoal: {error}");
    ExitCode::from(EXIT_BAD_CONFIG)
}

fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    // The log may go elsewhere; the process that started us looks here.
    eprintln!("shoal: {error}");
    ExitCode::FAILURE
}
