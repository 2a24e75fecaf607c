//! `report.html`: one file that explains itself.
//!
//! From top to bottom: what was measured, on what and how far to trust it; plots, each with its figures as a table, as a
//! download and with the command that repeats it; published figures; the machine and the devices. Nothing is loaded from
//! anywhere: the page's own policy forbids it.

mod badge;
mod bench;
mod compared;
mod curves;
mod energy;
mod escape;
mod figure;
mod history;
mod latency;
mod machine;
mod overview;
mod published;
mod published_delays;
mod ramp;
mod repeat;
mod scaling;
mod shell;
mod table;
mod throughput;
mod view;

pub use compared::compare_page;
pub use escape::{data_link, escape, shell_word};

use crate::ReportError;
use crate::history::HistoryLine;
use crate::published::Published;
use crate::results::{Bench, Results};
use view::View;

/// What the page is made of.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Folders, in the order in which they are shown.
    pub results: Vec<Results>,
    /// Clocks a packet by node, from `make bench`; shown if no folder has its own.
    pub bench: Option<Bench>,
    /// What this machine gave on other days, from [`read_history`](crate::read_history); for looking at, no gate.
    pub history: Vec<HistoryLine>,
    /// Seconds since 1970: when the page is made.
    pub made: f64,
}

impl Page {
    /// The page as text.
    ///
    /// # Errors
    ///
    /// If the published figures that are built in are damaged.
    pub fn html(&self) -> Result<String, ReportError> {
        let published = Published::built_in()?;
        let view = View::of(&self.results, &published);
        let mut body = overview::section(&view, self.made);
        for section in [
            throughput::section(&view),
            curves::section(&view),
            ramp::section(&view),
            latency::section(&view),
            scaling::section(&view),
            curves::nat_section(&view),
            energy::section(&view),
            bench::section(&view, self.bench.as_ref()),
            published::section(&view),
            history::section(&self.history),
            throughput::rest(&view),
            machine::section(&view),
        ] {
            body.push_str(&section);
        }
        let title = match self.results.as_slice() {
            [one] => format!("Lab report: {}", one.record.name),
            many => format!("Lab report: {} campaigns", many.len()),
        };
        Ok(shell::document(&title, &body))
    }
}
