//! Advertisements, and the group that they are sent to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::Family;
use shoal_datagram::send_packet;
use shoal_fib::FibIndex;
use shoal_interface::SwIfIndex;
use shoal_mfib::{Change, EntryFlags, ItfFlags, Member, MfibError, Prefix, Source};
use shoal_wire::igmp::{self, ALL_V3_ROUTERS, ROUTER_ALERT, RecordType, ReportWriter};
use shoal_wire::ip6_address::solicited_node;
use shoal_wire::{EtherType, IntoBytes, Ip4Header, Ip6Header, IpProtocol, MacAddress};

use super::{Info, Vrrp};
use crate::config::{Config, VrKey};
use crate::error::VrrpError;
use crate::machine::State;
use crate::packet::Advertisement;

const GROUP4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 18);
const GROUP6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x12);
/// RFC 9568, 5.1.1.3.
const TTL: u8 = 255;
/// Network control (RFC 4594), as VPP's.
const TOS: u8 = 0xc0;

/// The packet of an advertisement.
fn packet((src, dst): (IpAddr, IpAddr), message: &[u8]) -> Vec<u8> {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total = (Ip4Header::LEN + message.len()) as u16;
            let mut ip = Ip4Header::new(src, dst, IpProtocol::VRRP, TTL, total);
            ip.set_tos(TOS);
            ip.update_checksum();
            [ip.as_bytes(), message].concat()
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut ip = Ip6Header::new(src, dst, IpProtocol::VRRP, TTL, message.len() as u16);
            ip.set_traffic_class(TOS);
            [ip.as_bytes(), message].concat()
        }
        // The control plane lets addresses of one family in alone.
        _ => Vec::new(),
    }
}

/// Groups of a virtual router's link that its routers listen to.
fn groups6(config: &Config) -> Vec<Ipv6Addr> {
    let of_address = |address: &IpAddr| match address {
        IpAddr::V6(address) => Some(solicited_node(*address)),
        IpAddr::V4(_) => None,
    };
    let mut groups: Vec<Ipv6Addr> =
        std::iter::once(GROUP6).chain(config.addresses.iter().filter_map(of_address)).collect();
    groups.dedup();
    groups
}

/// The packet of an IGMP report that an interface listens to the group.
fn report4(source: Ipv4Addr) -> Option<Vec<u8>> {
    let mut room = [0; 32];
    let report = ReportWriter::new(&mut room).record(RecordType::CHANGE_TO_EXCLUDE, GROUP4, &[]);
    let length = report.finish()?;
    let header = Ip4Header::LEN + ROUTER_ALERT.len();
    let mut ip =
        Ip4Header::new(source, ALL_V3_ROUTERS, IpProtocol::IGMP, igmp::TTL, (header + length) as u16);
    ip.set_version_ihl(0x40 | (header / 4) as u8);
    ip.set_tos(igmp::TOS);
    let checksum = ip.compute_checksum_with(&ROUTER_ALERT);
    ip.set_checksum(checksum);
    Some([ip.as_bytes(), &ROUTER_ALERT, room.get(..length)?].concat())
}

impl Vrrp {
    /// Tells the others that this router has the addresses, or with priority 0 that it is about to give them up.
    pub(super) fn advertise(&self, index: u32, priority: u8) {
        let Some(info) = self.info(index) else { return };
        let key = info.config.key;
        let (Some(source), Some(first)) = (self.source(key), info.config.addresses.first()) else { return };
        let said = Advertisement {
            version: info.config.version,
            vr_id: key.vr_id,
            priority,
            interval: info.config.interval,
            addresses: info.config.addresses.len() as u8,
            first: *first,
        };
        let sent = if info.config.unicast {
            info.peers.iter().filter(|peer| self.tell_peer(&info, source, **peer, &said)).count()
        } else {
            let (group, mac, kind) = match key.family {
                Family::Ip4 => (GROUP4.into(), MacAddress::for_ip4_multicast(GROUP4), EtherType::IP4),
                Family::Ip6 => (IpAddr::V6(GROUP6), MacAddress::for_ip6_multicast(GROUP6), EtherType::IP6),
            };
            let ends = (source, group);
            let bytes = packet(ends, &said.write(ends, &info.config.addresses));
            usize::from(self.interfaces.send_frame_from(key.interface, (key.mac(), mac), kind, &bytes))
        };
        self.counts.sent.add(0, index as usize, sent as u64);
    }

    fn tell_peer(&self, info: &Info, source: IpAddr, peer: IpAddr, said: &Advertisement) -> bool {
        // A peer behind a router gets errors from an address that it can see.
        let source = match (source, peer) {
            (IpAddr::V6(_), IpAddr::V6(to)) if !shoal_wire::ip6_address::is_link_local(to) => {
                let own = self.ip6.addresses(info.config.key.interface);
                own.first().map_or(source, |own| own.addr().into())
            }
            _ => source,
        };
        let ends = (source, peer);
        let bytes = packet(ends, &said.write(ends, &info.config.addresses));
        let (node, table) = match peer {
            IpAddr::V4(_) => ("ip4-lookup", self.ip4.fib_of(info.config.key.interface)),
            IpAddr::V6(_) => ("ip6-lookup", self.ip6.fib_of(info.config.key.interface)),
        };
        send_packet(&self.graph, node, table, None, &bytes).is_ok()
    }

    /// Whether another virtual router that is started wants the group on an interface, or anywhere in its table.
    fn wants(&self, but: VrKey, here: impl Fn(SwIfIndex) -> bool) -> bool {
        self.vrs.borrow().all.values().any(|entry| {
            let (config, key) = (&entry.config, entry.config.key);
            let is_started = entry.machine.state != State::Initialize && !config.unicast;
            key != but && key.family == but.family && is_started && here(key.interface)
        })
    }

    /// The interface takes what is sent to all VRRP routers.
    /// As VPP, it says so in one report, which comes before all advertisements.
    pub(super) fn join(&self, config: &Config) -> Result<(), VrrpError> {
        let key = config.key;
        let failed = |e: String| VrrpError::Group(e);
        if key.family == Family::Ip6 {
            return self.nd.listen(key.interface, &groups6(config)).map_err(|e| failed(e.to_string()));
        }
        let (table, prefix, change) = self.membership(key, true).map_err(|e| failed(e.to_string()))?;
        self.mfib.add(table, prefix, Source::Listener, &change).map_err(|e| failed(e.to_string()))?;
        let source = self.source(key);
        if let (Some(IpAddr::V4(source)), true) = (source, self.carries(key.interface))
            && let Some(report) = report4(source)
        {
            let mac = MacAddress::for_ip4_multicast(ALL_V3_ROUTERS);
            self.interfaces.send_frame(key.interface, mac, EtherType::IP4, &report);
        }
        Ok(())
    }

    /// Undoes [`join`](Self::join).
    pub(super) fn leave(&self, config: &Config) {
        let key = config.key;
        if key.family == Family::Ip6 {
            return self.nd.unlisten(key.interface, &groups6(config));
        }
        if self.wants(key, |interface| interface == key.interface) {
            return;
        }
        let table = self.ip4.fib_of(key.interface);
        let is_last = !self.wants(key, |interface| self.ip4.fib_of(interface) == table);
        let left = self
            .membership(key, is_last)
            .and_then(|(table, prefix, change)| self.mfib.remove(table, prefix, Source::Listener, &change));
        match left {
            // The interface has moved to another table meanwhile, or goes.
            Ok(()) | Err(MfibError::NoEntry { .. } | MfibError::NoPath { .. }) => {}
            Err(e) => tracing::warn!("vrrp: {GROUP4} stays: {e}"),
        }
    }

    fn membership(&self, key: VrKey, local: bool) -> Result<(FibIndex, Prefix, Change), MfibError> {
        let prefix = Prefix::group(GROUP4.into(), 32)?;
        let mut members = vec![(Member::Interface(key.interface), ItfFlags::ACCEPT)];
        if local {
            members.push((Member::Local, ItfFlags::FORWARD));
        }
        Ok((self.ip4.fib_of(key.interface), prefix, Change { flags: EntryFlags::default(), members }))
    }
}
