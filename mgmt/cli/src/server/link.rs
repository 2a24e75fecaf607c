//! One client's connection: bounded buffers both ways, and pumps between them and the socket.
//!
//! The session reads and writes the buffers; it never touches the socket. So a client that leaves is
//! noticed while a command runs, and one that does not read cannot hold the control thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_io::Timer;
use futures_lite::future::{or, pending};
use serde_json::Value;
use shoal_module::cli::ClientGone;
use shoal_module::door::Signal;

use super::stream::Stream;
use crate::sessions::{Session, Sessions};

/// The longest input line.
pub const MAX_LINE: usize = 1 << 20;
/// Output that the client has not read.
const MAX_OUTPUT: usize = 1 << 20;
/// A listing goes on when there is less than this.
const ROOM: usize = 64 << 10;
/// Memory for output that is kept when there is none.
const KEPT: usize = 64 << 10;
/// Input that the session has not read; more stays in the socket.
const MAX_INPUT: usize = 2 * MAX_LINE;
/// For what has come already, and is to be read.
const LAST_LOOK: Duration = Duration::from_millis(1);
/// How long a command may go on after its client has left.
const GRACE: Duration = Duration::from_secs(30);

/// What interrupts a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupts {
    /// Ctrl-C, or telnet's interrupt.
    Telnet,
    /// The line `{"interrupt":true}`, or the end of the input.
    Json,
}

/// A client's connection.
pub struct Link {
    stream: Stream,
    /// As others see it.
    pub session: Rc<Session>,
    deadline: Duration,
    input: RefCell<VecDeque<u8>>,
    output: RefCell<VecDeque<u8>>,
    /// No more input will come.
    ended: Cell<bool>,
    /// The client does not read any more.
    gone: Cell<bool>,
    /// A command runs.
    busy: Cell<bool>,
    /// When the last input came, or the last command ended.
    heard: Cell<Instant>,
    /// The session goes, for another client needs it.
    given_way: Cell<bool>,
    interrupted: Cell<bool>,
    interrupts: Cell<Interrupts>,
    changed: Signal,
}

impl Link {
    pub fn new(stream: Stream, deadline: Duration, sessions: &Sessions) -> Self {
        let session = sessions.open(stream.number(), stream.peer(), stream.user());
        Self {
            stream,
            session,
            deadline,
            input: RefCell::default(),
            output: RefCell::default(),
            ended: Cell::new(false),
            gone: Cell::new(false),
            busy: Cell::new(false),
            heard: Cell::new(Instant::now()),
            given_way: Cell::new(false),
            interrupted: Cell::new(false),
            interrupts: Cell::new(Interrupts::Telnet),
            changed: Signal::default(),
        }
    }

    /// Moves bytes between buffers and socket; ends some time after the client has gone.
    pub async fn pump(&self) {
        or(self.pump_in(), self.pump_out()).await;
        Timer::after(GRACE).await;
    }

    async fn pump_in(&self) {
        let mut chunk = vec![0; 16 << 10];
        loop {
            self.changed.until(|| self.input.borrow().len() < MAX_INPUT).await;
            match self.stream.read(&mut chunk).await {
                Ok(0) | Err(_) => break,
                Ok(n) => {
                    let bytes = chunk.get(..n).unwrap_or(&[]);
                    if self.busy.get() && self.interrupts_in(bytes) {
                        self.interrupted.set(true);
                    }
                    self.heard.set(Instant::now());
                    self.input.borrow_mut().extend(bytes);
                    self.changed.notify();
                }
            }
        }
        self.ended.set(true);
        self.changed.notify();
        // What was asked before the end is still answered: `printf 'show version\n' | socat ...`.
        pending::<()>().await;
    }

    fn interrupts_in(&self, bytes: &[u8]) -> bool {
        match self.interrupts.get() {
            Interrupts::Telnet => bytes.contains(&3) || bytes.windows(2).any(|w| w == [255, 244]),
            // Inside a JSON string the quotes would be escaped, so this is always the message itself.
            Interrupts::Json => bytes.windows(12).any(|w| w == b"{\"interrupt\""),
        }
    }

    async fn pump_out(&self) {
        let mut chunk = Vec::new();
        loop {
            self.changed.until(|| self.gone.get() || !self.output.borrow().is_empty()).await;
            if self.gone.get() {
                break;
            }
            chunk.clear();
            self.copy_output(&mut chunk);
            let write = async { self.stream.write(&chunk).await.ok() };
            let late = async {
                Timer::after(self.deadline).await;
                None
            };
            match or(write, late).await {
                Some(n) if n > 0 => self.written(n),
                _ => break,
            }
            self.changed.notify();
        }
        self.leave();
    }

    /// Copies the next output to be written.
    fn copy_output(&self, chunk: &mut Vec<u8>) {
        let output = self.output.borrow();
        let (first, second) = output.as_slices();
        let most = 64 << 10;
        chunk.extend_from_slice(first.get(..most).unwrap_or(first));
        let left = most - chunk.len();
        chunk.extend_from_slice(second.get(..left).unwrap_or(second));
    }

    fn written(&self, bytes: usize) {
        let mut output = self.output.borrow_mut();
        output.drain(..bytes);
        if output.is_empty() {
            output.shrink_to(KEPT);
        }
    }

    fn leave(&self) {
        self.gone.set(true);
        self.changed.notify();
    }

    /// Adds output without waiting. A client with too much unread output is cut off.
    pub fn push(&self, bytes: &[u8]) -> Result<(), ClientGone> {
        if self.output.borrow().len() + bytes.len() > MAX_OUTPUT {
            self.leave();
        }
        if self.gone.get() {
            return Err(ClientGone);
        }
        self.output.borrow_mut().extend(bytes);
        self.changed.notify();
        Ok(())
    }

    /// Adds output of any length, waiting for the client to read.
    pub async fn send(&self, bytes: &[u8]) -> Result<(), ClientGone> {
        for chunk in bytes.chunks(ROOM) {
            let room = || self.output.borrow().len() + chunk.len() <= MAX_OUTPUT;
            self.changed.until(|| self.gone.get() || room()).await;
            self.push(chunk)?;
        }
        Ok(())
    }

    /// Ready when there is room for a piece of a listing, or no reader.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.changed.poll(cx, || self.is_gone() || self.output.borrow().len() < ROOM)
    }

    /// Waits until the client has read everything, or has gone.
    pub async fn drain(&self) {
        self.changed.until(|| self.gone.get() || self.output.borrow().is_empty()).await;
    }

    /// The next byte of input, if it has come.
    pub fn peek(&self) -> Option<u8> {
        self.input.borrow().front().copied()
    }

    /// Takes the next byte of input, if it has come.
    pub fn take(&self) -> Option<u8> {
        let byte = self.input.borrow_mut().pop_front();
        if byte.is_some() && self.input.borrow().len() == MAX_INPUT - 1 {
            self.changed.notify();
        }
        byte
    }

    /// Takes input up to the next line end, which is left out, and adds it to `line`; true when that was the end.
    pub fn take_line(&self, line: &mut Vec<u8>) -> bool {
        let mut input = self.input.borrow_mut();
        let was_full = input.len() >= MAX_INPUT;
        // What is in memory cannot fail to be read.
        let _: io::Result<usize> = input.read_until(b'\n', line);
        drop(input);
        if was_full {
            self.changed.notify();
        }
        let whole = line.last() == Some(&b'\n');
        if whole {
            line.pop();
        }
        whole
    }

    /// Takes input up to the next byte that is no text, a control character or telnet's, and adds it to `line`; tells
    /// how much that was.
    pub fn take_text(&self, line: &mut Vec<u8>) -> usize {
        let mut input = self.input.borrow_mut();
        let was_full = input.len() >= MAX_INPUT;
        let (first, _) = input.as_slices();
        let text = first.iter().position(|b| !matches!(b, b'\t' | b' '..=254)).unwrap_or(first.len());
        line.extend_from_slice(first.get(..text).unwrap_or_default());
        input.drain(..text);
        drop(input);
        if was_full {
            self.changed.notify();
        }
        text
    }

    /// Waits for input; false after `limit`, or at the end of it. When the thread was held up, the time may be over before what has come
    /// meanwhile is read: there is a last look.
    pub async fn wait_input(&self, limit: Duration) -> bool {
        self.input_within(limit).await || self.input_within(LAST_LOOK).await
    }

    async fn input_within(&self, limit: Duration) -> bool {
        let late = async {
            Timer::after(limit).await;
            false
        };
        or(self.input(), late).await
    }

    /// Waits for input; false at the end of it.
    pub async fn input(&self) -> bool {
        self.changed.until(|| self.peek().is_some() || self.ended.get() || self.gone.get()).await;
        self.peek().is_some() && !self.gone.get()
    }

    /// How long the client has been idle; not at all while a command of it runs.
    pub fn idle(&self) -> Duration {
        if self.busy.get() { Duration::ZERO } else { self.heard.get().elapsed() }
    }

    /// Says why, and lets the session end as if the client had sent all it wants to.
    pub fn give_way(&self, why: &str) {
        let line = match self.interrupts.get() {
            Interrupts::Telnet => format!("\r\n{why}\r\n"),
            Interrupts::Json => super::json::failure(&Value::Null, why).to_string() + "\n",
        };
        // One that has gone needs no reason.
        let _: Result<(), ClientGone> = self.push(line.as_bytes());
        self.given_way.set(true);
        self.ended.set(true);
        self.changed.notify();
    }

    /// Whether it does.
    pub fn has_given_way(&self) -> bool {
        self.given_way.get()
    }

    /// Writes what fits without waiting.
    pub fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write_now(bytes)
    }

    /// Whether the client came by TCP.
    pub fn is_tcp(&self) -> bool {
        self.stream.is_tcp()
    }

    /// Whether no more input will come.
    pub fn ended(&self) -> bool {
        self.gone.get() || (self.ended.get() && self.peek().is_none())
    }

    /// Chooses what interrupts commands.
    pub fn interrupts(&self, interrupts: Interrupts) {
        self.interrupts.set(interrupts);
    }

    /// Marks the beginning and the end of a command.
    pub fn busy(&self, busy: bool) {
        self.busy.set(busy);
        self.heard.set(Instant::now());
        self.interrupted.set(false);
    }

    /// Whether the client of the running command has gone.
    pub fn is_gone(&self) -> bool {
        let left = self.interrupts.get() == Interrupts::Json && self.ended.get();
        self.gone.get() || self.interrupted.get() || left
    }

    /// Ready when [`Link::is_gone`] holds.
    pub fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.changed.poll(cx, || self.is_gone())
    }
}
