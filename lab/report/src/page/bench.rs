//! Clocks a packet by node, measured in one process.

use super::figure::{Figure, section as wrap};
use super::table::{Cell, Table};
use super::view::{View, command_of};
use crate::number;
use crate::plot::{Axis, Bar, BarGroup, Bars};
use crate::results::{Bench, BenchScenario};

/// Scenarios whose nodes are drawn; all are in the table.
const DRAWN: usize = 6;

/// The section: what the folders have of it; if none has any, `other`, which `make bench` left.
pub fn section(view: &View<'_>, other: Option<&Bench>) -> String {
    let several = view.results.len() > 1;
    let mut content: String = view
        .results
        .iter()
        .filter_map(|r| Some((r, r.bench.as_ref()?)))
        .filter_map(|(results, bench)| {
            let title = if several { format!(" [{}]", results.record.name) } else { String::new() };
            figure(bench, &title, command_of(results))
        })
        .map(|f| f.html())
        .collect();
    if content.is_empty() {
        content =
            other.and_then(|b| figure(b, "", "make bench".into())).map(|f| f.html()).unwrap_or_default();
    }
    wrap(
        "clocks",
        "Clocks a packet",
        "Measured inside one process, without a wire: the least noisy sign of a change, and not a benchmark of the system.",
        &content,
    )
}

fn figure(bench: &Bench, of: &str, command: String) -> Option<Figure> {
    let drawn: Vec<&BenchScenario> =
        bench.scenarios.iter().filter(|s| !s.nodes.is_empty()).take(DRAWN).collect();
    let values: Vec<f64> = drawn.iter().flat_map(|s| s.nodes.values().copied()).chain([0.0]).collect();
    let groups = drawn
        .iter()
        .map(|s| BarGroup {
            label: format!("{}: {} clocks in all", s.name, number::digits(s.clocks_min)),
            bars: nodes(s)
                .into_iter()
                .map(|(name, clocks)| Bar {
                    label: name.into(),
                    value: clocks,
                    text: number::digits(clocks),
                    ..Bar::default()
                })
                .collect(),
            lines: Vec::new(),
        })
        .collect();
    let described: Vec<String> =
        bench.scenarios.iter().map(|s| format!("{}: {}", s.name, number::digits(s.clocks_min))).collect();
    let title = format!("Clocks a packet by node{of}");
    let bars = Bars {
        title: title.clone(),
        description: format!("Clocks a packet in all, at least. {}.", described.join("; ")),
        axis: Axis::fitting("clocks a packet", &values)?,
        groups,
    };
    let mut table =
        Table::new(&["scenario", "node", "clocks at least", "clocks, median", "instructions", "disturbed"]);
    for s in &bench.scenarios {
        let disturbed = || Cell::text(if s.disturbed { "yes" } else { "no" });
        table.rows.push(vec![
            Cell::text(&s.name),
            Cell::text("all"),
            Cell::number(Some(s.clocks_min), "clocks"),
            Cell::number(Some(s.clocks_median), "clocks"),
            Cell::number(s.instructions, "instructions"),
            disturbed(),
        ]);
        for (node, clocks) in nodes(s) {
            let none = || Cell::number(None, "");
            let cells = [Cell::number(Some(clocks), "clocks"), none(), none(), disturbed()];
            table.rows.push([Cell::text(&s.name), Cell::text(node)].into_iter().chain(cells).collect());
        }
    }
    let fact = |name: &str| bench.machine.get(name).map(|v| v.to_string().trim_matches('"').to_owned());
    let mut facts: Vec<String> = ["processor", "revision", "target"]
        .iter()
        .filter_map(|name| Some(format!("{name}: {}", fact(name)?)))
        .collect();
    if !bench.instructions_by.is_empty() {
        facts.push(format!("instructions by: {}", bench.instructions_by));
    }
    Some(Figure {
        title,
        lead: "Fewer is better. Each bar is the least that a node took for one packet in any undisturbed window.".into(),
        plot: bars.svg(),
        notes: if facts.is_empty() { Vec::new() } else { vec![facts.join("; ") + "."] },
        table,
        command,
        ..Figure::default()
    })
}

/// Nodes by cost, dearest first.
fn nodes(scenario: &BenchScenario) -> Vec<(&str, f64)> {
    let mut nodes: Vec<(&str, f64)> = scenario.nodes.iter().map(|(n, c)| (n.as_str(), *c)).collect();
    nodes.sort_by(|a, b| b.1.total_cmp(&a.1));
    nodes
}
