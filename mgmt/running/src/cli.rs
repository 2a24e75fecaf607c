//! Commands: `show running-config`, `write`, `show startup-config`, `show configuration`.

use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Later, Listing, Output, Pace, Page, Sink};

use crate::configuration::{Against, ConfigurationError};
use crate::gather;
use crate::saved::Saved;
use crate::store::Outcome;
use crate::{Configuration, Origin, Revision, StoreError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::later("show running-config", "Show the commands that rebuild what is configured now", running)
        .examples(&["show running-config", "sh running"])
        .doc(
            "What was configured and differs from what is there anyway, in an order in which a fresh router can run it. \
             What was learnt (dynamic neighbours, addresses by router advertisement, path MTUs) is left out, and so are \
             streams, captures and traces. Drawn MAC addresses are named, so that they stay what they are.",
        ),
    Command::later("show startup-config", "Show what the next start runs", startup)
        .examples(&["show startup-config"]),
    Command::later("write [memory]", "Save what is configured now for the next start", write)
        .examples(&["write", "write memory"])
        .doc(
            "Under `/var/lib/shoal`, or where `configuration { directory PATH }` in the start-up file says. There is \
             the old file or the new one, never half of one. The last 50 are kept as revisions.",
        ),
    Command::later("show configuration revisions", "Show what was saved, and when", revisions)
        .examples(&["show configuration revisions"]),
    Command::later(
        "show configuration diff [<revision:u64>]",
        "Show what was changed since it was saved, or since a revision",
        diff,
    )
    .examples(&["show configuration diff", "show configuration diff 3"])
    .doc("As a unified diff: `+` is configured now and was not saved, `-` was saved and is not there any more."),
];

fn failed(error: ConfigurationError) -> CliError {
    match error {
        ConfigurationError::Store(StoreError::NoRevision { nearest, .. }) => {
            CliError::argument("revision", error.to_string()).nearest(nearest.map(|n| n.to_string()))
        }
        _ => CliError::failed(error.to_string()),
    }
}

/// Commands in parts, each headed by a comment, which is empty before the first; they come in pieces of whole lines.
struct Parts<P> {
    pieces: P,
    begun: bool,
    /// Whether a part is open.
    within: bool,
}

impl<P: Iterator<Item = String>> Parts<P> {
    fn new(pieces: P) -> Self {
        Parts { pieces, begun: false, within: false }
    }

    fn part(&mut self, name: &str, page: &mut Page) {
        if std::mem::replace(&mut self.within, true) {
            page.close();
            page.close();
        }
        page.object();
        page.key("part");
        page.value(&name);
        page.key("commands");
        page.array();
    }
}

impl<P: Iterator<Item = String>> Listing for Parts<P> {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if !std::mem::replace(&mut self.begun, true) {
            page.object();
            page.key("parts");
            page.array();
        }
        let Some(piece) = self.pieces.next() else { return ControlFlow::Break(()) };
        page.text(&piece);
        if page.is_json() {
            for line in piece.lines() {
                if let Some(name) = line.strip_prefix("# ") {
                    self.part(name, page);
                    continue;
                }
                if !self.within {
                    self.part("", page);
                }
                page.value(&line);
            }
        }
        ControlFlow::Continue(())
    }
}

/// A text in pieces of some lines.
fn in_pieces(saved: Rc<Saved>) -> impl Iterator<Item = String> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = saved.text.get(at..).filter(|rest| !rest.is_empty())?;
        let lines = rest.split_inclusive('\n').take(64).map(str::len).sum();
        at += lines;
        rest.get(..lines).map(str::to_owned)
    })
}

fn running(control: Rc<Control>, _: Args, _: Sink) -> Later {
    Box::pin(async move {
        let pieces = gather::pieces(&control, &Pace::default()).await.map_err(CliError::failed)?;
        Ok(Output::listing(Parts::new(pieces)))
    })
}

fn startup(control: Rc<Control>, _: Args, _: Sink) -> Later {
    Box::pin(async move {
        let saved = control.get::<Configuration>()?.saved().await.map_err(failed)?;
        Ok(Output::listing(Parts::new(in_pieces(saved))))
    })
}

#[derive(Serialize)]
struct Written {
    revision: u64,
    changed: bool,
    /// Commands that failed at the start and are not in it.
    lost: usize,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Written { revision, changed, lost } = self;
        if *changed {
            writeln!(f, "saved as revision {revision}")?;
        } else {
            writeln!(f, "nothing has changed since revision {revision}")?;
        }
        if *lost > 0 {
            writeln!(
                f,
                "{lost} commands of what was saved before failed at the start and are in older revisions only"
            )?;
        }
        Ok(())
    }
}

fn write(control: Rc<Control>, _: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let done = control.get::<Configuration>()?.save(&control, &sink).await.map_err(failed)?;
        Ok(Output::view(match done {
            (Outcome::Saved(revision), lost) => Written { revision, changed: true, lost },
            (Outcome::Same(revision), lost) => Written { revision, changed: false, lost },
        }))
    })
}

#[derive(Serialize)]
struct Row {
    revision: u64,
    time: String,
    bytes: u64,
    user: String,
    added: usize,
    removed: usize,
    comment: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { revision, time, bytes, user, added, removed, comment } = self;
        let size = format!("+{added} -{removed}");
        let line = format!("{revision:>8}  {time:<20}{bytes:>12}  {user:<12}{size:>14}  {comment}");
        writeln!(f, "{}", line.trim_end())
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Rows(Vec<Row>);

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "nothing was saved yet");
        }
        writeln!(
            f,
            "{:>8}  {:<20}{:>12}  {:<12}{:>14}  Comment",
            "Revision", "Time", "Bytes", "User", "Changes"
        )?;
        self.0.iter().try_for_each(|row| write!(f, "{row}"))
    }
}

fn revisions(control: Rc<Control>, _: Args, _: Sink) -> Later {
    Box::pin(async move {
        let all = control.get::<Configuration>()?.revisions().await.map_err(failed)?;
        let row = |Revision { number, time, bytes, origin, .. }: Revision| {
            let Origin { user, added, removed, comment } = origin;
            Row { revision: number, time, bytes, user, added, removed, comment }
        };
        Ok(Output::view(Rows(all.into_iter().map(row).collect())))
    })
}

#[derive(Serialize)]
struct Diff {
    added: usize,
    removed: usize,
    #[serde(rename = "diff")]
    text: String,
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn diff(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let against = args.opt::<u64>("revision")?.map_or(Against::Startup, Against::Revision);
        let configuration = control.get::<Configuration>()?;
        let found = configuration.difference(&control, &sink, against).await.map_err(failed)?;
        Ok(Output::view(Diff { added: found.added, removed: found.removed, text: found.text }))
    })
}
