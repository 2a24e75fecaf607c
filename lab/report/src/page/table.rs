//! Tables for reading, and the same as CSV for programs.

use std::fmt::Write as _;

use super::escape;
use crate::number;
use crate::results::field;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Column heads.
    pub head: Vec<String>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<Cell>>,
}

/// Characters from which a text gets a wide column.
const LONG: usize = 36;

/// A cell.
#[derive(Clone, Debug)]
pub enum Cell {
    /// Words.
    Text(String),
    /// HTML that was made here: badges.
    Markup(String, String),
    /// A number and how it is shown; CSV has all its digits.
    Number(Option<f64>, String),
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Cell::Text(text.into())
    }

    /// A number with the habits of its unit.
    pub fn number(value: Option<f64>, unit: &str) -> Self {
        let shown = value.map_or_else(|| number::NONE.to_owned(), |v| number::in_unit(v, unit));
        Cell::Number(value, shown)
    }

    fn is_empty(&self) -> bool {
        match self {
            Cell::Text(text) => text.is_empty(),
            Cell::Markup(html, _) => html.is_empty(),
            Cell::Number(value, shown) => value.is_none() && (shown.is_empty() || shown == number::NONE),
        }
    }

    /// A count.
    pub fn count(n: usize) -> Self {
        Cell::Number(Some(n as f64), n.to_string())
    }
}

impl Table {
    /// With these column heads.
    pub fn new(head: &[&str]) -> Self {
        Table { head: head.iter().map(|h| (*h).to_owned()).collect(), rows: Vec::new() }
    }

    /// As HTML, with a caption for those who do not see where it stands.
    pub fn html(&self, caption: &str) -> String {
        let cells = |column: usize| self.rows.iter().filter_map(move |r| r.get(column));
        let class = |column: usize| {
            if cells(column).any(|c| matches!(c, Cell::Number(..))) {
                " class=\"num\""
            } else if cells(column).any(|c| matches!(c, Cell::Text(text) if text.chars().count() > LONG)) {
                let longest = cells(column)
                    .map(|c| if let Cell::Text(text) = c { text.chars().count() } else { 0 })
                    .max();
                if longest > Some(2 * LONG) { " class=\"long longer\"" } else { " class=\"long\"" }
            } else if cells(column).any(|c| matches!(c, Cell::Markup(..))) {
                " class=\"marks\""
            } else {
                ""
            }
        };
        // An empty column is left out here; CSV has it.
        let shown: Vec<bool> = (0..self.head.len()).map(|at| cells(at).any(|c| !c.is_empty())).collect();
        let is_shown = |at: usize| shown.get(at).copied().unwrap_or(true);
        let mut out = format!(
            "<div class=\"scroll\"><table><caption class=\"unseen\">{}</caption><thead><tr>",
            escape(caption)
        );
        for (at, head) in self.head.iter().enumerate().filter(|(at, _)| is_shown(*at)) {
            let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(at), escape(head));
        }
        out.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            out.push_str("<tr>");
            for (at, cell) in row.iter().enumerate().filter(|(at, _)| is_shown(*at)) {
                let shown = match cell {
                    Cell::Text(text) => escape(text),
                    Cell::Markup(html, _) => html.clone(),
                    Cell::Number(_, shown) => escape(shown),
                };
                let _ = write!(out, "<td{}>{shown}</td>", class(at));
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div>");
        out
    }

    /// As CSV (RFC 4180), numbers with all their digits.
    pub fn csv(&self) -> String {
        let line = |fields: Vec<String>| fields.iter().map(|f| field(f)).collect::<Vec<_>>().join(",") + "\n";
        let mut out = line(self.head.clone());
        for row in &self.rows {
            let fields = row.iter().map(|cell| match cell {
                Cell::Text(text) | Cell::Markup(_, text) => text.clone(),
                Cell::Number(value, _) => value.map_or_else(String::new, |v| v.to_string()),
            });
            out.push_str(&line(fields.collect()));
        }
        out
    }
}
