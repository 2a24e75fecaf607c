//! The nodes.

mod begin;
pub mod place;
pub mod stage;
pub mod trace;
pub mod translate;

use shoal_derive::ErrorCounters;

use crate::ports::SessionError;

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

impl From<SessionError> for Error {
    fn from(why: SessionError) -> Self {
        match why {
            SessionError::NoFreePorts => Error::NoFreePorts,
            SessionError::Full => Error::NoSession,
        }
    }
}
