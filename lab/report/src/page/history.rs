//! What the same machine gave on other days.

use super::figure::{Figure, section as wrap};
use super::table::{Cell, Table};
use crate::history::HistoryLine;
use crate::number;
use crate::plot::{Axis, COLOURS, Lines, Scale, Series};

/// Results that are drawn; all are in the table.
const DRAWN: usize = COLOURS;

/// Medians over days, each as a share of its first.
pub fn section(history: &[HistoryLine]) -> String {
    let figure = figure(history).map(|f| f.html()).unwrap_or_default();
    wrap(
        "history",
        "Other days",
        "Hosts drift from day to day, so no check stands on this. It is here to be looked at.",
        &figure,
    )
}

fn figure(history: &[HistoryLine]) -> Option<Figure> {
    let mut names: Vec<&str> = Vec::new();
    for line in history {
        let again = history.iter().filter(|l| l.what == line.what).count() > 1;
        if again && !names.contains(&line.what.as_str()) {
            names.push(&line.what);
        }
    }
    let start = history.iter().map(|l| l.began).fold(f64::MAX, f64::min);
    let series: Vec<Series> = names
        .iter()
        .take(DRAWN)
        .enumerate()
        .filter_map(|(at, name)| {
            let lines = || history.iter().filter(|l| l.what == *name);
            // As a share of the tester's own limit that day, where it is known: most of the host's drift cancels.
            let figure = |l: &HistoryLine| l.of_self_test.unwrap_or(l.median);
            let first = lines().map(figure).find(|f| *f != 0.0)?;
            let points = lines().map(|l| ((l.began - start) / 86_400.0, figure(l) / first)).collect();
            Some(Series {
                name: (*name).to_owned(),
                colour: Some(at),
                marked: true,
                points,
                ..Series::default()
            })
        })
        .collect();
    let points = || series.iter().flat_map(|s| s.points.iter());
    let lines = Lines {
        title: "Results over days".into(),
        description: format!("{} results, each as a share of its first.", series.len()),
        x: Axis::over(&format!("days since {}", number::date(start)), Scale::Linear, points().map(|p| p.0))?,
        y: Axis::over("share of the first", Scale::Linear, points().map(|p| p.1))?,
        series: series.clone(),
    };
    let mut table =
        Table::new(&["when", "campaign", "revision", "result", "median", "unit", "of the tester alone"]);
    for l in history {
        table.rows.push(vec![
            Cell::text(number::date_and_time(l.began)),
            Cell::text(&l.name),
            Cell::text(&l.commit),
            Cell::text(&l.what),
            Cell::number(Some(l.median), &l.unit),
            Cell::text(&l.unit),
            Cell::number(l.of_self_test, "ratio"),
        ]);
    }
    Some(Figure {
        title: "Results over days".into(),
        lead: "Each line is a result as a share of its first; rates are first divided by what the tester reached alone that \
               day."
            .into(),
        legend: lines.legend(),
        plot: lines.svg(),
        table,
        ..Figure::default()
    })
}
