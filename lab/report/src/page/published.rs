//! Others' figures beside ours.

use super::figure::{Figure, section as wrap};
use super::published_delays;
use super::table::{Cell, Table};
use super::throughput::is_rate;
use super::view::{Placed, View, frame_label};
use crate::number;
use crate::published::{Match, shapes};
use crate::statistics::median_of;

/// Shapes first, then single figures per GHz and core.
pub fn section(view: &View<'_>) -> String {
    let mut content = shape_figure(view).map(|f| f.html()).unwrap_or_default();
    content.push_str(&beside(view).map(|f| f.html()).unwrap_or_default());
    content.push_str(&published_delays::figure(view).map(|f| f.html()).unwrap_or_default());
    wrap(
        "published",
        "Beside published figures",
        "Published figures are of other machines, cards and wires. Ratios of two figures from one machine compare; single \
         figures do not, and are set side by side only per core and GHz, as an indication.",
        &content,
    )
}

fn shape_figure(view: &View<'_>) -> Option<Figure> {
    let mut table = Table::new(&["shape", "here", "published", "source", "caution"]);
    for results in view.results {
        for shape in shapes(&results.rows) {
            table.rows.push(vec![
                Cell::text(shape.what),
                Cell::Number(Some(shape.ours), format!("{:.2}", shape.ours)),
                Cell::text(shape.published),
                Cell::text(shape.source),
                Cell::text(shape.caution),
            ]);
        }
    }
    (!table.rows.is_empty()).then(|| Figure {
        title: "Shapes".into(),
        lead: "Ratios of two figures that were measured on one machine, and how far runs are apart.".into(),
        table,
        ..Figure::default()
    })
}

fn beside(view: &View<'_>) -> Option<Figure> {
    let mut table = Table::new(&[
        "device",
        "what",
        "here",
        "here, a core and GHz",
        "published",
        "unit",
        "published, a core and GHz",
        "ratio (indicative)",
        "of",
        "machine",
        "source",
        "errata",
    ]);
    let mut notes: Vec<String> = Vec::new();
    for placed in view.rows().filter(|p| is_rate(p.row)) {
        for found in view.published.beside(placed.row) {
            table.rows.push(row(view, &placed, &found));
            if placed.row.frame.starts_with("imix") {
                let note = format!(
                    "The mixes differ: ours is {}, the source\u{2019}s tables imply 362 to 368 bytes a frame.",
                    placed.row.frame
                );
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            for erratum in &found.errata {
                let note = format!(
                    "Source {}, table {}: {}. Printed: {}; used: {}. {}.",
                    erratum.seed,
                    erratum.table,
                    erratum.place,
                    erratum.as_printed,
                    erratum.used,
                    erratum.reason
                );
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    (!table.rows.is_empty()).then(|| Figure {
        title: "Single figures, indicative".into(),
        lead: "The published figure with the same kind of device, scenario, frame size, direction and number of workers.".into(),
        notes,
        table,
        ..Figure::default()
    })
}

fn row(view: &View<'_>, placed: &Placed<'_>, found: &Match<'_>) -> Vec<Cell> {
    let row = placed.row;
    let figure = found.figure;
    let ours = median_of(&row.values);
    let clock = placed.of.record.host.clock_ghz.filter(|c| *c > 0.0);
    let ours_normal = ours.zip(clock).map(|(o, c)| o / c / f64::from(row.workers.max(1)));
    let theirs = figure.per_ghz_and_core();
    let ratio = ours_normal.zip(theirs).filter(|(_, t)| *t > 0.0).map(|(o, t)| o / t);
    let errata: Vec<String> = found.errata.iter().map(|e| e.place.clone()).collect();
    let what = format!(
        "{} IPv{}, {}, {}, workers: {}",
        row.scenario,
        row.ip,
        frame_label(&row.frame),
        row.direction,
        row.workers
    );
    vec![
        Cell::text(view.who(placed)),
        Cell::text(what),
        Cell::number(ours, &row.unit),
        Cell::number(ours_normal, "fps"),
        Cell::Number(figure.number(), figure.number().map_or_else(|| figure.value.clone(), number::si)),
        Cell::text(&figure.unit),
        Cell::number(theirs, "fps"),
        Cell::Number(ratio, ratio.map_or_else(|| number::NONE.into(), |r| format!("{r:.2}"))),
        Cell::text(&figure.dut),
        Cell::text(format!("{}, {} GHz", figure.config, figure.clock_ghz)),
        Cell::text(format!("{}, {}", figure.seed, figure.table)),
        Cell::text(errata.join("; ")),
    ]
}
