//! IPv6 extension headers (RFC 8200 section 4), walked without trusting their lengths.
//!
//! [`walk`] answers what a node needs to know of a packet whose header does not name the upper layer
//! at once: which protocol that is and where it starts, the fragment header if there is one, and
//! what is wrong, down to code and pointer of the parameter problem. Packets without extension
//! headers do not come here: [`is_extension`] is one test of a bit.
//!
//! A walk ends after [`MAX_HEADERS`] headers, [`MAX_LEN`] bytes and [`MAX_OPTIONS`] options of a
//! header: RFC 8504 section 5.3 lets a node give up on longer chains, and attackers send them.

use std::error::Error;
use std::fmt;

use zerocopy::FromBytes;

use crate::icmp6::{ParameterProblem, code};
use crate::ip6_options::{Action, Ip6Option, Ip6Options};
use crate::{Ip6FragmentHeader, Ip6Header, IpProtocol};

/// Most extension headers of a packet. The longest chain of RFC 8200 section 4.1 has 7.
pub const MAX_HEADERS: usize = 8;
/// Most bytes of all extension headers together.
pub const MAX_LEN: usize = 1024;
/// Most options of one header, padding included.
pub const MAX_OPTIONS: usize = 32;

/// One bit for each protocol number that [`walk`] steps over.
const EXTENSIONS: u64 = 1 << IpProtocol::IP6_HOP_BY_HOP_OPTIONS.0
    | 1 << IpProtocol::IPV6_ROUTE.0
    | 1 << IpProtocol::IPV6_FRAGMENTATION.0
    | 1 << IpProtocol::IPSEC_AH.0
    | 1 << IpProtocol::IP6_DESTINATION_OPTIONS.0;

/// Another header follows this one. ESP hides what follows and "no next header" says that nothing
/// does; both end a chain as an upper layer does.
#[inline(always)]
pub const fn is_extension(protocol: IpProtocol) -> bool {
    protocol.0 < 64 && EXTENSIONS >> protocol.0 & 1 != 0
}

/// One extension header, not judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip6ExtHeader<'a> {
    /// Which one.
    pub protocol: IpProtocol,
    /// Offset of its first byte in the packet. Its own next header field is that byte.
    pub offset: usize,
    /// All of its bytes.
    pub bytes: &'a [u8],
}

impl Ip6ExtHeader<'_> {
    /// The fragment header, if it is one.
    #[inline]
    pub fn fragment(&self) -> Option<Ip6FragmentHeader> {
        match self.protocol {
            IpProtocol::IPV6_FRAGMENTATION => Ip6FragmentHeader::read_from_bytes(self.bytes).ok(),
            _ => None,
        }
    }
}

/// Steps from header to header of a packet; judges nothing but that the bytes are there. After the
/// walk [`protocol`](Self::protocol) and [`offset`](Self::offset) say where it ended.
///
/// A later fragment ends it, and so does a second fragment header: what follows makes sense only
/// after reassembly.
#[derive(Clone, Debug)]
pub struct Ip6ExtHeaders<'a> {
    packet: &'a [u8],
    protocol: IpProtocol,
    offset: usize,
    next_header_at: usize,
    left: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Whole,
    FirstFragment,
    Ended,
}

impl<'a> Ip6ExtHeaders<'a> {
    /// The extension headers of the IPv6 packet that starts at `packet`; `None` when its header is
    /// cut off. Bytes past the payload length do not count.
    pub fn of_packet(packet: &'a [u8]) -> Option<Self> {
        let (ip, _) = Ip6Header::ref_from_prefix(packet).ok()?;
        let claimed = match ip.payload_length() {
            // RFC 2675 3: a jumbogram, whose length is in an option.
            0 => packet.len(),
            length => Ip6Header::LEN + usize::from(length),
        };
        Some(Self {
            packet: packet.get(..claimed).unwrap_or(packet),
            protocol: ip.protocol(),
            offset: Ip6Header::LEN,
            next_header_at: Ip6Header::NEXT_HEADER_AT,
            left: MAX_HEADERS,
            state: State::Whole,
        })
    }

    /// The header that comes next: the upper layer's after the walk.
    pub const fn protocol(&self) -> IpProtocol {
        self.protocol
    }

    /// Where it starts in the packet, in bytes; maybe past what is there.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    fn step(&mut self) -> Result<Ip6ExtHeader<'a>, Ip6ExtError> {
        let (offset, protocol) = (self.offset, self.protocol);
        self.left = self.left.checked_sub(1).ok_or(Ip6ExtError::TooManyHeaders)?;
        let rest = self.packet.get(offset..).unwrap_or(&[]);
        let [next, units, ..] = *rest else { return Err(Ip6ExtError::Truncated { offset }) };
        let len = match protocol {
            IpProtocol::IPV6_FRAGMENTATION => Ip6FragmentHeader::LEN,
            // RFC 4302 2.2: words of 4 bytes, less two.
            IpProtocol::IPSEC_AH => (usize::from(units) + 2) * 4,
            // RFC 8200 4.3: units of 8 bytes, not counting the first.
            _ => (usize::from(units) + 1) * 8,
        };
        if offset + len > Ip6Header::LEN + MAX_LEN {
            return Err(Ip6ExtError::TooLong);
        }
        let bytes = rest.get(..len).ok_or(Ip6ExtError::Truncated { offset })?;
        self.next_header_at = offset;
        (self.offset, self.protocol) = (offset + len, IpProtocol(next));
        let header = Ip6ExtHeader { protocol, offset, bytes };
        if let Some(fragment) = header.fragment() {
            self.state = if fragment.offset() == 0 { State::FirstFragment } else { State::Ended };
        }
        Ok(header)
    }
}

impl<'a> Iterator for Ip6ExtHeaders<'a> {
    type Item = Result<Ip6ExtHeader<'a>, Ip6ExtError>;

    fn next(&mut self) -> Option<Self::Item> {
        let again = self.state == State::FirstFragment && self.protocol == IpProtocol::IPV6_FRAGMENTATION;
        if self.state == State::Ended || again || !is_extension(self.protocol) {
            return None;
        }
        let step = self.step();
        if step.is_err() {
            self.state = State::Ended;
        }
        Some(step)
    }
}

impl std::iter::FusedIterator for Ip6ExtHeaders<'_> {}

/// Who walks. RFC 8200 section 4: on its way a packet's options are looked at only in the hop-by-hop
/// header; the rest is for its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// A router that forwards the packet.
    Router,
    /// The node whose address is the destination.
    Destination,
}

/// The fragment header of a packet and where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip6Fragment {
    /// Offset of the header in the packet, in bytes.
    pub at: usize,
    /// The header.
    pub header: Ip6FragmentHeader,
}

/// What a walk found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip6Chain {
    /// The upper layer; ESP or "no next header" where the chain ends with them. Of a later fragment
    /// it is the first header of the fragmentable part, whose bytes are not here.
    pub protocol: IpProtocol,
    /// Where the upper layer starts in the packet, in bytes; of a later fragment, its piece.
    pub offset: usize,
    /// Where the field stands that names the upper layer.
    pub next_header_at: usize,
    /// The fragment header.
    pub fragment: Option<Ip6Fragment>,
    /// The value of a router alert in the hop-by-hop header: every router on the way looks into the
    /// packet (RFC 2711).
    pub router_alert: Option<u16>,
    /// Where the fragmentable part starts: a fragment header is put there (RFC 8200 section 4.5).
    pub fragmentable_at: usize,
    /// Where the field stands that names the header at `fragmentable_at`.
    pub fragmentable_next_header_at: usize,
}

impl Ip6Chain {
    /// The upper layer's own header is elsewhere: this is a fragment but not the first.
    #[inline(always)]
    pub const fn is_later_fragment(&self) -> bool {
        matches!(self.fragment, Some(fragment) if fragment.header.offset() != 0)
    }

    /// The answer to an upper layer that this router does not know (RFC 8200 section 4, RFC 4443 section 3.4).
    pub const fn unrecognized_next_header(&self) -> ParameterProblem {
        ParameterProblem { code: code::UNRECOGNIZED_NEXT_HEADER, pointer: self.next_header_at as u32 }
    }
}

/// Why a chain is not walked to its end. The packet is dropped in every case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ip6ExtError {
    /// A header is not all there.
    Truncated {
        /// Where it starts in the packet.
        offset: usize,
    },
    /// More than [`MAX_HEADERS`] headers.
    TooManyHeaders,
    /// More than [`MAX_LEN`] bytes of headers.
    TooLong,
    /// More than [`MAX_OPTIONS`] options in a header.
    TooManyOptions,
    /// An unrecognised option says to drop the packet without a word.
    Discard {
        /// Where the option's type stands in the packet.
        offset: usize,
    },
    /// The source gets an error.
    Problem(ParameterProblem),
}

impl Ip6ExtError {
    const fn problem(code: u8, at: usize) -> Self {
        Self::Problem(ParameterProblem { code, pointer: at as u32 })
    }
}

impl fmt::Display for Ip6ExtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset } => write!(f, "IPv6 extension header at offset {offset} truncated"),
            Self::TooManyHeaders => write!(f, "more than {MAX_HEADERS} IPv6 extension headers"),
            Self::TooLong => write!(f, "more than {MAX_LEN} bytes of IPv6 extension headers"),
            Self::TooManyOptions => write!(f, "more than {MAX_OPTIONS} options in an IPv6 header"),
            Self::Discard { offset } => write!(f, "unrecognised IPv6 option at offset {offset}"),
            Self::Problem(ParameterProblem { code, pointer }) => {
                write!(f, "IPv6 parameter problem of code {code} at offset {pointer}")
            }
        }
    }
}

impl Error for Ip6ExtError {}

/// Walks the extension headers of the IPv6 packet that starts at `packet`, as far as `reader` may.
///
/// `packet` may end before the payload does, but not within the headers. A slice without the 40
/// bytes of the IPv6 header is [`Truncated`](Ip6ExtError::Truncated) at 0.
///
/// ```
/// use shoal_wire::IpProtocol;
/// use shoal_wire::ip6_ext::{Reader, walk};
/// let mut packet = [0; 56];
/// // Version 6, 16 bytes of payload, destination options first, which say that UDP follows.
/// (packet[0], packet[5], packet[6], packet[40]) = (0x60, 16, 60, 17);
/// let chain = walk(&packet, Reader::Destination)?;
/// assert_eq!((chain.protocol, chain.offset), (IpProtocol::UDP, 48));
/// # Ok::<(), shoal_wire::ip6_ext::Ip6ExtError>(())
/// ```
pub fn walk(packet: &[u8], reader: Reader) -> Result<Ip6Chain, Ip6ExtError> {
    let (ip, _) = Ip6Header::ref_from_prefix(packet).map_err(|_| Ip6ExtError::Truncated { offset: 0 })?;
    let mut headers = Ip6ExtHeaders::of_packet(packet).ok_or(Ip6ExtError::Truncated { offset: 0 })?;
    let claimed = Ip6Header::LEN + usize::from(ip.payload_length());
    let mut chain = Ip6Chain {
        protocol: headers.protocol,
        offset: headers.offset,
        next_header_at: headers.next_header_at,
        fragment: None,
        router_alert: None,
        fragmentable_at: headers.offset,
        fragmentable_next_header_at: headers.next_header_at,
    };
    while let Some(step) = headers.next() {
        let header = match step {
            Err(Ip6ExtError::Truncated { .. }) if packet.len() >= claimed => {
                return Err(chain.cut_off(reader).unwrap_or(Ip6ExtError::Truncated { offset: chain.offset }));
            }
            step => step?,
        };
        if header.protocol == IpProtocol::IP6_HOP_BY_HOP_OPTIONS && header.offset != Ip6Header::LEN {
            // RFC 8200 4: only right behind the IPv6 header; elsewhere it is not recognised.
            return Err(Ip6ExtError::Problem(chain.unrecognized_next_header()));
        }
        chain.enter(&header, reader, ip.dst_bytes()[0] == 0xff)?;
        (chain.protocol, chain.offset) = (headers.protocol, headers.offset);
        chain.next_header_at = headers.next_header_at;
        // RFC 8200 4.5: hop-by-hop and routing headers, and what is before them, are in each fragment.
        let in_each = matches!(header.protocol, IpProtocol::IP6_HOP_BY_HOP_OPTIONS | IpProtocol::IPV6_ROUTE);
        if in_each && chain.fragment.is_none() {
            chain.fragmentable_at = chain.offset;
            chain.fragmentable_next_header_at = chain.next_header_at;
        }
    }
    let nothing_left = chain.offset >= claimed && chain.protocol != IpProtocol::IP6_NONXT;
    match chain.cut_off(reader) {
        Some(error) if nothing_left => Err(error),
        _ => Ok(chain),
    }
}

impl Ip6Chain {
    /// What a header missing from the packet means if this is a first fragment. RFC 7112 section 5 and RFC 8200 section
    /// 4.5: it has all headers, or its source gets an error, with pointer 0.
    fn cut_off(&self, reader: Reader) -> Option<Ip6ExtError> {
        let first = self.fragment.is_some_and(|f| f.header.offset() == 0 && f.header.more_fragments());
        (first && reader == Reader::Destination)
            .then(|| Ip6ExtError::problem(code::INCOMPLETE_HEADER_CHAIN, 0))
    }

    /// Reads one header as far as `reader` may.
    fn enter(
        &mut self,
        header: &Ip6ExtHeader<'_>,
        reader: Reader,
        to_group: bool,
    ) -> Result<(), Ip6ExtError> {
        if header.protocol == IpProtocol::IP6_HOP_BY_HOP_OPTIONS {
            return judge(header, to_group, |option| {
                self.router_alert = self.router_alert.or(option.router_alert());
                option.router_alert().is_some()
            });
        }
        if let Some(fragment) = header.fragment() {
            self.fragment = Some(Ip6Fragment { at: header.offset, header: fragment });
        }
        match (header.protocol, reader) {
            (IpProtocol::IP6_DESTINATION_OPTIONS, Reader::Destination) => judge(header, to_group, |_| false),
            // RFC 8200 4.4: this node knows no routing type; with segments left that is an error.
            // RFC 5095 3: type 0 is no exception.
            (IpProtocol::IPV6_ROUTE, Reader::Destination) if header.bytes.get(3) != Some(&0) => {
                Err(Ip6ExtError::problem(code::ERRONEOUS_HEADER_FIELD, header.offset + 2))
            }
            _ => Ok(()),
        }
    }
}

/// Judges the options of a hop-by-hop or destination options header; `recognized` says which options
/// beyond padding the reader knows (RFC 8200 section 4.2).
fn judge(
    header: &Ip6ExtHeader<'_>,
    to_group: bool,
    mut recognized: impl FnMut(&Ip6Option<'_>) -> bool,
) -> Result<(), Ip6ExtError> {
    for (n, option) in Ip6Options::of_header(header).enumerate() {
        if n == MAX_OPTIONS {
            return Err(Ip6ExtError::TooManyOptions);
        }
        // A length past the header is a wrong field: the pointer is at the length, or at the type of an option
        // in the header's last byte, which has none.
        let option = option.map_err(|bad| {
            let last = header.offset + header.bytes.len() - 1;
            Ip6ExtError::problem(code::ERRONEOUS_HEADER_FIELD, last.min(bad.offset + 1))
        })?;
        if option.is_padding() || recognized(&option) {
            continue;
        }
        match option.action() {
            Action::Skip => {}
            Action::Report => return Err(Ip6ExtError::problem(code::UNRECOGNIZED_OPTION, option.offset)),
            Action::ReportUnlessGroup if !to_group => {
                return Err(Ip6ExtError::problem(code::UNRECOGNIZED_OPTION, option.offset));
            }
            Action::Discard | Action::ReportUnlessGroup => {
                return Err(Ip6ExtError::Discard { offset: option.offset });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntoBytes;

    const HOP: u8 = 0;
    const ROUTE: u8 = 43;
    const FRAGMENT: u8 = 44;
    const ESP: u8 = 50;
    const AH: u8 = 51;
    const NONE: u8 = 59;
    const OPTIONS: u8 = 60;
    const UDP: u8 = 17;

    /// A packet to a unicast address with these headers, the last of which names `last`; then 8 bytes.
    fn packet(headers: &[(u8, &[u8])], last: u8) -> Vec<u8> {
        let names = headers.iter().map(|(name, _)| *name).chain([last]).collect::<Vec<_>>();
        let mut body = Vec::new();
        for ((_, bytes), next) in headers.iter().zip(&names[1..]) {
            body.push(*next);
            body.extend(*bytes);
        }
        body.extend([0xaa; 8]);
        let (src, dst) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let ip = Ip6Header::new(src, dst, IpProtocol(names[0]), 64, body.len() as u16);
        [ip.as_bytes(), &body].concat()
    }

    fn to_group(mut packet: Vec<u8>) -> Vec<u8> {
        packet[Ip6Header::DST_AT] = 0xff;
        packet
    }

    fn problem(code: u8, pointer: u32) -> Result<Ip6Chain, Ip6ExtError> {
        Err(Ip6ExtError::Problem(ParameterProblem { code, pointer }))
    }

    const PADDING: &[u8] = &[0, 1, 4, 0, 0, 0, 0];
    const NOT_LEFT: &[u8] = &[0, 4, 0, 0, 0, 0, 0];
    const FIRST: &[u8] = &[0, 0, 1, 0, 0, 0, 9];
    const LATER: &[u8] = &[0, 5, 0xa8, 0, 0, 0, 9];

    #[test]
    fn walks_every_header_to_the_upper_layer() {
        let ah: &[u8] = &[1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
        let bytes = packet(
            &[
                (HOP, PADDING),
                (OPTIONS, PADDING),
                (ROUTE, NOT_LEFT),
                (FRAGMENT, FIRST),
                (AH, ah),
                (OPTIONS, PADDING),
            ],
            UDP,
        );
        let chain = walk(&bytes, Reader::Destination).unwrap();
        assert_eq!((chain.protocol, chain.offset, chain.next_header_at), (IpProtocol::UDP, 92, 84));
        assert_eq!((chain.fragmentable_at, chain.fragmentable_next_header_at), (64, 56));
        let fragment = chain.fragment.unwrap();
        assert_eq!((fragment.at, fragment.header.id(), fragment.header.more_fragments()), (64, 9, true));
        assert_eq!(walk(&bytes, Reader::Router), Ok(chain));
        assert_eq!(chain.unrecognized_next_header().message().pointer(), 84);
    }

    #[test]
    fn a_packet_without_extension_headers_ends_at_once() {
        for last in [UDP, ESP, NONE] {
            let chain = walk(&packet(&[], last), Reader::Destination).unwrap();
            assert_eq!((chain.protocol, chain.offset, chain.next_header_at), (IpProtocol(last), 40, 6));
            assert_eq!((chain.fragmentable_at, chain.fragmentable_next_header_at), (40, 6));
            assert!(!is_extension(IpProtocol(last)));
        }
        let all: Vec<u8> = (0..=255).filter(|n| is_extension(IpProtocol(*n))).collect();
        assert_eq!(all, [HOP, ROUTE, FRAGMENT, AH, OPTIONS]);
    }

    #[test]
    fn hop_by_hop_options_come_first_or_not_at_all() {
        // RFC 8200 4: the pointer is at the field that names it.
        let bytes = packet(&[(OPTIONS, PADDING), (HOP, PADDING)], UDP);
        assert_eq!(walk(&bytes, Reader::Router), problem(code::UNRECOGNIZED_NEXT_HEADER, 40));
        let bytes = packet(&[(HOP, PADDING), (HOP, PADDING)], UDP);
        assert_eq!(walk(&bytes, Reader::Destination), problem(code::UNRECOGNIZED_NEXT_HEADER, 40));
    }

    #[test]
    fn unrecognised_options_do_what_their_bits_say() {
        // RFC 8200 4.2; a router does not look into destination options.
        for (kind, unicast, group) in [
            (0x1e, None, None),
            (0x5e, Some(Ip6ExtError::Discard { offset: 43 }), Some(Ip6ExtError::Discard { offset: 43 })),
            (0x9e, problem(2, 43).err(), problem(2, 43).err()),
            (0xde, problem(2, 43).err(), Some(Ip6ExtError::Discard { offset: 43 })),
        ] {
            let options = [0, 0, kind, 3, 1, 1, 1];
            for header in [HOP, OPTIONS] {
                let bytes = packet(&[(header, &options)], UDP);
                assert_eq!(walk(&bytes, Reader::Destination).err(), unicast, "{kind:x}");
                let at_router = if header == HOP { unicast } else { None };
                assert_eq!(walk(&bytes, Reader::Router).err(), at_router, "{kind:x}");
                assert_eq!(walk(&to_group(bytes), Reader::Destination).err(), group, "{kind:x}");
            }
        }
    }

    #[test]
    fn a_router_alert_is_heard_in_the_hop_by_hop_header_only() {
        let alert: &[u8] = &[0, 5, 2, 0, 0, 1, 0];
        assert_eq!(walk(&packet(&[(HOP, alert)], 58), Reader::Router).unwrap().router_alert, Some(0));
        assert_eq!(walk(&packet(&[(OPTIONS, alert)], 58), Reader::Destination).unwrap().router_alert, None);
    }

    #[test]
    fn an_option_past_its_header_is_a_wrong_field() {
        let bytes = packet(&[(HOP, &[0, 1, 5, 0, 0, 0, 0])], UDP);
        assert_eq!(walk(&bytes, Reader::Router), problem(code::ERRONEOUS_HEADER_FIELD, 43));
        let bytes = packet(&[(HOP, &[0, 1, 3, 0, 0, 0, 1])], UDP);
        assert_eq!(walk(&bytes, Reader::Router), problem(code::ERRONEOUS_HEADER_FIELD, 47));
    }

    #[test]
    fn a_routing_header_with_segments_left_stops_at_its_destination() {
        // RFC 8200 4.4, RFC 5095 3: the pointer is at the routing type.
        for kind in [0, 4, 99] {
            let bytes = packet(&[(ROUTE, &[0, kind, 1, 0, 0, 0, 0])], UDP);
            assert_eq!(walk(&bytes, Reader::Destination), problem(code::ERRONEOUS_HEADER_FIELD, 42));
            assert!(walk(&bytes, Reader::Router).is_ok());
        }
    }

    #[test]
    fn a_later_fragment_hides_what_it_carries() {
        let chain = walk(&packet(&[(FRAGMENT, LATER)], OPTIONS), Reader::Destination).unwrap();
        assert_eq!((chain.protocol.0, chain.offset, chain.is_later_fragment()), (OPTIONS, 48, true));
        assert_eq!(chain.fragment.unwrap().header.offset(), 0x5a8);
        // A fragment within a fragment waits for the reassembly of the outer one.
        let chain = walk(&packet(&[(FRAGMENT, FIRST), (FRAGMENT, LATER)], UDP), Reader::Destination).unwrap();
        assert_eq!((chain.protocol.0, chain.offset, chain.is_later_fragment()), (FRAGMENT, 48, false));
    }

    #[test]
    fn a_first_fragment_has_the_whole_chain() {
        // RFC 7112 5.
        for last in [OPTIONS, UDP] {
            let mut bytes = packet(&[(FRAGMENT, FIRST)], last);
            bytes.truncate(48);
            bytes[5] = 8;
            assert_eq!(walk(&bytes, Reader::Destination), problem(code::INCOMPLETE_HEADER_CHAIN, 0));
            assert_eq!(walk(&bytes, Reader::Router).is_ok(), last == UDP);
        }
        // Bytes that are claimed but not at hand are no lie of the sender.
        let bytes = packet(&[(FRAGMENT, FIRST)], UDP);
        assert!(walk(&bytes[..48], Reader::Destination).is_ok());
        let bytes = packet(&[(FRAGMENT, FIRST)], OPTIONS);
        assert_eq!(walk(&bytes[..48], Reader::Destination), Err(Ip6ExtError::Truncated { offset: 48 }));
    }

    #[test]
    fn long_chains_are_given_up() {
        let many = vec![(OPTIONS, PADDING); MAX_HEADERS + 1];
        assert!(walk(&packet(&many[1..], UDP), Reader::Router).is_ok());
        assert_eq!(walk(&packet(&many, UDP), Reader::Router), Err(Ip6ExtError::TooManyHeaders));
        // 127 units of 8 bytes and the first: exactly the most.
        let mut long = vec![127, 1, 253];
        long.resize(255, 0);
        long.extend([[1, 254].as_slice(), &[0; 254], &[1, 254], &[0; 254], &[1, 254], &[0; 254]].concat());
        long.resize(1023, 0);
        assert!(walk(&packet(&[(OPTIONS, &long)], UDP), Reader::Router).is_ok());
        let longer = packet(&[(OPTIONS, &long), (OPTIONS, PADDING)], UDP);
        assert_eq!(walk(&longer, Reader::Router), Err(Ip6ExtError::TooLong));
        let zeroes = [[4].as_slice(), &[0; 38]].concat();
        let pad1 = packet(&[(HOP, &zeroes)], UDP);
        assert_eq!(walk(&pad1, Reader::Router), Err(Ip6ExtError::TooManyOptions));
    }

    #[test]
    fn every_cut_is_truncated_or_ends_past_the_headers() {
        let bytes = packet(&[(HOP, PADDING), (FRAGMENT, FIRST), (OPTIONS, PADDING)], UDP);
        for cut in 0..bytes.len() {
            let want = match cut {
                0..40 => 0,
                40..64 => 40 + (cut - 40) / 8 * 8,
                _ => {
                    assert_eq!(walk(&bytes[..cut], Reader::Destination).unwrap().offset, 64);
                    continue;
                }
            };
            let error = walk(&bytes[..cut], Reader::Destination);
            assert_eq!(error, Err(Ip6ExtError::Truncated { offset: want }), "{cut}");
        }
        // A header past the payload length is not there, whatever the frame was padded with.
        let mut short = bytes;
        short[5] = 12;
        assert_eq!(walk(&short, Reader::Router), Err(Ip6ExtError::Truncated { offset: 48 }));
    }
}
