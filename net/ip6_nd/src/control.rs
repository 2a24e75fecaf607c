//! The control plane of neighbour discovery: this router's addresses, groups and advertisements on each link.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::ops::Bound;
use std::rc::Rc;
use std::time::Duration;

use shoal_buffer::Buffer;
use shoal_fib::Fib;
use shoal_graph::Graph;
use shoal_graph::clock::Time;
use shoal_graph::process::Sender;
use shoal_interface::{Event, IfFlags, Interfaces, SwIfIndex};
use shoal_ip6::Ip6;
use shoal_module::{Control, InitError};
use shoal_neighbor::table::Origin;
use shoal_neighbor::{Answer, Answers};
use shoal_wire::ip6_address::{is_link_local, solicited_node};
use shoal_wire::{Ip6Prefix, MacAddress};

use crate::counters::NdCounters;
use crate::fact::Fact;
use crate::observe::{Observed, Observers};
use crate::{AddressState, Key, Link, Links, NdError, Neighbours};

mod autoconf;
mod dad;
mod delegated;
mod group;
mod learn;
mod mirror;
pub(crate) use mirror::MIRRORS;
pub mod ra;
mod router;
mod solicit;
mod speakers;
mod virtual_addresses;

use autoconf::Autoconf;
pub use autoconf::{Autoconfigure, DefaultRoute, FormedAddress};
pub use dad::Dad;
pub(crate) use dad::TRANSMITS;
use dad::{Address, First};
use group::Group;
use ra::Radv;
pub(crate) use router::ReceivedAdvertisement;
pub use solicit::Solicit;
use solicit::Soliciting;
pub use speakers::VirtualSpeaker;

/// Neighbour discovery of this router.
pub struct Nd {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    ip6: Rc<Ip6>,
    fib: Rc<Fib>,
    neighbours: Rc<Neighbours>,
    links: Links,
    counters: NdCounters,
    /// How often an address is asked for before it is ours (RFC 4862 DupAddrDetectTransmits).
    transmits: Cell<u32>,
    /// How long an answer to that may take (RFC 4862 RetransTimer).
    retransmit: Cell<Duration>,
    addresses: RefCell<BTreeMap<Key, Address>>,
    groups: RefCell<BTreeMap<Key, Group>>,
    /// Until when there may be a querier of MLD version 1 on a link.
    older_queriers: RefCell<BTreeMap<SwIfIndex, Time>>,
    proxied: RefCell<BTreeSet<Key>>,
    /// Addresses that this router has for the time being.
    virtual_addresses: RefCell<BTreeMap<Key, MacAddress>>,
    /// Virtual routers by interface and number, with what this router speaks as while it is one.
    virtual_routers: RefCell<BTreeMap<(SwIfIndex, u8), Option<VirtualSpeaker>>>,
    /// Interfaces on which everybody is answered for.
    mirrors: RefCell<BTreeSet<SwIfIndex>>,
    radv: RefCell<BTreeMap<SwIfIndex, Radv>>,
    /// Prefixes of links that were given for a time.
    delegated: RefCell<BTreeMap<(SwIfIndex, Ip6Prefix), delegated::Delegated>>,
    routers: RefCell<BTreeMap<Key, ReceivedAdvertisement>>,
    hosts: RefCell<BTreeMap<SwIfIndex, Autoconf>>,
    soliciting: RefCell<BTreeMap<SwIfIndex, Soliciting>>,
    /// Groups joined for addresses that unnumbered interfaces borrow.
    borrowed: RefCell<BTreeMap<SwIfIndex, BTreeSet<Ipv6Addr>>>,
    /// Rung when something becomes due earlier than the timer's task thinks.
    bell: Sender<()>,
    observers: Observers,
    answers: Rc<Answers>,
}

impl Nd {
    pub(crate) fn new(
        control: &Rc<Control>,
        neighbours: Rc<Neighbours>,
        links: Links,
        counters: NdCounters,
        bell: Sender<()>,
    ) -> Result<Rc<Self>, InitError> {
        Ok(Rc::new(Nd {
            graph: control.graph()?,
            interfaces: control.get()?,
            ip6: control.get()?,
            fib: control.get()?,
            neighbours,
            links,
            counters,
            transmits: Cell::new(dad::TRANSMITS),
            retransmit: Cell::new(dad::RETRANS),
            addresses: RefCell::default(),
            groups: RefCell::default(),
            older_queriers: RefCell::default(),
            proxied: RefCell::default(),
            virtual_addresses: RefCell::default(),
            virtual_routers: RefCell::default(),
            mirrors: RefCell::default(),
            radv: RefCell::default(),
            delegated: RefCell::default(),
            routers: RefCell::default(),
            hosts: RefCell::default(),
            soliciting: RefCell::default(),
            borrowed: RefCell::default(),
            bell,
            observers: Observers::default(),
            answers: Answers::of(control),
        }))
    }

    pub(crate) fn follow_interfaces(self: &Rc<Self>) {
        self.interfaces.indices().into_iter().for_each(|i| self.counters.begin(i));
        let weak = Rc::downgrade(self);
        self.interfaces.subscribe(move |_, event| {
            if let Some(nd) = weak.upgrade() {
                nd.on_event(event);
            }
        });
    }

    fn on_event(&self, event: Event) {
        match event {
            Event::Created(i) => self.counters.begin(i),
            Event::Deleting(i) => self.forget_interface(i),
            Event::Admin(i, _) | Event::Link(i, _) => self.restart(i),
            Event::Ip6(i, _) => self.neighbours.move_routes(i),
            _ => {}
        }
    }

    /// What packets read of this router on each link.
    pub fn links(&self) -> Links {
        self.links.clone()
    }

    /// This router has an address on an interface from now on, if no other station on the link has it.
    ///
    /// # Errors
    /// There is no such interface, or no host can have the address.
    pub fn add_address(&self, interface: SwIfIndex, prefix: Ip6Prefix) -> Result<(), NdError> {
        self.interfaces.data(interface)?;
        let address = prefix.addr();
        if address.is_unspecified() {
            return Err(NdError::NoHost(address));
        }
        self.addresses.borrow_mut().insert((interface, address), Address::new(prefix));
        self.join_for(interface, prefix);
        self.probe_address((interface, address), First::Now);
        self.publish(interface);
        Ok(())
    }

    /// This router has an address no longer.
    pub fn remove_address(&self, interface: SwIfIndex, address: Ipv6Addr) {
        let Some(old) = self.addresses.borrow_mut().remove(&(interface, address)) else { return };
        self.leave_for(interface, old.prefix);
        self.publish(interface);
        let gone = |a: Ipv6Addr| {
            let left = self.links.now(interface);
            old.prefix.contains(a) && !left.is_some_and(|link| link.is_on_link(a))
        };
        self.neighbours.leave(interface, gone);
        self.follow_link_local(interface);
    }

    /// An unnumbered interface borrows other addresses than before, or none. They are proven where they belong.
    pub fn borrow_addresses(&self, interface: SwIfIndex) {
        let now: BTreeSet<Ipv6Addr> =
            self.ip6.borrowed(interface).iter().map(|own| solicited_node(own.addr())).collect();
        let before = self.borrowed.borrow_mut().insert(interface, now.clone()).unwrap_or_default();
        now.difference(&before).for_each(|group| self.join(interface, *group));
        before.difference(&now).for_each(|group| self.leave(interface, *group));
        if now.is_empty() {
            self.borrowed.borrow_mut().remove(&interface);
        }
        self.publish(interface);
        let left = self.links.now(interface);
        self.neighbours.leave(interface, |a| !left.as_ref().is_some_and(|link| link.is_on_link(a)));
    }

    /// Answers solicitations for another's address on an interface (RFC 4389 calls it a proxy), or no longer.
    ///
    /// # Errors
    /// There is no such interface, no host can have the address, or it was not answered for.
    pub fn set_proxy(&self, interface: SwIfIndex, address: Ipv6Addr, on: Proxy) -> Result<(), NdError> {
        let name = self.interfaces.name(interface)?;
        if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
            return Err(NdError::NoHost(address));
        }
        let group = solicited_node(address);
        match on {
            Proxy::Answer => {
                if !self.proxied.borrow().contains(&(interface, address)) {
                    // Solicitations go to the group, which forwarding must let in.
                    self.ip6.join(interface, group)?;
                    self.proxied.borrow_mut().insert((interface, address));
                    self.join(interface, group);
                }
            }
            Proxy::Ignore => {
                if !self.proxied.borrow_mut().remove(&(interface, address)) {
                    return Err(NdError::NoProxy(address, name));
                }
                self.ip6.leave(interface, group);
                self.leave(interface, group);
            }
        }
        self.publish(interface);
        Ok(())
    }

    /// Addresses of others that solicitations on an interface are answered for.
    pub fn proxied(&self, interface: SwIfIndex) -> Vec<Ipv6Addr> {
        self.proxied.borrow().range(of(interface)).map(|(_, address)| *address).collect()
    }

    /// The first address answered for behind a bound, by interface.
    pub fn proxied_after(&self, after: Bound<Key>) -> Option<Key> {
        self.proxied.borrow().range((after, Bound::Unbounded)).next().copied()
    }

    /// Calls `observer` from now on.
    pub(crate) fn observe(&self, observer: impl Fn(&Observed<'_>) + 'static) {
        self.observers.add(observer);
    }

    /// Tells of each address of this router that another station is found to have (RFC 4862 5.4.5).
    pub fn watch_duplicates(&self, tell: impl Fn(SwIfIndex, Ipv6Addr) + 'static) {
        self.observe(move |what| {
            if let Observed::Address { key, standing: AddressState::Duplicate, .. } = what {
                tell(key.0, key.1);
            }
        });
    }

    /// Writes what packets read of a link.
    fn publish(&self, interface: SwIfIndex) {
        let mut link = Link::default();
        for ((_, address), own) in self.addresses.borrow().range(of(interface)) {
            link.addresses.insert(*address, own.standing);
            if !is_link_local(*address) && own.prefix.len() < Ip6Prefix::MAX_LEN {
                link.networks.push(own.prefix.normalized());
            }
            link.anycast.extend(anycast_of(own.prefix));
        }
        for own in self.ip6.borrowed(interface) {
            link.addresses.insert(own.addr(), AddressState::Ours);
            if own.len() < Ip6Prefix::MAX_LEN {
                link.networks.push(own.normalized());
            }
        }
        link.networks.sort_unstable();
        link.networks.dedup();
        link.proxied = self.proxied.borrow().range(of(interface)).map(|(_, a)| *a).collect();
        let virtual_addresses = self.virtual_addresses.borrow();
        link.virtual_addresses =
            virtual_addresses.range(of(interface)).map(|((_, a), mac)| (*a, *mac)).collect();
        let used =
            !link.addresses.is_empty() || !link.proxied.is_empty() || !link.virtual_addresses.is_empty();
        self.links.set(interface, used.then_some(link));
    }

    fn forget_interface(&self, interface: SwIfIndex) {
        forget_all_of(interface, &mut self.addresses.borrow_mut());
        forget_all_of(interface, &mut self.virtual_addresses.borrow_mut());
        forget_all_of(interface, &mut self.groups.borrow_mut());
        forget_all_of(interface, &mut self.routers.borrow_mut());
        self.virtual_routers.borrow_mut().retain(|(of, _), _| *of != interface);
        self.older_queriers.borrow_mut().remove(&interface);
        let proxied: Vec<Key> = self.proxied.borrow().range(of(interface)).copied().collect();
        for key in &proxied {
            self.proxied.borrow_mut().remove(key);
        }
        self.mirrors.borrow_mut().remove(&interface);
        self.radv.borrow_mut().remove(&interface);
        self.delegated.borrow_mut().retain(|(of, _), _| *of != interface);
        self.hosts.borrow_mut().remove(&interface);
        self.soliciting.borrow_mut().remove(&interface);
        self.borrowed.borrow_mut().remove(&interface);
        self.links.set(interface, None);
    }

    /// An interface went up or down: a station that came to the link in the meantime may have our addresses. While it
    /// is down they stay ours.
    fn restart(&self, interface: SwIfIndex) {
        let mine: Vec<Key> = self.addresses.borrow().range(of(interface)).map(|(key, _)| *key).collect();
        for key in mine {
            self.probe_address(key, First::Later);
        }
        forget_all_of(interface, &mut self.routers.borrow_mut());
        self.restart_host(interface);
        self.announce_groups(interface);
        self.publish(interface);
        self.follow_link_local(interface);
    }

    fn is_up(&self, interface: SwIfIndex) -> bool {
        let up = IfFlags::ADMIN_UP.set(IfFlags::LINK_UP, true);
        let able = |flags: IfFlags| flags.all(up.set(IfFlags::ETHERNET, true));
        self.interfaces.data(interface).is_ok_and(|data| able(data.flags()))
    }

    /// When something is to be done next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let dad = self.addresses.borrow().values().filter_map(|a| a.due).min();
        let groups = self.groups.borrow().values().filter_map(|g| g.due).min();
        let radv = self.radv.borrow().values().filter_map(|r| r.next).min();
        dad.into_iter()
            .chain(groups)
            .chain(radv)
            .chain(self.host_deadline())
            .chain(self.soliciting_deadline())
            .min()
    }

    /// Does what is due.
    pub(crate) fn tick(&self) {
        let now = self.now();
        self.tick_addresses(now);
        self.tick_groups(now);
        self.tick_advertisements(now);
        self.tick_hosts(now);
        self.tick_soliciting(now);
    }

    fn now(&self) -> Time {
        self.graph.clock().now()
    }

    fn ring(&self) {
        // Full: it has been rung already.
        let _ = self.bell.try_send(());
    }

    /// Sends a frame out of an interface. Without a buffer it is lost, as on a wire.
    fn send(&self, interface: SwIfIndex, bytes: &[u8]) -> bool {
        let Ok(data) = self.interfaces.data(interface) else { return false };
        let mut main = self.graph.main();
        let buffer: Option<Buffer> = crate::frame::packet(bytes, (interface, &data), main.cache());
        let sent = buffer.is_some();
        if let Some(buffer) = buffer {
            main.inject(self.interfaces.output_node(), buffer);
        }
        sent
    }

    /// What is counted by interface.
    pub(crate) fn counters(&self) -> &NdCounters {
        &self.counters
    }

    /// How long ago something was.
    pub(crate) fn age(&self, at: Time) -> Duration {
        self.now().since(at)
    }

    fn name(&self, interface: SwIfIndex) -> String {
        self.interfaces.name(interface).unwrap_or_else(|_| format!("interface {interface}"))
    }

    fn say(&self, text: String) {
        tracing::warn!("{text}");
        self.graph.events().write(0, text);
    }

    /// Takes in a message's content.
    pub(crate) fn hear(&self, fact: &Fact) {
        match *fact {
            Fact::Solicited { interface, from, mac } => self.solicited((interface, from), mac),
            Fact::Advertised { interface, target, mac, flags } => {
                if let Some(mac) = mac {
                    self.answers.tell(&Answer { interface, address: target.into(), mac });
                }
                self.advertised((interface, target), mac, flags);
            }
            Fact::Used { interface, next_hop } => self.neighbours.used((interface, next_hop)),
            Fact::Claimed { interface, address, mac } => {
                self.answers.tell(&Answer { interface, address: address.into(), mac });
                self.claimed((interface, address), mac);
            }
            Fact::RouterSolicited { interface, from, mac } => self.router_solicited(interface, from, mac),
            Fact::RouterAdvertised { interface, from, mac, said, prefixes } => {
                self.router_advertised((interface, from), mac, said);
                self.router_answered(interface, said.lifetime_secs);
                self.configure_host((interface, from), &said, &prefixes);
                let from = (interface, from);
                self.observers.tell(&Observed::Advertised { from, said: &said, prefixes: &prefixes });
            }
            Fact::Queried { interface, version, group, max_response_ms } => {
                self.queried(interface, version, group, max_response_ms);
            }
        }
    }

    /// Whether the operator has entered a neighbour.
    fn is_static(&self, key: Key) -> bool {
        self.neighbours.get(key).is_some_and(|n| n.origin == Origin::Static)
    }

    /// The standing of an address of this router.
    pub fn standing(&self, interface: SwIfIndex, address: Ipv6Addr) -> Option<AddressState> {
        self.addresses.borrow().get(&(interface, address)).map(|own| own.standing)
    }
}

/// Whether solicitations for another's address are answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proxy {
    /// They are.
    Answer,
    /// They are not.
    Ignore,
}

/// The anycast address of all routers of a network, as IPv6 forwarding has it. RFC 4291 2.6.1, RFC 6164 5.1.
pub(crate) fn anycast_of(prefix: Ip6Prefix) -> Option<Ipv6Addr> {
    (prefix.len() < Ip6Prefix::MAX_LEN - 1).then(|| prefix.network())
}

/// Removes what belongs to one interface, without a look at what belongs to others.
fn forget_all_of<T>(interface: SwIfIndex, map: &mut BTreeMap<Key, T>) {
    let keys: Vec<Key> = map.range(of(interface)).map(|(key, _)| *key).collect();
    for key in &keys {
        map.remove(key);
    }
}

/// All keys of an interface.
fn of(interface: SwIfIndex) -> std::ops::RangeInclusive<Key> {
    (interface, Ipv6Addr::UNSPECIFIED)..=(interface, Ipv6Addr::from_bits(u128::MAX))
}
