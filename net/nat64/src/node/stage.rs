//! Whole packets of sessions that there are, on a fused path: they go on as packets of the other protocol. Their nodes see to
//! all others, and to packets that may be too long once they are translated.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_fib::FibIndex;
use shoal_graph::superpath::{CrossOptional, Crossing, Pass, StatefulOptional, WithState};
use shoal_graph::{Cx, StatefulNode};
use shoal_infra::Guard;
use shoal_nat::Kind;
use shoal_translate46::{Ends, LEAST_MTU, ParsedPacket, Prefix64, read4, read6, to4, to6, too_long6};
use shoal_wire::{Ip4Header, Ip6Header};

use super::in2out::In2out;
use super::out2in::Out2in;
use super::{how, protocol, remote, tcp_flags, trim};
use crate::config::{Config, Inside, Outside};
use crate::session_stores::SessionStores;
use crate::sessions::Sessions;

/// How much longer the header of IPv6 is.
const DIFFERENCE: usize = Ip6Header::LEN - 20;

/// The nodes' common cases, for chains.
pub struct Nat64Stages {
    /// From hosts.
    pub in2out: Arc<WithState<In2out<false>>>,
    /// To hosts.
    pub out2in: Arc<WithState<Out2in<false>>>,
}

/// What holds for the packets of an interface with hosts.
#[derive(Clone, Copy)]
pub struct HostFacts<'g> {
    config: &'g Config,
    prefix: Prefix64,
    table: u32,
    /// Whether IPv4 packets of the interface go by the main table, as translated ones do.
    by_main_table: bool,
}

/// What holds for the packets of an interface to the Internet.
#[derive(Clone, Copy)]
pub struct InternetFacts<'g> {
    config: &'g Config,
    /// The table that IPv6 packets of the interface go by.
    table: u32,
}

/// Whether a packet is whole, of a protocol with ports or a query, and may go on.
#[inline(always)]
fn is_plain<A>(seen: &ParsedPacket<A>) -> bool {
    matches!(seen.kind, Kind::Tcp | Kind::Udp | Kind::Query) && seen.fragment.is_none() && seen.hops > 1
}

impl StatefulOptional for In2out<false> {
    const NAME: &'static str = <Self as StatefulNode>::NAME;
    type Feature = SessionStores;
    type Facts<'g> = HostFacts<'g>;

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> HostFacts<'g> {
        let (config, interfaces) = (self.shared.config.load(guard), &self.shared.interfaces);
        let table = interfaces.ip6_table(interface);
        let by_main_table = FibIndex(interfaces.ip4_table(interface)) == FibIndex::DEFAULT;
        HostFacts { config, prefix: config.prefix(table), table, by_main_table }
    }

    fn pass(&self, _: &mut Sessions, facts: HostFacts<'_>, pkt: &mut Packet<'_>, _: &Cx<'_, Self>) -> Pass {
        let for_hosts = pkt.header::<Ip6Header>().is_some_and(|ip| !facts.prefix.contains(ip.dst()));
        if for_hosts { Pass::On } else { Pass::Leave }
    }
}

impl CrossOptional for In2out<false> {
    #[inline(always)]
    fn cross(
        &self,
        sessions: &mut Sessions,
        facts: HostFacts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        let Some(ip) = pkt.header::<Ip6Header>() else { return Crossing::Leave };
        if !facts.prefix.contains(ip.dst()) {
            return Crossing::On;
        }
        match self.established(sessions, facts, pkt, cx) {
            Some(()) => Crossing::Crossed,
            None => Crossing::Leave,
        }
    }
}

impl In2out<false> {
    /// Translates a packet of a session that there is; `None`: it is left as it was.
    #[inline(always)]
    fn established(
        &self,
        sessions: &mut Sessions,
        facts: HostFacts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let HostFacts { config, prefix, table, by_main_table } = facts;
        let seen = read6(pkt.data()).ok().filter(is_plain).filter(|_| by_main_table)?;
        let inside =
            Inside { address: seen.ends.src, port: seen.ends.sport, protocol: protocol(&seen), table };
        let far = prefix.extract(seen.ends.dst);
        if config.of_inside(&inside) != cx.thread() || config.is_shared(far) {
            return None;
        }
        let payload = pkt.meta().gso_piece().unwrap_or(seen.payload.into());
        let is_too_long =
            too_long6(&seen, payload, || self.shared.mtu_to_internet(far, cx.guard())).is_some();
        // IPv4's length counts its header, too.
        if is_too_long || seen.payload > u16::MAX - 20 {
            return None;
        }
        let (remote, flags) = (remote(&seen, far, seen.ends.dport), tcp_flags(pkt, &seen));
        let outside = sessions.of_host(&inside, remote, flags, cx.now())?;
        let how = how(pkt, &seen);
        trim(pkt, &seen).ok()?;
        let dport = if seen.kind == Kind::Query { outside.port } else { seen.ends.dport };
        let to = Ends { src: outside.address, dst: far, sport: outside.port, dport };
        let head = to4(pkt.data_mut(), &seen, &to, &how).ok()?;
        self.put_on(&head, seen.kind, pkt, cx).ok()
    }
}

impl StatefulOptional for Out2in<false> {
    const NAME: &'static str = <Self as StatefulNode>::NAME;
    type Feature = SessionStores;
    type Facts<'g> = InternetFacts<'g>;

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> InternetFacts<'g> {
        InternetFacts {
            config: self.shared.config.load(guard),
            table: self.shared.interfaces.ip6_table(interface),
        }
    }

    fn pass(
        &self,
        _: &mut Sessions,
        facts: InternetFacts<'_>,
        pkt: &mut Packet<'_>,
        _: &Cx<'_, Self>,
    ) -> Pass {
        let is_other = pkt.header::<Ip4Header>().is_some_and(|ip| !facts.config.is_shared(ip.dst()));
        if is_other { Pass::On } else { Pass::Leave }
    }
}

impl CrossOptional for Out2in<false> {
    #[inline(always)]
    fn cross(
        &self,
        sessions: &mut Sessions,
        facts: InternetFacts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        let Some(ip) = pkt.header::<Ip4Header>() else { return Crossing::Leave };
        if !facts.config.is_shared(ip.dst()) {
            return Crossing::On;
        }
        match self.established(sessions, facts, pkt, cx) {
            Some(()) => Crossing::Crossed,
            None => Crossing::Leave,
        }
    }
}

impl Out2in<false> {
    /// Translates a packet of a session that there is; `None`: it is left as it was.
    #[inline(always)]
    fn established(
        &self,
        sessions: &mut Sessions,
        facts: InternetFacts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<()> {
        let InternetFacts { config, table } = facts;
        let seen = read4(pkt.data()).ok().filter(is_plain)?;
        let outside = Outside { address: seen.ends.dst, port: seen.ends.dport, protocol: protocol(&seen) };
        // UDP without a checksum gets one, which takes all of its bytes.
        let at = usize::from(seen.header);
        let bare = seen.kind == Kind::Udp && pkt.data().get(at + 6..at + 8) == Some(&[0, 0]);
        if bare || pkt.headroom() < DIFFERENCE || config.of_outside(&outside) != cx.thread() {
            return None;
        }
        let (remote, flags) = (remote(&seen, seen.ends.src, seen.ends.sport), tcp_flags(pkt, &seen));
        let inside = sessions.of_internet(outside, remote, flags, cx.now())?;
        // What is too long for its way is cut, or its sender hears of it.
        let becomes = pkt.meta().gso_piece().unwrap_or(seen.payload.into()) + Ip6Header::LEN;
        let mtu = || self.shared.mtu_to_host((table, inside.address), cx.guard());
        let is_too_long = becomes > usize::from(LEAST_MTU) && becomes > usize::from(mtu());
        if inside.table != table || is_too_long {
            return None;
        }
        let how = how(pkt, &seen);
        trim(pkt, &seen).ok()?;
        let sport = if seen.kind == Kind::Query { inside.port } else { seen.ends.sport };
        let src = config.prefix(table).embed(seen.ends.src);
        let to = Ends { src, dst: inside.address, sport, dport: inside.port };
        let head = to6(pkt.data_mut(), &seen, &to, &how).ok()?;
        self.put_on(&head, seen.kind, pkt, cx).ok()
    }
}
