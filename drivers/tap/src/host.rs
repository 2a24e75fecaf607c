//! The host's side of a TAP, set by netlink. All functions act in the namespace of the calling thread.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use shoal_link::netlink::ask;
use shoal_link::{IfIndex, Link};

use crate::{Address, AdminState, Error, HostConfig};

/// Number of the interface called `name`.
pub(crate) fn ifindex(name: &str) -> Result<u32, Error> {
    match Link::by_name(name) {
        Ok(link) => Ok(link.index.get()),
        Err(shoal_link::Error::NoInterface { name }) => Err(Error::NoInterface { name }),
        Err(e) => Err(e.into()),
    }
}

/// Applies the settings in the order they need each other: a route needs its address, and both an
/// interface that is up.
pub(crate) fn apply(ifindex: u32, config: &HostConfig) -> Result<(), Error> {
    let mut link = LinkMessage::default();
    link.header.index = ifindex;
    if let Some(mac) = config.mac {
        link.attributes.push(LinkAttribute::Address(mac.to_vec()));
    }
    if let Some(mtu) = config.mtu {
        link.attributes.push(LinkAttribute::Mtu(mtu));
    }
    if let Some(bridge) = &config.bridge {
        link.attributes.push(LinkAttribute::Controller(self::ifindex(bridge)?));
    }
    link.header.change_mask = LinkFlags::Up;
    link.header.flags = if config.admin == AdminState::Up { LinkFlags::Up } else { LinkFlags::empty() };
    ask(RouteNetlinkMessage::SetLink(link), 0, "RTM_SETLINK")?;
    for address in &config.addresses {
        add_address(ifindex, *address)?;
    }
    let gateways = [config.ip4_gateway.map(IpAddr::V4), config.ip6_gateway.map(IpAddr::V6)];
    for gateway in gateways.into_iter().flatten() {
        add_default_route(ifindex, gateway)?;
    }
    Ok(())
}

/// Makes an interface that is in use what it is to be, without touching what it is already.
pub(crate) fn adjust(name: &str, config: &HostConfig) -> Result<(), Error> {
    let there = Link::by_name(name)?;
    let mut link = LinkMessage::default();
    link.header.index = there.index.get();
    if let Some(mac) = config.mac.filter(|mac| there.mac != Some(*mac)) {
        link.attributes.push(LinkAttribute::Address(mac.to_vec()));
    }
    if let Some(mtu) = config.mtu.filter(|mtu| there.mtu != *mtu) {
        link.attributes.push(LinkAttribute::Mtu(mtu));
    }
    if link.attributes.is_empty() {
        return Ok(());
    }
    ask(RouteNetlinkMessage::SetLink(link), 0, "RTM_SETLINK").map(drop).map_err(Error::from)
}

fn family(addr: IpAddr) -> AddressFamily {
    if addr.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

pub(crate) fn add_address(ifindex: u32, Address { addr, prefix_len }: Address) -> Result<(), Error> {
    let mut request = AddressMessage::default();
    request.header.family = family(addr);
    request.header.prefix_len = prefix_len;
    request.header.index = ifindex;
    request.attributes = vec![AddressAttribute::Local(addr), AddressAttribute::Address(addr)];
    // Replace: a persistent interface may have it already.
    let flags = NLM_F_CREATE | NLM_F_REPLACE;
    ask(RouteNetlinkMessage::NewAddress(request), flags, "RTM_NEWADDR").map(drop).map_err(Error::from)
}

/// Takes an address away.
pub(crate) fn del_address(ifindex: u32, Address { addr, prefix_len }: Address) -> Result<(), Error> {
    let mut request = AddressMessage::default();
    request.header.family = family(addr);
    request.header.prefix_len = prefix_len;
    request.header.index = ifindex;
    request.attributes = vec![AddressAttribute::Local(addr), AddressAttribute::Address(addr)];
    ask(RouteNetlinkMessage::DelAddress(request), 0, "RTM_DELADDR").map(drop).map_err(Error::from)
}

/// Changes one thing of an interface.
pub(crate) fn set(ifindex: u32, what: LinkAttribute) -> Result<(), Error> {
    let mut link = LinkMessage::default();
    link.header.index = ifindex;
    link.attributes.push(what);
    ask(RouteNetlinkMessage::SetLink(link), 0, "RTM_SETLINK").map(drop).map_err(Error::from)
}

/// Lets an interface be used, or no longer.
pub(crate) fn set_up(ifindex: u32, up: bool) -> Result<(), Error> {
    let mut link = LinkMessage::default();
    link.header.index = ifindex;
    link.header.change_mask = LinkFlags::Up;
    link.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
    ask(RouteNetlinkMessage::SetLink(link), 0, "RTM_SETLINK").map(drop).map_err(Error::from)
}

/// Whether an interface may be used.
pub(crate) fn is_up(ifindex: u32) -> Result<bool, Error> {
    Ok(Link::by_index(IfIndex::new(ifindex))?.admin == shoal_link::AdminState::Up)
}

fn add_default_route(ifindex: u32, gateway: IpAddr) -> Result<(), Error> {
    let mut request = RouteMessage::default();
    request.header.address_family = family(gateway);
    request.header.table = RouteHeader::RT_TABLE_MAIN;
    request.header.protocol = RouteProtocol::Static;
    request.header.scope = RouteScope::Universe;
    request.header.kind = RouteType::Unicast;
    let via = match gateway {
        IpAddr::V4(addr) => RouteAddress::Inet(addr),
        IpAddr::V6(addr) => RouteAddress::Inet6(addr),
    };
    request.attributes = vec![RouteAttribute::Gateway(via), RouteAttribute::Oif(ifindex)];
    // Exclusive: an existing default route is the administrator's and is not ours to replace.
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    ask(RouteNetlinkMessage::NewRoute(request), flags, "RTM_NEWROUTE(default)").map(drop).map_err(Error::from)
}

/// Deletes the interface with everything that hangs on it.
pub(crate) fn delete(ifindex: u32) -> Result<(), Error> {
    let mut request = LinkMessage::default();
    request.header.index = ifindex;
    ask(RouteNetlinkMessage::DelLink(request), 0, "RTM_DELLINK").map(drop).map_err(Error::from)
}
