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
    /// the host has as many sessions as it may have, and none ends for another
    #[counter("maximum user sessions exceeded")]
    UserFull,
}

/// The same of a packet to a host, shown where VPP shows it.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out2inError {
    /// unsupported protocol
    #[counter("unsupported protocol")]
    #[at("nat44-ei-out2in")]
    UnsupportedProtocol,
    /// out of ports
    #[counter("out of ports")]
    #[at("nat44-ei-out2in")]
    OutOfPorts,
    /// outside VRF ID not found
    #[counter("outside VRF ID not found")]
    #[at("nat44-ei-out2in")]
    BadOutsideFib,
    /// unsupported ICMP type
    #[counter("unsupported ICMP type")]
    #[at("nat44-ei-out2in")]
    BadIcmpType,
    /// no translation
    #[counter("no translation")]
    #[at("nat44-ei-out2in")]
    NoTranslation,
    /// maximum sessions exceeded
    #[counter("maximum sessions exceeded")]
    #[at("nat44-ei-out2in")]
    MaxSessions,
    /// cannot create NAT user
    #[counter("cannot create NAT user")]
    #[at("nat44-ei-out2in")]
    CannotCreateUser,
    /// couldn't translate packet
    #[counter("couldn't translate packet")]
    #[at("nat44-ei-out2in")]
    CannotTranslate,
    /// the host has as many sessions as it may have, and none ends for another
    #[counter("maximum user sessions exceeded")]
    #[at("nat44-ei-out2in")]
    UserFull,
}

impl From<Error> for Out2inError {
    fn from(why: Error) -> Self {
        match why {
            Error::UnsupportedProtocol => Out2inError::UnsupportedProtocol,
            Error::OutOfPorts => Out2inError::OutOfPorts,
            Error::BadOutsideFib => Out2inError::BadOutsideFib,
            Error::BadIcmpType => Out2inError::BadIcmpType,
            Error::NoTranslation => Out2inError::NoTranslation,
            Error::MaxSessions => Out2inError::MaxSessions,
            Error::CannotCreateUser => Out2inError::CannotCreateUser,
            Error::CannotTranslate => Out2inError::CannotTranslate,
            Error::UserFull => Out2inError::UserFull,
        }
    }
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
            Refusal::UserFull => Error::UserFull,
            Refusal::NoUser => Error::CannotCreateUser,
        }
    }
}
