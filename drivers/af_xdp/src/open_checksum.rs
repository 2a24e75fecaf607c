//! Frames that never were on a wire, and so have no checksum yet.
//!
//! A local sender leaves the TCP or UDP checksum to its device: the field holds the sum of the pseudo-header, and the
//! kernel's note that the rest is missing is not among what an AF_XDP socket is given. But the field tells: it is the sum
//! of the pseudo-header. A finished checksum is that by chance once in 65,536 packets, and to finish it then once more
//! gives the same number again, because what is added to make it so adds up to nothing (RFC 1071, 2). So a packet that
//! looks like this is taken to owe a checksum, and nothing is ever made wrong by it.

use std::num::NonZeroU16;

use shoal_vnet::{Csum, Gso, GsoKind, Offload, Sum, VnetHdr, ethernet_payload};

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_CWR: u8 = 0x80;

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

/// What a frame from an interface with this MTU owes: nothing, or its transport checksum, and to be cut. `frame` is its
/// beginning, with all headers, and `total` its length.
#[inline]
pub(crate) fn owed(frame: &[u8], total: usize, mtu: usize) -> VnetHdr {
    find_in(frame, total, mtu).map(VnetHdr::from).unwrap_or_default()
}

#[cfg(test)]
fn find(frame: &[u8], mtu: usize) -> Option<Offload> {
    find_in(frame, frame.len(), mtu)
}

fn find_in(frame: &[u8], total: usize, mtu: usize) -> Option<Offload> {
    let net = ethernet_payload(frame)?;
    let packet = frame.get(net..)?;
    let (kind, (protocol, start, len, addresses)) = match packet.first()? >> 4 {
        4 => (GsoKind::Tcp4, ip4(packet)?),
        6 => (GsoKind::Tcp6, ip6(packet)?),
        _ => return None,
    };
    let offset = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return None,
    };
    let field = be16(packet, start + offset)?;
    let mut sum = Sum::default();
    sum.add(addresses);
    sum.add_u16(protocol.into());
    sum.add_u16(u16::try_from(len).ok()?);
    if field != !sum.finish() || offset + 2 > len || start + len > total.checked_sub(net)? {
        return None;
    }
    let gso =
        (protocol == TCP && start + len > mtu).then(|| superframe(packet, net, start, kind, mtu)).flatten();
    let start = u16::try_from(net + start).ok()?;
    Some(Offload { csum: Csum::Partial { start, offset: offset as u16 }, gso })
}

/// A superframe: longer than anything its interface may carry. What it is to be cut into is not among what we are given
/// either, but TCP does not mind where a stream is cut (RFC 9293, 3.7): as long as the MTU allows.
#[cold]
fn superframe(packet: &[u8], net: usize, start: usize, kind: GsoKind, mtu: usize) -> Option<Gso> {
    let headers = start + usize::from(packet.get(start + 12)? >> 4) * 4;
    let size = NonZeroU16::new(u16::try_from(mtu.checked_sub(headers)?).ok()?)?;
    let ecn = packet.get(start + 13)? & TCP_CWR != 0;
    Some(Gso { kind, size, header_len: u16::try_from(net + headers).ok()?, ecn })
}

/// Protocol, where the transport header is, bytes from there, and both addresses.
type Transport<'a> = (u8, usize, usize, &'a [u8]);

fn ip4(packet: &[u8]) -> Option<Transport<'_>> {
    let start = usize::from(packet.first()? & 15) * 4;
    // RFC 791, 3.1: a fragment has not all that is summed.
    if start < 20 || be16(packet, 6)? & 0x3fff != 0 {
        return None;
    }
    let len = usize::from(be16(packet, 2)?).checked_sub(start)?;
    Some((*packet.get(9)?, start, len, packet.get(12..20)?))
}

fn ip6(packet: &[u8]) -> Option<Transport<'_>> {
    let end = 40 + usize::from(be16(packet, 4)?);
    let (mut protocol, mut start) = (*packet.get(6)?, 40);
    // Options only: behind a routing header the destination that was summed is another (RFC 8200, 8.1).
    for _ in 0..4 {
        if !matches!(protocol, 0 | 60) {
            break;
        }
        protocol = *packet.get(start)?;
        start += (usize::from(*packet.get(start + 1)?) + 1) * 8;
    }
    Some((protocol, start, end.checked_sub(start)?, packet.get(8..40)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_vnet::finish_checksum;
    use shoal_wire::{MacAddress, Packet};

    fn frames() -> Vec<Vec<u8>> {
        let (a, b) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
        let [a6, b6] = ["2001:db8::1", "2001:db8::2"].map(|a| a.parse::<std::net::Ipv6Addr>().unwrap());
        vec![
            Packet::ethernet(a, b)
                .ip4([10, 0, 0, 1], [10, 0, 0, 2])
                .udp(1000, 2000)
                .payload(&[7; 33])
                .build(),
            Packet::ethernet(a, b).ip6(a6, b6).udp(1000, 2000).payload(&[7; 33]).build(),
        ]
    }

    fn partial(start: usize) -> Offload {
        Offload { csum: Csum::Partial { start: start as u16, offset: 6 }, gso: None }
    }

    /// The frame as its sender leaves it: the sum of the pseudo-header in the checksum's place.
    fn open(frame: &[u8]) -> (Vec<u8>, usize) {
        let (net, mut frame) = (14, frame.to_vec());
        let packet = &frame[net..];
        let (protocol, start, len, addresses) =
            if packet[0] >> 4 == 4 { ip4(packet).unwrap() } else { ip6(packet).unwrap() };
        let mut sum = Sum::default();
        sum.add(addresses);
        sum.add_u16(protocol.into());
        sum.add_u16(len as u16);
        let field = net + start + 6;
        frame[field..field + 2].copy_from_slice(&(!sum.finish()).to_be_bytes());
        (frame, net + start)
    }

    #[test]
    fn an_open_checksum_is_seen_and_a_finished_one_is_not() {
        for frame in frames() {
            assert_eq!(find(&frame, 1500), None);
            let (mut left, start) = open(&frame);
            assert_eq!(find(&left, 1500), Some(partial(start)));
            let offset = 6;
            finish_checksum(&mut [&mut left], start as u16, offset).unwrap();
            assert_eq!(left, frame, "completed, it is what its sender meant");
        }
    }

    #[test]
    fn a_checksum_that_looks_open_by_chance_is_right_when_it_is_completed() {
        for frame in frames() {
            let (mut left, start) = open(&frame);
            // The payload makes the finished checksum equal to the open one.
            let field: [u8; 2] = left[start + 6..start + 8].try_into().unwrap();
            let at = start + 8;
            let done = (0..=u16::MAX).find_map(|guess| {
                left[at..at + 2].copy_from_slice(&guess.to_be_bytes());
                let mut done = left.clone();
                finish_checksum(&mut [&mut done], start as u16, 6).unwrap();
                (done[start + 6..start + 8] == field).then_some(done)
            });
            assert_eq!(find(&left, 1500), Some(partial(start)));
            assert_eq!(done, Some(left), "completing it changes nothing");
        }
    }

    #[test]
    fn lies_and_stumps_owe_nothing() {
        for frame in frames() {
            let (left, start) = open(&frame);
            for len in 0..left.len() {
                assert_eq!(find(&left[..len], 1500), None, "{len} bytes");
            }
            let mut fragment = left.clone();
            fragment[14 + 6] = 0x20;
            if left[14] >> 4 == 4 {
                assert_eq!(find(&fragment, 1500), None);
            }
            let mut other = left;
            other[start + 6] ^= 1;
            assert_eq!(find(&other, 1500), None);
        }
    }

    #[test]
    fn what_is_longer_than_the_mtu_is_to_be_cut_to_it() {
        let mac = MacAddress([2, 0, 0, 0, 0, 1]);
        let [a6, b6] = ["2001:db8::1", "2001:db8::2"].map(|a| a.parse::<std::net::Ipv6Addr>().unwrap());
        let tcp = |packet: Packet| packet.tcp(1, 2, shoal_wire::TcpFlags::ACK).payload_len(20_000).build();
        for (frame, start, size, kind) in [
            (tcp(Packet::ethernet(mac, mac).ip4([10, 0, 0, 1], [10, 0, 0, 2])), 34, 1460, GsoKind::Tcp4),
            (tcp(Packet::ethernet(mac, mac).ip6(a6, b6)), 54, 1440, GsoKind::Tcp6),
        ] {
            let mut left = frame.clone();
            let mut sum = Sum::default();
            sum.add(if start == 34 { &frame[26..34] } else { &frame[22..54] });
            sum.add_u16(6);
            sum.add_u16((frame.len() - start) as u16);
            left[start + 16..start + 18].copy_from_slice(&(!sum.finish()).to_be_bytes());
            let gso = find(&left, 1500).unwrap().gso.unwrap();
            assert_eq!((gso.kind, gso.size.get(), usize::from(gso.header_len)), (kind, size, start + 20));
            assert_eq!(find(&left, 30_000).unwrap().gso, None);
            assert_eq!(find(&left, 40).unwrap().gso, None, "nothing can be cut to that");
            assert_eq!(find(&frame, 1500), None, "finished, so it was on a wire");
            let segs = [&left[..]];
            let offload = VnetHdr::from(find(&left, 1500).unwrap()).validate(&segs).unwrap();
            let pieces = shoal_vnet::Segments::new(&segs, &offload, 14).unwrap().unwrap();
            assert_eq!(pieces.count(), 20_000usize.div_ceil(usize::from(size)));
        }
    }
}
