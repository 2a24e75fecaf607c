//! The page of a comparison.

use super::figure::Figure;
use super::shell;
use super::table::{Cell, Table};
use super::{escape, figure};
use crate::compare::Comparison;
use crate::number;

/// A page of its own.
pub fn compare_page(comparison: &Comparison) -> String {
    let mut table = Table::new(&[
        "result",
        "judgement",
        "unit",
        "first",
        "second",
        "change %",
        "difference",
        "95 % from",
        "to",
        "p",
        "n first",
        "n second",
    ]);
    for d in &comparison.differences {
        let number = |value| Cell::number(value, &d.unit);
        table.rows.push(vec![
            Cell::text(&d.what),
            Cell::text(d.judgement()),
            Cell::text(&d.unit),
            number(d.a),
            number(d.b),
            Cell::Number(d.percent, d.percent.map_or_else(|| number::NONE.into(), |p| format!("{p:+.2}"))),
            number(d.difference),
            number(d.interval.map(|i| i.0)),
            number(d.interval.map(|i| i.1)),
            Cell::Number(d.p, d.p.map_or_else(|| number::NONE.into(), |p| format!("{p:.4}"))),
            Cell::count(d.n.0),
            Cell::count(d.n.1),
        ]);
    }
    let differing = comparison.differences.iter().filter(|d| d.judgement() == "differs").count();
    let host = if comparison.same_host {
        "Both were measured on machines with the same fingerprint; other days still differ."
    } else {
        "The machines differ: only shapes compare, not these figures."
    };
    let mut notes: Vec<String> =
        comparison.unmatched.iter().map(|(what, whose)| format!("Only in {whose}: {what}.")).collect();
    notes.insert(
        0,
        "The interval is a bootstrap of the difference of medians, p is of the Mann-Whitney test; below five runs neither \
         says much. Many rows compared at once differ by chance in one of twenty."
            .into(),
    );
    let body = format!(
        "<header><p class=\"kicker\">Shoal lab comparison</p><h1>{} \u{2192} {}</h1>\
         <button id=\"theme\" type=\"button\" hidden>Dark or light</button></header>\
         <section id=\"summary\"><h2>In short</h2><p>{differing} of {} results differ. {host}</p></section>{}",
        escape(&comparison.a),
        escape(&comparison.b),
        comparison.differences.len(),
        figure::section(
            "more",
            "Result by result",
            "",
            &Figure {
                title: "Medians".into(),
                lead: "Second less first.".into(),
                notes,
                table,
                ..Figure::default()
            }
            .html()
        )
    );
    shell::document(&format!("{} -> {}", comparison.a, comparison.b), &body)
}
