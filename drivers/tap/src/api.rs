//! Messages of TAPs that VPP has in `tapv2.api`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_interface::{InterfaceError, Interfaces, SwIfIndex};
use shoal_message::{
    InterfaceIndex, Ip4AddressWithPrefix, Ip4Prefix, Ip6AddressWithPrefix, Ip6Prefix, MacAddress, Message,
    Retval, Text, Value,
};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::{Address, Coalesce, CreateTap, Error, Lifetime, Mode, NetnsRef, Offload, TapInfo, Taps};

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "tapv2",
    folder: Folder::Plugins,
    version: "4.0.0",
    messages: &[
        ApiMessage::request::<TapCreateV3>(),
        ApiMessage::sent::<TapCreateV3Reply>(),
        ApiMessage::request::<TapCreateV2>(),
        ApiMessage::sent::<TapCreateV2Reply>(),
        ApiMessage::request::<TapDeleteV2>(),
        ApiMessage::dump::<SwInterfaceTapV2Dump>(),
        ApiMessage::sent::<SwInterfaceTapV2Details>(),
    ],
};

/// Entries of a ring when nothing else was asked for.
const RING_SIZE: u32 = 256;

/// What a TAP can do and when it goes: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[allow(clippy::duplicated_attributes, reason = "several bits are late")]
#[entry("TAP_API_FLAG_GSO", 1)]
#[entry("TAP_API_FLAG_CSUM_OFFLOAD", 2)]
#[entry("TAP_API_FLAG_PERSIST", 4)]
#[entry("TAP_API_FLAG_ATTACH", 8)]
#[entry("TAP_API_FLAG_TUN", 16)]
#[entry("TAP_API_FLAG_GRO_COALESCE", 32)]
#[entry("TAP_API_FLAG_PACKED", 64, late)]
#[entry("TAP_API_FLAG_IN_ORDER", 128, late)]
#[entry("TAP_API_FLAG_CONSISTENT_QP", 256, late)]
pub struct TapFlags(pub u32);

impl TapFlags {
    /// It takes large packets: a new one always does.
    pub const GSO: u32 = 1;
    /// It takes packets without checksums: a new one always does.
    pub const CSUM_OFFLOAD: u32 = 2;
    /// The host's side stays when it goes.
    pub const PERSIST: u32 = 4;
    /// The host's side is there already.
    pub const ATTACH: u32 = 8;
    /// Its packets have no Ethernet header.
    pub const TUN: u32 = 16;
    /// Packets to the host are merged.
    pub const GRO_COALESCE: u32 = 32;

    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }
}

/// Creates a TAP.
#[derive(Message, Clone)]
#[message(request, name = "tap_create_v3", reply = TapCreateV3Reply)]
pub struct TapCreateV3 {
    /// The number in its name; all bits set for the lowest free one.
    #[preset(4294967295)]
    pub id: u32,
    /// Whether its MAC address is drawn.
    #[preset("true")]
    pub use_random_mac: bool,
    /// Its MAC address.
    pub mac_address: MacAddress,
    /// Receive queues.
    #[preset(1)]
    pub num_rx_queues: u16,
    /// Transmit queues.
    #[preset(1)]
    pub num_tx_queues: u16,
    /// Entries of a transmit ring, where vhost-net is in use.
    #[preset(256)]
    pub tx_ring_sz: u16,
    /// Entries of a receive ring, where vhost-net is in use.
    #[preset(256)]
    pub rx_ring_sz: u16,
    /// Whether the host's side gets an MTU.
    pub host_mtu_set: bool,
    /// The MTU of the host's side.
    pub host_mtu_size: u32,
    /// Whether the host's side gets a MAC address.
    pub host_mac_addr_set: bool,
    /// The MAC address of the host's side.
    pub host_mac_addr: MacAddress,
    /// Whether the host's side gets an IPv4 address.
    pub host_ip4_prefix_set: bool,
    /// The IPv4 address of the host's side.
    pub host_ip4_prefix: Ip4AddressWithPrefix,
    /// Whether the host's side gets an IPv6 address.
    pub host_ip6_prefix_set: bool,
    /// The IPv6 address of the host's side.
    pub host_ip6_prefix: Ip6AddressWithPrefix,
    /// Whether the host gets an IPv4 default route.
    pub host_ip4_gw_set: bool,
    /// The gateway of that route.
    pub host_ip4_gw: Ipv4Addr,
    /// Whether the host gets an IPv6 default route.
    pub host_ip6_gw_set: bool,
    /// The gateway of that route.
    pub host_ip6_gw: Ipv6Addr,
    /// What it can do and when it goes.
    pub tap_flags: TapFlags,
    /// Whether the host's side is in a network namespace.
    pub host_namespace_set: bool,
    /// The namespace: a name, /PATH or pid:N.
    pub host_namespace: Text<64>,
    /// Whether the host's side gets a name.
    pub host_if_name_set: bool,
    /// The name of the host's side.
    pub host_if_name: Text<64>,
    /// Whether the host's side joins a bridge.
    pub host_bridge_set: bool,
    /// The bridge.
    pub host_bridge: Text<64>,
    /// The operator's note.
    pub tag: String,
}

/// The new TAP.
#[derive(Message)]
#[message(reply, name = "tap_create_v3_reply")]
pub struct TapCreateV3Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// Creates a TAP with a transmit queue for each thread.
#[derive(Message, Clone)]
#[message(request, name = "tap_create_v2", reply = TapCreateV2Reply)]
pub struct TapCreateV2 {
    /// The number in its name; all bits set for the lowest free one.
    #[preset(4294967295)]
    pub id: u32,
    /// Whether its MAC address is drawn.
    #[preset("true")]
    pub use_random_mac: bool,
    /// Its MAC address.
    pub mac_address: MacAddress,
    /// Receive queues.
    #[preset(1)]
    pub num_rx_queues: u8,
    /// Entries of a transmit ring, where vhost-net is in use.
    #[preset(256)]
    pub tx_ring_sz: u16,
    /// Entries of a receive ring, where vhost-net is in use.
    #[preset(256)]
    pub rx_ring_sz: u16,
    /// Whether the host's side gets an MTU.
    pub host_mtu_set: bool,
    /// The MTU of the host's side.
    pub host_mtu_size: u32,
    /// Whether the host's side gets a MAC address.
    pub host_mac_addr_set: bool,
    /// The MAC address of the host's side.
    pub host_mac_addr: MacAddress,
    /// Whether the host's side gets an IPv4 address.
    pub host_ip4_prefix_set: bool,
    /// The IPv4 address of the host's side.
    pub host_ip4_prefix: Ip4AddressWithPrefix,
    /// Whether the host's side gets an IPv6 address.
    pub host_ip6_prefix_set: bool,
    /// The IPv6 address of the host's side.
    pub host_ip6_prefix: Ip6AddressWithPrefix,
    /// Whether the host gets an IPv4 default route.
    pub host_ip4_gw_set: bool,
    /// The gateway of that route.
    pub host_ip4_gw: Ipv4Addr,
    /// Whether the host gets an IPv6 default route.
    pub host_ip6_gw_set: bool,
    /// The gateway of that route.
    pub host_ip6_gw: Ipv6Addr,
    /// What it can do and when it goes.
    pub tap_flags: TapFlags,
    /// Whether the host's side is in a network namespace.
    pub host_namespace_set: bool,
    /// The namespace: a name, /PATH or pid:N.
    pub host_namespace: Text<64>,
    /// Whether the host's side gets a name.
    pub host_if_name_set: bool,
    /// The name of the host's side.
    pub host_if_name: Text<64>,
    /// Whether the host's side joins a bridge.
    pub host_bridge_set: bool,
    /// The bridge.
    pub host_bridge: Text<64>,
    /// The operator's note.
    pub tag: String,
}

/// The new TAP.
#[derive(Message)]
#[message(reply, name = "tap_create_v2_reply")]
pub struct TapCreateV2Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl From<TapCreateV2> for TapCreateV3 {
    fn from(old: TapCreateV2) -> Self {
        TapCreateV3 {
            id: old.id,
            use_random_mac: old.use_random_mac,
            mac_address: old.mac_address,
            num_rx_queues: old.num_rx_queues.into(),
            num_tx_queues: 0,
            tx_ring_sz: old.tx_ring_sz,
            rx_ring_sz: old.rx_ring_sz,
            host_mtu_set: old.host_mtu_set,
            host_mtu_size: old.host_mtu_size,
            host_mac_addr_set: old.host_mac_addr_set,
            host_mac_addr: old.host_mac_addr,
            host_ip4_prefix_set: old.host_ip4_prefix_set,
            host_ip4_prefix: old.host_ip4_prefix,
            host_ip6_prefix_set: old.host_ip6_prefix_set,
            host_ip6_prefix: old.host_ip6_prefix,
            host_ip4_gw_set: old.host_ip4_gw_set,
            host_ip4_gw: old.host_ip4_gw,
            host_ip6_gw_set: old.host_ip6_gw_set,
            host_ip6_gw: old.host_ip6_gw,
            tap_flags: old.tap_flags,
            host_namespace_set: old.host_namespace_set,
            host_namespace: old.host_namespace,
            host_if_name_set: old.host_if_name_set,
            host_if_name: old.host_if_name,
            host_bridge_set: old.host_bridge_set,
            host_bridge: old.host_bridge,
            tag: old.tag,
        }
    }
}

impl TapCreateV3 {
    /// What the control plane is asked for. A number that is 0 stands for the default.
    fn wish(&self) -> Result<CreateTap, Retval> {
        let some = |number: u16| Some(u32::from(number)).filter(|n| *n != 0);
        let mut wish = CreateTap {
            id: Some(self.id).filter(|id| *id != u32::MAX),
            mac: (!self.use_random_mac).then_some(shoal_wire::MacAddress(self.mac_address.0)),
            rx_queues: some(self.num_rx_queues),
            tx_queues: some(self.num_tx_queues),
            ring_sizes: [some(self.rx_ring_sz), some(self.tx_ring_sz)],
            ..CreateTap::default()
        };
        if self.tap_flags.has(TapFlags::GRO_COALESCE) {
            wish.coalesce = Coalesce::On;
        }
        let tap = &mut wish.tap;
        tap.name = self.host_if_name_set.then(|| self.host_if_name.as_str().to_owned());
        tap.mode = if self.tap_flags.has(TapFlags::TUN) { Mode::Tun } else { Mode::Tap };
        tap.lifetime = match (self.tap_flags.has(TapFlags::ATTACH), self.tap_flags.has(TapFlags::PERSIST)) {
            (true, _) => Lifetime::Attached,
            (false, true) => Lifetime::Persistent,
            (false, false) => Lifetime::Temporary,
        };
        let host = &mut tap.host;
        if self.host_namespace_set {
            let netns = crate::cli::netns(self.host_namespace.as_str());
            host.netns = Some(netns.map_err(|_| Retval::INVALID_VALUE)?);
        }
        host.mac = self.host_mac_addr_set.then_some(self.host_mac_addr.0);
        host.mtu = self.host_mtu_set.then_some(self.host_mtu_size);
        host.bridge = self.host_bridge_set.then(|| self.host_bridge.as_str().to_owned());
        host.ip4_gateway = self.host_ip4_gw_set.then_some(self.host_ip4_gw);
        host.ip6_gateway = self.host_ip6_gw_set.then_some(self.host_ip6_gw);
        let (ip4, ip6) = (self.host_ip4_prefix.0, self.host_ip6_prefix.0);
        let ip4 = Address { addr: ip4.address.into(), prefix_len: ip4.len };
        let ip6 = Address { addr: ip6.address.into(), prefix_len: ip6.len };
        let ip4 = self.host_ip4_prefix_set.then_some(ip4);
        host.addresses = ip4.into_iter().chain(self.host_ip6_prefix_set.then_some(ip6)).collect();
        Ok(wish)
    }

    fn create(&self, call: &Call) -> Result<InterfaceIndex, Retval> {
        let index = taps(call)?.create(&self.wish()?)?;
        if !self.tag.is_empty() {
            let tag = Text::<64>::from(self.tag.as_str());
            call.get::<Interfaces>().map_err(|_| Retval::UNSPECIFIED)?.set_tag(index, tag.as_str())?;
        }
        Ok(InterfaceIndex(index.0))
    }
}

fn taps(call: &Call) -> Result<Rc<Taps>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

impl From<Error> for Retval {
    fn from(error: Error) -> Self {
        match error {
            Error::Os { .. } | Error::Vhost { .. } => Retval::SYSCALL_ERROR_1,
            Error::Exists { .. } => Retval::IF_ALREADY_EXISTS,
            Error::NoInterface { .. } => Retval::NO_MATCHING_INTERFACE,
            Error::Netns { .. } => Retval::SYSCALL_ERROR_2,
            Error::Name { .. } | Error::Config { .. } => Retval::INVALID_VALUE,
            Error::NoTap { .. } => Retval::INVALID_SW_IF_INDEX,
            // VPP's word for a number that another TAP has.
            Error::Interface(InterfaceError::Exists(_)) => Retval::SUBIF_ALREADY_EXISTS,
            Error::Interface(error) => error.into(),
            Error::Link(_) => Retval::NETLINK_ERROR,
        }
    }
}

impl Request for TapCreateV3 {
    fn handle(self, call: &Call) -> Result<TapCreateV3Reply, Retval> {
        Ok(TapCreateV3Reply { retval: 0, sw_if_index: self.create(call)? })
    }
}

impl Request for TapCreateV2 {
    fn handle(self, call: &Call) -> Result<TapCreateV2Reply, Retval> {
        Ok(TapCreateV2Reply { retval: 0, sw_if_index: TapCreateV3::from(self).create(call)? })
    }
}

/// Deletes a TAP.
#[derive(Message)]
#[message(request, name = "tap_delete_v2")]
pub struct TapDeleteV2 {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for TapDeleteV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(taps(call)?.delete(SwIfIndex(self.sw_if_index.0))?)
    }
}

/// Asks for TAPs.
#[derive(Message)]
#[message(request, name = "sw_interface_tap_v2_dump", details = SwInterfaceTapV2Details)]
pub struct SwInterfaceTapV2Dump {
    /// The interface; all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// A TAP.
#[derive(Message)]
#[message(reply, name = "sw_interface_tap_v2_details")]
pub struct SwInterfaceTapV2Details {
    /// The interface.
    pub sw_if_index: u32,
    /// The number in its name.
    pub id: u32,
    /// What was asked for.
    pub tx_ring_sz: u16,
    /// What was asked for.
    pub rx_ring_sz: u16,
    /// The MTU that the host's side was given; 0 if none.
    pub host_mtu_size: u32,
    /// The MAC address of the host's side.
    pub host_mac_addr: MacAddress,
    /// The IPv4 address that the host's side was given.
    pub host_ip4_prefix: Ip4AddressWithPrefix,
    /// The IPv6 address that the host's side was given.
    pub host_ip6_prefix: Ip6AddressWithPrefix,
    /// What it can do and when it goes.
    pub tap_flags: TapFlags,
    /// Its name.
    pub dev_name: Text<64>,
    /// The name of the host's side.
    pub host_if_name: Text<64>,
    /// The namespace of the host's side.
    pub host_namespace: Text<64>,
    /// The bridge of the host's side.
    pub host_bridge: Text<64>,
}

impl From<TapInfo> for SwInterfaceTapV2Details {
    fn from(info: TapInfo) -> Self {
        let (tap, [rx_ring, tx_ring]) = (info.config.tap, info.config.ring_sizes);
        let host = tap.host;
        let ring = |size: Option<u32>| size.unwrap_or(RING_SIZE) as u16;
        let mut ip4 = Ip4Prefix { address: Ipv4Addr::UNSPECIFIED, len: 0 };
        let mut ip6 = Ip6Prefix { address: Ipv6Addr::UNSPECIFIED, len: 0 };
        for Address { addr, prefix_len } in host.addresses {
            match addr {
                IpAddr::V4(address) => ip4 = Ip4Prefix { address, len: prefix_len },
                IpAddr::V6(address) => ip6 = Ip6Prefix { address, len: prefix_len },
            }
        }
        let life = match tap.lifetime {
            Lifetime::Temporary | Lifetime::Inherited => 0,
            Lifetime::Persistent => TapFlags::PERSIST,
            Lifetime::Attached => TapFlags::ATTACH,
        };
        let tun = if tap.mode == Mode::Tun { TapFlags::TUN } else { 0 };
        let offload = match tap.offload {
            Offload::Gso => TapFlags::GSO | TapFlags::CSUM_OFFLOAD,
            Offload::Checksum => TapFlags::CSUM_OFFLOAD,
            Offload::Nothing => 0,
        };
        let coalesce = if info.config.coalesce == Coalesce::On { TapFlags::GRO_COALESCE } else { 0 };
        let netns = host.netns.map(|netns| match netns {
            NetnsRef::Name(name) => name,
            NetnsRef::Pid(pid) => format!("pid:{pid}"),
            NetnsRef::Path(path) => path.display().to_string(),
        });
        let text = |text: Option<String>| text.unwrap_or_default().as_str().into();
        SwInterfaceTapV2Details {
            sw_if_index: info.index.0,
            id: info.id,
            tx_ring_sz: ring(tx_ring),
            rx_ring_sz: ring(rx_ring),
            host_mtu_size: host.mtu.unwrap_or(0),
            host_mac_addr: MacAddress(host.mac.unwrap_or_default()),
            host_ip4_prefix: Ip4AddressWithPrefix(ip4),
            host_ip6_prefix: Ip6AddressWithPrefix(ip6),
            tap_flags: TapFlags(offload | coalesce | life | tun),
            dev_name: info.name.as_str().into(),
            host_if_name: text(tap.name),
            host_namespace: text(netns),
            host_bridge: text(host.bridge),
        }
    }
}

impl Dump for SwInterfaceTapV2Dump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwInterfaceTapV2Details> + 'static {
        let only = (self.sw_if_index != InterfaceIndex::NONE).then_some(SwIfIndex(self.sw_if_index.0));
        let taps = taps(call).and_then(|taps| Ok(taps.list(only)?));
        taps.unwrap_or_default().into_iter().map(SwInterfaceTapV2Details::from)
    }
}
