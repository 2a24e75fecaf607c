//! Runs lines: the command line without sockets.

use std::borrow::Cow;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use shoal_module::Control;
use shoal_module::cli::{
    ArgType, Args, ClientGone, Command, Form, Output, Pace, Run as Handling, Sink, Text,
};

use crate::builtin::Builtin;
use crate::complaint::Complaint;
use crate::complete::Completion;
use crate::exec::{self, True};
use crate::help;
use crate::lex::{self, Statement};
use crate::listing::{self, AnswerPosition, Wanted};
use crate::matcher::Check;
use crate::output_filter::{FilterMode, OutputFilter};
use crate::progress::Progress;
use crate::reply::{Bounded, Collected, Reply};
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
        reply.prepend_text(collected.take());
        reply
    }

    /// Runs one line or a block of lines; slow commands and long listings print to `sink` while they run.
    pub async fn execute_with(&self, control: &Rc<Control>, input: &str, sink: &Sink) -> Reply {
        let (line, wishes) = FilterMode::of(input);
        if !wishes.is_empty() && !line.contains('\n') {
            let sieve = OutputFilter::new(sink.clone(), wishes);
            let reply = self.unsifted(control, line, &Sink::new(Rc::clone(&sieve) as _)).await;
            if !reply.is_ok() {
                return reply;
            }
            return Reply::output(Output::text(sieve.finish(&reply.text())), false);
        }
        self.unsifted(control, input, sink).await
    }

    async fn unsifted(&self, control: &Rc<Control>, input: &str, sink: &Sink) -> Reply {
        let among = if lex::statements(input).nth(1).is_some() {
            AnswerPosition::Others
        } else {
            AnswerPosition::None
        };
        self.block(input, &Run::new(control, sink, &Pace::default(), among)).await
    }

    /// Runs one line or a block of lines: whether all succeeded, and the text of the answers up to 1 MiB; the last line
    /// says it when there was more.
    pub async fn execute_bounded(&self, control: &Rc<Control>, input: &str) -> (bool, String) {
        let bounded = Rc::new(Bounded::default());
        let reply = self.execute_with(control, input, &Sink::new(Rc::clone(&bounded) as _)).await;
        let text = bounded.finish(&reply);
        (reply.is_ok() || bounded.is_full(), text)
    }

    /// Runs the commands of a block one by one, also behind one that fails; tells whether one asked to leave. `said` gets
    /// what each answers, by its line in the block; its failure to pass that on ends the run. A line that is already true
    /// has not failed.
    pub(crate) async fn batch(
        &self,
        control: &Rc<Control>,
        input: &str,
        sink: &Sink,
        mut said: impl AsyncFnMut(usize, &Reply) -> Result<(), ClientGone>,
    ) -> Result<bool, ClientGone> {
        let pace = Pace::default();
        let run = Run::new(control, sink, &pace, AnswerPosition::None);
        let (mut room, mut known) = (run.room(), None);
        for statement in lex::statements(input) {
            let mut reply = self.one(statement.text, &run, &mut room).await;
            if self.is_true(control, statement.text, &reply, &mut known).await {
                reply = Reply::default();
            }
            pace.give_way().await;
            said(statement.line, &reply).await?;
            if reply.wants_to_quit() {
                return Ok(true);
            }
            if sink.is_gone() {
                return Err(ClientGone);
            }
        }
        Ok(false)
    }

    /// Whether a line failed because what it asks for is so already. `known` is what is configured, once it was asked for.
    async fn is_true(
        &self,
        control: &Rc<Control>,
        line: &str,
        reply: &Reply,
        known: &mut Option<True>,
    ) -> bool {
        let Some(complaint) = reply.complaint() else {
            if let Some(known) = known
                && let Some(words) = self.in_full(control, line)
            {
                known.add(words);
            }
            return false;
        };
        let message = complaint.message();
        if !["already", "exists", "in use", "taken"].iter().any(|word| message.contains(word)) {
            return false;
        }
        let Some(words) = self.in_full(control, line) else { return false };
        if known.is_none() {
            // Boxed, because it is a line itself.
            let running = Box::pin(self.execute(control, "show running-config")).await;
            let text = if running.is_ok() { running.text() } else { String::new() };
            *known = Some(True::new(&text));
        }
        known.as_ref().is_some_and(|known| known.covers(&words))
    }

    /// The words of a command, in full and in its first form.
    fn in_full(&self, control: &Control, line: &str) -> Option<Vec<String>> {
        let parsed = self.table.parse(control, line, Check::Shape).ok()?;
        let args = parsed.taken.iter().map(|item| match (item.word, &item.text) {
            (true, _) => item.name.to_owned(),
            (false, Text::InLine) => line.get(item.span.clone()).unwrap_or_default().to_owned(),
            (false, Text::Other(text)) => text.to_string(),
        });
        let form = parsed.entry.command.form_of;
        let path = if form.is_empty() { &*parsed.entry.path } else { form };
        Some(path.split(' ').map(str::to_owned).chain(args).collect())
    }

    /// A command with all its words in full and in its first form, as far as it can be told without running it.
    ///
    /// # Errors
    /// It is no command.
    pub fn full_line(&self, control: &Control, line: &str) -> Result<String, Box<Complaint>> {
        if let Some(words) = self.in_full(control, line) {
            return Ok(words.iter().map(|word| lex::in_line(word)).collect::<Vec<_>>().join(" "));
        }
        self.table.parse(control, line, Check::Shape).map(|_| line.to_owned())
    }

    /// Runs a file at the start.
    pub async fn run_file(&self, control: &Rc<Control>, file: &str, how: FileRun<'_>) -> Reply {
        let collected = Rc::new(Collected::default());
        let sink = Sink::new(Rc::clone(&collected) as _);
        let pace = Pace::default();
        let run = Run::new(control, &sink, &pace, AnswerPosition::Others);
        let mut reply = self.exec(file, how, &run).await;
        reply.prepend_text(collected.take());
        reply
    }

    /// Runs the commands of a block one by one, also behind one that fails; `said` gets what each answers, by its line in
    /// the block. One that asks to leave ends the run.
    pub async fn run_all(&self, control: &Rc<Control>, input: &str, mut said: impl FnMut(usize, &Reply)) {
        let collected = Rc::new(Collected::default());
        let (sink, pace) = (Sink::new(Rc::clone(&collected) as _), Pace::default());
        let run = Run::new(control, &sink, &pace, AnswerPosition::None);
        let mut room = run.room();
        for statement in lex::statements(input) {
            let mut reply = self.one(statement.text, &run, &mut room).await;
            reply.prepend_text(collected.take());
            said(statement.line, &reply);
            if reply.wants_to_quit() {
                return;
            }
            pace.give_way().await;
        }
    }

    /// Runs commands that answer at once; one that does not is an error. For tests and start-up.
    pub fn execute_now(&self, control: &Rc<Control>, input: &str) -> Reply {
        let collected = Rc::new(Collected::default());
        let sink = Sink::new(Rc::clone(&collected) as _);
        let pace = Pace::hurried();
        let run = Run::new(control, &sink, &pace, AnswerPosition::None);
        let mut reply = without_waiting(self.block(input, &run)).unwrap_or_else(|| {
            Reply::error(Complaint::other("", "the command takes its time; it cannot run here"))
        });
        reply.prepend_text(collected.take());
        reply
    }

    /// What may stand at `cursor`, a byte position in `line`.
    pub fn complete(&self, control: &Control, line: &str, cursor: usize) -> Completion {
        self.table.complete(control, line, cursor)
    }

    /// What is wrong with a block of lines, by line number, as far as can be told without running it.
    pub fn check(&self, control: &Control, block: &str) -> Vec<(usize, Complaint)> {
        lex::statements(block).filter_map(|statement| self.fault(control, statement)).collect()
    }

    fn fault(&self, control: &Control, statement: Statement<'_>) -> Option<(usize, Complaint)> {
        let (line, _) = without_json(statement.text);
        if line.is_empty() || self.table.is_alike(control, line, Check::Shape) {
            return None;
        }
        let complaint = self.table.parse(control, line, Check::Shape).err()?;
        // A question is answered, whatever it is about.
        if help::question(line).is_some() { None } else { Some((statement.line, *complaint)) }
    }

    /// Runs a block and stops at its first failure.
    async fn block(&self, block: &str, run: &Run<'_>) -> Reply {
        let mut reply = Reply::default();
        let mut room = run.room();
        for statement in lex::statements(block) {
            if run.show(&mut reply).await.is_err() {
                return Reply::error(Complaint::other("", "interrupted"));
            }
            let one = self.one(statement.text, run, &mut room).await;
            let ends = !one.is_ok() || one.wants_to_quit();
            reply.append(one);
            if ends {
                break;
            }
            run.pace.give_way().await;
        }
        reply
    }

    /// Runs one command of many; `room` is where its arguments go.
    async fn one(&self, line: &str, run: &Run<'_>, room: &mut Args) -> Reply {
        match self.again(line, run, room) {
            Some(Ok(output)) if output.is_none() => Reply::output(output, run.wanted == Wanted::Json),
            Some(Ok(output)) => listing::answer(output, run.wanted, run.among, run.sink, run.pace).await,
            Some(Err(complaint)) => Reply::error(complaint),
            None => self.line(line, run).await,
        }
    }

    /// Runs a command that is like the one before and answers at once. A file of routes is a million of these: nothing
    /// is searched for or allocated. `None`: nothing was run, and [`line`](Self::line) knows what to do.
    fn again(&self, line: &str, run: &Run<'_>, room: &mut Args) -> Option<Result<Output, Complaint>> {
        let special = line.ends_with("--json") || help::question(line).is_some();
        if special || run.sink.is_gone() {
            return None;
        }
        let entry = self.table.again(run.control, line, room)?;
        let Command { run: Handling::Now(handler), long, .. } = *entry.command else { return None };
        if entry.builtin.is_some() || long.is_some_and(|long| (long.when)(room)) {
            return None;
        }
        let result = handler(run.control, room);
        Some(result.map_err(|error| Complaint::failed(&entry.path, room, &error)))
    }

    /// Runs one command. Those that answer at once need no task of their own.
    async fn line(&self, line: &str, run: &Run<'_>) -> Reply {
        if run.sink.is_gone() {
            return Reply::error(Complaint::other("", "interrupted"));
        }
        let (line, json) = without_json(line);
        if line.is_empty() {
            return Reply::default();
        }
        if let Some((question, place)) = help::question(line)
            && let Some(answer) = self.table.answer(run.control, question, place)
        {
            return answer.map_or_else(|c| Reply::error(*c), |text| Reply::output(Output::text(text), json));
        }
        let parsed = match self.table.parse(run.control, line, Check::Now) {
            Ok(parsed) => parsed,
            Err(complaint) => return Reply::error(*complaint),
        };
        let args = Args::new(Rc::clone(run.control), line).with_items(parsed.taken);
        if let Some(builtin) = parsed.entry.builtin {
            let run = Run { wanted: if json { Wanted::Json } else { run.wanted }, ..*run };
            let mut reply = self.builtin(builtin, &args, &run).await;
            if json {
                reply.make_json();
            }
            return reply;
        }
        let command = parsed.entry.command;
        let later = match (command.run, command.long) {
            (Handling::Later(handler), _) => Some(handler),
            (Handling::Now(_), Some(long)) if (long.when)(&args) => Some(long.run),
            (Handling::Now(_), _) => None,
        };
        let result = match (later, command.run) {
            (Some(handler), _) | (None, Handling::Later(handler)) => {
                handler(Rc::clone(run.control), args.clone(), run.sink.clone()).await
            }
            (None, Handling::Now(handler)) => handler(run.control, &args),
        };
        match result {
            Ok(output) => {
                let wanted = if json { Wanted::Json } else { run.wanted };
                listing::answer(output, wanted, run.among, run.sink, run.pace).await
            }
            Err(error) => Reply::error(Complaint::failed(&parsed.entry.path, &args, &error)),
        }
    }

    /// Boxed, because a line may run a file of lines.
    fn builtin<'a>(
        &'a self,
        builtin: Builtin,
        args: &'a Args,
        run: &'a Run<'_>,
    ) -> Pin<Box<dyn Future<Output = Reply> + 'a>> {
        let among = if builtin == Builtin::Exec { AnswerPosition::Others } else { run.among };
        let deeper = Run { depth: run.depth + 1, among, ..*run };
        Box::pin(async move {
            match builtin {
                Builtin::Comment => Reply::default(),
                Builtin::Quit => Reply::leave(),
                Builtin::ShowCli => Reply::output(Output::view(self.table.show_cli()), false),
                Builtin::Log => {
                    tracing::info!(target: "cli", "{}", args.text("text").unwrap_or(""));
                    Reply::default()
                }
                Builtin::Uncomment | Builtin::Exec if run.depth >= MAX_DEPTH => {
                    Reply::error(Complaint::other("", "commands run each other too deeply"))
                }
                Builtin::Uncomment => self.line(args.text("command").unwrap_or(""), &deeper).await,
                Builtin::Exec => {
                    let how = FileRun { strict: args.has("strict"), restored: None };
                    self.exec(args.text("file").unwrap_or(""), how, &deeper).await
                }
            }
        })
    }

    /// Runs a file: what is right, in order; what was not is listed at the end. Others are served meanwhile.
    async fn exec(&self, file: &str, how: FileRun<'_>, run: &Run<'_>) -> Reply {
        let refused = |error| Reply::error(Complaint::other("exec", format!("{file}: {error}")));
        let text = match exec::read(file, run.pace).await {
            Ok(text) => text,
            Err(error) => return refused(error),
        };
        let lines = match self.survey(file, &text, how.strict, run).await {
            Ok(lines) => lines,
            Err(reply) => return reply,
        };
        let (mut reply, mut faults, mut failed) = (Reply::default(), Vec::new(), 0);
        let mut progress = Progress::new(file, lines);
        let (mut room, mut known, mut saved) = (run.room(), None, how.restored.map(True::new));
        for statement in lex::statements(&text) {
            if run.show(&mut reply).await.is_err() {
                return refused(std::io::Error::other("interrupted"));
            }
            let Some(line) = self.not_restored(run.control, statement.text, saved.as_mut()) else { continue };
            let one = self.one(&line, run, &mut room).await;
            if run.sink.is_gone() {
                return refused(std::io::Error::other("interrupted"));
            }
            if self.is_true(run.control, &line, &one, &mut known).await {
                continue;
            }
            if let Some(complaint) = one.complaint() {
                failed += 1;
                if how.strict {
                    let place = format!("{file}:{}: {}", statement.line, complaint.to_string().trim_end());
                    reply.append(Reply::error(Complaint::other("exec", place)));
                    return reply;
                }
                if faults.len() < exec::MOST_FAULTS {
                    faults.push((statement.line, complaint.clone()));
                }
                continue;
            }
            let quit = one.wants_to_quit();
            // A million routes say nothing a million times.
            if !one.is_silent() || quit {
                reply.append(one);
            }
            if quit {
                break;
            }
            progress.step(run.sink);
            run.pace.give_way().await;
        }
        if failed > 0 {
            let text = exec::summary(file, failed, lines, &faults);
            reply.append(Reply::error(Complaint::other("exec", text)));
        }
        reply
    }

    /// How many commands a file has; if it is to be run as a whole or not at all, what is wrong with them.
    async fn survey(&self, file: &str, text: &str, strict: bool, run: &Run<'_>) -> Result<usize, Reply> {
        let (mut faults, mut lines) = (Vec::new(), 0);
        for statement in lex::statements(text) {
            lines += 1;
            if strict {
                faults.extend(self.fault(run.control, statement));
            }
            if faults.len() >= exec::MOST_FAULTS || run.sink.is_gone() {
                break;
            }
            run.pace.give_way().await;
        }
        if faults.is_empty() {
            Ok(lines)
        } else {
            Err(Reply::error(Complaint::other("exec", exec::refusal(file, &faults))))
        }
    }

    /// The line as it is to be run after what was saved was restored; nothing if that has made or named what the line makes
    /// or names.
    fn not_restored<'t>(
        &self,
        control: &Control,
        line: &'t str,
        saved: Option<&mut True>,
    ) -> Option<Cow<'t, str>> {
        let Some(saved) = saved else { return Some(Cow::Borrowed(line)) };
        let first = line.trim_start().chars().next();
        // Lines that make or name nothing, a million routes for one, are not read twice.
        let may = matches!(first, Some('c' | 'l')) || (first == Some('s') && saved.has_names());
        let words = if may { self.in_full(control, line) } else { None };
        let makes = |words: &[String]| words.iter().take(2).any(|word| word.starts_with("create"));
        if words.is_some_and(|words| saved.names(&words) || makes(&words) && saved.use_up(&words)) {
            return None;
        }
        Some(saved.with_names(line))
    }
}

/// How a file is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileRun<'a> {
    /// Nothing of it when a line is wrong, and up to the first failure.
    pub strict: bool,
    /// What was restored a moment ago: what it made is not made once more.
    pub restored: Option<&'a str>,
}

/// The result of what waits for nothing; it may have given way to others.
fn without_waiting<T>(work: impl Future<Output = T>) -> Option<T> {
    let woken = Arc::new(WakeFlag::default());
    let (waker, mut work) = (Waker::from(Arc::clone(&woken)), pin!(work));
    loop {
        match work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return Some(result),
            Poll::Pending if woken.0.swap(false, Ordering::Relaxed) => {}
            Poll::Pending => return None,
        }
    }
}

/// Whether something was woken.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What runs lines, and for which client.
#[derive(Clone, Copy)]
struct Run<'a> {
    control: &'a Rc<Control>,
    sink: &'a Sink,
    depth: usize,
    pace: &'a Pace,
    among: AnswerPosition,
    /// Whether a line around it asked for JSON.
    wanted: Wanted,
}

impl<'a> Run<'a> {
    /// A run of its own, in no file.
    fn new(control: &'a Rc<Control>, sink: &'a Sink, pace: &'a Pace, among: AnswerPosition) -> Self {
        Run { control, sink, depth: 0, pace, among, wanted: Wanted::AsUsual }
    }

    /// Where arguments go.
    fn room(&self) -> Args {
        Args::new(Rc::clone(self.control), "")
    }

    /// Shows what commands before the next one answered, to a client of text: the next one may print itself, and what
    /// many answer would otherwise be kept until the last one.
    async fn show(&self, reply: &mut Reply) -> Result<(), ClientGone> {
        if self.sink.form() != Some(Form::Text) || reply.is_silent() || !reply.is_ok() {
            return Ok(());
        }
        let text = reply.take_text();
        self.sink.piece(&text)?;
        self.sink.room().await
    }
}

/// A line without `--json` before or after it, and whether it was there.
fn without_json(line: &str) -> (&str, bool) {
    let line = lex::trimmed(line);
    if let [b'!'..=b',' | b'.'..=b'~', .., last] = line.as_bytes()
        && *last != b'n'
    {
        return (line, false);
    }
    let before = line.strip_prefix("--json").filter(|r| r.is_empty() || r.starts_with(char::is_whitespace));
    let after = || line.strip_suffix("--json").filter(|r| r.ends_with(char::is_whitespace));
    match before.or_else(after) {
        Some(rest) => (rest.trim(), true),
        None => (line, false),
    }
}
