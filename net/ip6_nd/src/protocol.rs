//! Neighbour discovery as the neighbour table sees it.

use std::net::Ipv6Addr;
use std::rc::Rc;
use std::time::Duration;

use shoal_adj::{Family, Link as Payload};
use shoal_buffer::{Buffer, Cache};
use shoal_fib::{Fib, FibError, FibIndex, Path, Source};
use shoal_graph::NodeIndex;
use shoal_interface::{IfData, SwIfIndex};
use shoal_ip6::Ip6;
use shoal_module::{Control, InitError};
use shoal_neighbor::counters::Messages;
use shoal_neighbor::{Protocol, Question, SilentPolicy, Timing};
use shoal_wire::Ip6Prefix;
use shoal_wire::ip6_address::{is_link_local, solicited_node};

use crate::counters::{Kind, NdCounters};
use crate::frame::{self, MessageRoute};
use crate::{Key, Links};

/// The protocol of IPv6 neighbours.
pub struct Discovery {
    fib: Rc<Fib>,
    ip6: Rc<Ip6>,
    discover: NodeIndex,
    links: Links,
    counters: NdCounters,
}

impl Discovery {
    pub(crate) fn new(
        control: &Control,
        discover: NodeIndex,
        links: Links,
        counters: NdCounters,
    ) -> Result<Self, InitError> {
        Ok(Discovery { fib: control.get()?, ip6: control.get()?, discover, links, counters })
    }
}

/// Where a question goes: to the neighbour that may have gone, or to the group of its address (RFC 4861 7.2.2).
pub(crate) fn way_of(question: &Question<Ipv6Addr>) -> MessageRoute {
    let Question { data, source, to, target, .. } = *question;
    let mac = data.mac();
    match to {
        Some(dst_mac) => MessageRoute { src_mac: mac, dst_mac, src: source, dst: target },
        None => MessageRoute::to_group(mac, source, solicited_node(target)),
    }
}

impl Protocol for Discovery {
    type Addr = Ipv6Addr;
    const FAMILY: Family = Family::Ip6;
    const NAME: &'static str = "ip6-nd";
    /// RFC 4861 section 10: REACHABLE_TIME and DELAY_FIRST_PROBE_TIME; 6.3.2: between half and one and a half of it.
    const TIMING: Option<Timing> = Some(Timing {
        reachable: (Duration::from_secs(15), Duration::from_secs(45)),
        delay: Duration::from_secs(5),
        silent: SilentPolicy::Goes,
    });

    fn fib_of(data: &IfData) -> FibIndex {
        FibIndex(data.fib_ip6)
    }

    fn failed_node(link: Payload) -> &'static str {
        match link {
            Payload::Ip4 => "ip4-arp-failed",
            Payload::Ip6 => "ip6-discover-failed",
        }
    }

    fn rewrite_node(link: Payload) -> &'static str {
        match link {
            Payload::Ip4 => "ip4-rewrite",
            Payload::Ip6 => "ip6-rewrite",
        }
    }

    fn asker(&self) -> Option<NodeIndex> {
        Some(self.discover)
    }

    fn source_for(&self, (interface, address): Key) -> Option<Ipv6Addr> {
        self.links.now(interface)?.source_for(address)
    }

    fn question(&self, question: &Question<Ipv6Addr>, cache: &mut Cache) -> Option<Buffer> {
        let (bytes, len) = frame::solicitation(&way_of(question), question.target)?;
        let buffer = frame::packet(bytes.get(..len)?, (question.interface, &question.data), cache)?;
        self.counters.count_tx(Kind::NeighbourSolicitation, 0, question.interface);
        Some(buffer)
    }

    fn messages(&self, interface: SwIfIndex) -> Vec<Messages> {
        self.counters.all(interface)
    }

    fn lender(&self, interface: SwIfIndex) -> Option<SwIfIndex> {
        self.ip6.on(interface).borrows
    }

    /// A link-local address says nothing without its link, so it goes where those of the link are.
    fn announce(&self, fib: FibIndex, (interface, address): Key) -> Result<(), FibError> {
        if !is_link_local(address) {
            let path = Path::next_hop(address, interface);
            return self.fib.add(fib, Ip6Prefix::host(address), Source::Adjacency, &[path]);
        }
        if let Err(e) = self.ip6.set_link_neighbour(interface, address) {
            tracing::debug!(%interface, neighbour = %address, "no entry for the link: {e}");
        }
        Ok(())
    }

    fn withdraw(&self, fib: FibIndex, (interface, address): Key) -> Result<(), FibError> {
        if !is_link_local(address) {
            return self.fib.remove(fib, Ip6Prefix::host(address), Source::Adjacency);
        }
        self.ip6.forget_link_neighbour(interface, address);
        Ok(())
    }
}
