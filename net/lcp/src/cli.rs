//! Commands: `lcp create`, `lcp delete`, `lcp default`, `lcp lcp-sync`, `show lcp`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Lcp, LcpError, Sync};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "lcp create <interface> host-if <host-if:word> [netns <netns:word>]",
        "Give an interface an image in Linux",
        create,
    )
    .examples(&["lcp create local0 host-if e0", "lcp create local0 host-if e0 netns dataplane"])
    .doc(
        "The image is a TAP with the interface's MAC address and MTU. Packets for the router's own addresses that nobody \
         here listens to go there, and what Linux sends there leaves by the interface. `netns` is a name under \
         `/run/netns`.",
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
    Command::new("show lcp [phy <interface>]", "Show images of interfaces in Linux", show)
        .examples(&["show lcp", "show lcp phy local0"]),
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
    control.get::<Lcp>()?.create(phy, &name, args.text("netns")).map_err(failed)?;
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
    control.get::<Lcp>()?.set_default_netns(args.text("netns"));
    Ok(Output::none())
}

fn sync(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Lcp>()?.set_sync(if args.has("on") { Sync::On } else { Sync::Off });
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
    lcp_sync: bool,
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
        kind: "tap",
        netns: pair.netns,
    };
    let wanted = |pair: &crate::PairInfo| only.is_none_or(|only| only == pair.phy);
    Ok(Output::view(LcpView {
        default_netns: lcp.default_netns(),
        lcp_sync: lcp.sync() == Sync::On,
        pairs: lcp.list().into_iter().filter(wanted).map(row).collect(),
    }))
}

impl fmt::Display for LcpView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "lcp default netns '{}'", self.default_netns.as_deref().unwrap_or("<unset>"))?;
        writeln!(f, "lcp lcp-auto-subint off")?;
        writeln!(f, "lcp lcp-sync {}", if self.lcp_sync { "on" } else { "off" })?;
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
