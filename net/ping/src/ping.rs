//! `ping`: echo requests at an interval, and what comes back.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future;
use shoal_graph::clock::Time;
use shoal_graph::process::Processes;
use shoal_icmp::{Answer, EchoAnswer};
use shoal_module::Control;
use shoal_module::cli::{CliError, ClientGone, Sink};

use crate::echo::{Echo, PingError, Target};
use crate::text::{AnswerText, Milliseconds, Percent};
use crate::wait::{WaitEnd, wait};

/// How long a command waits for the last answers at least, whatever the interval.
const LAST: Duration = Duration::from_secs(1);

/// Shortest and longest time between requests, in seconds.
pub(crate) const INTERVALS: std::ops::RangeInclusive<f64> = 0.001..=3600.0;

/// TTL or hop limit of requests: as far as a packet can go, as VPP's.
const TTL: u8 = 255;

/// What `ping` is asked to do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ping {
    /// Where to.
    pub target: Target,
    /// How often.
    pub repeat: u32,
    /// Requests at a time.
    pub burst: u32,
    /// Time from one to the next.
    pub interval: Duration,
    /// Whether to say more.
    pub detail: Detail,
}

/// How much a command says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// The answers.
    Normal,
    /// Also how it asks.
    Verbose,
}

/// Requests of one sequence number without an answer yet.
struct Open {
    sent: Time,
    count: u32,
}

/// A ping under way.
struct Run<'a> {
    ping: Ping,
    echo: Echo,
    processes: &'a Processes,
    sink: &'a Sink,
    /// How long the last answers may take.
    last: Duration,
    open: HashMap<u16, Open>,
    sent: u64,
    received: u64,
}

/// Why a ping ended early.
struct Interrupted;

impl From<ClientGone> for Interrupted {
    fn from(_: ClientGone) -> Self {
        Interrupted
    }
}

impl Run<'_> {
    fn send(&mut self, n: u32) -> Result<(), Interrupted> {
        let sequence = n as u16;
        let mut count = 0;
        for _ in 0..self.ping.burst {
            match self.echo.send(sequence, TTL) {
                Ok(_) => count += 1,
                Err(e) => self.sink.line(format_args!("Failed: {e}"))?,
            }
        }
        self.sent += u64::from(count);
        let sent = self.processes.clock().now();
        self.open.insert(sequence, Open { sent, count });
        Ok(())
    }

    fn heard(&mut self, heard: &EchoAnswer) -> Result<(), Interrupted> {
        // A host that answers twice, or for another host, is not heard.
        let Some(open) = self.open.get_mut(&heard.sequence) else { return Ok(()) };
        if heard.answer != Answer::Reply {
            let said =
                format!("From {}: icmp_seq={} {}", heard.from, heard.sequence, AnswerText(heard.answer));
            open.count = open.count.saturating_sub(1);
            if open.count == 0 {
                self.open.remove(&heard.sequence);
            }
            return Ok(self.sink.line(said)?);
        }
        if heard.from != self.ping.target.address {
            return Ok(());
        }
        let time = Milliseconds(heard.at.since(open.sent));
        let EchoAnswer { bytes, from, sequence, ttl, .. } = heard;
        open.count = open.count.saturating_sub(1);
        if open.count == 0 {
            self.open.remove(sequence);
        }
        self.received += 1;
        Ok(self
            .sink
            .line(format_args!("{bytes} bytes from {from}: icmp_seq={sequence} ttl={ttl} time={time} ms"))?)
    }

    /// Prints answers until a moment, or until `enough` says that no more are to come.
    async fn listen(&mut self, until: Time, enough: fn(&Self) -> bool) -> Result<(), Interrupted> {
        while !enough(self) {
            match wait(self.echo.listener(), until, self.processes, self.sink).await {
                WaitEnd::Heard(heard) => self.heard(&heard)?,
                WaitEnd::TimeOut => return Ok(()),
                WaitEnd::Gone => return Err(Interrupted),
            }
        }
        Ok(())
    }

    async fn all(&mut self) -> Result<(), Interrupted> {
        for n in 1..=self.ping.repeat {
            if self.ping.detail == Detail::Verbose {
                self.sink.line(format_args!("Source address: {}", self.echo.source()))?;
            }
            let begin = self.processes.clock().now();
            self.send(n)?;
            if n < self.ping.repeat {
                self.listen(begin.after(self.ping.interval), |_| false).await?;
            } else {
                self.listen(begin.after(self.last), |run| run.open.is_empty()).await?;
            }
        }
        Ok(())
    }
}

impl Ping {
    /// Runs to its end or until the client leaves, printing as it goes.
    ///
    /// # Errors
    /// Nothing can be sent at all.
    pub async fn run(self, control: Rc<Control>, sink: Sink) -> Result<(), CliError> {
        let processes = control.processes()?;
        let echo = match Echo::new(&control, self.target) {
            Err(why @ (PingError::NoSource | PingError::NoEgress)) => {
                for n in 1..=self.repeat {
                    sink.line(format_args!("Failed: {why}"))?;
                    if n < self.repeat {
                        future::or(processes.sleep(self.interval), sink.gone()).await;
                    }
                    if sink.is_gone() {
                        break;
                    }
                }
                // VPP counts what it could not send as not sent, and so does not fail.
                return Ok(sink.text("\nStatistics: 0 sent, 0 received, 0% packet loss\n")?);
            }
            echo => echo?,
        };
        let (open, processes) = (HashMap::new(), &*processes);
        let last = self.interval.max(LAST);
        let mut run = Run { ping: self, echo, processes, sink: &sink, last, open, sent: 0, received: 0 };
        let ended = run.all().await;
        let Run { sent, received, .. } = run;
        if ended.is_err() {
            // The client may be there still, having pressed a key.
            sink.line("Aborted due to a keypress.")?;
        }
        let loss = Percent { part: sent.saturating_sub(received), whole: sent };
        sink.line(format_args!("\nStatistics: {sent} sent, {received} received, {loss}% packet loss"))?;
        Ok(())
    }

    /// Runs to its end or until the client leaves: how many were sent, and came back.
    ///
    /// # Errors
    /// Nothing can be sent at all.
    pub(crate) async fn count(self, control: Rc<Control>, sink: &Sink) -> Result<(u64, u64), CliError> {
        let processes = control.processes()?;
        let echo = Echo::new(&control, self.target)?;
        // As VPP: a client that asks for a short interval wants its event soon.
        let (last, open, processes) = (self.interval, HashMap::new(), &*processes);
        let mut run = Run { ping: self, echo, processes, sink, last, open, sent: 0, received: 0 };
        // One that ends early has counted, too.
        let _ = run.all().await;
        Ok((run.sent, run.received))
    }
}
