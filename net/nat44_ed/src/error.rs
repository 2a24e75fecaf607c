//! Why a packet is not translated.

use shoal_derive::ErrorCounters;

/// Why a packet is dropped.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum In2outError {
    /// unsupported protocol
    #[counter("unsupported protocol")]
    UnsupportedProtocol,
    /// out of ports
    #[counter("out of ports")]
    OutOfPorts,
    /// unsupported ICMP type
    #[counter("unsupported ICMP type")]
    BadIcmpType,
    /// maximum sessions exceeded
    #[counter("maximum sessions exceeded")]
    MaxSessions,
    /// non-SYN packet try to create session
    #[counter("non-SYN packet try to create session")]
    NonSyn,
    /// couldn't translate packet
    #[counter("couldn't translate packet")]
    CannotTranslate,
    /// no translation
    #[counter("no translation")]
    NoTranslation,
    /// no session begins here, another router forwards
    #[counter("no session begins here, another router forwards")]
    Standby,
}

/// Why a packet to a host is dropped.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out2inError {
    /// unsupported protocol
    #[counter("unsupported protocol")]
    UnsupportedProtocol,
    /// out of ports
    #[counter("out of ports")]
    OutOfPorts,
    /// unsupported ICMP type
    #[counter("unsupported ICMP type")]
    BadIcmpType,
    /// no translation
    #[counter("no translation")]
    NoTranslation,
    /// maximum sessions exceeded
    #[counter("maximum sessions exceeded")]
    MaxSessions,
    /// non-SYN packet try to create session
    #[counter("non-SYN packet try to create session")]
    NonSyn,
    /// drops due to TCP in transitory timeout
    #[counter("drops due to TCP in transitory timeout")]
    TransitoryTimeout,
    /// hash table add failed
    #[counter("hash table add failed")]
    HashAddFailed,
    /// couldn't translate packet
    #[counter("couldn't translate packet")]
    CannotTranslate,
    /// no session begins here, another router forwards
    #[counter("no session begins here, another router forwards")]
    Standby,
}
