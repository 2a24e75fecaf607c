//! Going to the background, as VPP does unless told otherwise.
//!
//! Not by forking: the program starts itself once more, away from the terminal, and the first process waits until
//! the second says that it is ready, or has failed. So the shell that ran the command sees every error and a true exit
//! code, and nothing runs after a fork.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};

/// Marks the second process.
const MARK: &str = "SHOAL_IN_BACKGROUND";
/// What it says when the router runs.
const READY: &[u8] = b"ready\n";

/// Whether this process, which was not told to stay, should start another and leave.
pub fn wanted() -> bool {
    // A service manager that waits for our message watches this very process.
    !is_second() && !crate::notify::is_wanted()
}

fn is_second() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Starts the second process and waits until it runs.
pub fn start() -> ExitCode {
    match spawn() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("shoal: cannot go to the background: {error}");
            ExitCode::FAILURE
        }
    }
}

fn spawn() -> io::Result<ExitCode> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(MARK, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_end(&mut said)?;
    }
    if said.ends_with(READY) {
        return Ok(ExitCode::SUCCESS);
    }
    let code = child.wait()?.code().and_then(|c| u8::try_from(c).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Leaves the terminal, if this is the second process: the first one ends when this is done.
pub fn leave_terminal() -> io::Result<()> {
    if !is_second() {
        return Ok(());
    }
    // Fails only for the leader of a process group, which a child is not.
    let _ = nix::unistd::setsid();
    let mut out = io::stdout();
    out.write_all(READY)?;
    out.flush()?;
    let null: File = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    Ok(())
}
