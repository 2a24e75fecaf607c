//! Why a packet is not translated.

use shoal_derive::ErrorCounters;
use shoal_nat::icmp::Fault;

use crate::sessions::Refusal;

/// Why a packet is dropped.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// unsupported protocol
    #[counter("unsupported protocol")]
    UnsupportedProtocol,
    /// out of ports
    #[counter("out of ports")]
    OutOfPorts,
    /// outside VRF ID not found
    #[counter("outside VRF ID not found")]
    BadOutsideFib,
    /// unsupported ICMP type
    #[counter("unsupported ICMP type")]
    BadIcmpType,
    /// no translation
    #[counter("no translation")]
    NoTranslation,
    /// maximum sessions exceeded
    #[counter("maximum sessions exceeded")]
    MaxSessions,
    /// cannot create NAT user
    #[counter("cannot create NAT user")]
    CannotCreateUser,
    /// couldn't translate packet
    #[counter("couldn't translate packet")]
    CannotTranslate,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Short | Fault::Checksum => Error::CannotTranslate,
            Fault::Unsupported => Error::BadIcmpType,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Taken => Error::CannotTranslate,
            Refusal::Full => Error::MaxSessions,
            Refusal::NoUser => Error::CannotCreateUser,
        }
    }
}
