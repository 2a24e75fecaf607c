//! `show graph`: nodes and edges, as a table or for Graphviz.

use std::fmt;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

const DOC: &str = "With names, only these nodes with their neighbours. `graphviz` prints text for `dot -Tsvg`. The \
                   way to `error-drop`, which every node has, is left out of the picture.";

pub(super) const SHOW: Command =
    Command::new("show graph [<node>] ... [graphviz]", "Show nodes and where their packets go", show)
        .examples(&["show graph", "show graph drop", "show graph graphviz"])
        .doc(DOC);

pub(super) const SHOW_VLIB: Command =
    Command::new("show vlib graph [<node>] ... [graphviz]", "Show nodes and where their packets go", show)
        .examples(&["show vlib graph", "show vlib graph drop"])
        .doc(DOC);

pub(super) const SHOW_GRAPHVIZ: Command =
    Command::new("show vlib graphviz", "Show the graph as text for Graphviz", graphviz)
        .examples(&["show vlib graphviz"]);

#[derive(Serialize)]
struct Next {
    edge: usize,
    node: String,
}

#[derive(Serialize)]
struct Node {
    name: String,
    next: Vec<Next>,
    previous: Vec<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Table(Vec<Node>);

#[derive(Serialize)]
#[serde(transparent)]
struct GraphTable(Table);

fn nodes(control: &Control, args: &Args) -> Result<Table, CliError> {
    let picked: Vec<String> = args.all("node")?;
    let mut nodes = control.graph()?.nodes();
    nodes.retain(|n| picked.is_empty() || picked.contains(&n.name));
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    let next = |(edge, node): (usize, String)| Next { edge, node };
    let node = |n: shoal_graph::NodeInfo| {
        // A node that was deleted leaves its edges behind, without a name.
        let next = n.next.into_iter().enumerate().map(next).filter(|n| !n.node.is_empty());
        Node { name: n.name, next: next.collect(), previous: n.previous }
    };
    Ok(Table(nodes.into_iter().map(node).collect()))
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let table = nodes(control, args)?;
    Ok(if args.has("graphviz") { Output::view(GraphTable(table)) } else { Output::view(table) })
}

fn graphviz(control: &Control, args: &Args) -> Result<Output, CliError> {
    Ok(Output::view(GraphTable(nodes(control, args)?)))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "           Name                      Next                    Previous")?;
        for Node { name, next, previous } in &self.0 {
            writeln!(f)?;
            for row in 0..next.len().max(previous.len()).max(1) {
                let name = if row == 0 { name.as_str() } else { "" };
                let to = next.get(row).map(|n| format!("{} [{}]", n.node, n.edge)).unwrap_or_default();
                let from = previous.get(row).map_or("", String::as_str);
                // Longer names push the columns aside rather than lose their ends.
                writeln!(f, "{}", format!("{name:<25} {to:<25} {from}").trim_end())?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for GraphTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "digraph {{")?;
        for node in &self.0.0 {
            writeln!(f, "  \"{}\"", node.name)?;
            let mut drawn: Vec<&str> = Vec::new();
            for next in node.next.iter().filter(|n| n.edge > 0) {
                if !drawn.contains(&next.node.as_str()) {
                    writeln!(f, "  \"{}\" -> \"{}\"", node.name, next.node)?;
                    drawn.push(&next.node);
                }
            }
        }
        writeln!(f, "}}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    #[test]
    fn a_node_is_listed_with_edges_in_and_out() {
        let router = Router::new();
        assert_eq!(
            router.run("show graph judge test-input"),
            "           Name                      Next                    Previous\n\
             \njudge                     error-drop [0]            test-input\n\
             \ntest-input                error-drop [0]\n                          judge [1]\n"
        );
        assert_eq!(router.run("show vlib graph judge"), router.run("sh graph judge"));
    }

    #[test]
    fn the_picture_is_for_graphviz() {
        let router = Router::new();
        assert_eq!(
            router.run("show graph test-input graphviz"),
            "digraph {\n  \"test-input\"\n  \"test-input\" -> \"judge\"\n}\n"
        );
        let all = router.run("show vlib graphviz");
        assert!(all.contains("\"error-drop\" -> \"drop\"") && all.ends_with("}\n"));
    }
}
