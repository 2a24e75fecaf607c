//! Prints the man page or the completions of `shoalctl`; `make gen` calls it.
#![forbid(unsafe_code)]

#[allow(dead_code)] // nothing is parsed here
#[path = "../src/options.rs"]
mod options;

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

/// What the options do not say.
const MORE: &str = r#".SH "EXIT STATUS"
0 when every command succeeded, 1 when one failed or the router cannot be reached, 2 for a mistake in the options.
.SH ENVIRONMENT
.TP
\fBSHOAL_CLI_SOCK\fR
Socket of the router, when \fB\-\-socket\fR is not given.
.TP
\fBSHOAL_STATS_SOCK\fR
Socket of the stats segment, for \fBstats\fR.
.SH FILES
.TP
\fI/run/shoal/cli.sock\fR
Socket of a router that was started as a service.
.TP
\fI/run/shoal/stats.sock\fR
Its counters.
.SH EXAMPLES
.nf
shoalctl show interface
shoalctl \-\-json show runtime | jq .threads
shoalctl \-f commands.txt
shoalctl stats get \-z /err/
.fi
.SH "SEE ALSO"
\fBshoal\fR(8)
"#;

fn main() -> io::Result<()> {
    let mut command = options::Options::command();
    let mut text = Vec::new();
    let kind = std::env::args().nth(1).unwrap_or_default();
    match kind.as_str() {
        "man" => {
            clap_mangen::Man::new(command).render(&mut text)?;
            text.extend(MORE.as_bytes());
        }
        "bash" => clap_complete::generate(Shell::Bash, &mut command, "shoalctl", &mut text),
        "zsh" => clap_complete::generate(Shell::Zsh, &mut command, "shoalctl", &mut text),
        "fish" => clap_complete::generate(Shell::Fish, &mut command, "shoalctl", &mut text),
        _ => return Err(io::Error::other(format!("`{kind}': man, bash, zsh or fish"))),
    }
    io::stdout().write_all(&text)
}
