//! The control plane: virtual routers, and what follows from their states.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use shoal_adj::{Adjacencies, Family};
use shoal_arp::VirtualAddresses;
use shoal_fib::Fib;
use shoal_graph::clock::Time;
use shoal_graph::counter::Simple;
use shoal_graph::process::Sender;
use shoal_graph::{Deadlines, Graph};
use shoal_interface::{IfFlags, Interfaces, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_ip6_nd::Nd;
use shoal_mfib::Mfib;
use shoal_module::{Control, InitError};
use shoal_redundancy::{Group, Redundancy, Standing};
use shoal_wire::IpPrefix;

use crate::config::{Config, VrKey};
use crate::error::VrrpError;
use crate::machine::{Machine, Nanos, OWNER, PeerAdvertisement, State, Todo};
use crate::node::ReceivedAdvertisement;
use crate::packet::{LONGEST_INTERVAL, Version};

mod apply;
mod check;
mod send;
mod track;

/// Virtual routers there may be.
const MOST: usize = 1 << 14;

/// A virtual router of this router.
struct Entry {
    config: Config,
    peers: Vec<IpAddr>,
    interfaces: BTreeMap<SwIfIndex, u8>,
    routes: BTreeMap<IpPrefix, u8>,
    machine: Machine,
    /// What was done when this router became the one that has the addresses.
    applied: Option<apply::Applied>,
}

/// A virtual router, for display.
#[derive(Clone, Debug)]
pub struct Info {
    /// Its number among all.
    pub index: u32,
    /// What is configured.
    pub config: Config,
    /// Routers that advertisements are sent to.
    pub peers: Vec<IpAddr>,
    /// Interfaces that are tracked, and by how much each that is down lowers the priority.
    pub interfaces: Vec<(SwIfIndex, u8)>,
    /// Routes that are tracked.
    pub routes: Vec<(IpPrefix, u8)>,
    /// States and times.
    pub machine: Machine,
}

#[derive(Default)]
struct Vrs {
    all: BTreeMap<u32, Entry>,
    by_key: BTreeMap<VrKey, u32>,
    deadlines: Deadlines,
}

/// A state that changed: of which virtual router, from which to which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Of which virtual router.
    pub key: VrKey,
    /// The state before.
    pub old: State,
    /// The state now.
    pub new: State,
}

type Observer = Rc<dyn Fn(&Change)>;

/// A virtual router, as features know it that follow it.
fn group(key: VrKey) -> Group {
    Group { interface: key.interface, number: key.vr_id, family: key.family }
}

struct Counts {
    sent: Simple,
    received: Simple,
    became_master: Simple,
    mismatch: Simple,
    unknown: Simple,
}

/// VRRP of this router.
pub struct Vrrp {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    adjacencies: Rc<Adjacencies>,
    mfib: Rc<Mfib>,
    ip4: Rc<Ip4>,
    ip6: Rc<Ip6>,
    arp: Rc<VirtualAddresses>,
    nd: Rc<Nd>,
    vrs: RefCell<Vrs>,
    bell: Sender<()>,
    observers: RefCell<Vec<Observer>>,
    /// What other features hear.
    redundancy: Rc<Redundancy>,
    counts: Counts,
}

impl Vrrp {
    pub(crate) fn new(control: &Rc<Control>, bell: Sender<()>) -> Result<Self, InitError> {
        let graph = control.graph()?;
        let counter = |name: &str| graph.counters().simple(&format!("/net/vrrp/{name}"), MOST);
        let counts = Counts {
            sent: counter("adv-sent")?,
            received: counter("adv-received")?,
            became_master: counter("became-master")?,
            mismatch: counter("addr-mismatch")?,
            unknown: counter("unknown-vr")?,
        };
        counts.unknown.ensure(1);
        Ok(Vrrp {
            interfaces: control.get()?,
            fib: control.get()?,
            adjacencies: control.get()?,
            mfib: control.get()?,
            ip4: control.get()?,
            ip6: control.get()?,
            arp: control.get()?,
            nd: control.get()?,
            vrs: RefCell::default(),
            bell,
            observers: RefCell::default(),
            redundancy: Redundancy::of(control),
            counts,
            graph,
        })
    }

    fn now(&self) -> Nanos {
        self.graph.clock().now().0
    }

    /// Hears of each change of a state.
    pub fn observe(&self, observe: impl Fn(&Change) + 'static) {
        self.observers.borrow_mut().push(Rc::new(observe));
    }

    fn index_of(&self, key: VrKey) -> Result<u32, VrrpError> {
        let index = self.vrs.borrow().by_key.get(&key).copied();
        index.ok_or_else(|| VrrpError::None(key.vr_id, self.name(key.interface)))
    }

    fn name(&self, interface: SwIfIndex) -> String {
        self.interfaces.name(interface).unwrap_or_else(|_| interface.to_string())
    }

    /// Makes a virtual router, which does nothing until it is [started](Self::start); its number among all.
    ///
    /// # Errors
    /// There is one, there is no such interface, or something is out of range.
    pub fn add(&self, config: Config) -> Result<u32, VrrpError> {
        if self.vrs.borrow().by_key.contains_key(&config.key) {
            return Err(VrrpError::Exists);
        }
        self.check(&config)?;
        let mut vrs = self.vrs.borrow_mut();
        if vrs.all.len() >= MOST {
            return Err(VrrpError::TooMany(MOST));
        }
        let taken = vrs.all.keys().zip(0..).find(|(index, at)| **index != *at).map(|(_, at)| at);
        let index = taken.unwrap_or(vrs.all.len() as u32);
        let key = config.key;
        vrs.by_key.insert(key, index);
        let machine = Machine::new(config.priority, config.interval, config.preempt);
        vrs.all.insert(
            index,
            Entry {
                config,
                peers: Vec::new(),
                interfaces: BTreeMap::new(),
                routes: BTreeMap::new(),
                machine,
                applied: None,
            },
        );
        drop(vrs);
        self.redundancy.tell(group(key), Some(Standing::Backup));
        for counter in self.counters() {
            counter.ensure(index as usize + 1);
            counter.zero(index as usize);
        }
        Ok(index)
    }

    fn counters(&self) -> [&Simple; 4] {
        let Counts { sent, received, became_master, mismatch, .. } = &self.counts;
        [sent, received, became_master, mismatch]
    }

    /// Gives a virtual router another configuration where it stands: one that has the addresses keeps them.
    ///
    /// # Errors
    /// There is none of this number, it is another one, or something is out of range.
    pub fn update(&self, index: u32, config: Config) -> Result<(), VrrpError> {
        let old = self.info(index).ok_or(VrrpError::NoIndex(index))?;
        if old.config.key != config.key {
            return Err(VrrpError::OtherVr(index));
        }
        self.check(&config)?;
        if config.unicast && old.peers.is_empty() && old.machine.state != State::Initialize {
            return Err(VrrpError::NoPeers);
        }
        let is_started = old.machine.state != State::Initialize;
        let other_groups = (old.config.unicast, &old.config.addresses) != (config.unicast, &config.addresses);
        let rejoins = is_started && other_groups;
        let config_is_unicast = config.unicast;
        if rejoins && !config.unicast {
            self.join(&config)?;
        }
        {
            let mut vrs = self.vrs.borrow_mut();
            let Some(entry) = vrs.all.get_mut(&index) else { return Err(VrrpError::NoIndex(index)) };
            let machine = &mut entry.machine;
            (machine.priority, machine.interval, machine.preempt) =
                (config.priority, config.interval, config.preempt);
            if machine.state != State::Backup {
                machine.master_interval = config.interval;
            }
            entry.config = config;
        }
        if rejoins && !old.config.unicast && (config_is_unicast || old.config.key.family == Family::Ip6) {
            self.leave(&old.config);
        }
        if old.machine.state == State::Master {
            self.renew(index);
        }
        self.tell_hosts(index);
        Ok(())
    }

    /// Deletes a virtual router; others hear so, if it has the addresses.
    ///
    /// # Errors
    /// There is none.
    pub fn del(&self, index: u32) -> Result<(), VrrpError> {
        let key = self.info(index).ok_or(VrrpError::NoIndex(index))?.config.key;
        self.stop(key)?;
        let mut vrs = self.vrs.borrow_mut();
        vrs.all.remove(&index);
        vrs.deadlines.set(index, None);
        vrs.by_key.remove(&key);
        drop(vrs);
        self.redundancy.tell(group(key), None);
        Ok(())
    }

    /// The number of a virtual router among all.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, key: VrKey) -> Result<u32, VrrpError> {
        self.index_of(key)
    }

    /// Starts a virtual router.
    ///
    /// # Errors
    /// There is none, or it has no peers to tell.
    pub fn start(&self, key: VrKey) -> Result<(), VrrpError> {
        let index = self.index_of(key)?;
        let info = self.info(index).ok_or(VrrpError::NoIndex(index))?;
        if info.machine.state != State::Initialize {
            return Ok(());
        }
        if info.config.unicast && info.peers.is_empty() {
            return Err(VrrpError::NoPeers);
        }
        self.check_owner(&info.config)?;
        if !info.config.unicast {
            self.join(&info.config)?;
        }
        self.weigh(index);
        let is_up = self.is_up(key);
        self.with(index, |machine, now| machine.start(is_up, now));
        Ok(())
    }

    /// Stops one; others hear so, if it has the addresses.
    ///
    /// # Errors
    /// There is none.
    pub fn stop(&self, key: VrKey) -> Result<(), VrrpError> {
        let index = self.index_of(key)?;
        let info = self.info(index).ok_or(VrrpError::NoIndex(index))?;
        if info.machine.state == State::Initialize {
            return Ok(());
        }
        self.with(index, |machine, _| machine.stop());
        if !info.config.unicast {
            self.leave(&info.config);
        }
        Ok(())
    }

    /// Sets the routers that a virtual router tells.
    ///
    /// # Errors
    /// There is none, it tells all routers of its link, or an address is none of its family.
    pub fn set_peers(&self, key: VrKey, peers: Vec<IpAddr>) -> Result<(), VrrpError> {
        let index = self.index_of(key)?;
        let mut vrs = self.vrs.borrow_mut();
        let Some(entry) = vrs.all.get_mut(&index) else { return Err(VrrpError::NoIndex(index)) };
        if !entry.config.unicast {
            return Err(VrrpError::NotUnicast);
        }
        check::hosts(key.family, &peers)?;
        if peers.is_empty() {
            return Err(VrrpError::NoPeers);
        }
        entry.peers = peers;
        Ok(())
    }

    /// All virtual routers, by number.
    pub fn list(&self) -> Vec<Info> {
        let all: Vec<u32> = self.vrs.borrow().all.keys().copied().collect();
        all.into_iter().filter_map(|index| self.info(index)).collect()
    }

    /// One of them.
    pub fn info(&self, index: u32) -> Option<Info> {
        let vrs = self.vrs.borrow();
        let entry = vrs.all.get(&index)?;
        Some(Info {
            index,
            config: entry.config.clone(),
            peers: entry.peers.clone(),
            interfaces: entry.interfaces.iter().map(|(interface, by)| (*interface, *by)).collect(),
            routes: entry.routes.iter().map(|(prefix, by)| (*prefix, *by)).collect(),
            machine: entry.machine,
        })
    }

    /// Does something with a virtual router, and what follows from it.
    fn with(&self, index: u32, f: impl FnOnce(&mut Machine, Nanos) -> Todo) {
        let now = self.now();
        let Some((todo, new, key)) = ({
            let mut vrs = self.vrs.borrow_mut();
            vrs.all.get_mut(&index).map(|entry| {
                let todo = f(&mut entry.machine, now);
                (todo, entry.machine.state, entry.config.key)
            })
        }) else {
            return;
        };
        // The last advertisement goes out before the addresses go, the first one before they come (RFC 9568, 6.4).
        if let Some(priority) = todo.send {
            self.advertise(index, priority);
        }
        if let Some(old) = todo.was {
            if old == State::Master {
                self.give_up(index);
            }
            if new == State::Master {
                self.counts.became_master.add(0, index as usize, 1);
                self.take_over(index);
            }
            self.tell_hosts(index);
            let name = self.name(key.interface);
            tracing::info!("vrrp: VR {} on {name} is {new}, was {old}", key.vr_id);
            let standing = if new == State::Master { Standing::Master } else { Standing::Backup };
            self.redundancy.tell(group(key), Some(standing));
            let observers = self.observers.borrow().clone();
            for observe in observers {
                observe(&Change { key, old, new });
            }
        }
        self.schedule(index);
    }

    /// When a virtual router is looked at next follows from its times.
    fn schedule(&self, index: u32) {
        let mut vrs = self.vrs.borrow_mut();
        let Some(entry) = vrs.all.get(&index) else { return };
        let at = entry.machine.due.map(Time);
        if vrs.deadlines.set(index, at) {
            // A full channel has rung already.
            let _ = self.bell.try_send(());
        }
    }

    /// Does what is due; when there is something next.
    pub(crate) fn tick(&self) -> Option<Time> {
        let now = Time(self.now());
        loop {
            let due = self.vrs.borrow_mut().deadlines.take_due(now);
            let Some(index) = due else { break };
            self.with(index, Machine::due);
        }
        self.vrs.borrow().deadlines.first()
    }

    /// An advertisement came.
    pub(crate) fn hear(&self, heard: &ReceivedAdvertisement) {
        let key =
            VrKey { interface: heard.interface, vr_id: heard.said.vr_id, family: Family::of(heard.src) };
        let Ok(index) = self.index_of(key) else {
            self.counts.unknown.add(0, 0, 1);
            return;
        };
        let Some(info) = self.info(index) else { return };
        let config = &info.config;
        // RFC 3768, 7.1: one with another interval is misconfigured. RFC 9568, 8.4: versions do not mix.
        let of_version = config.version == heard.said.version;
        let of_interval = config.version == Version::V3 || heard.said.interval == config.interval;
        let of_peer = !config.unicast || info.peers.contains(&heard.src);
        if !of_version || !of_interval || !of_peer {
            self.counts.mismatch.add(0, index as usize, 1);
            return;
        }
        self.counts.received.add(0, index as usize, 1);
        // RFC 9568, 7.1: other addresses are a mistake of an operator, to be seen, not a reason to fight.
        let same = usize::from(heard.said.addresses) == config.addresses.len()
            && config.addresses.first() == Some(&heard.said.first);
        if !same && heard.said.priority != OWNER {
            self.counts.mismatch.add(0, index as usize, 1);
        }
        let own = self.source(key);
        let said = PeerAdvertisement {
            priority: heard.said.priority,
            interval: heard.said.interval.clamp(1, LONGEST_INTERVAL),
            is_higher: own.is_none_or(|own| heard.src > own),
        };
        self.with(index, |machine, now| machine.hear(said, now));
    }

    /// Whether a virtual router's interface carries its packets.
    fn is_up(&self, key: VrKey) -> bool {
        self.carries(key.interface) && self.source(key).is_some()
    }

    fn carries(&self, interface: SwIfIndex) -> bool {
        let up = IfFlags::ADMIN_UP.set(IfFlags::LINK_UP, true);
        self.interfaces.data(interface).is_ok_and(|data| data.flags().all(up))
    }

    /// The address that advertisements come from.
    fn source(&self, key: VrKey) -> Option<IpAddr> {
        match key.family {
            Family::Ip4 => self.ip4.addresses(key.interface).first().map(|own| own.addr().into()),
            Family::Ip6 => self.ip6.link_local(key.interface).map(IpAddr::V6),
        }
    }

    /// An interface went up or down, or has other addresses.
    pub(crate) fn look_again(&self, interface: SwIfIndex) {
        let all: Vec<(u32, VrKey)> =
            self.vrs.borrow().all.iter().map(|(index, entry)| (*index, entry.config.key)).collect();
        for (index, key) in all {
            if key.interface == interface {
                let is_up = self.is_up(key);
                self.with(index, |machine, now| machine.interface(is_up, now));
            }
            self.weigh(index);
        }
    }

    /// An interface goes, and its virtual routers with it.
    pub(crate) fn forget(&self, interface: SwIfIndex) {
        let all: Vec<(u32, VrKey)> =
            self.vrs.borrow().all.iter().map(|(index, entry)| (*index, entry.config.key)).collect();
        for (index, key) in all {
            if key.interface == interface {
                if let Err(e) = self.del(index) {
                    tracing::warn!("vrrp: VR {} stays: {e}", key.vr_id);
                }
            } else if let Some(entry) = self.vrs.borrow_mut().all.get_mut(&index) {
                entry.interfaces.remove(&interface);
            }
            self.weigh(index);
        }
    }
}
