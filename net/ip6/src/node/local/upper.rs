//! The upper layer of a packet for this router: where it begins behind extension headers, and whether its sums are right.

use shoal_buffer::{Flags, Packet};
use shoal_wire::ip6_ext::{Ip6ExtError, Reader, is_extension, walk};
use shoal_wire::{Ip6Header, IpProtocol, UdpHeader, checksum::Sum};

use super::Error;
use crate::IcmpError;

/// The upper layer: which, where it begins and how long it is, in bytes; and where its number stands.
#[derive(Clone, Copy)]
pub(super) struct Upper {
    pub protocol: IpProtocol,
    pub at: usize,
    pub len: usize,
    pub named_at: usize,
}

/// Goes through the extension headers; `Err(Ok(_))` is an answer to the sender.
pub(super) fn upper(pkt: &Packet<'_>) -> Result<Upper, Result<IcmpError, Error>> {
    let ip = pkt.header::<Ip6Header>().ok_or(Err(Error::TooShort))?;
    let total = Ip6Header::LEN + usize::from(ip.payload_length());
    let (protocol, at, named_at) = if is_extension(ip.protocol()) {
        let chain = walk(pkt.data(), Reader::Destination).map_err(|e| match e {
            Ip6ExtError::Truncated { .. } => Err(Error::TooShort),
            Ip6ExtError::Discard { .. } => Err(Error::Discard),
            Ip6ExtError::Problem(problem) => Ok(IcmpError::parameter_problem(problem)),
            _ => Err(Error::TooMany),
        })?;
        // RFC 6946: a fragment of one piece is a whole packet.
        let whole =
            |f: shoal_wire::ip6_ext::Ip6Fragment| f.header.offset() == 0 && !f.header.more_fragments();
        if chain.fragment.is_some_and(|f| !whole(f)) {
            return Err(Err(Error::Fragment));
        }
        (chain.protocol, chain.offset, chain.next_header_at)
    } else {
        (ip.protocol(), Ip6Header::LEN, Ip6Header::NEXT_HEADER_AT)
    };
    if total > pkt.len() {
        return Err(Err(Error::TooShort));
    }
    let len = total.checked_sub(at).ok_or(Err(Error::TooShort))?;
    Ok(Upper { protocol, at, len, named_at })
}

/// Whether the sum over pseudo-header and `len` bytes of the upper layer is right, unless somebody saw to it already.
fn checksum_ok(pkt: &Packet<'_>, upper: Upper, len: usize) -> bool {
    if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD.with(Flags::L4_CHECKSUM_OK)) {
        return true;
    }
    let Some(ip) = pkt.header::<Ip6Header>() else { return false };
    let mut sum = Sum::pseudo_ip6(ip.src(), ip.dst(), upper.protocol, len as u32);
    let (mut skip, mut left) = (upper.at, len);
    for segment in pkt.segments() {
        let bytes = segment.get(skip..).unwrap_or_default();
        skip = skip.saturating_sub(segment.len());
        let bytes = bytes.get(..left.min(bytes.len())).unwrap_or_default();
        left -= bytes.len();
        sum.add(bytes);
    }
    left == 0 && sum.folded() == 0xffff
}

/// Whether what the upper layer's header says of its packet is true.
pub(super) fn check(pkt: &Packet<'_>, upper: Upper) -> Result<(), Error> {
    match upper.protocol {
        IpProtocol::ICMP6 if !checksum_ok(pkt, upper, upper.len) => Err(Error::IcmpChecksum),
        IpProtocol::TCP if !checksum_ok(pkt, upper, upper.len) => Err(Error::TcpChecksum),
        IpProtocol::IP6_NONXT => Err(Error::NoNextHeader),
        IpProtocol::UDP => {
            let udp = pkt.header_at::<UdpHeader>(upper.at).ok_or(Error::UdpLength)?;
            let length = usize::from(udp.length());
            if length < UdpHeader::LEN || length > upper.len {
                return Err(Error::UdpLength);
            }
            // RFC 8200, 8.1: there is no UDP without a sum.
            if udp.checksum() == 0 || !checksum_ok(pkt, upper, length) {
                return Err(Error::UdpChecksum);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
