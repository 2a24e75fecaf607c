//! The control plane: virtual addresses, their servers, and where answers pass.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use shoal_fib::{Fib, FibIndex, Path, Source, Via};
use shoal_graph::clock::Time;
use shoal_graph::process::Processes;
use shoal_graph::{FeatureSpec, Graph, GraphError, PacketNode, StateKey};
use shoal_interface::{Event, Interfaces, SwIfIndex};
use shoal_ip::ListenerTable;
use shoal_ip4::Ip4Family;
use shoal_ip6::Ip6Family;
use shoal_module::{Control, InitError};
use shoal_reassembly::Reassembly;
use shoal_wire::IpProtocol;

use crate::config::{Config, Front, OfPrefix, PrefixKey, back};
use crate::flow_stores::{FLOWS_OF_BUCKET, FlowStores};
use crate::flows::Room;
use crate::node::balance::{Balance, node_of};
use crate::node::return_path::ReturnPath;
use crate::node::{MOST_VIPS, Shared};
use crate::vip::{Encap, Policy, Server, Service, Vip, VipKey};

mod error;

pub use error::LbError;

/// Buckets of a thread's flows there may be.
const MOST_BUCKETS: u32 = 1 << 20;
/// Places a table of new flows may have.
const MOST_PLACES: u32 = 1 << 20;
/// A day.
const LONGEST_TIMEOUT: u32 = 86_400;
/// How often servers are looked at that get no new flows.
const LOOK: Duration = Duration::from_secs(1);

/// What is set once for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The source of tunnel packets.
    pub source4: Ipv4Addr,
    /// The same of IPv6.
    pub source6: Ipv6Addr,
    /// Buckets of flows of each thread, a power of two: four flows each.
    pub buckets: u32,
    /// After how many seconds without a packet a flow is forgotten.
    pub timeout: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            source4: crate::config::NO_SOURCE4,
            source6: crate::config::NO_SOURCE6,
            buckets: 1024,
            timeout: 40,
        }
    }
}

/// Flows that threads know.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Look {
    /// By thread: how many there are.
    pub used: Vec<(usize, usize)>,
    /// How many each thread has room for.
    pub room: u32,
    /// Flows of each server, by its number.
    pub of_server: HashMap<u32, u64>,
}

/// Packets of a virtual address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    /// Of flows that were known.
    pub existing: u64,
    /// That began one.
    pub first: u64,
    /// For which there was no room.
    pub untracked: u64,
    /// Dropped for want of a server.
    pub no_server: u64,
}

/// The load balancer of this router.
pub struct LoadBalancer {
    graph: Rc<Graph>,
    fib: Rc<Fib>,
    interfaces: Rc<Interfaces>,
    ports4: Rc<ListenerTable<Ip4Family>>,
    ports6: Rc<ListenerTable<Ip6Family>>,
    shared: Arc<Shared>,
    flows: StateKey<FlowStores>,
    settings: Cell<Settings>,
    config: RefCell<Config>,
    /// Interfaces on which answers are translated: whether those of IPv6.
    return_paths: RefCell<BTreeSet<(SwIfIndex, bool)>>,
    serial: Cell<u32>,
}

/// Nodes and arcs of answers.
const RETURN_PATHS: [(&str, &str); 2] =
    [(shoal_ip4::UNICAST_ARC, "lb-nat4-in2out"), (shoal_ip6::UNICAST_ARC, "lb-nat6-in2out")];

impl LoadBalancer {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let words = control.get::<Reassembly>()?.words();
        let shared = Shared::new(graph.counters(), words)?;
        let settings = Settings::default();
        let flows = graph.add_state(FlowStores::new(room(&settings)))?;
        add_nodes(&graph, &shared, &flows)?;
        for (is_ip6, (arc, node)) in RETURN_PATHS.iter().enumerate() {
            let after: &[&str] = if is_ip6 == 1 {
                &["ip6-not-enabled", "ip6-sv-reassembly-feature"]
            } else {
                &["ip4-not-enabled", "ip4-sv-reassembly-feature"]
            };
            graph.add_feature(FeatureSpec { arc, node, before: &[], after });
        }
        let lb = Rc::new(LoadBalancer {
            fib: control.get::<Fib>()?,
            ports4: control.get::<ListenerTable<Ip4Family>>()?,
            ports6: control.get::<ListenerTable<Ip6Family>>()?,
            graph,
            interfaces: Rc::clone(&interfaces),
            shared,
            flows,
            settings: Cell::new(settings),
            config: RefCell::default(),
            return_paths: RefCell::default(),
            serial: Cell::new(0),
        });
        let weak = Rc::downgrade(&lb);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(interface), Some(lb)) = (event, weak.upgrade()) {
                lb.return_paths.borrow_mut().retain(|(of, _)| *of != interface);
            }
        });
        Ok(lb)
    }

    /// A number that nothing has had.
    fn next_serial(&self) -> u32 {
        let next = self.serial.get().wrapping_add(1).max(1);
        self.serial.set(next);
        next
    }

    fn now(&self) -> Time {
        self.graph.clock().now()
    }

    fn publish(&self) {
        self.shared.config.replace(self.config.borrow().clone());
    }

    /// What is set once for all.
    pub fn settings(&self) -> Settings {
        self.settings.get()
    }

    /// Sets it. Flows are forgotten if there is to be room for more or fewer.
    ///
    /// # Errors
    /// A value is out of range, or there is no memory.
    pub fn set(&self, settings: Settings) -> Result<(), LbError> {
        size("a number of buckets of", settings.buckets, MOST_BUCKETS)?;
        if settings.timeout > LONGEST_TIMEOUT {
            return Err(LbError::Value(format!(
                "a timeout of {} s is too long, nearest {LONGEST_TIMEOUT}",
                settings.timeout
            )));
        }
        let (old, keeping, new) = (self.settings.get(), self.flows.feature(), room(&settings));
        keeping.set_room(new);
        if keeping.is_on() {
            let resized = old.buckets != settings.buckets;
            let (now, seconds) = (self.now(), settings.timeout);
            let done = self.graph.on_every_state(&self.flows, move |_, flows| {
                if resized { flows.open(new, now) } else { flows.set_timeout(seconds) }
            })?;
            if let Some(why) = done.into_values().find_map(Result::err) {
                keeping.set_room(room(&old));
                return Err(LbError::Memory(why.to_string()));
            }
        }
        self.settings.set(settings);
        let mut config = self.config.borrow_mut();
        (config.source4, config.source6) = (settings.source4, settings.source6);
        drop(config);
        self.publish();
        Ok(())
    }

    /// Makes a virtual address; its number.
    ///
    /// # Errors
    /// It is there, or its packets cannot be spread so.
    pub fn add_vip(&self, key: VipKey, policy: Policy) -> Result<u32, LbError> {
        let key = VipKey { prefix: key.prefix.normalized(), ..key };
        self.check(&key, &policy)?;
        self.open()?;
        let index = {
            let config = self.config.borrow();
            let free = (1..MOST_VIPS as u32).find(|index| config.vip(*index).is_none());
            free.ok_or(LbError::TooMany("65535 virtual addresses"))?
        };
        let is_first = self.config.borrow().prefixes.get(&PrefixKey::of(&key.prefix)).is_none();
        if is_first {
            self.route(&key, policy.encap)?;
        }
        if let Service::NodePort(port) = policy.service
            && let Err(e) = self.listen(key.is_ip6(), port)
        {
            if is_first {
                self.forget_route(&key);
            }
            return Err(e);
        }
        let mut config = self.config.borrow_mut();
        if let Service::NodePort(port) = policy.service {
            config.node_ports.insert((key.is_ip6(), port), index);
        }
        config.put(Vip::new((index, self.next_serial()), key, policy));
        drop(config);
        for counter in self.counters() {
            counter.ensure(index as usize + 1);
            counter.zero(index as usize);
        }
        self.publish();
        Ok(index)
    }

    fn check(&self, key: &VipKey, policy: &Policy) -> Result<(), LbError> {
        let config = self.config.borrow();
        match (config.prefixes.get(&PrefixKey::of(&key.prefix)), key.port) {
            (Some(OfPrefix::Ports(ports)), Some(port)) if !ports.contains_key(&port) => {}
            (Some(_), _) => return Err(LbError::VipExists(*key)),
            (None, _) => {}
        }
        size("a table of new flows of", policy.new_length, MOST_PLACES)?;
        if !policy.encap.takes(key.is_ip6()) {
            return Err(LbError::Family(*key, policy.encap));
        }
        if policy.dscp > 63 {
            return Err(LbError::Value(format!("dscp {} is more than 63", policy.dscp)));
        }
        if policy.encap.is_nat() && (key.port.is_none() || policy.target_port == 0) {
            return Err(LbError::Value(format!(
                "{}: a service that is translated has a protocol, a port and a target_port",
                policy.encap
            )));
        }
        if let Service::NodePort(port) = policy.service {
            let is_udp = key.port.is_some_and(|(protocol, _)| protocol == IpProtocol::UDP);
            if !policy.encap.is_nat() || !is_udp || port == 0 {
                return Err(LbError::Value("a node port is one of a translated UDP service".to_owned()));
            }
        }
        Ok(())
    }

    fn route(&self, key: &VipKey, encap: Encap) -> Result<(), LbError> {
        let path = Path::from(Via::Node(node_of(key, encap)));
        Ok(self.fib.add(FibIndex::DEFAULT, key.prefix, Source::Feature, &[path])?)
    }

    fn forget_route(&self, key: &VipKey) {
        if let Err(e) = self.fib.remove(FibIndex::DEFAULT, key.prefix, Source::Feature) {
            tracing::warn!("lb: the route of {} stays: {e}", key.prefix);
        }
    }

    fn listen(&self, is_ip6: bool, port: u16) -> Result<(), LbError> {
        let taken = || LbError::Value(format!("UDP port {port} is another part of the router's"));
        let edge =
            |local: &str, node: &str| self.graph.add_edge(self.graph.node(local)?, self.graph.node(node)?);
        if is_ip6 {
            if self.ports6.udp(port).is_some() {
                return Err(taken());
            }
            self.ports6.set_udp(port, Some(edge("ip6-local", "lb6-nodeport")?));
        } else {
            if self.ports4.udp(port).is_some() {
                return Err(taken());
            }
            self.ports4.set_udp(port, Some(edge("ip4-local", "lb4-nodeport")?));
        }
        Ok(())
    }

    fn open(&self) -> Result<(), LbError> {
        let keeping = self.flows.feature();
        if keeping.is_on() {
            return Ok(());
        }
        keeping.switch_on();
        self.open_empty()
    }

    /// Every thread gets a table of flows that is empty.
    fn open_empty(&self) -> Result<(), LbError> {
        let (now, room) = (self.now(), self.flows.feature().room());
        let done = self.graph.on_every_state(&self.flows, move |_, flows| flows.open(room, now))?;
        done.into_values().find_map(Result::err).map_or(Ok(()), |why| Err(LbError::Memory(why.to_string())))
    }

    /// Deletes a virtual address.
    ///
    /// # Errors
    /// There is none.
    pub fn del_vip(&self, key: VipKey) -> Result<(), LbError> {
        let vip = self.vip(&key)?;
        let mut config = self.config.borrow_mut();
        for server in vip.servers() {
            forget_back(&mut config, &vip, server.address);
        }
        let is_last = config.take(&vip);
        // Others of the prefix may have packets sent another way, by a node of another name.
        let other = config.vips.iter().flatten().find(|other| other.key.prefix == vip.key.prefix).cloned();
        drop(config);
        if let Service::NodePort(port) = vip.policy.service {
            if key.is_ip6() { self.ports6.set_udp(port, None) } else { self.ports4.set_udp(port, None) }
        }
        if is_last {
            self.forget_route(&vip.key);
        } else if let Some(other) = other {
            self.route(&other.key, other.policy.encap)?;
        }
        self.publish();
        Ok(())
    }

    /// A virtual address.
    ///
    /// # Errors
    /// There is none.
    pub fn vip(&self, key: &VipKey) -> Result<Arc<Vip>, LbError> {
        let key = VipKey { prefix: key.prefix.normalized(), ..*key };
        self.config.borrow().exactly(&key).cloned().ok_or(LbError::NoVip(key))
    }

    /// All virtual addresses, by number.
    pub fn vips(&self) -> Vec<Arc<Vip>> {
        self.config.borrow().vips.iter().flatten().cloned().collect()
    }

    fn change(
        &self,
        vip: &Vip,
        how: impl FnOnce(&mut Vip, &mut Config) -> Result<(), LbError>,
    ) -> Result<(), LbError> {
        let (mut vip, mut config) = (vip.clone(), self.config.borrow().clone());
        how(&mut vip, &mut config)?;
        config.put(vip);
        *self.config.borrow_mut() = config;
        self.publish();
        Ok(())
    }

    /// Gives a virtual address servers.
    ///
    /// # Errors
    /// There is no such virtual address, one is a server already, or its address is of the wrong family.
    pub fn add_servers(&self, key: &VipKey, addresses: &[IpAddr]) -> Result<(), LbError> {
        let vip = self.vip(key)?;
        let encap = vip.policy.encap;
        for (n, address) in addresses.iter().enumerate() {
            if address.is_ipv6() != encap.is_ip6() {
                let family = if encap.is_ip6() { "IPv6" } else { "IPv4" };
                return Err(LbError::ServerFamily(*address, encap, family));
            }
            let is_there = vip.by_address(*address).is_some_and(|server| server.used);
            if is_there || addresses.iter().take(n).any(|other| other == address) {
                return Err(LbError::ServerExists(*address, vip.key));
            }
        }
        let now = self.now();
        // As VPP, which puts the last one in first.
        let servers = addresses.iter().rev();
        let servers: Vec<Server> = servers
            .map(|address| Server { id: self.next_serial(), address: *address, used: true, since: now })
            .collect();
        self.change(&vip, |vip, config| {
            if !vip.add(servers.into_iter()) {
                return Err(LbError::TooMany("65535 servers of the virtual address"));
            }
            if let (true, Some((protocol, port))) = (vip.policy.encap.is_nat(), vip.key.port) {
                for address in addresses {
                    let front = Front { address: vip.key.prefix.addr(), port, vip: vip.index };
                    let back = back(*address, protocol, vip.policy.target_port);
                    if config.back.get(&back).is_none() {
                        config.back.insert(back, front);
                    }
                }
            }
            Ok(())
        })
    }

    /// Has servers get no new flows: those they have go on, or with `flush` get other servers now.
    ///
    /// # Errors
    /// There is no such virtual address, or one is none of its servers.
    pub fn del_servers(&self, key: &VipKey, addresses: &[IpAddr], flush: bool) -> Result<(), LbError> {
        let vip = self.vip(key)?;
        let is_used = |address: &IpAddr| vip.by_address(*address).is_some_and(|server| server.used);
        if let Some(other) = addresses.iter().find(|address| !is_used(address)) {
            return Err(LbError::NoServer(*other, vip.key));
        }
        let now = self.now();
        self.change(&vip, |vip, config| {
            if flush {
                vip.forget(|server| addresses.contains(&server.address));
                for address in addresses {
                    forget_back(config, vip, *address);
                }
            } else {
                vip.retire(addresses, now);
            }
            Ok(())
        })
    }

    /// Spreads all flows of a virtual address again.
    ///
    /// # Errors
    /// There is none.
    pub fn flush(&self, key: &VipKey) -> Result<(), LbError> {
        let vip = self.vip(key)?;
        self.change(&vip, |vip, config| {
            let gone: Vec<IpAddr> = vip.servers().filter(|s| !s.used).map(|s| s.address).collect();
            for address in gone {
                forget_back(config, vip, address);
            }
            vip.respread(|| self.next_serial());
            Ok(())
        })
    }

    /// Translates answers of servers that come in by an interface, or does so no more.
    ///
    /// # Errors
    /// There is no such interface, or it was not done there.
    pub fn set_return_path(&self, interface: SwIfIndex, is_ip6: bool, on: bool) -> Result<(), LbError> {
        let name = self.interfaces.name(interface)?;
        let is_there = self.return_paths.borrow().contains(&(interface, is_ip6));
        if !on && !is_there {
            return Err(LbError::NoInterface(name));
        }
        if on == is_there {
            return Ok(());
        }
        let [ip4, ip6] = RETURN_PATHS;
        let (arc, node) = if is_ip6 { ip6 } else { ip4 };
        self.interfaces.enable_feature(arc, node, interface, on)?;
        let mut all = self.return_paths.borrow_mut();
        if on {
            all.insert((interface, is_ip6))
        } else {
            all.remove(&(interface, is_ip6))
        };
        Ok(())
    }

    /// Interfaces on which answers are translated, and whether those of IPv6.
    pub fn return_paths(&self) -> Vec<(SwIfIndex, bool)> {
        self.return_paths.borrow().iter().copied().collect()
    }

    /// What threads know of flows.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn look(&self) -> Result<Look, LbError> {
        let all = self.graph.on_every_state(&self.flows, |_, flows| (flows.used(), flows.of_server()))?;
        let mut look = Look { room: self.flows.feature().room().flows, ..Look::default() };
        for (thread, (used, of_server)) in all {
            look.used.extend(used.map(|used| (thread, used)));
            for (id, flows) in of_server {
                *look.of_server.entry(id).or_default() += u64::from(flows);
            }
        }
        Ok(look)
    }

    /// Threads forget all flows: all are spread by the table of new flows.
    ///
    /// # Errors
    /// A thread does not answer, or there is no memory.
    pub fn forget_flows(&self) -> Result<(), LbError> {
        if self.flows.feature().is_on() { self.open_empty() } else { Ok(()) }
    }

    fn counters(&self) -> [&shoal_graph::counter::Simple; 4] {
        let Shared { existing, first, untracked, no_server, .. } = &*self.shared;
        [existing, first, untracked, no_server]
    }

    /// Packets of a virtual address.
    pub fn counted(&self, index: u32) -> Counted {
        let [existing, first, untracked, no_server] =
            self.counters().map(|counter| counter.sum(index as usize));
        Counted { existing, first, untracked, no_server }
    }

    /// Takes servers out that get no new flows once they have none.
    pub(crate) async fn collect(self: Rc<Self>, processes: Rc<Processes>) {
        loop {
            processes.sleep(LOOK).await;
            let retired = |vip: &Arc<Vip>| vip.servers().any(|server| !server.used);
            let vips: Vec<Arc<Vip>> = self.vips().into_iter().filter(retired).collect();
            if vips.is_empty() {
                continue;
            }
            let (now, Ok(look)) = (self.now(), self.look()) else { continue };
            for vip in vips {
                // A worker may give a flow to a server for as long as it works by the former table.
                let is_done = |server: &Server| {
                    let long = server.since.after(LOOK) <= now;
                    !server.used && long && !look.of_server.contains_key(&server.id)
                };
                let gone: Vec<IpAddr> = vip.servers().filter(|s| is_done(s)).map(|s| s.address).collect();
                if gone.is_empty() {
                    continue;
                }
                let changed = self.change(&vip, |vip, config| {
                    vip.forget(|server| gone.contains(&server.address));
                    for address in &gone {
                        forget_back(config, vip, *address);
                    }
                    Ok(())
                });
                if let Err(e) = changed {
                    tracing::warn!("lb: servers of {} stay: {e}", vip.key);
                }
            }
        }
    }
}

/// What answers of a server get as their source is forgotten.
fn forget_back(config: &mut Config, vip: &Vip, server: IpAddr) {
    let Some((protocol, _)) = vip.key.port.filter(|_| vip.policy.encap.is_nat()) else { return };
    let back = back(server, protocol, vip.policy.target_port);
    if config.back.get(&back).is_none_or(|front| front.vip != vip.index) {
        return;
    }
    config.back.remove(&back);
    // Another service with the same server and port has its answers from now on.
    let heir = config.vips.iter().flatten().find(|other| {
        let same = other.policy.encap.is_nat() && other.policy.target_port == vip.policy.target_port;
        let of = other.key.port.is_some_and(|(of, _)| of == protocol);
        other.index != vip.index && same && of && other.by_address(server).is_some()
    });
    if let Some((other, (_, port))) = heir.and_then(|other| Some((other, other.key.port?))) {
        let front = Front { address: other.key.prefix.addr(), port, vip: other.index };
        config.back.insert(back, front);
    }
}

fn room(settings: &Settings) -> Room {
    Room { flows: settings.buckets * FLOWS_OF_BUCKET, timeout: settings.timeout }
}

fn size(what: &'static str, value: u32, most: u32) -> Result<(), LbError> {
    let ok = value.is_power_of_two() && value <= most;
    if ok { Ok(()) } else { Err(LbError::Size { what, value, most }) }
}

fn add_nodes(graph: &Graph, shared: &Arc<Shared>, flows: &StateKey<FlowStores>) -> Result<(), GraphError> {
    fn add<const NODE: usize>(
        graph: &Graph,
        shared: &Arc<Shared>,
        flows: &StateKey<FlowStores>,
    ) -> Result<(), GraphError> {
        graph.add_stateful_staged(Balance::<NODE> { shared: Arc::clone(shared) }, flows).map(|_| ())
    }
    let all = [
        add::<0>, add::<1>, add::<2>, add::<3>, add::<4>, add::<5>, add::<6>, add::<7>, add::<8>, add::<9>,
        add::<10>, add::<11>, add::<12>, add::<13>,
    ];
    all.iter().try_for_each(|add| add(graph, shared, flows))?;
    graph.add_packet(ReturnPath::<false> { shared: Arc::clone(shared) })?;
    graph.add_packet(ReturnPath::<true> { shared: Arc::clone(shared) })?;
    debug_assert_eq!(
        RETURN_PATHS.map(|(_, node)| node),
        [<ReturnPath<false> as PacketNode>::NAME, <ReturnPath<true> as PacketNode>::NAME,]
    );
    Ok(())
}
