//! A thread that reads a netlink socket and does nothing else, so that the kernel has room for what it announces while the main thread is busy.

use std::collections::VecDeque;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use netlink_sys::Socket;
use rustix::event::{PollFd, PollFlags, Timespec};
use shoal_graph::process::{Receiver, Sender, channel};

use crate::inbox::{Filled, Inbox};
use crate::{Error, EventFd};

/// How long the thread leaves the socket alone after it has read all: in a storm the kernel would wake it for each announcement, at the
/// expense of the daemon that makes them.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };

/// What the thread has read.
pub(crate) enum Intake {
    /// Datagrams of the kernel, one behind the other, each as long as this says.
    Datagrams(Vec<u8>, Vec<usize>),
    /// The kernel has thrown announcements away that did not fit.
    Lost,
    /// The socket cannot be read any more.
    Failed(Error),
}

/// What waits for the main thread.
#[derive(Default)]
struct Waiting {
    all: VecDeque<Intake>,
    bytes: usize,
    /// The main thread wants no more.
    is_over: bool,
}

struct Shared {
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

    /// Waits until there is room; whether more is wanted.
    fn wait_for_room(&self) -> bool {
        let full = |waiting: &mut Waiting| waiting.bytes >= self.most && !waiting.is_over;
        let waiting = self.room.wait_while(self.waiting(), full);
        !waiting.unwrap_or_else(PoisonError::into_inner).is_over
    }

    fn put(&self, bytes: usize, intake: Intake) {
        let mut waiting = self.waiting();
        waiting.bytes += bytes;
        waiting.all.push_back(intake);
    }
}

/// The main thread's end. The thread ends when this is dropped.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    /// Something waits that did not wait when the main thread looked last.
    bell: Receiver<()>,
    stop: EventFd,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Reads from now on; about so many bytes wait here at most, and then in the kernel.
    ///
    /// # Errors
    /// There can be no other thread.
    pub fn start(socket: Arc<Socket>, most: usize) -> Result<Self, Error> {
        let shared = Arc::new(Shared { waiting: Mutex::default(), room: Condvar::new(), most });
        let (ring, bell) = channel(1);
        let stop = EventFd::create().map_err(Error::os("eventfd"))?;
        let (to, until) = (Arc::clone(&shared), stop.try_clone().map_err(Error::os("dup(eventfd)"))?);
        let thread = std::thread::Builder::new().name("netlink-reader".into()).stack_size(128 << 10);
        let thread = thread.spawn(move || read_all(&socket, &to, &ring, &until));
        let thread = Some(thread.map_err(Error::os("the thread that reads AF_NETLINK"))?);
        Ok(Self { shared, bell, stop, thread })
    }

    /// The oldest thing that waits.
    pub fn take(&self) -> Option<Intake> {
        let mut waiting = self.shared.waiting();
        let taken = waiting.all.pop_front()?;
        if let Intake::Datagrams(bytes, _) = &taken {
            waiting.bytes = waiting.bytes.saturating_sub(bytes.len());
        }
        if waiting.all.is_empty() {
            // What a full table has taken is given back.
            waiting.all = VecDeque::new();
        }
        drop(waiting);
        self.shared.room.notify_one();
        Some(taken)
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
        // It is full only if it has been written to before.
        let _ = rustix::io::write(self.stop.as_fd(), &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads until the other end wants no more or the socket fails.
fn read_all(socket: &Socket, shared: &Shared, ring: &Sender<()>, until: &EventFd) {
    let (mut inbox, mut has_read) = (Inbox::default(), false);
    while shared.wait_for_room() {
        match inbox.fill(socket) {
            Ok(Filled::Yes) => {
                let lengths: Vec<usize> = inbox.datagrams().map(<[u8]>::len).filter(|len| *len > 0).collect();
                if lengths.is_empty() {
                    continue;
                }
                let mut bytes = Vec::with_capacity(lengths.iter().sum());
                inbox.datagrams().for_each(|datagram| bytes.extend_from_slice(datagram));
                shared.put(bytes.len(), Intake::Datagrams(bytes, lengths));
            }
            Ok(Filled::Lost) => shared.put(0, Intake::Lost),
            Err(e) if e.errno() == Some(libc::EAGAIN) => {
                let [stop, readable] =
                    [PollFd::new(until, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
                // A signal, or what cannot be waited for, is found by reading.
                let _ = if std::mem::take(&mut has_read) {
                    rustix::event::poll(&mut [stop], Some(&PAUSE))
                } else {
                    rustix::event::poll(&mut [stop, readable], None)
                };
                continue;
            }
            Err(e) => {
                shared.put(0, Intake::Failed(e));
                let _ = ring.try_send(());
                return;
            }
        }
        has_read = true;
        // One that is rung already will be heard.
        let _ = ring.try_send(());
    }
}
