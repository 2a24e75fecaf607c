//! Signals an eventfd that a stranger has, too, without ever waiting for it.
//!
//! write(2) waits while an eventfd is full, unless its *open file description* says O_NONBLOCK, and that description is
//! shared: a process with a copy of the descriptor can take the flag away between any check and the write. The kernel
//! itself never waits when it signals an eventfd, since it does so in interrupts. One interface leads there: a request
//! of its asynchronous I/O (io_submit(2)) names an eventfd that is signalled when the request is done. So a request is
//! submitted that is done at once: to read nothing from a private eventfd. See decision 11.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, PollFd, PollFlags};

/// To read at an offset (`IOCB_CMD_PREAD`).
const PREAD: u16 = 0;
/// The request names an eventfd (`IOCB_FLAG_RESFD`).
const RESFD: u32 = 1;
/// Results that are fetched at once: about as many as the smallest context holds.
const RESULTS: usize = 128;

/// What the kernel is asked for: `struct iocb` of linux/aio_abi.h. Of the halves of its second word, whose order depends on
/// the machine, both are 0.
#[repr(C)]
struct Request {
    data: u64,
    key_and_rw_flags: u64,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    eventfd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy)]
struct IoEvent([u64; 4]);

/// `aio_context_t`.
type Context = libc::c_ulong;

/// Contexts that are not in use. Ending one takes the kernel some 30 ms, in which the main thread would stand still, so
/// they are kept: as many as there ever were doorbells at once, a page each.
#[derive(Default)]
struct Spare {
    contexts: Vec<Context>,
    /// Nothing is ever written to it. It is there once a request was seen to signal.
    nothing: Option<Arc<OwnedFd>>,
}

static SPARE: Mutex<Spare> = Mutex::new(Spare { contexts: Vec::new(), nothing: None });

fn spare() -> MutexGuard<'static, Spare> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signals eventfds, for one thread at a time as a rule; others may, too.
#[derive(Debug)]
pub(crate) struct Signal {
    context: Context,
    nothing: Arc<OwnedFd>,
}

impl Signal {
    /// A way to signal.
    ///
    /// # Errors
    /// This kernel has none, or no more (`fs.aio-max-nr`).
    pub(crate) fn new() -> io::Result<Self> {
        let mut spare = spare();
        let context = match spare.contexts.pop() {
            Some(context) => context,
            None => setup()?,
        };
        if let Some(nothing) = &spare.nothing {
            return Ok(Signal { context, nothing: Arc::clone(nothing) });
        }
        let signal = Signal { context, nothing: Arc::new(eventfd()?) };
        let tried = signal.works();
        if tried.is_ok() {
            spare.nothing = Some(Arc::clone(&signal.nothing));
        }
        // Dropping a signal takes the lock.
        drop(spare);
        tried.map(|()| signal)
    }

    /// Whether a request really signals: before Linux 5.8 an eventfd could not be read by requests.
    fn works(&self) -> io::Result<()> {
        let event = eventfd()?;
        self.send(event.as_fd())?;
        let mut poll = [PollFd::new(&event, PollFlags::IN)];
        match rustix::event::poll(&mut poll, Some(&rustix::event::Timespec::default()))? {
            0 => Err(io::ErrorKind::Unsupported.into()),
            _ => Ok(()),
        }
    }

    /// Adds 1 to an eventfd, or nothing if it is full. Never waits, whatever others have made of it.
    ///
    /// # Errors
    /// It is no eventfd, or the kernel is out of memory.
    pub(crate) fn send(&self, event: BorrowedFd<'_>) -> io::Result<()> {
        match submit(self.context, self.nothing.as_fd(), event.as_raw_fd()) {
            // Full of results, which are of no interest.
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {
                fetch(self.context);
                submit(self.context, self.nothing.as_fd(), event.as_raw_fd())
            }
            done => done,
        }
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        spare().contexts.push(self.context);
    }
}

fn eventfd() -> io::Result<OwnedFd> {
    Ok(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn setup() -> io::Result<Context> {
    let mut context: Context = 0;
    // SAFETY: io_setup(2) writes the context's number, to a variable that holds 0 as it demands.
    checked(unsafe { libc::syscall(libc::SYS_io_setup, 1 as libc::c_long, &raw mut context) })?;
    Ok(context)
}

/// Submits a request to read no bytes of `from`, which signals `event`.
fn submit(context: Context, from: BorrowedFd<'_>, event: RawFd) -> io::Result<()> {
    let mut request = Request {
        data: 0,
        key_and_rw_flags: 0,
        opcode: PREAD,
        priority: 0,
        file: from.as_raw_fd() as u32,
        buffer: 0,
        bytes: 0,
        offset: 0,
        reserved: 0,
        flags: RESFD,
        eventfd: event as u32,
    };
    let mut list = [&raw mut request];
    // SAFETY: io_submit(2) reads one pointer, and the request it points to, whose key it writes; both live until it has
    // returned, after which the kernel uses neither. The request has no buffer, so nothing is written later.
    checked(unsafe { libc::syscall(libc::SYS_io_submit, context, 1 as libc::c_long, list.as_mut_ptr()) })?;
    Ok(())
}

/// Makes room for results.
#[cold]
fn fetch(context: Context) {
    let mut done = [IoEvent([0; 4]); RESULTS];
    let mut no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let (least, most) = (0 as libc::c_long, RESULTS as libc::c_long);
    // SAFETY: io_getevents(2) writes at most as many results as there is room for, and reads the time; with a time of 0 and
    // none wanted at least it does not wait.
    unsafe {
        libc::syscall(
            libc::SYS_io_getevents,
            context,
            least,
            most,
            done.as_mut_ptr(),
            ptr::from_mut(&mut no_time),
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(event: &OwnedFd) -> u64 {
        let mut bytes = [0; 8];
        rustix::io::read(event, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
    }

    #[test]
    fn structures_are_those_of_the_kernels_header() {
        assert_eq!((size_of::<Request>(), size_of::<IoEvent>()), (64, 32));
        assert_eq!(std::mem::offset_of!(Request, opcode), 16);
        assert_eq!(std::mem::offset_of!(Request, eventfd), 60);
    }

    #[test]
    fn each_signal_adds_one_also_when_results_fill_the_context() {
        let (signal, event) = (Signal::new().unwrap(), eventfd().unwrap());
        for _ in 0..10_000 {
            signal.send(event.as_fd()).unwrap();
        }
        assert_eq!(count(&event), 10_000);
    }

    #[test]
    fn several_threads_may_signal_by_one() {
        let (signal, event) = (Signal::new().unwrap(), eventfd().unwrap());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5_000).for_each(|_| signal.send(event.as_fd()).unwrap()));
            }
        });
        assert_eq!(count(&event), 20_000);
    }

    #[test]
    fn a_full_one_that_blocks_is_not_waited_for() {
        let signal = Signal::new().unwrap();
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        signal.send(event.as_fd()).unwrap();
        signal.send(event.as_fd()).unwrap();
        assert_eq!(count(&event), u64::MAX);
    }

    #[test]
    fn what_is_no_eventfd_is_an_error() {
        let (_read, write) = rustix::pipe::pipe().unwrap();
        let refused = Signal::new().unwrap().send(write.as_fd()).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn contexts_are_used_again() {
        let before = spare().contexts.len();
        for _ in 0..1000 {
            drop(Signal::new().unwrap());
        }
        // Other tests have theirs at the same time.
        assert!(spare().contexts.len() < before + 100);
    }
}
