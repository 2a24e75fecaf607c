//! Messages that VPP does not have: the transactions of the command line for programs. The names begin with `shoal_`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::rc::Rc;

use shoal_graph::process;
use shoal_message::{Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Task};
use shoal_module::cli::Client;
use shoal_running::difference;

use crate::commits::{CommitError, Commits, Owner};
use crate::load;
use crate::transaction::{CommitSource, Committed, How, Looked, MOST_MINUTES};

/// Messages of Shoal alone.
pub static API: ApiPart = ApiPart {
    file: "shoal_commit",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::task::<ShoalCandidateSet>(),
        ApiMessage::sent::<ShoalCandidateSetReply>(),
        ApiMessage::task::<ShoalCandidateCompare>(),
        ApiMessage::sent::<ShoalCandidateCompareReply>(),
        ApiMessage::task::<ShoalCandidateDiscard>(),
        ApiMessage::task::<ShoalCommit>(),
        ApiMessage::sent::<ShoalCommitReply>(),
        ApiMessage::task::<ShoalCommitConfirm>(),
        ApiMessage::sent::<ShoalCommitConfirmReply>(),
        ApiMessage::task::<ShoalRollback>(),
        ApiMessage::sent::<ShoalRollbackReply>(),
    ],
};

/// A text in a message is cut off there.
const LONGEST: usize = 1 << 20;

fn parts(call: &Call) -> Result<(Rc<Commits>, Owner), Retval> {
    let commits = call.get::<Commits>().map_err(|_| Retval::UNSPECIFIED)?;
    // Clients of the same name share a candidate, as those of the same user do on the command line.
    let all = call.clients().map(|clients| clients.list()).unwrap_or_default();
    let name = all.into_iter().find(|(index, _)| *index == call.client).map(|(_, name)| name);
    let user = format!("client {}", name.unwrap_or_default());
    Ok((commits, Owner::of(&Client { session: None, user })))
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

/// The number of a failure; what it was is in the text of the answer.
const FAILED: i32 = Retval::UNSPECIFIED.0;

/// Changes the caller's candidate by lines; it is opened if there is none. Candidates belong to all clients of a name.
#[derive(Message)]
#[message(request, reply = ShoalCandidateSetReply)]
pub struct ShoalCandidateSet {
    /// The lines are the whole candidate, not changes of it.
    pub replace: bool,
    /// As `show running-config` writes them, or the commands that take them back.
    pub lines: String,
}

/// How many changes these were, or which lines are wrong.
#[derive(Message)]
#[message(reply)]
pub struct ShoalCandidateSetReply {
    /// -1: the candidate is what it was.
    pub retval: i32,
    pub changes: u32,
    pub error: String,
}

impl Task for ShoalCandidateSet {
    async fn run(self, call: Call) -> Result<ShoalCandidateSetReply, Retval> {
        let (commits, owner) = parts(&call)?;
        let done = async {
            commits.open(&owner)?;
            if self.replace {
                load::replace(&commits, &owner, &self.lines).await
            } else {
                load::merge(&commits, &owner, "line", &self.lines).await
            }
        };
        Ok(match done.await {
            Ok(changes) => {
                ShoalCandidateSetReply { retval: 0, changes: changes as u32, error: String::new() }
            }
            Err(e) => ShoalCandidateSetReply { retval: FAILED, changes: 0, error: cut(e.to_string()) },
        })
    }
}

/// Asks what the caller's candidate changes.
#[derive(Message)]
#[message(request, reply = ShoalCandidateCompareReply)]
pub struct ShoalCandidateCompare {}

/// The changes as a unified diff, or why there are none.
#[derive(Message)]
#[message(reply)]
pub struct ShoalCandidateCompareReply {
    pub retval: i32,
    pub added: u32,
    pub removed: u32,
    /// How many errors `commit check` finds.
    pub errors: u32,
    /// At most 1 MiB.
    pub text: String,
}

impl Task for ShoalCandidateCompare {
    async fn run(self, call: Call) -> Result<ShoalCandidateCompareReply, Retval> {
        let (commits, owner) = parts(&call)?;
        let looked = commits.look(&owner, &CommitSource::Candidate).await;
        let failed = |error: String| ShoalCandidateCompareReply {
            retval: FAILED,
            added: 0,
            removed: 0,
            errors: 0,
            text: cut(error),
        };
        let Looked { before, wanted, plan } = match looked {
            Ok(looked) => looked,
            Err(error) => return Ok(failed(error.to_string())),
        };
        let diff = move || difference(("running-config", &before), ("candidate", &wanted));
        Ok(match process::aside("configuration", diff).await {
            Ok(diff) => ShoalCandidateCompareReply {
                retval: 0,
                added: diff.added as u32,
                removed: diff.removed as u32,
                errors: plan.errors.len() as u32,
                text: cut(diff.text),
            },
            Err(error) => failed(error.to_string()),
        })
    }
}

/// Closes the caller's candidate.
#[derive(Message)]
#[message(request)]
pub struct ShoalCandidateDiscard {}

impl Task for ShoalCandidateDiscard {
    async fn run(self, call: Call) -> Result<(), Retval> {
        let (commits, owner) = parts(&call)?;
        if commits.close(&owner) { Ok(()) } else { Err(Retval::NO_SUCH_ENTRY) }
    }
}

fn how(confirm_minutes: u32, comment: String) -> How {
    How { confirm: (confirm_minutes > 0).then_some(confirm_minutes.min(MOST_MINUTES)), comment }
}

/// Makes the router what the caller's candidate says: all of it or nothing.
#[derive(Message)]
#[message(request, reply = ShoalCommitReply)]
pub struct ShoalCommit {
    /// Only find errors.
    pub check: bool,
    /// It goes back after so many minutes, 1440 at most, unless it is confirmed; 0: it does not.
    pub confirm_minutes: u32,
    pub comment: String,
}

/// What came of it.
#[derive(Message)]
#[message(reply)]
pub struct ShoalCommitReply {
    /// -1: nothing is changed, or what was changed is undone, as the error says.
    pub retval: i32,
    /// As which it was saved; 0 if it was not.
    pub revision: u64,
    pub changes: u32,
    pub commands: u32,
    /// All errors, a line each.
    pub error: String,
}

impl ShoalCommitReply {
    fn of(done: Result<Committed, CommitError>) -> Self {
        match done {
            Ok(done) => ShoalCommitReply {
                retval: 0,
                revision: done.revision.unwrap_or_default(),
                changes: done.changes as u32,
                commands: done.commands as u32,
                error: String::new(),
            },
            Err(error) => ShoalCommitReply {
                retval: FAILED,
                revision: 0,
                changes: 0,
                commands: 0,
                error: cut(error.to_string()),
            },
        }
    }
}

impl Task for ShoalCommit {
    async fn run(self, call: Call) -> Result<ShoalCommitReply, Retval> {
        let (commits, owner) = parts(&call)?;
        if !self.check {
            let how = how(self.confirm_minutes, self.comment);
            return Ok(ShoalCommitReply::of(commits.commit(owner, CommitSource::Candidate, how).await));
        }
        let looked = commits.look(&owner, &CommitSource::Candidate).await;
        Ok(ShoalCommitReply::of(looked.and_then(Looked::checked).map(|Looked { plan, .. }| {
            let (changes, commands) = (plan.effects.len(), plan.commands());
            Committed { changes, commands, ..Committed::default() }
        })))
    }
}

/// Keeps what waits to be confirmed, of any client or user.
#[derive(Message)]
#[message(request, reply = ShoalCommitConfirmReply)]
pub struct ShoalCommitConfirm {}

/// As which revision it is saved.
#[derive(Message)]
#[message(reply)]
pub struct ShoalCommitConfirmReply {
    pub retval: i32,
    pub revision: u64,
    pub error: String,
}

impl Task for ShoalCommitConfirm {
    async fn run(self, call: Call) -> Result<ShoalCommitConfirmReply, Retval> {
        let (commits, owner) = parts(&call)?;
        Ok(match commits.confirm(&owner).await {
            Ok(revision) => {
                let revision = revision.unwrap_or_default();
                ShoalCommitConfirmReply { retval: 0, revision, error: String::new() }
            }
            Err(e) => ShoalCommitConfirmReply { retval: FAILED, revision: 0, error: cut(e.to_string()) },
        })
    }
}

/// Commits a revision, or goes back from a commit that is not confirmed.
#[derive(Message)]
#[message(request, reply = ShoalRollbackReply)]
pub struct ShoalRollback {
    /// 0: goes back from the commit that is not confirmed.
    pub revision: u64,
    /// As in `shoal_commit`.
    pub confirm_minutes: u32,
    pub comment: String,
}

/// What came of it.
#[derive(Message)]
#[message(reply)]
pub struct ShoalRollbackReply {
    pub retval: i32,
    pub revision: u64,
    pub changes: u32,
    pub error: String,
}

impl Task for ShoalRollback {
    async fn run(self, call: Call) -> Result<ShoalRollbackReply, Retval> {
        let (commits, owner) = parts(&call)?;
        let done = if self.revision == 0 {
            let taken_back = commits.roll_back_pending().await;
            taken_back.map(|changes| Committed { changes, ..Committed::default() })
        } else {
            let how = how(self.confirm_minutes, self.comment);
            commits.commit(owner, CommitSource::Revision(self.revision), how).await
        };
        let ShoalCommitReply { retval, revision, changes, error, .. } = ShoalCommitReply::of(done);
        Ok(ShoalRollbackReply { retval, revision, changes, error })
    }
}
