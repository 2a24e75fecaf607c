//! Energy where it was measured, CPU seconds where it was not; never on one axis, and neither are different wires.

use shoal_lab_energy::metric;
use shoal_lab_plan::SummaryRow;

use super::escape;
use super::figure::{Figure, section as wrap};
use super::throughput;
use super::view::{Placed, View, circumstances, commands, frame_label, trust_of};
use crate::number;
use crate::plot::{Axis, Bar, BarGroup, Bars};
use crate::statistics::Statistics;

const ENERGY: [(&str, &str); 6] = [
    metric::PPWH,
    metric::BPWH,
    metric::PPWH_ABOVE_IDLE,
    metric::BPWH_ABOVE_IDLE,
    metric::ENERGY,
    metric::POWER,
];

/// Whether it is a figure of energy.
pub fn is_energy(row: &SummaryRow) -> bool {
    ENERGY.iter().any(|(name, _)| *name == row.metric)
}

/// Whether it is CPU time for packets.
pub fn is_cpu(row: &SummaryRow) -> bool {
    row.metric == metric::CPU_SECONDS.0
}

/// Energy and CPU time. The note of a row of energy is its scope (wall, package): other scopes have another plot.
pub fn section(view: &View<'_>) -> String {
    if view.results.iter().all(|r| r.rows.is_empty()) {
        return String::new();
    }
    let groups = view
        .grouped(is_energy, |r| vec![r.metric.clone(), r.unit.clone(), r.note.clone(), r.transport.clone()]);
    let mut content = String::new();
    if groups.is_empty() {
        content.push_str("<p>Energy: <strong>not measured</strong>, no meter was configured.</p>");
    }
    for group in &groups {
        let what = group.first().map_or_else(String::new, |p| {
            format!("{} ({}), over {}", p.row.metric, p.row.note, p.row.transport)
        });
        content.push_str(
            &figure(view, group, &what, "More is better for packets and bytes a watt-hour.")
                .map(|f| f.html())
                .unwrap_or_default(),
        );
    }
    for group in view.grouped(is_cpu, |r| vec![r.unit.clone(), r.transport.clone()]) {
        let lead = "Processor time that the device used for a million delivered packets: less is better. This is not energy. \
                    A device that polls uses its whole processor whatever the load, so its figure shrinks with the rate.";
        content.push_str(
            &figure(view, &group, &format!("CPU seconds a million packets, over {}", wire(&group)), lead)
                .map(|f| f.html())
                .unwrap_or_default(),
        );
    }
    wrap("energy", "What it costs", "", &content)
}

fn figure(view: &View<'_>, group: &[Placed<'_>], title: &str, lead: &str) -> Option<Figure> {
    let all: Vec<(&Placed<'_>, Statistics)> =
        group.iter().map(|p| (p, Statistics::of(&p.row.values))).collect();
    let values: Vec<f64> = all.iter().filter_map(|(_, s)| s.median).collect();
    let unit = group.first()?.row.unit.clone();
    let mut groups: Vec<BarGroup> = Vec::new();
    let mut described = Vec::new();
    for (placed, s) in &all {
        let row = placed.row;
        let label = [frame_label(&row.frame), circumstances(row), row.variant.clone()]
            .into_iter()
            .filter(|p| !p.is_empty())
            .collect::<Vec<_>>()
            .join(", ");
        let text = s.median.map_or_else(|| "no figure".into(), |m| number::in_unit(m, &unit));
        described.push(format!("{}, {label}: {text}", view.who(placed)));
        let bar = Bar {
            label: view.who(placed),
            colour: view.colour(&row.dut).unwrap_or(0),
            value: s.median.unwrap_or(0.0),
            whisker: s.min.zip(s.max),
            text,
            hollow: false,
        };
        match groups.iter_mut().find(|g| g.label == label) {
            Some(group) => group.bars.push(bar),
            None => groups.push(BarGroup { label, bars: vec![bar], lines: Vec::new() }),
        }
    }
    let bars = Bars {
        title: title.into(),
        description: format!("In {unit}. {}.", described.join("; ")),
        axis: Axis::fitting(&unit, &values)?,
        groups,
    };
    Some(Figure {
        title: title.into(),
        lead: lead.into(),
        trust: trust_of(group),
        plot: bars.svg(),
        table: throughput::table(view, group),
        command: commands(group),
        ..Figure::default()
    })
}

fn wire<'a>(group: &[Placed<'a>]) -> &'a str {
    group.first().map_or("", |p| p.row.transport.as_str())
}

/// What the meter of a campaign was, for its facts.
pub fn scope(rows: &[SummaryRow]) -> String {
    rows.iter().find(|r| is_energy(r)).map_or_else(|| "not measured".to_owned(), |r| escape(&r.note))
}
