//! `show udp ports`: who takes packets to which port of this router.

use std::fmt;

use serde::Serialize;
use shoal_adj::Family;
use shoal_interface::cli::column::{left, line};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::Punt;

pub(super) const SHOW: Command =
    Command::new("show udp ports [ip4 | ip6] [all | bind]", "Show UDP ports that this router listens to", show)
        .examples(&["show udp ports", "show udp ports ip6"])
        .doc(
            "`Node` takes packets to the port. Packets to all other ports are refused, or go to the host: see `show punt`. \
             Where the host gets all ports, only those of this router are listed. `all` and `bind` are taken for VPP's sake.",
        );

#[derive(Serialize)]
struct Listener {
    port: u16,
    af: &'static str,
    node: String,
}

#[derive(Serialize)]
struct Listeners(Vec<Listener>);

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let punt = control.get::<Punt>()?;
    let families = [(Family::Ip4, "ip4"), (Family::Ip6, "ip6")];
    let some = args.has("ip4") || args.has("ip6");
    let mut ports = Vec::new();
    for (family, af) in families.into_iter().filter(|(_, af)| !some || args.has(af)) {
        ports.extend(punt.udp_ports(family)?.into_iter().map(|(port, node)| Listener { port, af, node }));
    }
    ports.sort_by_key(|port| (port.port, port.af));
    Ok(Output::view(Listeners(ports)))
}

impl fmt::Display for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |port: &str, af: &str, node: &str| line(&[left(port, 8), left(af, 5), left(node, 40)]);
        f.write_str(&row("port", "af", "node"))?;
        self.0.iter().try_for_each(|port| f.write_str(&row(&port.port.to_string(), port.af, &port.node)))
    }
}
