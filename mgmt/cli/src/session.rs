//! Runs lines: the command line without sockets.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use futures_lite::future::{block_on, poll_once};
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, Command, Output, Run, Sink};

use crate::builtin::Builtin;
use crate::complaint::Complaint;
use crate::complete::Completion;
use crate::exec;
use crate::help;
use crate::lex;
use crate::matcher::Check;
use crate::reply::{Collected, Reply};
use crate::table::{Table, TableError};

/// Files that run files that run files.
const MAX_DEPTH: usize = 8;

/// The command line of a router.
#[derive(Debug)]
pub struct Cli {
    pub(crate) table: Table,
}

impl Cli {
    /// A command line with the commands and argument types of all modules.
    pub fn new(
        commands: impl IntoIterator<Item = &'static Command>,
        arg_types: impl IntoIterator<Item = &'static ArgType>,
    ) -> Result<Self, TableError> {
        Ok(Self { table: Table::new(commands, arg_types)? })
    }

    /// Runs one line or a block of lines. What slow commands print is part of the reply.
    pub async fn execute(&self, control: &Rc<Control>, input: &str) -> Reply {
        let collected = Rc::new(Collected::default());
        let mut reply = self.execute_with(control, input, &Sink::new(Rc::clone(&collected) as _)).await;
        let printed = collected.take();
        if !printed.is_empty() {
            reply.prepend(Output::text(printed));
        }
        reply
    }

    /// Runs one line or a block of lines; slow commands print to `sink` while they run.
    pub async fn execute_with(&self, control: &Rc<Control>, input: &str, sink: &Sink) -> Reply {
        self.block(control, input, sink, 0).await
    }

    /// Runs commands that answer at once; one that does not is an error. For tests and start-up.
    pub fn execute_now(&self, control: &Rc<Control>, input: &str) -> Reply {
        block_on(poll_once(self.execute(control, input))).unwrap_or_else(|| {
            Reply::error(Complaint::other("", "the command takes its time; it cannot run here"))
        })
    }

    /// What may stand at `cursor`, a byte position in `line`.
    pub fn complete(&self, control: &Control, line: &str, cursor: usize) -> Completion {
        self.table.complete(control, line, cursor)
    }

    /// What is wrong with a block of lines, by line number, as far as can be told without running it.
    pub fn check(&self, control: &Control, block: &str) -> Vec<(usize, Complaint)> {
        let mut faults = Vec::new();
        for statement in lex::statements(block) {
            let (line, _) = without_json(statement.text);
            if help::question(line).is_some() || line.is_empty() {
                continue;
            }
            if let Err(complaint) = self.table.parse(control, line, Check::Shape) {
                faults.push((statement.line, *complaint));
            }
        }
        faults
    }

    /// Runs a block and stops at its first failure.
    async fn block(&self, control: &Rc<Control>, block: &str, sink: &Sink, depth: usize) -> Reply {
        let mut reply = Reply::default();
        for statement in lex::statements(block) {
            reply.append(self.line(control, statement.text, sink, depth).await);
            if !reply.is_ok() || reply.wants_to_quit() {
                break;
            }
        }
        reply
    }

    /// Runs one command. Boxed, because a line may run a file of lines.
    fn line<'a>(
        &'a self,
        control: &'a Rc<Control>,
        line: &'a str,
        sink: &'a Sink,
        depth: usize,
    ) -> Pin<Box<dyn Future<Output = Reply> + 'a>> {
        Box::pin(async move {
            if sink.is_gone() {
                return Reply::error(Complaint::other("", "interrupted"));
            }
            let (line, json) = without_json(line);
            if line.is_empty() {
                return Reply::default();
            }
            if let Some((question, place)) = help::question(line)
                && let Some(answer) = self.table.answer(control, question, place)
            {
                return answer
                    .map_or_else(|c| Reply::error(*c), |text| Reply::output(Output::text(text), json));
            }
            let parsed = match self.table.parse(control, line, Check::Now) {
                Ok(parsed) => parsed,
                Err(complaint) => return Reply::error(*complaint),
            };
            let args = parsed.taken.into_iter().fold(Args::new(Rc::clone(control), line), Args::with_item);
            if let Some(builtin) = parsed.entry.builtin {
                let mut reply = self.builtin(builtin, control, &args, sink, depth).await;
                if json {
                    reply.make_json();
                }
                return reply;
            }
            let result = match parsed.entry.command.run {
                Run::Now(handler) => handler(control, &args),
                Run::Later(handler) => handler(Rc::clone(control), args.clone(), sink.clone()).await,
            };
            match result {
                Ok(output) => Reply::output(output, json),
                Err(error) => Reply::error(Complaint::failed(&parsed.entry.path, &args, &error)),
            }
        })
    }

    async fn builtin(
        &self,
        builtin: Builtin,
        control: &Rc<Control>,
        args: &Args,
        sink: &Sink,
        depth: usize,
    ) -> Reply {
        match builtin {
            Builtin::Comment => Reply::default(),
            Builtin::Quit => Reply::leave(),
            Builtin::ShowCli => Reply::output(Output::view(self.table.show_cli()), false),
            Builtin::Log => {
                tracing::info!(target: "cli", "{}", args.text("text").unwrap_or(""));
                Reply::default()
            }
            Builtin::Uncomment | Builtin::Exec if depth >= MAX_DEPTH => {
                Reply::error(Complaint::other("", "commands run each other too deeply"))
            }
            Builtin::Uncomment => {
                self.line(control, args.text("command").unwrap_or(""), sink, depth + 1).await
            }
            Builtin::Exec => self.exec(control, args.text("file").unwrap_or(""), sink, depth + 1).await,
        }
    }

    /// Runs a file: all of its lines are checked first.
    async fn exec(&self, control: &Rc<Control>, file: &str, sink: &Sink, depth: usize) -> Reply {
        let text = match exec::read(file) {
            Ok(text) => text,
            Err(error) => return Reply::error(Complaint::other("exec", format!("{file}: {error}"))),
        };
        let faults = self.check(control, &text);
        if !faults.is_empty() {
            return Reply::error(Complaint::other("exec", exec::refusal(file, &faults)));
        }
        let mut reply = Reply::default();
        for statement in lex::statements(&text) {
            let one = self.line(control, statement.text, sink, depth).await;
            if let Some(complaint) = one.complaint() {
                let place = format!("{file}:{}: {}", statement.line, complaint.to_string().trim_end());
                reply.append(Reply::error(Complaint::other("exec", place)));
                break;
            }
            let quit = one.wants_to_quit();
            reply.append(one);
            if quit {
                break;
            }
        }
        reply
    }
}

/// A line without `--json` before or after it, and whether it was there.
fn without_json(line: &str) -> (&str, bool) {
    let line = line.trim();
    let before = line.strip_prefix("--json").filter(|r| r.is_empty() || r.starts_with(char::is_whitespace));
    let after = || line.strip_suffix("--json").filter(|r| r.ends_with(char::is_whitespace));
    match before.or_else(after) {
        Some(rest) => (rest.trim(), true),
        None => (line, false),
    }
}
