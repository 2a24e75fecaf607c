//! Published figures, and what of them may stand beside ours.
//!
//! Other machines' figures are not ours to beat or miss. Only *shapes* compare: one device to another on the same machine,
//! IPv6 to IPv4, two workers to one. An absolute figure is set beside ours only per GHz and core, and labelled indicative.

mod figures;
mod matching;
mod shapes;

pub use figures::{Erratum, Figure, Published};
pub use matching::{Family, Match, family_of, scenario_of};
pub use shapes::{Shape, shapes};
