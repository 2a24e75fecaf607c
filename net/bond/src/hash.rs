//! Which member a packet goes to, from what it carries.
//!
//! Each packet is looked at for itself: its tags and IPv4 options are skipped, and of fragments, which have no ports but
//! in the first one, only the addresses count, so that a datagram stays on one link.

use shoal_wire::{EtherType, IpProtocol};

use crate::mode::Balance;

/// Bytes of both MAC addresses.
const ADDRESSES: usize = 12;
/// Tags that are skipped at most.
const MOST_TAGS: usize = 4;

/// Whether a protocol's header begins with two ports.
fn has_ports(protocol: u8) -> bool {
    [IpProtocol::TCP.0, IpProtocol::UDP.0].contains(&protocol)
}

/// The words of some bytes, mixed into `state`.
fn mix(state: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(state, |state, chunk| {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        // A multiplication spreads each bit over all above it, the shift brings those down again.
        let mixed = (state ^ u64::from_ne_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    })
}

/// The IP packet behind the tags, and its type.
fn payload(frame: &[u8]) -> Option<(EtherType, &[u8])> {
    let mut at = ADDRESSES;
    for _ in 0..=MOST_TAGS {
        let kind = EtherType(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        if !matches!(kind.0, 0x8100 | 0x88a8 | 0x9100 | 0x9200) {
            return Some((kind, frame.get(at + 2..)?));
        }
        at += 4;
    }
    None
}

/// Addresses and ports of an IP packet.
struct Flow<'a> {
    addresses: &'a [u8],
    ports: Option<&'a [u8; 4]>,
}

fn ip4(packet: &[u8]) -> Option<Flow<'_>> {
    let addresses = packet.get(12..20)?;
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let is_fragment = u16::from_be_bytes(*packet.get(6..)?.first_chunk()?) & 0x3fff != 0;
    let with_ports = !is_fragment && has_ports(*packet.get(9)?);
    Some(Flow { addresses, ports: packet.get(header..).filter(|_| with_ports).and_then(<[u8]>::first_chunk) })
}

fn ip6(packet: &[u8]) -> Option<Flow<'_>> {
    let addresses = packet.get(8..40)?;
    let (mut protocol, mut at) = (*packet.get(6)?, 40);
    // RFC 8200, 4.3: its length is in units of eight bytes without the first.
    if protocol == 0
        && let Some([next, length]) = packet.get(at..).and_then(<[u8]>::first_chunk::<2>)
    {
        protocol = *next;
        at += (usize::from(*length) + 1) * 8;
    }
    let ports = packet.get(at..).filter(|_| has_ports(protocol)).and_then(<[u8]>::first_chunk);
    Some(Flow { addresses, ports })
}

/// A number that is the same for all packets of a flow; with the ports exchanged too, it is another.
pub(crate) fn hash(balance: Balance, frame: &[u8]) -> u32 {
    let macs = frame.get(..ADDRESSES).unwrap_or(frame);
    let flow = match balance {
        Balance::L23 | Balance::L34 => payload(frame).and_then(|(kind, packet)| match kind {
            EtherType::IP4 => ip4(packet),
            EtherType::IP6 => ip6(packet),
            _ => None,
        }),
        _ => None,
    };
    let state = match (flow, balance) {
        (Some(Flow { addresses, ports }), Balance::L34) => {
            mix(mix(0, addresses), ports.map_or(&[][..], |ports| ports.as_slice()))
        }
        (Some(Flow { addresses, .. }), _) => mix(mix(0, macs), addresses),
        (None, _) => mix(0, macs),
    };
    (state >> 32) as u32
}

/// The place of one of `n` members.
#[inline(always)]
pub(crate) fn place(hash: u32, n: usize) -> usize {
    // The high half of a product spreads evenly whatever n is.
    ((u64::from(hash) * n as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use shoal_wire::Packet;

    use super::*;

    fn udp(host: u8, port: u16) -> Vec<u8> {
        Packet::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ip4([10, 0, 0, host], [10, 0, 1, 1])
            .udp(port, 53)
            .payload(b"x")
            .build()
    }

    fn tagged(frame: &[u8], tags: usize) -> Vec<u8> {
        let (macs, rest) = frame.split_at(ADDRESSES);
        [macs, &[0x81, 0, 0, 7].repeat(tags), rest].concat()
    }

    #[test]
    fn flows_are_told_apart_by_what_the_balance_says() {
        let differs = |balance, a: &[u8], b: &[u8]| hash(balance, a) != hash(balance, b);
        assert!(differs(Balance::L34, &udp(1, 1000), &udp(1, 1001)));
        assert!(!differs(Balance::L23, &udp(1, 1000), &udp(1, 1001)));
        assert!(differs(Balance::L23, &udp(1, 1000), &udp(2, 1000)));
        assert!(!differs(Balance::L2, &udp(1, 1000), &udp(2, 1001)));
    }

    #[test]
    fn tags_options_and_fragments_keep_flows_together() {
        let plain = udp(1, 1000);
        for tags in 1..=3 {
            assert_eq!(hash(Balance::L34, &tagged(&plain, tags)), hash(Balance::L34, &plain), "{tags} tags");
        }
        let mut first = udp(1, 1000);
        first[ADDRESSES + 2 + 6] = 0x20;
        let mut next = udp(1, 4321);
        next[ADDRESSES + 2 + 7] = 8;
        assert_eq!(hash(Balance::L34, &first), hash(Balance::L34, &next), "fragments go by their addresses");
        let mut options = plain.clone();
        options[ADDRESSES + 2] = 0x46;
        options.splice(ADDRESSES + 2 + 20..ADDRESSES + 2 + 20, [1, 1, 1, 1]);
        assert_eq!(hash(Balance::L34, &options), hash(Balance::L34, &plain));
    }

    #[test]
    fn many_flows_are_spread_evenly_and_short_frames_are_no_trouble() {
        for n in 1..=8 {
            let mut counts = vec![0usize; n];
            for port in 0..8000 {
                counts[place(hash(Balance::L34, &udp(1, port)), n)] += 1;
            }
            let fair = 8000 / n;
            assert!(counts.iter().all(|count| count.abs_diff(fair) < fair / 5 + 1), "{counts:?}");
        }
        let whole = tagged(&udp(1, 1), 2);
        for balance in [Balance::L2, Balance::L23, Balance::L34] {
            for len in 0..whole.len() {
                hash(balance, &whole[..len]);
            }
        }
    }

    #[test]
    fn ip6_is_read_behind_tags_and_hop_by_hop_options() {
        let six = |port: u16| {
            Packet::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
                .ip6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], [0x2001, 0xdb8, 0, 0, 0, 0, 0, 2])
                .udp(port, 53)
                .payload(b"x")
                .build()
        };
        assert_ne!(hash(Balance::L34, &six(1)), hash(Balance::L34, &six(2)));
        assert_eq!(hash(Balance::L34, &tagged(&six(1), 2)), hash(Balance::L34, &six(1)));
        let mut options = six(1);
        options[ADDRESSES + 2 + 6] = 0;
        options.splice(ADDRESSES + 2 + 40..ADDRESSES + 2 + 40, [17, 0, 1, 4, 0, 0, 0, 0]);
        assert_eq!(hash(Balance::L34, &options), hash(Balance::L34, &six(1)));
    }
}
