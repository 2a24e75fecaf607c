//! The control plane: on or off, on which interfaces, and which address stands for which.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{Adjacencies, Family};
use shoal_fib::{Fib, FibError, FibIndex, FibTables, Source};
use shoal_graph::{FeatureSpec, PacketNode};
use shoal_infra::Published;
use shoal_interface::{Event, InterfaceError, Interfaces, MAX_INTERFACES, SwIfIndex};
use shoal_ip6::UNICAST_ARC;
use shoal_module::{Control, InitError};

use crate::config::{Config, Pair, Shared};
use crate::node::in2out::In2out;
use crate::node::out2in::Out2in;

/// Mappings there may be.
const MOST: usize = 1 << 20;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Nat66Error {
    /// NAT66 is off.
    #[error("error plugin disabled: nat66 plugin enable")]
    Off,
    /// It is on already.
    #[error("already enabled")]
    AlreadyOn,
    /// It is off already.
    #[error("already disabled")]
    AlreadyOff,
    /// The interface is on a side already.
    #[error("{0} NAT66 feature already enabled.")]
    InterfaceExists(String),
    /// The interface is not on this side.
    #[error("{0} NAT66 feature not enabled.")]
    NoInterface(String),
    /// The host has an outside address already, or the outside address a host.
    #[error("NAT66 static mapping entry exist.")]
    MappingExists,
    /// There is no such mapping.
    #[error("NAT66 static mapping entry not exist.")]
    NoMapping,
    /// An address is none of a host.
    #[error("{0} is not the address of a host: neither unspecified, multicast, loopback nor link-local")]
    Address(Ipv6Addr),
    /// There are as many mappings as there may be.
    #[error("there are {MOST} mappings already, and there may not be more")]
    TooMany,
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

/// A side of the NAT.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    /// Hosts are there.
    Inside,
    /// The world is there.
    Outside,
}

impl Side {
    const fn node(self) -> &'static str {
        match self {
            Side::Inside => In2out::NAME,
            Side::Outside => Out2in::NAME,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if *self == Side::Inside { "in" } else { "out" })
    }
}

/// A mapping as it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The host's address.
    pub local: Ipv6Addr,
    /// The address it has outside.
    pub external: Ipv6Addr,
    /// The host's VRF.
    pub vrf: u32,
    /// Packets that were translated, both ways.
    pub packets: u64,
    /// Their bytes, from the IPv6 header on.
    pub bytes: u64,
}

/// What is configured while NAT66 is on.
#[derive(Default)]
struct State {
    /// The VRF of the outside, and its table, while NAT66 is on.
    on: Option<(u32, FibIndex)>,
    config: Config,
    sides: BTreeMap<SwIfIndex, Side>,
    /// By host's VRF and address.
    mappings: BTreeMap<(u32, u128), Pair>,
    /// Counters that are free.
    free: Vec<u32>,
    /// Counters that were ever used.
    counters: u32,
}

/// NAT66 of this router.
pub struct Nat66 {
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    shared: Arc<Shared>,
    state: RefCell<State>,
}

/// Behind what may find that a packet must not come in at all.
const AFTER: &[&str] =
    &["ip6-not-enabled", "ip6-sv-reassembly-feature", "ip6-rx-urpf-loose", "ip6-rx-urpf-strict"];

impl Nat66 {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let counters = graph.counters();
        let shared = Arc::new(Shared {
            config: Published::new(Config::default()),
            in2out: counters.simple("/nat66/in2out", MAX_INTERFACES)?,
            out2in: counters.simple("/nat66/out2in", MAX_INTERFACES)?,
            mappings: counters.combined("/nat66/static-mappings", MOST)?,
            fib: FibTables::clone(&*control.get::<FibTables>()?),
            adjacencies: control.get::<Adjacencies>()?.table(),
            interfaces: interfaces.table(),
        });
        graph.add_packet(In2out { shared: Arc::clone(&shared) })?;
        graph.add_packet(Out2in { shared: Arc::clone(&shared) })?;
        for side in [Side::Inside, Side::Outside] {
            graph.add_feature(FeatureSpec { arc: UNICAST_ARC, node: side.node(), before: &[], after: AFTER });
        }
        let fib = control.get::<Fib>()?;
        let nat =
            Rc::new(Nat66 { interfaces: Rc::clone(&interfaces), fib, shared, state: RefCell::default() });
        let weak = Rc::downgrade(&nat);
        interfaces.subscribe(move |_, event| {
            let Some(nat) = weak.upgrade() else { return };
            match event {
                Event::Created(interface) => nat.ensure(interface.0 as usize + 1),
                Event::Deleting(interface) => nat.forget(interface),
                _ => {}
            }
        });
        Ok(nat)
    }

    /// Makes room for counters of so many interfaces.
    fn ensure(&self, interfaces: usize) {
        self.shared.in2out.ensure(interfaces);
        self.shared.out2in.ensure(interfaces);
    }

    fn on(&self) -> Result<(), Nat66Error> {
        if self.state.borrow().on.is_some() { Ok(()) } else { Err(Nat66Error::Off) }
    }

    /// The VRF of the outside, while NAT66 is on.
    pub fn outside_vrf(&self) -> Option<u32> {
        self.state.borrow().on.map(|(vrf, _)| vrf)
    }

    /// Has packets see what is configured now.
    fn publish(&self) {
        let mut state = self.state.borrow_mut();
        let sides = state.sides.iter();
        let outside = sides.filter(|(_, side)| **side == Side::Outside).map(|(interface, _)| *interface);
        state.config.outside = outside.collect();
        (state.config.on, state.config.outside_table) = match state.on {
            Some((_, table)) => (true, table.0),
            None => (false, 0),
        };
        self.shared.config.replace(state.config.clone());
    }

    /// A VRF's table, made if there is none; it stays until it is unlocked.
    fn hold(&self, vrf: u32) -> Result<FibIndex, Nat66Error> {
        let table = self.fib.want_table(Family::Ip6, vrf, None)?;
        self.fib.lock(Family::Ip6, table, Source::Proxy)?;
        Ok(table)
    }

    fn release(&self, table: FibIndex) {
        self.fib.unlock(Family::Ip6, table, Source::Proxy);
    }

    /// Switches NAT66 on, without interfaces and mappings. Where a host's own table has no way to a destination, that of
    /// `outside_vrf` is asked.
    ///
    /// # Errors
    /// It is on, or there cannot be such a VRF.
    pub fn enable(&self, outside_vrf: u32) -> Result<(), Nat66Error> {
        if self.on().is_ok() {
            return Err(Nat66Error::AlreadyOn);
        }
        let table = self.hold(outside_vrf)?;
        self.state.borrow_mut().on = Some((outside_vrf, table));
        let last = self.interfaces.indices().iter().map(|index| index.0 as usize + 1).max();
        self.ensure(last.unwrap_or(1));
        self.publish();
        Ok(())
    }

    /// Switches NAT66 off: all that was configured goes.
    ///
    /// # Errors
    /// It is off.
    pub fn disable(&self) -> Result<(), Nat66Error> {
        let old = self.state.borrow().on.ok_or(Nat66Error::AlreadyOff)?;
        for (interface, side) in self.sides() {
            self.leave(interface, side);
        }
        let counters = self.state.borrow().counters;
        let mut state =
            self.state.replace(State { counters, free: (0..counters).rev().collect(), ..State::default() });
        self.release(old.1);
        for pair in std::mem::take(&mut state.mappings).into_values() {
            self.release(pair.table);
        }
        self.publish();
        Ok(())
    }

    fn leave(&self, interface: SwIfIndex, side: Side) {
        if let Err(e) = self.interfaces.enable_feature(UNICAST_ARC, side.node(), interface, false) {
            tracing::warn!(%interface, "NAT66 stays: {e}");
        }
    }

    /// Puts an interface on a side, or takes it from there.
    ///
    /// # Errors
    /// NAT66 is off, there is no such interface, it is on a side already, or not on this one.
    pub fn set_side(&self, interface: SwIfIndex, side: Side, on: bool) -> Result<(), Nat66Error> {
        self.on()?;
        let name = self.interfaces.name(interface)?;
        let old = self.state.borrow().sides.get(&interface).copied();
        match (old, on) {
            (Some(_), true) => return Err(Nat66Error::InterfaceExists(name)),
            (old, false) if old != Some(side) => return Err(Nat66Error::NoInterface(name)),
            _ => {}
        }
        self.interfaces.enable_feature(UNICAST_ARC, side.node(), interface, on)?;
        let mut state = self.state.borrow_mut();
        if on {
            state.sides.insert(interface, side);
        } else {
            state.sides.remove(&interface);
        }
        drop(state);
        self.publish();
        Ok(())
    }

    /// Interfaces on sides.
    pub fn sides(&self) -> Vec<(SwIfIndex, Side)> {
        self.state.borrow().sides.iter().map(|(interface, side)| (*interface, *side)).collect()
    }

    /// An interface goes.
    fn forget(&self, interface: SwIfIndex) {
        let side = self.state.borrow_mut().sides.remove(&interface);
        if let Some(side) = side {
            self.leave(interface, side);
            self.publish();
        }
    }

    /// Has a VRF's host be known outside by another address.
    ///
    /// # Errors
    /// NAT66 is off, an address is none of a host, one of them has a mapping, or there are too many.
    pub fn add_mapping(&self, local: Ipv6Addr, external: Ipv6Addr, vrf: u32) -> Result<(), Nat66Error> {
        self.on()?;
        for address in [local, external] {
            let link_local = address.segments()[0] & 0xffc0 == 0xfe80;
            if address.is_unspecified() || address.is_multicast() || address.is_loopback() || link_local {
                return Err(Nat66Error::Address(address));
            }
        }
        let state = self.state.borrow();
        let (local, external) = (local.to_bits(), external.to_bits());
        if state.mappings.contains_key(&(vrf, local)) || state.config.external.get(&external).is_some() {
            return Err(Nat66Error::MappingExists);
        }
        if state.mappings.len() >= MOST {
            return Err(Nat66Error::TooMany);
        }
        drop(state);
        let table = self.hold(vrf)?;
        let mut state = self.state.borrow_mut();
        let counter = state.free.pop().unwrap_or(state.counters);
        state.counters = state.counters.max(counter + 1);
        self.shared.mappings.ensure(counter as usize + 1);
        self.shared.mappings.zero(counter as usize);
        let pair = Pair { local, external, table, counter };
        state.mappings.insert((vrf, local), pair);
        state.config.local.insert((local, table), pair);
        state.config.external.insert(external, pair);
        drop(state);
        self.publish();
        Ok(())
    }

    /// A host is known by its own address again.
    ///
    /// # Errors
    /// NAT66 is off, or there is no such mapping.
    pub fn del_mapping(&self, local: Ipv6Addr, external: Ipv6Addr, vrf: u32) -> Result<(), Nat66Error> {
        self.on()?;
        let (local, external) = (local.to_bits(), external.to_bits());
        let mut state = self.state.borrow_mut();
        let key = (vrf, local);
        let pair = state.mappings.get(&key).copied().filter(|pair| pair.external == external);
        let pair = pair.ok_or(Nat66Error::NoMapping)?;
        state.mappings.remove(&key);
        state.config.local.remove(&(local, pair.table));
        state.config.external.remove(&external);
        state.free.push(pair.counter);
        drop(state);
        self.publish();
        self.release(pair.table);
        Ok(())
    }

    /// All mappings, by VRF and address.
    pub fn mappings(&self) -> Vec<Mapping> {
        let mapping = |((vrf, local), pair): (&(u32, u128), &Pair)| {
            let (packets, bytes) = self.shared.mappings.sum(pair.counter as usize);
            let (local, external) = (Ipv6Addr::from_bits(*local), Ipv6Addr::from_bits(pair.external));
            Mapping { local, external, vrf: *vrf, packets, bytes }
        };
        self.state.borrow().mappings.iter().map(mapping).collect()
    }
}
