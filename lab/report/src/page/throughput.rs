//! Rates of frames as bars, and tables of all that has no plot.

use shoal_lab_plan::SummaryRow;

use super::figure::{Figure, section as wrap};
use super::table::{Cell, Table};
use super::view::{Placed, View, circumstances, commands, frame_label, test_title, trust_of};
use super::{badge, energy, latency};
use crate::number;
use crate::plot::{Axis, Bar, BarGroup, Bars};
use crate::statistics::Statistics;

/// Whether it is a rate of frames that bars can show.
pub fn is_rate(row: &SummaryRow) -> bool {
    (row.unit.starts_with("fps") || row.unit.starts_with("pps")) && !row.values.is_empty()
}

/// Bars of all rates: one plot for each test, wire, scenario and direction. Different wires never share an axis.
pub fn section(view: &View<'_>) -> String {
    let groups = view.grouped(is_rate, |r| {
        [&r.test, &r.metric, &r.unit, &r.transport, &r.scenario, &r.ip, &r.direction]
            .map(Clone::clone)
            .to_vec()
    });
    let content: String = groups.iter().filter_map(|g| figure(view, g)).map(|f| f.html()).collect();
    wrap(
        "throughput",
        "Throughput",
        "Bars are medians of the runs, whiskers reach from the smallest to the largest. Hollow bars are not the \
         device\u{2019}s own limit. Wires differ so much that each has its own plot.",
        &content,
    )
}

fn figure(view: &View<'_>, group: &[Placed<'_>]) -> Option<Figure> {
    let first = group.first()?;
    let statistics: Vec<(&Placed<'_>, Statistics)> =
        group.iter().map(|p| (p, Statistics::of(&p.row.values))).collect();
    let mut values: Vec<f64> =
        statistics.iter().flat_map(|(_, s)| [s.min, s.median, s.max]).flatten().collect();
    // The tester's own limit is shown where it is not far beyond the bars.
    let most = values.iter().copied().fold(0.0, f64::max);
    values.extend(
        group.iter().filter_map(|p| p.self_test()).map(|t| t.most).filter(|limit| *limit < 1.5 * most),
    );
    let axis = Axis::fitting(&axis_label(first.row), &values)?;
    let log = axis.scale == crate::plot::Scale::Log;
    let title = format!("{}: {}", metric_title(first.row), circumstances(first.row));
    let bars = Bars {
        title: title.clone(),
        description: describe(view, &statistics),
        axis,
        groups: bar_groups(view, &statistics),
    };
    let mut notes = Vec::new();
    let link = first.link();
    if link.is_virtual {
        notes.push(format!(
            "The link is virtual; {} stands in for its rate, to give \u{201c}line rate\u{201d} a meaning.",
            number::si(link.bits_per_second as f64) + "bit/s"
        ));
    }
    if log {
        notes.push("The axis is logarithmic: equal steps are equal factors.".into());
    }
    let rests: usize = statistics.iter().map(|(_, s)| s.not_finite).sum();
    if rests > 0 {
        notes.push(format!("{rests} runs gave no number and are left out."));
    }
    Some(Figure {
        title,
        lead: "Highest rate, in frames a second and direction, at which what the test counts as success holds. \
               The dashed line is what the link would carry, the dotted one what the tester reaches without a device."
            .into(),
        trust: trust_of(group),
        legend: String::new(),
        plot: bars.svg(),
        notes,
        table: table(view, group),
        command: commands(group),
    })
}

fn metric_title(row: &SummaryRow) -> String {
    match (row.test.as_str(), row.metric.as_str()) {
        ("throughput", "throughput") => "Throughput (RFC 2544)".into(),
        ("forwarding-rate", "forwarding rate") | ("address-learning-rate", _) => test_title(&row.test).into(),
        (test, metric) if test.eq_ignore_ascii_case(metric) => metric.to_owned(),
        (test, metric) => format!("{}, {metric}", test_title(test)),
    }
}

fn axis_label(row: &SummaryRow) -> String {
    match row.unit.as_str() {
        "fps/dir" => "frames a second, each direction".into(),
        "fps" => "frames a second".into(),
        unit => unit.into(),
    }
}

fn bar_groups(view: &View<'_>, all: &[(&Placed<'_>, Statistics)]) -> Vec<BarGroup> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for (placed, _) in all {
        let key = (placed.row.frame.as_str(), placed.row.variant.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.sort_by_key(|(frame, variant)| (frame.parse().unwrap_or(u32::MAX), *frame, *variant));
    let group = |(frame, variant): (&str, &str)| {
        let here: Vec<_> =
            all.iter().filter(|(p, _)| p.row.frame == frame && p.row.variant == variant).collect();
        let mut lines = Vec::new();
        if let Some((placed, _)) = here.first() {
            if let Ok(size) = frame.parse() {
                let most = placed.link().most_frames(size) as f64;
                lines.push((most, format!("line rate {}", number::si(most)), "line-rate"));
            }
            if let Some(test) = placed.self_test() {
                lines.push((test.most, format!("tester alone {}", number::si(test.most)), "tester"));
            }
        }
        let label = [frame_label(frame), variant.to_owned()].join(" ").trim().to_owned();
        BarGroup { label, bars: here.iter().map(|(p, s)| bar(view, p, s)).collect(), lines }
    };
    keys.into_iter().map(group).collect()
}

fn bar(view: &View<'_>, placed: &Placed<'_>, s: &Statistics) -> Bar {
    let bound = if badge::is_at_least(&placed.row.trust) { "\u{2265} " } else { "" };
    let text = match s.median {
        Some(median) => {
            format!("{bound}{} (n\u{202f}=\u{202f}{})", number::in_unit(median, &placed.row.unit), s.n)
        }
        None => "no figure".into(),
    };
    Bar {
        label: view.who(placed),
        colour: view.colour(&placed.row.dut).unwrap_or(0),
        value: s.median.unwrap_or(0.0),
        whisker: s.min.zip(s.max),
        text,
        hollow: badge::is_hollow(&placed.row.trust),
    }
}

fn describe(view: &View<'_>, all: &[(&Placed<'_>, Statistics)]) -> String {
    let parts: Vec<String> = all
        .iter()
        .map(|(p, s)| {
            format!(
                "{} {} {}: {}",
                frame_label(&p.row.frame),
                p.row.variant,
                view.who(p),
                number::si_or_none(s.median)
            )
        })
        .collect();
    format!("Medians in {}. {}.", all.first().map_or("", |(p, _)| p.row.unit.as_str()), parts.join("; "))
}

/// A table of results with all facts of their runs.
pub fn table(view: &View<'_>, group: &[Placed<'_>]) -> Table {
    let mut table = Table::new(&[
        "device",
        "version",
        "wire",
        "workers",
        "frame",
        "variant",
        "metric",
        "unit",
        "n",
        "median",
        "min",
        "max",
        "mean",
        "sd",
        "dispersion %",
        "95 % from",
        "to",
        "% of line",
        "% of tester",
        "trust",
        "note",
    ]);
    for placed in group {
        let row = placed.row;
        let s = Statistics::of(&row.values);
        let share = |of: f64| s.median.filter(|_| is_rate(row) && of > 0.0).map(|m| 100.0 * m / of);
        let line = row.frame.parse().ok().and_then(|f| share(placed.link().most_frames(f) as f64));
        let number = |value| Cell::number(value, &row.unit);
        table.rows.push(vec![
            Cell::text(view.who(placed)),
            Cell::text(&row.version),
            Cell::text(&row.transport),
            Cell::count(usize::from(row.workers)),
            Cell::text(frame_label(&row.frame)),
            Cell::text(&row.variant),
            Cell::text(&row.metric),
            Cell::text(&row.unit),
            Cell::count(s.n),
            number(s.median),
            number(s.min),
            number(s.max),
            number(s.mean),
            number(s.sd),
            Cell::number(s.dispersion, "%"),
            number(s.ci.map(|c| c.0)),
            number(s.ci.map(|c| c.1)),
            Cell::number(line, "%"),
            Cell::number(placed.self_test().and_then(|t| share(t.most)), "%"),
            badge::cell(&row.trust),
            Cell::text(&row.note),
        ]);
    }
    table
}

/// Results that no plot shows, a table for each test.
pub fn rest(view: &View<'_>) -> String {
    let shown = |r: &SummaryRow| {
        is_rate(r) || latency::is_time(r) || energy::is_energy(r) || energy::is_cpu(r) || r.values.is_empty()
    };
    let groups = view.grouped(|r| !shown(r), |r| vec![r.test.clone()]);
    let content: String = groups
        .iter()
        .map(|group| Figure {
            title: group.first().map_or_else(String::new, |p| test_title(&p.row.test).to_owned()),
            trust: trust_of(group),
            table: table(view, group),
            command: commands(group),
            ..Figure::default()
        })
        .map(|f| f.html())
        .collect();
    wrap("more", "More results", "", &content)
}
