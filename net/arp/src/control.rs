//! The control plane of neighbours: the only code that writes the table, neighbours' adjacencies and host routes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::{Rc, Weak};
use std::time::Duration;

use shoal_adj::{Adj, AdjIndex, AdjKind, Adjacencies, Family, Link};
use shoal_fib::{Fib, FibIndex};
use shoal_graph::process::Sender;
use shoal_graph::{Edge, Graph};
use shoal_interface::{Event, IfFlags, Interfaces, SwIfIndex};
use shoal_ip4::{AddressEvent, Ip4};
use shoal_module::{Control, InitError};
use shoal_wire::{EthernetHeader, IntoBytes, Ip4Prefix, MacAddress};

use crate::counters::ArpCounters;
use crate::message::{Learn, NotSent, Unknown};
use crate::table::{FibEntry, Limits, Neighbour, Origin, Refused, Stored, Table, WhenFull};
use crate::{Key, NeighbourError};

mod ask;
mod route;

use ask::Asking;
pub(crate) use ask::MOST_HELD_EACH;

/// What a neighbour has in other tables.
struct Installed {
    /// Its adjacency, locked once.
    adj: AdjIndex,
    /// The table with its host route.
    route: Option<FibIndex>,
}

/// Which entries a flush forgets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// Those the network told.
    Dynamic,
    /// Those of the operator as well.
    All,
}

/// Changes to the limits; what is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NewLimits {
    /// Most entries; 0: no limit.
    pub entries: Option<usize>,
    /// When an entry is asked for again; zero: never.
    pub age: Option<Duration>,
    /// What happens when the table is full.
    pub when_full: Option<WhenFull>,
}

/// One neighbour, as `show ip neighbors` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// The link.
    pub interface: SwIfIndex,
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// What is known of it.
    pub neighbour: Neighbour,
    /// How long ago it was last confirmed.
    pub age: Duration,
}

/// All IPv4 neighbours.
pub struct Neighbours {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    adjacencies: Rc<Adjacencies>,
    fib: Rc<Fib>,
    control: Weak<Control>,
    counters: ArpCounters,
    table: RefCell<Table<Ipv4Addr>>,
    installed: RefCell<BTreeMap<Key, Installed>>,
    asking: RefCell<Asking>,
    /// Rung when something becomes due earlier than the timer's task thinks.
    bell: Sender<()>,
}

impl Neighbours {
    /// An empty table that describes neighbours' adjacencies from now on.
    pub(crate) fn new(
        control: &Rc<Control>,
        counters: ArpCounters,
        bell: Sender<()>,
    ) -> Result<Rc<Self>, InitError> {
        let neighbours = Rc::new(Neighbours {
            graph: control.graph()?,
            interfaces: control.get()?,
            adjacencies: control.get()?,
            fib: control.get()?,
            control: Rc::downgrade(control),
            counters,
            table: RefCell::default(),
            installed: RefCell::default(),
            asking: RefCell::default(),
            bell,
        });
        let weak = Rc::downgrade(&neighbours);
        let describe = move |interface, link, next_hop| match weak.upgrade() {
            Some(neighbours) => neighbours.describe(interface, link, next_hop),
            None => Adj::on(AdjKind::Incomplete, interface, 0),
        };
        neighbours.adjacencies.set_describe(Family::Ip4, Rc::new(describe));
        let weak = Rc::downgrade(&neighbours);
        neighbours.interfaces.subscribe(move |_, event| {
            if let Some(neighbours) = weak.upgrade() {
                neighbours.on_event(event);
            }
        });
        let weak = Rc::downgrade(&neighbours);
        control.get::<Ip4>()?.subscribe(move |_, event| {
            if let Some(neighbours) = weak.upgrade() {
                neighbours.on_address(event);
            }
        });
        neighbours.interfaces.indices().into_iter().for_each(|i| neighbours.counters.begin(i));
        Ok(neighbours)
    }

    fn on_event(&self, event: Event) {
        match event {
            Event::Created(i) => self.counters.begin(i),
            Event::Deleting(i) => self.flush(Some(i), Flush::All),
            Event::Admin(i, false) | Event::Link(i, false) => self.flush(Some(i), Flush::Dynamic),
            _ => {}
        }
    }

    fn on_address(&self, event: AddressEvent) {
        match event {
            AddressEvent::Added(i, _) => self.move_routes(i),
            AddressEvent::Removed(i, network) => self.leave(i, network),
        }
    }

    /// A network is connected no longer: whoever was learnt in it is forgotten.
    fn leave(&self, interface: SwIfIndex, network: Ip4Prefix) {
        let left = self.addresses(interface);
        let gone = |a: Ipv4Addr| network.contains(a) && !left.iter().any(|p| p.contains(a));
        self.forget(|key, n| key.0 == interface && gone(key.1) && n.origin == Origin::Dynamic);
        self.give_up(|key| key.0 == interface && gone(key.1), NotSent::Gone);
    }

    fn addresses(&self, interface: SwIfIndex) -> Vec<Ip4Prefix> {
        let ip4 = self.control.upgrade().and_then(|control| control.get::<Ip4>().ok());
        ip4.map(|ip4| ip4.addresses(interface)).unwrap_or_default()
    }

    /// An adjacency's line: complete when the neighbour is known and its interface is up.
    fn describe(&self, interface: SwIfIndex, link: Link, next_hop: IpAddr) -> Adj {
        let IpAddr::V4(address) = next_hop else { return Adj::special(AdjKind::Drop) };
        let Ok(data) = self.interfaces.data(interface) else { return Adj::special(AdjKind::Drop) };
        let mtu = link.mtu(&data);
        let header = if data.flags().has(IfFlags::ETHERNET) {
            let known = self.table.borrow().get((interface, address));
            known.map(|n| EthernetHeader::new(data.mac(), n.mac, link.ether_type()).as_bytes().to_vec())
        } else {
            // A link without stations: nothing to resolve, nothing to put in front.
            Some(Vec::new())
        };
        let complete = header.filter(|_| data.is_up()).and_then(|header| {
            let edge: Edge = self.adjacencies.edge_to(link, interface).ok()?;
            Some(Adj::on(AdjKind::Rewrite, interface, mtu).with_rewrite(&header, edge))
        });
        complete.unwrap_or_else(|| Adj::on(AdjKind::Incomplete, interface, mtu))
    }

    /// Enters a neighbour, or changes what is known of it; packets that waited for it leave.
    ///
    /// # Errors
    /// No station or host can have these addresses, there is no such Ethernet interface, the table is full, or
    /// the entry is static and this fact is not.
    pub fn set(
        &self,
        (interface, address): Key,
        mac: MacAddress,
        origin: Origin,
        fib_entry: FibEntry,
    ) -> Result<(), NeighbourError> {
        self.check(interface, address, mac, origin)?;
        let key = (interface, address);
        let neighbour = Neighbour { mac, origin, fib_entry, updated: self.graph.clock().now() };
        let old = self.table.borrow().get(key);
        let stored = self.table.borrow_mut().store(key, neighbour).map_err(|refused| match refused {
            Refused::Full(limit) => NeighbourError::Full(limit),
            Refused::Static => NeighbourError::Static(address, self.name(interface)),
        })?;
        match stored {
            Stored::Same => {}
            Stored::Changed => self.change(key, old, neighbour),
            Stored::New(gone) => {
                if let Some(recycled) = gone {
                    self.uninstall(recycled);
                }
                if let Err(e) = self.install(key, fib_entry) {
                    self.table.borrow_mut().remove(key);
                    return Err(e);
                }
            }
        }
        self.answered(key);
        Ok(())
    }

    /// Enters `count` neighbours with rising addresses; up to the first that is refused.
    ///
    /// # Errors
    /// As [`Neighbours::set`], or the addresses go past the last one.
    pub fn set_many(
        &self,
        (interface, first): Key,
        mac: MacAddress,
        count: u32,
        origin: Origin,
        fib_entry: FibEntry,
    ) -> Result<(), NeighbourError> {
        for n in 0..count_of(first, count)? {
            let mac = MacAddress::from_u64(mac.to_u64() + u64::from(n));
            self.set((interface, Ipv4Addr::from_bits(first.to_bits() + n)), mac, origin, fib_entry)?;
        }
        Ok(())
    }

    /// Forgets `count` neighbours with rising addresses; up to the first that is not known.
    ///
    /// # Errors
    /// As [`Neighbours::remove`], or the addresses go past the last one.
    pub fn remove_many(
        &self,
        interface: SwIfIndex,
        first: Ipv4Addr,
        count: u32,
    ) -> Result<(), NeighbourError> {
        let count = count_of(first, count)?;
        (0..count).try_for_each(|n| self.remove((interface, Ipv4Addr::from_bits(first.to_bits() + n))))
    }

    fn check(
        &self,
        interface: SwIfIndex,
        address: Ipv4Addr,
        mac: MacAddress,
        origin: Origin,
    ) -> Result<(), NeighbourError> {
        let data = self.interfaces.data(interface)?;
        if !data.flags().has(IfFlags::ETHERNET) {
            return Err(NeighbourError::NotEthernet(self.name(interface)));
        }
        if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
            return Err(NeighbourError::NoHost(address));
        }
        // Clusters share a group address, but only an operator can know that.
        if mac.is_zero() || mac.is_broadcast() || (mac.is_multicast() && origin == Origin::Dynamic) {
            return Err(NeighbourError::NoStation(mac));
        }
        Ok(())
    }

    fn change(&self, key: Key, old: Option<Neighbour>, new: Neighbour) {
        self.adjacencies.refresh_neighbour(key.0, key.1.into());
        if old.map(|n| n.fib_entry) != Some(new.fib_entry) {
            let route = self.installed.borrow_mut().get_mut(&key).and_then(|i| i.route.take());
            self.withdraw(key, route);
            let route = self.announce(key, new.fib_entry);
            if let Some(installed) = self.installed.borrow_mut().get_mut(&key) {
                installed.route = route;
            }
        }
    }

    fn install(&self, key: Key, fib_entry: FibEntry) -> Result<(), NeighbourError> {
        let adj = self.adjacencies.neighbour(key.0, Link::Ip4, key.1.into())?;
        // It may have been there before, incomplete.
        self.adjacencies.refresh_neighbour(key.0, key.1.into());
        let route = self.announce(key, fib_entry);
        self.installed.borrow_mut().insert(key, Installed { adj, route });
        self.ring();
        Ok(())
    }

    /// Takes out of other tables what a neighbour had there; the table has forgotten it already.
    fn uninstall(&self, key: Key) {
        let Some(Installed { adj, route }) = self.installed.borrow_mut().remove(&key) else { return };
        self.withdraw(key, route);
        self.adjacencies.refresh_neighbour(key.0, key.1.into());
        self.adjacencies.unlock(adj);
    }

    /// Forgets one neighbour.
    ///
    /// # Errors
    /// It is not known.
    pub fn remove(&self, key: Key) -> Result<(), NeighbourError> {
        self.interfaces.data(key.0)?;
        let known = self.table.borrow_mut().remove(key);
        known.ok_or_else(|| NeighbourError::NoNeighbour(key.1, self.name(key.0)))?;
        self.uninstall(key);
        Ok(())
    }

    /// Forgets neighbours, on one interface or all, and drops packets that wait for them.
    pub fn flush(&self, interface: Option<SwIfIndex>, which: Flush) {
        let mine = |i: SwIfIndex| interface.is_none_or(|only| only == i);
        self.forget(|key, n| mine(key.0) && (which == Flush::All || n.origin == Origin::Dynamic));
        self.give_up(|key| mine(key.0), NotSent::Gone);
    }

    fn forget(&self, which: impl Fn(Key, &Neighbour) -> bool) {
        let old: Vec<Key> = {
            let table = self.table.borrow();
            table.iter().filter(|(key, n)| which(*key, n)).map(|(key, _)| key).collect()
        };
        for key in old {
            self.table.borrow_mut().remove(key);
            self.uninstall(key);
        }
    }

    /// A station said which address it has.
    pub(crate) fn learn(&self, learn: &Learn) {
        let key = (learn.interface, learn.address);
        let known = self.table.borrow().get(key).is_some() || self.asking.borrow().is_asked(key);
        let up = self.interfaces.data(learn.interface).is_ok_and(|d| d.is_up());
        if !up || (!known && learn.unknown == Unknown::Ignore) {
            return;
        }
        let kept = self.table.borrow().get(key).map_or(FibEntry::Wanted, |n| n.fib_entry);
        match self.set(key, learn.mac, Origin::Dynamic, kept) {
            Ok(()) | Err(NeighbourError::Static(..)) => {}
            Err(e) => {
                self.counters.refused.add(0, key.0.0 as usize, 1);
                tracing::debug!(interface = %key.0, address = %key.1, mac = %learn.mac, "not learnt: {e}");
            }
        }
    }

    /// What is known of a neighbour.
    pub fn get(&self, key: Key) -> Option<Neighbour> {
        self.table.borrow().get(key)
    }

    /// All neighbours, by interface and address.
    pub fn list(&self) -> Vec<Info> {
        let now = self.graph.clock().now();
        let info = |((interface, address), neighbour): (Key, Neighbour)| {
            let age = now.since(neighbour.updated);
            Info { interface, address, neighbour, age }
        };
        self.table.borrow().iter().map(info).collect()
    }

    /// The table's bounds.
    pub fn limits(&self) -> Limits {
        self.table.borrow().limits()
    }

    /// Changes the table's bounds.
    pub fn set_limits(&self, new: NewLimits) {
        let old = self.limits();
        self.table.borrow_mut().set_limits(Limits {
            entries: new.entries.unwrap_or(old.entries),
            age: new.age.unwrap_or(old.age),
            when_full: new.when_full.unwrap_or(old.when_full),
        });
        self.ring();
    }

    fn name(&self, interface: SwIfIndex) -> String {
        self.interfaces.name(interface).unwrap_or_else(|_| format!("interface {interface}"))
    }

    fn ring(&self) {
        // Full: it has been rung already.
        let _ = self.bell.try_send(());
    }
}

/// How many addresses from `first` on, if there are so many.
fn count_of(first: Ipv4Addr, count: u32) -> Result<u32, NeighbourError> {
    let most = (u32::MAX - first.to_bits()).saturating_add(1);
    if count <= most { Ok(count) } else { Err(NeighbourError::TooMany { first, count, most }) }
}
