//! The control plane: domains, rules, parameters, interfaces.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::Adjacencies;
use shoal_fib::{Fib, FibError, FibTables};
use shoal_graph::{FeatureSpec, PacketNode};
use shoal_interface::{Event, InterfaceError, Interfaces, SwIfIndex};
use shoal_ip6::node::frag::Ip6Frag;
use shoal_module::{Control, InitError};
use shoal_reassembly::{Reassembly, ReassemblyError, Side, Version};

use crate::config::{Config, Settings};
use crate::domain::{Domain, InvalidDomain, Parameters};
use crate::next_hops::{HeldNextHops, NextHops};
use crate::node::fragment::Fragment;
use crate::node::fragment6::Fragment6;
use crate::node::ip4_map::Ip4Map;
use crate::node::ip4_map_t::Ip4MapT;
use crate::node::ip6_map::Ip6Map;
use crate::node::ip6_map_t::Ip6MapT;
use crate::node::stage::MapStages;
use crate::node::{MOST_DOMAINS, RX, Shared, TX};

/// Who uses reassembly.
const USER: &str = "map";

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// The parameters of a domain do not fit each other.
    #[error(transparent)]
    Unfit(#[from] InvalidDomain),
    /// There are as many domains as there may be.
    #[error("there are {0} domains already, and there may not be more")]
    Full(usize),
    /// Another domain has the number.
    #[error("there is a MAP domain {0} already")]
    Taken(u32),
    /// No domain can have the number.
    #[error("no MAP domain can have the number {0}, the nearest one is {1}")]
    Number(u32, u32),
    /// There is no such domain.
    #[error("MAP domain does not exists {0}")]
    NoDomain(u32),
    /// There is no such rule.
    #[error("MAP domain {0} has no rule for port set {1}")]
    NoRule(u32, u16),
    /// The port set is none of the domain, or its addresses follow from bits.
    #[error("MAP domain {0} takes no rule for port set {1}")]
    Rule(u32, u16),
    /// MAP-E and MAP-T exclude each other on an interface.
    #[error("{0} does the other kind of MAP")]
    OtherKind(String),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// Shallow reassembly refused.
    #[error(transparent)]
    Reassembly(#[from] ReassemblyError),
}

/// What becomes of packets of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// They go into tunnels (MAP-E).
    Encapsulate,
    /// They are translated (MAP-T).
    Translate,
}

/// A domain as it is shown.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its number.
    pub index: u32,
    /// The domain.
    pub domain: Arc<Domain>,
    /// Port sets with an address of their own.
    pub rules: Rc<BTreeMap<u16, Ipv6Addr>>,
    /// Packets and bytes from customers, and to them.
    pub counts: [(u64, u64); 2],
}

/// What is kept of a domain.
struct DomainEntry {
    domain: Arc<Domain>,
    rules: Rc<BTreeMap<u16, Ipv6Addr>>,
}

/// MAP of this router.
pub struct Map {
    interfaces: Rc<Interfaces>,
    reassembly: Rc<Reassembly>,
    shared: Arc<Shared>,
    domains: RefCell<BTreeMap<u32, DomainEntry>>,
    /// Numbers of domains that have gone.
    free: RefCell<BTreeSet<u32>>,
    config: RefCell<Config>,
    settings: Cell<Settings>,
    fib: Rc<Fib>,
    next_hops: RefCell<HeldNextHops>,
    on: RefCell<BTreeMap<SwIfIndex, Mode>>,
}

const ARCS: [&str; 2] = [shoal_ip4::UNICAST_ARC, shoal_ip6::UNICAST_ARC];

fn nodes(mode: Mode) -> [&'static str; 2] {
    match mode {
        Mode::Encapsulate => [Ip4Map::NAME, Ip6Map::NAME],
        Mode::Translate => [Ip4MapT::NAME, Ip6MapT::NAME],
    }
}

impl Map {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let reassembly = control.get::<Reassembly>()?;
        let tables = (FibTables::clone(&*control.get::<FibTables>()?), control.get::<Adjacencies>()?.table());
        let shared = Shared::new(graph.counters(), tables, reassembly.words())?;
        control.put(MapStages::new(&shared));
        let s = || Arc::clone(&shared);
        graph.add_frame(Fragment { shared: s() })?;
        graph.add_frame(Fragment6 { cutter: Ip6Frag::new(control.get::<Adjacencies>()?.table()) })?;
        graph.add_packet(Ip4Map { shared: s() })?;
        graph.add_packet(Ip6Map { shared: s() })?;
        graph.add_packet(Ip4MapT { shared: s() })?;
        graph.add_packet(Ip6MapT { shared: s() })?;
        let after: [&[&str]; 2] = [
            &["ip4-not-enabled", "ip4-sv-reassembly-feature"],
            &["ip6-not-enabled", "ip6-full-reassembly-feature", "ip6-sv-reassembly-feature"],
        ];
        for mode in [Mode::Encapsulate, Mode::Translate] {
            for ((arc, node), after) in ARCS.into_iter().zip(nodes(mode)).zip(after) {
                graph.add_feature(FeatureSpec { arc, node, before: &[], after });
            }
        }
        let map = Rc::new(Map {
            interfaces: Rc::clone(&interfaces),
            reassembly,
            shared,
            domains: RefCell::default(),
            free: RefCell::default(),
            config: RefCell::default(),
            settings: Cell::default(),
            fib: control.get()?,
            next_hops: RefCell::default(),
            on: RefCell::default(),
        });
        let weak = Rc::downgrade(&map);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(interface), Some(map)) = (event, weak.upgrade()) {
                map.forget(interface);
            }
        });
        Ok(map)
    }

    fn publish(&self, f: impl FnOnce(&mut Config)) {
        let mut config = self.config.borrow_mut();
        f(&mut config);
        self.shared.config.replace(config.clone());
    }

    /// Makes a domain; its number.
    ///
    /// # Errors
    /// Its parameters do not fit, or there are too many.
    pub fn add_domain(&self, parameters: Parameters) -> Result<u32, MapError> {
        let (free, end) = (self.free.borrow().first().copied(), self.domains.borrow().len() as u32);
        self.add_domain_at(free.unwrap_or(end), parameters)
    }

    /// Adds a domain with a number of its own. Smaller numbers that no domain has are free.
    ///
    /// # Errors
    /// As [`Map::add_domain`], or another domain has the number.
    pub fn add_domain_at(&self, index: u32, parameters: Parameters) -> Result<u32, MapError> {
        let domain = Arc::new(Domain::new(parameters)?);
        let mut domains = self.domains.borrow_mut();
        if domains.len() >= MOST_DOMAINS {
            return Err(MapError::Full(domains.len()));
        }
        if index as usize >= MOST_DOMAINS {
            return Err(MapError::Number(index, MOST_DOMAINS as u32 - 1));
        }
        if domains.contains_key(&index) {
            return Err(MapError::Taken(index));
        }
        let mut free = self.free.borrow_mut();
        let end = (domains.len() + free.len()) as u32;
        free.extend(end..index);
        free.remove(&index);
        drop(free);
        domains.insert(index, DomainEntry { domain: Arc::clone(&domain), rules: Rc::default() });
        drop(domains);
        for counter in &self.shared.counters {
            counter.ensure(index as usize + 1);
            counter.zero(index as usize);
        }
        self.publish(|config| config.insert(index, &domain));
        Ok(index)
    }

    /// Deletes a domain.
    ///
    /// # Errors
    /// There is none.
    pub fn del_domain(&self, index: u32) -> Result<(), MapError> {
        let DomainEntry { domain, rules } =
            self.domains.borrow_mut().remove(&index).ok_or(MapError::NoDomain(index))?;
        self.free.borrow_mut().insert(index);
        self.publish(|config| {
            config.remove(index, &domain);
            for address in rules.values() {
                config.set_customer(*address, index, false);
            }
        });
        Ok(())
    }

    /// Gives a port set an address of its own.
    ///
    /// # Errors
    /// There is no such domain or port set, its addresses follow from bits, or another port set has the address.
    pub fn add_rule(&self, index: u32, psid: u16, address: Ipv6Addr) -> Result<(), MapError> {
        let mut domains = self.domains.borrow_mut();
        let DomainEntry { domain, rules } = domains.get_mut(&index).ok_or(MapError::NoDomain(index))?;
        let Parameters { ea_bits, psid_length, .. } = domain.parameters;
        let is_none = u32::from(psid) >= 1u32.checked_shl(psid_length.into()).unwrap_or(0);
        let is_anothers =
            rules.get(&psid) != Some(&address) && self.config.borrow().has_customer(address, index);
        if ea_bits > 0 || is_none || is_anothers {
            return Err(MapError::Rule(index, psid));
        }
        let old = Rc::make_mut(rules).insert(psid, address);
        Arc::make_mut(domain).rules.insert(psid, address);
        let domain = Arc::clone(domain);
        drop(domains);
        self.publish(|config| {
            config.insert(index, &domain);
            if let Some(old) = old {
                config.set_customer(old, index, false);
            }
            config.set_customer(address, index, true);
        });
        Ok(())
    }

    /// Takes a port set's address away.
    ///
    /// # Errors
    /// There is no such domain or rule.
    pub fn del_rule(&self, index: u32, psid: u16) -> Result<(), MapError> {
        let mut domains = self.domains.borrow_mut();
        let DomainEntry { domain, rules } = domains.get_mut(&index).ok_or(MapError::NoDomain(index))?;
        let old = Rc::make_mut(rules).remove(&psid).ok_or(MapError::NoRule(index, psid))?;
        Arc::make_mut(domain).rules.remove(&psid);
        let domain = Arc::clone(domain);
        drop(domains);
        self.publish(|config| {
            config.insert(index, &domain);
            config.set_customer(old, index, false);
        });
        Ok(())
    }

    /// Parameters of all domains.
    pub fn settings(&self) -> Settings {
        self.settings.get()
    }

    /// Next hops of packets that leave MAP, if any are set.
    pub fn next_hops(&self) -> NextHops {
        self.next_hops.borrow().now()
    }

    /// Has all packets that leave MAP go to next hops, of whose addresses there is one of a family at most; or not any more.
    ///
    /// # Errors
    /// One cannot be a next hop; nothing has changed.
    pub fn set_next_hops(&self, addresses: &[IpAddr], on: bool) -> Result<(), MapError> {
        let mut held = self.next_hops.borrow_mut();
        let unused = held.set(&self.fib, addresses, on)?;
        self.publish(|config| config.next_hops = held.now());
        for held in unused {
            self.fib.release(held);
        }
        Ok(())
    }

    /// Changes these.
    pub fn set(&self, f: impl FnOnce(&mut Settings)) {
        let mut settings = self.settings.get();
        f(&mut settings);
        self.settings.set(settings);
        self.publish(|config| config.settings = settings);
    }

    /// Does MAP on an interface, or does so no more.
    ///
    /// # Errors
    /// There is no such interface, or it does the other kind.
    pub fn set_interface(&self, interface: SwIfIndex, mode: Mode, on: bool) -> Result<(), MapError> {
        let name = self.interfaces.name(interface)?;
        let now = self.on.borrow().get(&interface).copied();
        if now.is_some_and(|now| now != mode) {
            return Err(MapError::OtherKind(name));
        }
        if now.is_some() == on {
            return Ok(());
        }
        for (version, (arc, node)) in
            [Version::Ip4, Version::Ip6].into_iter().zip(ARCS.into_iter().zip(nodes(mode)))
        {
            if (mode, version) == (Mode::Encapsulate, Version::Ip6) {
                // What is in a tunnel packet is seen when all of it is there.
                self.reassembly.use_full((interface, version), USER, on)?;
            } else {
                self.reassembly.use_sv((interface, version, Side::Input), USER, on)?;
            }
            self.interfaces.enable_feature(arc, node, interface, on)?;
        }
        let mut all = self.on.borrow_mut();
        if on {
            all.insert(interface, mode);
        } else {
            all.remove(&interface);
        }
        Ok(())
    }

    fn forget(&self, interface: SwIfIndex) {
        let mode = self.on.borrow().get(&interface).copied();
        if let Some(mode) = mode
            && let Err(e) = self.set_interface(interface, mode, false)
        {
            tracing::warn!(%interface, "MAP stays: {e}");
        }
    }

    /// Interfaces that do MAP.
    pub fn interfaces(&self) -> Vec<(SwIfIndex, Mode)> {
        self.on.borrow().iter().map(|(interface, mode)| (*interface, *mode)).collect()
    }

    /// A domain.
    ///
    /// # Errors
    /// There is none.
    pub fn domain(&self, index: u32) -> Result<Shown, MapError> {
        let domains = self.domains.borrow();
        domains.get(&index).map(|held| self.shown(index, held)).ok_or(MapError::NoDomain(index))
    }

    fn shown(&self, index: u32, held: &DomainEntry) -> Shown {
        let of =
            |way: usize| self.shared.counters.get(way).map_or((0, 0), |counter| counter.sum(index as usize));
        let (domain, rules) = (Arc::clone(&held.domain), Rc::clone(&held.rules));
        Shown { index, domain, rules, counts: [of(RX), of(TX)] }
    }

    /// Domains from a number on, so many at most.
    pub fn domains(&self, from: u32, most: usize) -> Vec<Shown> {
        let domains = self.domains.borrow();
        domains.range(from..).take(most).map(|(index, held)| self.shown(*index, held)).collect()
    }

    /// All domains.
    pub fn all(&self) -> Vec<Shown> {
        self.domains(0, usize::MAX)
    }

    /// The address from which ICMP errors are relayed.
    pub fn set_icmp_source(&self, source: Ipv4Addr) {
        self.set(|settings| settings.icmp_source = (!source.is_unspecified()).then_some(source));
    }
}
