//! siitperf's three programs over the lab's tester.
//!
//! siitperf is the tester that the published figures of RFC 8219 and RFC 9693 were measured with. Its author's scripts
//! search and repeat; each step is one run of `siitperf-tp`, `siitperf-lat` or `siitperf-pdv`, whose settings come from
//! `siitperf.conf` and whose results are lines of text. Here the same file is read ([`Conf`]), the same arguments ([`Args`])
//! become trials ([`Phases`]), and [`run`] prints the lines that those scripts look for.
//!
//! The frames and the engine are the lab's own. So the numbers are stricter where the original cannot tell frames apart:
//! a duplicate is not a frame received.
#![forbid(unsafe_code)]

mod args;
mod conf;
mod error;
mod figures;
mod phases;
mod run;

pub use args::{Args, Program, StatefulArgs};
pub use conf::{Conf, HostKeys, KEYS, PortKeys};
pub use error::InputError;
pub use figures::{Latency, latency, variation};
pub use phases::{Options, Phases};
pub use run::{Finished, run};
