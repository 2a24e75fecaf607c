//! Addresses that are given, or followed from an interface.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use shoal_adj::Family;
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;

/// Where an address comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AddressSource {
    /// It is this one; of no host: there is none.
    Given(IpAddr),
    /// The first one of an interface.
    Interface(SwIfIndex, Family),
}

/// An address and a port, 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Endpoint {
    /// The address.
    pub from: AddressSource,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// No host's address.
    pub const UNSPECIFIED: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    /// Neither address nor port.
    pub const NONE: Endpoint = Endpoint { from: AddressSource::Given(Self::UNSPECIFIED), port: 0 };

    /// An address that is given.
    pub const fn new(address: IpAddr, port: u16) -> Self {
        Endpoint { from: AddressSource::Given(address), port }
    }

    /// The family of its address; `None`: any.
    pub fn family(&self) -> Option<Family> {
        match self.from {
            AddressSource::Given(address) if address.is_unspecified() => None,
            AddressSource::Given(address) => Some(Family::of(address)),
            AddressSource::Interface(_, family) => Some(family),
        }
    }

    /// Whether it follows an interface.
    pub fn follows(&self, interface: SwIfIndex) -> bool {
        matches!(self.from, AddressSource::Interface(of, _) if of == interface)
    }
}

/// The source of interfaces' addresses.
pub struct Addresses<'a> {
    /// Those of IPv4.
    pub ip4: &'a Ip4,
    /// Those of IPv6.
    pub ip6: &'a Ip6,
}

impl Addresses<'_> {
    /// The address of an endpoint now, if it has one.
    pub fn of(&self, from: AddressSource) -> Option<IpAddr> {
        match from {
            AddressSource::Given(address) => (!address.is_unspecified()).then_some(address),
            AddressSource::Interface(interface, Family::Ip4) => self.ip4.primary(interface).map(IpAddr::V4),
            AddressSource::Interface(interface, Family::Ip6) => {
                self.ip6.addresses(interface).first().map(|prefix| IpAddr::V6(prefix.addr()))
            }
        }
    }

    /// The interface that has an address.
    pub fn interface_of(&self, address: IpAddr, interfaces: &Interfaces) -> Option<SwIfIndex> {
        let has = |interface: &SwIfIndex| match address {
            IpAddr::V4(address) => self.ip4.addresses(*interface).iter().any(|p| p.addr() == address),
            IpAddr::V6(address) => self.ip6.addresses(*interface).iter().any(|p| p.addr() == address),
        };
        interfaces.indices().into_iter().find(has)
    }
}

/// An endpoint as VPP writes it: `10.0.0.5;8080`, `host-eth0 (ip4);0`.
pub struct Shown<'a>(pub Endpoint, pub &'a Interfaces);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(Endpoint { from, port }, interfaces) = self;
        match from {
            AddressSource::Given(address) => write!(f, "{address};{port}"),
            AddressSource::Interface(interface, family) => {
                let name = interfaces.name(*interface).unwrap_or_else(|_| "DELETED".to_owned());
                let family = if *family == Family::Ip6 { "ip6" } else { "ip4" };
                write!(f, "{name} ({family});{port}")
            }
        }
    }
}
