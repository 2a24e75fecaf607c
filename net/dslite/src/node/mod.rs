//! Nodes.

pub mod ce;
pub mod in2out;
pub mod out2in;
pub mod stage;

use shoal_derive::{ErrorCounters, TraceLine};
use shoal_nat::icmp::Fault;

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// valid in2out DS-Lite packets
    #[counter("in2out")]
    #[severity(info)]
    In2out,
    /// valid out2in DS-Lite packets
    #[counter("out2in")]
    #[severity(info)]
    Out2in,
    /// valid CE encap DS-Lite packets
    #[counter("ce_encap")]
    #[severity(info)]
    CeEncap,
    /// valid CE decap DS-Lite packets
    #[counter("ce_decap")]
    #[severity(info)]
    CeDecap,
    /// no translation
    #[counter("no_translation")]
    NoTranslation,
    /// bad ip6 protocol
    #[counter("bad_ip6_protocol")]
    BadIp6Protocol,
    /// out of ports
    #[counter("out_of_ports")]
    OutOfPorts,
    /// unsupported protocol
    #[counter("unsupported_protocol")]
    UnsupportedProtocol,
    /// unsupported icmp type
    #[counter("bad_icmp_type")]
    BadIcmpType,
    /// maximum sessions exceeded
    #[counter("max_sessions_exceeded")]
    MaxSessions,
    /// fragments whose ports are not known
    #[counter("fragments")]
    Fragments,
    /// malformed packets
    #[counter("malformed")]
    Malformed,
    /// packets too large for a tunnel
    #[counter("too_large")]
    TooLarge,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Short | Fault::Checksum => Error::Malformed,
            Fault::Unsupported => Error::BadIcmpType,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("next index {next}, session {session}")]
pub struct Trace {
    /// Where the packet goes.
    pub next: u16,
    /// Its port outside; -1: it has no session.
    pub session: i64,
}
