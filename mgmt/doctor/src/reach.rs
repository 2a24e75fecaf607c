//! By which interfaces the machine is reached: default routes and SSH sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use crate::ports::with_lower;
use crate::root::{Root, plain};

/// Bytes of a table: the Internet's fits.
const TABLE: usize = 64 << 20;
/// Sessions that are looked at.
const MOST_SESSIONS: usize = 1024;
const SSH: u16 = 22;
/// `RTF_UP` and `RTF_REJECT`.
const UP: u32 = 1;
const REJECT: u32 = 0x200;

/// Why an interface is not to be touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hold {
    DefaultRoute4,
    DefaultRoute6,
    /// The session that asks, or another to port 22.
    Ssh,
}

/// What holds an interface, and the interface above it that does, when it is another one.
pub(crate) type Holds = BTreeMap<Hold, Option<String>>;

#[derive(Debug, Default)]
pub(crate) struct Reach {
    holds: BTreeMap<OsString, Holds>,
    /// Addresses and networks the kernel has on an interface.
    networks: BTreeMap<OsString, BTreeSet<String>>,
}

#[derive(Debug)]
struct Route {
    to: IpAddr,
    len: u8,
    gateway: bool,
    device: OsString,
}

impl Reach {
    pub fn read(root: &Root, ssh_connection: Option<&OsStr>) -> Self {
        let mut reach = Self::default();
        let mut routes = routes4(root);
        routes.extend(routes6(root));
        for route in &routes {
            // Half of the world and more: some VPNs put two routes over the default one.
            if route.len <= 1 {
                let hold = if route.to.is_ipv4() { Hold::DefaultRoute4 } else { Hold::DefaultRoute6 };
                reach.hold(root, &route.device, hold);
            } else if !route.gateway && route.to.is_ipv4() {
                let text = format!("{}/{}", route.to, route.len);
                reach.networks.entry(route.device.clone()).or_default().insert(text);
            }
        }
        let addresses = addresses6(root);
        for (address, len, device) in &addresses {
            let of_link = address.is_unicast_link_local() || device == "lo";
            if !of_link {
                reach.networks.entry(device.clone()).or_default().insert(format!("{address}/{len}"));
            }
        }
        for (local, remote) in sessions(root, ssh_connection) {
            let owner =
                addresses.iter().filter(|(a, ..)| IpAddr::V6(*a) == local).map(|(_, _, device)| device);
            let ways = [best(&routes, remote), best(&routes, local)].into_iter().flatten();
            for device in owner.chain(ways).cloned().collect::<BTreeSet<_>>() {
                reach.hold(root, &device, Hold::Ssh);
            }
        }
        // A link-local address names its interface itself: fe80::1%eth0.
        for zone in zones(ssh_connection) {
            reach.hold(root, &zone, Hold::Ssh);
        }
        reach
    }

    /// Notes it for the interface and for all it is made on.
    fn hold(&mut self, root: &Root, device: &OsStr, hold: Hold) {
        if device == "lo" {
            return;
        }
        for name in with_lower(root, device) {
            let above = (name != device).then(|| plain(device.as_encoded_bytes()));
            let held = self.holds.entry(name).or_default().entry(hold).or_insert_with(|| above.clone());
            if above.is_none() {
                *held = None;
            }
        }
    }

    /// What holds an interface.
    pub fn of(&self, name: &OsStr) -> Holds {
        self.holds.get(name).cloned().unwrap_or_default()
    }

    /// What the kernel has on an interface.
    pub fn networks(&self, name: &OsStr) -> Vec<String> {
        self.networks.get(name).into_iter().flatten().take(16).cloned().collect()
    }
}

/// The device of the longest matching prefix.
fn best(routes: &[Route], to: IpAddr) -> Option<&OsString> {
    let longest =
        routes.iter().filter(|r| r.device != "lo" && inside(to, r.to, r.len)).max_by_key(|r| r.len)?;
    Some(&longest.device)
}

fn inside(address: IpAddr, prefix: IpAddr, len: u8) -> bool {
    match (address, prefix) {
        (IpAddr::V4(a), IpAddr::V4(p)) => {
            let off = 32u32.saturating_sub(len.into());
            (u32::from(a) ^ u32::from(p)).checked_shr(off).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(p)) => {
            let off = 128u32.saturating_sub(len.into());
            (u128::from(a) ^ u128::from(p)).checked_shr(off).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// The kernel prints the address's four bytes as a number of this machine.
fn address4(text: &str) -> Option<Ipv4Addr> {
    u32::from_str_radix(text, 16).ok().map(|n| Ipv4Addr::from(n.to_ne_bytes()))
}

fn routes4(root: &Root) -> Vec<Route> {
    let text = root.long_text("proc/net/route", TABLE).unwrap_or_default();
    let route = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (device, to, gateway) = (words.next()?, address4(words.next()?)?, words.next()?);
        let flags = u32::from_str_radix(words.next()?, 16).ok()?;
        let mask = u32::from(address4(words.nth(3)?)?);
        (flags & (UP | REJECT) == UP).then(|| Route {
            to: to.into(),
            len: mask.leading_ones() as u8,
            gateway: gateway != "00000000",
            device: device.into(),
        })
    };
    text.lines().skip(1).filter_map(route).collect()
}

fn address6(text: &str) -> Option<Ipv6Addr> {
    (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok().map(Ipv6Addr::from)).flatten()
}

fn routes6(root: &Root) -> Vec<Route> {
    let text = root.long_text("proc/net/ipv6_route", TABLE).unwrap_or_default();
    let route = |line: &str| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let [to, len, _, _, gateway, _, _, _, flags, device] = words.as_slice() else { return None };
        let flags = u32::from_str_radix(flags, 16).ok()?;
        (flags & (UP | REJECT) == UP && *device != "lo").then_some(Route {
            to: address6(to)?.into(),
            len: u8::from_str_radix(len, 16).ok()?.min(128),
            gateway: gateway.bytes().any(|b| b != b'0'),
            device: device.into(),
        })
    };
    text.lines().filter_map(route).collect()
}

fn addresses6(root: &Root) -> Vec<(Ipv6Addr, u8, OsString)> {
    let text = root.long_text("proc/net/if_inet6", TABLE).unwrap_or_default();
    let address = |line: &str| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let [address, _, len, _, _, device] = words.as_slice() else { return None };
        Some((address6(address)?, u8::from_str_radix(len, 16).ok()?, device.into()))
    };
    text.lines().filter_map(address).collect()
}

/// `::ffff:192.0.2.1` is an IPv4 session of a socket for both families.
fn plain_family(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Local and remote addresses of SSH sessions: of the one that asks, and all that are established to port 22.
/// `sudo` takes SSH_CONNECTION away, so the tables are looked at too.
fn sessions(root: &Root, connection: Option<&OsStr>) -> BTreeSet<(IpAddr, IpAddr)> {
    let mut found = BTreeSet::new();
    let words: Vec<String> = words(connection);
    let address = |text: &String| text.split('%').next()?.parse::<IpAddr>().ok();
    let mut port = SSH;
    if let [client, _, server, number, ..] = words.as_slice() {
        port = number.parse().unwrap_or(SSH);
        if let (Some(client), Some(server)) = (address(client), address(server)) {
            found.insert((server, client));
        }
    }
    for file in ["proc/net/tcp", "proc/net/tcp6"] {
        let text = root.long_text(file, TABLE).unwrap_or_default();
        let ours = text.lines().skip(1).filter_map(|line| {
            let mut words = line.split_ascii_whitespace().skip(1);
            let (local, remote, state) = (end(words.next()?)?, end(words.next()?)?, words.next()?);
            // State 01 is established.
            (state == "01" && (local.1 == SSH || local.1 == port)).then_some((local.0, remote.0))
        });
        found.extend(ours.take(MOST_SESSIONS));
    }
    let plain = found.into_iter().map(|(local, remote)| (plain_family(local), plain_family(remote)));
    plain.filter(|(local, _)| !local.is_loopback()).collect()
}

fn words(connection: Option<&OsStr>) -> Vec<String> {
    let text = connection.map(OsStr::to_string_lossy).unwrap_or_default();
    text.split_whitespace().take(8).map(Into::into).collect()
}

fn zones(connection: Option<&OsStr>) -> Vec<OsString> {
    words(connection).iter().filter_map(|word| Some(word.split_once('%')?.1.into())).collect()
}

/// `0100007F:0016`, or four such numbers for IPv6.
fn end(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    if address.len() == 8 {
        return Some((address4(address)?.into(), port));
    }
    let mut bytes = [0; 16];
    if address.len() != 32 || !address.is_ascii() {
        return None;
    }
    for (i, part) in bytes.chunks_exact_mut(4).enumerate() {
        part.copy_from_slice(&address4(address.get(8 * i..8 * i + 8)?)?.octets());
    }
    Some((Ipv6Addr::from(bytes).into(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_sockets_are_read_as_the_kernel_writes_them() {
        assert_eq!(end("0100007F:0016"), Some((Ipv4Addr::LOCALHOST.into(), 22)));
        let v6 = "B80D0120000000000000000001000000:0016";
        assert_eq!(end(v6), Some(("2001:db8::1".parse().unwrap(), 22)));
        for bad in ["", ":", "0100007F", "0100007G:0016", "é00007F:0016", &"0".repeat(32)] {
            assert_eq!(end(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_prefix_of_any_length_compares() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(inside(ip("10.1.2.3"), ip("0.0.0.0"), 0));
        assert!(inside(ip("10.1.2.3"), ip("10.1.2.0"), 24));
        assert!(!inside(ip("10.1.2.3"), ip("10.1.2.0"), 32));
        assert!(inside(ip("2001:db8::1"), ip("::"), 0));
        assert!(!inside(ip("2001:db8::1"), ip("2001:db8::"), 128));
        assert!(!inside(ip("10.1.2.3"), ip("::"), 0));
    }
}
