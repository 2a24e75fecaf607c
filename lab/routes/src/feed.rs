//! Commands into a running router, through its CLI socket, with a bar that tells how far it is.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use serde_json::{Value, json};

/// Bytes of commands sent at a time.
const BATCH: usize = 64 << 10;

/// A writer of lines whose other end is a router. The first command that fails is an error; those sent with it are run.
pub struct Router {
    reader: BufReader<UnixStream>,
    pending: Vec<u8>,
    done: u64,
    bar: ProgressBar,
}

impl Router {
    /// Connects to a router's CLI socket; `expected` commands will come, if that is known.
    ///
    /// # Errors
    /// There is no listener.
    pub fn connect(socket: &Path, expected: Option<u64>) -> io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.write_all(b"{\"shoal\":1}\n")?;
        let mut reader = BufReader::new(stream);
        // The router greets telnet clients first.
        let mut greeting = Vec::new();
        reader.read_until(b'{', &mut greeting)?;
        reader.read_until(b'\n', &mut greeting)?;
        let bar = match expected {
            Some(n) => ProgressBar::new(n)
                .with_style(style("{bar:30} {human_pos} of {human_len}, {per_sec}, {eta} left")),
            None => ProgressBar::new_spinner().with_style(style("{spinner} {human_pos}, {per_sec}")),
        };
        Ok(Router { reader, pending: Vec::new(), done: 0, bar })
    }

    /// Sends what is left and tells how many commands there were, and how fast.
    ///
    /// # Errors
    /// A command failed, or the router is gone.
    pub fn finish(mut self) -> io::Result<String> {
        self.send(self.pending.len())?;
        let seconds = self.bar.elapsed().as_secs_f64();
        self.bar.finish_and_clear();
        let rate = self.done as f64 / seconds.max(1e-9);
        Ok(format!(
            "{} commands in {seconds:.2} s, {} a second",
            HumanCount(self.done),
            HumanCount(rate as u64)
        ))
    }

    /// Sends whole lines and waits until they are done.
    fn send(&mut self, end: usize) -> io::Result<()> {
        if end == 0 {
            return Ok(());
        }
        let rest = self.pending.split_off(end);
        let lines =
            String::from_utf8(std::mem::replace(&mut self.pending, rest)).map_err(io::Error::other)?;
        let request = json!({"id": 1, "batch": lines});
        self.reader.get_mut().write_all(format!("{request}\n").as_bytes())?;
        loop {
            let mut line = String::new();
            if self.reader.by_ref().take(16 << 20).read_line(&mut line)? == 0 {
                return Err(io::Error::other("the router has closed the connection"));
            }
            let reply: Value = serde_json::from_str(&line)?;
            if reply.get("ok") == Some(&Value::Bool(false)) {
                let at = reply.get("line").and_then(Value::as_u64).unwrap_or(1);
                let command = lines.lines().nth(at.saturating_sub(1) as usize).unwrap_or("");
                let why = reply.get("text").and_then(Value::as_str).unwrap_or("no reason").trim_end();
                let number = self.done + at;
                self.bar.finish_and_clear();
                return Err(io::Error::other(format!("command {number}, `{command}': {why}")));
            }
            if reply.get("done").is_some() {
                break;
            }
        }
        let n = lines.matches('\n').count() as u64;
        self.done += n;
        self.bar.inc(n);
        Ok(())
    }
}

impl Write for Router {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= BATCH {
            let end = self.pending.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
            self.send(end)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
