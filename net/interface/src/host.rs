//! Interfaces whose other end is the kernel this router runs on: who makes them, for features that need one.
//!
//! A feature must not know a driver. The driver that can make such interfaces puts a [`HostSide`] on the shelf; a
//! feature takes it from there, when it is asked to do something.

use std::net::IpAddr;
use std::rc::Rc;

use shoal_buffer::SwIfIndex;
use shoal_wire::MacAddress;

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
}

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
}

/// Whoever makes interfaces to the kernel, on the shelf.
pub struct HostSide(pub Rc<dyn HostPorts>);
