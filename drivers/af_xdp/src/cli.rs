//! Commands.

use std::fmt;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_link::Link;
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, Output};

use crate::config::{CreateXdp, Mac, Queues};
use crate::control::{XdpInfo, XdpInterfaces};
use crate::pinhole::{NAMES, Pinhole};
use crate::sys::{BusyPoll, Copying, PacketMemory, XdpMode};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "create interface af_xdp {host-if <host:xdp-host-if> & [name <name:word>] & [rx-queue-size <rx-size:u32>] \
         & [tx-queue-size <tx-size:u32>] & [num-rx-queues <queues:xdp-queues>] & [prog <prog:path>] \
         & [netns <netns:word>] & [zero-copy | no-zero-copy] & [pool-memory | own-memory] & [no-syscall-lock] \
         & [mac-reuse | hw-addr <mac>] & [multi-buffer | no-multi-buffer] & [busy-poll-usecs <usecs:u32>] \
         & [busy-poll-budget <budget:u32>] & [pinhole <pinhole>] & [force]}",
        "Take an interface of the host kernel into the router by AF_XDP",
        create,
    )
    .examples(&[
        "create interface af_xdp host-if eth1",
        "create interface af_xdp host-if eth0 pinhole host,dhcp",
        "create interface af_xdp host-if eth0 mac-reuse pinhole ssh,arp,dhcp,from:192.0.2.0/24",
        "create interface af_xdp host-if eth1 name wan num-rx-queues all rx-queue-size 2048 zero-copy",
        "create interface af_xdp host-if eth2 netns blue no-zero-copy multi-buffer",
        "create interface af_xdp host-if eth2 busy-poll-usecs 20 busy-poll-budget 64",
        "create interface af_xdp host-if eth2 own-memory",
    ])
    .doc(
        "Prints the new interface's name: that of the kernel with `/0` behind it, unless another is given. Until it is up, \
         and whenever it is down, the host has every frame. `pinhole` says what the host keeps when it is up: rules with \
         commas between them, as of `set interface af_xdp`. An interface with the host's default route is refused \
         without it, unless `force` is given. `hw-addr` gives the router a MAC address, else one is drawn; `mac-reuse` \
         uses the kernel's. `num-rx-queues` is the number of pairs of queues, unlike in VPP all \
         of them unless said otherwise: frames of a queue that has no socket go to the host. `zero-copy` refuses a driver that \
         cannot, `no-zero-copy` does not ask. The kernel receives into the router's buffers and sends from them, and nothing is \
         copied on this side; where that cannot be, packets are copied to and from memory of the queue's own, and the log \
         says why: `pool-memory` refuses instead, `own-memory` does not try. Frames of an MTU above 2026 do not fit a \
         buffer, above 3818 they need `multi-buffer`. `no-syscall-lock` is \
         accepted, without effect; `prog` is refused, because the router brings its own program.",
    ),
    Command::new(
        "delete interface af_xdp {<interface> | sw_if_index <index:u32>}",
        "Give an AF_XDP interface back to the host kernel",
        delete,
    )
    .examples(&["delete interface af_xdp eth1/0", "delete interface af_xdp sw_if_index 3"]),
    Command::new(
        "set interface af_xdp <interface> pinhole <pinhole> [force]",
        "Choose what the host keeps of an AF_XDP interface",
        set_pinhole,
    )
    .examples(&[
        "set interface af_xdp eth0/0 pinhole host,dhcp",
        "set interface af_xdp eth0/0 pinhole ssh,udp:51820,to:192.0.2.7,from:2001:db8::/32",
        "set interface af_xdp eth0/0 pinhole none",
    ])
    .doc(
        "At once, and for frames that pass meanwhile without a gap. Rules: `host`, what is for the kernel's addresses on \
         the interface, ARP and neighbour discovery included, and for its MAC address if the router has another; \
         `others`, every frame for one station that is not the router; `arp`, ARP and neighbour discovery for the \
         kernel's addresses; `dhcp`, DHCP, DHCPv6 and router advertisements; `ssh`, `tcp:PORT`, `udp:PORT`, what is \
         for a port of the kernel's addresses, with errors about it and fragments; `to:PREFIX` and `from:PREFIX`, \
         what is for or from these addresses; `none`. A frame for the router's own MAC address is always the router's; \
         with `mac-reuse` the link-local address of the shared MAC address is, too.",
    ),
    Command::new("show interface af_xdp [<interface>]", "Show AF_XDP interfaces and their pinholes", show)
        .examples(&["show interface af_xdp", "show interface af_xdp eth0/0"]),
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[
    ArgType::live("xdp-host-if", "interface of the host kernel", word, |_, _| Link::names()),
    ArgType::new("xdp-queues", "number of queues, or all", |_, text| queues(text).map(drop))
        .complete(|_, _| vec!["all".into()]),
    ArgType::new("pinhole", "what the host keeps: rules with commas between them, or none", |_, text| {
        text.parse::<Pinhole>().map(drop).map_err(|e| e.to_string().into())
    })
    .complete(|_, _| NAMES.iter().map(|n| (*n).to_owned()).chain(["none".to_owned()]).collect()),
];

fn word(_: &Control, text: &str) -> Result<(), Expected> {
    if text.is_empty() || text.len() > 15 { Err("an interface name of 1 to 15 bytes".into()) } else { Ok(()) }
}

fn queues(text: &str) -> Result<Queues, Expected> {
    match text {
        "all" => Ok(Queues::All),
        number => number.parse().map(Queues::Count).map_err(|_| "a number of queues, or all".into()),
    }
}

fn pinhole(args: &Args) -> Result<Pinhole, CliError> {
    let text = args.opt::<String>("pinhole")?.unwrap_or_else(|| "none".into());
    text.parse().map_err(|e: crate::pinhole::RuleError| CliError::argument("pinhole", e.to_string()))
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let mac = match (args.opt("mac")?, args.has("mac-reuse")) {
        (Some(mac), _) => Mac::Given(mac),
        (None, true) => Mac::Kernels,
        (None, false) => Mac::Random,
    };
    let copying = match (args.has("zero-copy"), args.has("no-zero-copy")) {
        (true, _) => Copying::ZeroCopy,
        (false, true) => Copying::Copy,
        (false, false) => Copying::Auto,
    };
    let count = args.opt::<String>("queues")?.map_or(Ok(Queues::All), |text| queues(&text));
    let (usecs, budget) = (args.opt::<u32>("usecs")?, args.opt::<u32>("budget")?);
    // What the kernel's documentation starts from.
    let busy = BusyPoll { usecs: usecs.unwrap_or(20), budget: budget.unwrap_or(64) };
    let create = CreateXdp {
        host_if: args.get("host")?,
        name: args.opt("name")?,
        mac,
        queues: count.map_err(|e| CliError::argument("queues", e.to_string()))?,
        rx_size: args.opt("rx-size")?,
        tx_size: args.opt("tx-size")?,
        copying,
        memory: match (args.has("pool-memory"), args.has("own-memory")) {
            (true, _) => PacketMemory::Pool,
            (false, true) => PacketMemory::Own,
            (false, false) => PacketMemory::Auto,
        },
        multi_buffer: args.has("multi-buffer"),
        busy_poll: (usecs.is_some() || budget.is_some()).then_some(busy),
        no_syscall_lock: args.has("no-syscall-lock"),
        prog: args.opt("prog")?,
        netns: args.opt("netns")?,
        pinhole: pinhole(args)?,
        force: args.has("force"),
    };
    let index = control.get::<XdpInterfaces>()?.create(&create)?;
    Ok(Output::text(format!("{}\n", control.get::<Interfaces>()?.name(index)?)))
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    let index =
        InterfaceArg::optional(args)?.ok_or_else(|| CliError::argument("interface", "which interface?"))?;
    control.get::<XdpInterfaces>()?.delete(index)?;
    Ok(Output::none())
}

fn set_pinhole(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(index) = args.get("interface")?;
    control.get::<XdpInterfaces>()?.set_pinhole(index, &pinhole(args)?, args.has("force"))?;
    Ok(Output::none())
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let all = control.get::<XdpInterfaces>()?.list(InterfaceArg::optional(args)?)?;
    Ok(Output::view(Shown(all.into_iter().map(Row::from).collect())))
}

/// The answer of `show interface af_xdp`.
#[derive(Serialize)]
#[serde(transparent)]
struct Shown(Vec<Row>);

#[derive(Serialize)]
struct Row {
    interface: String,
    sw_if_index: u32,
    host_if: String,
    netns: Option<String>,
    host_ifindex: Option<u32>,
    mode: &'static str,
    zero_copy: bool,
    packet_memory: &'static str,
    queues: usize,
    rx_ring_size: u32,
    tx_ring_size: u32,
    pinhole: Vec<String>,
    host_addresses: Vec<String>,
    to_router: u64,
    to_host: u64,
    no_socket: u64,
    rx_dropped: u64,
    rx_ring_full: u64,
    rx_fill_ring_empty: u64,
    rx_invalid: u64,
    tx_invalid: u64,
    tx_ring_empty: u64,
    malformed: u64,
    vanished: u32,
}

impl From<XdpInfo> for Row {
    fn from(info: XdpInfo) -> Self {
        let stats = info.stats;
        let [rx_ring_size, tx_ring_size] = info.rings;
        Row {
            interface: info.name,
            sw_if_index: info.index.0,
            host_if: info.host_if,
            netns: info.netns,
            host_ifindex: info.ifindex,
            mode: match info.mode {
                Some(XdpMode::Native) => "native",
                Some(XdpMode::Generic) => "generic",
                None => "gone",
            },
            zero_copy: info.zero_copy,
            packet_memory: info.memory,
            queues: info.queues,
            rx_ring_size,
            tx_ring_size,
            pinhole: info.pinhole.rules().iter().map(ToString::to_string).collect(),
            host_addresses: info.addresses.iter().map(ToString::to_string).collect(),
            to_router: info.counts.redirected,
            to_host: info.counts.passed,
            no_socket: info.counts.no_socket,
            rx_dropped: stats.rx_dropped,
            rx_ring_full: stats.rx_ring_full,
            rx_fill_ring_empty: stats.rx_fill_ring_empty_descs,
            rx_invalid: stats.rx_invalid_descs,
            tx_invalid: stats.tx_invalid_descs,
            tx_ring_empty: stats.tx_ring_empty_descs,
            malformed: info.malformed,
            vanished: info.vanished,
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
        let list = |all: &[String]| if all.is_empty() { "none".to_owned() } else { all.join(",") };
        writeln!(f, "Interface: {} (ifindex {})", self.interface, self.sw_if_index)?;
        write!(f, "  host-if {}", self.host_if)?;
        match self.host_ifindex {
            Some(index) => write!(f, " (ifindex {index})")?,
            None => f.write_str(" is gone, waiting for it")?,
        }
        if let Some(netns) = &self.netns {
            write!(f, " netns {netns}")?;
        }
        let copy = if self.zero_copy { "zero-copy" } else { "copy" };
        writeln!(f, "\n  mode {}, {copy}, packet memory {}", self.mode, self.packet_memory)?;
        writeln!(f, "  queues {}, rx ring {} tx ring {}", self.queues, self.rx_ring_size, self.tx_ring_size)?;
        writeln!(f, "  pinhole {}", list(&self.pinhole))?;
        writeln!(f, "  host addresses {}", list(&self.host_addresses))?;
        let (router, host) = (self.to_router, self.to_host);
        writeln!(f, "  frames to router {router} to host {host} no socket {}", self.no_socket)?;
        writeln!(
            f,
            "  rx-dropped {} rx-ring-full {} rx-fill-ring-empty {} rx-invalid {} tx-invalid {} tx-ring-empty {}",
            self.rx_dropped,
            self.rx_ring_full,
            self.rx_fill_ring_empty,
            self.rx_invalid,
            self.tx_invalid,
            self.tx_ring_empty
        )?;
        writeln!(f, "  malformed {} vanished {}", self.malformed, self.vanished)
    }
}
