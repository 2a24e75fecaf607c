//! Leads a router from the configuration it has to another one, or back to where it was.

use std::collections::HashMap;
use std::rc::Rc;

use shoal_cli::Cli;
use shoal_module::cli::Pace;
use shoal_module::{Control, ModuleList};
use shoal_running::{Text, gather};

use crate::kinds::Kinds;
use crate::others;
use crate::plan::{Plan, Run, Step, plan};

/// Where a step fails that would have run; for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nowhere.
    None,
    /// In the place of the step of this number, from 0.
    At(usize),
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommitStats {
    /// Steps, also those that only know how another one is undone.
    pub steps: usize,
    /// Commands that ran.
    pub commands: usize,
    /// Lines that came, went or changed.
    pub changes: usize,
}

/// Why a configuration is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It cannot be: all reasons. Nothing was changed.
    #[error("nothing was changed:\n  {}", .0.join("\n  "))]
    Refused(Vec<String>),
    /// A step failed.
    #[error("`{line}': {why}\n{back}")]
    Step {
        /// The command.
        line: String,
        /// Why it failed.
        why: String,
        /// What became of the steps before.
        back: RollbackOutcome,
    },
    /// The configuration cannot be read.
    #[error("the running configuration cannot be read: {0}")]
    Read(String),
}

/// What became of the steps before one that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RollbackOutcome {
    /// They are undone: the running configuration is what it was.
    Whole,
    /// They are undone, but these lines are not as they were: those that are missing and those that are too many.
    Differs(Vec<String>),
}

impl std::fmt::Display for RollbackOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RollbackOutcome::Whole => f.write_str("all is as it was before"),
            RollbackOutcome::Differs(lines) => {
                write!(
                    f,
                    "what was done before was undone, but the running configuration is not what it was:"
                )?;
                lines.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
        }
    }
}

/// Lines that are named one by one.
const MOST_NAMED: usize = 20;

/// What changes configurations: the forms of lines, and the command line that runs them.
#[derive(Clone)]
pub struct Engine {
    pub(crate) kinds: Rc<Kinds>,
    pub(crate) cli: Rc<Cli>,
    pub(crate) control: Rc<Control>,
}

impl Engine {
    /// For a router with these forms of lines.
    ///
    /// # Errors
    /// The router has no command line.
    pub fn new(control: &Rc<Control>, kinds: Rc<Kinds>) -> Result<Self, shoal_module::Missing> {
        Ok(Engine { kinds, cli: control.get::<Cli>()?, control: Rc::clone(control) })
    }

    /// For a router with the forms that its modules declare.
    ///
    /// # Errors
    /// In words: it has no command line or no list of modules, or a form is none.
    pub fn of_modules(control: &Rc<Control>) -> Result<Self, String> {
        let modules = control.get::<ModuleList>().map_err(|e| e.to_string())?;
        let types = modules.0.iter().flat_map(|m| m.arg_types).chain(shoal_module::cli::WIRE);
        let types: Vec<_> = types.collect();
        let kinds = Kinds::new(&modules.0, types).map_err(|e| e.to_string())?;
        Engine::new(control, Rc::new(kinds)).map_err(|e| e.to_string())
    }

    /// The forms of lines.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// What the router is configured to be.
    ///
    /// # Errors
    /// It cannot be read; in words.
    pub async fn running(&self) -> Result<Text, Failure> {
        gather(&self.control, None).await.map_err(Failure::Read)
    }

    pub(crate) async fn plan(&self, old: &str, new: &str, pace: &Pace) -> Plan {
        plan(&self.kinds, &self.control, old, new, pace).await
    }

    /// A configuration of before, as it is wanted now: what others have brought since stays.
    pub(crate) async fn with_others(&self, running: &str, wanted: &str, pace: &Pace) -> String {
        others::with_others(&self.kinds, &self.control, running, wanted, pace).await
    }

    /// The running configuration, without what others have brought since this one was committed.
    pub(crate) async fn without_others(&self, running: &str, committed: &str, pace: &Pace) -> String {
        others::without_others(&self.kinds, &self.control, running, committed, pace).await
    }

    /// Leads the router to a configuration. What others have brought stays.
    ///
    /// # Errors
    /// It cannot be, or a step fails: then what was done before is undone.
    pub async fn lead_to(&self, wanted: &str, fault: Fault) -> Result<CommitStats, Failure> {
        let (pace, before) = (Pace::default(), self.running().await?);
        let wanted = self.with_others(&before, wanted, &pace).await;
        let plan = self.plan(&before, &wanted, &pace).await;
        self.carry_out(&plan, &before, &wanted, fault, &pace).await.map(|(done, _)| done)
    }

    /// Carries out a plan that leads from one configuration to another; what the router is configured to be then, too.
    pub(crate) async fn carry_out(
        &self,
        plan: &Plan,
        before: &str,
        wanted: &str,
        fault: Fault,
        pace: &Pace,
    ) -> Result<(CommitStats, Text), Failure> {
        if !plan.errors.is_empty() {
            return Err(Failure::Refused(plan.errors.clone()));
        }
        for (number, step) in plan.steps.iter().enumerate() {
            let result = if fault == Fault::At(number) {
                Err((step.line.to_string(), "a fault for a test".to_owned()))
            } else {
                self.run(&step.run).await
            };
            if let Err((line, why)) = result {
                let done = plan.steps.get(..number).unwrap_or_default();
                return Err(Failure::Step { line, why, back: self.undo(done, before, pace).await });
            }
            pace.give_way().await;
        }
        let (mut done, mut now) = (
            CommitStats { steps: plan.steps.len(), commands: plan.commands(), changes: plan.effects.len() },
            self.running().await?,
        );
        // Some things go with others: an interface that goes down forgets its neighbours. What both configurations have
        // is there afterwards.
        let lost: Vec<String> = lost(before, wanted, &now).into_iter().map(str::to_owned).collect();
        if !lost.is_empty() {
            done.steps += lost.len();
            done.commands += lost.len();
            for (number, line) in lost.into_iter().enumerate() {
                let result = if fault == Fault::At(plan.steps.len() + number) {
                    Err((line, "a fault for a test".to_owned()))
                } else {
                    self.run(&Run::Command(line)).await
                };
                if let Err((line, why)) = result {
                    return Err(Failure::Step {
                        line,
                        why,
                        back: self.undo(&plan.steps, before, pace).await,
                    });
                }
                pace.give_way().await;
            }
            now = self.running().await?;
        }
        Ok((done, now))
    }

    /// Runs a command; says which it was if it fails, and why.
    async fn run(&self, run: &Run) -> Result<(), (String, String)> {
        let command = match run {
            Run::Nothing => return Ok(()),
            Run::Command(command) => command.clone(),
            Run::Found(find, args) => {
                let found = find(&self.control, args);
                found.ok_or_else(|| {
                    (args.line().to_owned(), "nothing is there that takes it back".to_owned())
                })?
            }
        };
        let reply = self.cli.execute(&self.control, &command).await;
        match reply.complaint() {
            None => Ok(()),
            Some(complaint) => Err((command, complaint.message().trim_end().to_owned())),
        }
    }

    /// Undoes steps, the last one first, and says whether all is as it was.
    async fn undo(&self, done: &[Step], before: &str, pace: &Pace) -> RollbackOutcome {
        for step in done.iter().rev() {
            if let Err((line, why)) = self.run(&step.undo).await {
                // What is wrong then is seen below.
                tracing::debug!("undoing `{}': `{line}': {why}", step.line);
            }
            pace.give_way().await;
        }
        // What came back in another place, or did not come back, is led back as any other configuration is.
        for attempt in [true, false] {
            let now = match self.running().await {
                Ok(now) => now,
                Err(error) => return RollbackOutcome::Differs(vec![error.to_string()]),
            };
            let before = self.with_others(&now, before, pace).await;
            let rest = self.plan(&now, &before, pace).await;
            if rest.steps.is_empty() && rest.errors.is_empty() {
                return RollbackOutcome::Whole;
            }
            if !attempt {
                let lines = rest.steps.iter().map(|step| step.line.to_string()).chain(rest.errors);
                return RollbackOutcome::Differs(lines.take(MOST_NAMED).collect());
            }
            for step in &rest.steps {
                if let Err((line, why)) = self.run(&step.run).await {
                    tracing::warn!("`{line}' does not lead back to where the configuration was: {why}");
                }
                pace.give_way().await;
            }
        }
        RollbackOutcome::Whole
    }
}

/// Lines that two configurations have, and that a router on its way from one to the other has lost.
fn lost<'t>(before: &str, wanted: &'t str, now: &str) -> Vec<&'t str> {
    let count = |text: &str| {
        let mut count: HashMap<String, usize> = HashMap::new();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.for_each(|line| *count.entry(line.to_owned()).or_default() += 1);
        count
    };
    let (mut had, mut has) = (count(before), count(now));
    let take = |of: &mut HashMap<String, usize>, line: &str| {
        let left = of.get_mut(line).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let lines = wanted.lines().filter(|line| !line.starts_with('#'));
    lines.filter(|line| take(&mut had, line) && !take(&mut has, line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_configurations_have_and_the_router_has_not_is_lost() {
        let (before, wanted) = ("# a\none\ntwo\ntwo\nthree\n", "# a\none\ntwo\ntwo\nfour\n");
        assert_eq!(lost(before, wanted, "one\ntwo\ntwo\nfour\n"), Vec::<&str>::new());
        assert_eq!(lost(before, wanted, "two\nfour\n"), ["one", "two"]);
    }
}
