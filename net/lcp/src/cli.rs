//! Commands: `lcp create`, `lcp delete`, `lcp default`, `lcp lcp-sync`, `show lcp`.

mod follow;
mod links;
mod osi;

use std::fmt;

use serde::Serialize;
use shoal_interface::{HostLayer, InterfaceArg, Interfaces, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::EtherType;

use crate::{Lcp, LcpError, Sync};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "lcp create <interface> host-if <host-if:word> [netns <netns:word>] [tun]",
        "Give an interface an image in Linux",
        create,
    )
    .examples(&["lcp create local0 host-if e0", "lcp create local0 host-if e0 netns dataplane"])
    .doc(
        "The image is a TAP with the interface's MAC address and MTU. Packets for the router's own addresses that nothing \
         here listens to go there, and what Linux sends there leaves by the interface. `netns` is a name under \
         `/run/netns`. With `tun` the image is a TUN, which carries IP packets: what Linux sends there is routed as if the \
         image had received it. The image of a sub-interface with exact-match is a TAP of its own: Linux sees and sends frames \
         without tags there, and needs no VLANs for it. Routes, neighbours and addresses that Linux gives an image are the interface's, too.",
    ),
    Command::new("lcp delete <interface>", "Take an interface's image away", delete)
        .examples(&["lcp delete local0"]),
    Command::new(
        "lcp default netns [<netns:word>]",
        "Set the network namespace of images that name none",
        default_netns,
    )
    .examples(&["lcp default netns dataplane", "lcp default netns"]),
    Command::new(
        "lcp lcp-sync {on | off}",
        "Mirror MTU and addresses of interfaces to their images, or no longer",
        sync,
    )
    .examples(&["lcp lcp-sync off"])
    .doc("`on` mirrors what there is, too. Whether an interface is up is always seen by Linux as the cable."),
    Command::new(
        "lcp lcp-sync-unnumbered {on | off}",
        "Mirror borrowed addresses of interfaces to their images, too, or no longer",
        sync_unnumbered,
    )
    .examples(&["lcp lcp-sync-unnumbered off"]),
    Command::new(
        "lcp lcp-auto-subint {on | off}",
        "Give new sub-interfaces of interfaces that have an image one, too, or no longer",
        auto_subint,
    )
    .examples(&["lcp lcp-auto-subint on"])
    .doc("It is called `HOST.NUMBER` after the image of the port. Those that are there already are left as they are."),
    Command::new(
        "lcp ethertype {enable | disable} <type:word>",
        "Let frames of a type pass between interfaces and their images",
        enable_type,
    )
    .doc("Decimal, or hexadecimal with 0x: 0x8809 is LACP, 0x88cc LLDP. IP and ARP pass without it.")
    .examples(&["lcp ethertype enable 0x88cc"]),
    Command::new(
        "test lcp add phy <phy:interface> host <host:interface>",
        "Pair two interfaces of this router, for tests",
        pair,
    ),
    Command::new(
        "test lcp del phy <phy:interface> host <host:interface>",
        "Take such a pair apart",
        part,
    ),
    Command::new("show lcp [phy <interface>]", "Show images of interfaces in Linux", show)
        .examples(&["show lcp", "show lcp phy local0"]),
    Command::new("show lcp vrf", "Show VRFs of Linux, their tables, and the interfaces whose images are part of them", links::show_vrfs)
        .doc("An interface uses the table of the VRF that its image is part of, in both families; table 0 when the image leaves it.")
        .examples(&["show lcp vrf"]),
    Command::new("show lcp vlan", "Show VLANs of Linux on images, and their sub-interfaces", links::show_vlans)
        .doc(
            "Each VLAN that is made in Linux on the image of a port (`ip link add link e0 name e0.100 type vlan id 100`), or on such \
             a VLAN, has a sub-interface, which goes with it. One that has none says why.",
        )
        .examples(&["show lcp vlan"]),
    Command::new("show lcp netlink", "Show how routes and neighbours of Linux are followed", follow::show_netlink)
        .doc(
            "For each namespace with images: the table of this router that its main table is, in each family; what Linux has announced, how many prefixes are known, installed and pending, and \
             how often Linux was asked to list all there is: at the start, after announcements were lost, when an interface \
             came up, and for audits. What an audit or the listing after a loss finds to be different is mended and counted.",
        )
        .examples(&["show lcp netlink"]),
    Command::new("show lcp pending", "Show routes of Linux that wait, and for what", follow::show_pending)
        .doc("A route is installed as soon as what it waits for is there.")
        .examples(&["show lcp pending"]),
    Command::new("show lcp drift", "Show what audits have found to differ from Linux", follow::show_drift)
        .doc("The latest 64 of each namespace. Each was mended when it was found.")
        .examples(&["show lcp drift"]),
    Command::new("lcp audit", "Compare what is known of Linux with all that there is, now", follow::audit)
        .doc("This happens by itself every 10 minutes: `linux-nl { audit-interval 600 }`. `show lcp drift` shows what differed.")
        .examples(&["lcp audit"]),
    Command::new("show lcp adj [verbose]", "Show frames' headers that images may send with", show_adj)
        .doc("There are none: what Linux sends leaves as it is, whatever its header. VPP keeps a table of them.")
        .examples(&["show lcp adj"]),
    Command::new(
        "lcp osi-proto {enable | disable} <protocol:word>",
        "Let packets of an OSI protocol pass between interfaces and their images",
        osi::enable,
    )
    .doc("By name, or by the first byte behind the LLC header, decimal, or hexadecimal with 0x: 0x83 is IS-IS.")
    .examples(&["lcp osi-proto enable isis", "lcp osi-proto enable 0x82"]),
    Command::new("show lcp osi-proto", "Show which OSI protocols pass", osi::show).examples(&["show lcp osi-proto"]),
    Command::new("show lcp ethertype", "Show which types of frames pass besides IP and ARP", show_types)
        .examples(&["show lcp ethertype"]),
];

fn failed(error: LcpError) -> CliError {
    let name = match &error {
        LcpError::Name(_) | LcpError::Host { .. } => "host-if",
        LcpError::NoDriver => return CliError::failed(error.to_string()),
        _ => "interface",
    };
    CliError::argument(name, error.to_string())
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(phy) = args.get("interface")?;
    let name: String = args.get("host-if")?;
    let layer = if args.has("tun") { HostLayer::Ip } else { HostLayer::Ethernet };
    control.get::<Lcp>()?.create_of(phy, &name, args.text("netns"), layer).map_err(failed)?;
    Ok(Output::none())
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(phy) = args.get("interface")?;
    let lcp = control.get::<Lcp>()?;
    lcp.delete(phy).map_err(|e| {
        let interfaces = control.get::<Interfaces>().ok();
        let first = lcp.list().first().and_then(|pair| interfaces?.name(pair.phy).ok());
        failed(e).nearest(first)
    })?;
    Ok(Output::none())
}

fn default_netns(control: &Control, args: &Args) -> Result<Output, CliError> {
    let netns = args.text("netns");
    control.get::<Lcp>()?.set_default_netns(netns);
    Ok(match netns {
        Some(netns) => Output::text(format!("lcp set default netns '{netns}'\n")),
        None => Output::none(),
    })
}

fn sync(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Lcp>()?.set_sync(if args.has("on") { Sync::On } else { Sync::Off });
    Ok(Output::none())
}

fn auto_subint(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Lcp>()?.set_auto_subint(if args.has("on") { Sync::On } else { Sync::Off });
    Ok(Output::none())
}

fn sync_unnumbered(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Lcp>()?.set_sync_unnumbered(if args.has("on") { Sync::On } else { Sync::Off });
    Ok(Output::none())
}

fn enable_type(control: &Control, args: &Args) -> Result<Output, CliError> {
    let text: String = args.get("type")?;
    let kind = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let kind = kind.map_err(|_| CliError::argument("type", format!("`{text}' is not a type of frames")))?;
    let lcp = control.get::<Lcp>()?;
    if args.has("disable") {
        lcp.disable_type(EtherType(kind));
        return Ok(Output::none());
    }
    lcp.enable_type(EtherType(kind)).map_err(|e| CliError::argument("type", e.to_string()))?;
    Ok(Output::none())
}

/// `show lcp adj`: VPP's words for a table without an entry.
#[derive(Serialize)]
struct AdjView {}

impl fmt::Display for AdjView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "linux-cp adjacencies:\nHash table 'linux-cp adjacencies'\n    empty, uninitialized")
    }
}

fn show_adj(_: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(AdjView {}))
}

/// `show lcp ethertype`.
#[derive(Serialize)]
struct TypesView(Vec<u16>);

impl fmt::Display for TypesView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|kind| writeln!(f, "0x{kind:04x}"))
    }
}

fn show_types(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(TypesView(control.get::<Lcp>()?.types().into_iter().map(|kind| kind.0).collect())))
}

fn two(args: &Args) -> Result<(SwIfIndex, SwIfIndex), CliError> {
    let (InterfaceArg(phy), InterfaceArg(host)) = (args.get("phy")?, args.get("host")?);
    Ok((phy, host))
}

fn pair(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (phy, host) = two(args)?;
    control.get::<Lcp>()?.pair(phy, host).map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::none())
}

fn part(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (phy, host) = two(args)?;
    control.get::<Lcp>()?.part(phy, host).map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Row {
    index: u32,
    phy: String,
    host_sw_if: String,
    host_if: String,
    host_index: u32,
    #[serde(rename = "type")]
    kind: &'static str,
    netns: Option<String>,
}

#[derive(Serialize)]
struct LcpView {
    default_netns: Option<String>,
    lcp_auto_subint: bool,
    lcp_sync: bool,
    lcp_sync_unnumbered: bool,
    pairs: Vec<Row>,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (lcp, interfaces) = (control.get::<Lcp>()?, control.get::<Interfaces>()?);
    let only = args.opt::<InterfaceArg>("interface")?.map(|i| i.0);
    let name = |i| interfaces.name(i).unwrap_or_else(|_| "deleted".into());
    let row = |pair: crate::PairInfo| Row {
        index: pair.index,
        phy: name(pair.phy),
        host_sw_if: name(pair.host),
        host_if: pair.name,
        host_index: pair.host_index,
        kind: match pair.layer {
            HostLayer::Ethernet => "tap",
            HostLayer::Ip => "tun",
        },
        netns: pair.netns,
    };
    let wanted = |pair: &crate::PairInfo| only.is_none_or(|only| only == pair.phy);
    Ok(Output::view(LcpView {
        default_netns: lcp.default_netns(),
        lcp_auto_subint: lcp.auto_subint() == Sync::On,
        lcp_sync: lcp.sync() == Sync::On,
        lcp_sync_unnumbered: lcp.sync_unnumbered() == Sync::On,
        pairs: lcp.list().into_iter().filter(wanted).map(row).collect(),
    }))
}

impl fmt::Display for LcpView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "lcp default netns '{}'", self.default_netns.as_deref().unwrap_or("<unset>"))?;
        writeln!(f, "lcp lcp-auto-subint {}", if self.lcp_auto_subint { "on" } else { "off" })?;
        writeln!(f, "lcp lcp-sync {}", if self.lcp_sync { "on" } else { "off" })?;
        writeln!(f, "lcp lcp-sync-unnumbered {}", if self.lcp_sync_unnumbered { "on" } else { "off" })?;
        writeln!(f, "lcp del-static-on-link-down off")?;
        writeln!(f, "lcp del-dynamic-on-link-down off")?;
        for Row { index, phy, host_sw_if, host_if, host_index, kind, netns } in &self.pairs {
            write!(f, "itf-pair: [{index}] {phy} {host_sw_if} {host_if} {host_index} type {kind}")?;
            match netns {
                Some(netns) => writeln!(f, " netns {netns}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}
