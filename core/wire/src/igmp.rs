//! Internet group management as a listener needs it (RFC 3376, RFC 2236, RFC 1112): queries are read, reports are
//! written.
//!
//! ```
//! use shoal_wire::igmp::{RecordType, ReportWriter};
//! let mut bytes = [0; 64];
//! let report = ReportWriter::new(&mut bytes).record(RecordType::CHANGE_TO_EXCLUDE, [232, 1, 1, 1].into(), &[]);
//! assert_eq!(report.finish(), Some(16));
//! ```

use std::error::Error;
use std::fmt;
use std::net::Ipv4Addr;

use crate::icmp4;

/// The TTL of every message.
pub const TTL: u8 = 1;
/// The type of service of messages of version 3 (RFC 3376 section 4).
pub const TOS: u8 = 0xc0;
/// The router alert option in front of every message of versions 2 and 3 (RFC 2113).
pub const ROUTER_ALERT: [u8; 4] = [148, 4, 0, 0];
/// All systems of a link.
pub const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// All routers of a link.
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// All routers of a link that speak version 3.
pub const ALL_V3_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);

const QUERY: u8 = 0x11;
const REPORT_V1: u8 = 0x12;
const REPORT_V2: u8 = 0x16;
const LEAVE: u8 = 0x17;
const REPORT_V3: u8 = 0x22;

/// Why a message is ignored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IgmpInvalid {
    /// It is shorter than it says, or than 8 bytes, or of a length no version has.
    Length,
    /// Its checksum is wrong.
    Checksum,
    /// Its group is no group.
    Group,
    /// Its type is unknown.
    Type,
}

impl fmt::Display for IgmpInvalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "bad length",
            Self::Checksum => "bad checksum",
            Self::Group => "group is not multicast",
            Self::Type => "unknown type",
        })
    }
}

impl Error for IgmpInvalid {}

/// Who speaks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IgmpVersion {
    /// RFC 1112.
    V1,
    /// RFC 2236.
    V2,
    /// RFC 3376.
    V3,
}

/// A query: "who listens?".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IgmpQuery<'a> {
    /// The version of the querier.
    pub version: IgmpVersion,
    /// The group asked for; `None` in a general query.
    pub group: Option<Ipv4Addr>,
    /// A listener answers within this time, in milliseconds.
    pub max_response_ms: u32,
    /// Time between general queries in seconds; 0 where the query does not say.
    pub interval_secs: u32,
    /// How often what may get lost is repeated; 0 where the query does not say.
    pub robustness: u8,
    /// The sources asked for; none: any.
    pub sources: &'a [[u8; 4]],
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IgmpMessage<'a> {
    /// A router asks.
    Query(IgmpQuery<'a>),
    /// A listener of version 1 or 2 answers.
    Report(Ipv4Addr),
    /// A listener of version 2 leaves.
    Leave(Ipv4Addr),
    /// A listener of version 3 answers, in as many records as it says.
    ReportV3(IgmpRecords<'a>),
}

/// What a listener of version 3 says of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IgmpRecord<'a> {
    /// What it says.
    pub kind: RecordType,
    /// The group.
    pub group: Ipv4Addr,
    /// The sources it says that of.
    pub sources: &'a [[u8; 4]],
}

/// The records of a report, which are known to be whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IgmpRecords<'a> {
    left: u16,
    rest: &'a [u8],
}

impl<'a> IgmpRecords<'a> {
    fn new(message: &'a [u8]) -> Result<Self, IgmpInvalid> {
        let (fixed, rest) = message.split_first_chunk::<8>().ok_or(IgmpInvalid::Length)?;
        let [.., high, low] = *fixed;
        let all = IgmpRecords { left: u16::from_be_bytes([high, low]), rest };
        let whole = all.clone().count() == usize::from(all.left);
        if !whole {
            return Err(IgmpInvalid::Length);
        }
        if all.clone().any(|record| !record.group.is_multicast()) {
            return Err(IgmpInvalid::Group);
        }
        Ok(all)
    }

    fn one(&mut self) -> Option<IgmpRecord<'a>> {
        let (fixed, rest) = self.rest.split_first_chunk::<8>()?;
        let [kind, words, high, low, group @ ..] = *fixed;
        let (sources, rest) = rest.split_at_checked(4 * usize::from(u16::from_be_bytes([high, low])))?;
        // RFC 3376 4.2.11: what is auxiliary is passed over.
        self.rest = rest.get(4 * usize::from(words)..)?;
        let sources = sources.as_chunks::<4>().0;
        Some(IgmpRecord { kind: RecordType(kind), group: Ipv4Addr::from_octets(group), sources })
    }
}

impl<'a> Iterator for IgmpRecords<'a> {
    type Item = IgmpRecord<'a>;

    fn next(&mut self) -> Option<IgmpRecord<'a>> {
        self.left = self.left.checked_sub(1)?;
        self.one()
    }
}

/// Writes a query of version 3 (RFC 3376 section 4.1): of all groups, of one, or of sources of one. Tenths of seconds for
/// answers and seconds between queries are below 128, which is a code that stands for itself. Its length, or `None` when it
/// does not fit.
pub fn write_query(
    out: &mut [u8],
    (group, sources): (Option<Ipv4Addr>, &[Ipv4Addr]),
    (tenths, robustness, interval_secs): (u8, u8, u8),
) -> Option<usize> {
    let length = 12 + 4 * sources.len();
    let message = out.get_mut(..length)?;
    let (head, list) = message.split_first_chunk_mut::<12>()?;
    let [a, b, c, d] = group.unwrap_or(Ipv4Addr::UNSPECIFIED).octets();
    let [high, low] = u16::try_from(sources.len()).ok()?.to_be_bytes();
    *head = [QUERY, tenths.min(127), 0, 0, a, b, c, d, robustness & 7, interval_secs.min(127), high, low];
    list.as_chunks_mut::<4>().0.iter_mut().zip(sources).for_each(|(to, from)| *to = from.octets());
    icmp4::make(message);
    Some(length)
}

/// A code whose highest bit is set is a floating-point number (RFC 3376 section 4.1.1).
const fn decoded(code: u8) -> u32 {
    if code < 128 { code as u32 } else { (code as u32 & 15 | 16) << ((code as u32 >> 4 & 7) + 3) }
}

impl<'a> IgmpMessage<'a> {
    /// Reads a message, cut to its length.
    ///
    /// # Errors
    /// The rule it breaks.
    pub fn parse(message: &'a [u8]) -> Result<Self, IgmpInvalid> {
        let (fixed, rest) = message.split_first_chunk::<8>().ok_or(IgmpInvalid::Length)?;
        if !icmp4::verify(message) {
            return Err(IgmpInvalid::Checksum);
        }
        let [kind, code, _, _, group @ ..] = *fixed;
        let group = Ipv4Addr::from_octets(group);
        match kind {
            QUERY => Self::query(code, group, rest),
            REPORT_V3 => IgmpRecords::new(message).map(Self::ReportV3),
            REPORT_V1 | REPORT_V2 | LEAVE if !group.is_multicast() => Err(IgmpInvalid::Group),
            REPORT_V1 | REPORT_V2 => Ok(Self::Report(group)),
            LEAVE => Ok(Self::Leave(group)),
            _ => Err(IgmpInvalid::Type),
        }
    }

    fn query(code: u8, group: Ipv4Addr, rest: &'a [u8]) -> Result<Self, IgmpInvalid> {
        if !group.is_unspecified() && !group.is_multicast() {
            return Err(IgmpInvalid::Group);
        }
        let group = (!group.is_unspecified()).then_some(group);
        // RFC 3376 7.1: length and code tell the version. Version 1 knows no code and no group: ten seconds.
        let query = |version, max_response_ms| IgmpQuery {
            version,
            group,
            max_response_ms,
            interval_secs: 0,
            robustness: 0,
            sources: &[],
        };
        if rest.is_empty() {
            return Ok(Self::Query(match code {
                0 => IgmpQuery { group: None, ..query(IgmpVersion::V1, 10_000) },
                code => query(IgmpVersion::V2, u32::from(code) * 100),
            }));
        }
        let (more, sources) = rest.split_first_chunk::<4>().ok_or(IgmpInvalid::Length)?;
        let [flags, interval, high, low] = *more;
        let count = usize::from(u16::from_be_bytes([high, low]));
        let sources = sources.as_chunks::<4>().0.get(..count).ok_or(IgmpInvalid::Length)?;
        Ok(Self::Query(IgmpQuery {
            interval_secs: decoded(interval),
            robustness: flags & 7,
            sources,
            ..query(IgmpVersion::V3, decoded(code) * 100)
        }))
    }
}

/// A message of version 1 or 2: a report to the group, or "leave" to all routers.
///
/// Version 3 has no "leave", and its reports are written by [`ReportWriter`].
pub fn old_message(version: IgmpVersion, leave: bool, group: Ipv4Addr) -> [u8; 8] {
    let kind = match (leave, version) {
        (true, _) => LEAVE,
        (false, IgmpVersion::V1) => REPORT_V1,
        (false, _) => REPORT_V2,
    };
    let [a, b, c, d] = group.octets();
    let mut message = [kind, 0, 0, 0, a, b, c, d];
    icmp4::make(&mut message);
    message
}

/// What a record says about a group (RFC 3376 section 4.2.12); the numbers are MLD's.
pub use crate::mld::RecordType;

/// Writes a report of version 3.
pub struct ReportWriter<'a> {
    out: &'a mut [u8],
    len: Option<usize>,
    records: u16,
}

impl<'a> ReportWriter<'a> {
    /// Begins a report in `out`.
    pub fn new(out: &'a mut [u8]) -> Self {
        let len = out.get_mut(..8).map(|head| {
            head.fill(0);
            if let Some(kind) = head.first_mut() {
                *kind = REPORT_V3;
            }
            8
        });
        ReportWriter { out, len, records: 0 }
    }

    /// Adds a record. One that does not fit spoils the report.
    #[must_use]
    pub fn record(mut self, kind: RecordType, group: Ipv4Addr, sources: &[Ipv4Addr]) -> Self {
        self.len = self.len.and_then(|at| {
            let count = u16::try_from(sources.len()).ok()?;
            let end = at + 8 + 4 * sources.len();
            let place = self.out.get_mut(at..end)?;
            let (head, list) = place.split_first_chunk_mut::<8>()?;
            let ([high, low], [a, b, c, d]) = (count.to_be_bytes(), group.octets());
            *head = [kind.0, 0, high, low, a, b, c, d];
            list.as_chunks_mut::<4>().0.iter_mut().zip(sources).for_each(|(to, from)| *to = from.octets());
            Some(end)
        });
        self.records += 1;
        self
    }

    /// Writes count and checksum; the report's length, or `None` when it did not fit.
    pub fn finish(self) -> Option<usize> {
        let message = self.out.get_mut(..self.len?)?;
        message.get_mut(6..8)?.copy_from_slice(&self.records.to_be_bytes());
        icmp4::make(message);
        self.len
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)] // tests
mod tests {
    use super::*;

    fn query(bytes: &[u8]) -> Result<IgmpMessage<'_>, IgmpInvalid> {
        let bytes: &mut [u8] = bytes.to_vec().leak();
        if bytes.len() >= 8 {
            icmp4::make(bytes);
        }
        IgmpMessage::parse(bytes)
    }

    #[test]
    fn length_and_code_tell_the_version_of_a_query() {
        let IgmpMessage::Query(v1) = query(&[0x11, 0, 0, 0, 0, 0, 0, 0]).unwrap() else { panic!() };
        assert_eq!((v1.version, v1.max_response_ms), (IgmpVersion::V1, 10_000));
        let IgmpMessage::Query(v2) = query(&[0x11, 100, 0, 0, 232, 1, 1, 1]).unwrap() else { panic!() };
        assert_eq!((v2.version, v2.max_response_ms), (IgmpVersion::V2, 10_000));
        assert_eq!(v2.group, Some([232, 1, 1, 1].into()));
        let v3 = [0x11, 0x8f, 0, 0, 232, 1, 1, 1, 2, 125, 0, 1, 10, 0, 0, 1];
        let IgmpMessage::Query(v3) = query(&v3).unwrap() else { panic!() };
        assert_eq!((v3.version, v3.max_response_ms), (IgmpVersion::V3, (31 << 3) * 100));
        assert_eq!((v3.robustness, v3.interval_secs, v3.sources), (2, 125, &[[10, 0, 0, 1]][..]));
    }

    #[test]
    fn messages_that_lie_are_refused() {
        let lying = [0x11, 100, 0, 0, 232, 1, 1, 1, 2, 125, 0, 9, 10, 0, 0, 1];
        assert_eq!(query(&lying), Err(IgmpInvalid::Length));
        assert_eq!(query(&lying[..7]), Err(IgmpInvalid::Length));
        assert_eq!(query(&lying[..10]), Err(IgmpInvalid::Length));
        assert_eq!(query(&[0x11, 100, 0, 0, 10, 1, 1, 1]), Err(IgmpInvalid::Group));
        assert_eq!(query(&[0x16, 0, 0, 0, 0, 0, 0, 0]), Err(IgmpInvalid::Group));
        assert_eq!(query(&[0x77, 0, 0, 0, 0, 0, 0, 0]), Err(IgmpInvalid::Type));
        assert_eq!(IgmpMessage::parse(&[0x11, 0, 1, 2, 0, 0, 0, 0]), Err(IgmpInvalid::Checksum));
    }

    #[test]
    fn records_of_a_report_are_read_and_must_be_whole() {
        let mut out = [0; 64];
        let (group, source) = (Ipv4Addr::new(232, 1, 1, 1), Ipv4Addr::new(10, 0, 0, 1));
        let report = ReportWriter::new(&mut out).record(RecordType::ALLOW_NEW_SOURCES, group, &[source]);
        let len = report.record(RecordType::CHANGE_TO_EXCLUDE, group, &[]).finish().unwrap();
        let IgmpMessage::ReportV3(records) = IgmpMessage::parse(&out[..len]).unwrap() else { panic!() };
        let all: Vec<_> = records.collect();
        assert_eq!((all.len(), all[0].sources, all[1].kind), (2, &[source.octets()][..], RecordType(4)));
        let mut lying = out[..len].to_vec();
        lying[7] = 3;
        assert_eq!(query(&lying), Err(IgmpInvalid::Length));
        lying[7] = 2;
        lying[11] = 9;
        assert_eq!(query(&lying), Err(IgmpInvalid::Length));
        lying[11] = 1;
        lying[12] = 10;
        assert_eq!(query(&lying), Err(IgmpInvalid::Group));
    }

    #[test]
    fn queries_are_written_as_they_are_read() {
        let mut out = [0; 64];
        let (group, source) = (Ipv4Addr::new(232, 1, 1, 1), Ipv4Addr::new(10, 0, 0, 1));
        let len = write_query(&mut out, (Some(group), &[source]), (100, 2, 60)).unwrap();
        let IgmpMessage::Query(query) = IgmpMessage::parse(&out[..len]).unwrap() else { panic!() };
        assert_eq!((query.group, query.sources), (Some(group), &[source.octets()][..]));
        assert_eq!((query.max_response_ms, query.robustness, query.interval_secs), (10_000, 2, 60));
        assert_eq!(write_query(&mut out[..11], (None, &[]), (100, 2, 60)), None);
    }

    #[test]
    fn reports_are_written_with_their_sources() {
        let mut out = [0xff; 40];
        let (group, source) = (Ipv4Addr::new(232, 1, 1, 1), Ipv4Addr::new(10, 0, 0, 1));
        let report = ReportWriter::new(&mut out).record(RecordType::ALLOW_NEW_SOURCES, group, &[source]);
        assert_eq!(report.finish(), Some(20));
        assert!(icmp4::verify(&out[..20]));
        assert_eq!(out[4..20], [0, 0, 0, 1, 5, 0, 0, 1, 232, 1, 1, 1, 10, 0, 0, 1]);
        assert_eq!(ReportWriter::new(&mut [0; 15]).record(RecordType(1), group, &[]).finish(), None);
        assert_eq!(old_message(IgmpVersion::V2, true, group)[0], 0x17);
    }
}
