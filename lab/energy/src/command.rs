//! A program that prints watts.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{self, Child, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::EnergyError;
use crate::source::{Look, Probe};

/// More of the program's output is not read.
const MOST_OUTPUT: u64 = 4096;
/// The most watts that are believed.
const MOST_WATTS: f64 = 1e6;

/// A program that prints watts, run for each look.
pub struct Command {
    argv: Vec<String>,
    limit: Duration,
}

impl Command {
    /// `argv` may not be empty; the program may take `limit`.
    pub fn new(argv: &[String], limit: Duration) -> Result<Self, EnergyError> {
        if argv.is_empty() {
            let reason = "nothing to run; give a program that prints watts".into();
            return Err(EnergyError::Command { command: "energy command".into(), reason });
        }
        Ok(Command { argv: argv.to_vec(), limit })
    }

    fn error(&self, reason: impl Into<String>) -> EnergyError {
        EnergyError::Command { command: self.argv.join(" "), reason: reason.into() }
    }

    fn output(&self) -> Result<String, EnergyError> {
        let Some((program, arguments)) = self.argv.split_first() else {
            return Err(self.error("nothing to run"));
        };
        // Its own process group, so that what it starts in turn ends with it.
        let mut child = process::Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|e| self.error(e.to_string()))?;
        let until = Instant::now() + self.limit;
        let (send, receive) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut text = Vec::new();
                let read = stdout.take(MOST_OUTPUT).read_to_end(&mut text);
                let _no_receiver = send.send(read.map(|_| text));
            });
        }
        let output = receive.recv_timeout(self.limit);
        let status = ended(&mut child, until);
        if status.is_none() {
            let _gone = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
            let _reaped = child.wait();
        }
        let text = match output {
            Ok(Ok(text)) => String::from_utf8_lossy(&text).into_owned(),
            Ok(Err(e)) => return Err(self.error(e.to_string())),
            Err(_) => return Err(self.error(format!("did not end within {} ms", self.limit.as_millis()))),
        };
        match status {
            None => Err(self.error(format!("did not end within {} ms", self.limit.as_millis()))),
            Some(status) if !status.success() => Err(self.error(format!("ended with {status}"))),
            Some(_) => Ok(text),
        }
    }
}

/// Waits for the end, which comes right after the output's; there is no call that waits for both a process and a time.
fn ended(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= until {
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// `151.5`, `151.5 W`, `151.5W`; only the first line that is not empty counts.
pub fn watts(from: &str, text: &str) -> Result<f64, EnergyError> {
    let line = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("");
    let number = line.strip_suffix("Watts").or_else(|| line.strip_suffix('W')).unwrap_or(line).trim();
    match number.parse::<f64>() {
        Ok(watts) if (0.0..=MOST_WATTS).contains(&watts) => Ok(watts),
        _ => {
            let text = line.chars().take(60).collect();
            Err(EnergyError::NotWatts { from: from.into(), text })
        }
    }
}

impl Probe for Command {
    fn look(&mut self) -> Result<Look, EnergyError> {
        let text = self.output()?;
        watts(&self.argv.join(" "), &text).map(Look::Watts)
    }

    fn scope(&self) -> String {
        format!("whatever `{}` measures", self.argv.join(" "))
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "exact values are expected")]
mod tests {
    use super::*;

    #[test]
    fn watts_may_have_their_unit() {
        for text in ["151.5", " 151.5 W\n", "\n151.5W", "151.5 Watts", "151.5\nmore"] {
            assert_eq!(watts("x", text).unwrap(), 151.5, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_power_is_refused_with_its_text() {
        for text in ["", "hello", "NaN", "inf", "-3", "1e9", "12,5", "1 2"] {
            let error = watts("x", text).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("151.5 for instance"), "{error}");
        }
    }
}
