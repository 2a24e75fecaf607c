//! What is done to a packet.

use shoal_buffer::Packet;
use shoal_fib::FibIndex;
use shoal_nat::icmp::Fault;
use shoal_nat::{End, Ip6Seen, Sum};

use crate::config::{Config, Pair};

/// Whether the packet's way ends here: its sender gets an error by the address it has.
#[inline(always)]
pub fn is_expiring(pkt: &Packet<'_>) -> bool {
    pkt.data().get(7).is_some_and(|hop_limit| *hop_limit <= 1)
}

/// A packet leaves: its source becomes the outside address. An ICMPv6 error also says which host's packet it is about: that becomes
/// the outside address, and so does the source of a router inside that has none of its own (RFC 5508, REQ-5, does the same).
///
/// # Errors
/// It is cut short.
pub fn leave(
    pkt: &mut Packet<'_>,
    seen: &Ip6Seen,
    config: &Config,
    table: FibIndex,
) -> Result<Option<Pair>, Fault> {
    let own = config.local.get(&(seen.src, table)).copied();
    let about = seen.quoted.and_then(|quoted| config.local.get(&(quoted.dst, table)).copied());
    let Some(pair) = own.or(about) else { return Ok(None) };
    let sum = Sum::of(pkt);
    if let Some(about) = about {
        seen.replace_quoted(pkt.data_mut(), End::Destination, about.external, sum)?;
    }
    seen.replace(pkt.data_mut(), End::Source, pair.external, sum)?;
    Ok(Some(pair))
}

/// A packet arrives: its destination becomes the host's address, and an ICMPv6 error is about what that host sent.
///
/// # Errors
/// It is cut short.
pub fn arrive(pkt: &mut Packet<'_>, seen: &Ip6Seen, config: &Config) -> Result<Option<Pair>, Fault> {
    let Some(pair) = config.external.get(&seen.dst).copied() else { return Ok(None) };
    let sum = Sum::of(pkt);
    if let Some(about) = seen.quoted.and_then(|quoted| config.external.get(&quoted.src)) {
        seen.replace_quoted(pkt.data_mut(), End::Source, about.local, sum)?;
    }
    seen.replace(pkt.data_mut(), End::Destination, pair.local, sum)?;
    Ok(Some(pair))
}
