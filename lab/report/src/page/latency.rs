//! Delays: percentiles as lines, TL, WCL and PDV as tables.

use shoal_lab_plan::SummaryRow;

use super::figure::{Figure, section as wrap};
use super::table::{Cell, Table};
use super::throughput;
use super::view::{LOOPBACK, View, commands, commands_of, test_title, trust_of};
use crate::number;
use crate::plot::{Axis, Lines, Scale, Series};
use crate::results::{Histogram, HistogramOf, Results};

/// Whether it is a time, and no rate.
pub fn is_time(row: &SummaryRow) -> bool {
    matches!(row.unit.as_str(), "us" | "ms" | "ns" | "s") && !row.values.is_empty()
}

/// Percentile plots and tables.
pub fn section(view: &View<'_>) -> String {
    let mut content = String::new();
    for results in view.results {
        let mut cases: Vec<&HistogramOf> = Vec::new();
        for h in results.histograms.iter().filter(|h| h.of.dut != LOOPBACK) {
            if !cases.iter().any(|c| shares_plot(c, &h.of)) {
                cases.push(&h.of);
            }
        }
        for of in cases {
            content.push_str(&percentiles(view, results, of).map(|f| f.html()).unwrap_or_default());
        }
    }
    for group in view.grouped(is_time, |r| vec![r.test.clone()]) {
        let Some(first) = group.first() else { continue };
        let mut notes = vec![
            "Stamps are taken at the tester\u{2019}s interface to the wire: neither store-and-forward nor bit-forwarding \
             latency exactly. The floor stands beside, it is never subtracted."
                .to_owned(),
        ];
        notes.extend(floors(first.of));
        let figure = Figure {
            title: test_title(&first.row.test).to_owned(),
            lead: "TL is the median of the tagged frames\u{2019} delays, WCL their 99.9th percentile, PDV the 99.9th \
                   percentile above the smallest (RFC 8219); each cell is the median over the runs."
                .into(),
            trust: trust_of(&group),
            notes,
            table: throughput::table(view, &group),
            command: commands(&group),
            ..Figure::default()
        };
        content.push_str(&figure.html());
    }
    wrap("latency", "Delay", "", &content)
}

fn floors(results: &Results) -> Vec<String> {
    let tests = results.record.self_tests.iter();
    tests
        .filter_map(|t| {
            let floor = t.floor_us?;
            Some(format!(
                "Loopback floor over {} with {}: {} \u{b5}s, 99.9th percentile {} \u{b5}s.",
                t.transport,
                super::view::frame_label(&t.frame),
                number::digits(floor),
                number::digits_or_none(t.floor_p999_us)
            ))
        })
        .collect()
}

fn shares_plot(a: &HistogramOf, b: &HistogramOf) -> bool {
    (&a.test, &a.transport, &a.case) == (&b.test, &b.transport, &b.case)
}

fn percentiles(view: &View<'_>, results: &Results, of: &HistogramOf) -> Option<Figure> {
    let is_here = |h: &&Histogram| shares_plot(&h.of, of) && h.of.dut != LOOPBACK;
    let mut chosen: Vec<&Histogram> = Vec::new();
    for h in results.histograms.iter().filter(is_here) {
        // Of several runs the first; all are in the folder.
        if !chosen.iter().any(|c| c.of.dut == h.of.dut) {
            chosen.push(h);
        }
    }
    let floors = results.histograms.iter().filter(|h| h.of.dut == LOOPBACK);
    let floors: Vec<&Histogram> = floors
        .filter(|h| h.of.transport == of.transport && (h.of.case.is_empty() || h.of.case == of.case))
        .collect();
    let line = |h: &&Histogram, name: String, dashed| Series {
        name,
        colour: view.colour(&h.of.dut),
        dashed,
        marked: false,
        points: drawn(h),
    };
    let mut series: Vec<Series> = chosen.iter().map(|h| line(h, h.of.dut.clone(), false)).collect();
    series.extend(floors.iter().map(|h| line(h, "loopback, no device".into(), true)));
    let all: Vec<f64> = chosen.iter().chain(&floors).flat_map(|h| drawn(h)).map(|p| p.1).collect();
    let wire = if of.transport.is_empty() { String::new() } else { format!(", over {}", of.transport) };
    let title = format!("Percentiles of delay, {}: {}{wire}", of.test, of.case);
    let lines = Lines {
        title: title.clone(),
        description: describe(&chosen),
        x: Axis::over("share of frames that were faster", Scale::Nines, std::iter::once(0.0))?,
        y: Axis::over("delay, \u{b5}s", Scale::Log, all.into_iter())?,
        series,
    };
    let mut table = Table::new(&["device", "run", "percentile", "delay \u{b5}s", "frames so far"]);
    for h in chosen.iter().chain(&floors) {
        for p in &h.points {
            table.rows.push(vec![
                Cell::text(&h.of.dut),
                Cell::count(h.of.run as usize),
                Cell::Number(Some(p.share * 100.0), format!("{:.5}", p.share * 100.0)),
                Cell::Number(Some(p.us), format!("{:.3}", p.us)),
                Cell::count(p.count as usize),
            ]);
        }
    }
    Some(Figure {
        title,
        lead: "How slow the slowest frames are: each step to the right is ten times rarer. The broken grey line is \
               the tester with no device between its ports."
            .into(),
        legend: lines.legend(),
        plot: lines.svg(),
        notes: vec![describe(&chosen) + "."],
        table,
        command: commands_of(results, &of.test, &of.transport),
        ..Figure::default()
    })
}

/// Points up to the last nine that the axis has; the largest value has no place on it and is given in words.
fn drawn(h: &Histogram) -> Vec<(f64, f64)> {
    let all = || h.points.iter().map(|p| (p.share.min(0.99999), p.us));
    let within: Vec<_> =
        h.points.iter().zip(all()).filter(|(p, _)| p.share <= 0.99999).map(|(_, at)| at).collect();
    if within.is_empty() { all().collect() } else { within }
}

fn describe(chosen: &[&Histogram]) -> String {
    let at = |h: &Histogram, share: f64| h.points.iter().find(|p| p.share >= share).map(|p| p.us);
    let parts: Vec<String> = chosen
        .iter()
        .map(|h| {
            format!(
                "{}: median {}, 99.9th percentile {}, largest {} microseconds",
                h.of.dut,
                number::digits_or_none(at(h, 0.5)),
                number::digits_or_none(at(h, 0.999)),
                number::digits_or_none(h.points.last().map(|p| p.us))
            )
        })
        .collect();
    parts.join("; ")
}
