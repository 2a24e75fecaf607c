//! What this router makes of others' advertisements where an operator wants it to be configured as a host is:
//! addresses (RFC 4862 5.5) and a default route (RFC 4861 6.3.4).

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

use shoal_fib::{Path, Source};
use shoal_graph::clock::Time;
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_wire::Ip6Prefix;
use shoal_wire::ip6_address::{ALL_ROUTERS, autoconfigured, interface_id, is_link_local};
use shoal_wire::nd::PrefixFlags;
use shoal_wire::nd_options::PrefixInformation;

use super::Nd;
use crate::counters::Kind;
use crate::fact::{AdvertisedLink, Prefixes};
use crate::frame::{self, MessageRoute};
use crate::{Key, NdError};

/// Most addresses made on an interface, and most routers that share its default route: a host that advertises more
/// finds no more room.
const MOST_ADDRESSES: usize = 8;
const MOST_ROUTERS: usize = 8;
/// RFC 4861 section 10: MAX_RTR_SOLICITATIONS and RTR_SOLICITATION_INTERVAL.
const SOLICITATIONS: u32 = 3;
const BETWEEN_SOLICITATIONS: Duration = Duration::from_secs(4);
/// RFC 4862 5.5.3 (e): no station on the link can shorten what is left below this.
const TWO_HOURS: Duration = Duration::from_hours(2);
/// A lifetime that never ends.
const FOREVER: u32 = u32::MAX;

/// Whether an interface is configured by what routers advertise there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Autoconfigure {
    /// It gets addresses.
    Yes(DefaultRoute),
    /// It does not, and loses those it got.
    No,
}

/// Whether routers that advertise themselves share the default route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultRoute {
    /// They do.
    Wanted,
    /// They do not.
    Unwanted,
}

/// An address that was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FormedAddress {
    /// The address with the length of its network.
    pub address: Ip6Prefix,
    /// How long it is valid from now on; `None` is forever.
    pub left: Option<Duration>,
}

/// An interface that is configured by routers.
pub(super) struct Autoconf {
    default_route: DefaultRoute,
    /// Addresses, and when they end.
    addresses: BTreeMap<Ip6Prefix, Option<Time>>,
    /// Routers, and when they are routers no more.
    routers: BTreeMap<Ipv6Addr, Time>,
    /// Solicitations still to be sent, and when.
    solicit: Option<(u32, Time)>,
}

/// When a lifetime ends.
fn end(now: Time, secs: u32) -> Option<Time> {
    (secs != FOREVER).then(|| now.after(Duration::from_secs(secs.into())))
}

/// RFC 4862 5.5.3 (e): when an address that is there ends, now that a prefix is advertised with another lifetime.
fn renewed(now: Time, old: Option<Time>, secs: u32) -> Option<Time> {
    let new = end(now, secs);
    let short = |end: Option<Time>| end.is_some_and(|end| end.since(now) <= TWO_HOURS);
    match (old, new) {
        (Some(old), Some(new)) if new > old => Some(new),
        _ if !short(new) => new,
        (old, _) if short(old) => old,
        _ => Some(now.after(TWO_HOURS)),
    }
}

impl Nd {
    /// Whether an interface is configured by routers; `None` when it is not.
    pub fn autoconfigured(&self, interface: SwIfIndex) -> Option<(DefaultRoute, Vec<FormedAddress>)> {
        let (now, hosts) = (self.now(), self.hosts.borrow());
        let host = hosts.get(&interface)?;
        let made = |(address, end): (&Ip6Prefix, &Option<Time>)| FormedAddress {
            address: *address,
            left: end.map(|end| end.since(now)),
        };
        Some((host.default_route, host.addresses.iter().map(made).collect()))
    }

    /// Has an interface configured by what routers advertise there, or no longer. Routers are asked at once.
    ///
    /// # Errors
    /// There is no such Ethernet interface, or IPv6 cannot run on it.
    pub fn set_autoconfigure(&self, interface: SwIfIndex, on: Autoconfigure) -> Result<(), NdError> {
        let name = self.interfaces.name(interface)?;
        if !self.interfaces.data(interface)?.flags().has(IfFlags::ETHERNET) {
            return Err(NdError::NotEthernet(name));
        }
        match on {
            Autoconfigure::No => {
                let old = self.hosts.borrow_mut().remove(&interface);
                let old = old.ok_or(NdError::NotAutoconfigured(name))?;
                for address in old.addresses.keys() {
                    self.unmake(interface, *address);
                }
                for router in old.routers.keys() {
                    self.drop_route((interface, *router));
                }
                self.follow_link_local(interface);
            }
            Autoconfigure::Yes(default_route) => {
                self.ip6.enable(interface, true)?;
                self.stop_advertising(interface);
                let mut hosts = self.hosts.borrow_mut();
                let host = hosts.entry(interface).or_insert_with(|| Autoconf {
                    default_route,
                    addresses: BTreeMap::new(),
                    routers: BTreeMap::new(),
                    solicit: None,
                });
                host.default_route = default_route;
                let gone = match default_route {
                    DefaultRoute::Wanted => BTreeMap::new(),
                    DefaultRoute::Unwanted => std::mem::take(&mut host.routers),
                };
                drop(hosts);
                for router in gone.keys() {
                    self.drop_route((interface, *router));
                }
                self.follow_link_local(interface);
                self.restart_host(interface);
            }
        }
        Ok(())
    }

    /// Whether an interface is configured as a host's is.
    pub(super) fn is_host(&self, interface: SwIfIndex) -> bool {
        self.hosts.borrow().contains_key(&interface)
    }

    /// An interface came up: routers there are asked.
    pub(super) fn restart_host(&self, interface: SwIfIndex) {
        let up = self.is_up(interface);
        if let Some(host) = self.hosts.borrow_mut().get_mut(&interface) {
            host.solicit = up.then(|| (SOLICITATIONS, self.now()));
        }
        self.ring();
    }

    /// What a router advertised, on an interface that is configured by it.
    pub(super) fn configure_host(&self, (interface, from): Key, said: &AdvertisedLink, prefixes: &Prefixes) {
        let now = self.now();
        let wanted = match self.hosts.borrow_mut().get_mut(&interface) {
            Some(host) => {
                // RFC 4861 6.3.7: one is enough.
                host.solicit = None;
                host.default_route
            }
            None => return,
        };
        if wanted == DefaultRoute::Wanted {
            self.follow_router((interface, from), said.lifetime_secs, now);
        }
        for prefix in prefixes.iter().flatten() {
            self.follow_prefix(interface, prefix, now);
        }
        self.ring();
    }

    /// RFC 4861 6.3.4: a router with a lifetime is one of the default routers.
    fn follow_router(&self, key: Key, lifetime_secs: u16, now: Time) {
        let (mut come, mut gone) = (false, false);
        if let Some(host) = self.hosts.borrow_mut().get_mut(&key.0) {
            if lifetime_secs == 0 {
                gone = host.routers.remove(&key.1).is_some();
            } else if host.routers.contains_key(&key.1) || host.routers.len() < MOST_ROUTERS {
                let end = now.after(Duration::from_secs(lifetime_secs.into()));
                come = host.routers.insert(key.1, end).is_none();
            }
        }
        if gone {
            self.drop_route(key);
        }
        if come {
            let (fib, path) = (self.ip6.fib_of(key.0), Path::next_hop(key.1, key.0));
            match self.fib.add_paths(fib, [Ip6Prefix::ANY], Source::Dhcp, &[path]) {
                Ok(_) => self.say(format!("{}: default route by router {}", self.name(key.0), key.1)),
                Err(e) => {
                    self.say(format!("{}: no default route by router {}: {e}", self.name(key.0), key.1));
                    if let Some(host) = self.hosts.borrow_mut().get_mut(&key.0) {
                        host.routers.remove(&key.1);
                    }
                }
            }
        }
    }

    fn drop_route(&self, key: Key) {
        let (fib, path) = (self.ip6.fib_of(key.0), Path::next_hop(key.1, key.0));
        // It may have gone with the interface or its table.
        if let Err(e) = self.fib.remove_paths(fib, [Ip6Prefix::ANY], Source::Dhcp, &[path]) {
            tracing::debug!(interface = %key.0, router = %key.1, "default route: {e}");
        }
    }

    /// RFC 4862 5.5.3.
    fn follow_prefix(&self, interface: SwIfIndex, info: &PrefixInformation, now: Time) {
        let (valid, preferred) = (info.valid_lifetime_secs(), info.preferred_lifetime_secs());
        let Some(prefix) = info.prefix().filter(|p| !is_link_local(p.addr()) && !p.addr().is_multicast())
        else {
            return;
        };
        // (a) to (c).
        if !info.flags().contains(PrefixFlags::AUTONOMOUS) || preferred > valid {
            return;
        }
        let Ok(data) = self.interfaces.data(interface) else { return };
        // (d): the address is made of the MAC, as the link-local one is.
        let Some(address) = autoconfigured(&prefix, interface_id(data.mac())) else { return };
        let Ok(address) = Ip6Prefix::new(address, prefix.len()) else { return };
        {
            let mut hosts = self.hosts.borrow_mut();
            let Some(host) = hosts.get_mut(&interface) else { return };
            if let Some(old) = host.addresses.get_mut(&address) {
                *old = renewed(now, *old, valid);
                return;
            }
            // One that the operator has given is his, and a lifetime of zero makes none.
            let there = self.ip6.addresses(interface).iter().any(|a| a.addr() == address.addr());
            if valid == 0 || there || host.addresses.len() >= MOST_ADDRESSES {
                return;
            }
            host.addresses.insert(address, end(now, valid));
        }
        let name = self.name(interface);
        match self.ip6.add_address(interface, address) {
            Ok(()) => {
                self.ip6.set_learnt(interface, address.addr());
                self.say(format!("{name}: address {address} by router advertisement"));
            }
            Err(e) => {
                self.say(format!("{name}: no address {address} by router advertisement: {e}"));
                if let Some(host) = self.hosts.borrow_mut().get_mut(&interface) {
                    host.addresses.remove(&address);
                }
            }
        }
    }

    fn unmake(&self, interface: SwIfIndex, address: Ip6Prefix) {
        // The operator may have deleted it.
        if let Err(e) = self.ip6.del_address(interface, address) {
            tracing::debug!(%interface, %address, "not taken away: {e}");
        }
    }

    pub(super) fn host_deadline(&self) -> Option<Time> {
        let hosts = self.hosts.borrow();
        let of = |host: &Autoconf| {
            let ends = host.addresses.values().flatten().chain(host.routers.values()).copied();
            ends.chain(host.solicit.map(|(_, at)| at)).min()
        };
        hosts.values().filter_map(of).min()
    }

    pub(super) fn tick_hosts(&self, now: Time) {
        let (mut addresses, mut routers, mut solicit) = (Vec::new(), Vec::new(), Vec::new());
        for (interface, host) in self.hosts.borrow_mut().iter_mut() {
            host.addresses.retain(|address, end| {
                let over = end.is_some_and(|end| end <= now);
                addresses.extend(over.then_some((*interface, *address)));
                !over
            });
            host.routers.retain(|router, end| {
                let over = *end <= now;
                routers.extend(over.then_some((*interface, *router)));
                !over
            });
            if let Some((left, _)) = host.solicit.filter(|(_, at)| *at <= now) {
                host.solicit = (left > 1).then(|| (left - 1, now.after(BETWEEN_SOLICITATIONS)));
                solicit.push(*interface);
            }
        }
        for (interface, address) in addresses {
            self.unmake(interface, address);
        }
        for key in routers {
            self.drop_route(key);
        }
        for interface in solicit {
            self.solicit_routers(interface);
        }
    }

    /// RFC 4861 6.3.7; from the unspecified address as long as there is no address to ask from.
    pub(super) fn solicit_routers(&self, interface: SwIfIndex) {
        let Ok(data) = self.interfaces.data(interface) else { return };
        let src = self.links.now(interface).and_then(|l| l.link_local()).unwrap_or(Ipv6Addr::UNSPECIFIED);
        let way = MessageRoute::to_group(data.mac(), src, ALL_ROUTERS);
        let frame = frame::router_solicitation(&way);
        if let Some(bytes) = frame.as_ref().and_then(|(bytes, len)| bytes.get(..*len))
            && self.send(interface, bytes)
        {
            self.counters().count_tx(Kind::RouterSolicitation, 0, interface);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_advertisement_shortens_a_lifetime_below_two_hours() {
        let at = |secs: u64| Some(Time(secs * 1_000_000_000));
        let now = Time(0);
        // Longer than what is left, or more than two hours: as advertised.
        assert_eq!(renewed(now, at(60), 100), at(100));
        assert_eq!(renewed(now, at(90_000), 7201), at(7201));
        assert_eq!(renewed(now, None, 7201), at(7201));
        assert_eq!(renewed(now, at(60), FOREVER), None);
        // Less: what is left stays if it is less than two hours, else two hours do.
        assert_eq!(renewed(now, at(7100), 60), at(7100));
        assert_eq!(renewed(now, at(90_000), 0), at(7200));
        assert_eq!(renewed(now, None, 0), at(7200));
    }
}
