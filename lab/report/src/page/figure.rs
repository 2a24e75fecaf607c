//! The frame around each plot: title, sentence, legend, plot, figures, download, command.

use std::fmt::Write as _;

use shoal_lab_plan::Trust;

use super::table::Table;
use super::{badge, data_link, escape};

/// A plot and what belongs to it.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// How to read it, a sentence or two.
    pub lead: String,
    /// Marks of all that is in it.
    pub trust: Vec<Trust>,
    /// HTML made by a plot.
    pub legend: String,
    /// SVG made by a plot; empty if there is only a table.
    pub plot: String,
    /// Remarks, a sentence each.
    pub notes: Vec<String>,
    /// The figures.
    pub table: Table,
    /// How to repeat it; empty if unknown.
    pub command: String,
}

impl Figure {
    /// The frame as HTML.
    pub fn html(&self) -> String {
        let mut out = format!(
            "<figure><figcaption><h3>{}</h3><p>{}</p>{}</figcaption>",
            escape(&self.title),
            escape(&self.lead),
            badge::badges(&self.trust)
        );
        if !self.plot.is_empty() {
            let _ = write!(out, "{}<div class=\"scroll plot\">{}</div>", self.legend, self.plot);
        }
        for note in &self.notes {
            let _ = write!(out, "<p class=\"note\">{}</p>", escape(note));
        }
        let table = self.table.html(&self.title);
        let file = crate::results::file_word(&self.title.to_lowercase());
        let link = format!(
            "<a class=\"get\" download=\"{file}.csv\" href=\"{}\">CSV</a>",
            data_link("text/csv", &self.table.csv())
        );
        if self.plot.is_empty() {
            let _ = write!(out, "{table}<p class=\"tools\">{link}</p>");
        } else {
            let _ = write!(
                out,
                "<details><summary>Figures</summary>{table}<p class=\"tools\">{link}</p></details>"
            );
        }
        if !self.command.is_empty() {
            let _ = write!(
                out,
                "<details><summary>Repeat this</summary><pre><code>{}</code></pre></details>",
                escape(&self.command)
            );
        }
        out.push_str("</figure>");
        out
    }
}

/// A section with a heading; nothing if it has no content.
pub fn section(id: &str, heading: &str, lead: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    let lead =
        if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{}</p>", escape(lead)) };
    format!("<section id=\"{id}\"><h2>{}</h2>{lead}{content}</section>", escape(heading))
}
