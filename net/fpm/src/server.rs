//! Connections of zebra: one at a time.

use std::io;
use std::net::TcpStream;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use async_io::{Async, Timer};
use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use shoal_graph::clock::Time;
use shoal_graph::process::{Processes, Receiver, channel};
use shoal_lcp::ConnectionTaker;
use shoal_module::cli::Pace;

use crate::batch::Batch;
use crate::control::{Counts, Fpm, Peer};
use crate::netlink::{FpmMessage, Messages, read};
use crate::table::Key;
use crate::{Frames, sweep};

/// Frames that are heard between two questions for the time: some hundred microseconds.
const AT_ONCE: usize = 128;
/// Bytes that are read at once.
const READ: usize = 64 << 10;
/// Answers of so many bytes are written at once.
const ENOUGH: usize = 32 << 10;
/// How long a peer may not read what it is answered.
const PATIENCE: Duration = Duration::from_secs(15);
/// Quiet for so long, zebra has told what it had to tell.
pub(crate) const QUIET: Duration = Duration::from_secs(5);

/// Takes zebra's connections.
pub(crate) struct Zebra {
    pub fpm: Rc<Fpm>,
    /// Ends when no connections are taken any more.
    pub closed: Receiver<()>,
    pub processes: Processes,
}

impl ConnectionTaker for Zebra {
    const NAME: &'static str = "fpm";

    fn is_busy(&self) -> bool {
        self.fpm.peer.get().is_some()
    }

    fn turned_away(&self) {
        Counts::one(&self.fpm.counts.turned_away);
    }

    fn serve(&self, stream: Async<TcpStream>) -> impl Future<Output = ()> + 'static {
        serve(Rc::clone(&self.fpm), stream, self.closed.clone(), self.processes.clone())
    }
}

async fn serve(fpm: Rc<Fpm>, stream: Async<TcpStream>, closed: Receiver<()>, processes: Processes) {
    Counts::one(&fpm.counts.connections);
    let generation = fpm.generation.get() + 1;
    fpm.generation.set(generation);
    let since = processes.clock().now();
    fpm.peer.set(Some(Peer { generation, since }));
    tracing::info!("fpm: zebra is connected");
    let stop = async {
        let _ = closed.recv().await;
        Ok(())
    };
    let mut session =
        Session { fpm: Rc::clone(&fpm), generation, since, heard: since, settled: false, swept: false };
    let ended = future::or(stop, session.run(&stream, &processes)).await;
    match ended {
        Ok(()) => tracing::info!("fpm: the connection has ended"),
        Err(error) => tracing::warn!("fpm: the connection has ended: {error}"),
    }
    // Another one may have begun, if this one was told to stop.
    if fpm.peer.get().is_some_and(|peer| peer.generation == generation) {
        fpm.peer.set(None);
        fpm.answer_by(None);
        fpm.lcp().zebra_is_connected(&fpm.netns(), false);
    }
}

/// What one connection has come to.
struct Session {
    fpm: Rc<Fpm>,
    generation: u64,
    since: Time,
    /// When something came last.
    heard: Time,
    /// Zebra has been quiet once: what the kernel says of its routes is passed over.
    settled: bool,
    /// Routes that it has not announced again have gone.
    swept: bool,
}

/// What a connection waits for.
enum Next {
    Bytes(usize),
    Answers(Vec<u8>),
    Time,
}

impl Session {
    async fn run(&mut self, stream: &Async<TcpStream>, processes: &Processes) -> io::Result<()> {
        let (mut reader, mut writer) = (stream, stream);
        let (mut buffer, mut frames, mut out) = (vec![0; READ], Frames::default(), Vec::new());
        let mut ranges = Vec::with_capacity(AT_ONCE);
        let pace = Pace::default();
        // Answers about routes that waited.
        let (late, later) = channel::<Vec<u8>>(16);
        self.fpm.answer_by(Some(late));
        loop {
            let bytes = async { Ok::<_, io::Error>(Next::Bytes(reader.read(&mut buffer).await?)) };
            let answers = async { Ok(later.recv().await.map_or(Next::Time, Next::Answers)) };
            let time = async {
                processes.sleep(Duration::from_secs(1)).await;
                Ok(Next::Time)
            };
            match future::or(bytes, future::or(answers, time)).await? {
                Next::Bytes(0) => return Ok(()),
                Next::Bytes(n) => {
                    self.heard = processes.clock().now();
                    frames.push(buffer.get(..n).unwrap_or_default());
                    loop {
                        ranges.clear();
                        let wrong = gather(&mut frames, &mut ranges);
                        self.hear(&frames, &ranges, &mut out);
                        wrong?;
                        if ranges.is_empty() {
                            break;
                        }
                        if out.len() >= ENOUGH {
                            write(&mut writer, &mut out).await?;
                        }
                        pace.give_way().await;
                    }
                    self.fpm.look_again();
                    write(&mut writer, &mut out).await?;
                }
                Next::Answers(mut late) => write(&mut writer, &mut late).await?,
                Next::Time => self.rest(processes.clock().now(), processes),
            }
        }
    }

    /// Does what frames say.
    fn hear(&self, frames: &Frames, ranges: &[Range<usize>], out: &mut Vec<u8>) {
        let mut batch = Batch::default();
        for range in ranges {
            self.hear_frame(frames.payload(range.clone()), &mut batch, out);
        }
        self.fpm.settle(&mut batch, self.generation, out);
    }

    /// Does what a frame says, or has its routes wait in the batch.
    fn hear_frame<'m>(&self, payload: &'m [u8], batch: &mut Batch<'m>, out: &mut Vec<u8>) {
        Counts::one(&self.fpm.counts.frames);
        // A route that is replaced may come as one that goes and one that comes.
        let mut renewed: Vec<Key> = Vec::new();
        let mut messages = Messages::of(payload);
        if messages.clone().nth(1).is_some() {
            renewed = messages
                .clone()
                .filter_map(|message| match read(message) {
                    FpmMessage::Route(route) => Some((route.table, route.prefix)),
                    _ => None,
                })
                .take(MOST_RENEWED)
                .collect();
        }
        for message in messages.by_ref() {
            self.fpm.hear(message, self.generation, &renewed, batch, out);
        }
        if !messages.is_spent() {
            Counts::one(&self.fpm.counts.malformed);
        }
    }

    /// Nothing came for a while.
    fn rest(&mut self, now: Time, processes: &Processes) {
        if now.since(self.heard) < QUIET {
            return;
        }
        if !self.settled {
            self.settled = true;
            self.fpm.lcp().zebra_is_connected(&self.fpm.netns(), true);
        }
        if !self.swept && now.since(self.since) >= self.fpm.sweep_after() {
            self.swept = true;
            processes.spawn_unlisted(sweep::sweep(Rc::clone(&self.fpm), self.generation));
        }
    }
}

/// Finds the next frames that have come wholly.
fn gather(frames: &mut Frames, ranges: &mut Vec<Range<usize>>) -> io::Result<()> {
    while ranges.len() < AT_ONCE {
        match frames.next_frame().map_err(io::Error::other)? {
            Some(range) => ranges.push(range),
            None => break,
        }
    }
    Ok(())
}

/// Prefixes of one frame that are looked up when one of them goes: zebra sends two messages.
const MOST_RENEWED: usize = 64;

async fn write(writer: &mut &Async<TcpStream>, out: &mut Vec<u8>) -> io::Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let late = async {
        Timer::after(PATIENCE).await;
        Err(io::Error::other("zebra does not read what it is answered"))
    };
    future::or(writer.write_all(out), late).await?;
    out.clear();
    Ok(())
}
