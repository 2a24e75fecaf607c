//! What others learn of interfaces.

use shoal_buffer::SwIfIndex;

/// Something happened to an interface. When it is reported, it has happened, but for [`Event::Deleting`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It exists.
    Created(SwIfIndex),
    /// It is about to go: forget it.
    Deleting(SwIfIndex),
    /// The operator set it up or down.
    Admin(SwIfIndex, bool),
    /// Its device says that the other end is there or not.
    Link(SwIfIndex, bool),
    /// It has another MAC address.
    Mac(SwIfIndex),
    /// It takes frames for other MAC addresses besides its own than before.
    ExtraMacs(SwIfIndex),
    /// It has another MTU.
    Mtu(SwIfIndex),
    /// IPv4 runs on it, or does so no more.
    Ip4(SwIfIndex, bool),
    /// IPv6 runs on it, or does so no more.
    Ip6(SwIfIndex, bool),
    /// It was renamed.
    Name(SwIfIndex),
    /// It has more or fewer receive queues.
    Queues(SwIfIndex),
    /// It has gone, and its queues with it; its index may be another's soon.
    Deleted(SwIfIndex),
}

impl Event {
    /// The interface it is about.
    pub fn interface(self) -> SwIfIndex {
        match self {
            Event::Created(i)
            | Event::Deleting(i)
            | Event::Mac(i)
            | Event::ExtraMacs(i)
            | Event::Mtu(i)
            | Event::Name(i)
            | Event::Queues(i)
            | Event::Deleted(i)
            | Event::Admin(i, _)
            | Event::Link(i, _)
            | Event::Ip4(i, _)
            | Event::Ip6(i, _) => i,
        }
    }
}
