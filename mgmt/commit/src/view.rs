//! What the commands answer: text for people, JSON for programs.

use std::fmt;

use serde::Serialize;
use shoal_module::Class;
use shoal_running::Difference;

use crate::commits::Commits;
use crate::plan::{Effect, LineOutcome, Plan};
use crate::transaction;

/// A sentence.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Sentence(pub String);

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.0)
    }
}

#[derive(Serialize)]
pub(crate) struct Opened {
    pub owner: String,
    pub was_open: bool,
    pub changes: usize,
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Opened { owner, was_open, changes } = self;
        if *was_open {
            writeln!(f, "the candidate of {owner} has {changes} changes")
        } else {
            writeln!(
                f,
                "a candidate of {owner} is open: `configure LINE' changes it, `compare' shows it, `commit' makes it so"
            )
        }
    }
}

/// What becomes of a line.
#[derive(Serialize)]
pub(crate) struct Row {
    /// `add`, `delete`, `change` or `again`.
    change: &'static str,
    line: String,
    /// `live`, `flap` or `re-create`.
    class: &'static str,
    /// What is interrupted.
    interrupts: &'static str,
}

impl From<&Effect> for Row {
    fn from(effect: &Effect) -> Row {
        let change = match effect.fate {
            LineOutcome::Added => "add",
            LineOutcome::Removed => "delete",
            LineOutcome::Changed => "change",
            LineOutcome::Again => "again",
        };
        let (class, interrupts) = match effect.class {
            Class::Live => ("live", ""),
            Class::Flap(what) => ("flap", what),
            Class::Recreate(what) => ("re-create", what),
        };
        Row { change, line: effect.line.to_string(), class, interrupts }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { change, line, class, interrupts } = self;
        let what = if interrupts.is_empty() { String::new() } else { format!(" {interrupts}") };
        match *change {
            "again" => writeln!(f, "  {line}: goes and comes again, because of what it needs"),
            _ => writeln!(f, "  {line}: {class}{what}"),
        }
    }
}

/// Lines that are named one by one for people; JSON has all.
const MOST_NAMED: usize = 20;

/// What a commit would interrupt.
fn interruptions(changes: &[Row], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let all: Vec<&Row> = changes.iter().filter(|row| row.class != "live" || row.change == "again").collect();
    if all.is_empty() {
        return Ok(());
    }
    writeln!(f, "interrupts:")?;
    all.iter().take(MOST_NAMED).try_for_each(|row| write!(f, "{row}"))?;
    if all.len() > MOST_NAMED { writeln!(f, "  ... and {} more", all.len() - MOST_NAMED) } else { Ok(()) }
}

#[derive(Serialize)]
pub(crate) struct Comparison {
    diff: String,
    added: usize,
    removed: usize,
    changes: Vec<Row>,
    errors: Vec<String>,
}

impl Comparison {
    pub fn new(diff: Difference, plan: Plan) -> Self {
        let Difference { text, added, removed } = diff;
        let changes = plan.effects.iter().map(Row::from).collect();
        Comparison { diff: text, added, removed, changes, errors: plan.errors }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diff)?;
        interruptions(&self.changes, f)?;
        self.errors.iter().try_for_each(|error| writeln!(f, "error: {error}"))
    }
}

#[derive(Serialize)]
pub(crate) struct Drift {
    diff: String,
    added: usize,
    removed: usize,
}

impl From<Difference> for Drift {
    fn from(diff: Difference) -> Drift {
        Drift { diff: diff.text, added: diff.added, removed: diff.removed }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.diff.is_empty() {
            writeln!(f, "nothing was changed since the last commit")
        } else {
            f.write_str(&self.diff)
        }
    }
}

#[derive(Serialize)]
struct OwnerRow {
    owner: String,
    changes: usize,
    seconds: u64,
    exclusive: bool,
}

#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Owners(Vec<OwnerRow>);

impl Owners {
    pub fn new(commits: &Commits) -> Self {
        let rows = commits.list().into_iter().map(|(owner, changes, since, exclusive)| OwnerRow {
            owner: owner.to_string(),
            changes,
            seconds: since.elapsed().unwrap_or_default().as_secs(),
            exclusive,
        });
        Owners(rows.collect())
    }
}

impl fmt::Display for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "there is no candidate");
        }
        self.0.iter().try_for_each(|OwnerRow { owner, changes, seconds, exclusive }| {
            let alone = if *exclusive { ", exclusive" } else { "" };
            writeln!(f, "{owner}: {changes} changes, opened {seconds} s ago{alone}")
        })
    }
}

#[derive(Serialize)]
pub(crate) struct Checked {
    changes: Vec<Row>,
    commands: usize,
}

impl Checked {
    pub fn new(plan: &Plan) -> Self {
        Checked { changes: plan.effects.iter().map(Row::from).collect(), commands: plan.commands() }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no errors: {} changes by {} commands", self.changes.len(), self.commands)?;
        interruptions(&self.changes, f)
    }
}

#[derive(Serialize)]
pub(crate) struct Committed {
    revision: Option<u64>,
    changes: usize,
    commands: usize,
    milliseconds: u64,
    confirm_minutes: Option<u32>,
    drift: usize,
}

impl From<transaction::Committed> for Committed {
    fn from(done: transaction::Committed) -> Committed {
        let transaction::Committed { revision, changes, commands, milliseconds, confirm, drift } = done;
        Committed { revision, changes, commands, milliseconds, confirm_minutes: confirm, drift }
    }
}

impl fmt::Display for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Committed { revision, changes, commands, milliseconds, confirm_minutes, drift } = self;
        write!(f, "{changes} changes by {commands} commands in {milliseconds} ms, ")?;
        match (confirm_minutes, revision) {
            (Some(minutes), _) => {
                let minutes =
                    if *minutes == 1 { "1 minute".to_owned() } else { format!("{minutes} minutes") };
                writeln!(f, "taken back in {minutes} unless `confirm' comes")?;
            }
            (None, Some(revision)) => writeln!(f, "saved as revision {revision}")?,
            (None, None) => writeln!(f, "not saved: this router keeps no configurations")?,
        }
        if *drift > 0 {
            writeln!(f, "{drift} lines that were changed outside of commits are part of it")?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
pub(crate) struct Confirmed {
    pub revision: Option<u64>,
}

impl fmt::Display for Confirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.revision {
            Some(revision) => writeln!(f, "confirmed, saved as revision {revision}"),
            None => writeln!(f, "confirmed"),
        }
    }
}
