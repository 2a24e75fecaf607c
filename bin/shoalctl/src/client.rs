//! The JSON protocol of the router's command-line socket, from the client's side.

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::connection::{Connection, host_and_port};
use crate::interrupt::Interrupt;
use crate::show;

/// How long the router has to greet. Another program, VPP for one, may listen on a socket of that name.
const GREETING: Duration = Duration::from_secs(10);

/// A connection to the router.
pub struct Client {
    reader: BufReader<Connection>,
    last_id: u64,
    /// What the router calls its prompt.
    pub prompt: String,
}

/// The router cannot be reached, or broke off.
#[derive(Debug)]
pub enum Error {
    /// No router listens on any of these.
    NoRouter(Vec<(PathBuf, io::Error)>),
    /// The connection failed.
    Lost(io::Error),
    /// The router refused the session, in its own words.
    Refused(String),
    /// What listens there does not speak as this router does; its first words.
    Foreign(PathBuf, String),
    /// The router has closed the session, in its own words.
    Closed(String),
    /// A file of commands cannot be read.
    File(PathBuf, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRouter(tried) => {
                write!(f, "cannot reach the router")?;
                for (path, error) in tried {
                    let tcp = host_and_port(path).is_some();
                    let why = if tcp { error.to_string() } else { reason(error) };
                    write!(f, "\n  {}: {why}", path.display())?;
                }
                write!(
                    f,
                    "\nStart it with `shoal -c /etc/shoal/startup.conf', or name its socket with -s SOCKET."
                )
            }
            Self::Lost(error) => write!(f, "lost the router: {error}"),
            Self::Refused(text) => write!(f, "the router refused the session: {text}"),
            Self::Foreign(path, text) => {
                let seconds = GREETING.as_secs();
                write!(f, "{}: no answer of shoal's in {seconds} s", path.display())?;
                if text.is_empty() { Ok(()) } else { write!(f, ", but: {text}") }
            }
            Self::Closed(text) => write!(f, "the router closed the session: {text}"),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such socket; is the router running?".into(),
        ErrorKind::ConnectionRefused => "no router listens on it; it has stopped".into(),
        ErrorKind::PermissionDenied => "not permitted; its group may connect, or root".into(),
        _ => error.to_string(),
    }
}

/// What a command answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Whether it succeeded.
    pub ok: bool,
    /// Whether the session is over.
    pub quit: bool,
    /// Text for people; empty if JSON was asked for and there was no error.
    pub text: String,
    /// JSON, where it was asked for: the answer or the error.
    pub json: Option<Value>,
    /// Whether the JSON came in pieces before.
    pub in_pieces: bool,
}

/// What comes before an answer.
#[derive(Debug, Clone, Copy)]
pub enum Interim<'a> {
    /// What a command prints while it runs.
    Said(&'a str),
    /// A piece of an answer as long as a table: text, or JSON where it was asked for.
    Piece(&'a str),
}

/// Where that goes; `false`: the reader wants no more of it.
pub type Stream<'a> = &'a mut dyn FnMut(Interim<'_>) -> bool;

/// One possibility at the cursor.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What to insert, or the name of an argument.
    pub text: String,
    /// What it is.
    pub help: String,
    /// Show it, do not insert it.
    pub hint: bool,
}

impl Client {
    /// Connects to the first of these sockets that somebody serves.
    pub fn connect(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut tried = Vec::new();
        for path in paths {
            match Self::open(path) {
                Err(Error::Lost(error)) => tried.push((path.clone(), error)),
                other => return other,
            }
        }
        Err(Error::NoRouter(tried))
    }

    fn open(path: &Path) -> Result<Self, Error> {
        let mut stream = Connection::open(path).map_err(Error::Lost)?;
        stream.set_read_timeout(Some(GREETING)).map_err(Error::Lost)?;
        // A refused session may be closed already; then the router's message is there to read.
        let _ = stream.write_all(b"{\"shoal\":1}\n");
        let mut client = Self { reader: BufReader::new(stream), last_id: 0, prompt: String::new() };
        // The router greets telnet clients before it knows us.
        let mut greeting = Vec::new();
        let greeted = client.reader.read_until(b'{', &mut greeting);
        let timed_out =
            greeted.is_err_and(|e| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        if greeting.pop() != Some(b'{') {
            let said: Vec<u8> = greeting.into_iter().filter(|b| b.is_ascii_graphic() || *b == b' ').collect();
            let said = String::from_utf8_lossy(&said).into_owned();
            return Err(if timed_out { Error::Foreign(path.to_owned(), said) } else { Error::Refused(said) });
        }
        let hello = client.read_value("{")?;
        client.reader.get_ref().set_read_timeout(None).map_err(Error::Lost)?;
        client.prompt = text_of(&hello, "prompt");
        Ok(client)
    }

    /// Runs a command. `stream` gets what it prints while it runs; an interrupt stops it.
    pub fn execute(
        &mut self,
        line: &str,
        as_json: bool,
        stream: Stream<'_>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Answer, Error> {
        let id = self.send(json!({"execute": line, "json": as_json}))?;
        let mut enough = false;
        loop {
            if self.reader.buffer().is_empty()
                && let Some(interrupt) = interrupt
                && interrupt.wait(self.reader.get_ref().as_fd()).map_err(Error::Lost)?
            {
                self.reader.get_mut().write_all(b"{\"interrupt\":true}\n").map_err(Error::Lost)?;
                continue;
            }
            let reply = self.read_value("")?;
            if reply.get("id").is_some_and(|i| !i.is_null()) && reply.get("id") != Some(&id) {
                continue;
            }
            match said_meanwhile(&reply, stream) {
                MessageKind::Answer => {}
                MessageKind::Meanwhile => continue,
                MessageKind::Enough => {
                    if !std::mem::replace(&mut enough, true) {
                        self.reader.get_mut().write_all(b"{\"interrupt\":true}\n").map_err(Error::Lost)?;
                    }
                    continue;
                }
            }
            return Ok(answer_in(&reply, as_json));
        }
    }

    /// Runs many commands, one a line, also behind one that fails. `answered` gets what each has to say, with its line;
    /// false when the run has ended before its last line.
    pub fn batch(
        &mut self,
        lines: &str,
        as_json: bool,
        stream: Stream<'_>,
        answered: &mut dyn FnMut(usize, &Answer),
    ) -> Result<bool, Error> {
        let id = self.send(json!({"batch": lines, "json": as_json}))?;
        loop {
            let reply = self.read_value("")?;
            if reply.get("id").is_some_and(|i| !i.is_null()) && reply.get("id") != Some(&id) {
                continue;
            }
            if !matches!(said_meanwhile(&reply, stream), MessageKind::Answer) {
                continue;
            }
            if reply.get("done").is_some() {
                return Ok(!flag(&reply, "ended"));
            }
            let line = reply.get("line").and_then(Value::as_u64).unwrap_or(1) as usize;
            answered(line, &answer_in(&reply, as_json));
            if reply.get("line").is_none() {
                // The router did not understand the request, or refused it.
                return Ok(false);
            }
        }
    }

    /// Tells the router that more than one command will come: a candidate configuration is kept until the end.
    pub fn stay(&mut self) -> Result<(), Error> {
        let id = self.send(json!({"session": true}))?;
        // A router that does not know of sessions answers with an error, which is as well.
        while self.read_value("")?.get("id") != Some(&id) {}
        Ok(())
    }

    /// What may stand at `cursor`, and where the word there begins.
    pub fn complete(&mut self, line: &str, cursor: usize) -> Result<(usize, Vec<Candidate>), Error> {
        let id = self.send(json!({"complete": line, "cursor": cursor}))?;
        loop {
            let reply = self.read_value("")?;
            if reply.get("id") != Some(&id) {
                continue;
            }
            let start = reply.get("start").and_then(Value::as_u64).unwrap_or(0) as usize;
            let list = reply.get("candidates").and_then(Value::as_array).cloned().unwrap_or_default();
            let candidate = |v: &Value| Candidate {
                text: text_of(v, "text"),
                help: text_of(v, "help"),
                hint: v.get("hint").and_then(Value::as_bool).unwrap_or(false),
            };
            return Ok((start, list.iter().map(candidate).collect()));
        }
    }

    fn send(&mut self, mut request: Value) -> Result<Value, Error> {
        self.last_id += 1;
        let id = Value::from(self.last_id);
        if let Some(fields) = request.as_object_mut() {
            fields.insert("id".into(), id.clone());
        }
        let sent = self.reader.get_mut().write_all(format!("{request}\n").as_bytes());
        sent.map_err(|error| match self.read_value("") {
            // It closed the session before, with a reason.
            Ok(said) => Error::Closed(text_of(&said, "text").trim_end().to_owned()),
            Err(_) => Error::Lost(error),
        })?;
        Ok(id)
    }

    fn read_value(&mut self, start: &str) -> Result<Value, Error> {
        let mut line = start.to_owned();
        loop {
            let read = self.reader.read_line(&mut line).map_err(Error::Lost)?;
            if read == 0 {
                return Err(Error::Lost(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "it closed the connection",
                )));
            }
            let value: Value = serde_json::from_str(&line).map_err(|e| Error::Lost(e.into()))?;
            match value.get("notice").and_then(Value::as_str) {
                Some(notice) => eprintln!("% {}", notice.trim_end().replace('\n', "\n% ")),
                None => return Ok(value),
            }
            line.clear();
        }
    }
}

/// What a message of the router was.
enum MessageKind {
    Answer,
    Meanwhile,
    /// The same, and the reader wants no more of it.
    Enough,
}

/// Shows what is no answer yet.
fn said_meanwhile(reply: &Value, stream: Stream<'_>) -> MessageKind {
    let text = |name: &str| reply.get(name).and_then(Value::as_str);
    let said = match (text("stream"), text("piece")) {
        (Some(text), _) if flag(reply, "listing") => Interim::Piece(text),
        (Some(text), _) => Interim::Said(text),
        (None, Some(piece)) => Interim::Piece(piece),
        (None, None) => {
            let progress = text("progress").inspect(|text| show::progress(text));
            return if progress.is_some() { MessageKind::Meanwhile } else { MessageKind::Answer };
        }
    };
    if stream(said) { MessageKind::Meanwhile } else { MessageKind::Enough }
}

fn answer_in(reply: &Value, as_json: bool) -> Answer {
    let json = if as_json { reply.get("json").or_else(|| reply.get("error")).cloned() } else { None };
    let (ok, quit, in_pieces) = (flag(reply, "ok"), flag(reply, "quit"), flag(reply, "pieces"));
    Answer { ok, quit, text: text_of(reply, "text"), json, in_pieces }
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn text_of(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or("").to_owned()
}
