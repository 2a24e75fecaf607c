//! ARP as the neighbour table sees it.

use std::net::Ipv4Addr;
use std::rc::{Rc, Weak};
use std::time::Duration;

use shoal_adj::{Family, Link};
use shoal_buffer::{Buffer, Cache};
use shoal_fib::{Fib, FibError, FibIndex, Path, Source};
use shoal_graph::NodeIndex;
use shoal_interface::{Event, IfData, Interfaces, SwIfIndex};
use shoal_ip4::{AddressEvent, Ip4};
use shoal_module::{Control, InitError};
use shoal_neighbor::counters::Messages;
use shoal_neighbor::{Protocol, SilentPolicy, Timing};
use shoal_wire::Ip4Prefix;

use crate::counters::{ArpCounters, Kind};
use crate::request::{self, Question};
use crate::{Key, Neighbours};

/// The protocol of IPv4 neighbours.
pub struct Arp {
    fib: Rc<Fib>,
    control: Weak<Control>,
    /// `ip4-arp`.
    asker: NodeIndex,
    counters: ArpCounters,
}

impl Arp {
    pub(crate) fn new(
        control: &Rc<Control>,
        asker: NodeIndex,
        counters: ArpCounters,
    ) -> Result<Self, InitError> {
        Ok(Arp { fib: control.get()?, control: Rc::downgrade(control), asker, counters })
    }

    fn addresses(&self, interface: SwIfIndex) -> Vec<Ip4Prefix> {
        let ip4 = self.control.upgrade().and_then(|control| control.get::<Ip4>().ok());
        ip4.map(|ip4| ip4.spoken(interface)).unwrap_or_default()
    }
}

impl Protocol for Arp {
    type Addr = Ipv4Addr;
    const FAMILY: Family = Family::Ip4;
    const NAME: &'static str = "arp";
    /// Times as for IPv6. RFC 1122 2.3.2.1: a neighbour that is used is asked itself from time to time; one that does
    /// not answer keeps its entry, as in VPP, unless entries age.
    const TIMING: Option<Timing> = Some(Timing {
        reachable: (Duration::from_secs(30), Duration::from_secs(30)),
        delay: Duration::from_secs(5),
        silent: SilentPolicy::Stays,
    });

    fn fib_of(data: &IfData) -> FibIndex {
        FibIndex(data.fib_ip4)
    }

    fn failed_node(_: Link) -> &'static str {
        "ip4-arp-failed"
    }

    fn rewrite_node(_: Link) -> &'static str {
        "ip4-rewrite"
    }

    fn asker(&self) -> Option<NodeIndex> {
        Some(self.asker)
    }

    fn source_for(&self, (interface, address): Key) -> Option<Ipv4Addr> {
        let addresses = self.addresses(interface);
        let on_link = addresses.iter().find(|a| a.contains(address)).or(addresses.first());
        on_link.map(Ip4Prefix::addr).filter(|a| !a.is_unspecified())
    }

    fn question(&self, question: &Question, cache: &mut Cache) -> Option<Buffer> {
        let buffer = request::packet(question, cache)?;
        self.counters.count_tx(Kind::Request, 0, question.interface);
        Some(buffer)
    }

    fn messages(&self, interface: SwIfIndex) -> Vec<Messages> {
        self.counters.all(interface)
    }

    fn lender(&self, interface: SwIfIndex) -> Option<SwIfIndex> {
        self.control.upgrade()?.get::<Ip4>().ok()?.lender(interface)
    }

    fn announce(&self, fib: FibIndex, (interface, address): Key) -> Result<(), FibError> {
        let path = Path::next_hop(address, interface);
        self.fib.add(fib, Ip4Prefix::host(address), Source::Adjacency, &[path])
    }

    fn withdraw(&self, fib: FibIndex, (_, address): Key) -> Result<(), FibError> {
        self.fib.remove(fib, Ip4Prefix::host(address), Source::Adjacency)
    }
}

/// Of a network of two the other end is known by its address, and asked for at once, as VPP does. RFC 3021.
fn ask_other_end(neighbours: &Neighbours, interface: SwIfIndex, network: Ip4Prefix) {
    if network.len() == Ip4Prefix::MAX_LEN - 1 {
        let other = Ipv4Addr::from_bits(network.addr().to_bits() ^ 1);
        neighbours.ask_ahead((interface, other));
    }
}

/// Neighbours follow the addresses of their interfaces, counters the interfaces.
pub(crate) fn follow(control: &Rc<Control>, neighbours: &Rc<Neighbours>) -> Result<(), InitError> {
    let interfaces = control.get::<Interfaces>()?;
    let counters = neighbours.protocol().counters.clone();
    interfaces.indices().into_iter().for_each(|i| counters.begin(i));
    interfaces.subscribe(move |_, event| {
        if let Event::Created(interface) = event {
            counters.begin(interface);
        }
    });
    let weak = Rc::downgrade(neighbours);
    interfaces.subscribe(move |_, event| {
        if let (Event::Admin(interface, true), Some(neighbours)) = (event, weak.upgrade()) {
            for network in neighbours.protocol().addresses(interface) {
                ask_other_end(&neighbours, interface, network);
            }
        }
    });
    let weak = Rc::downgrade(neighbours);
    control.get::<Ip4>()?.subscribe(move |_, event| {
        let Some(neighbours) = weak.upgrade() else { return };
        match event {
            AddressEvent::Added(interface, network) => {
                neighbours.move_routes(interface);
                ask_other_end(&neighbours, interface, network);
            }
            AddressEvent::Removed(interface, network) => {
                let left = neighbours.protocol().addresses(interface);
                let gone = |a: Ipv4Addr| network.contains(a) && !left.iter().any(|p| p.contains(a));
                neighbours.leave(interface, gone);
            }
            AddressEvent::Borrowed(interface) => {
                neighbours.move_routes(interface);
                let left = neighbours.protocol().addresses(interface);
                neighbours.leave(interface, |a: Ipv4Addr| !left.iter().any(|p| p.contains(a)));
            }
        }
    });
    Ok(())
}
