//! The command line of the daemon: VPP's options, and start-up settings as bare words.

use crate::lex::Source;
use crate::report::{did_you_mean, quoted};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The file that is read when neither a file nor words are given, if it is there.
pub const DEFAULT_FILE: &str = "/etc/shoal/startup.conf";

/// What `--help` prints.
pub const USAGE: &str = "\
usage: shoal [-c FILE] [SETTINGS ...]
       shoal doctor [--json]
       shoal tune [apply NAME ... | undo [NAME ...]] [--dry-run] [--persist] [--json]

  -c, --config FILE     read start-up settings from FILE
  -i, --interactive     CLI on this terminal, as unix { interactive }
      --check-config    read and check the settings, start nothing
  -v, --version         print the version
  -h, --help            print this
      --no-alloc-intercept
                        accepted as VPP has it; nothing to do here
  SETTINGS              start-up settings as words: shoal unix { interactive }

With neither FILE nor SETTINGS, /etc/shoal/startup.conf is read if it is there.

doctor tells what this machine can do for the router and what to type; it changes
nothing. tune applies a part of that, and undoes it. As the first word only: behind
an option every word is a setting. shoal doctor --help, shoal tune --help tell more.
";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// Start the router.
    Run(Input),
    /// Check the settings only.
    CheckConfig(Input),
    /// Print the version.
    Version,
    /// Print [`USAGE`].
    Help,
    /// `shoal doctor`, with the arguments behind it.
    Doctor(Vec<OsString>),
    /// `shoal tune`, with the arguments behind it.
    Tune(Vec<OsString>),
}

/// Where settings come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Input {
    /// `-c FILE`.
    pub file: Option<PathBuf>,
    /// `-i`.
    pub interactive: bool,
    /// Words after the options. They come after the file, so they win.
    pub words: Vec<OsString>,
}

/// The command line cannot be understood, or its file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InvocationError {
    /// An option that is not there.
    #[error("unknown option {0}; shoal --help lists them")]
    Unknown(String),
    /// `-c` at the end.
    #[error("{0} needs a file name")]
    NoFile(String),
    /// The file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl Invocation {
    /// Reads the arguments after the program's name. Options come first; the first other word begins the settings.
    /// `doctor` and `tune` are no settings when they are the very first word: no section has these names.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, InvocationError> {
        let mut arguments = arguments.into_iter().peekable();
        if arguments.next_if(|word| word == "doctor").is_some() {
            return Ok(Self::Doctor(arguments.collect()));
        }
        if arguments.next_if(|word| word == "tune").is_some() {
            return Ok(Self::Tune(arguments.collect()));
        }
        let (mut input, mut check) = (Input::default(), false);
        while let Some(option) = arguments.next_if(|a| a.as_bytes().starts_with(b"-")) {
            let text = option.to_string_lossy();
            match text.as_ref() {
                "-c" | "--config" => match arguments.next() {
                    Some(file) => input.file = Some(file.into()),
                    None => return Err(InvocationError::NoFile(text.into_owned())),
                },
                "-i" | "--interactive" => input.interactive = true,
                "--check-config" => check = true,
                "-v" | "--version" => return Ok(Self::Version),
                "-h" | "--help" => return Ok(Self::Help),
                "--no-alloc-intercept" => {}
                _ => {
                    let known = ["--config", "--interactive", "--check-config", "--version", "--help"];
                    let unknown =
                        quoted(&text) + &did_you_mean(&text, known).trim_end_matches('?').replace("; ", ", ");
                    return Err(InvocationError::Unknown(unknown));
                }
            }
        }
        input.words = arguments.collect();
        Ok(if check { Self::CheckConfig(input) } else { Self::Run(input) })
    }
}

impl Input {
    /// Reads the texts to check, in the order in which later ones win.
    pub fn sources(&self) -> Result<Vec<Source>, InvocationError> {
        let mut sources = Vec::new();
        let read = |file: &PathBuf| {
            let unreadable = |error| InvocationError::Unreadable { file: file.clone(), error };
            let text = std::fs::read(file).map_err(unreadable)?;
            Ok::<_, InvocationError>(Source::file(file.display().to_string(), text))
        };
        if let Some(file) = &self.file {
            sources.push(read(file)?);
        } else if self.words.is_empty() {
            match read(&DEFAULT_FILE.into()) {
                Ok(source) => sources.push(source),
                Err(InvocationError::Unreadable { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                }
                Err(error) => return Err(error),
            }
        }
        if !self.words.is_empty() {
            sources.push(Source::words(self.words.iter().map(|w| w.as_bytes())));
        }
        if self.interactive {
            sources.push(Source::words(["unix { interactive }"]));
        }
        Ok(sources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Invocation, InvocationError> {
        Invocation::parse(words.iter().map(OsString::from))
    }

    #[test]
    fn options_come_first_and_the_rest_are_settings() {
        let Ok(Invocation::CheckConfig(input)) =
            parse(&["--check-config", "-i", "-c", "f", "cpu", "{", "-x"])
        else {
            panic!("not a check");
        };
        assert!(input.interactive);
        assert_eq!(input.file, Some("f".into()));
        assert_eq!(input.words, ["cpu", "{", "-x"]);
        assert_eq!(parse(&["-v"]).unwrap(), Invocation::Version);
        assert_eq!(parse(&["--no-alloc-intercept", "-h"]).unwrap(), Invocation::Help);
    }

    #[test]
    fn doctor_and_tune_are_words_of_their_own_at_the_beginning_only() {
        let words = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(parse(&["doctor", "--json"]).unwrap(), Invocation::Doctor(words(&["--json"])));
        assert_eq!(parse(&["tune", "undo"]).unwrap(), Invocation::Tune(words(&["undo"])));
        let Ok(Invocation::Run(input)) = parse(&["unix", "{", "}", "doctor"]) else { panic!("not a run") };
        assert_eq!(input.words, ["unix", "{", "}", "doctor"]);
        let Ok(Invocation::Run(input)) = parse(&["-i", "tune"]) else { panic!("not a run") };
        assert_eq!(input.words, ["tune"]);
    }

    #[test]
    fn mistakes_in_options_are_named() {
        assert_eq!(
            parse(&["--verison"]).unwrap_err().to_string(),
            "unknown option '--verison', did you mean '--version'; shoal --help lists them"
        );
        assert_eq!(parse(&["-c"]).unwrap_err().to_string(), "-c needs a file name");
        let Invocation::Run(input) = parse(&["-c", "no/such/file"]).unwrap() else { panic!("not a run") };
        assert_eq!(
            input.sources().unwrap_err().to_string(),
            "cannot read no/such/file: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn words_come_after_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "cpu { workers 0 }").unwrap();
        let name = file.path().to_str().unwrap();
        let Invocation::Run(input) = parse(&["-i", "-c", name, "unix", "{", "}"]).unwrap() else {
            panic!("not a run")
        };
        let texts: Vec<_> =
            input.sources().unwrap().into_iter().map(|s| String::from_utf8(s.text).unwrap()).collect();
        assert_eq!(texts, ["cpu { workers 0 }", "unix { }", "unix { interactive }"]);
    }
}
