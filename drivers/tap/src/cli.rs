//! Commands.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, Output};
use shoal_wire::{Ip4Prefix, Ip6Prefix, MacAddress};

use crate::{
    Address, Coalesce, CreateTap, Lifetime, Mode, NetnsRef, Offload, TapInfo, Taps, VhostInfo, VhostNet,
};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "create tap [id <id:u32>] [hw-addr <mac>] [host-if-name <host-name:word>] [host-ns <ns:host-ns>] \
         [host-mac-addr <host-mac:mac>] [host-ip4-addr <ip4:ip4-prefix>] [host-ip4-gw <gw4:ip4-address>] \
         [host-ip6-addr <ip6:ip6-prefix>] [host-ip6-gw <gw6:ip6-address>] [host-bridge <bridge:word>] \
         [host-mtu-size <mtu:u32>] [num-rx-queues <rx:u32>] [num-tx-queues <tx:u32>] \
         [rx-ring-size <rx-ring:u32>] [tx-ring-size <tx-ring:u32>] [persist] [attach] [tun] \
         [{gso | no-gso}] [gro-coalesce] [csum-offload] [packed] [in-order] \
         [{vhost-net | no-vhost-net}]",
        "Create an interface whose other end is an interface of the host",
        create,
    )
    .examples(&[
        "create tap",
        "create tap id 7 host-if-name lstack host-ip4-addr 10.0.0.1/24",
        "create tap host-ns blue host-if-name eth0 host-ip4-addr 10.0.0.1/24 host-ip4-gw 10.0.0.254",
        "create tap host-bridge br0 num-rx-queues 2 rx-ring-size 1024",
        "create tap tun host-if-name tun7 host-ip4-addr 10.7.0.1/30",
        "create tap host-if-name fast0 rx-ring-size 1024 tx-ring-size 1024 vhost-net",
    ])
    .doc(
        "Prints the new interface's name. `gso` and `csum-offload` are on unless `no-gso` is given, or `set tap offload` \
         later. `gro-coalesce` merges TCP packets that leave for the host together. With `vhost-net` a thread of the kernel \
         moves frames by rings in memory, or there is no TAP; with `no-vhost-net` each frame is a system call; without \
         either word vhost-net is used if it can be. `show tap` says which it is, and why. Ring sizes are those of \
         vhost-net, without effect otherwise; `packed` and `in-order` speak of rings it does not have. `persist` leaves \
         the host's interface when the TAP goes; `attach` takes one that is there, and leaves it.",
    ),
    Command::new(
        "set tap offload {<interface> | sw_if_index <index:u32>} {gso-enable [gro-coalesce] | gso-disable | \
         csum-offload-enable | csum-offload-disable}",
        "Choose what packets of a TAP may owe, on both ways",
        set_offload,
    )
    .examples(&["set tap offload tap0 gso-enable gro-coalesce", "set tap offload tap0 csum-offload-disable"])
    .doc(
        "`gso-enable`: large packets, and checksums that are left open; merged on the way to the host with \
         `gro-coalesce`, not without. `gso-disable`: open checksums only. `csum-offload-disable`: neither. What the \
         host is not to be asked for the router does.",
    ),
    Command::new("delete tap {<interface> | sw_if_index <index:u32>}", "Delete a TAP", delete)
        .examples(&["delete tap tap0", "delete tap sw_if_index 3"]),
    Command::new("show tap [<interface>] [descriptors]", "Show TAPs", show)
        .examples(&["show tap", "show tap tap0"]),
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] =
    &[ArgType::live("host-ns", "network namespace of the host: NAME, /PATH or pid:N", namespace, namespaces)];

fn namespace(_: &Control, text: &str) -> Result<(), Expected> {
    netns(text).map(drop)
}

fn namespaces(_: &Control, _: &str) -> Vec<String> {
    let Ok(dir) = std::fs::read_dir("/run/netns") else { return Vec::new() };
    dir.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

/// A namespace as VPP writes it.
pub(crate) fn netns(text: &str) -> Result<NetnsRef, Expected> {
    if let Some(pid) = text.strip_prefix("pid:") {
        return pid.parse().map(NetnsRef::Pid).map_err(|_| "a process number after pid:".into());
    }
    match text.strip_prefix('/') {
        Some(_) => Ok(NetnsRef::Path(text.into())),
        None if text.is_empty() || text.contains('/') => {
            Err("the name of a network namespace, /PATH or pid:N".into())
        }
        None => Ok(NetnsRef::Name(text.into())),
    }
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let mut create = CreateTap {
        id: args.opt("id")?,
        mac: args.opt("mac")?,
        rx_queues: args.opt("rx")?,
        tx_queues: args.opt("tx")?,
        ring_sizes: [args.opt("rx-ring")?, args.opt("tx-ring")?],
        ..CreateTap::default()
    };
    let tap = &mut create.tap;
    tap.name = args.opt("host-name")?;
    tap.mode = if args.has("tun") { Mode::Tun } else { Mode::Tap };
    tap.offload = if args.has("no-gso") { Offload::Checksum } else { Offload::Gso };
    create.coalesce = if args.has("gro-coalesce") { Coalesce::On } else { Coalesce::Off };
    create.vhost = match (args.has("vhost-net"), args.has("no-vhost-net")) {
        (true, _) => VhostNet::On,
        (false, true) => VhostNet::Off,
        (false, false) => VhostNet::Auto,
    };
    let tap = &mut create.tap;
    tap.lifetime = match (args.has("attach"), args.has("persist")) {
        (true, _) => Lifetime::Attached,
        (false, true) => Lifetime::Persistent,
        (false, false) => Lifetime::Temporary,
    };
    let host = &mut tap.host;
    let ns: Option<String> = args.opt("ns")?;
    host.netns = ns.map(|ns| netns(&ns)).transpose().map_err(|e| CliError::argument("ns", e.to_string()))?;
    host.mac = args.opt::<MacAddress>("host-mac")?.map(|mac| mac.0);
    host.mtu = args.opt("mtu")?;
    host.bridge = args.opt("bridge")?;
    host.ip4_gateway = args.opt("gw4")?;
    host.ip6_gateway = args.opt("gw6")?;
    let ip4 =
        args.opt::<Ip4Prefix>("ip4")?.map(|p| Address { addr: IpAddr::V4(p.addr()), prefix_len: p.len() });
    let ip6 =
        args.opt::<Ip6Prefix>("ip6")?.map(|p| Address { addr: IpAddr::V6(p.addr()), prefix_len: p.len() });
    host.addresses = ip4.into_iter().chain(ip6).collect();
    let index = control.get::<Taps>()?.create(&create)?;
    Ok(Output::text(format!("{}\n", control.get::<Interfaces>()?.name(index)?)))
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    let index = InterfaceArg::optional(args)?.ok_or_else(|| CliError::argument("interface", "which TAP?"))?;
    control.get::<Taps>()?.delete(index)?;
    Ok(Output::none())
}

fn set_offload(control: &Control, args: &Args) -> Result<Output, CliError> {
    let index = InterfaceArg::optional(args)?.ok_or_else(|| CliError::argument("interface", "which TAP?"))?;
    let taps = control.get::<Taps>()?;
    let offload = if args.has("gso-enable") {
        Offload::Gso
    } else if args.has("csum-offload-disable") {
        Offload::Nothing
    } else if args.has("csum-offload-enable") && taps.offload(index)? == Offload::Gso {
        // It is on already.
        Offload::Gso
    } else {
        Offload::Checksum
    };
    taps.set_offload(index, offload)?;
    if offload == Offload::Gso && args.has("gso-enable") {
        taps.set_coalesce(index, if args.has("gro-coalesce") { Coalesce::On } else { Coalesce::Off })?;
    }
    Ok(Output::none())
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let taps = control.get::<Taps>()?.list(InterfaceArg::optional(args)?)?;
    Ok(Output::view(Shown(taps.into_iter().map(Row::from).collect())))
}

/// The answer of `show tap`.
#[derive(Serialize)]
#[serde(transparent)]
struct Shown(Vec<Row>);

#[derive(Serialize)]
struct Row {
    interface: String,
    sw_if_index: u32,
    id: u32,
    mode: &'static str,
    host_if_name: String,
    host_ifindex: u32,
    host_ns: Option<String>,
    host_mtu_size: Option<u32>,
    host_mac_addr: Option<String>,
    host_addresses: Vec<String>,
    host_bridge: Option<String>,
    host_carrier_up: bool,
    mac: Option<String>,
    rx_queues: usize,
    tx_queues: usize,
    ring_sizes: [Option<u32>; 2],
    gso: bool,
    checksum: bool,
    coalesce: bool,
    refused: u64,
    deleted_by_host: bool,
    vhost_net: bool,
    /// Why not.
    vhost_net_why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rings: Option<Rings>,
}

#[derive(Serialize)]
struct Rings {
    rx_ring_size: u16,
    tx_ring_size: u16,
    malformed: u64,
    kicks: u64,
    interrupts: u64,
}

impl From<VhostInfo> for Rings {
    fn from(VhostInfo { ring_sizes, malformed, kicks, interrupts }: VhostInfo) -> Self {
        let [rx_ring_size, tx_ring_size] = ring_sizes;
        Rings { rx_ring_size, tx_ring_size, malformed, kicks, interrupts }
    }
}

impl From<TapInfo> for Row {
    fn from(info: TapInfo) -> Self {
        let TapInfo { index, name, id, config, tx_queues, host_ifindex, carrier, gone, refused, vhost } =
            info;
        let (tap, host) = (config.tap, |ns| match ns {
            NetnsRef::Name(name) => name,
            NetnsRef::Pid(pid) => format!("pid:{pid}"),
            NetnsRef::Path(path) => path.display().to_string(),
        });
        let address = |a: &Address| format!("{}/{}", a.addr, a.prefix_len);
        Row {
            interface: name,
            sw_if_index: index.0,
            id,
            mode: if tap.mode == Mode::Tap { "tap" } else { "tun" },
            host_if_name: tap.name.unwrap_or_default(),
            host_ifindex,
            host_ns: tap.host.netns.map(host),
            host_mtu_size: tap.host.mtu,
            host_mac_addr: tap.host.mac.map(|m| MacAddress(m).to_string()),
            host_addresses: tap.host.addresses.iter().map(address).collect(),
            host_bridge: tap.host.bridge,
            host_carrier_up: carrier,
            mac: config.mac.map(|m| m.to_string()),
            rx_queues: tap.queues,
            tx_queues,
            ring_sizes: config.ring_sizes,
            gso: tap.offload == Offload::Gso,
            checksum: tap.offload != Offload::Nothing,
            coalesce: config.coalesce == Coalesce::On,
            refused,
            deleted_by_host: gone,
            vhost_net: vhost.is_ok(),
            vhost_net_why: vhost.as_ref().err().cloned(),
            rings: vhost.ok().map(Rings::from),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|row| row.fmt(f))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Interface: {} (ifindex {})", self.interface, self.sw_if_index)?;
        writeln!(f, "  name \"{}\"", self.host_if_name)?;
        if let Some(ns) = &self.host_ns {
            writeln!(f, "  host-ns \"{ns}\"")?;
        }
        if let Some(mtu) = self.host_mtu_size {
            writeln!(f, "  host-mtu-size \"{mtu}\"")?;
        }
        if let Some(mac) = &self.host_mac_addr {
            writeln!(f, "  host-mac-addr: {mac}")?;
        }
        for address in &self.host_addresses {
            writeln!(f, "  host-address: {address}")?;
        }
        if let Some(bridge) = &self.host_bridge {
            writeln!(f, "  host-bridge \"{bridge}\"")?;
        }
        writeln!(f, "  host-ifindex: {}", self.host_ifindex)?;
        writeln!(f, "  host-carrier-up: {}", u8::from(self.host_carrier_up))?;
        if self.deleted_by_host {
            writeln!(f, "  deleted by the host")?;
        }
        let number = u8::from;
        writeln!(f, "  gso-enabled {}\n  csum-enabled {}", number(self.gso), number(self.checksum))?;
        writeln!(f, "  packet-coalesce {}\n  packet-buffering 0", number(self.coalesce))?;
        if let Some(mac) = &self.mac {
            writeln!(f, "  Mac Address: {mac}")?;
        }
        writeln!(f, "  Device instance: {}", self.id)?;
        writeln!(f, "  mode {}, refused frames {}", self.mode, self.refused)?;
        writeln!(f, "  Number of RX Virtqueue  {}", self.rx_queues)?;
        writeln!(f, "  Number of TX Virtqueue  {}", self.tx_queues)?;
        if let Some(Rings { rx_ring_size, tx_ring_size, malformed, kicks, interrupts }) = &self.rings {
            write!(f, "  vhost-net: yes, rx-ring-size {rx_ring_size}, tx-ring-size {tx_ring_size}, ")?;
            return writeln!(f, "malformed {malformed}, kicks {kicks}, interrupts {interrupts}");
        }
        writeln!(f, "  vhost-net: no, {}", self.vhost_net_why.as_deref().unwrap_or_default())?;
        for (name, size) in ["rx", "tx"].iter().zip(self.ring_sizes) {
            if let Some(size) = size {
                writeln!(f, "  {name}-ring-size {size} (not applicable: no vhost-net)")?;
            }
        }
        Ok(())
    }
}
