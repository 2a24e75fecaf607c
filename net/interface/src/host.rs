//! Interfaces whose other end is the kernel this router runs on: their maker, for features that need one.
//!
//! A feature must not know a driver. The driver that can make such interfaces puts a [`HostSide`] on the shelf; a
//! feature takes it from there, when it is asked to do something.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;

use shoal_buffer::SwIfIndex;
use shoal_wire::MacAddress;
use smallvec::SmallVec;

use crate::{TagKind, Vid};

mod next_hops;

pub use next_hops::{HostNextHop, HostNextHops, Resolved};

/// An interface to be made, as the kernel will see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Its name there.
    pub name: String,
    /// The name of the network namespace; that of this router if none.
    pub netns: Option<String>,
    /// Its Ethernet address there.
    pub mac: MacAddress,
    /// Its MTU there.
    pub mtu: u16,
    /// Whether the kernel may use it at once.
    pub up: bool,
    /// What it carries.
    pub layer: HostLayer,
}

/// What an interface to the kernel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostLayer {
    /// Frames: a TAP.
    Ethernet,
    /// IP packets: a TUN.
    Ip,
}

/// Why the kernel lists all that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListingCause {
    /// It is heard from now on.
    Start,
    /// Announcements were lost: they came faster than they were read.
    Lost,
    /// An interface came up or became part of another one: the kernel uses next hops again, or has dropped routes, without
    /// announcing it.
    LinkUp,
    /// Somebody wants to know whether what is known is true.
    Audit,
}

/// How the kernel came to say something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOrigin {
    /// It has just changed.
    Announced,
    /// It is in a listing of all that there is.
    Listed,
}

/// Somebody who hears what the kernel says of a network namespace, until this is dropped.
pub trait HostListener {
    /// The kernel lists all that there is once more, to find out whether what is known is true
    /// ([`ListingCause::Audit`]).
    fn audit(&self);
}

/// What the kernel says of a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// What there is follows.
    Begin(ListingCause),
    /// That was everything: what has not been named since [`HostEvent::Begin`] is not there.
    End,
    /// An interface, as it is now.
    Link(HostLink),
    /// There is no such interface any more.
    Gone {
        /// The kernel's number of it.
        host_index: u32,
    },
    /// An interface has an address, with the length of its network, or has it no longer.
    Address {
        /// The kernel's number of the interface.
        host_index: u32,
        /// The address.
        address: (IpAddr, u8),
        /// Whether it has it.
        present: bool,
    },
    /// A neighbour of an interface.
    Neighbor {
        /// The kernel's number of the interface.
        host_index: u32,
        /// Its address.
        address: IpAddr,
        /// Its Ethernet address; none when it is not known any more.
        mac: Option<MacAddress>,
        /// Whether an operator says so.
        by_operator: bool,
    },
    /// A number that routes may name means this next hop or group now, or nothing any more.
    NextHop {
        /// The number.
        id: u32,
        /// What it means.
        hop: Option<HostNextHop>,
    },
    /// A route is there, or no longer.
    Route {
        /// The route. One that goes may name some of its next hops only.
        route: HostRoute,
        /// Whether it is there.
        present: bool,
    },
    /// A multicast route is there, or no longer.
    MulticastRoute {
        /// The route.
        route: HostMulticastRoute,
        /// Whether it is there.
        present: bool,
    },
}

/// An interface of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLink {
    /// The kernel's number of it.
    pub host_index: u32,
    /// Its name.
    pub name: String,
    /// Whether its administrator lets it be used.
    pub up: bool,
    /// Whether its cable is plugged in.
    pub carrier: bool,
    /// The longest packet that it carries; 0 if the kernel does not say.
    pub mtu: u32,
    /// Its Ethernet address, if it has one.
    pub mac: Option<MacAddress>,
    /// The kernel's number of the interface that it is part of: a VRF, a bridge.
    pub master: Option<u32>,
    /// What it is.
    pub kind: HostLinkKind,
}

/// What an interface of the kernel is, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostLinkKind {
    /// Something else.
    Other,
    /// A VRF: packets of the interfaces that are part of it are routed by a table of their own.
    Vrf {
        /// The kernel's table.
        table: u32,
    },
    /// A VLAN of another interface.
    Vlan {
        /// The kernel's number of that interface, if it is in the same namespace.
        of: Option<u32>,
        /// The kind of its tags.
        tag: TagKind,
        /// Its number.
        id: Vid,
    },
}

/// A change of an interface of the kernel that was made there, on an interface to this router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostChange {
    /// The kernel may use it, or no longer.
    Up(bool),
    /// Its MTU.
    Mtu(u16),
    /// An address with the length of its network, and whether it is there.
    Address((IpAddr, u8), bool),
}

/// A multicast route of the kernel: what a routing daemon wants to become of packets to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMulticastRoute {
    /// The kernel's table; 253 is the one that daemons use unless they ask for another.
    pub table: u32,
    /// The sender; unspecified for all.
    pub source: IpAddr,
    /// The group; unspecified for all.
    pub group: IpAddr,
    /// The kernel's number of the interface that packets are taken from; nothing while the daemon has not decided.
    pub input: Option<u32>,
    /// Those that they leave by.
    pub outputs: Vec<u32>,
}

/// A route of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRoute {
    /// The kernel's table; 254 is the main one.
    pub table: u32,
    /// Where it leads: network and length.
    pub prefix: (IpAddr, u8),
    /// The lowest one of a prefix is used.
    pub metric: u32,
    /// Who made it: an `RTPROT_` number of linux/rtnetlink.h.
    pub protocol: u8,
    /// The number of its next hop or group, if it has one.
    pub next_hop_id: Option<u32>,
    /// How, as far as the kernel writes that out for a route with a number.
    pub way: HostWay,
}

impl HostRoute {
    /// `RTPROT_STATIC`: an administrator's, as those below.
    pub const STATIC: u8 = 4;

    /// Whether a routing protocol made it, not an operator.
    pub fn learnt(&self) -> bool {
        self.protocol > Self::STATIC
    }
}

/// What the kernel does with packets of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostWay {
    /// Sends them to one of these.
    Via(HostPaths),
    /// Throws them away.
    Blackhole,
    /// Tells the sender that there is no way.
    Unreachable,
    /// Tells the sender that it is forbidden.
    Prohibit,
}

impl HostWay {
    /// To one of these.
    pub fn via(paths: impl IntoIterator<Item = HostPath>) -> Self {
        Self::Via(paths.into_iter().collect())
    }
}

/// Next hops of a route: nearly always it is one, which needs no memory of its own.
pub type HostPaths = SmallVec<[HostPath; 1]>;

/// One next hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPath {
    /// The kernel's number of the interface.
    pub host_index: u32,
    /// The neighbour; none on a connected network.
    pub next_hop: Option<IpAddr>,
    /// Its share.
    pub weight: u8,
}

/// Hears what the kernel says, in the order in which it says it; several things at a time when several wait.
pub type HostEventHandler = Box<dyn Fn(Vec<(EventOrigin, HostEvent)>)>;

/// Makes such interfaces and changes the kernel's side of them.
pub trait HostPorts {
    /// Makes one; it starts admin down, which the kernel sees as a cable that is not plugged in.
    ///
    /// # Errors
    /// Why the kernel refuses; nothing is left behind then.
    fn create(&self, port: &HostPort) -> Result<SwIfIndex, String>;

    /// Deletes one, on both sides.
    ///
    /// # Errors
    /// It is none of these.
    fn delete(&self, interface: SwIfIndex) -> Result<(), String>;

    /// The kernel's number of it, in its namespace.
    fn host_index(&self, interface: SwIfIndex) -> Option<u32>;

    /// Lets the kernel use its side, or no longer.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn set_up(&self, interface: SwIfIndex, up: bool) -> Result<(), String>;

    /// Whether the kernel may use its side; nothing if it does not say.
    fn is_up(&self, interface: SwIfIndex) -> Option<bool>;

    /// Plugs the cable in on the kernel's side, or pulls it; while this router's side is down, it is not plugged in.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn set_carrier(&self, interface: SwIfIndex, plugged: bool) -> Result<(), String>;

    /// Hears what the kernel says of a network namespace, that of this router if none, until what is returned is
    /// dropped. It begins with what there is.
    ///
    /// # Errors
    /// The kernel cannot be asked.
    fn listen(&self, netns: Option<&str>, hear: HostEventHandler) -> Result<Box<dyn HostListener>, String>;

    /// Takes connections in a network namespace.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn listen_tcp(&self, netns: &str, at: SocketAddr) -> Result<TcpListener, String> {
        Err(format!("{at} in the network namespace {netns}: it cannot be entered"))
    }

    /// Begins to connect in a network namespace: the stream does not block, and can be written to when it is connected.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn connect_tcp(&self, netns: &str, at: SocketAddr) -> Result<TcpStream, String> {
        Err(format!("{at} in the network namespace {netns}: it cannot be entered"))
    }

    /// Gives the kernel's side an MTU.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn set_mtu(&self, interface: SwIfIndex, mtu: u16) -> Result<(), String>;

    /// Gives the kernel's side an Ethernet address.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn set_mac(&self, interface: SwIfIndex, mac: MacAddress) -> Result<(), String>;

    /// Gives the kernel's side an address with the length of its network, or takes it away.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn set_address(&self, interface: SwIfIndex, address: (IpAddr, u8), present: bool) -> Result<(), String>;

    /// Changes another interface of the kernel in the namespace of the kernel's side: a VLAN on it.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn change_link(&self, interface: SwIfIndex, host_index: u32, change: HostChange) -> Result<(), String> {
        let _ = (interface, change);
        Err(format!("interface {host_index} of Linux cannot be changed from here"))
    }
}

/// The maker of interfaces to the kernel, on the shelf.
pub struct HostSide(pub Rc<dyn HostPorts>);
