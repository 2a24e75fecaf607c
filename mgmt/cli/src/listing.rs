//! Listings: answers as long as a table, made while the client reads.

use shoal_module::cli::{Form, Listing, Output, Pace, Page, Sink};

use crate::complaint::Complaint;
use crate::reply::Reply;

/// A listing of fewer bytes is part of the reply, like any other answer.
const SHORT: usize = 64 << 10;
/// The longest one where several answers are one JSON value.
const MOST_AMONG_OTHERS: usize = 1 << 20;

/// How the line asked for an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// As the client has it.
    AsUsual,
    /// As JSON for people.
    Json,
}

/// Whether the answer is the only one of its request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerPosition {
    /// It is.
    None,
    /// It is one of several, of which those before are with the client, if it gets text.
    Others,
}

/// What a command answered, for the reply. A long listing goes to the client now, piece by piece as it reads.
pub(crate) async fn answer(
    output: Output,
    wanted: Wanted,
    among: AnswerPosition,
    sink: &Sink,
    pace: &Pace,
) -> Reply {
    let json = wanted == Wanted::Json;
    let listing = match output.into_listing() {
        Ok(listing) => listing,
        Err(output) => return Reply::output(output, json),
    };
    match sink.form() {
        Some(form) => {
            let asked = if json && form == Form::Text { Form::Pretty } else { form };
            write(listing, asked, json, among, sink, pace).await
        }
        None => Reply::output(Output::kept(listing), json),
    }
}

async fn write(
    mut listing: Box<dyn Listing>,
    form: Form,
    json: bool,
    among: AnswerPosition,
    sink: &Sink,
    pace: &Pace,
) -> Reply {
    let interrupted = || Reply::error(Complaint::other("", "interrupted"));
    let mut page = Page::new(form);
    let mut begun = false;
    let most = if (form, among) == (Form::Json, AnswerPosition::Others) { MOST_AMONG_OTHERS } else { SHORT };
    loop {
        let done = page.fill(&mut *listing).is_break();
        if done && !begun {
            return Reply::output(short(page.take(), form), json);
        }
        if begun || page.len() > most {
            if form == Form::Json && among == AnswerPosition::Others {
                let why =
                    "an answer of more than 1 MiB is not put into one value with others: ask for it alone";
                return Reply::error(Complaint::other("", why));
            }
            begun = true;
            if sink.piece(&page.take()).is_err() || sink.room().await.is_err() {
                return interrupted();
            }
        }
        if done {
            if form == Form::Pretty && sink.piece("\n").is_err() {
                return interrupted();
            }
            return Reply::listed();
        }
        pace.pause().await;
        if sink.is_gone() {
            return interrupted();
        }
    }
}

/// A listing that turned out short.
fn short(text: String, form: Form) -> Output {
    match form {
        Form::Text => Output::text(text),
        Form::Json | Form::Pretty => Output::json(serde_json::from_str(&text).unwrap_or_default()),
    }
}
