//! A transport header gets other ports, and a checksum over the other protocol's pseudo header.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_nat::{Delta, Kind, Sum};
use shoal_wire::checksum::Sum as Checksum;
use shoal_wire::protocol::IpProtocol;

use crate::read::{Ends, Fault, ParsedPacket, put, word};

/// An address of either protocol.
pub(crate) trait Address: Copy {
    /// Its words enter a sum or leave it.
    fn sum(self, delta: Delta, enter: bool) -> Delta;
}

/// Words enter a sum or leave it.
pub(crate) fn words(mut delta: Delta, bytes: &[u8], enter: bool) -> Delta {
    for pair in bytes.chunks(2) {
        let value = match pair {
            [high, low] => u16::from_be_bytes([*high, *low]),
            [high] => u16::from_be_bytes([*high, 0]),
            _ => 0,
        };
        delta = if enter { delta.word(0, value) } else { delta.word(value, 0) };
    }
    delta
}

impl Address for Ipv4Addr {
    #[inline(always)]
    fn sum(self, delta: Delta, enter: bool) -> Delta {
        let sum = Delta::sum_of_long(self.to_bits());
        if enter { delta.enter(sum) } else { delta.leave(sum) }
    }
}

impl Address for Ipv6Addr {
    #[inline(always)]
    fn sum(self, delta: Delta, enter: bool) -> Delta {
        let sum = Delta::sum_of_wide(self.to_bits());
        if enter { delta.enter(sum) } else { delta.leave(sum) }
    }
}

/// What addresses do to the checksum of TCP or UDP: length and protocol count the same in both pseudo headers.
#[inline(always)]
pub(crate) fn addresses<A: Address, B: Address>(from: &Ends<A>, to: &Ends<B>) -> Delta {
    let delta = from.dst.sum(from.src.sum(Delta::NONE, false), false);
    to.dst.sum(to.src.sum(delta, true), true)
}

/// The pseudo header of ICMPv6, which ICMP does not have.
pub(crate) fn pseudo6(delta: Delta, src: Ipv6Addr, dst: Ipv6Addr, length: u32, enter: bool) -> Delta {
    let delta = dst.sum(src.sum(delta, enter), enter);
    let delta = words(delta, &length.to_be_bytes(), enter);
    words(delta, &u16::from(crate::ICMP6).to_be_bytes(), enter)
}

/// Bytes that are changed, and what that does to a checksum that covers them.
pub(crate) struct Edit<'a> {
    pub bytes: &'a mut [u8],
    pub delta: Delta,
}

impl Edit<'_> {
    #[inline(always)]
    pub(crate) fn word(&mut self, at: usize, new: u16) -> Option<()> {
        let old = word(self.bytes, at)?;
        self.delta = self.delta.word(old, new);
        put(self.bytes, at, new)
    }
}

/// Rewrites ports and checksum of TCP or UDP.
#[inline(always)]
pub(crate) fn ports<A: Address, B: Address>(
    edit: &mut Edit<'_>,
    seen: &ParsedPacket<A>,
    to: &Ends<B>,
    sum: Sum,
) -> Option<()> {
    let only_addresses = addresses(&seen.ends, to);
    let both = only_addresses.word(seen.ends.sport, to.sport).word(seen.ends.dport, to.dport);
    let at = if seen.kind == Kind::Tcp { 16 } else { 6 };
    edit.word(0, to.sport)?;
    edit.word(2, to.dport)?;
    // Of a carried TCP header only eight bytes may be there.
    let Some(old) = word(edit.bytes, at) else { return Some(()) };
    // RFC 768: 0 says that there is no checksum.
    if seen.kind == Kind::Udp && old == 0 {
        return Some(());
    }
    let new = match sum {
        Sum::Whole => both.apply(old),
        Sum::Pseudo => only_addresses.add(old),
    };
    edit.word(at, if seen.kind == Kind::Udp && new == 0 { 0xffff } else { new })
}

/// RFC 7915, 4.5: IPv6 wants a checksum of UDP. All bytes of the datagram must be here.
pub(crate) fn complete_udp(bytes: &mut [u8], length: u16, to: &Ends<Ipv6Addr>) -> Result<(), Fault> {
    let datagram = bytes.get_mut(..usize::from(length)).ok_or(Fault::NoChecksum)?;
    let mut sum = Checksum::pseudo_ip6(to.src, to.dst, IpProtocol::UDP, u32::from(length));
    sum.add(datagram);
    put(datagram, 6, sum.finish_udp()).ok_or(Fault::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checksums that deltas make of another, where 0 and 0xffff are the same sum.
    fn sums(delta: Delta) -> Vec<u16> {
        [0x1234, 1, 0xfffe].map(|old| delta.apply(old) % 0xffff).to_vec()
    }

    #[test]
    fn an_address_counts_as_its_words_do() {
        let mut number = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834_u128;
        let mut all = vec![0, u128::MAX, 1, 0xffff, 0xffff << 112, 0x1_0000_ffff];
        for _ in 0..1000 {
            number = number.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
            all.push(number);
        }
        for number in all {
            let (six, four) = (Ipv6Addr::from_bits(number), Ipv4Addr::from_bits(number as u32));
            for enter in [false, true] {
                let (of_six, of_four) = (six.sum(Delta::NONE, enter), four.sum(Delta::NONE, enter));
                assert_eq!(sums(of_six), sums(words(Delta::NONE, &six.octets(), enter)), "{six} {enter}");
                assert_eq!(sums(of_four), sums(words(Delta::NONE, &four.octets(), enter)), "{four} {enter}");
            }
        }
    }
}
