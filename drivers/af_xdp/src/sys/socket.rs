//! An AF_XDP socket and its options.

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use shoal_buffer::{BUFFER_SIZE, Part};
use shoal_link::IfIndex;

use super::ring::Layout;
use crate::Error;
use shoal_shm::{Mapping, Populate};

/// Bytes that may wait for the interface, in copy mode; the kernel doubles it.
const SEND_BUFFER: i32 = 8 << 20;
/// `XDP_MAX_TX_SKB_BUDGET`: frames that one system call sends in copy mode, 32 by default (Linux 6.17).
const MAX_TX_SKB_BUDGET: i32 = 9;

/// An AF_XDP socket, non-blocking.
pub(crate) struct XskSocket(OwnedFd);

/// Which of its rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingKind {
    Rx,
    Tx,
    Fill,
    Completion,
}

/// What the kernel counts for a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XskStats {
    /// Dropped for other reasons than the next ones: longer than a chunk, above all.
    pub rx_dropped: u64,
    /// Frames of ours that the kernel could not use.
    pub rx_invalid_descs: u64,
    /// Frames to be sent that the kernel could not use.
    pub tx_invalid_descs: u64,
    /// Dropped because the receive ring was full.
    pub rx_ring_full: u64,
    /// How often there was no free frame.
    pub rx_fill_ring_empty_descs: u64,
    /// How often there was nothing to send.
    pub tx_ring_empty_descs: u64,
}

impl XskStats {
    /// Frames that were for us and did not come.
    pub fn missed(&self) -> u64 {
        self.rx_dropped + self.rx_ring_full
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.rx_dropped += other.rx_dropped;
        self.rx_invalid_descs += other.rx_invalid_descs;
        self.tx_invalid_descs += other.tx_invalid_descs;
        self.rx_ring_full += other.rx_ring_full;
        self.rx_fill_ring_empty_descs += other.rx_fill_ring_empty_descs;
        self.tx_ring_empty_descs += other.tx_ring_empty_descs;
    }
}

impl XskSocket {
    pub(crate) fn open() -> Result<Self, Error> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
        if fd < 0 {
            return Err(Error::last("socket(AF_XDP)"));
        }
        // SAFETY: a descriptor that the kernel has just made for us, with no other owner.
        let socket = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        if socket.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER, "SO_SNDBUFFORCE").is_err() {
            socket.set(libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER, "SO_SNDBUF")?;
        }
        Ok(socket)
    }

    /// Something that is no such socket, for tests of the rings alone.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self(std::fs::File::open("/dev/null").unwrap().into())
    }

    /// `T` is a plain C structure or integer without padding.
    fn set<T: Copy>(&self, level: i32, option: i32, value: &T, what: &'static str) -> Result<(), Error> {
        let (ptr, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as u32);
        // SAFETY: `ptr` points at `len` readable bytes for the duration of the call.
        let rc = unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, ptr, len) };
        if rc == 0 { Ok(()) } else { Err(Error::last(what)) }
    }

    /// So many words of an option.
    fn get<const N: usize>(&self, option: i32, what: &'static str) -> Result<[u64; N], Error> {
        let mut value = [0u64; N];
        let mut len = size_of::<[u64; N]>() as u32;
        let ptr = value.as_mut_ptr().cast();
        // SAFETY: `ptr` points at `len` writable bytes; the kernel writes at most that many; any bits are a `u64`.
        let rc = unsafe { libc::getsockopt(self.0.as_raw_fd(), libc::SOL_XDP, option, ptr, &raw mut len) };
        match rc {
            0 if len as usize == size_of::<[u64; N]>() => Ok(value),
            // Before Linux 5.9 there is less, and rings do not say whether they want to be woken before 5.4.
            0 => Err(Error::os(what)(std::io::ErrorKind::Unsupported.into())),
            _ => Err(Error::last(what)),
        }
    }

    /// Gives packet memory to the kernel, in chunks. The socket must be closed before the memory goes.
    pub(super) fn register(&self, memory: &Mapping, chunk: u32) -> Result<(), Error> {
        self.register_at(memory.address(), memory.len(), chunk, 0)
    }

    /// Gives the router's buffers to the kernel, in chunks that may start anywhere, each a buffer. The kernel writes to
    /// those alone that it is given by a ring: until they come back, or the socket is closed and the kernel has ended its
    /// use of them, they are in a book of loans.
    pub(super) fn register_buffers(&self, part: &Part) -> Result<(), Error> {
        let flags = libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG;
        self.register_at(part.address(), part.len(), BUFFER_SIZE as u32, flags)
    }

    fn register_at(&self, addr: u64, len: usize, chunk: u32, flags: u32) -> Result<(), Error> {
        // The last word is flags and the length of metadata; older kernels know fewer of them and want zero.
        let words = super::ring_words;
        let request: [u64; 4] = [addr, len as u64, words(chunk, 0), words(flags, 0)];
        self.set(libc::SOL_XDP, libc::XDP_UMEM_REG, &request, "setsockopt(XDP_UMEM_REG)")
    }

    /// Makes a ring of so many entries and maps it.
    pub(super) fn ring(&self, which: RingKind, size: u32) -> Result<(Mapping, Layout), Error> {
        let (option, page, entry, at, what) = match which {
            RingKind::Rx => (libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING as u64, 16, 0, "XDP_RX_RING"),
            RingKind::Tx => (libc::XDP_TX_RING, libc::XDP_PGOFF_TX_RING as u64, 16, 1, "XDP_TX_RING"),
            RingKind::Fill => {
                (libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_PGOFF_FILL_RING, 8, 2, "XDP_UMEM_FILL_RING")
            }
            RingKind::Completion => (
                libc::XDP_UMEM_COMPLETION_RING,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING,
                8,
                3,
                "XDP_UMEM_COMPLETION_RING",
            ),
        };
        self.set(libc::SOL_XDP, option, &size, what)?;
        let offsets: [u64; 16] = self.get(libc::XDP_MMAP_OFFSETS, "XDP_MMAP_OFFSETS")?;
        let mine = offsets.chunks_exact(4).nth(at).unwrap_or_default();
        let wrong = || Error::os("XDP_MMAP_OFFSETS")(std::io::ErrorKind::InvalidData.into());
        let &[producer, consumer, entries, flags] = mine else { return Err(wrong()) };
        let [producer, consumer, entries, flags] = [producer, consumer, entries, flags].map(|o| o as usize);
        let layout = Layout { producer, consumer, flags, entries, size, entry };
        let len = layout.bytes().filter(|len| *len <= 64 << 20).ok_or_else(wrong)?;
        let map = Mapping::of_device(self.fd(), page, len, Populate::Now);
        Ok((map.map_err(Error::os("mmap(AF_XDP ring)"))?, layout))
    }

    /// Ties it to a queue of an interface.
    pub(super) fn bind(&self, ifindex: IfIndex, queue: u32, flags: u16) -> Result<(), Error> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: ifindex.get(),
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let len = size_of::<libc::sockaddr_xdp>() as u32;
        // SAFETY: `address` is `len` readable bytes for the duration of the call.
        let rc = unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) };
        if rc == 0 { Ok(()) } else { Err(Error::last("bind(AF_XDP)")) }
    }

    /// The kernel sends more at once. Older ones do not know it.
    pub(super) fn set_budget(&self, frames: u32) {
        let _ = self.set(libc::SOL_XDP, MAX_TX_SKB_BUDGET, &frames, "XDP_MAX_TX_SKB_BUDGET");
    }

    /// Its thread does the driver's work, as long as it asks often enough: microseconds and frames a time.
    pub(super) fn busy_poll(&self, usecs: u32, budget: u32) -> Result<(), Error> {
        let options = [
            (libc::SO_PREFER_BUSY_POLL, 1, "SO_PREFER_BUSY_POLL"),
            (libc::SO_BUSY_POLL, usecs, "SO_BUSY_POLL"),
            (libc::SO_BUSY_POLL_BUDGET, budget, "SO_BUSY_POLL_BUDGET"),
        ];
        options.iter().try_for_each(|(option, value, what)| self.set(libc::SOL_SOCKET, *option, value, what))
    }

    /// Whether the driver reads and writes packet memory itself.
    pub(super) fn is_zero_copy(&self) -> Result<bool, Error> {
        let mut value = 0u32;
        let mut len = size_of::<u32>() as u32;
        let (fd, ptr) = (self.0.as_raw_fd(), (&raw mut value).cast());
        // SAFETY: `ptr` points at `len` writable bytes; the kernel writes at most that many.
        let rc = unsafe { libc::getsockopt(fd, libc::SOL_XDP, libc::XDP_OPTIONS, ptr, &raw mut len) };
        if rc == 0 { Ok(value & libc::XDP_OPTIONS_ZEROCOPY != 0) } else { Err(Error::last("XDP_OPTIONS")) }
    }

    /// The kernel's counters.
    pub(crate) fn stats(&self) -> Result<XskStats, Error> {
        let [rx_dropped, rx_invalid_descs, tx_invalid_descs, rx_ring_full, fill_empty, tx_empty]: [u64; 6] =
            self.get(libc::XDP_STATISTICS, "XDP_STATISTICS")?;
        Ok(XskStats {
            rx_dropped,
            rx_invalid_descs,
            tx_invalid_descs,
            rx_ring_full,
            rx_fill_ring_empty_descs: fill_empty,
            tx_ring_empty_descs: tx_empty,
        })
    }

    /// Wakes the kernel for the transmit ring; an error number, which may mean that there is more to do.
    pub(super) fn wake_tx(&self) -> Result<(), i32> {
        let (fd, none) = (self.0.as_raw_fd(), std::ptr::null());
        // SAFETY: no bytes are sent, so the null pointers are not followed.
        let rc = unsafe { libc::sendto(fd, none, 0, libc::MSG_DONTWAIT, none.cast(), 0) };
        if rc >= 0 { Ok(()) } else { Err(errno()) }
    }

    /// Wakes the kernel for the fill ring; with busy polling it receives.
    pub(super) fn wake_rx(&self) {
        let fd = self.0.as_raw_fd();
        let mut message: MaybeUninit<libc::msghdr> = MaybeUninit::zeroed();
        // SAFETY: an all-zero msghdr is valid: no room for a name, bytes or control messages, so nothing is written.
        unsafe { libc::recvmsg(fd, message.as_mut_ptr(), libc::MSG_DONTWAIT) };
    }

    /// For epoll: readable when a frame is there.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
