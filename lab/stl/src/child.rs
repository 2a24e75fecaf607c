//! Runs Python in a process of its own: so much time, so many bytes, and its whole process group ended afterwards.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::ProfileError;

/// How much a profile may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From start to answer.
    pub time: Duration,
    /// Bytes of address space; Python itself takes about 20 MB, Scapy 150.
    pub memory: u64,
    /// Bytes of JSON.
    pub answer: usize,
    /// Bytes that it prints.
    pub printed: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { time: Duration::from_secs(20), memory: 1 << 30, answer: 64 << 20, printed: 4 << 20 }
    }
}

/// A child's output.
pub(crate) struct ChildOutput {
    pub(crate) answer: Vec<u8>,
    pub(crate) printed: String,
}

enum Piece {
    Answer(Vec<u8>),
    Printed(Vec<u8>),
    TooMuch(&'static str, usize),
}

/// The child, ended with all its group when this is dropped.
struct Group {
    child: Child,
    /// It has ended and was waited for.
    over: bool,
}

impl Drop for Group {
    fn drop(&mut self) {
        // The child leads a process group, whose id stays taken until it is waited for; afterwards it could be a
        // stranger's.
        if !self.over {
            let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// Runs `program` by `python`, writes `request` to it, and gives back its output.
pub(crate) fn run(
    python: &Path,
    program: &Path,
    profile: &Path,
    request: &[u8],
    limits: Limits,
) -> Result<ChildOutput, ProfileError> {
    let failed = |reason: std::io::Error| ProfileError::Python {
        python: python.to_owned(),
        reason: reason.to_string(),
    };
    let mut command = Command::new(python);
    command.args(["-I", "-B"]).arg(program).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group = Group { child: command.spawn().map_err(failed)?, over: false };
    let (sender, receiver) = channel();
    if let Some(out) = group.child.stdout.take() {
        read(out, limits.answer, "answered", Piece::Answer, sender.clone());
    }
    if let Some(err) = group.child.stderr.take() {
        read(err, limits.printed, "printed", Piece::Printed, sender);
    }
    if let Some(mut input) = group.child.stdin.take() {
        // A child that is gone already has no use for its request; what became of it is seen below.
        let _ = input.write_all(request);
    }
    let deadline = Instant::now() + limits.time;
    let said = collect(&receiver, deadline, profile, limits.time)?;
    if said.answer.is_empty() {
        let status = wait(&mut group, deadline, profile, limits.time)?;
        return Err(ProfileError::Died {
            path: profile.to_owned(),
            how: how(status),
            printed: last(&said.printed),
        });
    }
    Ok(said)
}

/// Reads to the end in a thread, which is left to itself if somebody keeps the pipe open.
fn read(
    mut from: impl Read + Send + 'static,
    most: usize,
    what: &'static str,
    made: fn(Vec<u8>) -> Piece,
    to: Sender<Piece>,
) {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = from.by_ref().take(most as u64 + 1).read_to_end(&mut bytes);
        let piece = if read.is_ok() && bytes.len() > most { Piece::TooMuch(what, most) } else { made(bytes) };
        // There is no receiver any more when the time is up.
        let _ = to.send(piece);
    });
}

fn collect(
    from: &Receiver<Piece>,
    deadline: Instant,
    profile: &Path,
    limit: Duration,
) -> Result<ChildOutput, ProfileError> {
    let mut said = ChildOutput { answer: Vec::new(), printed: String::new() };
    for _ in 0..2 {
        match from.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Piece::Answer(bytes)) => said.answer = bytes,
            Ok(Piece::Printed(bytes)) => said.printed = String::from_utf8_lossy(&bytes).into_owned(),
            Ok(Piece::TooMuch(what, limit)) => {
                return Err(ProfileError::TooMuch { path: profile.to_owned(), what, limit });
            }
            Err(RecvTimeoutError::Timeout) => return Err(timed_out(profile, limit)),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(said)
}

/// Both pipes are closed, so the end is near; still it is waited for no longer than the deadline.
fn wait(
    group: &mut Group,
    deadline: Instant,
    profile: &Path,
    limit: Duration,
) -> Result<ExitStatus, ProfileError> {
    loop {
        match group.child.try_wait() {
            Ok(Some(status)) => {
                group.over = true;
                return Ok(status);
            }
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => return Err(timed_out(profile, limit)),
            Err(reason) => {
                return Err(ProfileError::Died {
                    path: profile.to_owned(),
                    how: format!("cannot be waited for: {reason}"),
                    printed: String::new(),
                });
            }
        }
    }
}

fn timed_out(profile: &Path, limit: Duration) -> ProfileError {
    ProfileError::TimedOut { path: PathBuf::from(profile), limit }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with {code} and without an answer"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended without an answer".to_owned(),
    }
}

/// The last 400 characters: where Python says what went wrong.
pub(crate) fn last(text: &str) -> String {
    let text = text.trim();
    let from = text.char_indices().rev().nth(399).map_or(0, |(at, _)| at);
    text.get(from..).unwrap_or_default().to_owned()
}
