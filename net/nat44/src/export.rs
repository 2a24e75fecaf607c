//! What happens to sessions, as records for flow collectors (RFC 8158).

use std::cell::Cell;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use shoal_ipfix::{Field, Ipfix, ReportKey, Template};

use crate::session_events::Exhausted;

/// VPP's observation domain and port, by default.
const DOMAIN: u32 = 1;
const PORT: u16 = 4739;

/// Values of natEvent.
const CREATED: u8 = 4;
const DELETED: u8 = 5;
const ADDRESSES_EXHAUSTED: u8 = 3;
const QUOTA_EXCEEDED: u8 = 13;
/// A value of natQuotaExceededEvent.
const MOST_SESSIONS: u32 = 1;

/// When something happened.
pub const TIME: Field = Field::new(323, 8);
/// What happened.
pub const NAT_EVENT: Field = Field::new(230, 1);
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

/// The streams records are in.
#[derive(Clone, Copy)]
struct Streams {
    domain: u32,
    port: u16,
    session: ReportKey,
    addresses: ReportKey,
    sessions: ReportKey,
}

/// Which address and port stand for which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translation {
    /// The host's.
    pub inside: (u32, u16),
    /// What stands for them.
    pub outside: (u32, u16),
    /// TCP, UDP, ICMP or another.
    pub protocol: u8,
    /// The host's VRF.
    pub vrf: u32,
}

/// Milliseconds since 1970, and what happened: every record begins so.
pub fn head(event: u8) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let mut bytes = now.to_be_bytes().to_vec();
    bytes.push(event);
    bytes
}

/// Records of one kind of NAT44, while they are asked for.
pub struct Export {
    ipfix: Rc<Ipfix>,
    streams: Cell<Option<Streams>>,
}

impl Export {
    /// None yet.
    pub fn new(ipfix: Rc<Ipfix>) -> Self {
        Export { ipfix, streams: Cell::new(None) }
    }

    /// The observation domain and port of records, if there are any.
    pub fn stream(&self) -> Option<(u32, u16)> {
        self.streams.get().map(|streams| (streams.domain, streams.port))
    }

    /// Records from now on, in a domain and from a port (0: VPP's).
    pub fn start(&self, (domain, port): (u32, u16)) {
        self.stop();
        let domain = if domain == 0 { DOMAIN } else { domain };
        let port = if port == 0 { PORT } else { port };
        let add = |fields: &[Field]| {
            self.ipfix.add_report(Template { domain, source_port: port, fields: fields.to_vec() })
        };
        let (session, addresses, sessions) = (add(SESSION), add(ADDRESSES), add(SESSIONS));
        self.streams.set(Some(Streams { domain, port, session, addresses, sessions }));
    }

    /// No records any more.
    pub fn stop(&self) {
        let Some(Streams { session, addresses, sessions, .. }) = self.streams.take() else { return };
        for key in [session, addresses, sessions] {
            self.ipfix.remove_report(key);
        }
    }

    /// A session began, or ended.
    pub fn session(&self, begins: bool, of: &Translation) {
        let Some(streams) = self.streams.get() else { return };
        let Translation { inside, outside, protocol, vrf } = of;
        let mut bytes = head(if begins { CREATED } else { DELETED });
        bytes.extend(inside.0.to_be_bytes());
        bytes.extend(outside.0.to_be_bytes());
        bytes.push(*protocol);
        bytes.extend(inside.1.to_be_bytes());
        bytes.extend(outside.1.to_be_bytes());
        bytes.extend(vrf.to_be_bytes());
        self.ipfix.record(streams.session, &bytes);
    }

    /// A packet could not be translated.
    pub fn exhausted(&self, what: Exhausted) {
        let Some(streams) = self.streams.get() else { return };
        match what {
            Exhausted::Ports => {
                let mut bytes = head(ADDRESSES_EXHAUSTED);
                bytes.extend(0_u32.to_be_bytes());
                self.ipfix.record(streams.addresses, &bytes);
            }
            Exhausted::Sessions { most } => {
                let mut bytes = head(QUOTA_EXCEEDED);
                bytes.extend(MOST_SESSIONS.to_be_bytes());
                bytes.extend(most.to_be_bytes());
                self.ipfix.record(streams.sessions, &bytes);
            }
        }
    }
}
