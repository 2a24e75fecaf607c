//! Many hosts that share few addresses, with sessions that are established before anything is measured.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fastrand::Rng;
use shoal_cnat::translation::{Flags, LbType};
use shoal_cnat::{Cnat, Endpoint, PathSpec, Spec};
use shoal_det44::Det44;
use shoal_dslite::Dslite;
use shoal_dslite::config::TunnelAddresses;
use shoal_fib::FlowFields;
use shoal_interface::SwIfIndex;
use shoal_ip4::Ip4;
use shoal_lb::vip::{Encap, Policy, VipKey};
use shoal_lb::{LoadBalancer, Settings};
use shoal_map::domain::{Domain, Parameters};
use shoal_map::{Map, Mode};
use shoal_module::Control;
use shoal_nat44_ed::{Enable, Nat44, Purpose, Side};
use shoal_nat44_ei::Nat44Ei;
use shoal_nat64::Nat64;
use shoal_wire::{
    EtherType, EthernetHeader, IntoBytes, Ip4Prefix, Ip6Header, Ip6Prefix, IpPrefix, IpProtocol,
};

use crate::Result;
use crate::full_table::{self, SEED};
use crate::router;
use crate::scenario::{Ip, Nat};

/// Hosts behind the receiving interface: 10.0.0.2 and on.
const HOSTS: u32 = 250;
const FIRST_HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Remote networks that they talk to, one route each.
const REMOTE: u32 = 256;
/// The lowest port of a host: those below are not given out.
const FIRST_PORT: u32 = 1024;
/// The address that hosts share.
const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The IPv6 address that clients of cloud NAT send to; those of IPv4 send to the shared one.
const SHARED6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x99, 0, 0, 0, 0, 1);

/// The relay that MAP's customers and DS-Lite's hosts send their tunnels' packets to.
const RELAY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);

/// Their back end.
pub const BACKEND: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 2);
/// That of IPv6.
pub const BACKEND6: Ipv6Addr = Ipv6Addr::new(0x2001, 0x1000, 0, 0, 0, 0, 0, 2);

/// The last of them, where each port is one host's alone.
const LAST_SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 3);

/// NAT between the interfaces, with room for so many sessions, and routes to all remote networks.
pub fn translate(
    control: &Control,
    [input, output]: [SwIfIndex; 2],
    (nat, ip): (Nat, Ip),
    flows: u32,
) -> Result<()> {
    if matches!(nat, Nat::Six | Nat::MapT | Nat::MapE | Nat::DsLite) {
        control.get::<Ip4>()?.add_address(output, Ip4Prefix::new(Ipv4Addr::new(10, 0, 1, 1), 24)?)?;
    }
    // All that the load balancer's packets are sent to is one virtual address: there are no routes to it.
    router::routes(control, output, if nat == Nat::Balanced { 0 } else { REMOTE })?;
    match nat {
        Nat::Ed => {
            let nat = control.get::<Nat44>()?;
            nat.enable_nat(Enable { sessions: flows.max(Enable::SESSIONS), ..Enable::default() })?;
            nat.set_side(input, Side::Inside, true)?;
            nat.set_side(output, Side::Outside, true)?;
            Ok(nat.add_addresses((SHARED, SHARED), Purpose::Pool, None)?)
        }
        Nat::Ei => {
            use shoal_nat44_ei::{Enable, Side};
            let nat = control.get::<Nat44Ei>()?;
            let sessions = flows.max(Enable::SESSIONS);
            nat.enable(Enable { sessions, user_sessions: sessions, ..Enable::default() })?;
            nat.set_side(input, Side::Inside, true)?;
            nat.set_side(output, Side::Outside, true)?;
            Ok(nat.add_addresses((SHARED, LAST_SHARED), None)?)
        }
        Nat::Det => {
            use shoal_det44::{Enable, Side};
            let det44 = control.get::<Det44>()?;
            det44.enable(Enable::default())?;
            let shared = Ip4Prefix::new(Ipv4Addr::new(192, 0, 2, 0), 30)?;
            det44.add_map(Ip4Prefix::new(Ipv4Addr::new(10, 0, 0, 0), 24)?, shared)?;
            det44.set_side(input, Side::Inside, true)?;
            Ok(det44.set_side(output, Side::Outside, true)?)
        }
        Nat::Six => {
            use shoal_nat64::{Enable, Side};
            let nat64 = control.get::<Nat64>()?;
            // Ten of each for a bucket.
            let buckets = flows.div_ceil(10) + 1;
            nat64.enable(Enable { bib_buckets: buckets, st_buckets: buckets })?;
            nat64.add_addresses((SHARED, LAST_SHARED), None)?;
            nat64.set_side(input, Side::Inside, true)?;
            Ok(nat64.set_side(output, Side::Outside, true)?)
        }
        Nat::MapT | Nat::MapE => {
            let map = control.get::<Map>()?;
            map.add_domain(customers(nat)?)?;
            let mode = if nat == Nat::MapT { Mode::Translate } else { Mode::Encapsulate };
            map.set_interface(input, mode, true)?;
            Ok(map.set_interface(output, mode, true)?)
        }
        Nat::DsLite => {
            let dslite = control.get::<Dslite>()?;
            dslite.add_addresses((SHARED, LAST_SHARED))?;
            Ok(dslite.set_aftr(TunnelAddresses { ip4: Ipv4Addr::new(192, 0, 0, 1), ip6: RELAY })?)
        }
        Nat::Cloud => cloud(control, [input, output], ip),
        Nat::Balanced => balance(control, flows),
    }
}

/// The domain of MAP: 16 customers share an address.
fn customers(nat: Nat) -> Result<Parameters> {
    let all = Ipv6Addr::new(0x2001, 0xdb8, 0xf0, 0, 0, 0, 0, 0);
    let internet = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0xff00, 0, 0, 0, 0);
    Ok(Parameters {
        ip4: Ip4Prefix::new(Ipv4Addr::new(198, 18, 0, 0), 24)?,
        ip6: Ip6Prefix::new(all, 48)?,
        ip6_src: if nat == Nat::MapT { Ip6Prefix::new(internet, 64)? } else { Ip6Prefix::new(RELAY, 128)? },
        ea_bits: 12,
        psid_offset: 6,
        psid_length: 4,
        mtu: 0,
        tag: String::new(),
    })
}

/// The virtual address has one back end, behind the next hop. Both directions of a connection are translated.
fn cloud(control: &Control, interfaces: [SwIfIndex; 2], ip: Ip) -> Result<()> {
    let cnat = control.get::<Cnat>()?;
    let (vip, backend): (IpAddr, IpAddr) = match ip {
        Ip::V4 => (SHARED.into(), BACKEND.into()),
        Ip::V6 => (SHARED6.into(), BACKEND6.into()),
    };
    if ip == Ip::V6 {
        let [_, output] = interfaces;
        router::routes6(control, output, 1)?;
    }
    let to = PathSpec { source: Endpoint::NONE, destination: Endpoint::new(backend, 8080), flags: 0 };
    cnat.update(Spec {
        vip: Endpoint::new(vip, full_table::SERVICE),
        protocol: IpProtocol::UDP.0,
        is_real: false,
        flags: Flags::default(),
        lb: LbType::Default,
        fields: FlowFields::DEFAULT,
        paths: vec![to],
    })?;
    interfaces.into_iter().try_for_each(|interface| Ok(cnat.set_feature(interface, true)?))
}

/// The virtual address has one server, the next hop.
fn balance(control: &Control, flows: u32) -> Result<()> {
    let lb = control.get::<LoadBalancer>()?;
    let buckets = (flows / 2).next_power_of_two().max(1024);
    lb.set(Settings { source4: SHARED, buckets, ..Settings::default() })?;
    let key = VipKey { prefix: IpPrefix::new(router::FIRST.into(), 16)?, port: None };
    lb.add_vip(key, Policy::new(Encap::Gre4))?;
    Ok(lb.add_servers(&key, &[router::NEXT_HOP.into()])?)
}

/// Sessions that there are, where there are any.
pub fn sessions(control: &Control, nat: Nat) -> Result<Option<usize>> {
    Ok(Some(match nat {
        Nat::MapT | Nat::MapE => return Ok(None),
        Nat::DsLite => control.get::<Dslite>()?.sessions()?.len(),
        Nat::Ed => control.get::<Nat44>()?.counts()?.values().sum(),
        Nat::Ei => control.get::<Nat44Ei>()?.counts()?.values().sum(),
        Nat::Det => control.get::<Det44>()?.sessions()?.len(),
        Nat::Six => control.get::<Nat64>()?.sessions()?.len(),
        Nat::Cloud => control.get::<Cnat>()?.counts()?.values().sum(),
        Nat::Balanced => control.get::<LoadBalancer>()?.look()?.used.iter().map(|(_, used)| used).sum(),
    }))
}

/// One packet of each flow, in random order.
pub fn packets(nat: (Nat, Ip), flows: u32) -> Vec<Vec<u8>> {
    let mut order: Vec<u32> = (0..flows).collect();
    Rng::with_seed(SEED).shuffle(&mut order);
    order.into_iter().map(|flow| packet(nat, flow)).collect()
}

/// A packet of a customer, who has an address and port.
fn of_customer(nat: Nat, (address, port): (Ipv4Addr, u16), remote: Ipv4Addr) -> Vec<u8> {
    let domain = customers(nat).ok().and_then(|all| Domain::new(all).ok());
    let home = domain.as_ref().and_then(|domain| domain.customer(address, port)).unwrap_or(RELAY);
    if nat == Nat::MapT {
        let to = domain.map_or(RELAY, |domain| domain.internet(remote));
        return full_table::packet6((home, port), to);
    }
    in_tunnel(home, &full_table::packet4((address, port), remote))
}

/// A frame's IPv4 packet on its way from a home to the relay.
fn in_tunnel(home: Ipv6Addr, frame: &[u8]) -> Vec<u8> {
    let inner = frame.get(EthernetHeader::LEN..).unwrap_or_default();
    let ip = Ip6Header::new(home, RELAY, IpProtocol::IP_IN_IP, 64, inner.len() as u16);
    let ethernet = EthernetHeader::new(full_table::HOST, router::MAC_IN, EtherType::IP6);
    [ethernet.as_bytes(), ip.as_bytes(), inner].concat()
}

fn packet((nat, ip): (Nat, Ip), flow: u32) -> Vec<u8> {
    let port = (FIRST_PORT + flow / HOSTS) as u16;
    let remote = match nat {
        Nat::Cloud => SHARED,
        _ => Ipv4Addr::from_bits(router::FIRST.to_bits() + ((flow % REMOTE) << 8) + 2),
    };
    if matches!(nat, Nat::MapT | Nat::MapE) {
        let address = Ipv4Addr::new(198, 18, 0, (2 + flow % HOSTS) as u8);
        return of_customer(nat, (address, port), remote);
    }
    if nat == Nat::DsLite {
        // All hosts have the same address, each behind a tunnel of its own.
        let home = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, (2 + flow % HOSTS) as u16);
        return in_tunnel(home, &full_table::packet4((FIRST_HOST, port), remote));
    }
    if ip == Ip::V6 {
        let host = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, (2 + flow % HOSTS) as u16);
        if nat == Nat::Cloud {
            return full_table::packet6((host, port), SHARED6);
        }
        let remote = shoal_translate46::Prefix64::well_known().embed(remote);
        return full_table::packet6((host, port), remote);
    }
    let host = Ipv4Addr::from_bits(FIRST_HOST.to_bits() + flow % HOSTS);
    full_table::packet4((host, port), remote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_differ() {
        let all: std::collections::BTreeSet<Vec<u8>> =
            packets((Nat::Ed, Ip::V4), 100_000).into_iter().collect();
        assert_eq!(all.len(), 100_000);
    }
}
