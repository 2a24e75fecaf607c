//! What full reassembly counts, and why it drops fragments.

use shoal_derive::ErrorCounters;

use crate::table::ReleaseReason;

/// Why a fragment is dropped here, and what else is counted. Names and texts are VPP's where it has one.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// duplicate fragments
    #[counter("reass_duplicate_fragment")]
    Duplicate,
    /// overlapping fragments
    #[counter("reass_overlapping_fragment")]
    Overlap,
    /// drops due to concurrent reassemblies limit
    #[counter("reass_limit_reached")]
    Evicted,
    /// fragment chain too long (drop)
    #[counter("reass_fragment_chain_too_long")]
    TooMany,
    /// drops because fragments hold too many buffers
    #[counter("reass_no_buf")]
    NoBuffers,
    /// malformed packets
    #[counter("reass_malformed_packet")]
    Malformed,
    /// invalid fragment length
    #[counter("reass_invalid_frag_len")]
    Length,
    /// drop due to invalid fragment size
    #[counter("reass_invalid_frag_size")]
    TooLong,
    /// missing-upper layer drops
    #[counter("reass_missing_upper")]
    MissingUpper,
    /// drops due to internal reassembly error
    #[counter("reass_internal_error")]
    Internal,
    /// fragments dropped due to reassembly timeout
    #[counter("reass_timeout")]
    Timeout,
    /// fragments of a datagram that was given up
    #[counter("reass_given_up")]
    GivenUp,
    /// fragments disagree on congestion
    #[counter("reass_ecn")]
    Ecn,
    /// successful reassemblies
    #[counter("reass_success")]
    #[severity(info)]
    Success,
    /// fragments reassembled
    #[counter("reass_fragments_reassembled")]
    #[severity(info)]
    Reassembled,
    /// fragments received
    #[counter("reass_fragments_rcvd")]
    #[severity(info)]
    Received,
    /// fragments handed to another thread
    #[counter("reass_handoff")]
    #[severity(info)]
    Handoff,
}

impl From<ReleaseReason> for Error {
    fn from(why: ReleaseReason) -> Error {
        match why {
            ReleaseReason::Duplicate => Error::Duplicate,
            ReleaseReason::Overlap => Error::Overlap,
            ReleaseReason::TooMany => Error::TooMany,
            ReleaseReason::Evicted => Error::Evicted,
            ReleaseReason::NoBuffers => Error::NoBuffers,
            ReleaseReason::GivenUp => Error::GivenUp,
            ReleaseReason::Timeout => Error::Timeout,
            ReleaseReason::Ecn => Error::Ecn,
        }
    }
}
