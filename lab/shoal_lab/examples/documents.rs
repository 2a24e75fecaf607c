//! Prints the names of subcommands' man pages (`pages`), a page (`man`, or `man shoal-lab-run`) or the completions of `shoal-lab`;
//! `make gen` calls it.
#![forbid(unsafe_code)]

#[allow(dead_code)] // nothing is parsed here
#[path = "../src/args.rs"]
mod args;

use std::io::{self, Write};

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

/// What the options do not say.
const MORE: &str = r#".SH "EXIT STATUS"
0 when every measurement was made and every assertion held; otherwise the last lines say what went wrong.
.SH FILES
.TP
\fIresults/\fR
A folder for each run: raw values, records, the report as a page.
.SH EXAMPLES
.nf
shoal\-lab doctor
shoal\-lab run throughput \-\-dut shoal,linux \-\-size 64
shoal\-lab suite quick \-\-dry\-run
shoal\-lab report results/latest
.fi
.SH "SEE ALSO"
\fBshoal\fR(8), \fBshoalctl\fR(1)
"#;

/// The command and all below it that have a page of their own.
fn pages(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|word| word.get_name() != "help").flat_map(pages);
    std::iter::once(command).chain(below).collect()
}

/// `shoal-lab run` has the page `shoal-lab-run`.
fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn main() -> io::Result<()> {
    let mut command = args::Cli::command().disable_help_subcommand(true);
    command.build();
    let mut text = Vec::new();
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    match kind.as_str() {
        "pages" => {
            for page in pages(&command).into_iter().skip(1) {
                writeln!(text, "{}", page_name(page))?;
            }
        }
        "man" => {
            let wanted = arguments.next().unwrap_or_else(|| "shoal-lab".to_owned());
            let pages = pages(&command);
            let page = pages.into_iter().find(|page| page_name(page) == wanted);
            let page = page.ok_or_else(|| io::Error::other(format!("there is no page `{wanted}'")))?;
            clap_mangen::Man::new(page.clone()).render(&mut text)?;
            if wanted == "shoal-lab" {
                text.extend(MORE.as_bytes());
            }
        }
        "bash" => clap_complete::generate(Shell::Bash, &mut command, "shoal-lab", &mut text),
        "zsh" => clap_complete::generate(Shell::Zsh, &mut command, "shoal-lab", &mut text),
        "fish" => clap_complete::generate(Shell::Fish, &mut command, "shoal-lab", &mut text),
        _ => return Err(io::Error::other(format!("`{kind}': pages, man, bash, zsh or fish"))),
    }
    io::stdout().write_all(&text)
}
