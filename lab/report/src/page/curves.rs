//! Results that are curves: loss against offered load, sweeps, NAT.

use std::collections::HashSet;

use shoal_lab_plan::SummaryRow;

use super::figure::{Figure, section as wrap};
use super::table::{Cell, Table};
use super::view::{Placed, View, circumstances, commands, frame_label, test_title, trust_of};
use crate::number;
use crate::plot::{Axis, Lines, Series};

/// Points of a curve that are marked.
const MOST_MARKED: usize = 40;

/// Curves of all tests but those of NAT.
pub fn section(view: &View<'_>) -> String {
    let content = figures(view, |r| !r.curve.is_empty() && !is_nat(r) && !is_percentiles(r));
    wrap("curves", "Load and loss", "", &content)
}

/// Curves of the stateful NAT tests (RFC 9693).
pub fn nat_section(view: &View<'_>) -> String {
    let content = figures(view, |r| !r.curve.is_empty() && is_nat(r));
    wrap(
        "nat",
        "Stateful NAT",
        "Sessions are made by the tester and verified one by one (RFC 9693). Loss by refused flows is not loss by \
         overload: where flows were never answered, the notes say so.",
        &content,
    )
}

/// Percentiles of delays have a section of their own, drawn from the histograms.
fn is_percentiles(row: &SummaryRow) -> bool {
    row.axes.as_ref().is_some_and(|(x, _)| x == "percentile")
}

fn is_nat(row: &SummaryRow) -> bool {
    row.test.to_lowercase().starts_with("nat")
}

fn figures(view: &View<'_>, wanted: impl Fn(&SummaryRow) -> bool) -> String {
    let groups = view.grouped(wanted, |r| {
        let (x, y) = r.axes.clone().unwrap_or_default();
        vec![
            r.test.clone(),
            r.metric.clone(),
            x,
            y,
            r.transport.clone(),
            r.scenario.clone(),
            r.ip.clone(),
            r.frame.clone(),
            r.direction.clone(),
        ]
    });
    groups.iter().filter_map(|g| figure(view, g)).map(|f| f.html()).collect()
}

fn figure(view: &View<'_>, group: &[Placed<'_>]) -> Option<Figure> {
    let first = group.first()?.row;
    let (x_label, y_label) = first.axes.clone().unwrap_or_else(|| ("x".into(), first.metric.clone()));
    let points = || group.iter().flat_map(|p| p.row.curve.iter());
    let is_load = x_label.contains("offered") && y_label.contains("received");
    let xs: Vec<f64> = points().map(|p| p.0).collect();
    let mut series: Vec<Series> = group
        .iter()
        .map(|p| Series {
            name: [view.who(p), p.row.variant.clone()].join(" ").trim().to_owned(),
            colour: view.colour(&p.row.dut),
            dashed: false,
            // So many marks would be a line of their own.
            marked: p.row.curve.len() <= MOST_MARKED,
            points: p.row.curve.clone(),
        })
        .collect();
    // A device with several lines has a colour and a mark for each.
    let devices: HashSet<&str> = group.iter().map(|p| p.row.dut.as_str()).collect();
    if devices.len() < group.len() && group.iter().all(|p| p.row.test == "convergence") {
        for (n, series) in series.iter_mut().enumerate() {
            series.colour = Some(n);
        }
    }
    let ys: Vec<f64> = points().map(|p| p.1).collect();
    if is_load {
        let most = xs.iter().copied().filter(|x| x.is_finite()).fold(0.0, f64::max);
        let ideal = Series {
            name: "nothing lost".into(),
            dashed: true,
            points: vec![(0.0, 0.0), (most, most)],
            ..Series::default()
        };
        series.insert(0, ideal);
    }
    let x = if is_load {
        Axis::over(&x_label, crate::plot::Scale::Linear, xs.iter().copied())?
    } else {
        Axis::fitting(&x_label, &xs)?
    };
    let title = format!("{}: {}, {}", title(first), frame_label(&first.frame), circumstances(first));
    let y = if is_load {
        Axis::over(&y_label, crate::plot::Scale::Linear, ys.iter().chain(&xs).copied())?
    } else {
        Axis::fitting(&y_label, &ys)?
    };
    let lines =
        Lines { title: title.clone(), description: describe(view, group, &x_label, &y_label), x, y, series };
    let mut notes: Vec<String> = group
        .iter()
        .filter(|p| !p.row.note.is_empty())
        .map(|p| format!("{}: {}", view.who(p), p.row.note))
        .collect();
    notes.dedup();
    Some(Figure {
        title,
        lead: if is_load {
            "What arrives against what is offered. A line that leaves the dashed one loses frames; one that falls to \
             the right does worse the more it is given."
                .into()
        } else {
            format!("{y_label} against {x_label}.")
        },
        trust: trust_of(group),
        legend: lines.legend(),
        plot: lines.svg(),
        notes,
        table: table(view, group, &x_label, &y_label),
        command: commands(group),
    })
}

fn title(row: &SummaryRow) -> String {
    match row.test.as_str() {
        "loss" | "forwarding-rate" => test_title(&row.test).into(),
        test if test.eq_ignore_ascii_case(&row.metric) || row.metric.is_empty() => test.into(),
        test => format!("{test}, {}", row.metric),
    }
}

fn describe(view: &View<'_>, group: &[Placed<'_>], x: &str, y: &str) -> String {
    let ends: Vec<String> = group
        .iter()
        .filter_map(|p| {
            let ((x0, y0), (x1, y1)) = (p.row.curve.first()?, p.row.curve.last()?);
            Some(format!(
                "{}: from {} at {} to {} at {}",
                view.who(p),
                number::si(*y0),
                number::si(*x0),
                number::si(*y1),
                number::si(*x1)
            ))
        })
        .collect();
    format!("{y} against {x}. {}.", ends.join("; "))
}

fn table(view: &View<'_>, group: &[Placed<'_>], x: &str, y: &str) -> Table {
    let mut table = Table::new(&["device", "variant", x, y]);
    for placed in group {
        for (at, value) in &placed.row.curve {
            table.rows.push(vec![
                Cell::text(view.who(placed)),
                Cell::text(&placed.row.variant),
                Cell::Number(Some(*at), number::si(*at)),
                Cell::Number(Some(*value), number::si(*value)),
            ]);
        }
    }
    table
}
