//! What links of Linux mean here: `show lcp vrf`, `show lcp vlan`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{Interfaces, TagKind};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Output};

use crate::{Lcp, VlanInfo, VrfInfo};

/// A row of `show lcp vrf`.
#[derive(Serialize)]
struct VrfRow {
    netns: Option<String>,
    name: String,
    /// In Linux.
    kernel_table: u32,
    /// Here; null if there cannot be one.
    table: Option<u32>,
    interfaces: Vec<String>,
}

impl fmt::Display for VrfRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(netns) = &self.netns {
            write!(f, "netns {netns} ")?;
        }
        match self.table {
            Some(table) => write!(f, "{} table {table}:", self.name)?,
            None => write!(f, "{} table {} is none here:", self.name, self.kernel_table)?,
        }
        self.interfaces.iter().try_for_each(|name| write!(f, " {name}"))?;
        writeln!(f)
    }
}

pub(super) fn show_vrfs(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (lcp, interfaces) = (control.get::<Lcp>()?, control.get::<Interfaces>()?);
    let row = |VrfInfo { netns, name, table, id, members }| VrfRow {
        netns,
        name,
        kernel_table: table,
        table: id,
        interfaces: members.into_iter().filter_map(|phy| interfaces.name(phy).ok()).collect(),
    };
    let rows: Vec<VrfRow> = lcp.vrfs().into_iter().map(row).collect();
    Ok(Output::rows("", rows.into_iter()))
}

/// A row of `show lcp vlan`.
#[derive(Serialize)]
struct VlanRow {
    netns: Option<String>,
    name: String,
    on: String,
    protocol: &'static str,
    id: u16,
    interface: Option<String>,
    why: Option<String>,
}

impl fmt::Display for VlanRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(netns) = &self.netns {
            write!(f, "netns {netns} ")?;
        }
        let VlanRow { name, on, protocol, id, .. } = self;
        write!(f, "{name} on {on} {protocol} {id}: ")?;
        match (&self.interface, &self.why) {
            (Some(interface), _) => writeln!(f, "{interface}"),
            (None, Some(why)) => writeln!(f, "not followed: {why}"),
            (None, None) => writeln!(f, "no sub-interface"),
        }
    }
}

pub(super) fn show_vlans(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (lcp, interfaces) = (control.get::<Lcp>()?, control.get::<Interfaces>()?);
    let row = |VlanInfo { netns, name, on, tag, id, sub, why }| VlanRow {
        netns,
        name,
        on,
        protocol: if tag == TagKind::Dot1q { "802.1Q" } else { "802.1ad" },
        id,
        interface: sub.and_then(|sub| interfaces.name(sub).ok()),
        why,
    };
    let rows: Vec<VlanRow> = lcp.vlans().into_iter().map(row).collect();
    Ok(Output::rows("", rows.into_iter()))
}
