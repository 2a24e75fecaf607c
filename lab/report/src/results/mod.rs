//! The results folder: what is written while a campaign runs, and read again by the report.
//!
//! ```text
//! results/2026-01-31-paper/
//!   record.json     machine, devices, seeds, command, self-tests
//!   trials.jsonl    one line a trial, flushed at once, invalid ones too
//!   samples.csv     pieces of time of trials that were sampled
//!   hist/*.hgrm     delays, in HdrHistogram's percentile text form
//!   summary.csv     one row a result, in the columns of the published figures and its statistics
//!   summary.json    the same with each run's value and each curve's point
//!   device/*.txt    what devices printed
//!   bench.json      clocks a packet by node, of a replay; each of its runs is in replay/
//! ```

mod bench;
mod folder;
mod hgrm;
mod host;
mod read;
mod record;
mod summary;

pub use bench::{Bench, BenchScenario};
pub use folder::{Folder, file_word, write_whole};
pub use hgrm::{Histogram, HistogramOf, PercentilePoint, read as read_hgrm, write as write_hgrm};
pub use host::Host;
pub use read::Results;
pub use record::{DeviceRecord, Record, SampleLine, SelfTest};
pub use summary::{SummaryEntry, csv as csv_of, field, trust_word};
