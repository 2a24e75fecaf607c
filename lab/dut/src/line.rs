//! A command as a user could type it, and running it within a time limit.

use std::fmt;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::{SetupError, tail};

/// Time that setting something up may take.
const LIMIT: Duration = Duration::from_secs(20);
/// Lines of a failed command that its error repeats.
const TAIL: usize = 5;

/// A command: its words, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    words: Vec<String>,
    limit: Duration,
}

impl Line {
    /// Of words with blanks between them; a word that has a blank itself follows with [`arg`](Self::arg).
    pub fn words(text: impl AsRef<str>) -> Line {
        Line { words: text.as_ref().split_whitespace().map(str::to_owned).collect(), limit: LIMIT }
    }

    /// One more word, taken as it is.
    pub fn arg(mut self, word: impl Into<String>) -> Line {
        self.words.push(word.into());
        self
    }

    /// All words of another command behind these, as `taskset -c 0` takes one.
    pub fn then(mut self, other: Line) -> Line {
        self.words.extend(other.words);
        self
    }

    /// It may take this long instead of 20 s.
    pub fn limit(mut self, limit: Duration) -> Line {
        self.limit = limit;
        self
    }

    /// For starting it without waiting.
    pub fn command(&self) -> Command {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command.args(words);
        // A Ctrl-C at the terminal is for the lab, which ends what it started in good order.
        command.process_group(0).stdin(Stdio::null());
        command
    }

    /// Runs it to its end; what it wrote to its standard output.
    pub fn run(&self) -> Result<String, SetupError> {
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().map_err(|why| SetupError::Spawn { command: self.to_string(), why })?;
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        let text = |from: Option<mpsc::Receiver<String>>| {
            // A grandchild may hold the pipe open longer than the command lives.
            from.and_then(|f| f.recv_timeout(Duration::from_secs(2)).ok()).unwrap_or_default()
        };
        let begun = Instant::now();
        let mut pause = Duration::from_micros(200);
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(why) => return Err(SetupError::Spawn { command: self.to_string(), why }),
            }
            if begun.elapsed() > self.limit {
                let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
                let _ = child.wait();
                let said = text(stderr) + &text(stdout);
                let seconds = self.limit.as_secs();
                return Err(SetupError::Slow { command: self.to_string(), seconds, tail: tail(&said, TAIL) });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        };
        let out = text(stdout);
        if status.success() {
            return Ok(out);
        }
        let err = text(stderr);
        let said = if err.trim().is_empty() { &out } else { &err };
        Err(SetupError::Failed { command: self.to_string(), status: told(status), tail: tail(said, TAIL) })
    }
}

impl fmt::Display for Line {
    /// With quotes where a shell needs them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.words.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
            if !word.is_empty() && word.chars().all(plain) {
                f.write_str(word)?;
            } else {
                write!(f, "'{}'", word.replace('\'', r"'\''"))?;
            }
        }
        Ok(())
    }
}

/// `code 1` or `signal 9`.
pub(crate) fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no code".to_owned(),
    }
}

/// Reads all of a pipe in a thread of its own, so that a command that writes much to both is not stuck.
fn collect(mut from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (give, take) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error of the pipe is still worth showing.
        let _ = from.read_to_end(&mut bytes);
        let _ = give.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    take
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_as_a_shell_reads_it() {
        let line = Line::words("ip netns exec x sh -c").arg("echo 1 > /sys/it's");
        assert_eq!(line.to_string(), r"ip netns exec x sh -c 'echo 1 > /sys/it'\''s'");
        assert_eq!(Line::words("a").arg("").to_string(), "a ''");
    }

    #[test]
    fn output_is_given_back() {
        assert_eq!(Line::words("echo a b").run().unwrap(), "a b\n");
    }

    #[test]
    fn a_failed_command_names_itself_its_code_and_what_it_said() {
        let error =
            Line::words("sh -c").arg("echo one >&2; echo two >&2; exit 3").run().unwrap_err().to_string();
        assert_eq!(error, "`sh -c 'echo one >&2; echo two >&2; exit 3'` ended with code 3: one | two");
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let begun = Instant::now();
        let line =
            Line::words("sh -c").arg("echo waiting; sleep 60 & wait").limit(Duration::from_millis(100));
        let error = line.run().unwrap_err();
        assert!(matches!(&error, SetupError::Slow { tail, .. } if tail == "waiting"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn much_output_on_both_pipes_does_not_block() {
        let script = "i=0; while [ $i -lt 20000 ]; do echo 0123456789; echo 0123456789 >&2; i=$((i+1)); done";
        assert_eq!(Line::words("sh -c").arg(script).run().unwrap().len(), 220_000);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Line::words("no-such-program-of-ours x").run().unwrap_err().to_string();
        assert!(error.starts_with("`no-such-program-of-ours x` cannot be run: "), "{error}");
    }
}
