//! `set superpath`, `show superpath`: fused paths on or off.

use std::fmt;

use serde::Serialize;
use shoal_graph::NodeKind;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::Interfaces;

pub(super) const SET: Command = Command::new(
    "set superpath {on | off}",
    "Let packets take fused paths where nothing asks for more, or never",
    set,
)
.examples(&["set superpath off", "set superpath on"])
.doc("Packets fare the same either way; without superpaths every node shows in `show runtime`.");

pub(super) const SHOW: Command =
    Command::new("show superpath", "Show fused paths and the interfaces that use them", show)
        .examples(&["show superpath"]);

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Interfaces>()?.enable_superpath(args.has("on"))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Path {
    node: String,
    /// Interfaces whose frames start here.
    interfaces: Vec<String>,
}

#[derive(Serialize)]
struct Superpaths {
    on: bool,
    paths: Vec<Path>,
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
    let mut paths = Vec::new();
    for node in graph.nodes().into_iter().filter(|n| n.kind == NodeKind::Superpath) {
        let uses =
            |i: &shoal_buffer::SwIfIndex| interfaces.data(*i).is_ok_and(|d| d.rx_next(false) == node.index);
        let users = interfaces.indices().into_iter().filter(uses);
        paths.push(Path {
            interfaces: users.filter_map(|i| interfaces.name(i).ok()).collect(),
            node: node.name,
        });
    }
    Ok(Output::view(Superpaths { on: interfaces.superpath_enabled(), paths }))
}

impl fmt::Display for Superpaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "superpaths {}", if self.on { "on" } else { "off" })?;
        for Path { node, interfaces } in &self.paths {
            let used = if interfaces.is_empty() { "not used".into() } else { interfaces.join(" ") };
            writeln!(f, "  {node}: {used}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_listed_with_the_interfaces_that_use_them() {
        let path = |node: &str, interfaces: &[&str]| Path {
            node: node.into(),
            interfaces: interfaces.iter().map(|i| (*i).to_owned()).collect(),
        };
        let list = Superpaths { on: true, paths: vec![path("ip4-superpath", &["a0", "b0"]), path("x", &[])] };
        assert_eq!(list.to_string(), "superpaths on\n  ip4-superpath: a0 b0\n  x: not used\n");
    }
}
