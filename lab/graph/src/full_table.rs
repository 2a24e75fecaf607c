//! A table as large as the Internet's, a route that many next hops share, and the packets for both.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fastrand::Rng;
use shoal_arp::Neighbours;
use shoal_arp::table::{FibEntry, Origin};
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_interface::SwIfIndex;
use shoal_lab_routes::commands::Wanted;
use shoal_lab_routes::table;
use shoal_module::Control;
use shoal_wire::{
    EtherType, EthernetHeader, IntoBytes, Ip4Header, Ip4Prefix, Ip6Header, Ip6Prefix, IpPrefix, IpProtocol,
    MacAddress, UdpHeader,
};

use crate::Result;
use crate::router::{BYTES, BYTES6, MAC_IN, MAC_NEXT_HOP, NEXT_HOP, NEXT_HOP6};
use crate::scenario::Ip;

/// Neighbours that routes lead to.
pub const NEXT_HOPS: u16 = Wanted::INTERNET.next_hops;
/// Every so manyth route leads to an address behind a neighbour.
const RECURSIVE: u16 = 5;
/// Packets before the first comes again: more than the caches keep routes for.
const PACKETS: usize = 1 << 18;
/// The same seed gives the same table and the same packets.
pub const SEED: u64 = Wanted::INTERNET.seed;
pub const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// Where the addresses behind the neighbours begin, and where the route that is shared lies.
const BEHIND: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 0);
const BEHIND6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xffff, 0, 0, 0, 0, 0, 0);
/// The host that sends.
const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SHARED: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 0);
const SHARED6: Ipv6Addr = Ipv6Addr::new(0x2001, 0x1000, 0, 0, 0, 0, 0, 0);

fn neighbour(ip: Ip, n: u16) -> IpAddr {
    match ip {
        Ip::V4 => Ipv4Addr::from_bits(NEXT_HOP.to_bits() + u32::from(n)).into(),
        Ip::V6 => Ipv6Addr::from_bits(NEXT_HOP6.to_bits() + u128::from(n)).into(),
    }
}

fn behind(ip: Ip, n: u16) -> IpAddr {
    match ip {
        Ip::V4 => Ipv4Addr::from_bits(BEHIND.to_bits() + u32::from(n)).into(),
        Ip::V6 => Ipv6Addr::from_bits(BEHIND6.to_bits() + u128::from(n)).into(),
    }
}

/// Makes the first `count` neighbours known. Those of IPv6 all are.
fn neighbours(control: &Control, output: SwIfIndex, ip: Ip, count: u16) -> Result<()> {
    let all = control.get::<Neighbours>()?;
    for n in 0..count {
        if let (Ip::V4, IpAddr::V4(address)) = (ip, neighbour(ip, n)) {
            all.set((output, address), MAC_NEXT_HOP, Origin::Static, FibEntry::Wanted)?;
        }
    }
    Ok(())
}

/// The prefixes of the table, in random order.
pub fn prefixes(ip: Ip) -> Result<Vec<IpPrefix>> {
    let prefix = |(network, len): (IpAddr, u8)| Ok(IpPrefix::new(network, len)?);
    match ip {
        Ip::V4 => {
            table::ip4(Wanted::INTERNET.ip4, SEED).into_iter().map(|(a, l)| prefix((a.into(), l))).collect()
        }
        Ip::V6 => {
            table::ip6(Wanted::INTERNET.ip6, SEED).into_iter().map(|(a, l)| prefix((a.into(), l))).collect()
        }
    }
}

/// Fills the table. The prefixes are where packets go.
pub fn routes(control: &Control, output: SwIfIndex, ip: Ip) -> Result<Vec<IpPrefix>> {
    neighbours(control, output, ip, NEXT_HOPS)?;
    let fib = control.get::<Fib>()?;
    let main = FibIndex::DEFAULT;
    for n in 0..NEXT_HOPS {
        let path = Path::next_hop(neighbour(ip, n), output);
        fib.add(main, IpPrefix::host(behind(ip, n)), Source::Cli, &[path])?;
    }
    let mut by_way = vec![Vec::new(); usize::from(NEXT_HOPS * RECURSIVE)];
    let ways = by_way.len();
    let all = prefixes(ip)?;
    for (n, prefix) in all.iter().enumerate() {
        if let Some(list) = by_way.get_mut(n % ways) {
            list.push(*prefix);
        }
    }
    for (n, prefixes) in (0u16..).zip(by_way) {
        let path = match n % RECURSIVE {
            0 => Path::recursive(behind(ip, n / RECURSIVE), main),
            _ => Path::next_hop(neighbour(ip, n / RECURSIVE), output),
        };
        fib.add_many(main, prefixes, Source::Cli, &[path])?;
    }
    Ok(all)
}

/// The one route of many next hops. Its prefix is where packets go.
pub fn shared_route(control: &Control, output: SwIfIndex, ip: Ip, ways: u16) -> Result<Vec<IpPrefix>> {
    neighbours(control, output, ip, ways)?;
    let paths: Vec<Path> = (0..ways).map(|n| Path::next_hop(neighbour(ip, n), output)).collect();
    let prefix: IpPrefix = match ip {
        Ip::V4 => Ip4Prefix::new(SHARED, 24)?.into(),
        Ip::V6 => Ip6Prefix::new(SHARED6, 48)?.into(),
    };
    control.get::<Fib>()?.add(FibIndex::DEFAULT, prefix, Source::Cli, &paths)?;
    Ok(vec![prefix])
}

/// The packets of a stream, to random addresses inside these prefixes.
pub fn packets(to: &[IpPrefix]) -> Vec<Vec<u8>> {
    let mut rng = Rng::with_seed(SEED);
    let packet = |_| {
        let prefix = rng.choice(to)?;
        Some(match prefix.addr() {
            IpAddr::V4(network) => {
                let to = table::address4((network, prefix.len()), &mut rng);
                packet4((SENDER, rng.u16(..)), to)
            }
            IpAddr::V6(network) => {
                let dst = table::address6((network, prefix.len()), &mut rng);
                packet6((HOST6, rng.u16(..)), dst)
            }
        })
    };
    (0..PACKETS).filter_map(packet).collect()
}

/// As many packets to one address, in frames to chosen stations.
pub fn frames_to(mut station: impl FnMut(&mut Rng) -> MacAddress) -> Vec<Vec<u8>> {
    let mut rng = Rng::with_seed(SEED);
    (0..PACKETS).map(|_| frame(HOST, station(&mut rng))).collect()
}

/// A packet to one address, in a frame from one station to another.
pub fn frame(from: MacAddress, to: MacAddress) -> Vec<u8> {
    let packet = packet4((SENDER, 1), SHARED).split_off(EthernetHeader::LEN);
    [EthernetHeader::new(from, to, EtherType::IP4).as_bytes(), &packet].concat()
}

/// The port packets are sent to.
pub const SERVICE: u16 = 2;

fn udp(port: u16, bytes: usize) -> UdpHeader {
    UdpHeader::new(port, SERVICE, bytes as u16)
}

/// A UDP packet of an address and port, to an address.
pub fn packet4((src, port): (Ipv4Addr, u16), dst: Ipv4Addr) -> Vec<u8> {
    let payload = BYTES - EthernetHeader::LEN - Ip4Header::LEN;
    let mut ip = Ip4Header::new(src, dst, IpProtocol::UDP, 64, (Ip4Header::LEN + payload) as u16);
    ip.update_checksum();
    let ethernet = EthernetHeader::new(HOST, MAC_IN, EtherType::IP4);
    let mut bytes = [ethernet.as_bytes(), ip.as_bytes(), udp(port, payload).as_bytes()].concat();
    bytes.resize(BYTES, 0);
    bytes
}

/// The source of IPv6 packets.
const HOST6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// A UDP packet of an IPv6 address and port, to an address.
pub fn packet6((src, port): (Ipv6Addr, u16), dst: Ipv6Addr) -> Vec<u8> {
    let payload = BYTES6 - EthernetHeader::LEN - Ip6Header::LEN;
    let ip = Ip6Header::new(src, dst, IpProtocol::UDP, 64, payload as u16);
    let ethernet = EthernetHeader::new(HOST, MAC_IN, EtherType::IP6);
    let mut bytes = [ethernet.as_bytes(), ip.as_bytes(), udp(port, payload).as_bytes()].concat();
    bytes.resize(BYTES6, 0);
    bytes
}
