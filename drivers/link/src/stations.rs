//! Which frames the kernel's interface is to pass on, by need.

use std::io;

use shoal_wire::MacAddress;

use crate::sys::{Membership, MembershipSocket};
use crate::{Error, IfIndex};

/// What an interface of the kernel takes in for the router, as long as this is kept: its own frames and all multicast
/// frames; those for the router's address, where that is another one; all frames only while something needs them, such as
/// layer 2. An interface that cannot filter by a second address takes in all frames for it: the kernel sees to that.
///
/// The kernel counts such wishes, so those of other programs are not touched, and it forgets these when the process ends.
#[derive(Debug)]
pub struct Stations {
    socket: MembershipSocket,
    link: IfIndex,
    own: Option<MacAddress>,
    all: bool,
}

impl Stations {
    /// Asks an Ethernet interface in the network namespace of the calling thread for all multicast frames.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn open(link: IfIndex) -> Result<Self, Error> {
        let socket = MembershipSocket::open().map_err(Error::os("socket(AF_PACKET)"))?;
        let stations = Stations { socket, link, own: None, all: false };
        stations.set(Membership::AllMulticast, true)?;
        Ok(stations)
    }

    /// Asks for the frames of the router's address, instead of those of an earlier one. None: the router has the
    /// interface's own.
    ///
    /// # Errors
    /// The kernel refuses; what was wanted before still is then.
    pub fn set_own(&mut self, mac: Option<MacAddress>) -> Result<(), Error> {
        if mac == self.own {
            return Ok(());
        }
        if let Some(mac) = mac {
            self.set(Membership::Unicast(mac.0), true)?;
        }
        if let Some(before) = std::mem::replace(&mut self.own, mac) {
            self.end(Membership::Unicast(before.0))?;
        }
        Ok(())
    }

    /// Asks for the frames of all stations, or no longer.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_all(&mut self, on: bool) -> Result<(), Error> {
        if on == self.all {
            return Ok(());
        }
        if on {
            self.set(Membership::Promiscuous, true)?;
        } else {
            self.end(Membership::Promiscuous)?;
        }
        self.all = on;
        Ok(())
    }

    fn set(&self, membership: Membership, on: bool) -> Result<(), Error> {
        self.socket.set(self.link, membership, on).map_err(Error::os("PACKET_ADD_MEMBERSHIP"))
    }

    /// Ends a membership. One that has gone with its interface has ended.
    fn end(&self, membership: Membership) -> Result<(), Error> {
        match self.socket.set(self.link, membership, false) {
            Err(e)
                if e.kind() == io::ErrorKind::AddrNotAvailable || e.raw_os_error() == Some(libc::ENODEV) =>
            {
                Ok(())
            }
            ended => ended.map_err(Error::os("PACKET_DROP_MEMBERSHIP")),
        }
    }
}
