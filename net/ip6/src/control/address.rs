//! Addresses of interfaces.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::rc::{Rc, Weak};

use shoal_adj::{Adjacencies, Family};
use shoal_fib::{Connected, Fib, FibIndex, Source};
use shoal_graph::{Graph, NodeIndex};
use shoal_infra::{TwinTable, TwinTableWriter};
use shoal_interface::{Event, IfFlags, Interfaces, MAX_INTERFACES, SwIfIndex};
use shoal_ip::{AddressError, Addresses as _, RouteChange, list};
use shoal_module::{Control, InitError};
use shoal_wire::ip6_address::{is_link_local, link_local_of, solicited_node};
use shoal_wire::{Ip6Prefix, MacAddress};

use super::data::words;
use super::host::check_host;
use super::info::Ip6Info;
use super::links::{Links, groups};
use super::{Ip6IfTable, Ip6LinkTable};
use crate::edges::Ip6Edges;

/// An address came or went. When it is reported, it has. A link-local one comes as a prefix of one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressEvent {
    /// The interface has the address.
    Added(SwIfIndex, Ip6Prefix),
    /// The interface has it no longer.
    Removed(SwIfIndex, Ip6Prefix),
    /// What an unnumbered interface borrows is other addresses now, or none.
    Borrowed(SwIfIndex),
}

type Subscriber = Rc<dyn Fn(&Rc<Control>, AddressEvent)>;

/// IPv6 on interfaces.
pub struct Ip6 {
    control: Weak<Control>,
    graph: Rc<Graph>,
    pub(super) interfaces: Rc<Interfaces>,
    adjacencies: Rc<Adjacencies>,
    pub(super) fib: Rc<Fib>,
    table: Ip6IfTable,
    writer: RefCell<TwinTableWriter<[u64; 4]>>,
    pub(super) links: Links,
    edges: Ip6Edges,
    pub(super) on: RefCell<Connected<Ip6Info>>,
    /// Whether somebody finds out if new addresses are the router's alone.
    pub(super) proving: Cell<bool>,
    /// Groups that others want the router in, and how many do.
    pub(super) joined: RefCell<BTreeMap<(SwIfIndex, Ipv6Addr), usize>>,
    subscribers: RefCell<Vec<Subscriber>>,
    /// Addresses that go at the end of a replacement.
    pub(super) marked: RefCell<BTreeSet<(SwIfIndex, Ip6Prefix)>>,
    /// Addresses that another party has brought, which says so when it takes them away again.
    pub(super) brought: RefCell<BTreeSet<(SwIfIndex, Ipv6Addr)>>,
}

impl Ip6 {
    /// No addresses yet.
    ///
    /// # Errors
    /// A module it needs is missing, or there is no memory.
    pub fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (table, writer) = TwinTable::with_capacity(MAX_INTERFACES)?;
        let interfaces = control.get::<Interfaces>()?;
        interfaces.subscribe(|control, event| match (control.get::<Ip6>(), event) {
            (Ok(ip6), Event::Deleting(interface)) => ip6.forget_interface(interface),
            (Ok(ip6), Event::Mac(interface)) => ip6.mac_changed(interface),
            (Ok(ip6), Event::Admin(interface, _)) => ip6.follow_admin(interface),
            _ => {}
        });
        let adjacencies = control.get::<Adjacencies>()?;
        let ip6 = Rc::new(Ip6 {
            control: Rc::downgrade(control),
            graph: control.graph()?,
            interfaces: Rc::clone(&interfaces),
            links: Links::new(Rc::clone(&adjacencies)),
            adjacencies,
            fib: control.get::<Fib>()?,
            table: Ip6IfTable(table),
            writer: RefCell::new(writer),
            edges: Ip6Edges::default(),
            on: RefCell::default(),
            proving: Cell::default(),
            joined: RefCell::default(),
            subscribers: RefCell::default(),
            marked: RefCell::default(),
            brought: RefCell::default(),
        });
        let source = Rc::downgrade(&ip6);
        interfaces.add_address_source(move |i| source.upgrade().map(|ip6| ip6.lines(i)).unwrap_or_default());
        Ok(ip6)
    }

    /// The addresses to speak from, as packets read them.
    pub fn table(&self) -> Ip6IfTable {
        self.table.clone()
    }

    /// What means something on one link only, as packets read it.
    pub fn link_table(&self) -> Ip6LinkTable {
        self.links.table.clone()
    }

    pub(crate) fn edges(&self) -> Ip6Edges {
        self.edges.clone()
    }

    /// The node that gets packets to unknown hosts of connected networks.
    ///
    /// # Errors
    /// There is no such node.
    pub fn set_glean_node(&self, node: NodeIndex) -> Result<(), AddressError> {
        let lookup = self.graph.node("ip6-lookup")?;
        self.edges.set_glean(self.graph.add_edge(lookup, node)?);
        Ok(())
    }

    /// The node that gets packets which are to leave by the interface they came in by, before they do. It sets
    /// [`REDIRECT_DONE`](shoal_buffer::Flags::REDIRECT_DONE) and sends them to `ip6-rewrite` again.
    ///
    /// # Errors
    /// There is no such node.
    pub fn set_redirect_node(&self, node: NodeIndex) -> Result<(), AddressError> {
        let rewrite = self.graph.node("ip6-rewrite")?;
        self.edges.set_redirect(self.graph.add_edge(rewrite, node)?);
        Ok(())
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

    /// IPv6 on an interface.
    pub fn on(&self, interface: SwIfIndex) -> Ip6Info {
        let known = self.on.borrow().get(&interface).cloned();
        known.unwrap_or_default()
    }

    /// The interfaces on which IPv6 runs.
    pub fn interfaces(&self) -> Vec<SwIfIndex> {
        self.on.borrow().iter().filter(|(_, on)| on.enabled()).map(|(i, _)| *i).collect()
    }

    /// The interface's addresses without the link-local one, the oldest first.
    pub fn addresses(&self, interface: SwIfIndex) -> Vec<Ip6Prefix> {
        self.on(interface).addresses
    }

    /// The interface's link-local address, while IPv6 runs on it.
    pub fn link_local(&self, interface: SwIfIndex) -> Option<Ipv6Addr> {
        self.on.borrow().get(&interface)?.link_local
    }

    /// The groups the router is in on an interface.
    pub fn groups(&self, interface: SwIfIndex) -> Vec<Ipv6Addr> {
        self.links.of(interface).into_iter().filter(Ipv6Addr::is_multicast).collect()
    }

    /// The table packets received on the interface are looked up in.
    pub fn fib_of(&self, interface: SwIfIndex) -> FibIndex {
        self.on.borrow().get(&interface).map_or(FibIndex::DEFAULT, |on| on.fib)
    }

    /// The address to send from to `dst`, which is beyond no link: one of the sending interface's, if it can be in the
    /// same network as the next hop. `dst` itself if it is the router's own; `None` if there is no way or no address.
    pub fn source_for(&self, dst: Ipv6Addr, fib: FibIndex) -> Option<Ipv6Addr> {
        if self.is_own(dst, fib) {
            return Some(dst);
        }
        // Of several ways the first: an address of the router's is right on each.
        let adj = self.adjacencies.first(self.fib.lookup(fib, dst));
        let next_hop = match adj.next_hop() {
            Some(std::net::IpAddr::V6(next_hop)) => next_hop,
            _ => dst,
        };
        let on = self.on.borrow();
        let sending = on.get(&adj.tx())?;
        let lender = sending.borrows.and_then(|lender| on.get(&lender)).unwrap_or(sending);
        let near = lender.usable().find(|a| a.contains(next_hop));
        let own = near.or(lender.usable().next()).map(Ip6Prefix::addr);
        own.or_else(|| first_global(&on, sending.fib))
    }

    /// Whether an address is the router's own in a table.
    pub fn is_own(&self, addr: Ipv6Addr, fib: FibIndex) -> bool {
        self.on.borrow().is_own(fib, addr)
    }

    /// Gives an interface an address; a link-local one takes the place of the one it has.
    ///
    /// # Errors
    /// There is no such interface, it cannot be a host's address, or another network in the table overlaps.
    pub fn add_address(&self, interface: SwIfIndex, address: Ip6Prefix) -> Result<(), AddressError> {
        if is_link_local(address.addr()) {
            return self.set_link_local(interface, address.addr());
        }
        self.interfaces.check_routable(interface)?;
        if self.unmark(interface, address) {
            return Ok(());
        }
        check_host(address)?;
        self.check_room(interface, address)?;
        let old = self.on(interface);
        let mut new = old.clone();
        new.addresses.push(address);
        self.apply(interface, &old, new)
    }

    /// Takes an address from an interface; without its link-local one it makes another of its MAC.
    ///
    /// # Errors
    /// It does not have it.
    pub fn del_address(&self, interface: SwIfIndex, address: Ip6Prefix) -> Result<(), AddressError> {
        let old = self.on(interface);
        let mut new = old.clone();
        if old.chosen == Some(address.addr()) {
            new.chosen = None;
            return self.apply(interface, &old, new);
        }
        self.check_has(interface, address)?;
        new.addresses.retain(|a| *a != address);
        self.apply(interface, &old, new)
    }

    /// Takes all addresses from an interface; how many it had.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn del_all(&self, interface: SwIfIndex) -> Result<usize, AddressError> {
        self.interfaces.data(interface)?;
        let old = self.on(interface);
        let new = Ip6Info { addresses: Vec::new(), chosen: None, ..old.clone() };
        self.apply(interface, &old, new)?;
        Ok(old.addresses.len())
    }

    /// IPv6 runs on an interface even without an address, or only with one.
    ///
    /// # Errors
    /// There is no such interface, or it has addresses that would be lost.
    pub fn enable(&self, interface: SwIfIndex, on: bool) -> Result<(), AddressError> {
        let name = self.interfaces.name(interface)?;
        if on {
            self.interfaces.check_routable(interface)?;
        }
        let old = self.on(interface);
        if !on && !old.addresses.is_empty() {
            return Err(AddressError::InUse { interface: name, addresses: list(&old.addresses) });
        }
        let chosen = old.chosen.filter(|_| on);
        self.apply(interface, &old, Ip6Info { explicit: on, chosen, ..old.clone() })
    }

    /// IPv6 runs on an interface only while it has an address; those that it has stay.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn leave_to_addresses(&self, interface: SwIfIndex) -> Result<(), AddressError> {
        self.interfaces.data(interface)?;
        let old = self.on(interface);
        self.apply(interface, &old, Ip6Info { explicit: false, ..old.clone() })
    }

    /// Sets an interface's link-local address.
    ///
    /// # Errors
    /// There is no such interface, or it is no such address.
    pub fn set_link_local(&self, interface: SwIfIndex, address: Ipv6Addr) -> Result<(), AddressError> {
        self.interfaces.data(interface)?;
        if !is_link_local(address) || address == Ip6LinkTable::ANY_INTERFACE {
            return Err(AddressError::NotLinkLocal(address));
        }
        let old = self.on(interface);
        self.apply(interface, &old, Ip6Info { chosen: Some(address), ..old.clone() })
    }

    /// Makes an interface's link-local address of its MAC address, as if none had been chosen.
    ///
    /// # Errors
    /// There is no such interface, or a table is full.
    pub fn derive_link_local(&self, interface: SwIfIndex) -> Result<(), AddressError> {
        self.interfaces.data(interface)?;
        let old = self.on(interface);
        self.apply(interface, &old, Ip6Info { chosen: None, ..old.clone() })
    }

    /// Packets of this router to a link-local address go to the neighbour that has it.
    ///
    /// # Errors
    /// IPv6 does not run on the interface, the address is the router's own or none of a host, or a table is full.
    pub fn set_link_neighbour(&self, interface: SwIfIndex, address: Ipv6Addr) -> Result<(), AddressError> {
        let on = self.on(interface);
        if !on.enabled() {
            return Err(AddressError::NotEnabled(self.interfaces.name(interface)?));
        }
        if !is_link_local(address) || address == Ip6LinkTable::ANY_INTERFACE || on.link_local == Some(address)
        {
            return Err(AddressError::NotLinkLocal(address));
        }
        Ok(self.links.neighbour(interface, address)?)
    }

    /// Such a neighbour is gone.
    pub fn forget_link_neighbour(&self, interface: SwIfIndex, address: Ipv6Addr) {
        if is_link_local(address) && self.link_local(interface) != Some(address) {
            self.links.leave(interface, address);
        }
    }

    /// The link-local address of an interface that runs IPv6.
    fn link_local_for(&self, interface: SwIfIndex, new: &Ip6Info) -> Result<Ipv6Addr, AddressError> {
        if let Some(chosen) = new.chosen {
            return Ok(chosen);
        }
        let data = self.interfaces.data(interface)?;
        let mac = if data.flags().has(IfFlags::ETHERNET) {
            data.mac()
        } else {
            // A link without stations has no MAC; any number that is the interface's own will do.
            MacAddress::from_u64(0x0200_0000_0000 | u64::from(interface.0))
        };
        Ok(link_local_of(mac))
    }

    /// Goes from one state of an interface to another: routes, table, what packets read. On error nothing is
    /// changed.
    pub(super) fn apply(
        &self,
        interface: SwIfIndex,
        old: &Ip6Info,
        mut new: Ip6Info,
    ) -> Result<(), AddressError> {
        new.down = !self.interfaces.data(interface)?.flags().has(IfFlags::ADMIN_UP);
        new.link_local = if new.enabled() { Some(self.link_local_for(interface, &new)?) } else { None };
        self.keep_unproven(old, &mut new);
        let addresses: BTreeSet<Ipv6Addr> = new.addresses.iter().map(Ip6Prefix::addr).collect();
        new.learnt.retain(|address| addresses.contains(address));
        let (had, wants) = (old.routes(interface), new.routes(interface));
        let change = RouteChange::begin(&self.fib, new.fib, had, wants)?;
        if let Err(e) = self.publish(interface, old, &new) {
            change.undo();
            return Err(e);
        }
        change.finish(old.fib);
        let tables = BTreeSet::from([old.fib, new.fib]);
        let speakers =
            |on: &Connected<Ip6Info>| -> Vec<_> { tables.iter().map(|fib| first_global(on, *fib)).collect() };
        let before = speakers(&self.on.borrow());
        if new.holds() {
            self.on.borrow_mut().insert(interface, new.clone());
        } else {
            self.on.borrow_mut().remove(interface);
        }
        let mut concerned = BTreeSet::from([interface]);
        concerned.extend(self.on.borrow().borrowers(interface));
        if speakers(&self.on.borrow()) != before {
            concerned.extend(tables.iter().flat_map(|fib| self.on.borrow().silent(*fib)));
        }
        self.publish_sources(concerned);
        self.tell_changes(interface, old, &new);
        if old.addresses != new.addresses || old.unproven != new.unproven {
            self.renew_borrowers(interface);
        }
        Ok(())
    }

    fn publish(&self, interface: SwIfIndex, old: &Ip6Info, new: &Ip6Info) -> Result<(), AddressError> {
        self.publish_links(interface, old, new)?;
        self.interfaces.set_ip6(interface, new.enabled(), new.fib.0)?;
        if new.holds() {
            self.fib.lock(Family::Ip6, new.fib, Source::Interface)?;
        }
        if old.holds() {
            self.fib.unlock(Family::Ip6, old.fib, Source::Interface);
        }
        Ok(())
    }

    /// What means something on the link: the link-local address, groups, everybody else.
    fn publish_links(&self, interface: SwIfIndex, old: &Ip6Info, new: &Ip6Info) -> Result<(), AddressError> {
        let Some(link_local) = new.link_local else {
            self.links.clear(interface);
            return Ok(());
        };
        let mut wants = groups(new.all().chain(new.anycast()));
        wants.extend(self.joined_on(interface));
        wants.extend(self.borrowed_by(new).iter().map(|a| solicited_node(a.addr())));
        for group in &wants {
            self.links.own(interface, *group)?;
        }
        if new.unproven.contains(&link_local) {
            self.links.bar(interface, link_local)?;
        } else {
            self.links.own(interface, link_local)?;
        }
        self.links.anybody(interface, link_local)?;
        if let Some(gone) = old.link_local.filter(|a| *a != link_local) {
            self.links.leave(interface, gone);
        }
        for group in self.groups(interface).into_iter().filter(|g| !wants.contains(g)) {
            self.links.leave(interface, group);
        }
        Ok(())
    }

    /// The addresses to speak from: an interface without one of its own borrows.
    fn publish_sources(&self, of: BTreeSet<SwIfIndex>) {
        let on = self.on.borrow();
        let mut writer = self.writer.borrow_mut();
        for interface in of {
            let Some(info) = on.get(&interface) else { continue };
            let lender = info.borrows.and_then(|lender| on.get(&lender)).unwrap_or(info);
            let own = lender.usable().next().map(Ip6Prefix::addr);
            let global = own.or_else(|| first_global(&on, info.fib));
            let link_local = info.link_local.filter(|a| !info.unproven.contains(a));
            let ([a, b], [c, d]) = (words(link_local), words(global));
            let at = interface.0 as usize;
            if writer.get(at) != Some(&[a, b, c, d])
                && let Err(e) = writer.store(at, [a, b, c, d])
            {
                tracing::warn!(%interface, "answers keep their old source: {e}");
            }
        }
    }

    fn tell_changes(&self, interface: SwIfIndex, old: &Ip6Info, new: &Ip6Info) {
        let prefixes = |info: &Ip6Info| -> Vec<Ip6Prefix> {
            info.link_local.map(Ip6Prefix::host).into_iter().chain(info.addresses.iter().copied()).collect()
        };
        let (had, has) = (prefixes(old), prefixes(new));
        for gone in had.iter().filter(|a| !has.contains(a)) {
            self.tell(AddressEvent::Removed(interface, *gone));
        }
        for come in has.iter().filter(|a| !had.contains(a)) {
            self.tell(AddressEvent::Added(interface, *come));
        }
    }

    fn forget_interface(&self, interface: SwIfIndex) {
        for group in self.joined_on(interface) {
            self.joined.borrow_mut().remove(&(interface, group));
        }
        self.stop_lending(interface);
        // Another interface may have the number soon.
        self.brought.borrow_mut().retain(|(of, _)| *of != interface);
        let old = self.on(interface);
        if let Err(e) = self.apply(interface, &old, Ip6Info::default()) {
            tracing::warn!("addresses of a deleted interface stay: {e}");
        }
        let cleared = self.writer.borrow_mut().store(interface.0 as usize, [0; 4]);
        if let Err(e) = cleared {
            tracing::warn!("addresses of a deleted interface stay: {e}");
        }
    }

    /// The routes of addresses are there while the operator has their interface up, as in VPP.
    fn follow_admin(&self, interface: SwIfIndex) {
        let known = self.on.borrow().get(&interface).cloned();
        let Some(on) = known else { return };
        if let Err(e) = self.apply(interface, &on, on.clone()) {
            tracing::warn!(%interface, "routes of its addresses do not follow: {e}");
        }
    }

    fn mac_changed(&self, interface: SwIfIndex) {
        let old = self.on(interface);
        if old.enabled()
            && let Err(e) = self.apply(interface, &old, old.clone())
        {
            tracing::warn!(%interface, "the link-local address is that of the old MAC: {e}");
        }
    }

    /// Lines for `show interface address`.
    fn lines(&self, interface: SwIfIndex) -> Vec<String> {
        let on = self.on(interface);
        let table = match self.fib.id_of(Family::Ip6, on.fib) {
            Ok(id) if on.fib != FibIndex::DEFAULT => format!(" ip6 table-id {id} fib-idx {}", on.fib),
            _ => String::new(),
        };
        on.addresses.iter().map(|a| format!("{a}{table}")).collect()
    }
}

/// The first address of any interface in a table.
fn first_global(on: &Connected<Ip6Info>, fib: FibIndex) -> Option<Ipv6Addr> {
    on.get(&on.first_speaker(fib)?)?.usable().next().map(Ip6Prefix::addr)
}
