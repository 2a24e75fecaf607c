//! `show graph node`: nodes by what they are, in VPP's words.

use std::fmt;

use serde::Serialize;
use shoal_graph::NodeBrief;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::api::NodeFlag;

pub(super) const SHOW: Command = Command::new(
    "show graph node [{want_arcs | input | drop | output | punt | handoff | no_free | polling | interrupt | trace | index \
     <index:u32> | name <node>}] ...",
    "Show nodes by what they are",
    show,
)
.examples(&["show graph node", "show graph node drop punt", "show graph node name ip4-lookup want_arcs"])
.doc("With several words, nodes that are any of it. `want_arcs` shows where their packets go.");

#[derive(Serialize)]
struct Node {
    index: u32,
    name: String,
    flags: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arcs: Vec<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Table(Vec<Node>);

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let wanted = NodeFlag::WORDS.iter().filter(|(word, _)| args.has(word)).fold(0, |all, (_, bit)| all | bit);
    let names: Vec<String> = args.all("node")?;
    let indices: Vec<u32> = args.all("index")?;
    if let Some(index) = indices.iter().find(|index| graph.node_at(**index as usize).is_none()) {
        let last = graph.node_places().saturating_sub(1);
        return Err(CliError::argument("index", format!("there is no node {index}; the last one is {last}")));
    }
    let picked = !names.is_empty() || !indices.is_empty() || wanted != 0;
    let takes = |node: &NodeBrief| {
        names.iter().any(|name| **name == *node.name)
            || indices.contains(&node.index.number())
            || NodeFlag::of(node).bits() & wanted != 0
    };
    let row = |node: NodeBrief| Node {
        index: node.index.number(),
        flags: NodeFlag::of(&node).words(),
        arcs: if args.has("want_arcs") {
            graph.next_nodes(node.index).into_iter().map(|next| graph.node_name(next)).collect()
        } else {
            Vec::new()
        },
        name: node.name.to_string(),
    };
    let nodes = (0..graph.node_places()).filter_map(|at| graph.node_at(at));
    Ok(Output::view(Table(nodes.filter(|node| !picked || takes(node)).map(row).collect())))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Node { index, name, flags, arcs } in &self.0 {
            writeln!(f, "{}", format!("{index:>5} {name:<40} {}", flags.join(" ")).trim_end())?;
            arcs.iter().enumerate().try_for_each(|(edge, arc)| writeln!(f, "        [{edge}] {arc}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    #[test]
    fn nodes_are_chosen_by_what_they_are() {
        let router = Router::new();
        let inputs = router.run("show graph node input");
        assert!(inputs.contains(" test-input ") && !inputs.contains(" judge"), "{inputs}");
        let both = router.run("show graph node want_arcs input drop");
        assert!(both.contains(" error-drop ") && both.contains("] judge\n"), "{both}");
        assert!(router.run("show graph node name judge").ends_with(" judge\n"));
        assert_eq!(router.run("show graph node index 0").lines().count(), 1);
        assert!(router.refused("show graph node index 9999").contains("there is no node 9999"));
        assert!(router.run("show graph node").lines().count() > 2);
    }
}
