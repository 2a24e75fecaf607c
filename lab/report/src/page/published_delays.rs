//! The thesis's delays, jitters and losses beside ours.

use shoal_lab_plan::{Layer, Link, SummaryRow};

use super::figure::Figure;
use super::table::{Cell, Table};
use super::view::{View, frame_label};
use crate::number;
use crate::published::{Figure as Published, family_of, scenario_of};
use crate::statistics::median_of;

/// What we call a figure, and what the source calls it. Its average is TRex's running one, as is our row of that name.
const METRICS: [(&str, &str); 3] =
    [("trex average", "latency_avg"), ("jitter", "jitter"), ("loss", "packet_loss")];

/// Each result of the thesis's kind, beside the published one of the nearest rate.
pub fn figure(view: &View<'_>) -> Option<Figure> {
    let mut table = Table::new(&[
        "device",
        "what",
        "here",
        "unit",
        "our rate, Gbit/s",
        "published",
        "its rate, Gbit/s",
        "of",
        "machine",
        "source",
        "errata",
    ]);
    for placed in view.rows().filter(|p| p.row.test == "thesis") {
        let Some(found) = nearest(view, placed.row) else { continue };
        let errata: Vec<String> = view.published.errata_of(found).iter().map(|e| e.place.clone()).collect();
        let row = placed.row;
        table.rows.push(vec![
            Cell::text(view.who(&placed)),
            Cell::text(format!(
                "{}: IPv{}, {}, {}",
                row.metric,
                row.ip,
                frame_label(&row.frame),
                row.direction
            )),
            Cell::number(median_of(&row.values), &row.unit),
            Cell::text(&row.unit),
            Cell::Number(
                gigabits(row),
                gigabits(row).map_or_else(|| number::NONE.into(), |g| format!("{g:.2}")),
            ),
            Cell::Number(found.number(), found.value.clone()),
            Cell::Number(
                published_gigabits(found),
                published_gigabits(found).map_or_else(String::new, |g| g.to_string()),
            ),
            Cell::text(&found.dut),
            Cell::text(format!("{}, {} GHz", found.config, found.clock_ghz)),
            Cell::text(format!("{}, {}", found.seed, found.table)),
            Cell::text(errata.join("; ")),
        ]);
    }
    (!table.rows.is_empty()).then(|| Figure {
        title: "Delay, jitter and loss, context only".into(),
        lead: "The published figure of the same kind of device, frame size and direction, at the rate that is nearest to ours. \
               Cards, wires and rates differ: neither their difference nor their ratio says anything about the devices."
            .into(),
        table,
        ..Figure::default()
    })
}

fn nearest<'a>(view: &View<'a>, row: &SummaryRow) -> Option<&'a Published> {
    let (_, metric) = METRICS.iter().find(|(ours, _)| *ours == row.metric)?;
    let family = family_of(&row.dut, &row.scenario)?;
    let wanted = gigabits(row);
    let way = if row.direction == "bi" { "bi" } else { "uni" };
    let alike = view.published.figures.iter().filter(|f| {
        let (scenario, ip) = scenario_of(&f.scenario);
        f.seed == "003"
            && f.metric == *metric
            && family_of(&f.dut, scenario) == Some(family)
            && (scenario, ip) == (row.scenario.as_str(), row.ip.as_str())
            && (f.frame_bytes.as_str(), f.direction.as_str()) == (row.frame.as_str(), way)
            && f.cores == row.workers.to_string()
    });
    let far = |f: &Published| wanted.zip(published_gigabits(f)).map_or(f64::MAX, |(a, b)| (a - b).abs());
    alike.min_by(|a, b| far(a).total_cmp(&far(b)))
}

/// `one-way forwarding 25 Gbit/s`: 25.
fn published_gigabits(figure: &Published) -> Option<f64> {
    let mut words = figure.scenario.split(' ').rev().skip_while(|word| *word != "Gbit/s").skip(1);
    words.next()?.parse().ok()
}

/// The heavy stream's rate with preamble and gap, of the row's own words.
fn gigabits(row: &SummaryRow) -> Option<f64> {
    let fps: f64 = row.note.split("heavy stream of ").nth(1)?.split(' ').next()?.parse().ok()?;
    Some(Link::bits(Layer::L1, fps, row.frame.parse().ok()?) / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Published as All;

    fn row(metric: &str) -> SummaryRow {
        SummaryRow {
            test: "thesis".into(),
            dut: "shoal".into(),
            scenario: "route".into(),
            ip: "4".into(),
            frame: "1518".into(),
            direction: "fwd".into(),
            workers: 1,
            metric: metric.into(),
            unit: "us".into(),
            values: vec![12.0],
            note: "heavy stream of 700000 fps/dir; mean 12.000000".into(),
            ..SummaryRow::default()
        }
    }

    #[test]
    fn the_published_figure_of_the_nearest_rate_is_taken() {
        let published = All::built_in().unwrap();
        let view = View::of(&[], &published);
        assert!((gigabits(&row("jitter")).unwrap() - 0.7 * 1538.0 * 8.0 / 1e3).abs() < 1e-9);
        for (metric, _) in METRICS {
            let found = nearest(&view, &row(metric)).unwrap();
            assert_eq!(published_gigabits(found), Some(10.0), "{}", found.scenario);
        }
        assert!(nearest(&view, &row("max latency")).is_none());
        let other = SummaryRow { dut: "testpmd-mac".into(), ..row("jitter") };
        assert!(nearest(&view, &other).is_none());
    }
}
