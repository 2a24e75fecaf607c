//! A thread that reads a netlink socket and does little else, so that the kernel has room for what it announces while the main thread is busy.
//!
//! It sends the main thread's questions, too. Before it acts on the state of a link the main thread reads what is left itself, because a newer
//! state may be there. Only one thread uses the socket at a time: the kernel goes on with an answer when it is read, and a reader that finds the
//! answer ended by another thread's question gets an error (`EINVAL`).

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use netlink_sys::Socket;
use rustix::event::{PollFd, PollFlags, Timespec};
use shoal_graph::process::{Receiver, Sender, channel};

use crate::inbox::{Filled, Inbox};
use crate::{Error, EventFd, netlink};

/// How long the thread leaves the socket alone after it has read all: in a storm the kernel would wake it for each announcement, at the
/// expense of the daemon that makes them.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };

/// Readings of the main thread, at most, at a time.
const READS: usize = 8;

/// What was read, in the order in which the kernel gave it.
enum Piece {
    /// So many bytes.
    Datagram(usize),
    /// The kernel has thrown announcements away that did not fit.
    Lost,
}

/// Bytes of a batch at most. Batches are of few sizes, so that memory which a full table has taken is given back.
const BATCH: usize = 256 << 10;

/// Pieces in one memory.
#[derive(Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Bytes that have been taken.
    taken: usize,
    pieces: VecDeque<Piece>,
}

/// A piece of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read<'a> {
    /// A datagram of the kernel.
    Datagram(&'a [u8]),
    /// The kernel has thrown announcements away that did not fit.
    Lost,
}

impl Batch {
    /// The next piece.
    pub fn next_piece(&mut self) -> Option<Read<'_>> {
        match self.pieces.pop_front()? {
            Piece::Lost => Some(Read::Lost),
            Piece::Datagram(len) => {
                let from = self.taken;
                self.taken += len;
                self.bytes.get(from..self.taken).map(Read::Datagram)
            }
        }
    }
}

/// What waits for the main thread.
#[derive(Default)]
struct Waiting {
    batches: VecDeque<Batch>,
    /// Bytes in them.
    bytes: usize,
    /// What the kernel is to be asked.
    questions: Vec<Vec<u8>>,
    /// Why the thread has ended.
    failure: Option<Error>,
    /// The main thread wants no more.
    is_over: bool,
}

impl Waiting {
    /// Adds a piece with its bytes, if it has any.
    fn add(&mut self, piece: Piece, bytes: &[u8]) {
        if self.batches.back().is_none_or(|last| last.bytes.len() + bytes.len() > BATCH) {
            // Behind another one it will be full soon.
            let room = if self.batches.is_empty() { 0 } else { BATCH };
            self.batches.push_back(Batch { bytes: Vec::with_capacity(room), ..Batch::default() });
        }
        let Some(batch) = self.batches.back_mut() else { return };
        batch.bytes.extend_from_slice(bytes);
        batch.pieces.push_back(piece);
        self.bytes += bytes.len();
    }
}

struct Shared {
    /// Held to ask and to read, by either thread: what is read waits in the order in which it was read.
    socket: Mutex<(Socket, Inbox)>,
    waiting: Mutex<Waiting>,
    /// There is room again, or it is over.
    room: Condvar,
    /// Bytes that wait here at most, but for one reading.
    most: usize,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room; what is to be asked then, or nothing if no more is wanted.
    fn wait_for_room(&self) -> Option<Vec<Vec<u8>>> {
        let full = |waiting: &mut Waiting| waiting.bytes >= self.most && !waiting.is_over;
        let waiting = self.room.wait_while(self.waiting(), full);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        (!waiting.is_over).then(|| std::mem::take(&mut waiting.questions))
    }

    /// Asks what is to be asked and reads what the kernel has, as much as one call takes; whether that was anything.
    fn read(&self, questions: &[Vec<u8>]) -> Result<bool, Error> {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let (socket, inbox) = &mut *socket;
        questions.iter().try_for_each(|one| netlink::send_bytes(socket, one, "rtnetlink dump"))?;
        match inbox.fill(socket) {
            Ok(Filled::Yes) => {
                let mut waiting = self.waiting();
                let datagrams = inbox.datagrams().filter(|datagram| !datagram.is_empty());
                datagrams.for_each(|datagram| waiting.add(Piece::Datagram(datagram.len()), datagram));
                Ok(true)
            }
            Ok(Filled::Lost) => {
                self.waiting().add(Piece::Lost, &[]);
                Ok(true)
            }
            Err(e) if e.errno() == Some(libc::EAGAIN) => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn fail(&self, error: Error) {
        self.waiting().failure = Some(error);
    }
}

/// The main thread's end. The thread ends when this is dropped.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    /// Something waits that did not wait when the main thread looked last.
    bell: Receiver<()>,
    /// Wakes the thread: there is a question, or it is over.
    wake: EventFd,
}

impl Reader {
    /// Reads from now on; about so many bytes wait here at most, and then in the kernel.
    ///
    /// # Errors
    /// There can be no other thread.
    pub fn start(socket: Socket, most: usize) -> Result<Self, Error> {
        let readable = socket.as_fd().try_clone_to_owned().map_err(Error::os("dup(AF_NETLINK)"))?;
        let socket = Mutex::new((socket, Inbox::default()));
        let shared = Arc::new(Shared { socket, waiting: Mutex::default(), room: Condvar::new(), most });
        let (ring, bell) = channel(1);
        let wake = EventFd::create().map_err(Error::os("eventfd"))?;
        let (to, woken) = (Arc::clone(&shared), wake.try_clone().map_err(Error::os("dup(eventfd)"))?);
        let thread = std::thread::Builder::new().name("netlink-reader".into()).stack_size(128 << 10);
        let started = thread.spawn(move || read_all(&readable, &to, &ring, &woken));
        started.map_err(Error::os("the thread that reads AF_NETLINK"))?;
        Ok(Self { shared, bell, wake })
    }

    /// Asks the kernel, behind what was asked before.
    pub fn ask(&self, question: Vec<u8>) {
        self.shared.waiting().questions.push(question);
        self.wake();
    }

    fn wake(&self) {
        // It is full only if it has been written to before.
        let _ = rustix::io::write(self.wake.as_fd(), &1u64.to_ne_bytes());
    }

    /// Reads what the kernel has now: what is done about an announcement that is out of date already would be announced in turn.
    ///
    /// # Errors
    /// The socket cannot be read any more.
    pub fn catch_up(&self) -> Result<(), Error> {
        for _ in 0..READS {
            let is_full = self.shared.waiting().bytes >= self.shared.most;
            if is_full || !self.shared.read(&[])? {
                break;
            }
        }
        Ok(())
    }

    /// What has waited longest, if anything waits.
    ///
    /// # Errors
    /// The socket cannot be read any more.
    pub fn take(&self) -> Result<Option<Batch>, Error> {
        let mut waiting = self.shared.waiting();
        let Some(batch) = waiting.batches.pop_front() else {
            return waiting.failure.take().map_or(Ok(None), Err);
        };
        waiting.bytes -= batch.bytes.len();
        drop(waiting);
        self.shared.room.notify_one();
        Ok(Some(batch))
    }

    /// Waits until something waits that did not when [`Reader::take`] returned nothing.
    pub async fn wait(&self) {
        // A thread that has ended has said why before.
        if self.bell.recv().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.waiting().is_over = true;
        self.shared.room.notify_one();
        // It is not waited for: the kernel may let it wait for others.
        self.wake();
    }
}

/// Reads until the other end wants no more or the socket fails.
fn read_all(socket: &OwnedFd, shared: &Shared, ring: &Sender<()>, woken: &EventFd) {
    let mut has_read = false;
    while let Some(questions) = shared.wait_for_room() {
        match shared.read(&questions) {
            Ok(true) => has_read = true,
            Ok(false) => {
                let [wake, readable] =
                    [PollFd::new(woken, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
                // A signal, or what cannot be waited for, is found by reading.
                let _ = if std::mem::take(&mut has_read) {
                    rustix::event::poll(&mut [wake], Some(&PAUSE))
                } else {
                    rustix::event::poll(&mut [wake, readable], None)
                };
                woken.drain();
                continue;
            }
            Err(e) => {
                shared.fail(e);
                let _ = ring.try_send(());
                return;
            }
        }
        // One that is rung already will be heard.
        let _ = ring.try_send(());
    }
}
