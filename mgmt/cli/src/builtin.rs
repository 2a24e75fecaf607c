//! The commands that the command line runs itself.

use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// A remark.
    Comment,
    /// Runs what follows; VPP's way to switch a remark on again.
    Uncomment,
    /// Runs a file.
    Exec,
    /// Writes to the log.
    Log,
    /// Ends the session.
    Quit,
    /// Lists all commands.
    ShowCli,
}

/// The session sees these before their functions would be called.
fn in_session(_: &Control, _: &Args) -> Result<Output, CliError> {
    Err(CliError::failed("works in a session of the command line only"))
}

/// Their declarations: in the tree like any other, so that they complete and have help.
pub static COMMANDS: &[(Command, Builtin)] = &[
    (Command::new("comment [<text:rest>]", "Do nothing: a remark", in_session), Builtin::Comment),
    (Command::new("uncomment <command:rest>", "Run the rest of the line", in_session), Builtin::Uncomment),
    (
        Command::new("exec <file:path> [strict]", "Run a file of commands", in_session)
            .examples(&["exec /etc/shoal/setup.cli", "exec /etc/shoal/setup.cli strict"])
            .doc(
                "What is right runs, in order; lines that are wrong or fail are listed at the end, and the command has \
                 failed then. A line that is already true is no failure. With `strict`, every line is checked before the \
                 first one runs, and the first failure ends the run.",
            ),
        Builtin::Exec,
    ),
    (Command::new("vpplog <text:rest>", "Write the rest of the line to the log", in_session), Builtin::Log),
    (Command::new("quit", "End the session", in_session), Builtin::Quit),
    (Command::new("exit", "End the session", in_session), Builtin::Quit),
    (Command::new("show cli", "List all commands", in_session), Builtin::ShowCli),
];
