//! One receive queue: a packet socket with a TPACKET_V2 or V3 ring.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};

use super::rx_block::{Cursor, RingVersion, RxFrame};
use super::rx_config::{Fanout, Promiscuous, RxConfig};
use super::socket::{PacketSocket, Receive};
use shoal_link::IfIndex;
use shoal_shm::{Mapping, Populate};

use crate::Error;

/// Bytes that may wait in the socket: superframes of a version 2 ring. The kernel doubles it.
const SOCKET_BUFFER: i32 = 8 << 20;
/// The longest frame that waits there: its vnet header, a superframe and its link layer. A longer one (BIG TCP) counts as
/// truncated.
const LONGEST: usize = 10 + 65_536 + 64;

/// Cumulative counters of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxStats {
    /// Frames the kernel offered to the ring, dropped ones included.
    pub packets: u64,
    /// Frames dropped because every block was full (VPP's rx-miss).
    pub drops: u64,
    /// How often the ring froze because user space held all blocks.
    pub freezes: u64,
    /// Blocks given up because they contradicted themselves; always 0 with a sane kernel.
    pub malformed: u64,
}

/// What an error condition on the socket (`EPOLLERR`) means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingFault {
    /// The interface went down. Frames resume by themselves when it comes up.
    Down,
    /// The interface was deleted, or moved to another namespace. The ring will never receive again.
    Gone,
    /// Any other error number.
    Errno(i32),
}

/// One receive queue of an interface.
///
/// Frames are read in place; the kernel gets a block back when the frame after its last is asked for.
/// The ring survives its interface going down and up. It is `Send`: a queue moves between workers.
///
/// ```no_run
/// use shoal_af_packet::{RxConfig, RxRing};
/// use shoal_link::Link;
/// let link = Link::by_name("eth1")?;
/// let mut ring = RxRing::open(link.index, &RxConfig::default())?;
/// while let Some(frame) = ring.next() {
///     println!("{} bytes", frame.bytes.len());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RxRing {
    // Dropped first: the socket outlives its mapping.
    map: Mapping,
    socket: Arc<PacketSocket>,
    version: RingVersion,
    block_size: usize,
    blocks: usize,
    current: usize,
    cursor: Option<Cursor>,
    stats: RxStats,
    /// Version 2: where a frame that is longer than a slot is read into.
    long: Box<[u8]>,
    /// An error number that reading such a frame took from the socket.
    fault: Cell<i32>,
}

impl RxRing {
    /// Opens a queue in the network namespace of the calling thread.
    ///
    /// Errors: [`Error::Config`] for a wrong geometry; [`Error::Os`] with `EPERM` without CAP_NET_RAW,
    /// `ENODEV` for a vanished interface, and, on kernels before 6.14, `EINVAL` for a fanout on an
    /// interface that is down (bring it up first).
    pub fn open(ifindex: IfIndex, config: &RxConfig) -> Result<Self, Error> {
        config.check()?;
        let socket = PacketSocket::open()?;
        // The order matters: the kernel lays the ring out by version and header size.
        let version = match config.version {
            RingVersion::V3 => libc::tpacket_versions::TPACKET_V3,
            RingVersion::V2 => libc::tpacket_versions::TPACKET_V2,
        };
        socket.set(libc::PACKET_VERSION, &version, "PACKET_VERSION")?;
        socket.set(libc::PACKET_VNET_HDR, &1i32, "PACKET_VNET_HDR")?;
        // Frames that other programs, and our own transmit queue, send through the interface.
        socket.set(libc::PACKET_IGNORE_OUTGOING, &1i32, "PACKET_IGNORE_OUTGOING")?;
        if config.version == RingVersion::V2 {
            // What does not fit its slot is queued on the socket, whole.
            socket.set(libc::PACKET_COPY_THRESH, &1i32, "PACKET_COPY_THRESH")?;
            socket.set_buffer(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, SOCKET_BUFFER)?;
        }
        Self::ring(&socket, config)?;
        let map = {
            let len = config.block_size * config.blocks;
            let map = Mapping::of_device(socket.fd(), 0, len, Populate::Later);
            map.map_err(Error::os("mmap(PACKET_RX_RING)"))?
        };
        let mut ring = Self {
            map,
            socket: Arc::new(socket),
            version: config.version,
            block_size: config.block_size,
            blocks: config.blocks,
            current: 0,
            cursor: None,
            stats: RxStats::default(),
            long: match config.version {
                RingVersion::V3 => Box::default(),
                RingVersion::V2 => vec![0; LONGEST].into(),
            },
            fault: Cell::new(0),
        };
        ring.attach(ifindex, config)?;
        Ok(ring)
    }

    fn ring(socket: &PacketSocket, config: &RxConfig) -> Result<(), Error> {
        let pieces = config.block_size * config.blocks / config.piece();
        let (piece, pieces) = (config.piece() as u32, pieces as u32);
        match config.version {
            RingVersion::V3 => {
                let request = libc::tpacket_req3 {
                    tp_block_size: piece,
                    tp_block_nr: pieces,
                    // Version 3 packs frames of any size; the kernel only wants the numbers to be consistent.
                    tp_frame_size: 2048,
                    tp_frame_nr: piece / 2048 * pieces,
                    tp_retire_blk_tov: config.retire.as_millis() as u32,
                    tp_sizeof_priv: 0,
                    tp_feature_req_word: 0,
                };
                socket.set(libc::PACKET_RX_RING, &request, "PACKET_RX_RING")
            }
            RingVersion::V2 => {
                let request = libc::tpacket_req {
                    tp_block_size: piece,
                    tp_block_nr: pieces,
                    tp_frame_size: config.block_size as u32,
                    tp_frame_nr: config.blocks as u32,
                };
                socket.set(libc::PACKET_RX_RING, &request, "PACKET_RX_RING")
            }
        }
    }

    fn attach(&mut self, ifindex: IfIndex, config: &RxConfig) -> Result<(), Error> {
        if config.promiscuous == Promiscuous::On {
            let request = libc::packet_mreq {
                mr_ifindex: ifindex.get() as i32,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            self.socket.set(libc::PACKET_ADD_MEMBERSHIP, &request, "PACKET_ADD_MEMBERSHIP")?;
        }
        let (id, unique) = match config.fanout {
            Fanout::Alone => return self.socket.bind(ifindex, Receive::Everything),
            Fanout::NewGroup => (0, libc::PACKET_FANOUT_FLAG_UNIQUEID),
            Fanout::Join(id) => (id, 0),
        };
        // Between bind and fanout a joining socket would see frames that its group has already got, and
        // the router would forward them twice: a filter that accepts nothing covers the gap.
        let mut nothing =
            [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 }];
        let program = libc::sock_fprog { len: 1, filter: nothing.as_mut_ptr() };
        self.socket.set_at(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program, "SO_ATTACH_FILTER")?;
        self.socket.bind(ifindex, Receive::Everything)?;
        self.socket.join(id, unique)?;
        self.socket.set_at(libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0i32, "SO_DETACH_FILTER")
    }

    /// Opens `queues` rings that share the interface by flow hash (one ring: no fanout).
    pub fn open_queues(ifindex: IfIndex, config: &RxConfig, queues: usize) -> Result<Vec<Self>, Error> {
        if !(1..=256).contains(&queues) {
            let (what, rule) = ("number of receive queues", "from 1 to 256");
            return Err(Error::Config { what, value: queues as u64, rule });
        }
        let fanout = if queues == 1 { Fanout::Alone } else { Fanout::NewGroup };
        let first = Self::open(ifindex, &RxConfig { fanout, ..*config })?;
        let group = first.fanout_id()?.map_or(Fanout::Alone, Fanout::Join);
        let mut rings = vec![first];
        for _ in 1..queues {
            rings.push(Self::open(ifindex, &RxConfig { fanout: group, ..*config })?);
        }
        Ok(rings)
    }

    /// For a thread that opens further queues while another thread has this one.
    pub fn handle(&self) -> RxHandle {
        RxHandle(Arc::downgrade(&self.socket))
    }

    /// The next frame, or `None` when the kernel has none ready.
    // Not `Iterator`: the frame borrows the ring, so that its block cannot return to the kernel under it.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Option<RxFrame<'_>> {
        let located = loop {
            let cursor = match &mut self.cursor {
                Some(cursor) if !cursor.is_empty() => cursor,
                _ => {
                    self.release();
                    let base = self.current * self.block_size;
                    self.cursor.insert(Cursor::acquire(&self.map, base, self.block_size, self.version)?)
                }
            };
            if cursor.is_empty() {
                continue;
            }
            if let Ok(located) = cursor.step(&self.map) {
                break located;
            }
            self.stats.malformed += 1;
            self.release();
        };
        if located.waits_in_socket()
            && let Some(received) = self.receive_long()
        {
            // Frames wait in the order of their slots. Should one be missing, its slot's beginning counts as truncated.
            let frame = located.of_socket(self.long.get(..received).unwrap_or_default());
            if frame.is_some() {
                return frame;
            }
        }
        // SAFETY: the block was acquired above or earlier, and only `release` gives it back, which takes
        // `&mut self`, which the returned frame keeps borrowed.
        unsafe { located.view(&self.map) }
    }

    /// Reads a frame that was too long for its slot; `None` when it is not there.
    #[cold]
    fn receive_long(&mut self) -> Option<usize> {
        loop {
            match self.socket.receive(&mut self.long) {
                Ok(len) => return Some(len),
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) => return None,
                // The socket tells of its interface first; the frame is still there.
                Err(errno) if self.fault.replace(errno) == 0 => {}
                Err(_) => return None,
            }
        }
    }

    /// Gives the block in hand back to the kernel and moves on.
    fn release(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            cursor.release(&self.map);
            self.current = (self.current + 1) % self.blocks;
        }
    }

    /// Whether a frame is ready, without taking it: what an idle worker asks before it sleeps.
    pub fn is_ready(&self) -> bool {
        let ahead = match &self.cursor {
            Some(cursor) if !cursor.is_empty() => return true,
            Some(_) => 1,
            None => 0,
        };
        let base = (self.current + ahead) % self.blocks * self.block_size;
        Cursor::acquire(&self.map, base, self.block_size, self.version).is_some()
    }

    /// The counters so far.
    pub fn stats(&mut self) -> Result<RxStats, Error> {
        // The kernel clears its counters when they are read.
        let [packets, drops, freezes] =
            self.socket.get_words(libc::SOL_PACKET, libc::PACKET_STATISTICS, "PACKET_STATISTICS")?;
        self.stats.packets += u64::from(packets);
        self.stats.drops += u64::from(drops);
        self.stats.freezes += u64::from(freezes);
        Ok(self.stats)
    }

    /// How it is laid out.
    pub fn version(&self) -> RingVersion {
        self.version
    }

    /// The group to [`Fanout::Join`] with further queues; `None` for a queue that is alone.
    pub fn fanout_id(&self) -> Result<Option<u16>, Error> {
        self.socket.group()
    }

    /// For epoll: readable when a block is ready, an error condition when [`RxRing::take_fault`] has one.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// Reads and clears the socket's error condition. It must be called on `EPOLLERR`, which otherwise
    /// stays and wakes the worker for ever.
    pub fn take_fault(&self) -> Option<RingFault> {
        let noticed = self.fault.take();
        match self.socket.take_error() {
            0 => self.fault_of(noticed),
            errno => self.fault_of(errno),
        }
    }

    fn fault_of(&self, errno: i32) -> Option<RingFault> {
        match errno {
            _ if self.is_gone() => Some(RingFault::Gone),
            0 => None,
            libc::ENETDOWN => Some(RingFault::Down),
            errno => Some(RingFault::Errno(errno)),
        }
    }

    /// Whether the interface has been deleted or moved away. The kernel raises one error for "down" and
    /// none for the deletion that follows it, so a [`RingFault::Down`] may become this later.
    pub fn is_gone(&self) -> bool {
        self.socket.bound_to().is_none()
    }
}

/// A ring that another thread has, for as long as that is open.
pub struct RxHandle(Weak<PacketSocket>);

impl RxHandle {
    /// The group that further queues [`Fanout::Join`]: the ring's, or a new one, without losing a frame, if it was alone.
    ///
    /// Errors: [`Error::Os`] with `ENOTCONN` when the ring was closed; before Linux 6.14 with `EINVAL` when the interface
    /// is down.
    pub fn group(&self) -> Result<u16, Error> {
        let closed =
            || Error::Os { what: "PACKET_FANOUT", source: std::io::Error::from_raw_os_error(libc::ENOTCONN) };
        let socket = self.0.upgrade().ok_or_else(closed)?;
        match socket.group()? {
            Some(group) => Ok(group),
            None => socket.join(0, libc::PACKET_FANOUT_FLAG_UNIQUEID),
        }
    }
}

impl AsFd for RxRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}
