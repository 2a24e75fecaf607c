//! Multicast listener discovery as a listener needs it (RFC 3810, RFC 2710): queries are read,
//! reports are written, and reports are read for tests and traces.
//!
//! Every message goes out with hop limit 1, from a link-local address (the unspecified one while
//! there is none), behind [`ROUTER_ALERT`].
//!
//! ```
//! use shoal_wire::ip6_address::ALL_MLD2_ROUTERS;
//! use shoal_wire::mld::{RecordType, ReportWriter};
//! let (src, group) = ("fe80::1".parse()?, "ff02::1:ff00:1".parse()?);
//! let mut bytes = [0; 64];
//! let report = ReportWriter::new(&mut bytes).record(RecordType::CHANGE_TO_EXCLUDE, group, &[]);
//! assert_eq!(report.finish(src, ALL_MLD2_ROUTERS), Some(28));
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

use std::error::Error;
use std::fmt;
use std::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::ip6_address::is_link_local;
use crate::{Icmp6Header, Icmp6Type, Ip6Header, IpProtocol, icmp6};

/// The hop limit of every message (RFC 3810 section 5).
pub const HOP_LIMIT: u8 = 1;

/// The hop-by-hop header in front of every message: a router alert of value 0 (RFC 2711 section 2.1)
/// and padding; ICMPv6 follows.
pub const ROUTER_ALERT: [u8; 8] = [IpProtocol::ICMP6.0, 0, 5, 2, 0, 0, 1, 0];

/// The rule that a query breaks. It is ignored (RFC 3810 section 6.2, RFC 2710 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MldInvalid {
    /// The hop limit is not 1.
    HopLimit,
    /// The source is not link-local.
    Source,
    /// The hop-by-hop header has no router alert.
    RouterAlert,
    /// The message is no query.
    Type,
    /// The message is shorter than 24 bytes, between 24 and 28, or than its list of sources.
    Length,
    /// The group asked for is no multicast address.
    Group,
}

impl fmt::Display for MldInvalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HopLimit => "hop limit is not 1",
            Self::Source => "source address is not link-local",
            Self::RouterAlert => "no router alert",
            Self::Type => "not a listener query",
            Self::Length => "bad length",
            Self::Group => "group is not multicast",
        })
    }
}

impl Error for MldInvalid {}

/// The 24 bytes that queries of both versions share, and all of a report or "done" of version 1 (RFC
/// 2710 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MldHeader {
    header: Icmp6Header,
    max_response_code: U16,
    reserved: U16,
    group: [u8; 16],
}

impl MldHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 24;

    /// A report or "done" of version 1, without checksum. A report goes to the group, "done" to all
    /// routers of the link (RFC 2710 section 8).
    pub const fn new(kind: Icmp6Type, group: Ipv6Addr) -> Self {
        Self {
            header: Icmp6Header::new(kind, 0),
            max_response_code: U16::ZERO,
            reserved: U16::ZERO,
            group: group.octets(),
        }
    }

    /// The group; unspecified in a general query.
    pub const fn group(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.group)
    }

    /// Writes the message with its checksum into `out` and returns its length in bytes; `None` when
    /// it does not fit.
    pub fn write(&self, out: &mut [u8], src: Ipv6Addr, dst: Ipv6Addr) -> Option<usize> {
        let out = out.get_mut(..Self::LEN)?;
        out.copy_from_slice(self.as_bytes());
        icmp6::make(src, dst, out);
        Some(Self::LEN)
    }
}

impl fmt::Display for MldHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  group {}", self.header, self.group())
    }
}

/// What only a query of version 2 has (RFC 3810 section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct QueryRest {
    suppress_and_robustness: u8,
    interval_code: u8,
    number_of_sources: U16,
}

/// Who speaks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MldVersion {
    /// RFC 2710: listeners answer with reports of version 1.
    V1,
    /// RFC 3810.
    V2,
}

/// A query: "who listens?".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MldQuery<'a> {
    /// The version of the querier.
    pub version: MldVersion,
    /// The group asked for; `None` in a general query.
    pub group: Option<Ipv6Addr>,
    /// A listener answers within this time, in milliseconds.
    pub max_response_ms: u32,
    /// S: other routers must not reset their timers.
    pub suppress_router_processing: bool,
    /// QRV: how often a listener repeats a change; 0 where the query does not say.
    pub robustness: u8,
    /// QQIC, decoded: time between general queries in seconds; 0 where the query does not say.
    pub interval_secs: u32,
    /// The sources asked for; none: any.
    pub sources: &'a [[u8; 16]],
}

impl<'a> MldQuery<'a> {
    /// The query if every rule of RFC 3810 section 5.1.14 holds. `message` is the ICMPv6 message, cut to
    /// the payload length; `router_alert` is the one [`walk`](crate::ip6_ext::walk) found. The
    /// checksum has been verified.
    pub fn check(ip: &Ip6Header, router_alert: Option<u16>, message: &'a [u8]) -> Result<Self, MldInvalid> {
        if ip.hop_limit() != HOP_LIMIT {
            return Err(MldInvalid::HopLimit);
        }
        if !is_link_local(ip.src()) {
            return Err(MldInvalid::Source);
        }
        router_alert.ok_or(MldInvalid::RouterAlert)?;
        Self::parse(message)
    }

    /// The query in `message`, from any sender.
    pub fn parse(message: &'a [u8]) -> Result<Self, MldInvalid> {
        let (fixed, rest) = MldHeader::ref_from_prefix(message).map_err(|_| MldInvalid::Length)?;
        if fixed.header.kind() != Icmp6Type::MULTICAST_LISTENER_QUERY {
            return Err(MldInvalid::Type);
        }
        let group = fixed.group();
        if !group.is_unspecified() && !group.is_multicast() {
            return Err(MldInvalid::Group);
        }
        let query = Self {
            version: MldVersion::V1,
            group: (!group.is_unspecified()).then_some(group),
            max_response_ms: u32::from(fixed.max_response_code.get()),
            suppress_router_processing: false,
            robustness: 0,
            interval_secs: 0,
            sources: &[],
        };
        // RFC 3810 8.1: the length tells the version.
        if rest.is_empty() {
            return Ok(query);
        }
        let (more, rest) = QueryRest::ref_from_prefix(rest).map_err(|_| MldInvalid::Length)?;
        let sources = rest.as_chunks::<16>().0.get(..usize::from(more.number_of_sources.get()));
        Ok(Self {
            version: MldVersion::V2,
            max_response_ms: decoded(fixed.max_response_code.get(), 12),
            suppress_router_processing: more.suppress_and_robustness & 8 != 0,
            robustness: more.suppress_and_robustness & 7,
            interval_secs: decoded(u16::from(more.interval_code), 4),
            sources: sources.ok_or(MldInvalid::Length)?,
            ..query
        })
    }
}

/// RFC 3810 sections 5.1.3 and 5.1.9: a code whose highest bit is set is a floating-point number of 3
/// bits of exponent and `mantissa` bits of mantissa, the first of which is not written.
const fn decoded(code: u16, mantissa: u32) -> u32 {
    let code = code as u32;
    if code >> (mantissa + 3) == 0 {
        return code;
    }
    let fraction = code & ((1 << mantissa) - 1) | 1 << mantissa;
    fraction << ((code >> mantissa & 7) + 3)
}

/// What a record says about a group (RFC 3810 section 5.2.12).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RecordType(pub u8);

impl RecordType {
    /// Listens to these sources only; answers a query.
    pub const MODE_IS_INCLUDE: Self = Self(1);
    /// Listens to all but these sources; answers a query.
    pub const MODE_IS_EXCLUDE: Self = Self(2);
    /// From now on to these sources only; with none: leaves the group.
    pub const CHANGE_TO_INCLUDE: Self = Self(3);
    /// From now on to all but these sources; with none: joins the group.
    pub const CHANGE_TO_EXCLUDE: Self = Self(4);
    /// To these sources as well.
    pub const ALLOW_NEW_SOURCES: Self = Self(5);
    /// No longer to these sources.
    pub const BLOCK_OLD_SOURCES: Self = Self(6);
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::MODE_IS_INCLUDE => "mode_is_include",
            Self::MODE_IS_EXCLUDE => "mode_is_exclude",
            Self::CHANGE_TO_INCLUDE => "change_to_include",
            Self::CHANGE_TO_EXCLUDE => "change_to_exclude",
            Self::ALLOW_NEW_SOURCES => "allow_new_sources",
            Self::BLOCK_OLD_SOURCES => "block_old_sources",
            Self(other) => return write!(f, "unknown {other}"),
        };
        f.write_str(name)
    }
}

/// Type, code, checksum and number of records of a report of version 2.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ReportHeader {
    header: Icmp6Header,
    reserved: U16,
    number_of_records: U16,
}

/// A record without its sources.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RecordHeader {
    kind: u8,
    aux_words: u8,
    number_of_sources: U16,
    group: [u8; 16],
}

/// Writes a report of version 2 into a buffer, without allocation. It goes to
/// [`ALL_MLD2_ROUTERS`](crate::ip6_address::ALL_MLD2_ROUTERS). A record that does not fit spoils it:
/// [`finish`](Self::finish) then says `None`.
#[derive(Debug)]
pub struct ReportWriter<'a> {
    out: &'a mut [u8],
    len: Option<usize>,
    records: u16,
}

impl<'a> ReportWriter<'a> {
    /// A report without records.
    pub fn new(out: &'a mut [u8]) -> Self {
        let head = ReportHeader {
            header: Icmp6Header::new(Icmp6Type::MULTICAST_LISTENER_REPORT_V2, 0),
            reserved: U16::ZERO,
            number_of_records: U16::ZERO,
        };
        Self { out, len: Some(0), records: 0 }.bytes(head.as_bytes())
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.len = self.len.and_then(|len| {
            let end = len + bytes.len();
            self.out.get_mut(len..end)?.copy_from_slice(bytes);
            Some(end)
        });
        self
    }

    /// What is listened to, or no longer, in `group`.
    pub fn record(mut self, kind: RecordType, group: Ipv6Addr, sources: &[Ipv6Addr]) -> Self {
        let (Ok(number), Some(records)) = (u16::try_from(sources.len()), self.records.checked_add(1)) else {
            self.len = None;
            return self;
        };
        self.records = records;
        let head = RecordHeader {
            kind: kind.0,
            aux_words: 0,
            number_of_sources: U16::new(number),
            group: group.octets(),
        };
        let this = self.bytes(head.as_bytes());
        sources.iter().fold(this, |this, source| this.bytes(&source.octets()))
    }

    /// Joins `group`, from any source.
    pub fn join(self, group: Ipv6Addr) -> Self {
        self.record(RecordType::CHANGE_TO_EXCLUDE, group, &[])
    }

    /// Leaves `group`.
    pub fn leave(self, group: Ipv6Addr) -> Self {
        self.record(RecordType::CHANGE_TO_INCLUDE, group, &[])
    }

    /// Writes count and checksum and returns the message's length in bytes; `None` when it did not fit.
    pub fn finish(self, src: Ipv6Addr, dst: Ipv6Addr) -> Option<usize> {
        let message = self.out.get_mut(..self.len?)?;
        ReportHeader::mut_from_prefix(message).ok()?.0.number_of_records = U16::new(self.records);
        icmp6::make(src, dst, message);
        self.len
    }
}

/// One record of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MldRecord<'a> {
    /// What it says.
    pub kind: RecordType,
    /// About which group.
    pub group: Ipv6Addr,
    /// And which sources.
    pub sources: &'a [[u8; 16]],
}

/// The records of a report of version 2. Each step takes at least 20 bytes; a record that is cut off
/// ends the walk.
#[derive(Clone, Debug)]
pub struct MldRecords<'a> {
    rest: &'a [u8],
    left: u16,
}

impl<'a> MldRecords<'a> {
    /// The records of an ICMPv6 message; `None` when it is no report of version 2.
    pub fn of_message(message: &'a [u8]) -> Option<Self> {
        let (head, rest) = ReportHeader::ref_from_prefix(message).ok()?;
        let is_report = head.header.kind() == Icmp6Type::MULTICAST_LISTENER_REPORT_V2;
        is_report.then(|| Self { rest, left: head.number_of_records.get() })
    }
}

impl<'a> Iterator for MldRecords<'a> {
    type Item = MldRecord<'a>;

    fn next(&mut self) -> Option<MldRecord<'a>> {
        self.left = self.left.checked_sub(1)?;
        let record = std::mem::take(&mut self.rest);
        let (head, rest) = RecordHeader::ref_from_prefix(record).ok()?;
        let (sources, rest) = rest.split_at_checked(16 * usize::from(head.number_of_sources.get()))?;
        // RFC 3810 5.2.11: auxiliary data is ignored.
        self.rest = rest.get(4 * usize::from(head.aux_words)..)?;
        let group = Ipv6Addr::from_octets(head.group);
        Some(MldRecord { kind: RecordType(head.kind), group, sources: sources.as_chunks().0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip6_address::ALL_MLD2_ROUTERS;

    const SRC: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 9);

    fn query(group: Ipv6Addr, max_response_code: u16, rest: &[u8]) -> Vec<u8> {
        let mut query = MldHeader::new(Icmp6Type::MULTICAST_LISTENER_QUERY, group);
        query.max_response_code = U16::new(max_response_code);
        [query.as_bytes(), rest].concat()
    }

    #[test]
    fn the_length_tells_the_version() {
        // RFC 3810 8.1.
        let bytes = query(Ipv6Addr::UNSPECIFIED, 0x8000, &[]);
        let one = MldQuery::parse(&bytes).unwrap();
        assert_eq!((one.version, one.group, one.max_response_ms), (MldVersion::V1, None, 0x8000));
        for rest in 1..4 {
            assert_eq!(MldQuery::parse(&query(GROUP, 1, &vec![0; rest])), Err(MldInvalid::Length));
        }
        assert_eq!(MldQuery::parse(&bytes[..23]), Err(MldInvalid::Length));
        let bytes = query(GROUP, 10_000, &[[0xf | 0x50, 125, 0, 1].as_slice(), &SRC.octets(), &[9]].concat());
        let two = MldQuery::parse(&bytes).unwrap();
        assert_eq!((two.version, two.group, two.max_response_ms), (MldVersion::V2, Some(GROUP), 10_000));
        assert_eq!((two.suppress_router_processing, two.robustness, two.interval_secs), (true, 7, 125));
        assert_eq!(two.sources, [SRC.octets()]);
        assert_eq!(MldQuery::parse(&query(GROUP, 1, &[2, 125, 0, 1])), Err(MldInvalid::Length));
    }

    #[test]
    fn long_times_are_floating_point() {
        // RFC 3810 5.1.3 and 5.1.9: (mantissa | first bit) << (exponent + 3).
        assert_eq!([0x7fff, 0x8000, 0xffff].map(|code| decoded(code, 12)), [0x7fff, 0x8000, 0x1fff << 10]);
        assert_eq!([0x7f, 0x80, 0x9f, 0xff].map(|code| decoded(code, 4)), [127, 128, 0x1f << 4, 0x1f << 10]);
    }

    #[test]
    fn rules_of_a_query_are_checked() {
        // RFC 3810 5.1.14, 6.2.
        let bytes = query(GROUP, 1, &[]);
        let ip = |src, hop_limit| Ip6Header::new(src, GROUP, IpProtocol::ICMP6, hop_limit, 24);
        assert!(MldQuery::check(&ip(SRC, 1), Some(0), &bytes).is_ok());
        assert_eq!(MldQuery::check(&ip(SRC, 2), Some(0), &bytes), Err(MldInvalid::HopLimit));
        assert_eq!(MldQuery::check(&ip(GROUP, 1), Some(0), &bytes), Err(MldInvalid::Source));
        assert_eq!(MldQuery::check(&ip(SRC, 1), None, &bytes), Err(MldInvalid::RouterAlert));
        assert_eq!(MldQuery::parse(&query(SRC, 1, &[])), Err(MldInvalid::Group));
        let report = MldHeader::new(Icmp6Type::MULTICAST_LISTENER_REPORT, GROUP);
        assert_eq!(MldQuery::parse(report.as_bytes()), Err(MldInvalid::Type));
    }

    #[test]
    fn a_report_is_read_back_as_written() {
        let mut out = [0xff; 100];
        let report = ReportWriter::new(&mut out).join(GROUP).leave(ALL_MLD2_ROUTERS);
        let report = report.record(RecordType::ALLOW_NEW_SOURCES, GROUP, &[SRC, GROUP]);
        assert_eq!(report.finish(SRC, ALL_MLD2_ROUTERS), Some(8 + 20 + 20 + 52));
        assert!(icmp6::verify(SRC, ALL_MLD2_ROUTERS, &out));
        let records: Vec<_> = MldRecords::of_message(&out).unwrap().collect();
        let sources = [SRC.octets(), GROUP.octets()];
        let want = [
            MldRecord { kind: RecordType(4), group: GROUP, sources: &[] },
            MldRecord { kind: RecordType(3), group: ALL_MLD2_ROUTERS, sources: &[] },
            MldRecord { kind: RecordType(5), group: GROUP, sources: &sources },
        ];
        assert_eq!(records, want);
        assert_eq!(MldRecords::of_message(&out[..99]).unwrap().count(), 2);
        assert_eq!(ReportWriter::new(&mut out[..27]).join(GROUP).finish(SRC, GROUP), None);
        assert_eq!(
            RecordType(5).to_string() + " " + &RecordType(9).to_string(),
            "allow_new_sources unknown 9"
        );
    }

    #[test]
    fn reports_of_version_1_have_a_right_checksum() {
        let mut out = [0; 30];
        let done = MldHeader::new(Icmp6Type::MULTICAST_LISTENER_DONE, GROUP);
        assert_eq!(done.write(&mut out, SRC, GROUP), Some(24));
        assert!(icmp6::verify(SRC, GROUP, &out[..24]));
        assert_eq!(done.write(&mut out[..23], SRC, GROUP), None);
        assert_eq!(done.to_string(), "ICMP multicast_listener_done checksum 0x0\n  group ff0e::9");
    }

    #[test]
    fn the_router_alert_is_found_by_a_walk() {
        let ip = Ip6Header::new(SRC, ALL_MLD2_ROUTERS, IpProtocol::IP6_HOP_BY_HOP_OPTIONS, 1, 8);
        let packet = [ip.as_bytes(), &ROUTER_ALERT].concat();
        let chain = crate::ip6_ext::walk(&packet, crate::ip6_ext::Reader::Router).unwrap();
        assert_eq!((chain.router_alert, chain.protocol), (Some(0), IpProtocol::ICMP6));
    }
}
