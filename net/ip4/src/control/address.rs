//! Addresses of interfaces.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::rc::{Rc, Weak};

use shoal_adj::Adjacencies;
use shoal_fib::{Connected, Family, Fib, FibIndex, HostAddress, Source, Via};
use shoal_infra::{TwinTable, TwinTableWriter};
use shoal_interface::{Event, IfFlags, Interfaces, MAX_INTERFACES, SwIfIndex};
use shoal_ip::{AddressError, Addresses as _, RouteChange, Routes};
use shoal_module::{Control, InitError};
use shoal_wire::Ip4Prefix;

use super::Ip4IfTable;
use super::host::check_host;

/// An address came or went. When it is reported, it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressEvent {
    /// The interface has the address.
    Added(SwIfIndex, Ip4Prefix),
    /// The interface has it no longer.
    Removed(SwIfIndex, Ip4Prefix),
    /// What an unnumbered interface borrows is another address now, or none.
    Borrowed(SwIfIndex),
}

type Subscriber = Rc<dyn Fn(&Rc<Control>, AddressEvent)>;
/// What is kept of IPv4 on one interface.
#[derive(Clone, Default)]
pub struct OnInterface {
    pub(super) fib: FibIndex,
    /// The first is the primary one.
    pub(super) addresses: Vec<Ip4Prefix>,
    pub(super) directed_broadcast: bool,
    /// IPv4 runs although there may be no address.
    pub(super) explicit: bool,
    /// The same, as a feature that learns addresses needs it.
    pub(super) learns: bool,
    /// The interface whose addresses it borrows.
    pub(super) borrows: Option<SwIfIndex>,
    /// The operator has it down: its addresses give no routes.
    pub(super) down: bool,
}

impl shoal_fib::OnInterface for OnInterface {
    fn fib(&self) -> FibIndex {
        self.fib
    }

    fn addresses(&self) -> impl Iterator<Item = HostAddress> {
        self.addresses.iter().map(|a| HostAddress::from(*a))
    }

    fn usable(&self) -> impl Iterator<Item = HostAddress> {
        self.addresses.iter().map(|a| HostAddress::from(*a))
    }

    fn lender(&self) -> Option<SwIfIndex> {
        self.borrows
    }
}

/// IPv4 on interfaces.
pub struct Ip4 {
    control: Weak<Control>,
    pub(super) interfaces: Rc<Interfaces>,
    adjacencies: Rc<Adjacencies>,
    pub(super) fib: Rc<Fib>,
    table: Ip4IfTable,
    writer: RefCell<TwinTableWriter<[u32; 3]>>,
    pub(super) on: RefCell<Connected<OnInterface>>,
    subscribers: RefCell<Vec<Subscriber>>,
    /// Addresses that go at the end of a replacement.
    pub(super) marked: RefCell<BTreeSet<(SwIfIndex, Ip4Prefix)>>,
    /// Addresses that no operator gave.
    learnt: RefCell<BTreeSet<(SwIfIndex, Ip4Prefix)>>,
    /// Addresses that another party has brought, which says so when it takes them away again.
    brought: RefCell<BTreeSet<(SwIfIndex, Ip4Prefix)>>,
}

impl Ip4 {
    /// No addresses yet.
    ///
    /// # Errors
    /// A module it needs is missing, or there is no memory.
    pub fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (table, writer) = TwinTable::with_capacity(MAX_INTERFACES)?;
        let interfaces = control.get::<Interfaces>()?;
        interfaces.subscribe(|control, event| match (control.get::<Ip4>(), event) {
            (Ok(ip4), Event::Deleting(interface)) => ip4.forget_interface(interface),
            (Ok(ip4), Event::Admin(interface, _)) => ip4.follow_admin(interface),
            _ => {}
        });
        let ip4 = Rc::new(Ip4 {
            control: Rc::downgrade(control),
            interfaces: Rc::clone(&interfaces),
            adjacencies: control.get::<Adjacencies>()?,
            fib: control.get::<Fib>()?,
            table: Ip4IfTable(table),
            writer: RefCell::new(writer),
            on: RefCell::default(),
            subscribers: RefCell::default(),
            marked: RefCell::default(),
            learnt: RefCell::default(),
            brought: RefCell::default(),
        });
        let source = Rc::downgrade(&ip4);
        interfaces.add_address_source(move |i| source.upgrade().map(|ip4| ip4.lines(i)).unwrap_or_default());
        Ok(ip4)
    }

    /// The primary addresses packets read.
    pub fn table(&self) -> Ip4IfTable {
        self.table.clone()
    }

    /// Tells `subscriber` of all addresses that come and go from now on.
    pub fn subscribe(&self, subscriber: impl Fn(&Rc<Control>, AddressEvent) + 'static) {
        self.subscribers.borrow_mut().push(Rc::new(subscriber));
    }

    pub(super) fn tell(&self, event: AddressEvent) {
        let subscribers = self.subscribers.borrow().clone();
        if let Some(control) = self.control.upgrade() {
            for subscriber in subscribers {
                subscriber(&control, event);
            }
        }
    }

    pub(super) fn on(&self, interface: SwIfIndex) -> OnInterface {
        let known = self.on.borrow().get(&interface).cloned();
        known.unwrap_or_default()
    }

    /// The interface's addresses, the primary one first.
    pub fn addresses(&self, interface: SwIfIndex) -> Vec<Ip4Prefix> {
        self.on(interface).addresses
    }

    /// Whether packets to the last address of a connected network go to everybody in it.
    pub fn directed_broadcast(&self, interface: SwIfIndex) -> bool {
        self.on(interface).directed_broadcast
    }

    /// The interface's first address, or that of the one it borrows from.
    pub fn primary(&self, interface: SwIfIndex) -> Option<Ipv4Addr> {
        self.spoken(interface).first().map(Ip4Prefix::addr)
    }

    /// The table packets received on the interface are looked up in.
    pub fn fib_of(&self, interface: SwIfIndex) -> FibIndex {
        self.on.borrow().get(&interface).map_or(FibIndex::DEFAULT, |on| on.fib)
    }

    /// The address to send from to `dst`: one of the sending interface's, if it can be in the same network as the
    /// next hop. `dst` itself if it is the router's own; `None` if there is no way or the interface has no address.
    pub fn source_for(&self, dst: Ipv4Addr, fib: FibIndex) -> Option<Ipv4Addr> {
        if self.is_own(dst, fib) {
            return Some(dst);
        }
        // Of several ways the first: an address of the router's is right on each.
        let adj = self.adjacencies.first(self.fib.lookup(fib, dst));
        let next_hop = match adj.next_hop_ip4() {
            0 => dst,
            next_hop => Ipv4Addr::from_bits(next_hop),
        };
        let addresses = self.spoken(adj.tx());
        addresses.iter().find(|a| a.contains(next_hop)).or(addresses.first()).map(Ip4Prefix::addr)
    }

    /// Whether an address is the router's own in a table.
    pub fn is_own(&self, addr: Ipv4Addr, fib: FibIndex) -> bool {
        self.on.borrow().is_own(fib, addr)
    }

    /// Gives an interface an address.
    ///
    /// # Errors
    /// There is no such interface, it cannot be a host's address, or another network in the table overlaps.
    pub fn add_address(&self, interface: SwIfIndex, address: Ip4Prefix) -> Result<(), AddressError> {
        self.interfaces.check_routable(interface)?;
        if self.unmark(interface, address) {
            return Ok(());
        }
        check_host(address)?;
        self.check_room(interface, address)?;
        let old = self.on(interface);
        let mut new = old.clone();
        new.addresses.push(address);
        self.apply(interface, &old, new)?;
        self.tell(AddressEvent::Added(interface, address));
        Ok(())
    }

    /// Takes an address from an interface.
    ///
    /// # Errors
    /// It does not have it.
    pub fn del_address(&self, interface: SwIfIndex, address: Ip4Prefix) -> Result<(), AddressError> {
        self.check_has(interface, address)?;
        let old = self.on(interface);
        let mut new = old.clone();
        new.addresses.retain(|a| *a != address);
        self.apply(interface, &old, new)?;
        self.learnt.borrow_mut().remove(&(interface, address));
        self.tell(AddressEvent::Removed(interface, address));
        Ok(())
    }

    /// Takes all addresses from an interface; how many it had.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn del_all(&self, interface: SwIfIndex) -> Result<usize, AddressError> {
        self.interfaces.data(interface)?;
        let old = self.on(interface);
        self.apply(interface, &old, OnInterface { addresses: Vec::new(), ..old.clone() })?;
        for address in &old.addresses {
            self.learnt.borrow_mut().remove(&(interface, *address));
            self.tell(AddressEvent::Removed(interface, *address));
        }
        Ok(old.addresses.len())
    }

    /// IPv4 runs on an interface even without an address, or only with one.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn enable(&self, interface: SwIfIndex, on: bool) -> Result<(), AddressError> {
        if on {
            self.interfaces.check_routable(interface)?;
        }
        self.interfaces.data(interface)?;
        let old = self.on(interface);
        self.apply(interface, &old, OnInterface { explicit: on, ..old.clone() })
    }

    /// The same, as long as a feature learns addresses there.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_learns(&self, interface: SwIfIndex, on: bool) -> Result<(), AddressError> {
        if on {
            self.interfaces.check_routable(interface)?;
        }
        self.interfaces.data(interface)?;
        let old = self.on(interface);
        self.apply(interface, &old, OnInterface { learns: on, ..old.clone() })
    }

    /// Gives an interface an address that was learnt: it is not part of what an operator configured.
    ///
    /// # Errors
    /// As [`add_address`](Self::add_address).
    pub fn add_learnt(&self, interface: SwIfIndex, address: Ip4Prefix) -> Result<(), AddressError> {
        self.add_address(interface, address)?;
        self.learnt.borrow_mut().insert((interface, address));
        Ok(())
    }

    /// Whether an address was learnt.
    pub fn is_learnt(&self, interface: SwIfIndex, address: Ip4Prefix) -> bool {
        self.learnt.borrow().contains(&(interface, address))
    }

    /// Another party has brought an address: it is part of the configuration, but no older configuration takes it away. That stays so
    /// until the party says otherwise, also while the interface goes without the address on its way to another table.
    pub fn set_brought(&self, interface: SwIfIndex, address: Ip4Prefix, by_others: bool) {
        let mut brought = self.brought.borrow_mut();
        if by_others {
            brought.insert((interface, address));
        } else {
            brought.remove(&(interface, address));
        }
    }

    /// Whether another party has brought an address.
    pub fn is_brought(&self, interface: SwIfIndex, address: Ip4Prefix) -> bool {
        self.brought.borrow().contains(&(interface, address))
    }

    /// Whether IPv4 is to run on an interface even without an address.
    pub fn is_enabled_without_address(&self, interface: SwIfIndex) -> bool {
        self.on.borrow().get(&interface).is_some_and(|on| on.explicit)
    }

    /// Has packets received on an interface looked up in another table.
    ///
    /// # Errors
    /// There is no such interface or table, or the interface has addresses, which belong to its old one.
    pub fn set_table(&self, interface: SwIfIndex, table: u32) -> Result<(), AddressError> {
        self.follow_table(interface, table)?;
        self.fib.ask_for(Family::Ip4, self.fib_of(interface));
        Ok(())
    }

    /// The same for a feature, which does so again when it is needed: no configuration has the table for that.
    ///
    /// # Errors
    /// As [`set_table`](Self::set_table).
    pub fn follow_table(&self, interface: SwIfIndex, table: u32) -> Result<(), AddressError> {
        self.interfaces.data(interface)?;
        let fib = self.fib.index_of(Family::Ip4, table)?;
        let old = self.on(interface);
        if old.fib == fib {
            return Ok(());
        }
        self.check_moves(interface)?;
        self.apply(interface, &old, OnInterface { fib, ..old.clone() })
    }

    /// Whether packets to the last address of a connected network go to everybody in it (RFC 2644: normally not).
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_directed_broadcast(&self, interface: SwIfIndex, on: bool) -> Result<(), AddressError> {
        self.interfaces.data(interface)?;
        let old = self.on(interface);
        self.apply(interface, &old, OnInterface { directed_broadcast: on, ..old.clone() })
    }

    /// Goes from one state of an interface to another: routes, table, what packets read. On error nothing is
    /// changed.
    pub(super) fn apply(
        &self,
        interface: SwIfIndex,
        old: &OnInterface,
        mut new: OnInterface,
    ) -> Result<(), AddressError> {
        new.down = !self.interfaces.data(interface)?.flags().has(IfFlags::ADMIN_UP);
        let (had, wants) = (old.routes(interface), new.routes(interface));
        let change = RouteChange::begin(&self.fib, new.fib, had, wants)?;
        if let Err(e) = self.publish(interface, old, &new) {
            change.undo();
            return Err(e);
        }
        change.finish(old.fib);
        let idle = !new.enabled() && new.fib == FibIndex::DEFAULT && !new.directed_broadcast;
        let lends = old.addresses != new.addresses;
        if idle {
            self.on.borrow_mut().remove(interface);
        } else {
            self.on.borrow_mut().insert(interface, new);
        }
        if lends {
            self.renew_borrowers(interface);
        }
        Ok(())
    }

    fn publish(
        &self,
        interface: SwIfIndex,
        old: &OnInterface,
        new: &OnInterface,
    ) -> Result<(), AddressError> {
        self.publish_primary(interface, new)?;
        let before = self.interfaces.data(interface)?.flags().has(IfFlags::IP4);
        let enabled = match (old.enabled(), new.enabled()) {
            (false, true) => true,
            (true, false) => false,
            _ => before,
        };
        self.interfaces.set_ip4(interface, enabled, new.fib.0)?;
        if new.holds() {
            self.fib.lock(Family::Ip4, new.fib, Source::Interface)?;
        }
        if old.holds() {
            self.fib.unlock(Family::Ip4, old.fib, Source::Interface);
        }
        Ok(())
    }

    /// What packets read: the first address, its mask, and the interface that lends it.
    pub(super) fn publish_primary(&self, interface: SwIfIndex, on: &OnInterface) -> Result<(), AddressError> {
        let own = || on.addresses.first().map(|a| [a.addr().to_bits(), a.mask_bits(), 0]);
        let words = self.borrowed_words(on).or_else(own).unwrap_or_default();
        let (at, mut writer) = (interface.0 as usize, self.writer.borrow_mut());
        if writer.get(at).copied().unwrap_or_default() == words {
            return Ok(());
        }
        writer.store(at, words).map_err(|e| AddressError::Table(e.to_string()))
    }

    /// The routes of addresses are there while the operator has their interface up, as in VPP.
    fn follow_admin(&self, interface: SwIfIndex) {
        let known = self.on.borrow().get(&interface).cloned();
        let Some(on) = known else { return };
        if let Err(e) = self.apply(interface, &on, on.clone()) {
            tracing::warn!(%interface, "routes of its addresses do not follow: {e}");
        }
    }

    fn forget_interface(&self, interface: SwIfIndex) {
        self.stop_lending(interface);
        let old = self.on(interface);
        if let Err(e) = self.apply(interface, &old, OnInterface::default()) {
            tracing::warn!("addresses of a deleted interface stay: {e}");
            return;
        }
        // Another interface may have the number soon.
        self.learnt.borrow_mut().retain(|(of, _)| *of != interface);
        self.brought.borrow_mut().retain(|(of, _)| *of != interface);
        for address in old.addresses {
            self.tell(AddressEvent::Removed(interface, address));
        }
    }

    /// Lines for `show interface address`.
    fn lines(&self, interface: SwIfIndex) -> Vec<String> {
        let on = self.on(interface);
        let table = match self.fib.id_of(Family::Ip4, on.fib) {
            Ok(id) if on.fib != FibIndex::DEFAULT => format!(" ip4 table-id {id} fib-idx {}", on.fib),
            _ => String::new(),
        };
        let borrows = on.borrows.and_then(|lender| self.interfaces.name(lender).ok());
        let borrows = borrows.map(|lender| format!("unnumbered, use {lender}"));
        on.addresses.iter().map(|a| format!("{a}{table}")).chain(borrows).collect()
    }
}

impl OnInterface {
    /// Whether IPv4 runs.
    pub(super) fn enabled(&self) -> bool {
        self.explicit || self.learns || !self.addresses.is_empty() || self.borrows.is_some()
    }

    /// Whether the table must stay for it.
    fn holds(&self) -> bool {
        self.enabled() || self.fib != FibIndex::DEFAULT
    }

    /// The entries its addresses give its table.
    fn routes(&self, interface: SwIfIndex) -> Routes<Ip4Prefix> {
        let mut routes = Routes::new();
        if self.down {
            return routes;
        }
        for address in self.addresses.iter().filter(|a| a.len() < Ip4Prefix::MAX_LEN) {
            let source = address.addr();
            // Of several addresses in one network the first asks for neighbours.
            routes.entry(address.normalized()).or_insert(Via::Attached { interface, source: source.into() });
            if let Some(last) = address.broadcast() {
                let broadcast =
                    if self.directed_broadcast { Via::Broadcast { interface } } else { Via::Drop };
                routes.insert(Ip4Prefix::host(last), broadcast);
                routes.insert(Ip4Prefix::host(address.network()), Via::Drop);
            }
        }
        for address in self.addresses.iter().map(Ip4Prefix::addr) {
            routes.insert(
                Ip4Prefix::host(address),
                Via::Local { interface: Some(interface), address: address.into() },
            );
        }
        routes
    }
}
