//! What a frame's bytes are: where its IP header, its checksums and its payload lie.

use std::ops::Range;

/// The parts of a frame that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    /// The outermost IPv4 header.
    pub(crate) ip4: Option<Range<usize>>,
    /// The outermost IPv6 header.
    pub(crate) ip6: Option<Range<usize>>,
    /// UDP, TCP, ICMP or ICMPv6 right behind it, not in a fragment.
    pub(crate) l4: Option<Segment>,
    /// Bytes that no device on the way looks into.
    pub(crate) payload: Range<usize>,
}

/// A segment of layer 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// IP's number for it: 17 UDP, 6 TCP, 1 ICMP, 58 ICMPv6.
    pub(crate) protocol: u8,
    /// From its header to the packet's end.
    pub(crate) bytes: Range<usize>,
    /// Where its checksum is.
    pub(crate) checksum: usize,
}

const ICMP: u8 = 1;
const IP4_IN_IP: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IP6_IN_IP: u8 = 41;
const ICMP6: u8 = 58;

pub(crate) fn word(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at.checked_add(2)?).and_then(|b| b.try_into().ok()).map(u16::from_be_bytes)
}

impl Headers {
    /// Reads `frame` as far as it can be understood.
    pub(crate) fn of(frame: &[u8]) -> Headers {
        let mut headers = Headers { payload: 14.min(frame.len())..frame.len(), ..Headers::default() };
        let mut at = 12;
        while matches!(word(frame, at), Some(0x8100 | 0x88A8)) {
            at += 4;
        }
        let ethertype = word(frame, at);
        at += 2;
        headers.payload.start = at.min(frame.len());
        match ethertype {
            Some(0x0800) => headers.ip4(frame, at, true),
            Some(0x86DD) => headers.ip6(frame, at, true),
            _ => {}
        }
        headers
    }

    fn ip4(&mut self, frame: &[u8], at: usize, outer: bool) {
        let (Some(first), Some(length), Some(fragment), Some(protocol)) =
            (frame.get(at), word(frame, at + 2), word(frame, at + 6), frame.get(at + 9))
        else {
            return;
        };
        let header = at..at + usize::from(first & 0xF) * 4;
        let end = (at + usize::from(length)).min(frame.len());
        if first >> 4 != 4 || header.len() < 20 || header.end > end {
            return;
        }
        self.payload = header.end..end;
        if outer {
            self.ip4 = Some(header.clone());
        }
        // RFC 791 3.1: neither "more fragments" nor an offset.
        if fragment << 2 == 0 {
            self.behind(frame, *protocol, header.end..end, outer);
        }
    }

    fn ip6(&mut self, frame: &[u8], at: usize, outer: bool) {
        let (Some(first), Some(length), Some(next)) = (frame.get(at), word(frame, at + 4), frame.get(at + 6))
        else {
            return;
        };
        let end = (at + 40 + usize::from(length)).min(frame.len());
        if first >> 4 != 6 || at + 40 > end {
            return;
        }
        if outer {
            self.ip6 = Some(at..at + 40);
        }
        let (mut next, mut at) = (*next, at + 40);
        // RFC 8200 4: hop-by-hop options, routing and destination options, in units of eight bytes beyond the first.
        while let (0 | 43 | 60, Some(following), Some(units)) = (next, frame.get(at), frame.get(at + 1)) {
            at += 8 + usize::from(*units) * 8;
            next = *following;
        }
        self.payload = at.min(end)..end;
        self.behind(frame, next, at.min(end)..end, outer);
    }

    fn behind(&mut self, frame: &[u8], protocol: u8, bytes: Range<usize>, outer: bool) {
        let (header, checksum) = match protocol {
            UDP => (8, 6),
            TCP => {
                let words = frame.get(bytes.start + 12).map_or(0, |b| usize::from(b >> 4));
                (words * 4, 16)
            }
            ICMP | ICMP6 => (8, 2),
            IP4_IN_IP => return self.ip4(frame, bytes.start, false),
            IP6_IN_IP => return self.ip6(frame, bytes.start, false),
            _ => return,
        };
        if header < 8 || bytes.start + header > bytes.end {
            return;
        }
        self.payload = bytes.start + header..bytes.end;
        if outer {
            self.l4 = Some(Segment { protocol, checksum: bytes.start + checksum, bytes });
        }
    }

    /// Where the checksum of the IPv4 header is.
    pub(crate) fn ip4_checksum(&self) -> Option<Range<usize>> {
        self.ip4.as_ref().map(|h| h.start + 10..h.start + 12)
    }

    /// The IP addresses.
    pub(crate) fn addresses(&self) -> Option<Range<usize>> {
        let ip4 = self.ip4.as_ref().map(|h| h.start + 12..h.start + 20);
        ip4.or_else(|| self.ip6.as_ref().map(|h| h.start + 8..h.start + 40))
    }

    /// Makes the checksum of the IPv4 header right.
    pub(crate) fn fix_ip4(&self, frame: &mut [u8]) {
        let Some(header) = self.ip4.clone() else { return };
        put(frame, header.start + 10, 0);
        let made = !sum(frame.get(header.clone()).unwrap_or_default(), 0);
        put(frame, header.start + 10, made);
    }

    /// Makes the checksum of UDP, TCP, ICMP or ICMPv6 right.
    pub(crate) fn fix_l4(&self, frame: &mut [u8]) {
        let Some(segment) = self.l4.clone() else { return };
        put(frame, segment.checksum, 0);
        let made = !self.segment_sum(frame);
        // RFC 768, RFC 8200 8.1: UDP's 0 would mean that there is none.
        put(frame, segment.checksum, if made == 0 && segment.protocol == UDP { 0xFFFF } else { made });
    }

    /// Whether the IPv4 header's checksum is right.
    pub(crate) fn ip4_is_right(&self, frame: &[u8]) -> bool {
        self.ip4.clone().is_some_and(|h| sum(frame.get(h).unwrap_or_default(), 0) == 0xFFFF)
    }

    /// Whether there is a checksum of layer 4, and it is right. A UDP checksum of 0 is none.
    pub(crate) fn l4_is_right(&self, frame: &[u8]) -> bool {
        let Some(segment) = &self.l4 else { return false };
        let none = segment.protocol == UDP && word(frame, segment.checksum) == Some(0);
        !none && self.segment_sum(frame) == 0xFFFF
    }

    /// Whether a UDP segment does without a checksum.
    pub(crate) fn has_no_checksum(&self, frame: &[u8]) -> bool {
        self.l4.as_ref().is_some_and(|s| s.protocol == UDP && word(frame, s.checksum) == Some(0))
    }

    fn segment_sum(&self, frame: &[u8]) -> u16 {
        let Some(segment) = &self.l4 else { return 0 };
        let bytes = frame.get(segment.bytes.clone()).unwrap_or_default();
        if segment.protocol == ICMP {
            return sum(bytes, 0);
        }
        let addresses = self.addresses().and_then(|a| frame.get(a)).unwrap_or_default();
        let pseudo = u64::from(sum(addresses, 0)) + u64::from(segment.protocol) + bytes.len() as u64;
        sum(bytes, pseudo)
    }
}

fn put(frame: &mut [u8], at: usize, value: u16) {
    if let Some(place) = frame.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// RFC 1071's sum of 16-bit words, with the carries added in.
fn sum(bytes: &[u8], start: u64) -> u16 {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let mut sum = pairs.iter().fold(start, |sum, pair| sum + u64::from(u16::from_be_bytes(*pair)));
    sum += odd.first().map_or(0, |byte| u64::from(*byte) << 8);
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames that Scapy 2.8 made, with their protocol and where their payload begins.
    const FRAMES: [(&str, u8, usize); 7] = [
        (
            "02000000000202000000000186dd60000000000b1140200100020000000000000000000000012001000200008000000000000000\
             00010009000a000b6c586f6464",
            17,
            62,
        ),
        (
            "02000000000202000000000186dd6000000000180640200100020000000000000000000000012001000200008000000000000000\
             00010009000a00000000000000005002200004df00006576656e",
            6,
            74,
        ),
        (
            "0200000000020200000000018100000508004500002d0001000040063ac910000001300000010014005000000000000000006002\
             2000bfbf0000020405b478",
            6,
            62,
        ),
        (
            "02000000000202000000000186dd60000000000b3a40200100020000000000000000000000012001000200008000000000000000\
             00018000fb4700030004616263",
            58,
            62,
        ),
        ("02000000000202000000000108004500001f0001000040013adc10000001300000010800339600030004616263", 1, 42),
        (
            "02000000000202000000000186dd600000000013004020010002000000000000000000000001200100020000800000000000\
             00000001110001040000000000350035000b7b03616263",
            17,
            70,
        ),
        ("02000000000202000000000108004500001e0001000040116abb010203040506070800350035000affffef5c", 17, 42),
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    #[test]
    fn checksums_are_those_that_scapy_makes() {
        for (hex, protocol, payload) in FRAMES {
            let right = bytes(hex);
            let headers = Headers::of(&right);
            let segment = headers.l4.clone().unwrap();
            assert_eq!((segment.protocol, headers.payload.start), (protocol, payload), "{hex}");
            assert!(headers.l4_is_right(&right), "{hex}");
            let mut made = right.clone();
            made[segment.checksum] ^= 0x55;
            assert!(!headers.l4_is_right(&made), "{hex}");
            headers.fix_l4(&mut made);
            assert_eq!(made, right);
            if let Some(header) = headers.ip4_checksum() {
                made[header.start] ^= 0x55;
                assert!(!headers.ip4_is_right(&made));
                headers.fix_ip4(&mut made);
                assert_eq!(made, right);
            }
        }
    }

    #[test]
    fn whatever_the_bytes_are_the_parts_lie_within_them() {
        for (hex, _, _) in FRAMES {
            let whole = bytes(hex);
            for length in 0..whole.len() {
                for at in 0..length {
                    let mut cut = whole[..length].to_vec();
                    cut[at] ^= 0xFF;
                    let headers = Headers::of(&cut);
                    assert!(headers.payload.end <= length, "{headers:?}");
                    assert!(headers.l4.as_ref().is_none_or(|s| s.checksum + 2 <= s.bytes.end), "{headers:?}");
                    headers.fix_l4(&mut cut);
                    headers.fix_ip4(&mut cut);
                    assert_eq!(cut.len(), length);
                }
            }
        }
    }
}
