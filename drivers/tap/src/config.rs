//! What an operator can ask of a TAP, checked before anything is made.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use crate::Error;

/// Link layer of the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Ethernet frames.
    #[default]
    Tap,
    /// IP packets without a link layer.
    Tun,
}

/// When the interface goes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// With the [`crate::Tap`]; an interface of that name must not exist yet.
    #[default]
    Temporary,
    /// It stays, with all its settings, and is attached to again; it may exist already.
    Persistent,
    /// It exists already and stays, with all its settings.
    Attached,
    /// An earlier process of the router has left it. It is taken over as it is, and goes with the [`crate::Tap`].
    Inherited,
}

/// What is left to the receiver of a packet, on both ways: the host's programs to the router, and the router to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Offload {
    /// Checksums and the cutting of large packets.
    #[default]
    Gso,
    /// Checksums: packets are as long as the MTU allows.
    Checksum,
    /// Nothing: packets are as on a wire.
    Nothing,
}

impl Offload {
    /// The same by its number.
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            0 => Offload::Gso,
            1 => Offload::Checksum,
            _ => Offload::Nothing,
        }
    }
}

/// Whether frames cross by vhost-net: a thread of the kernel moves them between the TAP and rings in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VhostNet {
    /// If it can be.
    #[default]
    Auto,
    /// By it or not at all.
    On,
    /// Not: by a system call for each.
    Off,
}

/// Whether small packets of a TCP connection that leave together are merged into large ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coalesce {
    /// They are not.
    #[default]
    Off,
    /// They are, for as long as the host takes large packets.
    On,
}

/// What the administrator wants of the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminState {
    /// In use.
    #[default]
    Up,
    /// Shut.
    Down,
}

/// What the host sees as the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Plugged in.
    On,
    /// Unplugged.
    Off,
}

/// A network namespace of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetnsRef {
    /// A name under `/run/netns` (`ip netns add NAME`).
    Name(String),
    /// That of a process.
    Pid(u32),
    /// Any file that is one.
    Path(PathBuf),
}

impl NetnsRef {
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Name(name) => PathBuf::from("/var/run/netns").join(name),
            Self::Pid(pid) => PathBuf::from(format!("/proc/{pid}/ns/net")),
            Self::Path(path) => path.clone(),
        }
    }
}

/// An interface address with its prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub addr: IpAddr,
    /// Bits of the prefix, up to 32 or 128.
    pub prefix_len: u8,
}

/// The host's side of the interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostConfig {
    /// Where the interface appears; the namespace of the calling thread if none.
    pub netns: Option<NetnsRef>,
    /// Its Ethernet address; the kernel draws one if none.
    pub mac: Option<[u8; 6]>,
    /// Its MTU in bytes; 1500 if none.
    pub mtu: Option<u32>,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Default route of the namespace for IPv4.
    pub ip4_gateway: Option<Ipv4Addr>,
    /// Default route of the namespace for IPv6.
    pub ip6_gateway: Option<Ipv6Addr>,
    /// A bridge of that namespace to join.
    pub bridge: Option<String>,
    /// Up, unless told otherwise.
    pub admin: AdminState,
}

/// A TAP to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapConfig {
    /// Name on the host, `%d` for a number; `tap%d` if none.
    pub name: Option<String>,
    /// Link layer.
    pub mode: Mode,
    /// Queues, 1 to 256. The kernel spreads flows over them.
    pub queues: usize,
    /// When it goes away.
    pub lifetime: Lifetime,
    /// What its packets may owe.
    pub offload: Offload,
    /// The host's side.
    pub host: HostConfig,
}

impl Default for TapConfig {
    fn default() -> Self {
        Self {
            name: None,
            mode: Mode::Tap,
            queues: 1,
            lifetime: Lifetime::Temporary,
            offload: Offload::Gso,
            host: HostConfig::default(),
        }
    }
}

impl TapConfig {
    /// The name to ask the kernel for.
    pub(crate) fn check(&self) -> Result<&str, Error> {
        let config = |what, value: u64, rule| Err(Error::Config { what, value, rule });
        if !(1..=256).contains(&self.queues) {
            return config("number of queues", self.queues as u64, "from 1 to 256");
        }
        if let Some(mtu) = self.host.mtu.filter(|mtu| !(68..=65_521).contains(mtu)) {
            return config("MTU", mtu.into(), "from 68 to 65521");
        }
        for Address { addr, prefix_len } in &self.host.addresses {
            let (max, rule) = if addr.is_ipv4() { (32, "from 0 to 32") } else { (128, "from 0 to 128") };
            if *prefix_len > max {
                return config("prefix length", (*prefix_len).into(), rule);
            }
        }
        let name = self.name.as_deref().unwrap_or(if self.mode == Mode::Tap { "tap%d" } else { "tun%d" });
        let bad = |c: char| c == '/' || c == ':' || c == '\0' || c.is_whitespace();
        if name.is_empty() || name.len() > 15 || name == "." || name == ".." || name.contains(bad) {
            return Err(Error::Name { name: name.into() });
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_names_and_numbers_that_cannot_be() {
        for name in ["", "a b", "a/b", "..", "sixteen-bytes-xx", "a:1"] {
            let config = TapConfig { name: Some(name.into()), ..TapConfig::default() };
            assert!(matches!(config.check(), Err(Error::Name { .. })), "{name:?}");
        }
        let host = |host| TapConfig { host, ..TapConfig::default() };
        let address = Address { addr: IpAddr::V4(Ipv4Addr::LOCALHOST), prefix_len: 33 };
        for config in [
            TapConfig { queues: 0, ..TapConfig::default() },
            TapConfig { queues: 257, ..TapConfig::default() },
            host(HostConfig { mtu: Some(67), ..HostConfig::default() }),
            host(HostConfig { addresses: vec![address], ..HostConfig::default() }),
        ] {
            assert!(matches!(config.check(), Err(Error::Config { .. })), "{config:?}");
        }
        assert_eq!(TapConfig::default().check().unwrap(), "tap%d");
    }
}
