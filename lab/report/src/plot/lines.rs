//! Lines over two axes.

use std::fmt::Write as _;

use super::Axis;
use crate::page::escape;

/// A plot of lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// For those who do not see it: what it is.
    pub title: String,
    /// For those who do not see it: what it shows.
    pub description: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// One line.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// Class of colour; `None` is grey, for what is not a device.
    pub colour: Option<usize>,
    /// Broken: an ideal, a limit, what was sent.
    pub dashed: bool,
    /// A mark at each point, of a shape that tells the colour's number too.
    pub marked: bool,
    /// Its points, x rising.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 36.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 52.0;

impl Lines {
    /// The plot as SVG.
    pub fn svg(&self) -> String {
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title><desc>{}</desc>",
            escape(&self.title),
            escape(&self.description)
        );
        self.axes(&mut out);
        for series in &self.series {
            self.line(&mut out, series);
        }
        out.push_str("</svg>");
        out
    }

    /// Name, class and dash of each line, for a legend.
    pub fn legend(&self) -> String {
        let mut out = String::from("<ul class=\"legend\">");
        for series in self.series.iter().filter(|s| !s.name.is_empty()) {
            let dash = if series.dashed { " dashed" } else { "" };
            let mark = if series.marked { mark(series.colour, 14.0, 6.0) } else { String::new() };
            let _ = write!(
                out,
                "<li><svg class=\"key\" viewBox=\"0 0 28 12\" aria-hidden=\"true\">\
                 <path class=\"line {}{dash}\" d=\"M1 6H27\"/>{mark}</svg>{}</li>",
                class(series.colour),
                escape(&series.name)
            );
        }
        out.push_str("</ul>");
        out
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&self, out: &mut String) {
        for (value, label) in self.y.ticks() {
            let y = self.y(value);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                escape(&label)
            );
        }
        let bottom = HEIGHT - BOTTOM;
        for (value, label) in self.x.ticks() {
            let x = self.x(value);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                escape(&label)
            );
        }
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text class=\"axis\" transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
            HEIGHT - 10.0,
            escape(&self.x.label),
            TOP + (HEIGHT - TOP - BOTTOM) / 2.0,
            escape(&self.y.label)
        );
    }

    fn line(&self, out: &mut String, series: &Series) {
        let places: Vec<(f64, f64)> = series
            .points
            .iter()
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .map(|(x, y)| (self.x(*x), self.y(*y)))
            .collect();
        let mut path = String::new();
        for (at, (x, y)) in places.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" });
        }
        let dash = if series.dashed { " dashed" } else { "" };
        if !path.is_empty() {
            let _ = write!(
                out,
                "<path class=\"line {}{dash}\" d=\"{path}\"><title>{}</title></path>",
                class(series.colour),
                escape(&series.name)
            );
        }
        // One point alone is no line: it needs its mark to be seen.
        if series.marked || places.len() == 1 {
            for (x, y) in places {
                out.push_str(&mark(series.colour, x, y));
            }
        }
    }
}

fn class(colour: Option<usize>) -> String {
    colour.map_or_else(|| "plain".into(), |c| format!("c{}", c % super::COLOURS))
}

/// Circle, square, triangle, diamond, and again.
fn mark(colour: Option<usize>, x: f64, y: f64) -> String {
    let shape = match colour.unwrap_or(0) % 4 {
        0 => format!("M{:.1} {y:.1}a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0Z", x - 3.6),
        1 => format!("M{:.1} {:.1}h6.4v6.4h-6.4Z", x - 3.2, y - 3.2),
        2 => format!("M{x:.1} {:.1}l4.2 7.2h-8.4Z", y - 4.6),
        _ => format!("M{x:.1} {:.1}l4.4 4.4l-4.4 4.4l-4.4 -4.4Z", y - 4.4),
    };
    format!("<path class=\"mark {}\" d=\"{shape}\"/>", class(colour))
}
