//! Many datagrams of a netlink socket with one system call: a routing daemon that gets a full table announces each route in one of its own.

use std::io::IoSliceMut;
use std::os::fd::AsRawFd as _;

use netlink_sys::Socket;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, NetlinkAddr, recvmmsg};

use crate::Error;

/// Datagrams that are read at once.
const MOST: usize = 32;
/// Room for each. The kernel lists in datagrams of 32 KiB at most; pages that are not written take no memory.
const ROOM: usize = 64 << 10;

/// What was read last.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// How many bytes of each datagram count.
    lengths: Vec<usize>,
}

/// What became of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Datagrams of the kernel are there, or none that counts.
    Yes,
    /// The kernel has thrown announcements away that did not fit.
    Lost,
}

impl Inbox {
    /// Reads what waits, in place of what was read before.
    ///
    /// # Errors
    /// `EAGAIN` when nothing waits on a socket that does not block; the socket cannot be read.
    pub fn fill(&mut self, socket: &Socket) -> Result<Filled, Error> {
        self.lengths.clear();
        self.bytes.resize(MOST * ROOM, 0);
        let mut headers = MultiHeaders::<NetlinkAddr>::preallocate(MOST, None);
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            self.bytes.chunks_mut(ROOM).map(|room| [IoSliceMut::new(room)]).collect();
        let read =
            recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None);
        match read {
            // Any process may send to a netlink socket; only the kernel's port number is 0.
            Ok(all) => self.lengths.extend(all.map(|one| match one.address {
                Some(from) if from.pid() == 0 => one.bytes.min(ROOM),
                _ => 0,
            })),
            Err(Errno::EINTR) => {}
            Err(Errno::ENOBUFS) => return Ok(Filled::Lost),
            Err(e) => return Err(Error::os("recvmmsg(AF_NETLINK)")(e.into())),
        }
        Ok(Filled::Yes)
    }

    /// The datagrams that were read last.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(ROOM).zip(&self.lengths).filter_map(|(room, len)| room.get(..*len))
    }
}
