//! Whole packets of sessions that there are, on a fused path: they go on as packets of the other protocol. Their nodes see to
//! all others, and to packets that may be too long once they are translated.

mod hosts;
mod internet;

use std::sync::Arc;

use shoal_graph::superpath::WithState;
use shoal_nat::Kind;
use shoal_nat::tuple::TCP;
use shoal_translate46::ParsedPacket;
use shoal_wire::Ip6Header;

use super::in2out::In2out;
use super::out2in::Out2in;

/// Bytes of an IPv4 header without options.
const IP4: usize = 20;
/// How much longer the header of IPv6 is.
const DIFFERENCE: usize = Ip6Header::LEN - IP4;

/// Sessions that stay in a processor's own cache.
const NEAR: usize = 1024;

/// The nodes' common cases, for chains.
pub struct Nat64Stages {
    /// From hosts.
    pub in2out: Arc<WithState<In2out<false>>>,
    /// To hosts.
    pub out2in: Arc<WithState<Out2in<false>>>,
}

/// What it is, of a packet with ports.
const fn kind(protocol: u8) -> Kind {
    if protocol == TCP { Kind::Tcp } else { Kind::Udp }
}

/// Whether a packet is whole, of a protocol with ports or a query, and may go on.
#[inline(always)]
fn is_plain<A>(seen: &ParsedPacket<A>) -> bool {
    matches!(seen.kind, Kind::Tcp | Kind::Udp | Kind::Query) && seen.fragment.is_none() && seen.hops > 1
}
