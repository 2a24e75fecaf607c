//! Prints the names of subcommands' man pages (`pages`), a page (`man`, or `man shoalctl-stats`) or the completions of
//! `shoalctl`; `make gen` calls it.
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
\fBshoal\fR(8), \fBshoal.conf\fR(5)
"#;

/// The router's own commands: it is asked for them.
const BASH: &str = r#"
_shoalctl_router() {
    local cur=$2 at=1 sock=${SHOAL_CLI_SOCK-} word
    _shoalctl "$@"
    [[ ${COMP_WORDS[1]} == @(-s|--socket) && $COMP_CWORD -gt 2 ]] && at=3 sock=${COMP_WORDS[2]}
    for word in "${COMP_WORDS[@]:at:COMP_CWORD-at}"; do
        [[ $word == @(-*|stats) ]] && return
    done
    [[ $cur == -* ]] && return
    while IFS= read -r word; do
        [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
    done < <(SHOAL_CLI_SOCK=$sock "$1" --complete "${COMP_WORDS[@]:at:COMP_CWORD-at}" "$cur" 2>/dev/null)
}
complete -F _shoalctl_router -o bashdefault -o default shoalctl
"#;
const ZSH: &str = r#"_shoalctl() {
    local sock=$SHOAL_CLI_SOCK at=2
    local -a found
    [[ $words[2] == (-s|--socket) && $CURRENT -gt 3 ]] && { sock=$words[3]; at=4 }
    if [[ $words[CURRENT] != -* && $words[at] != (stats|-*) ]]; then
        found=(${(f)"$(SHOAL_CLI_SOCK=$sock $words[1] --complete "${(@)words[at,CURRENT]}" 2>/dev/null)"})
        (( $#found )) && compadd -a found
    fi
    (( $#found && CURRENT > at )) || _shoalctl_own "$@"
}
"#;
const FISH: &str = r"complete -c shoalctl -n 'not __fish_seen_subcommand_from stats' -f -a '(shoalctl --complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
";

fn main() -> io::Result<()> {
    let mut command = options::Options::command();
    let mut text = Vec::new();
    let kind = std::env::args().nth(1).unwrap_or_default();
    match kind.as_str() {
        // The names of the pages of subcommands: `shoalctl-stats`.
        "pages" => {
            for word in command.get_subcommands() {
                writeln!(text, "shoalctl-{}", word.get_name())?;
            }
        }
        "man" => {
            if let Some(page) = std::env::args().nth(2) {
                command.build();
                let name = page.trim_start_matches("shoalctl-");
                let word = command.find_subcommand(name);
                let word = word.ok_or_else(|| io::Error::other(format!("there is no page `{page}'")))?;
                clap_mangen::Man::new(word.clone()).render(&mut text)?;
            } else {
                clap_mangen::Man::new(command).render(&mut text)?;
                text.extend(MORE.as_bytes());
            }
        }
        "bash" => {
            clap_complete::generate(Shell::Bash, &mut command, "shoalctl", &mut text);
            text.extend(BASH.as_bytes());
        }
        "zsh" => {
            clap_complete::generate(Shell::Zsh, &mut command, "shoalctl", &mut text);
            let own = String::from_utf8_lossy(&text).replacen("_shoalctl() {", "_shoalctl_own() {", 1);
            let tail = "if [ \"$funcstack[1]\"";
            text = own.replacen(tail, &format!("{ZSH}\n{tail}"), 1).into_bytes();
        }
        "fish" => {
            clap_complete::generate(Shell::Fish, &mut command, "shoalctl", &mut text);
            text.extend(FISH.as_bytes());
        }
        _ => return Err(io::Error::other(format!("`{kind}': pages, man, bash, zsh or fish"))),
    }
    io::stdout().write_all(&text)
}
