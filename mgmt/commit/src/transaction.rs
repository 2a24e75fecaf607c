//! Commit, confirm and roll back.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use shoal_graph::process::Processes;
use shoal_module::cli::Pace;
use shoal_module::door::Signal;
use shoal_running::{Outcome, Text, difference};

use crate::commits::{CommitError, Commits, Committing, Owner};
use crate::engine::Fault;
use crate::pending::{self, Pending};
use crate::plan::Plan;

/// How long a commit waits to be confirmed unless the user says so.
pub(crate) const USUAL_MINUTES: u32 = 10;
/// The longest.
pub(crate) const MOST_MINUTES: u32 = 24 * 60;
/// A timer that finds another commit running looks again after this.
const AGAIN: Duration = Duration::from_secs(1);

/// How a commit is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct How {
    /// It goes back after so many minutes unless it is confirmed.
    pub confirm: Option<u32>,
    /// What the user says of it.
    pub comment: String,
}

/// What is to be committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommitSource {
    /// The owner's candidate.
    Candidate,
    /// What was saved as this revision.
    Revision(u64),
}

/// What came of a commit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Committed {
    /// The revision that it was saved as; none if it was not.
    pub revision: Option<u64>,
    /// Lines that came, went or changed.
    pub changes: usize,
    /// Commands that ran.
    pub commands: usize,
    /// How long that took.
    pub milliseconds: u64,
    /// Minutes after which it goes back unless it is confirmed.
    pub confirm: Option<u32>,
    /// Lines that were changed outside of commits and are saved with it.
    pub drift: usize,
}

/// A configuration that is looked at before it is committed.
pub(crate) struct Looked {
    pub before: Text,
    pub wanted: String,
    pub plan: Plan,
}

impl Looked {
    /// The same, if it can be.
    pub fn checked(self) -> Result<Looked, CommitError> {
        if self.plan.errors.is_empty() { Ok(self) } else { Err(CommitError::Check(self.plan.errors)) }
    }
}

/// Does work as a task of its own: it is not given up when the client that asked for it leaves.
async fn detached<T: 'static>(processes: &Processes, work: impl Future<Output = T> + 'static) -> Option<T> {
    let (done, result) = (Rc::new(Signal::default()), Rc::new(RefCell::new(None)));
    let (notify, slot) = (Rc::clone(&done), Rc::clone(&result));
    processes.spawn_unlisted(async move {
        let value = work.await;
        *slot.borrow_mut() = Some(value);
        notify.notify();
    });
    done.until(|| result.borrow().is_some()).await;
    result.take()
}

impl Commits {
    fn processes(&self) -> Result<Rc<Processes>, CommitError> {
        self.control()?.processes().map_err(|e| CommitError::Unable(e.to_string()))
    }

    /// What a commit would do; nothing is changed.
    pub(crate) async fn look(&self, owner: &Owner, what: &CommitSource) -> Result<Looked, CommitError> {
        let (engine, pace) = (self.engine()?, Pace::default());
        let before = engine.running().await?;
        let wanted = match what {
            CommitSource::Candidate => self.wanted(owner, &before, &pace).await?,
            CommitSource::Revision(number) => {
                let revision = self.configuration()?.revision(*number).await?;
                engine.with_others(&before, &revision, &pace).await
            }
        };
        let plan = engine.plan(&before, &wanted, &pace).await;
        Ok(Looked { before, wanted, plan })
    }

    /// Commits.
    pub(crate) async fn commit(
        self: &Rc<Self>,
        owner: Owner,
        what: CommitSource,
        how: How,
    ) -> Result<Committed, CommitError> {
        self.may_change(&owner)?;
        // Going back to a revision also goes back from a commit that waits.
        if let Some(pending) = &*self.pending.borrow()
            && what == CommitSource::Candidate
        {
            return Err(CommitError::Pending(pending.why()));
        }
        let committing = self.begin()?;
        let (commits, processes) = (Rc::clone(self), self.processes()?);
        let work = async move { commits.run(owner, what, how, committing).await };
        detached(&processes, work).await.unwrap_or_else(|| Err(CommitError::Unable("the router ends".into())))
    }

    async fn run(
        self: &Rc<Self>,
        owner: Owner,
        what: CommitSource,
        how: How,
        committing: Committing,
    ) -> Result<Committed, CommitError> {
        let _committing = committing;
        let (engine, pace, begun) = (self.engine()?, Pace::default(), Instant::now());
        let Looked { before, wanted, plan } = self.look(&owner, &what).await?.checked()?;
        let before = Arc::new(before);
        let drift = self.drift_of(&before).await;
        let (done, after) = engine.carry_out(&plan, &before, &wanted, Fault::None, &pace).await?;
        let after = Arc::new(after);
        let mut committed = Committed {
            changes: done.changes,
            commands: done.commands,
            confirm: how.confirm,
            drift,
            ..Committed::default()
        };
        let kept = match how.confirm {
            Some(minutes) => self.wait(&owner, &how, minutes, Arc::clone(&before), after).await,
            None => match self.save(after, &owner, &how.comment).await {
                Ok(revision) => {
                    committed.revision = revision;
                    self.settle().await;
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        if let Err(error) = kept {
            let back = engine.lead_to(&before, Fault::None).await;
            let back = back.map_or_else(|e| e.to_string(), |_| "all is as it was before".to_owned());
            return Err(CommitError::NotSaved(error.to_string(), back));
        }
        if what == CommitSource::Candidate {
            self.close(&owner);
        }
        committed.milliseconds = begun.elapsed().as_millis() as u64;
        Ok(committed)
    }

    /// Lines of the running configuration that differ from what was committed last.
    async fn drift_of(&self, running: &Text) -> usize {
        let Ok(configuration) = self.configuration() else { return 0 };
        let Ok(startup) = configuration.startup().await else { return 0 };
        let Ok(engine) = self.engine() else { return 0 };
        if startup.is_empty() {
            return 0;
        }
        lines_apart(&startup, &engine.without_others(running, &startup, &Pace::default()).await)
    }

    /// Saves for the next start; the number of the revision, if this router keeps any.
    async fn save(&self, text: Arc<Text>, owner: &Owner, comment: &str) -> Result<Option<u64>, CommitError> {
        let configuration = self.configuration()?;
        if configuration.directory().is_none() {
            return Ok(None);
        }
        let (user, comment) = (owner.user().to_owned(), comment.to_owned());
        let (Outcome::Saved(number) | Outcome::Same(number)) =
            configuration.save_commands(text, user, comment).await?;
        Ok(Some(number))
    }

    /// Lets a commit wait to be confirmed.
    async fn wait(
        self: &Rc<Self>,
        owner: &Owner,
        how: &How,
        minutes: u32,
        before: Arc<Text>,
        after: Arc<Text>,
    ) -> Result<(), CommitError> {
        let within = Duration::from_secs(u64::from(minutes) * 60);
        let number = self.last.get() + 1;
        self.last.set(number);
        let pending = Pending {
            number,
            user: owner.user().to_owned(),
            comment: how.comment.clone(),
            until: SystemTime::now() + within,
            before,
            after,
        };
        let comment = if how.comment.is_empty() { String::new() } else { format!(" ({})", how.comment) };
        let record = format!("of {}{comment}\n", pending.user);
        let processes = self.processes()?;
        self.write_record(record).await?;
        // One that waited is confirmed or taken back by now: what is pending is this one.
        self.pending.replace(Some(pending));
        let minutes = if minutes == 1 { "1 minute".to_owned() } else { format!("{minutes} minutes") };
        self.tell(&format!(
            "{} has committed a configuration that goes back in {minutes} unless it is confirmed",
            owner.user()
        ));
        let commits = Rc::clone(self);
        let clock = Rc::clone(&processes);
        processes.spawn_unlisted(async move {
            clock.sleep(within).await;
            commits.expired(number, &clock).await;
        });
        Ok(())
    }

    async fn write_record(&self, text: String) -> Result<(), CommitError> {
        Ok(self.configuration()?.write_beside(pending::RECORD, text).await?)
    }

    /// Nothing waits any more.
    async fn settle(&self) {
        self.pending.take();
        let Some(directory) = self.configuration().ok().and_then(|configuration| configuration.directory())
        else {
            return;
        };
        let remove = move || pending::remove(&directory).map_err(|e| (pending::path(&directory), e));
        if let Ok(Err((path, error))) = shoal_graph::process::aside("configuration", remove).await {
            tracing::warn!("{}: {error}", path.display());
        }
    }

    /// The time of a commit is up.
    async fn expired(self: &Rc<Self>, number: u64, clock: &Processes) {
        let is_it = || self.pending.borrow().as_ref().is_some_and(|pending| pending.number == number);
        while is_it() {
            if let Ok(_committing) = self.begin() {
                if is_it()
                    && let Err(error) = self.take_back("was not confirmed in time").await
                {
                    tracing::error!("{error}");
                }
                return;
            }
            clock.sleep(AGAIN).await;
        }
    }

    /// Goes back from the commit that waits.
    async fn take_back(&self, why: &str) -> Result<usize, CommitError> {
        let (user, before) = match &*self.pending.borrow() {
            Some(pending) => (pending.user.clone(), Arc::clone(&pending.before)),
            None => return Err(CommitError::NotPending),
        };
        let done = self.engine()?.lead_to(&before, Fault::None).await;
        self.settle().await;
        match done {
            Ok(done) => {
                self.tell(&format!("the commit of {user} {why}: the configuration is what it was before"));
                Ok(done.changes)
            }
            Err(error) => {
                self.tell(&format!("the commit of {user} {why}, and does not go back: {error}"));
                Err(error.into())
            }
        }
    }

    /// Goes back from the commit that waits, because the user says so.
    pub(crate) async fn roll_back_pending(self: &Rc<Self>) -> Result<usize, CommitError> {
        if self.pending.borrow().is_none() {
            return Err(CommitError::NotPending);
        }
        let committing = self.begin()?;
        let (commits, processes) = (Rc::clone(self), self.processes()?);
        let work = async move {
            let _committing = committing;
            commits.take_back("was taken back").await
        };
        detached(&processes, work).await.unwrap_or(Err(CommitError::NotPending))
    }

    /// Keeps the commit that waits; the number of its revision.
    pub(crate) async fn confirm(self: &Rc<Self>, owner: &Owner) -> Result<Option<u64>, CommitError> {
        let _committing = self.begin()?;
        let (by, comment, after) = match &*self.pending.borrow() {
            Some(pending) => {
                (Owner::User(pending.user.clone()), pending.comment.clone(), Arc::clone(&pending.after))
            }
            None => return Err(CommitError::NotPending),
        };
        let revision = self.save(after, &by, &comment).await?;
        self.settle().await;
        self.tell(&format!("{} has confirmed the commit of {}", owner.user(), by.user()));
        Ok(revision)
    }
}

/// How many lines two configurations do not share.
pub(crate) fn lines_apart(old: &str, new: &str) -> usize {
    let found = difference(("", old), ("", new));
    found.added + found.removed
}
