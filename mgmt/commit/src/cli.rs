//! Commands: `configure`, `compare`, `commit`, `confirm`, `rollback`, and what shows them.

use std::rc::Rc;

use shoal_graph::process;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Later, Output, Pace, Sink};
use shoal_running::{Configuration, body, difference};

use crate::commits::{CommitError, Commits, Owner};
use crate::edit::LineMeaning;
use crate::transaction::{CommitSource, How, Looked, MOST_MINUTES, USUAL_MINUTES};
use crate::view::{Checked, Comparison, Drift, Opened, Owners, Sentence};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::later("configure [<line:rest>]", "Open a candidate configuration, or change it by a line", configure)
        .examples(&[
            "configure",
            "configure set interface mtu 1400 local0",
            "configure ip route add 10.0.0.0/8 via drop",
            "configure ip route del 10.0.0.0/8",
        ])
        .doc(
            "The router does not change before `commit`. A line is one that `show running-config` writes, or the command \
             that takes such a line back. It replaces the line that is about the same. The candidate belongs to the session, \
             or to the user if the client comes for one command, as `shoalctl LINE` does. It ends with its session.",
        ),
    Command::later("configure exclusive", "Open a candidate, and refuse the candidates of others", exclusive)
        .examples(&["configure exclusive"])
        .doc("Until `commit` or `configure discard`, or until the session ends. Commands that change the router at once still do."),
    Command::later("configure delete <line:rest>", "Delete a line from the candidate configuration", delete)
        .examples(&["configure delete set interface mtu 1400 local0"])
        .doc("The line as `show running-config` writes it."),
    Command::later("configure load <file:path> [merge | replace]", "Change the candidate by a file of lines", load)
        .examples(&["configure load /etc/shoal/site.cli", "configure load /etc/shoal/site.cli replace"])
        .doc(
            "`merge`, which is usual, runs `configure` with each line of the file. With `replace` the file is the whole \
             candidate. All lines that are wrong are named; then the candidate stays what it was.",
        ),
    Command::later("configure discard", "Close the candidate configuration without committing it", discard)
        .examples(&["configure discard"]),
    Command::later("compare [<revision:u64>]", "Show what the candidate changes, or how it differs from a revision", compare)
        .examples(&["compare", "compare 12"])
        .doc("As a unified diff, and below it what a commit would interrupt."),
    Command::later("show configuration compare [<revision:u64>]", "Show what the candidate changes", compare)
        .examples(&["show configuration compare"]),
    Command::later("show configuration drift", "Show what was changed outside of commits", drift)
        .examples(&["show configuration drift"])
        .doc("By commands that change the router at once, by the API or by netlink, since the last commit or `write`."),
    Command::later("show configuration candidates", "Show who has a candidate configuration", candidates)
        .examples(&["show configuration candidates"]),
    Command::later("commit check", "Find all errors of the candidate without changing anything", check)
        .examples(&["commit check"]),
    Command::later(
        "commit [confirm [<minutes:u32>]] [comment <comment:rest-or-quoted>]",
        "Make the router what the candidate says, and save it",
        commit,
    )
    .examples(&["commit", "commit comment new uplink", "commit confirm 5 comment \"new uplink\"", "commit confirm"])
    .doc(
        "All of it or nothing: if a command fails, what was done before is undone. With `confirm` the router goes back by \
         itself after so many minutes, 10 unless given, unless `confirm` comes before; what the next start runs is not \
         replaced until then, so a router that is restarted in between comes up with what was committed before.",
    ),
    Command::later("confirm", "Keep what was committed with `commit confirm'", confirm).examples(&["confirm"]),
    Command::later(
        "rollback [<revision:u64>] [confirm [<minutes:u32>]] [comment <comment:rest-or-quoted>]",
        "Go back to a revision, or from a commit that is not confirmed",
        rollback,
    )
    .examples(&["rollback 12", "rollback 12 confirm 5", "rollback"])
    .doc("The revision is committed: all of it or nothing. Candidates stay what they are."),
];

fn failed(error: CommitError) -> CliError {
    CliError::failed(error.to_string())
}

fn parts(control: &Rc<Control>, sink: &Sink) -> Result<(Rc<Commits>, Owner), CliError> {
    Ok((control.get::<Commits>()?, Owner::of(&sink.client())))
}

fn how(args: &Args) -> Result<How, CliError> {
    let confirm = match (args.opt::<u32>("minutes")?, args.has("confirm")) {
        (Some(minutes), _) if minutes == 0 || minutes > MOST_MINUTES => {
            let nearest = minutes.clamp(1, MOST_MINUTES).to_string();
            let error = CliError::argument("minutes", format!("1 to {MOST_MINUTES} minutes"));
            return Err(error.nearest(Some(nearest)));
        }
        (Some(minutes), _) => Some(minutes),
        (None, true) => Some(USUAL_MINUTES),
        (None, false) => None,
    };
    Ok(How { confirm, comment: args.text("comment").unwrap_or_default().to_owned() })
}

fn configure(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, owner) = parts(&control, &sink)?;
        let was_open = commits.open(&owner).map_err(failed)?;
        if let Some(typed) = args.text("line") {
            let (engine, pace) = (commits.engine().map_err(failed)?, Pace::default());
            let mut sheet = commits.sheet(&engine, &owner, &pace).await.map_err(failed)?;
            match engine.meant(typed, &mut sheet).map_err(CliError::failed)? {
                LineMeaning::Edit(edit) => commits.push(&owner, vec![edit]).map_err(failed)?,
                LineMeaning::Nothing => return Ok(Output::view(Sentence("it is so already".to_owned()))),
            }
            return Ok(Output::none());
        }
        let changes = commits.edits(&owner).map_err(failed)?.len();
        Ok(Output::view(Opened { owner: owner.to_string(), was_open, changes }))
    })
}

fn exclusive(control: Rc<Control>, _: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, owner) = parts(&control, &sink)?;
        commits.lock(&owner).map_err(failed)?;
        Ok(Output::view(Sentence(format!("{owner} has the configuration for itself"))))
    })
}

fn delete(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, owner) = parts(&control, &sink)?;
        let typed: String = args.get("line")?;
        commits.open(&owner).map_err(failed)?;
        let (engine, pace) = (commits.engine().map_err(failed)?, Pace::default());
        let mut sheet = commits.sheet(&engine, &owner, &pace).await.map_err(failed)?;
        let edit = engine.deletes(&typed, &mut sheet).map_err(|e| CliError::argument("line", e))?;
        commits.push(&owner, vec![edit]).map_err(failed)?;
        Ok(Output::none())
    })
}

fn load(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, owner) = parts(&control, &sink)?;
        let file: String = args.get("file")?;
        commits.open(&owner).map_err(failed)?;
        let text =
            crate::load::read(&file).await.map_err(|e| CliError::argument("file", format!("{file}: {e}")))?;
        let done = if args.has("replace") {
            crate::load::replace(&commits, &owner, body(&text)).await
        } else {
            crate::load::merge(&commits, &owner, &file, body(&text)).await
        };
        let changes = done.map_err(failed)?;
        Ok(Output::view(Sentence(format!("{changes} changes"))))
    })
}

fn discard(control: Rc<Control>, _: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, owner) = parts(&control, &sink)?;
        if commits.close(&owner) { Ok(Output::none()) } else { Err(failed(CommitError::NoCandidate)) }
    })
}

fn compare(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, owner) = parts(&control, &sink)?;
        let Looked { before, wanted, plan } =
            commits.look(&owner, &CommitSource::Candidate).await.map_err(failed)?;
        let (name, old) = match args.opt::<u64>("revision")? {
            None => ("running-config".to_owned(), before.to_owned()),
            Some(number) => {
                let configuration = control.get::<Configuration>()?;
                (format!("revision {number}"), configuration.revision(number).await?)
            }
        };
        let diff = move || difference((&name, &old), ("candidate", &wanted));
        let diff = process::aside("configuration", diff).await?;
        Ok(Output::view(Comparison::new(diff, plan)))
    })
}

fn drift(control: Rc<Control>, _: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, _) = parts(&control, &sink)?;
        let engine = commits.engine().map_err(failed)?;
        let running = engine.running().await?;
        let pending = commits.pending.borrow().as_ref().map(|pending| pending.after.to_string());
        let committed = match pending {
            Some(committed) => committed,
            None => control.get::<Configuration>()?.startup().await?,
        };
        let running = engine.without_others(&running, &committed, &Pace::default()).await;
        let diff = move || difference(("committed", &committed), ("running-config", &running));
        Ok(Output::view(Drift::from(process::aside("configuration", diff).await?)))
    })
}

fn candidates(control: Rc<Control>, _: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, _) = parts(&control, &sink)?;
        Ok(Output::view(Owners::new(&commits)))
    })
}

fn check(control: Rc<Control>, _: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, owner) = parts(&control, &sink)?;
        let looked =
            commits.look(&owner, &CommitSource::Candidate).await.and_then(Looked::checked).map_err(failed)?;
        Ok(Output::view(Checked::new(&looked.plan)))
    })
}

fn commit(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, owner) = parts(&control, &sink)?;
        let done = commits.commit(owner, CommitSource::Candidate, how(&args)?).await.map_err(failed)?;
        Ok(Output::view(crate::view::Committed::from(done)))
    })
}

fn confirm(control: Rc<Control>, _: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, owner) = parts(&control, &sink)?;
        let revision = commits.confirm(&owner).await.map_err(failed)?;
        Ok(Output::view(crate::view::Confirmed { revision }))
    })
}

fn rollback(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let (commits, owner) = parts(&control, &sink)?;
        if let Some(number) = args.opt::<u64>("revision")? {
            let done =
                commits.commit(owner, CommitSource::Revision(number), how(&args)?).await.map_err(failed)?;
            return Ok(Output::view(crate::view::Committed::from(done)));
        }
        let changes = commits.roll_back_pending().await.map_err(failed)?;
        Ok(Output::view(Sentence(format!(
            "{changes} changes taken back: all is as it was before the commit"
        ))))
    })
}
