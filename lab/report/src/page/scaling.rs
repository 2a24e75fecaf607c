//! More workers: S(n) and rel_half (lab.md 1.12's definitions, from the paper).

use shoal_lab_plan::Trust;

use super::figure::{Figure, section as wrap};
use super::table::{Cell, Table};
use super::view::{Placed, View, circumstances, commands, frame_label, trust_of};
use crate::number;
use crate::plot::{Axis, Lines, Scale, Series};
use crate::statistics::median_of;

/// A device's throughput by number of workers.
struct Growth<'a> {
    who: Placed<'a>,
    by_workers: Vec<(u16, f64)>,
}

impl Growth<'_> {
    fn at(&self, workers: u16) -> Option<f64> {
        self.by_workers.iter().find(|(w, _)| *w == workers).map(|(_, p)| *p)
    }

    /// `P(n) / P(1) / n`.
    fn scale_up(&self, workers: u16) -> Option<f64> {
        let one = self.at(1).filter(|p| *p > 0.0)?;
        Some(self.at(workers)? / one / f64::from(workers))
    }

    /// `P(n) / P(n/2)`.
    fn rel_half(&self, workers: u16) -> Option<f64> {
        let half = self.at(workers / 2).filter(|p| workers.is_multiple_of(2) && *p > 0.0)?;
        Some(self.at(workers)? / half)
    }
}

/// For each scenario that was measured with several numbers of workers.
pub fn section(view: &View<'_>) -> String {
    let groups = view.grouped(
        |r| r.metric == "throughput" && r.workers > 0,
        |r| {
            [&r.test, &r.transport, &r.scenario, &r.ip, &r.frame, &r.direction, &r.variant]
                .map(Clone::clone)
                .to_vec()
        },
    );
    let content: String = groups.iter().filter_map(|g| figure(view, g)).map(|f| f.html()).collect();
    wrap(
        "scaling",
        "More workers",
        "S(n) is throughput with n workers divided by n times that with one: 1 is perfect.",
        &content,
    )
}

fn figure(view: &View<'_>, group: &[Placed<'_>]) -> Option<Figure> {
    let growths = growths(group);
    let growing: Vec<&Growth<'_>> =
        growths.iter().filter(|g| g.by_workers.len() > 1 && g.at(1).is_some_and(|p| p > 0.0)).collect();
    let first = growing.first()?.who.row;
    let most = growing.iter().flat_map(|g| &g.by_workers).map(|(w, _)| *w).max().unwrap_or(1);
    let mut series = vec![Series {
        name: "perfect".into(),
        dashed: true,
        points: vec![(1.0, 1.0), (f64::from(most), 1.0)],
        ..Series::default()
    }];
    let mut table = Table::new(&["device", "workers", "throughput", "S(n)", "P(n)/P(n/2)", "a core"]);
    let mut described = Vec::new();
    for growth in &growing {
        let points: Vec<(f64, f64)> = growth
            .by_workers
            .iter()
            .filter_map(|(w, _)| Some((f64::from(*w), growth.scale_up(*w)?)))
            .collect();
        let name = growth.who.row.dut.clone();
        for (workers, throughput) in &growth.by_workers {
            table.rows.push(vec![
                Cell::text(&name),
                Cell::count(usize::from(*workers)),
                Cell::number(Some(*throughput), "fps"),
                Cell::number(growth.scale_up(*workers), "ratio"),
                Cell::number(growth.rel_half(*workers), "ratio"),
                Cell::number(Some(throughput / f64::from((*workers).max(1))), "fps"),
            ]);
        }
        if let Some((workers, s)) = points.last() {
            described.push(format!("{name}: {} with {workers} workers", number::digits(*s)));
        }
        series.push(Series {
            name,
            colour: view.colour(&growth.who.row.dut),
            marked: true,
            points,
            ..Series::default()
        });
    }
    let title = format!("S(n): {}, {}", frame_label(&first.frame), circumstances(first));
    let mut x = Axis::over("workers", Scale::Linear, [0.0, f64::from(most)].into_iter())?;
    x.to = f64::from(most) + 0.3;
    x.whole = true;
    let values = series.iter().flat_map(|s| s.points.iter().map(|p| p.1));
    let y = Axis::over("S(n)", Scale::Linear, values.collect::<Vec<_>>().into_iter())?;
    let lines = Lines { title: title.clone(), description: described.join("; "), x, y, series };
    let mut notes = Vec::new();
    if group.iter().any(|p| p.row.trust.contains(&Trust::SharedCore)) {
        notes.push(
            "Points where the tester had to share a core with the device are not a measurement.".to_owned(),
        );
    }
    Some(Figure {
        title,
        lead: "The share of perfect growth that remains. Above 1 is possible where one worker also serves the rest.".into(),
        trust: trust_of(group),
        legend: lines.legend(),
        plot: lines.svg(),
        notes,
        table,
        command: commands(group),
    })
}

fn growths<'a>(group: &[Placed<'a>]) -> Vec<Growth<'a>> {
    let mut growths: Vec<Growth<'a>> = Vec::new();
    for placed in group {
        let Some(median) = median_of(&placed.row.values) else { continue };
        let same = |g: &&mut Growth<'a>| g.who.row.dut == placed.row.dut && std::ptr::eq(g.who.of, placed.of);
        if let Some(growth) = growths.iter_mut().find(same) {
            growth.by_workers.push((placed.row.workers, median));
        } else {
            growths.push(Growth { who: *placed, by_workers: vec![(placed.row.workers, median)] });
        }
    }
    for growth in &mut growths {
        growth.by_workers.sort_by_key(|(workers, _)| *workers);
    }
    growths
}
