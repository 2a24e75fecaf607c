//! The nodes.

mod begin;
pub mod place;
pub mod trace;
pub mod translate;

use shoal_derive::ErrorCounters;

use crate::ports::Why;

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no more free ports
    #[counter("no more free ports")]
    NoFreePorts,
    /// port allocation retries
    #[severity(info)]
    #[counter("port allocation retries")]
    Retries,
    /// session allocation failure
    #[counter("session allocation failure")]
    NoSession,
    /// unknown session
    #[counter("unknown session")]
    UnknownSession,
    /// no translation of the virtual address is for the packet
    #[counter("no translation")]
    NoTranslation,
    /// no back end of the translation can be reached
    #[counter("no backend")]
    NoBackend,
    /// the back end's address is virtual, too
    #[counter("backend is virtual")]
    Loop,
    /// headers are cut off or wrong
    #[severity(warn)]
    #[counter("malformed")]
    Malformed,
}

impl From<Why> for Error {
    fn from(why: Why) -> Self {
        match why {
            Why::NoFreePorts => Error::NoFreePorts,
            Why::Full => Error::NoSession,
        }
    }
}
