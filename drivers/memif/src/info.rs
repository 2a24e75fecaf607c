//! What is shown.

use shoal_interface::SwIfIndex;

use crate::config::CreateMemif;
use crate::ring::{Desc, RingPlace};

/// How much is read of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Its header.
    Brief,
    /// Its descriptors, too.
    Descriptors,
}

/// What `show memif` prints of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketInfo {
    /// Its number.
    pub id: u32,
    /// Where it is.
    pub filename: String,
    /// As it was written when it was made.
    pub asked: String,
    /// Whether slaves can connect.
    pub listener: bool,
    /// Slaves that are connected, or want to be.
    pub peers: usize,
    /// Slaves that were refused.
    pub refused: u64,
    /// Why the last one was.
    pub refusal: String,
}

/// What `show memif` prints of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemifInfo {
    /// The interface.
    pub index: SwIfIndex,
    /// Its name in the router.
    pub name: String,
    /// How it was made; the MAC address is what it became.
    pub config: CreateMemif,
    /// Whether the operator wants it up.
    pub admin_up: bool,
    /// Whether a peer is there whose handshake is not complete.
    pub connecting: bool,
    /// Whether packets can flow.
    pub connected: bool,
    /// Why they cannot.
    pub why: String,
    /// How often a peer has come.
    pub connections: u64,
    /// The peer's name.
    pub remote: String,
    /// The peer's interface.
    pub remote_interface: String,
    /// The listening socket's descriptor.
    pub listener_fd: Option<i32>,
    /// The connection's descriptor.
    pub conn_fd: Option<i32>,
    /// Bytes of each region.
    pub regions: Vec<usize>,
    /// The rings.
    pub rings: Vec<RingInfo>,
    /// How often the peer woke a queue.
    pub interrupts: u64,
    /// How often the peer was woken.
    pub kicks: u64,
    /// Packets whose descriptors made no sense.
    pub bad: u64,
}

/// What `show memif` prints of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingInfo {
    /// Whether packets go from slave to master in it.
    pub s2m: bool,
    /// Its number among those of its direction.
    pub index: u16,
    /// Where it lies.
    pub place: RingPlace,
    /// The eventfd's number.
    pub event: i32,
    /// As it was at this moment.
    pub head: u16,
    /// As it was at this moment.
    pub tail: u16,
    /// As they were at this moment.
    pub flags: u16,
    /// As they were at this moment.
    pub descs: Vec<Desc>,
}
