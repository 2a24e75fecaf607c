//! What happens to sessions and blocks of ports, as records for flow collectors (RFC 8158).

use shoal_ipfix::Field;
use shoal_nat44::export::{NAT_EVENT, POST_SOURCE, SOURCE, TIME, Translation, VRF, head};

use super::Nat44Ei;
use crate::blocks::BlockEvent;
use crate::sessions::{Event, Record};

/// Values of natEvent.
const BLOCK_BEGINS: u8 = 16;
const BLOCK_ENDS: u8 = 17;

/// A block of ports: when, what, host, address, first and last port, how many, the host's VRF.
const BLOCK: &[Field] =
    &[TIME, NAT_EVENT, SOURCE, POST_SOURCE, Field::new(361, 2), Field::new(362, 2), Field::new(364, 2), VRF];

impl Nat44Ei {
    /// The observation domain and port of records, if there are any.
    pub fn ipfix(&self) -> Option<(u32, u16)> {
        self.export.stream()
    }

    /// Tells collectors of sessions, in a domain and from a port (0: as usual); `None`: does so no more.
    /// It is so of all kinds of NAT, whether they are on or off. Nothing changes if it is so already.
    pub fn set_ipfix(&self, stream: Option<(u32, u16)>) {
        self.export.set(stream);
    }

    pub(super) fn export_session(&self, event: Event, record: &Record) {
        let session = &record.session;
        let (inside, outside, protocol) = (session.inside, session.outside, session.protocol);
        let vrf = self.vrf_of_table(session.inside_table);
        self.export.session(event == Event::Begins, &Translation { inside, outside, protocol, vrf });
    }

    pub(super) fn export_block(&self, block: &BlockEvent) {
        let mut bytes = head(if block.begins { BLOCK_BEGINS } else { BLOCK_ENDS });
        bytes.extend(block.host.0.to_be_bytes());
        bytes.extend(block.address.to_be_bytes());
        bytes.extend(block.first.to_be_bytes());
        bytes.extend(block.last.to_be_bytes());
        bytes.extend((block.last - block.first + 1).to_be_bytes());
        bytes.extend(self.vrf_of_table(block.host.1).to_be_bytes());
        self.export.record(BLOCK, &bytes);
    }
}
