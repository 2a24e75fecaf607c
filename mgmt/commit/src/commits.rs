//! The control object: candidates, who may commit, and what waits to be confirmed.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use shoal_cli::Sessions;
use shoal_module::cli::{Client, Pace};
use shoal_module::{Control, InitError};
use shoal_running::{Configuration, ConfigurationError, Settings};

use crate::candidate::{Candidate, Edit, EditedConfig, edited};
use crate::engine::{Engine, Failure};
use crate::pending::{self, Pending};

/// Candidates that there may be at a time.
const MOST_CANDIDATES: usize = 64;

/// Whose a candidate is: a session's that stays, or a user's whose clients come for one command each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// The session of this number, of this user.
    Session(u32, String),
    /// This user.
    User(String),
}

impl Owner {
    pub fn of(client: &Client) -> Self {
        let user = if client.user.is_empty() { "the router" } else { &client.user };
        match client.session {
            Some(number) => Owner::Session(number, user.to_owned()),
            None => Owner::User(user.to_owned()),
        }
    }

    pub fn user(&self) -> &str {
        let (Owner::Session(_, user) | Owner::User(user)) = self;
        user
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Owner::Session(number, user) => write!(f, "session {number} of {user}"),
            Owner::User(user) => write!(f, "{user}"),
        }
    }
}

/// Why something cannot be done with a candidate or a commit.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommitError {
    /// This router cannot.
    #[error("{0}")]
    Unable(String),
    /// No candidate was opened.
    #[error("there is no candidate: `configure' opens one, `configure LINE' opens one and changes it")]
    NoCandidate,
    /// There are as many candidates as there may be.
    #[error("there are {0} candidates, and there may not be more: `configure discard' closes one")]
    TooMany(usize),
    /// Another one has the configuration for itself.
    #[error("{0} has the configuration for itself: `commit' or `configure discard' there gives it back")]
    Exclusive(Owner),
    /// Two at a time.
    #[error("another commit is running: try again")]
    Busy,
    /// A commit waits to be confirmed.
    #[error("{0}")]
    Pending(String),
    /// None does.
    #[error("no commit waits to be confirmed")]
    NotPending,
    /// Changes of a candidate and of the router are about the same.
    #[error("the router has changed since:\n  {}", .0.join("\n  "))]
    Conflicts(Vec<String>),
    /// All reasons why a configuration cannot be.
    #[error("{} found, nothing was changed:\n  {}", count(.0.len()), .0.join("\n  "))]
    Check(Vec<String>),
    /// It failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// Files.
    #[error(transparent)]
    Files(#[from] ConfigurationError),
    /// It was taken back because it could not be saved.
    #[error("{0}; the commit was taken back: {1}")]
    NotSaved(String, String),
}

fn count(n: usize) -> String {
    if n == 1 { "1 error was".to_owned() } else { format!("{n} errors were") }
}

/// Candidates and commits of a router.
pub struct Commits {
    control: Weak<Control>,
    engine: OnceCell<Engine>,
    candidates: RefCell<BTreeMap<Owner, Candidate>>,
    exclusive: RefCell<Option<Owner>>,
    busy: Cell<bool>,
    pub(crate) pending: RefCell<Option<Pending>>,
    pub(crate) last: Cell<u64>,
}

/// While it is there, nothing else is committed.
pub(crate) struct Committing(Rc<Commits>);

impl Drop for Committing {
    fn drop(&mut self) {
        self.0.busy.set(false);
    }
}

pub(crate) fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let commits = control.put(Commits {
        control: Rc::downgrade(control),
        engine: OnceCell::new(),
        candidates: RefCell::default(),
        exclusive: RefCell::default(),
        busy: Cell::new(false),
        pending: RefCell::default(),
        last: Cell::new(0),
    });
    if let Ok(configuration) = control.get::<Configuration>() {
        let commits = Rc::downgrade(&commits);
        configuration.refuse_while(move || commits.upgrade()?.unsettled());
    }
    Ok(())
}

/// Says so if the router ended before its last commit was confirmed: what was committed before is what will be run.
pub(crate) fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let Ok(settings) = control.get::<Settings>() else { return Ok(()) };
    if let Some(record) = pending::left_behind(&settings.directory) {
        tracing::warn!(
            "the router ended before the commit {record} was confirmed: what was committed before is restored"
        );
        if let Err(error) = pending::remove(&settings.directory) {
            tracing::warn!("{}: {error}", pending::path(&settings.directory).display());
        }
    }
    Ok(())
}

impl Commits {
    pub(crate) fn control(&self) -> Result<Rc<Control>, CommitError> {
        self.control.upgrade().ok_or_else(|| CommitError::Unable("the router ends".to_owned()))
    }

    /// What changes configurations.
    pub(crate) fn engine(&self) -> Result<Engine, CommitError> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine.clone());
        }
        let engine = Engine::of_modules(&self.control()?).map_err(CommitError::Unable)?;
        Ok(self.engine.get_or_init(|| engine).clone())
    }

    pub(crate) fn configuration(&self) -> Result<Rc<Configuration>, CommitError> {
        self.control()?.get::<Configuration>().map_err(|e| CommitError::Unable(e.to_string()))
    }

    /// Tells people at all sessions, and the log.
    pub(crate) fn tell(&self, message: &str) {
        tracing::info!("{message}");
        if let Ok(sessions) = self
            .control()
            .and_then(|control| control.get::<Sessions>().map_err(|e| CommitError::Unable(e.to_string())))
        {
            sessions.tell(message);
        }
    }

    /// Candidates of sessions that have ended are gone, and so is what they had for themselves.
    fn forget_closed(&self) {
        let sessions = self.control().ok().and_then(|control| control.get::<Sessions>().ok());
        let is_open = |owner: &Owner| match owner {
            Owner::Session(number, _) => sessions.as_ref().is_none_or(|all| all.is_open(*number)),
            Owner::User(_) => true,
        };
        self.candidates.borrow_mut().retain(|owner, _| is_open(owner));
        self.exclusive.borrow_mut().take_if(|owner| !is_open(owner));
    }

    /// Whether another one has the configuration for itself.
    pub(crate) fn may_change(&self, owner: &Owner) -> Result<(), CommitError> {
        self.forget_closed();
        match self.exclusive.borrow().as_ref().filter(|other| *other != owner) {
            Some(other) => Err(CommitError::Exclusive(other.clone())),
            None => Ok(()),
        }
    }

    /// Begins a commit, if none runs.
    pub(crate) fn begin(self: &Rc<Self>) -> Result<Committing, CommitError> {
        if self.configuration().is_ok_and(|configuration| configuration.is_restoring()) {
            return Err(ConfigurationError::Restoring.into());
        }
        if self.busy.replace(true) {
            return Err(CommitError::Busy);
        }
        Ok(Committing(Rc::clone(self)))
    }

    /// Why what is configured may not be what stays, if that is so.
    fn unsettled(&self) -> Option<String> {
        if self.busy.get() {
            return Some("a commit is running: try again".to_owned());
        }
        self.pending.borrow().as_ref().map(Pending::why)
    }

    /// Opens a candidate, if there is none; tells whether there was.
    pub(crate) fn open(&self, owner: &Owner) -> Result<bool, CommitError> {
        self.may_change(owner)?;
        let mut all = self.candidates.borrow_mut();
        if all.contains_key(owner) {
            return Ok(true);
        }
        if all.len() >= MOST_CANDIDATES {
            return Err(CommitError::TooMany(all.len()));
        }
        all.insert(owner.clone(), Candidate::new());
        Ok(false)
    }

    /// Refuses the candidates of others until the owner commits or discards.
    pub(crate) fn lock(&self, owner: &Owner) -> Result<(), CommitError> {
        self.may_change(owner)?;
        let others: Vec<Owner> = self
            .candidates
            .borrow()
            .iter()
            .filter(|(other, c)| *other != owner && !c.edits.list().is_empty())
            .map(|(o, _)| o.clone())
            .collect();
        if let Some(other) = others.first() {
            let why =
                format!("{other} has a candidate with changes: `commit' or `configure discard' there first");
            return Err(CommitError::Unable(why));
        }
        self.open(owner)?;
        *self.exclusive.borrow_mut() = Some(owner.clone());
        Ok(())
    }

    /// Closes a candidate; tells whether there was one.
    pub(crate) fn close(&self, owner: &Owner) -> bool {
        self.exclusive.borrow_mut().take_if(|other| other == owner);
        self.candidates.borrow_mut().remove(owner).is_some()
    }

    /// The changes of a candidate.
    pub(crate) fn edits(&self, owner: &Owner) -> Result<Vec<Edit>, CommitError> {
        self.forget_closed();
        let all = self.candidates.borrow();
        let candidate = all.get(owner).ok_or(CommitError::NoCandidate)?;
        Ok(candidate.edits.list().to_vec())
    }

    /// Takes all changes out of a candidate.
    pub(crate) fn empty(&self, owner: &Owner) -> Result<(), CommitError> {
        let mut all = self.candidates.borrow_mut();
        *all.get_mut(owner).ok_or(CommitError::NoCandidate)? = Candidate::new();
        Ok(())
    }

    /// Adds changes to a candidate.
    pub(crate) fn push(&self, owner: &Owner, edits: Vec<Edit>) -> Result<(), CommitError> {
        let mut all = self.candidates.borrow_mut();
        let candidate = all.get_mut(owner).ok_or(CommitError::NoCandidate)?;
        for edit in edits {
            candidate.edits.push(edit).map_err(CommitError::Unable)?;
        }
        Ok(())
    }

    /// The owners of candidates with how many changes, and since when.
    pub(crate) fn list(&self) -> Vec<(Owner, usize, std::time::SystemTime, bool)> {
        self.forget_closed();
        let exclusive = self.exclusive.borrow().clone();
        let all = self.candidates.borrow();
        let row = |(owner, candidate): (&Owner, &Candidate)| {
            (owner.clone(), candidate.edits.list().len(), candidate.since, exclusive.as_ref() == Some(owner))
        };
        all.iter().map(row).collect()
    }

    /// A candidate as it is edited, on what the router is configured to be now.
    pub(crate) async fn sheet<'e>(
        &self,
        engine: &'e Engine,
        owner: &Owner,
        pace: &Pace,
    ) -> Result<EditedConfig<'e>, CommitError> {
        let running = engine.running().await?;
        let wanted = self.wanted(owner, &running, pace).await?;
        Ok(EditedConfig::new(&engine.kinds, &engine.control, &wanted, pace).await)
    }

    /// What a candidate leads to, from what the router is configured to be now.
    pub(crate) async fn wanted(
        &self,
        owner: &Owner,
        running: &str,
        pace: &Pace,
    ) -> Result<String, CommitError> {
        let (edits, engine) = (self.edits(owner)?, self.engine()?);
        edited(&engine.kinds, &engine.control, running, &edits, pace).await.map_err(CommitError::Conflicts)
    }
}
