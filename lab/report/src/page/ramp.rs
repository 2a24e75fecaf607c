//! Load tests over time: what was sent, what arrived, what was lost.

use super::figure::{Figure, section as wrap};
use super::table::{Cell, Table};
use super::view::{View, commands_of};
use crate::number;
use crate::plot::{Axis, Lines, Scale, Series};
use crate::results::{Results, SampleLine};

/// Rates of a piece of time, of both directions together.
struct Piece {
    at: f64,
    sent: f64,
    received: f64,
    watts: Option<f64>,
}

impl Piece {
    fn lost_percent(&self) -> f64 {
        if self.sent > 0.0 { (100.0 * (self.sent - self.received) / self.sent).max(0.0) } else { 0.0 }
    }
}

/// A device's trial.
struct Track<'a> {
    dut: &'a str,
    pieces: Vec<Piece>,
}

/// What shares a plot.
#[derive(Clone, Copy, PartialEq)]
struct Case<'a> {
    test: &'a str,
    transport: &'a str,
    circumstances: &'a str,
}

impl Case<'_> {
    fn has(&self, s: &SampleLine) -> bool {
        s.test == self.test && s.case == self.circumstances && s.transport == self.transport
    }

    fn title(&self, what: &str) -> String {
        let wire =
            if self.transport.is_empty() { String::new() } else { format!(", over {}", self.transport) };
        format!("{}{what}: {}{wire}", self.test, self.circumstances)
    }
}

/// For each sampled case the rates over time and the loss over time.
pub fn section(view: &View<'_>) -> String {
    let mut content = String::new();
    for results in view.results {
        let mut cases: Vec<Case<'_>> = Vec::new();
        for sample in &results.samples {
            let case = Case { test: &sample.test, transport: &sample.transport, circumstances: &sample.case };
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
        for case in cases {
            let tracks = tracks(results, case);
            for figure in [rates(view, results, case, &tracks), losses(view, case, &tracks)] {
                content.push_str(&figure.map(|f| f.html()).unwrap_or_default());
            }
        }
    }
    wrap(
        "ramp",
        "Over time",
        "Load tests that raise the rate until the device loses frames. Both directions together; of several runs the first.",
        &content,
    )
}

fn tracks<'a>(results: &'a Results, case: Case<'_>) -> Vec<Track<'a>> {
    let here: Vec<&SampleLine> = results.samples.iter().filter(|s| case.has(s)).collect();
    let mut tracks: Vec<Track<'a>> = Vec::new();
    for sample in &here {
        if tracks.iter().any(|t| t.dut == sample.dut) {
            continue;
        }
        let run: Vec<_> = here.iter().filter(|s| s.dut == sample.dut && s.run == sample.run).collect();
        let mut before = 0.0;
        let mut pieces = Vec::new();
        for s in run {
            let time = s.at - before;
            before = s.at;
            if time > 0.0 {
                let rate = |a: u64, b: u64| (a as f64 + b as f64) / time;
                pieces.push(Piece {
                    at: s.at,
                    sent: rate(s.sent_left, s.sent_right),
                    received: rate(s.received_left, s.received_right),
                    watts: s.watts,
                });
            }
        }
        tracks.push(Track { dut: &sample.dut, pieces });
    }
    tracks
}

fn rates(view: &View<'_>, results: &Results, case: Case<'_>, tracks: &[Track<'_>]) -> Option<Figure> {
    let all = || tracks.iter().flat_map(|t| &t.pieces);
    let mut series = Vec::new();
    for track in tracks {
        let colour = view.colour(track.dut);
        let line = |name: &str, dashed, value: fn(&Piece) -> f64| Series {
            name: format!("{} {name}", track.dut),
            colour,
            dashed,
            marked: false,
            points: track.pieces.iter().map(|p| (p.at, value(p))).collect(),
        };
        series.push(line("sent", true, |p| p.sent));
        series.push(line("received", false, |p| p.received));
    }
    let title = case.title("");
    let peaks: Vec<String> = tracks
        .iter()
        .map(|t| {
            let peak = t.pieces.iter().map(|p| p.received).fold(0.0, f64::max);
            format!("{} received at most {} frames a second", t.dut, number::si(peak))
        })
        .collect();
    let lines = Lines {
        title: title.clone(),
        description: format!("Frames a second over time. {}.", peaks.join("; ")),
        x: Axis::over("seconds", Scale::Linear, all().map(|p| p.at))?,
        y: Axis::over("frames a second", Scale::Linear, all().flat_map(|p| [p.sent, p.received]))?,
        series,
    };
    let mut table = Table::new(&["device", "second", "sent/s", "received/s", "lost %", "W"]);
    for track in tracks {
        for p in &track.pieces {
            table.rows.push(vec![
                Cell::text(track.dut),
                Cell::number(Some(p.at), "s"),
                Cell::number(Some(p.sent), "fps"),
                Cell::number(Some(p.received), "fps"),
                Cell::number(Some(p.lost_percent()), "%"),
                Cell::number(p.watts, "W"),
            ]);
        }
    }
    Some(Figure {
        title,
        lead: "Broken lines are sent, whole lines are received. Where they part, frames are lost.".into(),
        legend: lines.legend(),
        plot: lines.svg(),
        table,
        command: commands_of(results, case.test, case.transport),
        ..Figure::default()
    })
}

fn losses(view: &View<'_>, case: Case<'_>, tracks: &[Track<'_>]) -> Option<Figure> {
    let all = || tracks.iter().flat_map(|t| &t.pieces);
    if all().all(|p| p.lost_percent() <= 0.0) {
        return None;
    }
    let title = case.title(", loss");
    let series = tracks
        .iter()
        .map(|t| Series {
            name: t.dut.into(),
            colour: view.colour(t.dut),
            points: t.pieces.iter().map(|p| (p.sent, p.lost_percent())).collect(),
            ..Series::default()
        })
        .collect();
    let firsts: Vec<String> = tracks
        .iter()
        .map(|t| match t.pieces.iter().find(|p| p.lost_percent() > 0.1) {
            Some(p) => format!("{} loses more than 0.1 % from {} sent on", t.dut, number::si(p.sent)),
            None => format!("{} never loses more than 0.1 %", t.dut),
        })
        .collect();
    let lines = Lines {
        title: title.clone(),
        description: format!("Loss in percent against frames sent a second. {}.", firsts.join("; ")),
        x: Axis::over("frames sent a second", Scale::Linear, all().map(|p| p.sent))?,
        y: Axis::over("lost, %", Scale::Linear, all().map(Piece::lost_percent))?,
        series,
    };
    let mut table = Table::new(&["device", "sent/s", "lost %"]);
    for track in tracks {
        for p in &track.pieces {
            let cells = [Cell::number(Some(p.sent), "fps"), Cell::number(Some(p.lost_percent()), "%")];
            table.rows.push(std::iter::once(Cell::text(track.dut)).chain(cells).collect());
        }
    }
    Some(Figure {
        title,
        lead: "The share of frames lost at each rate that the ramp passes.".into(),
        legend: lines.legend(),
        plot: lines.svg(),
        notes: firsts.into_iter().map(|f| f + ".").collect(),
        table,
        ..Figure::default()
    })
}
