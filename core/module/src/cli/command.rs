//! One command: its syntax, its help and the function behind it.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use super::{Args, CliError, Output, Sink};
use crate::Control;

/// A command's function that answers at once.
pub type Handler = fn(&Control, &Args) -> Result<Output, CliError>;

/// What an [`AsyncHandler`] returns.
pub type Later = Pin<Box<dyn Future<Output = Result<Output, CliError>>>>;

/// A command's function that takes its time (ping, wait) and may print while it runs.
///
/// It must give way to others by awaiting: the control plane is one thread. When the client leaves, printing
/// to the [`Sink`] fails with [`super::ClientGone`]; let `?` end the handler then.
pub type AsyncHandler = fn(Rc<Control>, Args, Sink) -> Later;

/// The function behind a command.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// Answers at once.
    Now(Handler),
    /// Takes its time.
    Later(AsyncHandler),
}

/// What a command does instead where it would take its time.
#[derive(Debug, Clone, Copy)]
pub struct Long {
    /// Whether these arguments ask for so much.
    pub when: fn(&Args) -> bool,
    /// Does it piece by piece.
    pub run: AsyncHandler,
}

/// A command that a feature declares. The [module page](super) explains the syntax string.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// Words and arguments, for instance `set interface state <interface> {up | down}`.
    pub syntax: &'static str,
    /// One line for `help` and the reference; upper case first, no full stop.
    pub help: &'static str,
    /// The function behind it.
    pub run: Run,
    /// What does instead where the arguments ask for much; the function behind the command would hold up others.
    pub long: Option<Long>,
    /// Whole input lines that parse, shown in the reference. Tests parse every one.
    pub examples: &'static [&'static str],
    /// A longer text for the reference, in Markdown; may be empty.
    pub doc: &'static str,
    /// The command that this is another form of, by its words; none if empty.
    pub form_of: &'static str,
}

impl Command {
    /// A command that answers at once.
    pub const fn new(syntax: &'static str, help: &'static str, handler: Handler) -> Self {
        Self { syntax, help, run: Run::Now(handler), long: None, examples: &[], doc: "", form_of: "" }
    }

    /// A command that takes its time.
    pub const fn later(syntax: &'static str, help: &'static str, handler: AsyncHandler) -> Self {
        Self { syntax, help, run: Run::Later(handler), long: None, examples: &[], doc: "", form_of: "" }
    }

    /// The same command, which takes its time where the arguments ask for much.
    pub const fn long(mut self, when: fn(&Args) -> bool, run: AsyncHandler) -> Self {
        self.long = Some(Long { when, run });
        self
    }

    /// The same command with examples: whole input lines.
    pub const fn examples(mut self, examples: &'static [&'static str]) -> Self {
        self.examples = examples;
        self
    }

    /// The same command, as another form of the one with these words and the same arguments.
    pub const fn form_of(mut self, words: &'static str) -> Self {
        self.form_of = words;
        self
    }

    /// The same command with a longer text for the reference.
    pub const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }
}
