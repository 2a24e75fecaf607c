//! Prints the man page or the completions of `shoal`, or, from the reference of start-up settings on standard input, the
//! page `shoal.conf(5)` (`conf`); `make gen` calls it.
//!
//! The daemon reads its command line as VPP does, without clap. The description here is checked against that reader.
#![forbid(unsafe_code)]

#[path = "pages/conf.rs"]
mod conf;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::Shell;
use shoal_config::{Invocation, InvocationError, USAGE};

/// Every command takes these.
const HELP: [&str; 2] = ["-h", "--help"];

/// What the options do not say.
const MORE: &str = r#".SH "EXIT STATUS"
0 after an orderly end, 1 when the start or the end went wrong, 2 for a mistake in the command line or the
configuration.
.SH FILES
.TP
\fI/etc/shoal/startup.conf\fR
Start-up settings, read when neither a file nor settings are given, if it is there.
.TP
\fI/var/lib/shoal/tune.json\fR
What was there before \fBshoal tune\fR, for its undo.
.TP
\fI/run/shoal/cli.sock\fR
Where \fBshoalctl\fR(1) finds the router.
.TP
\fI/usr/lib/debug/.build-id/\fR
Symbols of \fBshoal\fR and \fBshoalctl\fR, which debuggers, \fBperf\fR and the router's own backtraces find there; the programs
run without them.
.SH SIGNALS
SIGTERM and SIGINT end the router in good order.
.SH EXAMPLES
.nf
shoal \-c /etc/shoal/startup.conf
shoal \-\-check\-config \-c startup.conf
shoal unix { interactive } cpu { workers 2 }
shoal doctor
shoal tune apply hugepages
.fi
.SH "SEE ALSO"
\fBshoalctl\fR(1), \fBshoal.conf\fR(5), \fBshoal\-lab\fR(1)
"#;

fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
    };
    let file = Arg::new("config")
        .short('c')
        .long("config")
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .help("Read start-up settings from FILE");
    let settings = Arg::new("settings")
        .value_name("SETTINGS")
        .num_args(0..)
        .trailing_var_arg(true)
        .help("Start-up settings as words; they come after the file, so they win");
    let json = flag("json", "Answer in JSON");
    let doctor = Command::new("doctor")
        .about("Tell what this machine can do for the router and what to type; changes nothing")
        .arg(json.clone());
    let dry_run = flag("dry-run", "Say what would be done");
    let subsets = Arg::new("name").value_name("NAME").num_args(0..).value_parser(shoal_doctor::SUBSETS);
    let apply = Command::new("apply")
        .about("Apply subsets; what was there before is recorded")
        .args([subsets.clone().required(true), dry_run.clone(), json.clone()])
        .arg(flag("persist", "At each boot too: a file in sysctl.d or modules-load.d"));
    let undo = Command::new("undo")
        .about("Restore what was there before, of all subsets or of those named")
        .args([subsets, dry_run, json.clone()]);
    let tune = Command::new("tune")
        .about("List the subsets of what the doctor finds, apply them, undo them")
        .disable_help_subcommand(true)
        .subcommands([apply, undo])
        .arg(json);
    Command::new("shoal")
        .disable_help_subcommand(true)
        .subcommands([doctor, tune])
        .version(env!("CARGO_PKG_VERSION"))
        .about("The shoal router: forwards packets between network interfaces")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .arg(file)
        .arg(flag("interactive", "CLI on this terminal, as unix { interactive }").short('i'))
        .arg(flag("check-config", "Read and check the settings, start nothing"))
        .arg(flag("version", "Print the version").short('v'))
        .arg(flag("help", "Print help").short('h'))
        .arg(flag("no-alloc-intercept", "Accepted as VPP has it; nothing to do here"))
        .arg(settings)
}

/// The options of a command, not of those below it.
fn options(command: &Command) -> Vec<String> {
    let of = |arg: &Arg| {
        let short = arg.get_short().map(|c| format!("-{c}"));
        short.into_iter().chain(arg.get_long().map(|long| format!("--{long}"))).collect::<Vec<_>>()
    };
    command.get_arguments().flat_map(of).collect()
}

/// The words of a usage text that are options.
fn told(usage: &str) -> impl Iterator<Item = &str> {
    usage.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|w| w.starts_with('-'))
}

/// The description has the options the daemon takes, and no others.
fn check(command: &Command) -> io::Result<()> {
    let mut described = options(command);
    for option in &described {
        if let Err(InvocationError::Unknown(_)) = Invocation::parse([OsString::from(option)]) {
            return Err(io::Error::other(format!("shoal does not take {option}")));
        }
    }
    for (name, usage) in [("doctor", shoal_doctor::DOCTOR_USAGE), ("tune", shoal_doctor::TUNE_USAGE)] {
        let word = command.find_subcommand(name).ok_or_else(|| io::Error::other("a word is missing"))?;
        let below: Vec<_> = word.get_subcommands().chain([word]).flat_map(options).collect();
        if let Some(option) = below.iter().find(|option| !told(usage).any(|word| word == option.as_str())) {
            return Err(io::Error::other(format!("shoal {name} does not take {option}")));
        }
        if let Some(missing) =
            told(usage).find(|word| !below.iter().any(|o| o == word) && !HELP.contains(word))
        {
            return Err(io::Error::other(format!("nothing describes {missing} of shoal {name}")));
        }
        described.extend(below);
    }
    match told(USAGE).find(|word| !described.iter().any(|d| d == word)) {
        Some(missing) => Err(io::Error::other(format!("nothing describes {missing}"))),
        None => Ok(()),
    }
}

fn main() -> io::Result<()> {
    let mut command = command();
    check(&command)?;
    let mut text = Vec::new();
    let kind = std::env::args().nth(1).unwrap_or_default();
    match kind.as_str() {
        "man" => {
            clap_mangen::Man::new(command).section("8").render(&mut text)?;
            // The words have no pages of their own: what they print for --help stands here.
            let page = String::from_utf8_lossy(&text).into_owned();
            text =
                page.replace("shoal\\-doctor(8)", "doctor").replace("shoal\\-tune(8)", "tune").into_bytes();
            for (name, usage) in [("DOCTOR", shoal_doctor::DOCTOR_USAGE), ("TUNE", shoal_doctor::TUNE_USAGE)]
            {
                write!(text, ".SH {name}\n.nf\n{}.fi\n", usage.replace('\\', "\\e").replace('-', "\\-"))?;
            }
            text.extend(MORE.as_bytes());
        }
        "conf" => text = conf::page(&io::read_to_string(io::stdin())?).into_bytes(),
        "bash" => clap_complete::generate(Shell::Bash, &mut command, "shoal", &mut text),
        "zsh" => clap_complete::generate(Shell::Zsh, &mut command, "shoal", &mut text),
        "fish" => clap_complete::generate(Shell::Fish, &mut command, "shoal", &mut text),
        _ => return Err(io::Error::other(format!("`{kind}': man, conf, bash, zsh or fish"))),
    }
    io::stdout().write_all(&text)
}
