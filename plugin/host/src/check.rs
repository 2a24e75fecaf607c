//! What a plugin says of itself against the graph it wants to join: before anything is added.

use shoal_graph::{ErrorCounter, FeatureSpec, Graph};

use crate::Refusal;
use crate::node::OWN_COUNTERS;
use crate::sys::PluginText;

/// What is added for a plugin that passed. Names stay until the process ends, as the plugin does.
pub(crate) struct Plan {
    pub(crate) nodes: Vec<PlannedNode>,
    pub(crate) features: Vec<FeatureSpec>,
}

/// One node of it.
pub(crate) struct PlannedNode {
    pub(crate) name: String,
    pub(crate) next: &'static [&'static str],
    pub(crate) counters: &'static [ErrorCounter],
}

fn keep(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn keep_all(texts: &[String]) -> &'static [&'static str] {
    texts.iter().map(|t| keep(t)).collect::<Vec<_>>().leak()
}

/// Checks every name.
pub(crate) fn check(plugin: &PluginText, graph: &Graph) -> Result<Plan, Refusal> {
    let own = |name: &str| plugin.nodes.iter().filter(|n| n.name == name).count();
    for node in &plugin.nodes {
        if own(&node.name) > 1 || graph.node(&node.name).is_ok() {
            return Err(Refusal::Exists("node", node.name.clone()));
        }
        let unknown = node.next.iter().find(|next| own(next) == 0 && graph.node(next).is_err());
        if let Some(next) = unknown {
            let of = format!("node `{}'", node.name);
            return Err(Refusal::NoNode { of, name: next.clone(), there: "the router or of the plugin" });
        }
        let names = node.counters.iter().map(|c| c.name.as_str()).chain(OWN_COUNTERS.map(|c| c.name));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows().find(|[a, b]| a == b) {
            return Err(Refusal::Exists("counter", format!("{}: {name}", node.name)));
        }
    }
    for (at, driver) in plugin.drivers.iter().enumerate() {
        let twice = plugin.drivers.iter().take(at).any(|other| other.name == driver.name);
        if twice || graph.node(&format!("{}-input", driver.name)).is_ok() {
            return Err(Refusal::Exists("driver", driver.name.clone()));
        }
    }
    for (at, command) in plugin.commands.iter().enumerate() {
        if plugin.commands.iter().take(at).any(|other| other.path == command.path) {
            return Err(Refusal::Exists("command", command.path.clone()));
        }
    }
    for (at, feature) in plugin.features.iter().enumerate() {
        if own(&feature.node) == 0 {
            let of = format!("a feature on arc `{}'", feature.arc);
            return Err(Refusal::NoNode { of, name: feature.node.clone(), there: "the plugin" });
        }
        let same = |f: &&crate::sys::FeatureText| f.node == feature.node && f.arc == feature.arc;
        if plugin.features.iter().take(at).any(|f| same(&f)) {
            return Err(Refusal::Exists("feature", format!("{} on {}", feature.node, feature.arc)));
        }
    }
    // What is kept of a plugin that is refused now is a few hundred bytes, once.
    let features: Vec<FeatureSpec> = plugin
        .features
        .iter()
        .map(|f| FeatureSpec {
            arc: keep(&f.arc),
            node: keep(&f.node),
            before: keep_all(&f.before),
            after: keep_all(&f.after),
        })
        .collect();
    graph.check_features(&features)?;
    let nodes = plugin.nodes.iter().map(|node| {
        let counters = node.counters.iter().map(|c| ErrorCounter {
            name: keep(&c.name),
            description: keep(&c.description),
            severity: c.severity,
            at: None,
        });
        let counters = counters.chain(OWN_COUNTERS).collect::<Vec<_>>().leak();
        PlannedNode { name: node.name.clone(), next: keep_all(&node.next), counters }
    });
    Ok(Plan { nodes: nodes.collect(), features })
}
