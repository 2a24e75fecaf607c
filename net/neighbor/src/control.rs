//! The control plane of neighbours: the only code that writes the table, neighbours' adjacencies and host routes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use shoal_adj::{Adj, AdjIndex, AdjKind, Adjacencies, Link};
use shoal_fib::{Fib, FibIndex};
use shoal_graph::clock::Time;
use shoal_graph::process::Sender;
use shoal_graph::{Edge, Graph};
use shoal_infra::qsbr;
use shoal_interface::{Event, IfData, IfFlags, Interfaces, LinkHeader, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;

use crate::changes::{self, Change, Changes};
use crate::counters::HeldCounters;
use crate::message::NotSent;
use crate::table::{FibEntry, Key, Limits, Neighbour, Origin, Proof, Refused, Stored, Table, WhenFull};
use crate::{Address, Families, NeighbourError, Protocol};

mod ask;
mod dead;
mod reach;
mod route;

use ask::Asking;
pub use ask::MOST_HELD_EACH;
use reach::Reach;
pub use reach::{Role, State};

/// What a neighbour has in other tables.
struct Installed {
    /// Its adjacency, locked once.
    adj: AdjIndex,
    /// The table with its host route.
    route: Option<FibIndex>,
    /// What was known when it was entered or changed.
    known: Neighbour,
    /// The station that the operator gave it, though the network may say otherwise.
    given: Option<MacAddress>,
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
    /// Most dynamic entries of one interface; 0: no limit.
    pub interface_entries: Option<usize>,
    /// When an entry is asked for again; zero: never.
    pub age: Option<Duration>,
    /// What happens when the table is full.
    pub when_full: Option<WhenFull>,
}

/// One neighbour, as `show ip neighbors` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info<A> {
    /// The link.
    pub interface: SwIfIndex,
    /// Its address.
    pub address: A,
    /// What is known of it.
    pub neighbour: Neighbour,
    /// How long ago it was last confirmed.
    pub age: Duration,
    /// How sure it is that it is there; `None` when the protocol does not doubt, or for an operator's entry.
    pub state: Option<State>,
    /// The role that it announced.
    pub role: Role,
}

/// All neighbours of one family.
pub struct Neighbours<P: Protocol> {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    adjacencies: Rc<Adjacencies>,
    fib: Rc<Fib>,
    protocol: P,
    counters: HeldCounters,
    table: RefCell<Table<P::Addr>>,
    installed: RefCell<BTreeMap<Key<P::Addr>, Installed>>,
    asking: RefCell<Asking<P::Addr>>,
    reach: RefCell<Reach<P::Addr>>,
    /// Next hops of routes that do not answer, and when each is asked again.
    dead: RefCell<BTreeMap<Key<P::Addr>, Time>>,
    /// Rung when something becomes due earlier than the timer's task thinks.
    bell: Sender<()>,
    changes: Rc<Changes>,
    /// Entries that go when a replacement ends, unless they are entered again.
    marked: RefCell<BTreeSet<Key<P::Addr>>>,
}

impl<P: Protocol> Neighbours<P> {
    /// An empty table that describes its neighbours' adjacencies from now on, and is listed among the families.
    ///
    /// # Errors
    /// A module it needs is missing.
    pub fn new(
        control: &Rc<Control>,
        protocol: P,
        counters: HeldCounters,
        bell: Sender<()>,
    ) -> Result<Rc<Self>, InitError> {
        let neighbours = Rc::new(Neighbours {
            graph: control.graph()?,
            interfaces: control.get()?,
            adjacencies: control.get()?,
            fib: control.get()?,
            protocol,
            counters,
            table: RefCell::default(),
            installed: RefCell::default(),
            asking: RefCell::default(),
            reach: RefCell::default(),
            dead: RefCell::default(),
            bell,
            changes: Changes::of(control),
            marked: RefCell::default(),
        });
        let weak = Rc::downgrade(&neighbours);
        let describe = move |interface, link, next_hop| match weak.upgrade() {
            Some(neighbours) => neighbours.describe(interface, link, next_hop),
            None => Adj::on(AdjKind::Incomplete, interface, 0),
        };
        neighbours.adjacencies.set_describe(P::FAMILY, Rc::new(describe));
        let weak = Rc::downgrade(&neighbours);
        neighbours.interfaces.subscribe(move |_, event| {
            if let Some(neighbours) = weak.upgrade() {
                neighbours.on_event(event);
            }
        });
        neighbours.interfaces.indices().into_iter().for_each(|i| neighbours.counters.begin(i));
        Families::of(control).add(P::FAMILY, Rc::clone(&neighbours) as _);
        Ok(neighbours)
    }

    /// What the family's protocol does for it.
    pub fn protocol(&self) -> &P {
        &self.protocol
    }

    fn on_event(&self, event: Event) {
        match event {
            Event::Created(i) => self.counters.begin(i),
            Event::Deleting(i) => self.flush(Some(i), Flush::All),
            Event::Admin(i, false) | Event::Link(i, false) => self.flush(Some(i), Flush::Dynamic),
            Event::Mac(i) | Event::Mtu(i) => self.renew_ways(i),
            _ => {}
        }
    }

    /// Some addresses of an interface are no longer on its link: neighbours that were learnt there are forgotten.
    pub fn leave(&self, interface: SwIfIndex, gone: impl Fn(P::Addr) -> bool) {
        self.forget(|key, n| key.0 == interface && gone(key.1) && n.origin == Origin::Dynamic);
        self.give_up(|key| key.0 == interface && gone(key.1), NotSent::Gone);
        self.revive_all(|key| key.0 == interface && gone(key.1));
    }

    /// An adjacency's line: complete when the neighbour is known and its interface is up.
    fn describe(&self, interface: SwIfIndex, link: Link, next_hop: IpAddr) -> Adj {
        let Some(address) = P::Addr::of(next_hop) else { return Adj::special(AdjKind::Drop) };
        let Ok(data) = self.interfaces.data(interface) else { return Adj::special(AdjKind::Drop) };
        let key = (interface, address);
        if let Some(stale) = self.describe_stale(key, link, link.mtu(&data)) {
            return stale;
        }
        self.complete(key, link).unwrap_or_else(|| {
            let asker = self.protocol.asker();
            let edge = asker.and_then(|asker| self.adjacencies.edge_to_asker(link, asker).ok());
            Adj::on(AdjKind::Incomplete, interface, link.mtu(&data)).with_edge(edge.unwrap_or(Edge::DROP))
        })
    }

    /// An adjacency's line with all that is needed to send; `None` as long as something is missing.
    fn complete(&self, (interface, address): Key<P::Addr>, link: Link) -> Option<Adj> {
        let data = self.interfaces.data(interface).ok().filter(IfData::is_up)?;
        let header = if data.flags().all(IfFlags::ETHERNET.set(IfFlags::POINT_TO_POINT, true)) {
            // The other end takes what is for everybody.
            LinkHeader::new(&data, MacAddress::BROADCAST, link.ether_type()).to_vec()
        } else if data.flags().has(IfFlags::ETHERNET) {
            let known = self.table.borrow().get((interface, address))?;
            LinkHeader::new(&data, known.mac, link.ether_type()).to_vec()
        } else {
            // A link without stations: nothing to resolve, nothing to put in front.
            Vec::new()
        };
        let edge = self.adjacencies.edge_to(link, interface).ok()?;
        Some(Adj::on(AdjKind::Rewrite, interface, link.mtu(&data)).with_rewrite(&header, edge))
    }

    /// Enters a neighbour, or changes what is known of it; packets that waited for it leave.
    ///
    /// # Errors
    /// No station or host can have these addresses, there is no such Ethernet interface, the table is full, or
    /// the entry is static and this fact is not.
    pub fn set(
        &self,
        (interface, address): Key<P::Addr>,
        mac: MacAddress,
        origin: Origin,
        fib_entry: FibEntry,
    ) -> Result<(), NeighbourError> {
        self.enter((interface, address), mac, (origin, fib_entry), Proof::Answered)?;
        // What an operator says is not doubted, as in VPP; a dynamic entry is from when the network speaks of it.
        self.trust((interface, address));
        self.answered((interface, address));
        if let Some(installed) = self.installed.borrow_mut().get_mut(&(interface, address)) {
            installed.given = Some(mac);
        }
        Ok(())
    }

    /// Whether a neighbour is the one that the operator gave.
    pub fn is_given(&self, key: Key<P::Addr>) -> bool {
        self.installed.borrow().get(&key).is_some_and(|i| i.given == Some(i.known.mac))
    }

    /// A station claimed an address; `state` is how sure that makes us that packets reach it, `proof` whether it
    /// answered us. A static entry stays as it is.
    ///
    /// # Errors
    /// As [`Neighbours::set`], but that a static entry is no error.
    pub fn learn(
        &self,
        key: Key<P::Addr>,
        mac: MacAddress,
        (state, proof): (State, Proof),
        role: Role,
    ) -> Result<(), NeighbourError> {
        if !self.interfaces.data(key.0)?.is_up() {
            return Ok(());
        }
        let kept = self.table.borrow().get(key).map_or(FibEntry::Wanted, |n| n.fib_entry);
        match self.enter(key, mac, (Origin::Dynamic, kept), proof) {
            Ok(()) => {
                self.doubt(key, state);
                self.set_role(key, role);
                self.answered(key);
                Ok(())
            }
            Err(NeighbourError::Static(..)) => Ok(()),
            Err(e) => {
                self.counters.full.add(0, key.0.0 as usize, 1);
                tracing::debug!(interface = %key.0, address = %key.1, %mac, "not learnt: {e}");
                Err(e)
            }
        }
    }

    fn enter(
        &self,
        (interface, address): Key<P::Addr>,
        mac: MacAddress,
        (origin, fib_entry): (Origin, FibEntry),
        proof: Proof,
    ) -> Result<(), NeighbourError> {
        self.check(interface, address, mac, origin)?;
        qsbr::admit()?;
        let key = (interface, address);
        let neighbour = Neighbour { mac, origin, fib_entry, proof, updated: self.graph.clock().now() };
        let old = self.table.borrow().get(key);
        let stored = self.table.borrow_mut().store(key, neighbour).map_err(|refused| match refused {
            Refused::Full(limit) => NeighbourError::Full(limit, P::FAMILY),
            Refused::Static => NeighbourError::Static(address.into(), self.name(interface)),
        })?;
        self.marked.borrow_mut().remove(&key);
        match stored {
            Stored::Same => {}
            Stored::Changed => {
                self.change(key, old, neighbour);
                self.changed(changes::Event::Added, key, neighbour);
            }
            Stored::New(gone) => {
                if let Some(recycled) = gone {
                    self.uninstall(recycled);
                }
                if let Err(e) = self.install(key, neighbour) {
                    self.table.borrow_mut().remove(key);
                    return Err(e);
                }
                self.changed(changes::Event::Added, key, neighbour);
            }
        }
        self.revive(key);
        Ok(())
    }

    /// Enters `count` neighbours with rising addresses; up to the first that is refused.
    ///
    /// # Errors
    /// As [`Neighbours::set`], or the addresses go past the last one.
    pub fn set_many(
        &self,
        (interface, first): Key<P::Addr>,
        mac: MacAddress,
        count: u32,
        origin: Origin,
        fib_entry: FibEntry,
    ) -> Result<(), NeighbourError> {
        for n in 0..count_of(first, count)? {
            let mac = MacAddress::from_u64(mac.to_u64() + u64::from(n));
            self.set((interface, first.plus(n)), mac, origin, fib_entry)?;
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
        first: P::Addr,
        count: u32,
    ) -> Result<(), NeighbourError> {
        let count = count_of(first, count)?;
        (0..count).try_for_each(|n| self.remove((interface, first.plus(n))))
    }

    fn check(
        &self,
        interface: SwIfIndex,
        address: P::Addr,
        mac: MacAddress,
        origin: Origin,
    ) -> Result<(), NeighbourError> {
        let data = self.interfaces.data(interface)?;
        if !data.flags().has(IfFlags::ETHERNET) {
            return Err(NeighbourError::NotEthernet(self.name(interface)));
        }
        if !address.is_host() {
            return Err(NeighbourError::NoHost(address.into()));
        }
        // Clusters share a group address, but only an operator can know that.
        if mac.is_zero() || mac.is_broadcast() || (mac.is_multicast() && origin == Origin::Dynamic) {
            return Err(NeighbourError::NoStation(mac));
        }
        Ok(())
    }

    fn change(&self, key: Key<P::Addr>, old: Option<Neighbour>, new: Neighbour) {
        self.adjacencies.refresh_neighbour(key.0, key.1.into());
        if old.map(|n| n.fib_entry) != Some(new.fib_entry) {
            let route = self.installed.borrow_mut().get_mut(&key).and_then(|i| i.route.take());
            self.withdraw(key, route);
            let route = self.announce(key, new.fib_entry);
            if let Some(installed) = self.installed.borrow_mut().get_mut(&key) {
                installed.route = route;
            }
        }
        if let Some(installed) = self.installed.borrow_mut().get_mut(&key) {
            installed.known = new;
        }
    }

    fn install(&self, key: Key<P::Addr>, known: Neighbour) -> Result<(), NeighbourError> {
        let adj = self.adjacencies.neighbour(key.0, Link::from(P::FAMILY), key.1.into())?;
        // It may have been there before, incomplete.
        self.adjacencies.refresh_neighbour(key.0, key.1.into());
        let route = self.announce(key, known.fib_entry);
        self.installed.borrow_mut().insert(key, Installed { adj, route, known, given: None });
        self.ring();
        Ok(())
    }

    /// Takes out of other tables what a neighbour had there; the table has forgotten it already.
    fn uninstall(&self, key: Key<P::Addr>) {
        let Some(Installed { adj, route, known, .. }) = self.installed.borrow_mut().remove(&key) else {
            return;
        };
        self.marked.borrow_mut().remove(&key);
        self.withdraw(key, route);
        let ways = self.reach.borrow_mut().remove(key);
        self.adjacencies.refresh_neighbour(key.0, key.1.into());
        self.adjacencies.unlock(adj);
        self.unlock_ways(ways);
        self.changed(changes::Event::Removed, key, known);
    }

    fn changed(&self, event: changes::Event, (interface, address): Key<P::Addr>, neighbour: Neighbour) {
        self.changes.tell(&Change { event, interface, address: address.into(), neighbour });
    }

    /// Forgets one neighbour.
    ///
    /// # Errors
    /// It is not known.
    pub fn remove(&self, key: Key<P::Addr>) -> Result<(), NeighbourError> {
        self.interfaces.data(key.0)?;
        let known = self.table.borrow_mut().remove(key);
        known.ok_or_else(|| NeighbourError::NoNeighbour(key.1.into(), self.name(key.0)))?;
        self.uninstall(key);
        self.revive(key);
        Ok(())
    }

    /// Forgets neighbours, on one interface or all, and drops packets that wait for them.
    pub fn flush(&self, interface: Option<SwIfIndex>, which: Flush) {
        let mine = |i: SwIfIndex| interface.is_none_or(|only| only == i);
        self.forget(|key, n| mine(key.0) && (which == Flush::All || n.origin == Origin::Dynamic));
        self.give_up(|key| mine(key.0), NotSent::Gone);
        // A neighbour that is looked for again deserves to be tried.
        self.revive_all(|key| mine(key.0));
    }

    fn forget(&self, which: impl Fn(Key<P::Addr>, &Neighbour) -> bool) {
        let old: Vec<Key<P::Addr>> = {
            let table = self.table.borrow();
            table.iter().filter(|(key, n)| which(*key, n)).map(|(key, _)| key).collect()
        };
        for key in old {
            self.table.borrow_mut().remove(key);
            self.uninstall(key);
        }
    }

    /// Marks all entries: those that are not entered again go at [`Neighbours::end_replacement`].
    pub fn begin_replacement(&self) {
        *self.marked.borrow_mut() = self.table.borrow().iter().map(|(key, _)| key).collect();
    }

    /// Forgets the entries that are still marked.
    pub fn end_replacement(&self) {
        let marked = std::mem::take(&mut *self.marked.borrow_mut());
        self.forget(|key, _| marked.contains(&key));
    }

    /// What is known of a neighbour.
    pub fn get(&self, key: Key<P::Addr>) -> Option<Neighbour> {
        self.table.borrow().get(key)
    }

    /// The adjacency of a neighbour that is known.
    pub fn adjacency(&self, key: Key<P::Addr>) -> Option<AdjIndex> {
        self.installed.borrow().get(&key).map(|installed| installed.adj)
    }

    /// All neighbours, by interface and address.
    pub fn list(&self) -> Vec<Info<P::Addr>> {
        self.list_after(None, usize::MAX)
    }

    /// At most so many of the neighbours behind one, by interface and address; the first ones for `None`.
    pub fn list_after(&self, after: Option<Key<P::Addr>>, most: usize) -> Vec<Info<P::Addr>> {
        let now = self.graph.clock().now();
        let reach = self.reach.borrow();
        let info = |(key, neighbour): (Key<P::Addr>, Neighbour)| {
            let age = now.since(neighbour.updated);
            let (state, role) = (reach.state(key), reach.role(key));
            Info { interface: key.0, address: key.1, neighbour, age, state, role }
        };
        self.table.borrow().iter_after(after).take(most).map(info).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.table.borrow().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
            interface_entries: new.interface_entries.unwrap_or(old.interface_entries),
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
fn count_of<A: Address>(first: A, count: u32) -> Result<u32, NeighbourError> {
    let most = first.rest();
    if count <= most { Ok(count) } else { Err(NeighbourError::TooMany { first: first.into(), count, most }) }
}
