//! `ip4-full-reassembly-expired`, `ip6-full-reassembly-expired`: fragments whose rest did not come in time, and the
//! errors to their senders. RFC 792; RFC 1122, 3.3.2; RFC 4443, 3.3. ip4-full-reassembly | the expire walk ->
//! **ip4-full-reassembly-expired** -> error-drop | ip4-icmp-error

use std::marker::PhantomData;

use shoal_buffer::Packet;
use shoal_derive::ErrorCounters;
use shoal_graph::{Cx, PacketNode};

use super::ToIcmp;
use crate::family::Family;
use crate::state::Ticket;

/// Why fragments are dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// fragments dropped due to reassembly timeout
    #[counter("reass_timeout")]
    Timeout,
    /// reassembly timeouts reported to senders
    #[counter("reass_timeout_told")]
    #[severity(warn)]
    Told,
}

/// Ends fragments.
pub struct Expired<F>(PhantomData<F>);

impl<F> Default for Expired<F> {
    fn default() -> Self {
        Expired(PhantomData)
    }
}

impl<F: Family> PacketNode for Expired<F> {
    const NAME: &'static str = F::NODES.expired;
    type Next = ToIcmp<F>;
    type Error = Error;
    type Trace = &'static str;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Self::Next, Error> {
        let ticket = *pkt.scratch::<Ticket>();
        cx.trace(pkt, || "the rest did not come in time");
        if ticket.told == 0 || ticket.for_us == 0 && !F::TELLS_TRANSIT {
            return Err(Error::Timeout);
        }
        // The first fragment is there, so that the sender knows what is spoken of.
        cx.count(Error::Told, 1);
        F::ask_timeout(pkt, ticket.for_us != 0);
        Ok(ToIcmp::WAY)
    }
}
