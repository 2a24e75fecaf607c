//! The words of `shoal doctor` and `shoal tune`.

use std::ffi::OsString;

use serde_json::json;

use crate::Surroundings;
use crate::machine::Machine;
use crate::report::{Report, free_ports};
use crate::root::{Root, plain};
use crate::text::{self, Page};
use crate::tune::{self, Context, Name, TuneError};

/// What `shoal doctor --help` prints.
pub const DOCTOR_USAGE: &str = "\
usage: shoal doctor [--json]

Lists the ports of this machine with what the router can do with each and the
words to type, then what the machine has or lacks. Changes nothing, needs no root.

      --json            the same as JSON
  -h, --help            print this
";

/// What `shoal tune --help` prints.
pub const TUNE_USAGE: &str = "\
usage: shoal tune [--json]
       shoal tune apply NAME ... [--dry-run] [--persist] [--json]
       shoal tune undo [NAME ...] [--dry-run] [--json]

Without a word more, lists the subsets and where each stands.

  hugepages             pages of 2 MB for packets, a quarter of free memory at most
  thp                   transparent huge pages for who asks (madvise)
  governor              the frequency governor performance
  busy-poll             interrupts of free ports wait for who polls
  vfio                  loads vfio-pci, for DPDK
  vfio-noiommu          the same without an IOMMU: unsafe, and asked for by name only
  vhost-net             loads vhost-net

      --dry-run         say what would be done
      --persist         at each boot too: a file in sysctl.d or modules-load.d
      --json            answer in JSON
  -h, --help            print this

What was there before is kept in /var/lib/shoal/tune.json; undo restores it.
";

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// For standard output.
    pub out: String,
    /// For standard error, without the program's name before it.
    pub error: String,
    /// The exit code: 0, 1 when something went wrong, 2 for a mistake in the words.
    pub code: u8,
}

impl Outcome {
    fn say(out: String) -> Self {
        Self { out, error: String::new(), code: 0 }
    }

    fn mistake(error: String) -> Self {
        Self { out: String::new(), error, code: 2 }
    }

    fn json(value: &impl serde::Serialize) -> Self {
        match serde_json::to_string_pretty(value) {
            Ok(text) => Self::say(text + "\n"),
            Err(error) => Self { out: String::new(), error: error.to_string(), code: 1 },
        }
    }
}

/// Runs `shoal doctor`; `arguments` are those behind the word.
pub fn doctor(arguments: &[OsString], around: &Surroundings) -> Outcome {
    let mut as_json = false;
    for argument in arguments {
        match argument.to_string_lossy().as_ref() {
            "--json" => as_json = true,
            "-h" | "--help" => return Outcome::say(DOCTOR_USAGE.into()),
            other => {
                let word = plain(other.as_bytes());
                return Outcome::mistake(format!(
                    "unknown word '{word}'; shoal doctor takes --json and --help"
                ));
            }
        }
    }
    let root = Root::new(&around.root);
    let report = Report::read(&root, around);
    if as_json {
        return Outcome::json(&report);
    }
    let mut page = Page::new(around.terminal);
    text::doctor(&report, &mut page);
    Outcome::say(page.finish())
}

/// What is asked of `shoal tune`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    List,
    Apply,
    Undo,
}

/// Runs `shoal tune`; `arguments` are those behind the word.
pub fn tune(arguments: &[OsString], around: &Surroundings) -> Outcome {
    let (mut as_json, mut wish, mut verb, mut names) =
        (false, tune::ApplyOptions::default(), Verb::List, Vec::new());
    let mut words = 0;
    for argument in arguments {
        let text = argument.to_string_lossy();
        match text.as_ref() {
            "--json" => as_json = true,
            "--dry-run" => wish.dry_run = true,
            "--persist" => wish.persist = true,
            "-h" | "--help" => return Outcome::say(TUNE_USAGE.into()),
            "apply" if words == 0 => verb = Verb::Apply,
            "undo" if words == 0 => verb = Verb::Undo,
            other if words > 0 && !other.starts_with('-') => match Name::read(other) {
                Ok(name) => names.push(name),
                Err(error) => return Outcome::mistake(error.to_string()),
            },
            other => {
                let word = plain(other.as_bytes());
                return Outcome::mistake(format!("unknown word '{word}'; shoal tune --help lists them"));
            }
        }
        words += usize::from(!text.starts_with('-'));
    }
    if verb == Verb::Apply && names.is_empty() {
        let all = Name::ALL.map(Name::word).join(", ");
        return Outcome::mistake(format!("apply needs the name of a subset: {all}"));
    }
    if wish.persist && verb != Verb::Apply || wish.dry_run && verb == Verb::List {
        return Outcome::mistake("--persist goes with apply, --dry-run with apply and undo".into());
    }
    match run(verb, &names, wish, as_json, around) {
        Ok(outcome) => outcome,
        Err(error) if as_json => Outcome {
            error: error.to_string(),
            code: 1,
            ..Outcome::json(&json!({ "error": error.to_string() }))
        },
        Err(error) => Outcome { out: String::new(), error: error.to_string(), code: 1 },
    }
}

fn run(
    verb: Verb,
    names: &[Name],
    wish: tune::ApplyOptions,
    as_json: bool,
    around: &Surroundings,
) -> Result<Outcome, TuneError> {
    let root = Root::new(&around.root);
    let machine = Machine::read(&root);
    let free = free_ports(&root, around);
    let cx = Context { root: &root, machine: &machine, free: &free };
    let mut page = Page::new(around.terminal);
    match verb {
        Verb::List => {
            let states = tune::states(cx)?;
            if as_json {
                let rows = states.iter().map(|(name, state)| (name.word().to_owned(), json!(state)));
                return Ok(Outcome::json(&rows.collect::<serde_json::Map<_, _>>()));
            }
            text::subsets(&states, &mut page);
        }
        Verb::Apply => {
            let report = tune::apply(cx, names, wish)?;
            if as_json {
                return Ok(Outcome::json(&json!({ "applied": report, "dry_run": wish.dry_run })));
            }
            text::applied(&report, wish.dry_run, &mut page);
        }
        Verb::Undo => {
            let report = tune::undo(&root, names, wish.dry_run)?;
            let code = u8::from(report.iter().any(|row| row.failed));
            if as_json {
                let outcome = Outcome::json(&json!({ "undone": report, "dry_run": wish.dry_run }));
                return Ok(Outcome { code, ..outcome });
            }
            text::undone(&report, wish.dry_run, &mut page);
            return Ok(Outcome { code, ..Outcome::say(page.finish()) });
        }
    }
    Ok(Outcome::say(page.finish()))
}
