//! Clocks a packet by node, as `make bench` finds them in one process.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::figure::{Figure, section as wrap};
use super::table::{Cell, Table};
use crate::ReportError;
use crate::number;
use crate::plot::{Axis, Bar, BarGroup, Bars};

/// `target/bench.json`, as far as it is shown.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Bench {
    /// Facts of the machine.
    #[serde(default)]
    pub machine: BTreeMap<String, Value>,
    /// What was run.
    pub scenarios: Vec<BenchScenario>,
}

/// A scenario.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct BenchScenario {
    /// Its name.
    pub name: String,
    /// Clocks a packet, generation excluded, at least.
    pub clocks_min: f64,
    /// The same, median.
    pub clocks_median: f64,
    /// Instructions a packet, if they were counted.
    #[serde(default)]
    pub instructions: Option<f64>,
    /// Clocks at least by node.
    #[serde(default)]
    pub nodes: BTreeMap<String, f64>,
    /// Whether no window was undisturbed.
    #[serde(default)]
    pub disturbed: bool,
}

/// Scenarios whose nodes are drawn; all are in the table.
const DRAWN: usize = 6;

impl Bench {
    /// Reads `target/bench.json`.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is something else.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let text = std::fs::read_to_string(path).map_err(|e| ReportError::read(path, e))?;
        serde_json::from_str(&text).map_err(|e| ReportError::content(path, e.line(), e))
    }
}

/// The section; nothing if there is no file.
pub fn section(bench: Option<&Bench>) -> String {
    let figure = bench.and_then(figure).map(|f| f.html()).unwrap_or_default();
    wrap(
        "clocks",
        "Clocks a packet",
        "Measured inside one process, without a wire: the least noisy sign of a change, and not a benchmark of the system.",
        &figure,
    )
}

fn figure(bench: &Bench) -> Option<Figure> {
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
    let bars = Bars {
        title: "Clocks a packet by node".into(),
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
    let facts: Vec<String> = ["processor", "revision", "target"]
        .iter()
        .filter_map(|name| Some(format!("{name}: {}", fact(name)?)))
        .collect();
    Some(Figure {
        title: "Clocks a packet by node".into(),
        lead: "Fewer is better. Each bar is the least that a node took for one packet in any undisturbed window.".into(),
        plot: bars.svg(),
        notes: if facts.is_empty() { Vec::new() } else { vec![facts.join("; ") + "."] },
        table,
        command: "make bench".into(),
        ..Figure::default()
    })
}

/// Nodes by cost, dearest first.
fn nodes(scenario: &BenchScenario) -> Vec<(&str, f64)> {
    let mut nodes: Vec<(&str, f64)> = scenario.nodes.iter().map(|(n, c)| (n.as_str(), *c)).collect();
    nodes.sort_by(|a, b| b.1.total_cmp(&a.1));
    nodes
}
