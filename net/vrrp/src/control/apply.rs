//! This router takes the addresses over, or gives them up.

use std::net::{IpAddr, Ipv6Addr};

use shoal_adj::Family;
use shoal_fib::{FibIndex, Path, Source, Via};
use shoal_ip6_nd::VirtualSpeaker;
use shoal_wire::{IpPrefix, MacAddress};

use super::{Info, Vrrp};
use crate::config::{Config, VrKey};
use crate::machine::{OWNER, State};

/// What was done, to be undone.
pub(super) struct Applied {
    key: VrKey,
    mac: MacAddress,
    table: FibIndex,
    addresses: Vec<IpAddr>,
    /// Prefixes that have a route for it.
    routes: Vec<IpPrefix>,
    has_mac: bool,
}

impl Vrrp {
    /// Where packets to an address of a virtual router go while this router has it; `None`: they are this router's anyway.
    fn way(config: &Config, address: IpAddr) -> Option<Path> {
        if config.priority == OWNER {
            return None;
        }
        let node = if address.is_ipv4() { "vrrp4-no-accept" } else { "vrrp6-no-accept" };
        Some(Path::from(if config.accept {
            Via::Local { interface: Some(config.key.interface), address }
        } else {
            Via::Node(node)
        }))
    }

    /// This router has the addresses from now on.
    pub(super) fn take_over(&self, index: u32) {
        let Some(config) = self.info(index).map(|info| info.config) else { return };
        let (key, mac) = (config.key, config.key.mac());
        let table = match key.family {
            shoal_adj::Family::Ip4 => self.ip4.fib_of(key.interface),
            shoal_adj::Family::Ip6 => self.ip6.fib_of(key.interface),
        };
        let has_mac = match self.interfaces.add_mac(key.interface, mac) {
            Ok(()) => true,
            Err(e) => {
                tracing::warn!("vrrp: frames to {mac} are not taken: {e}");
                false
            }
        };
        let mut routes = Vec::new();
        for address in &config.addresses {
            self.answer(key, *address, Some(mac));
            let prefix = IpPrefix::host(*address);
            if let Some(path) = Self::way(&config, *address) {
                match self.fib.add(table, prefix, Source::Feature, &[path]) {
                    Ok(()) => routes.push(prefix),
                    Err(e) => tracing::warn!("vrrp: {address} has no route: {e}"),
                }
            }
        }
        let applied = Applied { key, mac, table, addresses: config.addresses.clone(), routes, has_mac };
        if let Some(entry) = self.vrs.borrow_mut().all.get_mut(&index) {
            entry.applied = Some(applied);
        }
        config.addresses.iter().for_each(|address| self.announce(key, *address, mac));
    }

    /// It has them no more.
    pub(super) fn give_up(&self, index: u32) {
        let applied = self.vrs.borrow_mut().all.get_mut(&index).and_then(|entry| entry.applied.take());
        let Some(Applied { key, mac, table, addresses, routes, has_mac }) = applied else { return };
        for address in addresses {
            self.answer(key, address, None);
        }
        for prefix in routes {
            if let Err(e) = self.fib.remove(table, prefix, Source::Feature) {
                tracing::warn!("vrrp: the route of {prefix} stays: {e}");
            }
        }
        if has_mac && let Err(e) = self.interfaces.del_mac(key.interface, mac) {
            tracing::warn!("vrrp: {mac} stays: {e}");
        }
    }

    /// It has them still, by another configuration.
    pub(super) fn renew(&self, index: u32) {
        self.give_up(index);
        self.take_over(index);
    }

    /// Hosts hear router advertisements of the virtual router from the one that has the addresses, and of no other one on the link
    /// (RFC 9568, 8.2.3). Of one without a link-local address they can hear nothing.
    pub(super) fn tell_hosts(&self, index: u32) {
        let Some(Info { config, machine, .. }) = self.info(index) else { return };
        let VrKey { interface, vr_id, .. } = config.key;
        let is_link_local = |address: &IpAddr| match address {
            IpAddr::V6(address) => Some(*address).filter(Ipv6Addr::is_unicast_link_local),
            IpAddr::V4(_) => None,
        };
        if config.key.family == Family::Ip4 {
            return;
        }
        match config.addresses.iter().find_map(is_link_local).filter(|_| machine.state != State::Initialize) {
            Some(address) => {
                let speaker = VirtualSpeaker { address, mac: config.key.mac() };
                let speaker = Some(speaker).filter(|_| machine.state == State::Master);
                self.nd.set_virtual_router(interface, vr_id, speaker);
            }
            None => self.nd.remove_virtual_router(interface, vr_id),
        }
    }

    fn answer(&self, key: VrKey, address: IpAddr, mac: Option<MacAddress>) {
        match address {
            IpAddr::V4(address) => self.arp.set(key.interface, address, mac),
            IpAddr::V6(address) => {
                if let Err(e) = self.nd.set_virtual(key.interface, address, mac) {
                    tracing::warn!("vrrp: solicitations for {address}: {e}");
                }
            }
        }
    }

    /// All stations of the link learn where the address is.
    fn announce(&self, key: VrKey, address: IpAddr, mac: MacAddress) {
        match address {
            IpAddr::V4(address) => self.arp.announce(key.interface, address, mac),
            IpAddr::V6(address) => self.nd.announce_virtual(key.interface, address, mac),
        };
    }
}
