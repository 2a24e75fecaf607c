//! What NAT of all kinds tells flow collectors (RFC 8158), by one switch as in VPP.

use std::cell::{Cell, RefCell};
use std::net::Ipv6Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use shoal_ipfix::{Field, Ipfix, ReportKey, Template};
use shoal_module::{Control, InitError};

use crate::session_events::Exhausted;

/// VPP's observation domain and port, by default.
const DOMAIN: u32 = 1;
const PORT: u16 = 4739;

/// Values of natEvent.
const CREATED: u8 = 4;
const DELETED: u8 = 5;
const ADDRESSES_EXHAUSTED: u8 = 3;
const NAT64_CREATED: u8 = 6;
const NAT64_DELETED: u8 = 7;
const BINDING_CREATED: u8 = 10;
const BINDING_DELETED: u8 = 11;
const QUOTA_EXCEEDED: u8 = 13;
/// Values of natQuotaExceededEvent.
const MOST_SESSIONS: u32 = 1;
const MOST_BINDINGS: u32 = 2;
const MOST_OF_A_USER: u32 = 3;

/// When something happened.
pub const TIME: Field = Field::new(323, 8);
/// What happened.
pub const NAT_EVENT: Field = Field::new(230, 1);
/// A host.
pub const SOURCE: Field = Field::new(8, 4);
/// What stands for it.
pub const POST_SOURCE: Field = Field::new(225, 4);
/// A host's VRF.
pub const VRF: Field = Field::new(234, 4);
const SOURCE6: Field = Field::new(27, 16);
const PROTOCOL: Field = Field::new(4, 1);
const SOURCE_PORT: Field = Field::new(7, 2);
const POST_SOURCE_PORT: Field = Field::new(227, 2);
const QUOTA_EVENT: Field = Field::new(466, 4);

/// Of a session of NAT44.
const SESSION: &[Field] =
    &[TIME, NAT_EVENT, SOURCE, POST_SOURCE, PROTOCOL, SOURCE_PORT, POST_SOURCE_PORT, VRF];
/// No address or port is left: of which pool.
const ADDRESSES: &[Field] = &[TIME, NAT_EVENT, Field::new(283, 4)];
/// No session is left: which limit, and how much it is.
const SESSIONS: &[Field] = &[TIME, NAT_EVENT, QUOTA_EVENT, Field::new(471, 4)];
/// No binding is left: likewise.
const BINDINGS: &[Field] = &[TIME, NAT_EVENT, QUOTA_EVENT, Field::new(472, 4)];
/// Of a binding of NAT64.
const BINDING6: &[Field] =
    &[TIME, NAT_EVENT, SOURCE6, POST_SOURCE, PROTOCOL, SOURCE_PORT, POST_SOURCE_PORT, VRF];
/// Of a session of NAT64: with the far end as the host sees it and as it is.
const SESSION6: &[Field] = &[
    TIME,
    NAT_EVENT,
    SOURCE6,
    POST_SOURCE,
    PROTOCOL,
    SOURCE_PORT,
    POST_SOURCE_PORT,
    Field::new(28, 16),
    Field::new(226, 4),
    Field::new(11, 2),
    Field::new(228, 2),
    VRF,
];
/// A host has as many sessions as it may have: how many, and which host.
const OF_A_USER: &[Field] = &[TIME, NAT_EVENT, QUOTA_EVENT, Field::new(473, 4), SOURCE];

/// Templates that collectors learn at once, in VPP's order. Others are added when there is a record.
const FIRST: [&[Field]; 6] = [SESSION, ADDRESSES, SESSIONS, BINDINGS, BINDING6, SESSION6];

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

/// The same of an IPv6 host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translation6 {
    /// The host's.
    pub inside: (Ipv6Addr, u16),
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

/// Tells any thread whether there are records.
#[derive(Clone, Debug, Default)]
pub struct ExportGate(Arc<AtomicBool>);

impl ExportGate {
    /// Whether there are.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Records of all kinds of NAT, while they are asked for.
pub struct Export {
    ipfix: Rc<Ipfix>,
    stream: Cell<Option<(u32, u16)>>,
    reports: RefCell<Vec<(&'static [Field], ReportKey)>>,
    gate: ExportGate,
}

impl Export {
    /// The router's.
    ///
    /// # Errors
    /// There is no IPFIX.
    pub fn of(control: &Control) -> Result<Rc<Self>, InitError> {
        if let Ok(there) = control.get::<Export>() {
            return Ok(there);
        }
        Ok(control.put(Export {
            ipfix: control.get::<Ipfix>()?,
            stream: Cell::new(None),
            reports: RefCell::default(),
            gate: ExportGate::default(),
        }))
    }

    /// Tells threads whether there are records.
    pub fn gate(&self) -> ExportGate {
        self.gate.clone()
    }

    /// The observation domain and port of records, if there are any.
    pub fn stream(&self) -> Option<(u32, u16)> {
        self.stream.get()
    }

    /// Records from now on, in a domain and from a port (0: VPP's), or none any more. Nothing changes if it is so already.
    pub fn set(&self, stream: Option<(u32, u16)>) {
        let stream = stream.map(|(domain, port)| {
            (if domain == 0 { DOMAIN } else { domain }, if port == 0 { PORT } else { port })
        });
        if stream == self.stream.get() {
            return;
        }
        for (_, key) in self.reports.take() {
            self.ipfix.remove_report(key);
        }
        self.stream.set(stream);
        for fields in FIRST {
            self.report(fields);
        }
        self.gate.0.store(stream.is_some(), Ordering::Relaxed);
    }

    /// The template of some fields, added if it is not there.
    fn report(&self, fields: &'static [Field]) -> Option<ReportKey> {
        let (domain, source_port) = self.stream.get()?;
        let mut reports = self.reports.borrow_mut();
        if let Some((_, key)) = reports.iter().find(|(there, _)| *there == fields) {
            return Some(*key);
        }
        let key = self.ipfix.add_report(Template { domain, source_port, fields: fields.to_vec() });
        reports.push((fields, key));
        Some(key)
    }

    /// A record of some fields, if there are any.
    pub fn record(&self, fields: &'static [Field], bytes: &[u8]) {
        if let Some(key) = self.report(fields) {
            self.ipfix.record(key, bytes);
        }
    }

    /// A session of NAT44 began, or ended.
    pub fn session(&self, begins: bool, of: &Translation) {
        if self.stream().is_none() {
            return;
        }
        let Translation { inside, outside, protocol, vrf } = of;
        let mut bytes = head(if begins { CREATED } else { DELETED });
        bytes.extend(inside.0.to_be_bytes());
        bytes.extend(outside.0.to_be_bytes());
        bytes.push(*protocol);
        bytes.extend(inside.1.to_be_bytes());
        bytes.extend(outside.1.to_be_bytes());
        bytes.extend(vrf.to_be_bytes());
        self.record(SESSION, &bytes);
    }

    /// A binding of NAT64 began, or ended.
    pub fn binding6(&self, begins: bool, of: &Translation6) {
        let mut bytes = binding6(if begins { BINDING_CREATED } else { BINDING_DELETED }, of);
        bytes.extend(of.vrf.to_be_bytes());
        self.record(BINDING6, &bytes);
    }

    /// A session of NAT64 began, or ended: the far end as the host sees it and as it is, and its port, or a query's identifier.
    pub fn session6(&self, begins: bool, of: &Translation6, (seen, far): (Ipv6Addr, u32), port: u16) {
        let mut bytes = binding6(if begins { NAT64_CREATED } else { NAT64_DELETED }, of);
        bytes.extend(seen.octets());
        bytes.extend(far.to_be_bytes());
        bytes.extend(port.to_be_bytes());
        bytes.extend(port.to_be_bytes());
        bytes.extend(of.vrf.to_be_bytes());
        self.record(SESSION6, &bytes);
    }

    /// A packet could not be translated.
    pub fn exhausted(&self, what: Exhausted) {
        // VPP writes these two as its processor has them, the lowest byte first: collectors of its records read them so.
        let quota = |event: u32, most: u32| {
            let mut bytes = head(QUOTA_EXCEEDED);
            bytes.extend(event.to_le_bytes());
            bytes.extend(most.to_le_bytes());
            bytes
        };
        match what {
            Exhausted::Ports => {
                let mut bytes = head(ADDRESSES_EXHAUSTED);
                bytes.extend(0_u32.to_be_bytes());
                self.record(ADDRESSES, &bytes);
            }
            Exhausted::Sessions { most } => self.record(SESSIONS, &quota(MOST_SESSIONS, most)),
            Exhausted::Bindings { most } => self.record(BINDINGS, &quota(MOST_BINDINGS, most)),
            Exhausted::OfUser { most, host } => {
                let mut bytes = quota(MOST_OF_A_USER, most);
                bytes.extend(host.to_be_bytes());
                self.record(OF_A_USER, &bytes);
            }
        }
    }
}

/// What records of bindings and sessions of NAT64 begin with.
fn binding6(event: u8, of: &Translation6) -> Vec<u8> {
    let mut bytes = head(event);
    bytes.extend(of.inside.0.octets());
    bytes.extend(of.outside.0.to_be_bytes());
    bytes.push(of.protocol);
    bytes.extend(of.inside.1.to_be_bytes());
    bytes.extend(of.outside.1.to_be_bytes());
    bytes
}
