//! Horizontal bars with whiskers, in groups.

use std::fmt::Write as _;

use super::Axis;
use crate::page::escape;

/// A plot of bars.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// For those who do not see it: what it is.
    pub title: String,
    /// For those who do not see it: what it shows.
    pub description: String,
    /// The values' axis.
    pub axis: Axis,
    /// From top to bottom.
    pub groups: Vec<BarGroup>,
}

/// Bars under one heading.
#[derive(Clone, Debug, Default)]
pub struct BarGroup {
    /// The heading: `64 B`.
    pub label: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
    /// Lines across the group: value, what it is, and class (`line-rate`, `tester`). Those beyond the axis are only told.
    pub lines: Vec<(f64, String, &'static str)>,
}

/// A bar.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// At its left.
    pub label: String,
    /// Class of colour.
    pub colour: usize,
    /// Its length.
    pub value: f64,
    /// The whisker's ends: smallest and largest run.
    pub whisker: Option<(f64, f64)>,
    /// At its right: the figure and its remarks.
    pub text: String,
    /// Drawn hollow: the figure is not the device's (tester-bound, not a measurement).
    pub hollow: bool,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 176.0;
const RIGHT: f64 = 132.0;
const BAR: f64 = 17.0;
const STEP: f64 = 25.0;
const HEAD: f64 = 27.0;
const FOOT: f64 = 44.0;

impl Bars {
    /// The plot as SVG.
    pub fn svg(&self) -> String {
        let mut out = String::new();
        let body: f64 = self.groups.iter().map(|g| HEAD + g.bars.len() as f64 * STEP + 8.0).sum();
        let height = body + FOOT + 4.0;
        let _ = write!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\"><title>{}</title><desc>{}</desc>",
            escape(&self.title),
            escape(&self.description)
        );
        for (value, label) in self.axis.ticks() {
            let x = self.x(value);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"4\" y2=\"{body:.1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                body + 16.0,
                escape(&label)
            );
        }
        let mut y = 4.0;
        for group in &self.groups {
            self.group(&mut out, group, y);
            y += HEAD + group.bars.len() as f64 * STEP + 8.0;
        }
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></svg>",
            LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
            body + 36.0,
            escape(&self.axis.label)
        );
        out
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.axis.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn group(&self, out: &mut String, group: &BarGroup, top: f64) {
        let bottom = top + HEAD + group.bars.len() as f64 * STEP;
        let remarks: Vec<&str> = group.lines.iter().map(|(_, what, _)| what.as_str()).collect();
        let remarks = remarks.join("  \u{b7}  ");
        let _ = write!(
            out,
            "<text class=\"group\" x=\"0\" y=\"{0:.1}\">{1}</text>\
             <text class=\"tick\" x=\"{WIDTH}\" y=\"{0:.1}\" text-anchor=\"end\">{2}</text>",
            top + 18.0,
            escape(&group.label),
            escape(&remarks)
        );
        for (value, what, class) in &group.lines {
            if !value.is_finite() || *value > self.axis.to || *value < self.axis.from {
                continue;
            }
            let x = self.x(*value);
            let _ = write!(
                out,
                "<line class=\"limit {class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\">\
                 <title>{}</title></line>",
                top + HEAD - 4.0,
                escape(what)
            );
        }
        for (at, bar) in group.bars.iter().enumerate() {
            self.bar(out, bar, top + HEAD + at as f64 * STEP);
        }
    }

    fn bar(&self, out: &mut String, bar: &Bar, top: f64) {
        let (from, to) = (self.x(self.axis.from), self.x(bar.value));
        let middle = top + BAR / 2.0;
        let label = shortened(&bar.label, 26);
        let hollow = if bar.hollow { " hollow" } else { "" };
        let _ = write!(
            out,
            "<g><title>{}: {}</title><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect class=\"bar c{}{hollow}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>",
            escape(&bar.label),
            escape(&bar.text),
            LEFT - 10.0,
            middle + 4.0,
            escape(&label),
            bar.colour % super::COLOURS,
            (to - from).max(1.0)
        );
        let mut end = to;
        if let Some((low, high)) = bar.whisker.filter(|(low, high)| high > low) {
            let (low, high) = (self.x(low), self.x(high));
            end = end.max(high);
            let _ = write!(
                out,
                "<path class=\"whisker\" d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {0:.1}V{1:.1}M{high:.1} {0:.1}V{1:.1}\"/>",
                middle - 5.0,
                middle + 5.0
            );
        }
        let _ = write!(
            out,
            "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            end + 8.0,
            middle + 4.0,
            escape(&bar.text)
        );
    }
}

/// At most `most` characters; the middle goes, since names differ at their ends.
pub fn shortened(text: &str, most: usize) -> String {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= most {
        return text.into();
    }
    let half = most.saturating_sub(1) / 2;
    let head: String = all.iter().take(half).collect();
    let tail: String = all.iter().skip(all.len() - half).collect();
    format!("{head}\u{2026}{tail}")
}
