//! Features of an interface: on, off, and which are on.

use std::fmt;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Expected, Output, nearest};

use crate::{Info, InterfaceArg, Interfaces, SwitchedFeature};

pub(super) const SET_FEATURE: Command = Command::new(
    "set interface feature <interface> <feature> arc <arc:feature-arc> [disable]",
    "Enable or disable a feature of an arc on an interface",
    set_feature,
)
.doc("`show features` lists arcs and their features.");

fn set_feature(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interface: InterfaceArg = args.get("interface")?;
    let (feature, arc): (String, String) = (args.get("feature")?, args.get("arc")?);
    control.get::<Interfaces>()?.set_feature(&arc, &feature, interface.0, !args.has("disable"))?;
    Ok(Output::none())
}

pub(super) fn arc_names(control: &Control, _: &str) -> Vec<String> {
    let Ok(graph) = control.graph() else { return Vec::new() };
    graph.features(None).into_iter().map(|(arc, _)| arc.to_owned()).collect()
}

pub(super) fn feature_names(control: &Control, _: &str) -> Vec<String> {
    let Ok(graph) = control.graph() else { return Vec::new() };
    let mut names: Vec<String> =
        graph.features(None).into_iter().flat_map(|(_, list)| list).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    names
}

pub(super) fn check_arc(control: &Control, text: &str) -> Result<(), Expected> {
    one_of("a feature arc", &arc_names(control, ""), text)
}

pub(super) fn check_feature(control: &Control, text: &str) -> Result<(), Expected> {
    one_of("a feature", &feature_names(control, ""), text)
}

fn one_of(what: &str, names: &[String], text: &str) -> Result<(), Expected> {
    if names.iter().any(|n| n == text) {
        return Ok(());
    }
    let near = nearest(text, names.iter().map(String::as_str)).map(str::to_owned);
    Err(Expected::new(what).nearest(near))
}

#[derive(Serialize)]
struct Arc {
    #[serde(rename = "arc")]
    name: &'static str,
    /// Position on the arc and name, of those that are enabled.
    enabled: Vec<(usize, String)>,
    /// Those of layer 2, which are told apart by bits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    switched: Vec<SwitchedFeature>,
}

/// What `show interface IF features` says of one interface.
#[derive(Serialize)]
pub(super) struct OnInterface {
    interface: String,
    arcs: Vec<Arc>,
    #[serde(skip)]
    positions: bool,
}

impl OnInterface {
    pub(super) fn new(interfaces: &Interfaces, info: &Info, positions: bool) -> Self {
        let enabled = |list: Vec<(String, bool)>| {
            list.into_iter()
                .enumerate()
                .filter(|(_, (_, on))| *on)
                .map(|(at, (name, _))| (at, name))
                .collect()
        };
        let arcs = interfaces.graph().features(Some(info.index));
        let of = |(name, list)| Arc {
            name,
            enabled: enabled(list),
            switched: interfaces.switched_features(name, info.index),
        };
        let arcs = arcs.into_iter().map(of).collect();
        OnInterface { interface: info.name.clone(), arcs, positions }
    }
}

impl fmt::Display for OnInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OnInterface { interface, arcs, positions } = self;
        writeln!(f, "Feature paths configured on {interface}...")?;
        for Arc { name, enabled, switched } in arcs {
            writeln!(f, "\n{name}:")?;
            if enabled.is_empty() && switched.is_empty() {
                writeln!(f, "  none configured")?;
            }
            for SwitchedFeature { name, node } in switched {
                writeln!(f, "{name:>17} ({node})")?;
            }
            for (at, name) in enabled {
                let position = if *positions { format!("[{at:2}] ") } else { String::new() };
                writeln!(f, "  {position}{name}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enabled_features_are_listed_by_arc() {
        let arcs = vec![
            Arc { name: "ip4-unicast", enabled: vec![(3, "nat44-in2out".into())], switched: vec![] },
            Arc { name: "interface-output", enabled: vec![], switched: vec![] },
            Arc {
                name: "l2-input",
                enabled: vec![],
                switched: vec![SwitchedFeature { name: "LEARN", node: "l2-learn" }],
            },
        ];
        let mut list = OnInterface { interface: "loop0".into(), arcs, positions: false };
        assert_eq!(
            list.to_string(),
            "Feature paths configured on loop0...\n\nip4-unicast:\n  nat44-in2out\n\
             \ninterface-output:\n  none configured\n\nl2-input:\n            LEARN (l2-learn)\n"
        );
        list.positions = true;
        assert!(list.to_string().contains("  [ 3] nat44-in2out\n"));
    }
}
