//! What is different between the families: where a fragment says what it is, and the header of the whole.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_buffer::{Packet, SwIfIndex};
use shoal_interface::IfTable;
use shoal_wire::icmp6;
use shoal_wire::ip6_ext::{Ip6ExtError, Ip6ExtHeaders};
use shoal_wire::{FromBytes, Ip4Header, Ip6FragmentHeader, Ip6Header, IpProtocol, ip6_address};

use crate::l4::Words;
use crate::table::Arrival;

/// Longest datagram, from its header on for IPv4, behind it for IPv6.
const LONGEST: usize = u16::MAX as usize;

/// A fragment: what it says of itself, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<K> {
    /// What names its datagram.
    pub key: K,
    /// Its place.
    pub arrival: Arrival,
    /// Bytes in front of its payload.
    pub header: usize,
    /// Bytes of it without padding.
    pub total: usize,
}

/// What is wrong with a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its headers do not fit what is there.
    Malformed,
    /// It carries nothing, or not in units of 8 bytes though others follow. Where the error to the sender points.
    Length(Option<u32>),
    /// It ends behind the longest packet. Where the error to the sender points.
    TooLong(Option<u32>),
    /// It is the first one and does not have all headers up to the upper layer's.
    MissingUpper,
}

/// The error to the sender of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The field at this offset is wrong.
    Field(u32),
    /// Headers are missing from the first fragment.
    MissingUpper,
}

/// A family of addresses.
pub trait Family: Copy + Send + Sync + 'static {
    /// What names a datagram.
    type Key: Copy + Eq + Hash + Send + Sync + fmt::Display + fmt::Debug;

    /// `ip4` or `ip6`.
    const NAME: &'static str;
    /// `IP4` or `IP6`, for sentences.
    const TITLE: &'static str;
    /// Names of the nodes.
    const NODES: Nodes;
    /// Whether senders of packets that pass through get an error when the rest did not come. RFC 1122, 3.3.2 asks it of
    /// the destination alone, which is who a router is not.
    const TELLS_TRANSIT: bool;

    /// Whether a packet is part of another. One fragment that is the whole (RFC 6946) is not.
    fn is_fragment(pkt: &Packet<'_>) -> bool;

    /// Whether a fragment is its datagram's first.
    fn is_first(pkt: &Packet<'_>) -> bool;

    /// Reads a fragment; `zone` is the table, or for addresses that mean something on one link only that link.
    ///
    /// # Errors
    /// What is wrong with it.
    fn read(pkt: &Packet<'_>, zone: u32) -> Result<Fragment<Self::Key>, Fault>;

    /// The table an interface's packets are looked up in.
    fn table(interfaces: &IfTable, interface: SwIfIndex) -> u32;

    /// What the transport header of a packet says that is no fragment or the first; `None` when it is not all there.
    fn l4(pkt: &Packet<'_>) -> Option<Words>;

    /// Whether a packet that is no fragment surely has all of its transport header, and right behind its own. `false` is no
    /// answer: [`Self::l4`] has it.
    fn has_transport(_: &Packet<'_>) -> bool {
        false
    }

    /// Makes the header of the first fragment that of the whole, with `len` bytes behind it; `None` when there is no
    /// such packet.
    fn finish(pkt: &mut Packet<'_>, header: usize, len: usize, ecn: u8) -> Option<()>;

    /// Takes bytes off both ends of a fragment's payload; `None`, and it may be of no use, when that cannot be.
    fn trim(pkt: &mut Packet<'_>, front: usize, back: usize) -> Option<()>;

    /// Leaves in a packet that its datagram did not come in time.
    fn ask_timeout(pkt: &mut Packet<'_>, for_us: bool);

    /// Leaves in a packet that byte `at` of it is wrong.
    fn ask_problem(pkt: &mut Packet<'_>, problem: Problem);
}

/// Names of the nodes of a family.
#[derive(Clone, Copy, Debug)]
pub struct Nodes {
    /// The same for fragments that another thread handed over.
    pub handoff: &'static str,
    /// Puts datagrams together: a feature.
    pub feature: &'static str,
    /// The same for fragments that are for this router.
    pub local: &'static str,
    /// The same for fragments of packets whose destination is another node's, as a tunnel's end: whole ones are looked up again.
    pub custom: &'static str,
    /// Where they are looked up.
    pub lookup: &'static str,
    /// Lets fragments go whose time is over.
    pub timer: &'static str,
    /// Where they go.
    pub expired: &'static str,
    /// Lets fragments go that waited too long for the first.
    pub sv_timer: &'static str,
    /// Where they go.
    pub sv_expired: &'static str,
    /// Shallow virtual reassembly.
    pub sv: &'static str,
    /// The same for fragments that another thread handed over.
    pub sv_handoff: &'static str,
    /// The feature.
    pub sv_feature: &'static str,
    /// The feature of packets that go out.
    pub sv_output_feature: &'static str,
    /// Who tells senders.
    pub icmp_error: &'static str,
    /// The receiver of packets for this router.
    pub receiver: &'static str,
    /// Where features of packets to one host run.
    pub unicast: &'static str,
    /// Where features of packets that go out run.
    pub output: &'static str,
}

/// IPv4.
#[derive(Clone, Copy, Debug)]
pub struct Ip4;

/// IPv6.
#[derive(Clone, Copy, Debug)]
pub struct Ip6;

/// RFC 791, 3.2: what fragments of one datagram have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key4 {
    zone: u32,
    src: u32,
    dst: u32,
    id: u16,
    protocol: u8,
}

/// RFC 8200, 4.5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key6 {
    zone: u32,
    id: u32,
    src: u128,
    dst: u128,
}

// By few words: the hash takes one step for each two.
impl Hash for Key4 {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.src) << 32 | u64::from(self.dst));
        state.write_u64(u64::from(self.zone) << 32 | u64::from(self.id) << 8 | u64::from(self.protocol));
    }
}

impl Hash for Key6 {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.src);
        state.write_u128(self.dst);
        state.write_u64(u64::from(self.zone) << 32 | u64::from(self.id));
    }
}

impl fmt::Display for Key4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key4 { zone, src, dst, id, protocol } = *self;
        let (src, dst) = (Ipv4Addr::from_bits(src), Ipv4Addr::from_bits(dst));
        write!(f, "fib_index: {zone}, src: {src}, dst: {dst}, frag_id: {id}, proto: {protocol}")
    }
}

impl fmt::Display for Key6 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key6 { zone, id, src, dst } = *self;
        let (src, dst) = (Ipv6Addr::from_bits(src), Ipv6Addr::from_bits(dst));
        let (kind, zone) = if zone & LINK != 0 { ("sw_if_index", zone & !LINK) } else { ("fib_index", zone) };
        write!(f, "{kind}: {zone}, src: {src}, dst: {dst}, frag_id: {id}")
    }
}

/// In a zone: it is an interface, not a table.
pub const LINK: u32 = 1 << 31;

impl Family for Ip4 {
    type Key = Key4;
    const NAME: &'static str = "ip4";
    const TITLE: &'static str = "IP4";
    const TELLS_TRANSIT: bool = false;
    const NODES: Nodes = Nodes {
        handoff: "ip4-full-reassembly-handoff",
        feature: "ip4-full-reassembly-feature",
        local: "ip4-local-full-reassembly",
        custom: "ip4-full-reassembly-custom",
        lookup: "ip4-lookup",
        timer: "ip4-full-reassembly-expire-walk",
        expired: "ip4-full-reassembly-expired",
        sv_timer: "ip4-sv-reassembly-expire-walk",
        sv_expired: "ip4-sv-reassembly-expired",
        sv: "ip4-sv-reassembly",
        sv_handoff: "ip4-sv-reassembly-handoff",
        sv_feature: "ip4-sv-reassembly-feature",
        sv_output_feature: "ip4-sv-reassembly-output-feature",
        icmp_error: "ip4-icmp-error",
        receiver: "ip4-local",
        unicast: "ip4-unicast",
        output: "ip4-output",
    };

    #[inline(always)]
    fn is_fragment(pkt: &Packet<'_>) -> bool {
        pkt.header::<Ip4Header>().is_some_and(Ip4Header::is_fragment)
    }

    fn is_first(pkt: &Packet<'_>) -> bool {
        pkt.header::<Ip4Header>().is_some_and(|ip| ip.fragment_offset() == 0)
    }

    fn read(pkt: &Packet<'_>, zone: u32) -> Result<Fragment<Key4>, Fault> {
        let ip = pkt.header::<Ip4Header>().ok_or(Fault::Malformed)?;
        let (header, total) = (ip.header_len(), usize::from(ip.total_length()));
        if header < Ip4Header::LEN || header > pkt.segment_len() || total < header || total > pkt.len() {
            return Err(Fault::Malformed);
        }
        let (start, len, more) = (usize::from(ip.fragment_offset()), total - header, ip.more_fragments());
        // RFC 791, 2.3 wants units of 8 bytes where others follow, but what is beside them makes no harm.
        if len == 0 || header + start + len > LONGEST {
            return Err(Fault::Malformed);
        }
        let (start, end) = (start as u32, (start + len) as u32);
        let arrival = Arrival { start, end, more, ecn: ip.ecn(), buffers: pkt.segments().count() as u32 };
        let (src, dst) = (ip.src_u32(), ip.dst_u32());
        let key = Key4 { zone, src, dst, id: ip.id(), protocol: ip.protocol().0 };
        Ok(Fragment { key, arrival, header, total })
    }

    fn table(interfaces: &IfTable, interface: SwIfIndex) -> u32 {
        interfaces.ip4_table(interface)
    }

    #[inline(always)]
    fn l4(pkt: &Packet<'_>) -> Option<Words> {
        let ip = pkt.header::<Ip4Header>()?;
        let (protocol, header) = (ip.protocol(), ip.header_len());
        let total = usize::from(ip.total_length()).min(pkt.segment_len());
        Words::read(protocol, pkt.data().get(header..total)?)
    }

    #[inline(always)]
    fn has_transport(pkt: &Packet<'_>) -> bool {
        // Up to TCP's flags, which is more than is read of any other.
        const LEAST: usize = Ip4Header::LEN + 14;
        pkt.segment_len() >= LEAST
            && pkt.header::<Ip4Header>().is_some_and(|ip| {
                ip.version_ihl() == Ip4Header::VERSION_IHL_NO_OPTIONS
                    && usize::from(ip.total_length()) >= LEAST
            })
    }

    fn finish(pkt: &mut Packet<'_>, header: usize, len: usize, ecn: u8) -> Option<()> {
        let total = u16::try_from(header + len).ok()?;
        let (ip, rest) = Ip4Header::mut_from_prefix(pkt.data_mut()).ok()?;
        let options = rest.get(..header - Ip4Header::LEN)?;
        ip.set_total_length(total);
        // RFC 791, 3.2: it is no fragment any more. Whether it may be cut again is as before.
        ip.set_flags_and_fragment_offset(ip.flags_and_fragment_offset() & Ip4Header::DONT_FRAGMENT);
        ip.set_tos(ip.tos() & !3 | ecn);
        let checksum = ip.compute_checksum_with(options);
        ip.set_checksum(checksum);
        Some(())
    }

    fn trim(pkt: &mut Packet<'_>, front: usize, back: usize) -> Option<()> {
        let ip = pkt.header::<Ip4Header>()?;
        let (header, total) = (ip.header_len(), usize::from(ip.total_length()));
        let left = total.checked_sub(header + front + back)?;
        pkt.truncate(total - back)?;
        // The header moves to where the payload begins now, which must be where it can be moved to.
        pkt.data().get(..header + front)?;
        pkt.data_mut().copy_within(..header, front);
        pkt.pull(front)?;
        pkt.header_mut::<Ip4Header>()?.set_total_length((header + left) as u16);
        Some(())
    }

    fn ask_timeout(pkt: &mut Packet<'_>, _: bool) {
        // RFC 792: code 1 of time exceeded.
        shoal_ip4::IcmpError::REASSEMBLY.ask(pkt);
    }

    fn ask_problem(pkt: &mut Packet<'_>, problem: Problem) {
        // Only IPv6 has headers that can be missing.
        let at = if let Problem::Field(at) = problem { at } else { 0 };
        shoal_ip4::IcmpError::parameter_problem(at as u8).ask(pkt);
    }
}

/// The fragment header: where it is, and where the field that names it.
fn fragment_header(pkt: &Packet<'_>) -> Option<(Ip6FragmentHeader, usize, usize)> {
    let mut named_at = Ip6Header::NEXT_HEADER_AT;
    for header in Ip6ExtHeaders::of_packet(pkt.data())? {
        let header = header.ok()?;
        if let Some(fragment) = header.fragment() {
            return Some((fragment, header.offset, named_at));
        }
        named_at = header.offset;
    }
    None
}

/// Whether a first fragment has all headers up to the upper layer's, or the first bytes of that. RFC 8200, 4.5.
fn names_upper(pkt: &Packet<'_>, total: usize) -> bool {
    let Some(mut headers) = Ip6ExtHeaders::of_packet(pkt.data()) else { return false };
    let cut = headers.by_ref().any(|header| matches!(header, Err(Ip6ExtError::Truncated { .. })));
    !cut && (headers.offset() < total || headers.protocol() == IpProtocol::IP6_NONXT)
}

impl Family for Ip6 {
    type Key = Key6;
    const NAME: &'static str = "ip6";
    const TITLE: &'static str = "IP6";
    const TELLS_TRANSIT: bool = true;
    const NODES: Nodes = Nodes {
        handoff: "ip6-full-reassembly-handoff",
        feature: "ip6-full-reassembly-feature",
        local: "ip6-local-full-reassembly",
        custom: "ip6-full-reassembly-custom",
        lookup: "ip6-lookup",
        timer: "ip6-full-reassembly-expire-walk",
        expired: "ip6-full-reassembly-expired",
        sv_timer: "ip6-sv-reassembly-expire-walk",
        sv_expired: "ip6-sv-reassembly-expired",
        sv: "ip6-sv-reassembly",
        sv_handoff: "ip6-sv-reassembly-handoff",
        sv_feature: "ip6-sv-reassembly-feature",
        sv_output_feature: "ip6-sv-reassembly-output-feature",
        icmp_error: "ip6-icmp-error",
        receiver: "ip6-local",
        unicast: "ip6-unicast",
        output: "ip6-output",
    };

    #[inline(always)]
    fn is_fragment(pkt: &Packet<'_>) -> bool {
        let Some(ip) = pkt.header::<Ip6Header>() else { return false };
        shoal_wire::ip6_ext::is_extension(ip.protocol())
            && fragment_header(pkt).is_some_and(|(fragment, ..)| !fragment.is_atomic())
    }

    fn is_first(pkt: &Packet<'_>) -> bool {
        fragment_header(pkt).is_some_and(|(fragment, ..)| fragment.offset() == 0)
    }

    fn read(pkt: &Packet<'_>, zone: u32) -> Result<Fragment<Key6>, Fault> {
        let ip = pkt.header::<Ip6Header>().ok_or(Fault::Malformed)?;
        let (fragment, at, _) = fragment_header(pkt).ok_or(Fault::Malformed)?;
        let header = at + Ip6FragmentHeader::LEN;
        let total = Ip6Header::LEN + usize::from(ip.payload_length());
        if header > pkt.segment_len() || total < header || total > pkt.len() {
            return Err(Fault::Malformed);
        }
        let (start, len) = (usize::from(fragment.offset()), total - header);
        let more = fragment.more_fragments();
        if more && !(len.is_multiple_of(8) && (pkt.len() - header).is_multiple_of(8)) {
            // RFC 8200, 4.5: told with a pointer to the payload length. As in VPP, bytes behind the payload count too.
            return Err(Fault::Length(Some(Ip6Header::PAYLOAD_LENGTH_AT as u32)));
        }
        if len == 0 {
            return Err(Fault::Length(None));
        }
        if at - Ip6Header::LEN + start + len > LONGEST {
            return Err(Fault::TooLong(Some((at + Ip6FragmentHeader::OFFSET_AT) as u32)));
        }
        if more && start == 0 && !names_upper(pkt, total) {
            return Err(Fault::MissingUpper);
        }
        let (start, end) = (start as u32, (start + len) as u32);
        let arrival = Arrival { start, end, more, ecn: ip.ecn(), buffers: pkt.segments().count() as u32 };
        let (src, dst) = (ip.src(), ip.dst());
        let link = ip6_address::is_link_local(src) || ip6_address::is_link_local(dst) || dst.is_multicast();
        let zone = if link { LINK | pkt.rx().0 } else { zone };
        let key = Key6 { zone, id: fragment.id(), src: src.to_bits(), dst: dst.to_bits() };
        Ok(Fragment { key, arrival, header, total })
    }

    fn table(interfaces: &IfTable, interface: SwIfIndex) -> u32 {
        interfaces.ip6_table(interface)
    }

    fn l4(pkt: &Packet<'_>) -> Option<Words> {
        let ip = pkt.header::<Ip6Header>()?;
        if !shoal_wire::ip6_ext::is_extension(ip.protocol()) {
            let total = Ip6Header::LEN + usize::from(ip.payload_length());
            return Words::read(ip.protocol(), pkt.data().get(Ip6Header::LEN..total.min(pkt.segment_len()))?);
        }
        let mut headers = Ip6ExtHeaders::of_packet(pkt.data())?;
        let whole = headers.by_ref().all(|header| header.is_ok());
        let total = Ip6Header::LEN + usize::from(pkt.header::<Ip6Header>()?.payload_length());
        let upper = pkt.data().get(headers.offset()..total.min(pkt.segment_len())).filter(|_| whole)?;
        Words::read(headers.protocol(), upper)
    }

    #[inline(always)]
    fn has_transport(pkt: &Packet<'_>) -> bool {
        let Some(ip) = pkt.header::<Ip6Header>() else { return false };
        let least = match ip.protocol() {
            IpProtocol::TCP => 14,
            IpProtocol::UDP => 4,
            _ => return false,
        };
        usize::from(ip.payload_length()) >= least && pkt.segment_len() >= Ip6Header::LEN + least
    }

    fn finish(pkt: &mut Packet<'_>, header: usize, len: usize, ecn: u8) -> Option<()> {
        let (fragment, at, named_at) = fragment_header(pkt)?;
        let payload = u16::try_from(at - Ip6Header::LEN + len).ok()?;
        let data = pkt.data_mut();
        *data.get_mut(named_at)? = fragment.next_header().0;
        data.get_mut(..header)?.copy_within(..at, Ip6FragmentHeader::LEN);
        pkt.pull(Ip6FragmentHeader::LEN)?;
        let ip = pkt.header_mut::<Ip6Header>()?;
        ip.set_payload_length(payload);
        ip.set_traffic_class(ip.traffic_class() & !3 | ecn);
        Some(())
    }

    fn trim(_: &mut Packet<'_>, _: usize, _: usize) -> Option<()> {
        // RFC 5722.
        None
    }

    fn ask_timeout(pkt: &mut Packet<'_>, for_us: bool) {
        let message = shoal_ip6::IcmpError::REASSEMBLY;
        if for_us { message.for_us() } else { message }.ask(pkt);
    }

    fn ask_problem(pkt: &mut Packet<'_>, problem: Problem) {
        let (code, pointer) = match problem {
            Problem::Field(at) => (icmp6::code::ERRONEOUS_HEADER_FIELD, at),
            // RFC 8200, 4.5: the pointer is 0.
            Problem::MissingUpper => (icmp6::code::INCOMPLETE_HEADER_CHAIN, 0),
        };
        let problem = icmp6::ParameterProblem { code, pointer };
        shoal_ip6::IcmpError::parameter_problem(problem).ask(pkt);
    }
}
