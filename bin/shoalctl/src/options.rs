//! The command line, on its own so that man page and completions are made from it.

use std::path::PathBuf;

use clap::Parser;

/// Talks to a running shoal router.
#[derive(Debug, Parser)]
#[command(
    name = "shoalctl",
    version,
    after_help = "Without COMMAND it starts a session, or reads commands \
from standard input if that is no terminal. `help` in a session lists the commands."
)]
pub struct Options {
    /// Socket of the router [default: $SHOAL_CLI_SOCK, /run/shoal/cli.sock, ./cli.sock]
    #[arg(short, long, value_name = "SOCKET")]
    pub socket: Option<PathBuf>,

    /// Print answers as JSON
    #[arg(long)]
    pub json: bool,

    /// Run the commands of a file; `-` is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "command")]
    pub file: Option<PathBuf>,

    /// Command to run; words may be shortened as long as they are unique
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}
