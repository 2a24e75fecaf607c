//! A router of interfaces, adjacencies and tables, without packets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests
#![allow(dead_code)] // each test file uses its part

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use shoal_adj::{Adj, AdjIndex, AdjKind, Adjacencies};
use shoal_buffer::{Frame, PoolConfig};
use shoal_fib::{Fib, FibIndex};
use shoal_graph::process::Processes;
use shoal_graph::{Clock, FrameCx, FrameNode, Graph, GraphConfig, NoError, NoNext};
use shoal_infra::Reader;
use shoal_interface::{Create, Device, IfFlags, Interfaces, SwIfIndex};
use shoal_module::{Control, Module};
use shoal_wire::{IpPrefix, MacAddress};

struct Tx;

impl FrameNode for Tx {
    const NAME: &'static str = "test-tx";
    type Next = NoNext;
    type Error = NoError;

    fn frame(&self, _: &mut Frame, _: &mut FrameCx<'_>) {}
}

struct Card;

impl Device for Card {
    fn class(&self) -> &'static str {
        "test"
    }
}

pub struct Router {
    pub control: Rc<Control>,
    pub fib: Rc<Fib>,
    pub adjacencies: Rc<Adjacencies>,
    pub interfaces: Rc<Interfaces>,
}

/// A router with `count` Ethernet interfaces, `eth1` and so on, all up.
pub fn router(count: u8) -> Router {
    let clock = Clock::manual();
    let buffers = PoolConfig { buffers: 64, most: 64, ..PoolConfig::default() };
    let config = GraphConfig { buffers, stats_bytes: 1 << 30, clock: clock.clone() };
    let control = Rc::new(Control::new());
    control.put_rc(Graph::new(config).unwrap());
    control.put(Processes::new(clock));
    let modules: [&Module; 3] = [&shoal_interface::MODULE, &shoal_adj::MODULE, &shoal_fib::MODULE];
    for module in modules {
        (module.init)(&control).unwrap();
    }
    control.graph().unwrap().build().unwrap();
    let router = Router {
        fib: control.get().unwrap(),
        adjacencies: control.get().unwrap(),
        interfaces: control.get().unwrap(),
        control,
    };
    for n in 1..=count {
        router.ethernet(n);
    }
    router
}

impl Router {
    pub fn ethernet(&self, n: u8) -> SwIfIndex {
        let create = Create {
            name: &format!("eth{n}"),
            mac: MacAddress([2, 0xfe, 0, 0, 0, n]),
            mtu: 1500,
            flags: IfFlags::ETHERNET.set(IfFlags::LINK_UP, true),
            rx_next: "drop",
            device: Rc::new(Card),
        };
        let index = self.interfaces.create(&create, Tx).unwrap();
        self.interfaces.set_admin(index, true).unwrap();
        index
    }

    /// What a packet meets, by the table packets read.
    pub fn look_up(&self, fib: FibIndex, addr: IpAddr) -> (AdjIndex, Adj) {
        let reader = Reader::register();
        let index = match addr {
            IpAddr::V4(addr) => self.fib.tables().lookup(fib, addr.to_bits(), reader.guard()),
            IpAddr::V6(addr) => self.fib.tables().lookup_ip6(fib, addr.to_bits(), reader.guard()),
        };
        (index, *self.adjacencies.table().get(index, reader.guard()))
    }

    /// Kind, interface and next hop (or table, or source) of what a packet meets.
    pub fn way(&self, addr: &str) -> String {
        self.way_in(FibIndex::DEFAULT, addr)
    }

    pub fn way_in(&self, fib: FibIndex, addr: &str) -> String {
        let (_, adj) = self.look_up(fib, addr.parse().unwrap());
        tell(&adj)
    }

    /// Where a route's flows go: each member of its balance (or the one) as [`Router::way`] tells it, and its buckets.
    pub fn shares(&self, addr: &str) -> Vec<(String, usize)> {
        let (index, _) = self.look_up(FibIndex::DEFAULT, addr.parse().unwrap());
        let Some((_, buckets)) = self.adjacencies.members(index).filter(|(_, buckets)| !buckets.is_empty())
        else {
            return vec![(self.way(addr), 1)];
        };
        let mut all: Vec<(String, usize)> = Vec::new();
        for bucket in buckets {
            let text = tell(&self.adjacencies.get(bucket));
            match all.iter_mut().find(|(t, _)| *t == text) {
                Some((_, n)) => *n += 1,
                None => all.push((text, 1)),
            }
        }
        all.sort();
        all
    }

    /// All adjacencies that are locked, and how often.
    pub fn locks(&self) -> Vec<(AdjIndex, usize)> {
        self.adjacencies.list().into_iter().map(|(index, _, locks)| (index, locks)).collect()
    }
}

pub fn prefix(text: &str) -> IpPrefix {
    text.parse().unwrap()
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn tell(adj: &Adj) -> String {
    if adj.kind() == AdjKind::None {
        return "None".into();
    }
    let interface = if adj.tx().0 == u32::MAX { "-".into() } else { adj.tx().to_string() };
    let table = IpAddr::from(Ipv4Addr::from_bits(adj.table()));
    let address = adj.next_hop().or(adj.source()).unwrap_or(table);
    format!("{:?} {interface} {address}", adj.kind())
}
