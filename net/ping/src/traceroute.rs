//! `traceroute`: echo requests with rising TTL or hop limit, and which router each one ends at.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_graph::process::Processes;
use shoal_icmp::{Answer as Echoed, EchoAnswer};
use shoal_module::Control;
use shoal_module::cli::{CliError, Sink};

use crate::echo::{Echo, Target};
use crate::text::{AnswerText, Milliseconds};
use crate::wait::{WaitEnd, wait};

/// What `traceroute` is asked to do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Traceroute {
    /// Where to.
    pub target: Target,
    /// The largest TTL tried.
    pub max_hops: u8,
    /// Requests for each TTL.
    pub probes: u8,
    /// How long each answer may take.
    pub patience: Duration,
}

/// What came of one request.
enum Answer {
    Nothing,
    Heard(EchoAnswer, Duration),
    Interrupted,
}

struct Run<'a> {
    echo: Echo,
    processes: &'a Processes,
    sink: &'a Sink,
}

/// One TTL's line as it grows.
#[derive(Default)]
struct Line {
    text: String,
    from: Option<IpAddr>,
    /// What ends the trace, if anything: the host itself, or an error that no larger TTL cures.
    last: Option<EchoAnswer>,
}

impl Line {
    fn add(&mut self, answer: &Answer) {
        // Writing to a string cannot fail.
        let _ = match answer {
            Answer::Heard(heard, time) => {
                if self.from != Some(heard.from) {
                    self.from = Some(heard.from);
                    let _ = write!(self.text, "{}:\t", heard.from);
                }
                if !heard.answer.is_expired() {
                    self.last = Some(*heard);
                }
                write!(self.text, "{}\t", Milliseconds(*time))
            }
            _ => write!(self.text, "*\t"),
        };
    }

    /// The line, as VPP prints it.
    fn finish(&self, hop: u8) -> String {
        let dashes = if self.from.is_none() { "---: " } else { "" };
        let why = match &self.last {
            Some(heard) if heard.answer != Echoed::Reply => format!("({})", AnswerText(heard.answer)),
            _ => String::new(),
        };
        format!("{hop}: {dashes}{}{why}", self.text)
    }
}

impl Run<'_> {
    async fn probe(&self, sequence: u16, ttl: u8, patience: Duration) -> Result<Answer, CliError> {
        let sent: Time = self.echo.send(sequence, ttl)?;
        loop {
            match wait(self.echo.listener(), sent.after(patience), self.processes, self.sink).await {
                // An answer to an earlier request comes too late to be of use.
                WaitEnd::Heard(heard) if heard.sequence != sequence => {}
                WaitEnd::Heard(heard) => return Ok(Answer::Heard(heard, heard.at.since(sent))),
                WaitEnd::TimeOut => return Ok(Answer::Nothing),
                WaitEnd::Gone => return Ok(Answer::Interrupted),
            }
        }
    }
}

impl Traceroute {
    /// Runs until the host answers, the TTL is too large or the client leaves, printing a line for each TTL.
    ///
    /// # Errors
    /// Nothing can be sent, or the client left.
    pub async fn run(self, control: Rc<Control>, sink: Sink) -> Result<(), CliError> {
        let processes = control.processes()?;
        let run = Run { echo: Echo::new(&control, self.target)?, processes: &processes, sink: &sink };
        let mut sequence = 0u16;
        for hop in 1..=self.max_hops {
            let mut line = Line::default();
            for _ in 0..self.probes {
                sequence = sequence.wrapping_add(1);
                match run.probe(sequence, hop, self.patience).await? {
                    Answer::Interrupted => {
                        sink.line(line.finish(hop))?;
                        return Ok(sink.line("Aborted due to a keypress.")?);
                    }
                    answer => line.add(&answer),
                }
            }
            sink.line(line.finish(hop))?;
            if line.last.is_some() {
                break;
            }
        }
        Ok(())
    }
}
