//! `show capacity`: how much of everything is used, and how much there can be.

use std::fmt;

use serde::Serialize;
use shoal_graph::{Graph, MAX_THREADS};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command =
    Command::new("show capacity", "Show how much is used of what there can be", show)
        .examples(&["show capacity"])
        .doc("`Now` is what there is room for at this moment; it grows up to `Possible` by itself.");

#[derive(Serialize)]
struct Limit {
    resource: &'static str,
    used: usize,
    now: usize,
    possible: usize,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Capacity(Vec<Limit>);

fn resources(graph: &Graph) -> Vec<Limit> {
    let fixed = |resource, used, possible| Limit { resource, used, now: possible, possible };
    let (c, pool, segment) = (graph.graph_counters(), graph.pool().stats(), graph.counters().segment());
    let interfaces = graph.if_names().all().iter().filter(|n| !n.is_empty() && *n != "deleted").count();
    vec![
        Limit { resource: "buffers", used: pool.used, now: pool.total, possible: pool.most },
        fixed("interfaces", interfaces, c.rx.capacity()),
        fixed("nodes", graph.nodes().len(), c.calls.capacity()),
        fixed("node counters", graph.error_counters().len(), c.errors.capacity()),
        fixed("threads", graph.threads().len(), MAX_THREADS),
        fixed("stats segment bytes", segment.used(), segment.size()),
    ]
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Capacity(resources(&*control.graph()?))))
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}{:>14}{:>14}{:>14}{:>8}", "Resource", "Used", "Now", "Possible", "Used %")?;
        self.0.iter().try_for_each(|Limit { resource, used, now, possible }| {
            let percent = if *possible == 0 { 0.0 } else { *used as f64 / *possible as f64 * 100.0 };
            writeln!(f, "{resource:<24}{used:>14}{now:>14}{possible:>14}{percent:>8.1}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn figures_stand_under_each_other() {
        let buffers = Limit { resource: "buffers", used: 8_192, now: 16_384, possible: 262_144 };
        assert_eq!(
            Capacity(vec![buffers]).to_string(),
            "Resource                          Used           Now      Possible  Used %\n\
             buffers                           8192         16384        262144     3.1\n"
        );
    }

    #[test]
    fn nothing_is_used_beyond_what_is_possible() {
        let router = Router::new();
        let all = resources(&router.graph());
        assert!(all.iter().all(|r| r.used <= r.now && r.now <= r.possible));
        assert_eq!(all.iter().find(|r| r.resource == "interfaces").map(|r| r.used), Some(1));
    }
}
