//! Packets that are too long once they are translated, of which the sender is to hear in its own protocol. What the router says
//! of a translated packet would go to an address that stands for the sender, and not to the sender.

use std::net::Ipv4Addr;

use crate::head::SMALL;
use crate::read::ParsedPacket;

/// RFC 8200, 5: every IPv6 link takes packets of this length.
pub const LEAST_MTU: u16 = 1280;
const IP4: usize = 20;
const IP6: usize = 40;
const FRAGMENT: usize = 8;
/// How much longer the header of IPv6 is.
const DIFFERENCE: u16 = (IP6 - IP4) as u16;

/// How long an IPv4 packet may be, if this one must not be cut and is too long as an IPv6 packet (RFC 7915, 4). `payload`: bytes
/// behind its IP header, or those of its pieces where a device cuts it. `mtu`: how long an IPv6 packet may be on its way; it is
/// asked for only of packets that are longer than all ways take, which is `least`.
pub fn too_long4(
    seen: &ParsedPacket<Ipv4Addr>,
    payload: usize,
    (least, mtu): (u16, impl FnOnce() -> u16),
) -> Option<u16> {
    let becomes = payload + IP6 + if seen.fragment.is_some() { FRAGMENT } else { 0 };
    if !seen.dont_fragment || becomes <= usize::from(least) {
        return None;
    }
    let mtu = mtu();
    (becomes > usize::from(mtu)).then(|| mtu.saturating_sub(DIFFERENCE))
}

/// The same of an IPv6 packet that becomes one of IPv4 (RFC 7915, 5). Shorter ones than 1,280 bytes may be cut in IPv4, and so may
/// fragments.
#[inline(always)]
pub fn too_long6(is_fragment: bool, payload: usize, mtu: impl FnOnce() -> u16) -> Option<u16> {
    let becomes = payload + IP4;
    if is_fragment || becomes <= SMALL {
        return None;
    }
    let mtu = mtu();
    (becomes > usize::from(mtu)).then(|| mtu.saturating_add(DIFFERENCE).max(LEAST_MTU))
}
