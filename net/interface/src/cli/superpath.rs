//! `set superpath`, `show superpath`: fused paths on or off.

use std::fmt;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{InterfaceArg, Interfaces, SuperpathChoice};

pub(super) const SET: Command = Command::new(
    "set superpath {on | off}",
    "Let packets take fused paths where nothing asks for more, or never",
    set,
)
.examples(&["set superpath off", "set superpath on"])
.doc("Packets fare the same either way; without superpaths every node shows in `show runtime`.");

pub(super) const SHOW: Command = Command::new(
    "show superpath [<interface>]",
    "Show fused paths and the interfaces that use them, or why an interface uses one and not another",
    show,
)
.examples(&["show superpath", "show superpath loop0"])
.doc(
    "A fused path is for interfaces whose features it covers. With an interface: the path it takes, and what keeps it \
     from each other path.",
);

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

#[derive(Serialize)]
struct NotTaken {
    node: &'static str,
    because: Vec<String>,
}

#[derive(Serialize)]
struct Choice {
    interface: String,
    /// `None`: packets go from node to node.
    superpath: Option<&'static str>,
    /// What keeps packets of some protocol from it.
    leaves_out: Vec<String>,
    others: Vec<NotTaken>,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    if let Some(InterfaceArg(index)) = args.opt("interface")? {
        return Ok(Output::view(Choice::of(interfaces.name(index)?, interfaces.superpath_of(index)?)));
    }
    let mut paths = Vec::new();
    for (name, node) in interfaces.superpaths() {
        let uses =
            |i: &shoal_buffer::SwIfIndex| interfaces.data(*i).is_ok_and(|d| d.superpath() == Some(node));
        let users = interfaces.indices().into_iter().filter(uses);
        paths.push(Path {
            interfaces: users.filter_map(|i| interfaces.name(i).ok()).collect(),
            node: name.to_owned(),
        });
    }
    Ok(Output::view(Superpaths { on: interfaces.superpath_enabled(), paths }))
}

impl Choice {
    fn of(interface: String, choice: SuperpathChoice) -> Choice {
        let words = |all: Vec<crate::SuperpathObstacle>| all.iter().map(ToString::to_string).collect();
        let others = choice.others.into_iter();
        Choice {
            interface,
            superpath: choice.taken,
            leaves_out: words(choice.left_out),
            others: others.map(|(node, because)| NotTaken { node, because: words(because) }).collect(),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.interface, self.superpath.unwrap_or("from node to node"))?;
        for reason in &self.leaves_out {
            writeln!(f, "  for some packets only: {reason}")?;
        }
        for NotTaken { node, because } in &self.others {
            writeln!(f, "  not {node}: {}", because.join("; "))?;
        }
        Ok(())
    }
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

    #[test]
    fn a_choice_says_what_keeps_the_interface_from_other_paths() {
        use crate::{Medium, SuperpathObstacle};
        let feature = |name: &str| SuperpathObstacle::Feature { feature: name.into(), arc: "ip4-unicast" };
        let choice = SuperpathChoice {
            taken: Some("ip-superpath"),
            left_out: vec![feature("toy")],
            others: vec![
                ("a", vec![feature("one"), feature("two")]),
                ("b", vec![SuperpathObstacle::Medium(Medium::Layer2)]),
                ("c", vec![SuperpathObstacle::Cost(40)]),
            ],
        };
        assert_eq!(
            Choice::of("eth0".into(), choice).to_string(),
            "eth0: ip-superpath\n  for some packets only: toy on ip4-unicast is not part of it\n  \
             not a: one on ip4-unicast is not part of it; two on ip4-unicast is not part of it\n  \
             not b: it is for switched interfaces\n  not c: it costs 40\n"
        );
    }
}
