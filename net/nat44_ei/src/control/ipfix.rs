//! What happens to sessions, as records for flow collectors (RFC 8158).

use std::time::{SystemTime, UNIX_EPOCH};

use shoal_ipfix::{Field, ReportKey, Template};

use super::{Nat44Ei, NatError};
use crate::blocks::BlockEvent;
use crate::sessions::{Event, Record};
use crate::shared::Exhausted;

/// VPP's observation domain and port, by default.
const DOMAIN: u32 = 1;
const PORT: u16 = 4739;

/// Values of natEvent.
const CREATED: u8 = 4;
const DELETED: u8 = 5;
const ADDRESSES_EXHAUSTED: u8 = 3;
const QUOTA_EXCEEDED: u8 = 13;
const BLOCK_BEGINS: u8 = 16;
const BLOCK_ENDS: u8 = 17;
/// A value of natQuotaExceededEvent.
const MOST_SESSIONS: u32 = 1;

const TIME: Field = Field::new(323, 8);
const NAT_EVENT: Field = Field::new(230, 1);
const QUOTA_EVENT: Field = Field::new(466, 4);

/// Of a session: when, what, host, what stands for it, protocol, ports, the host's VRF.
const SESSION: &[Field] = &[
    TIME,
    NAT_EVENT,
    Field::new(8, 4),
    Field::new(225, 4),
    Field::new(4, 1),
    Field::new(7, 2),
    Field::new(227, 2),
    Field::new(234, 4),
];
/// No address or port is left: when, what, of which pool.
const ADDRESSES: &[Field] = &[TIME, NAT_EVENT, Field::new(283, 4)];
/// No session is left: when, what, which limit, and how much it is.
const SESSIONS: &[Field] = &[TIME, NAT_EVENT, QUOTA_EVENT, Field::new(471, 4)];

/// A block of ports: when, what, host, address, first and last port, how many, the host's VRF.
const BLOCK: &[Field] = &[
    TIME,
    NAT_EVENT,
    Field::new(8, 4),
    Field::new(225, 4),
    Field::new(361, 2),
    Field::new(362, 2),
    Field::new(364, 2),
    Field::new(234, 4),
];

/// The streams records are in.
#[derive(Clone, Copy)]
pub(super) struct Export {
    domain: u32,
    port: u16,
    session: ReportKey,
    addresses: ReportKey,
    sessions: ReportKey,
    blocks: ReportKey,
}

/// Milliseconds since 1970, and what happened.
fn head(event: u8) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let mut bytes = now.to_be_bytes().to_vec();
    bytes.push(event);
    bytes
}

impl Nat44Ei {
    /// The observation domain and port of records, if there are any.
    pub fn ipfix(&self) -> Option<(u32, u16)> {
        self.export.get().map(|export| (export.domain, export.port))
    }

    /// Tells collectors of sessions, in a domain and from a port (0: as usual); `None`: does so no more.
    ///
    /// # Errors
    /// NAT is off.
    pub fn set_ipfix(&self, stream: Option<(u32, u16)>) -> Result<(), NatError> {
        self.on()?;
        self.stop_export();
        if let Some((domain, port)) = stream {
            let domain = if domain == 0 { DOMAIN } else { domain };
            let source_port = if port == 0 { PORT } else { port };
            let add = |fields: &[Field]| {
                self.ipfix.add_report(Template { domain, source_port, fields: fields.to_vec() })
            };
            let (session, addresses, sessions) = (add(SESSION), add(ADDRESSES), add(SESSIONS));
            let blocks = add(BLOCK);
            self.export.set(Some(Export { domain, port: source_port, session, addresses, sessions, blocks }));
        }
        self.renew_listening();
        Ok(())
    }

    pub(super) fn stop_export(&self) {
        if let Some(export) = self.export.take() {
            for key in [export.session, export.addresses, export.sessions, export.blocks] {
                self.ipfix.remove_report(key);
            }
        }
        self.renew_listening();
    }

    pub(super) fn export_session(&self, event: Event, record: &Record) {
        let Some(export) = self.export.get() else { return };
        let session = &record.session;
        let mut bytes = head(if event == Event::Begins { CREATED } else { DELETED });
        bytes.extend(session.inside.0.to_be_bytes());
        bytes.extend(session.outside.0.to_be_bytes());
        bytes.push(session.protocol);
        bytes.extend(session.inside.1.to_be_bytes());
        bytes.extend(session.outside.1.to_be_bytes());
        bytes.extend(self.vrf_of_table(session.inside_table).to_be_bytes());
        self.ipfix.record(export.session, &bytes);
    }

    pub(super) fn export_block(&self, block: &BlockEvent) {
        let Some(export) = self.export.get() else { return };
        let mut bytes = head(if block.begins { BLOCK_BEGINS } else { BLOCK_ENDS });
        bytes.extend(block.host.0.to_be_bytes());
        bytes.extend(block.address.to_be_bytes());
        bytes.extend(block.first.to_be_bytes());
        bytes.extend(block.last.to_be_bytes());
        bytes.extend((block.last - block.first + 1).to_be_bytes());
        bytes.extend(self.vrf_of_table(block.host.1).to_be_bytes());
        self.ipfix.record(export.blocks, &bytes);
    }

    pub(super) fn export_exhausted(&self, what: Exhausted) {
        let Some(export) = self.export.get() else { return };
        match what {
            Exhausted::Ports => {
                let mut bytes = head(ADDRESSES_EXHAUSTED);
                bytes.extend(0_u32.to_be_bytes());
                self.ipfix.record(export.addresses, &bytes);
            }
            Exhausted::Sessions { most } => {
                let mut bytes = head(QUOTA_EXCEEDED);
                bytes.extend(MOST_SESSIONS.to_be_bytes());
                bytes.extend(most.to_be_bytes());
                self.ipfix.record(export.sessions, &bytes);
            }
        }
    }
}
