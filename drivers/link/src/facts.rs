//! What the kernel says about an interface.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State};

use shoal_module::cli::nearest;

use crate::{Error, LinkWatch, netlink};

/// The kernel's number of an interface, unique in its network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IfIndex(u32);

impl IfIndex {
    /// The index `index`.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl std::fmt::Display for IfIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What the administrator wants of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminState {
    /// In use.
    Up,
    /// Shut.
    Down,
}

/// An interface as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: IfIndex,
    /// Its name, which can change.
    pub name: String,
    /// Ethernet address, if it has one.
    pub mac: Option<[u8; 6]>,
    /// Largest payload of a frame in bytes.
    pub mtu: u32,
    /// Wanted state (`IFF_UP`).
    pub admin: AdminState,
    /// There is a carrier: a cable, or a peer that is up (`IFF_LOWER_UP`).
    pub carrier: bool,
    /// Frames can pass (operational state up, or unknown with admin up and carrier).
    pub running: bool,
    /// Receive queues.
    pub rx_queues: u32,
    /// Transmit queues.
    pub tx_queues: u32,
    /// Kind of a virtual interface (`veth`, `tun`, `bridge`, ...); `None` for hardware.
    pub kind: Option<String>,
}

impl Link {
    /// The interface `name` in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error::NoInterface`] when there is none.
    pub fn by_name(name: &str) -> Result<Self, Error> {
        let mut request = LinkMessage::default();
        request.attributes.push(LinkAttribute::IfName(name.into()));
        Self::get(request, name)
    }

    /// Names of the interfaces in the network namespace of the calling thread, for completion and suggestions; none if the
    /// kernel cannot be asked.
    pub fn names() -> Vec<String> {
        LinkWatch::open()
            .map(|watch| watch.links().map(|link| link.name.clone()).collect())
            .unwrap_or_default()
    }

    /// The name of an interface there that is most like this one.
    pub fn nearest_name(name: &str) -> Option<String> {
        nearest(name, Self::names().iter().map(String::as_str)).map(str::to_owned)
    }

    /// The interface with number `index`.
    ///
    /// # Errors
    /// As of [`Link::by_name`].
    pub fn by_index(index: IfIndex) -> Result<Self, Error> {
        let mut request = LinkMessage::default();
        request.header.index = index.get();
        Self::get(request, &index.to_string())
    }

    fn get(request: LinkMessage, name: &str) -> Result<Self, Error> {
        let missing = || Error::NoInterface { name: name.into() };
        match netlink::ask(RouteNetlinkMessage::GetLink(request), 0, "RTM_GETLINK") {
            Ok(Some(RouteNetlinkMessage::NewLink(message))) => Self::parse(&message).ok_or_else(missing),
            Ok(_) => Err(missing()),
            // ERANGE: the name is longer than any interface's.
            Err(e) if matches!(e.errno(), Some(libc::ENODEV | libc::ERANGE | libc::EINVAL)) => Err(missing()),
            Err(e) => Err(e),
        }
    }

    /// `None` for a message without a name: a bridge's view of one of its ports, not an interface.
    pub(crate) fn parse(message: &LinkMessage) -> Option<Self> {
        let flags = message.header.flags;
        let mut link = Self {
            index: IfIndex(message.header.index),
            name: String::new(),
            mac: None,
            mtu: 0,
            admin: if flags.contains(LinkFlags::Up) { AdminState::Up } else { AdminState::Down },
            carrier: flags.contains(LinkFlags::LowerUp),
            running: flags.contains(LinkFlags::Running),
            rx_queues: 1,
            tx_queues: 1,
            kind: None,
        };
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name.clone_from(name),
                LinkAttribute::Address(mac) => link.mac = mac.as_slice().try_into().ok(),
                LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
                LinkAttribute::Carrier(carrier) => link.carrier = *carrier != 0,
                LinkAttribute::OperState(State::Up) => link.running = true,
                LinkAttribute::OperState(State::Down | State::LowerLayerDown | State::NotPresent) => {
                    link.running = false;
                }
                LinkAttribute::NumRxQueues(n) => link.rx_queues = *n,
                LinkAttribute::NumTxQueues(n) => link.tx_queues = *n,
                LinkAttribute::LinkInfo(infos) => link.kind = kind(infos),
                _ => {}
            }
        }
        (!link.name.is_empty()).then_some(link)
    }
}

fn kind(infos: &[LinkInfo]) -> Option<String> {
    infos.iter().find_map(|info| match info {
        LinkInfo::Kind(InfoKind::Other(kind)) => Some(kind.clone()),
        LinkInfo::Kind(kind) => Some(kind.to_string()),
        _ => None,
    })
}

/// Sets an interface up or down, as `ip link set dev NAME up` does.
///
/// # Errors
/// The kernel refuses.
pub fn set_admin_state(index: IfIndex, state: AdminState) -> Result<(), Error> {
    let mut request = LinkMessage::default();
    request.header.index = index.get();
    request.header.change_mask = LinkFlags::Up;
    request.header.flags = if state == AdminState::Up { LinkFlags::Up } else { LinkFlags::empty() };
    netlink::ask(RouteNetlinkMessage::SetLink(request), 0, "RTM_SETLINK").map(|_| ())
}

/// Sets the largest payload of a frame in bytes, as `ip link set dev NAME mtu MTU` does.
///
/// # Errors
/// The kernel refuses.
pub fn set_mtu(index: IfIndex, mtu: u32) -> Result<(), Error> {
    let mut request = LinkMessage::default();
    request.header.index = index.get();
    request.attributes.push(LinkAttribute::Mtu(mtu));
    netlink::ask(RouteNetlinkMessage::SetLink(request), 0, "RTM_SETLINK(mtu)").map(|_| ())
}
