//! An exporter: where records go, and what is on its way there.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use shoal_datagram::Checksum;
use shoal_graph::clock::Time;

use crate::control::IpfixError;
use crate::message::Message;
use crate::template::ReportKey;

/// IPFIX's port.
pub const PORT: u16 = 4739;
/// Bytes of a packet, by default; the fewest, and the most.
pub const PATH_MTU: u32 = 512;
pub const LEAST_MTU: u32 = 68;
pub const MOST_MTU: u32 = 1450;
/// Templates are sent so late at the latest, without a record.
const FIRST: Duration = Duration::from_secs(5);
/// Seconds from one sending of templates to the next, by default.
pub const INTERVAL: u32 = 20;
/// Bytes of IP and UDP headers.
const HEADERS: (usize, usize) = (20 + 8, 40 + 8);

/// Where records go, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exporter {
    /// The collector's address.
    pub collector: IpAddr,
    /// The collector's port.
    pub port: u16,
    /// From which address.
    pub source: IpAddr,
    /// The table in which the collector is looked for; `None`: the default one.
    pub vrf: Option<u32>,
    /// Bytes of a packet at most.
    pub path_mtu: u32,
    /// Seconds from one sending of templates to the next.
    pub template_interval: u32,
    /// Whether IPv4 datagrams have a checksum.
    pub checksum: Checksum,
}

impl Exporter {
    /// To a collector, as is usual.
    pub const fn new(collector: IpAddr, source: IpAddr) -> Self {
        Exporter {
            collector,
            port: PORT,
            source,
            vrf: None,
            path_mtu: PATH_MTU,
            template_interval: INTERVAL,
            checksum: Checksum::Zero,
        }
    }

    /// The one that sends nothing.
    pub const OFF: Exporter =
        Exporter::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    /// Whether it sends.
    pub fn is_on(&self) -> bool {
        !self.collector.is_unspecified()
    }

    /// Bytes of an IPFIX message at most.
    pub(crate) fn most(&self) -> usize {
        let headers = if self.collector.is_ipv4() { HEADERS.0 } else { HEADERS.1 };
        (self.path_mtu as usize).saturating_sub(headers)
    }

    pub(crate) fn check(&self) -> Result<(), IpfixError> {
        if self.source.is_unspecified() {
            return Err(IpfixError::NoSource);
        }
        if self.source.is_ipv4() != self.collector.is_ipv4() {
            return Err(IpfixError::Families(self.collector, self.source));
        }
        let broadcast = IpAddr::V4(Ipv4Addr::BROADCAST);
        for address in [self.collector, self.source] {
            if address.is_multicast() || address == broadcast {
                return Err(IpfixError::NoHost(address));
            }
        }
        match *self {
            Exporter { port: 0, .. } => Err(IpfixError::Port),
            Exporter { path_mtu, .. } if path_mtu > MOST_MTU => Err(IpfixError::TooBig(path_mtu)),
            Exporter { path_mtu, .. } if path_mtu < LEAST_MTU => Err(IpfixError::TooSmall(path_mtu)),
            Exporter { template_interval: 0, .. } => Err(IpfixError::Interval),
            _ => Ok(()),
        }
    }
}

/// A stream to a collector: records of one domain from one port (RFC 7011, 3.1: the sequence is counted for each).
#[derive(Default)]
pub(crate) struct Stream {
    /// Data records sent so far.
    pub sequence: u32,
    /// Records that wait, by the number of their template.
    pub waiting: BTreeMap<u16, Waiting>,
}

/// Records of a template that wait to be sent.
#[derive(Default)]
pub(crate) struct Waiting {
    /// Them.
    pub message: Message,
    /// When the first of them came.
    pub since: Option<Time>,
}

/// An exporter at work.
pub(crate) struct Outlet {
    pub exporter: Exporter,
    /// By domain and port.
    pub streams: BTreeMap<(u32, u16), Stream>,
    /// When each template was sent last.
    pub told: BTreeMap<ReportKey, Time>,
    /// When the exporter was set.
    pub since: Time,
}

impl Outlet {
    pub fn new(exporter: Exporter) -> Self {
        Outlet { exporter, streams: BTreeMap::new(), told: BTreeMap::new(), since: Time(0) }
    }

    /// When a template that there is since a moment is sent next.
    pub fn due(&self, report: ReportKey, since: Time) -> Time {
        match self.told.get(&report) {
            Some(told) => told.after(Duration::from_secs(self.exporter.template_interval.into())),
            None => since.max(self.since).after(FIRST),
        }
    }
}
