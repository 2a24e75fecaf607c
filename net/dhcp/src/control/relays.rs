//! Relays: which servers hosts of a table reach, and from which address.

use std::net::{IpAddr, Ipv4Addr};

use shoal_adj::Family;
use shoal_fib::{FibIndex, Source, Via};
use shoal_mfib::{Change, EntryFlags, ItfFlags, Member, Prefix};
use shoal_wire::Ip4Prefix;

use super::{ALL_SERVERS, Dhcp, DhcpError};

/// A table of hosts, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct RelayKey {
    pub family: Family,
    pub vrf: u32,
}

/// A server, and the VRF in which it is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Server {
    /// Its address.
    pub address: IpAddr,
    /// The VRF.
    pub vrf: u32,
}

/// Servers of a table's hosts.
#[derive(Clone, Debug)]
pub(super) struct Relay {
    pub source: IpAddr,
    pub servers: Vec<Server>,
}

/// What tells equal addresses of several VPNs apart for a server (RFC 6607).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VirtualSubnet {
    /// A name.
    Name(String),
    /// A number that an organisation gave: its own number, of 24 bits, and the VPN's.
    Number {
        /// The organisation's.
        organisation: u32,
        /// The VPN's.
        vpn: u32,
    },
    /// The one of all that is not in a VPN.
    Default,
}

impl VirtualSubnet {
    /// Its type and value, as options say it.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            VirtualSubnet::Name(name) => [&[0], name.as_bytes()].concat(),
            VirtualSubnet::Number { organisation, vpn } => {
                let [_, organisation @ ..] = organisation.to_be_bytes();
                [&[1][..], &organisation, &vpn.to_be_bytes()].concat()
            }
            VirtualSubnet::Default => vec![255],
        }
    }
}

/// A relay as it is shown.
#[derive(Clone, Debug)]
pub struct RelayInfo {
    /// The VRF of hosts.
    pub vrf: u32,
    /// From where messages are sent to servers.
    pub source: IpAddr,
    /// The servers.
    pub servers: Vec<Server>,
    /// What tells the VRF from others.
    pub subnet: Option<VirtualSubnet>,
}

/// Servers of a table at most.
const MOST_SERVERS: usize = 32;
/// The longest name of a VPN.
const LONGEST_NAME: usize = 128;

fn family_of(address: IpAddr) -> Family {
    if address.is_ipv4() { Family::Ip4 } else { Family::Ip6 }
}

impl Dhcp {
    /// Hands messages of a VRF's hosts on to a server, from an address of this router.
    ///
    /// # Errors
    /// The addresses do not go together, or the server is one already.
    pub fn add_server(&self, vrf: u32, server: Server, source: IpAddr) -> Result<(), DhcpError> {
        if server.address.is_ipv4() != source.is_ipv4() {
            return Err(DhcpError::Families(server.address, source));
        }
        if source.is_unspecified() {
            return Err(DhcpError::NoSource);
        }
        if server.address.is_unspecified() {
            return Err(DhcpError::NoServer(server.address));
        }
        let family = family_of(source);
        let key = RelayKey { family, vrf };
        let old = self.relays.borrow().get(&key).cloned();
        let servers = old.as_ref().map_or(0, |relay| relay.servers.len());
        if old.as_ref().is_some_and(|relay| relay.servers.contains(&server)) {
            return Err(DhcpError::ServerExists(server.address));
        }
        if servers >= MOST_SERVERS {
            return Err(DhcpError::Subnet(format!("a table has at most {MOST_SERVERS} servers")));
        }
        let table = self.fib.want_table(family, vrf, None)?;
        self.fib.lock(family, table, Source::Dhcp)?;
        let of_server = self.fib.want_table(family, server.vrf, None)?;
        self.fib.lock(family, of_server, Source::Dhcp)?;
        if old.is_none() {
            self.set_group(family, table, true)?;
        }
        let mut relays = self.relays.borrow_mut();
        // The first one says from where: as VPP, servers that are added later do not change it.
        let relay = relays.entry(key).or_insert(Relay { source, servers: Vec::new() });
        relay.servers.push(server);
        drop(relays);
        self.renew_ports();
        Ok(())
    }

    /// Does so no more.
    ///
    /// # Errors
    /// It is no server of that table.
    pub fn del_server(&self, vrf: u32, server: Server) -> Result<(), DhcpError> {
        let family = family_of(server.address);
        let key = RelayKey { family, vrf };
        let unknown = DhcpError::UnknownServer(server.address);
        let mut relays = self.relays.borrow_mut();
        let Some(relay) = relays.get_mut(&key) else { return Err(unknown) };
        let Some(at) = relay.servers.iter().position(|one| *one == server) else { return Err(unknown) };
        relay.servers.remove(at);
        let is_last = relay.servers.is_empty();
        if is_last {
            relays.remove(&key);
        }
        drop(relays);
        if let Ok(table) = self.fib.index_of(family, vrf) {
            if is_last {
                self.set_group(family, table, false)?;
            }
            self.fib.unlock(family, table, Source::Dhcp);
        }
        if let Ok(table) = self.fib.index_of(family, server.vrf) {
            self.fib.unlock(family, table, Source::Dhcp);
        }
        self.renew_ports();
        Ok(())
    }

    /// Takes what hosts send to all stations, or all servers, of their link, or does so no more.
    fn set_group(&self, family: Family, table: FibIndex, on: bool) -> Result<(), DhcpError> {
        if family == Family::Ip4 {
            let all = Ip4Prefix::host(Ipv4Addr::BROADCAST);
            let local = Via::Local { interface: None, address: Ipv4Addr::BROADCAST.into() };
            return Ok(if on {
                self.fib.add(table, all, Source::Dhcp, &[local.into()])
            } else {
                self.fib.remove(table, all, Source::Dhcp)
            }?);
        }
        let prefix = Prefix::group(ALL_SERVERS.into(), 128)?;
        let members = vec![(Member::Local, ItfFlags::FORWARD)];
        let change = Change { flags: EntryFlags::ACCEPT_ALL, members };
        if on {
            self.mfib.add(table, prefix, shoal_mfib::Source::Listener, &change)?;
        } else {
            self.mfib.remove(table, prefix, shoal_mfib::Source::Listener, &change)?;
        }
        Ok(())
    }

    /// Says which VPN the hosts of a VRF are in.
    ///
    /// # Errors
    /// Its identifier is none.
    pub fn set_subnet(&self, family: Family, vrf: u32, subnet: VirtualSubnet) -> Result<(), DhcpError> {
        match &subnet {
            VirtualSubnet::Name(name) if name.is_empty() || name.len() > LONGEST_NAME => {
                let length = name.len();
                return Err(DhcpError::TooLong("the name of the VPN", length, LONGEST_NAME));
            }
            VirtualSubnet::Number { organisation, .. } if organisation >> 24 != 0 => {
                return Err(DhcpError::Subnet(format!(
                    "an organisation's number has 24 bits: {organisation} is more than 16777215"
                )));
            }
            _ => {}
        }
        self.subnets.borrow_mut().insert(RelayKey { family, vrf }, subnet);
        Ok(())
    }

    /// They are in none.
    ///
    /// # Errors
    /// They were in none.
    pub fn del_subnet(&self, family: Family, vrf: u32) -> Result<(), DhcpError> {
        let gone = self.subnets.borrow_mut().remove(&RelayKey { family, vrf });
        gone.map(drop).ok_or(DhcpError::NoSubnet(vrf))
    }

    /// VPNs of a family's VRFs.
    pub fn subnets(&self, family: Family) -> Vec<(u32, VirtualSubnet)> {
        let all = self.subnets.borrow();
        all.iter()
            .filter(|(key, _)| key.family == family)
            .map(|(key, subnet)| (key.vrf, subnet.clone()))
            .collect()
    }

    /// Relays of a family.
    pub fn relays(&self, family: Family) -> Vec<RelayInfo> {
        let (relays, subnets) = (self.relays.borrow(), self.subnets.borrow());
        let of = |(key, relay): (&RelayKey, &Relay)| RelayInfo {
            vrf: key.vrf,
            source: relay.source,
            servers: relay.servers.clone(),
            subnet: subnets.get(key).cloned(),
        };
        relays.iter().filter(|(key, _)| key.family == family).map(of).collect()
    }

    /// The relay of a table, and its VPN.
    pub(super) fn relay_of(&self, family: Family, table: FibIndex) -> Option<(Relay, Option<VirtualSubnet>)> {
        let vrf = self.fib.id_of(family, table).ok()?;
        let key = RelayKey { family, vrf };
        Some((self.relays.borrow().get(&key)?.clone(), self.subnets.borrow().get(&key).cloned()))
    }

    /// Whether an address is a server's in a table.
    pub(super) fn is_server(&self, address: IpAddr, table: FibIndex) -> bool {
        let family = family_of(address);
        let Ok(vrf) = self.fib.id_of(family, table) else { return false };
        let server = Server { address, vrf };
        self.relays
            .borrow()
            .iter()
            .any(|(key, relay)| key.family == family && relay.servers.contains(&server))
    }
}
