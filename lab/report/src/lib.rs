//! A results folder, and the page that explains it.
//!
//! While a campaign runs, [`Folder`] takes each trial as it ends and hands it to the disk before it returns: an
//! interruption costs one line. [`Results::read`] reads such a folder again, also half of one. From one or several of them
//! [`Page`] makes `report.html`, one file without anything from elsewhere, that begins with what was measured, on what and how
//! far to trust it. [`Published`] has the figures that others printed, with their misprints, and knows what of them may stand
//! beside ours: shapes. [`compare`] sets two campaigns side by side, [`append_history`] keeps a machine's medians, and
//! [`junit`] and [`tap`] tell other programs what held.
//!
//! The order of things in a row's names decides what shares a plot: different wires never do.
#![forbid(unsafe_code)]

mod check;
mod compare;
mod error;
mod history;
mod number;
mod page;
mod plot;
mod published;
mod results;
mod statistics;

pub use check::{Check, CheckOutcome, junit, tap};
pub use compare::{Comparison, Difference, compare};
pub use error::ReportError;
pub use history::{HistoryLine, append_history, history_file, read_history};
pub use page::{Page, compare_page};
pub use published::{Erratum, Family, Figure, Match, Published, Shape, family_of, shapes};
pub use results::{
    Bench, BenchScenario, DeviceRecord, Folder, Histogram, HistogramOf, Host, PercentilePoint, Record,
    Results, SampleLine, SelfTest, SummaryEntry, read_hgrm, write_hgrm, write_whole,
};
pub use statistics::{Statistics, mann_whitney};
