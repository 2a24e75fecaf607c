//! The control plane: policies, and where they are attached.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::Family;
use shoal_fib::{Fib, HeldPathList, Path, PathState, Via};
use shoal_graph::counter::Combined;
use shoal_graph::{FeatureSpec, Graph, PacketNode};
use shoal_interface::{Event, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_rule::{Matcher, Rule};

use crate::AbfError;
use crate::chain::{Chain, Chains, Entry};
use crate::node::input::{AbfInput, Kind};

/// Most policies.
const MOST_POLICIES: usize = 1 << 16;
/// Most policies of one interface and family: a packet may be compared with all of them.
const MOST_ATTACHED: usize = 1 << 10;

struct Policy {
    rule: Rule,
    held: HeldPathList,
    counter: u32,
}

/// Where policies are attached: interface, family, priority, policy. Sorted, so that those of one interface stand
/// together in the order in which they are asked.
type Attachment = (SwIfIndex, Family, u32, u32);

/// A policy as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyInfo {
    /// Its number.
    pub id: u32,
    /// Its rule.
    pub rule: Rule,
    /// Its paths.
    pub paths: Rc<[Path]>,
    /// Whether they lead anywhere.
    pub state: PathState,
    /// The adjacency its packets take.
    pub adj: u32,
    /// Packets that matched.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// An attachment as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachInfo {
    /// The interface.
    pub interface: SwIfIndex,
    /// The packets' family.
    pub family: Family,
    /// Those of a lower one are asked first.
    pub priority: u32,
    /// The policy.
    pub policy: u32,
}

/// Policies and where they are attached.
pub struct Abf {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    ip4: Chains<u32>,
    ip6: Chains<u128>,
    matched: Combined,
    policies: RefCell<BTreeMap<u32, Policy>>,
    attached: RefCell<BTreeSet<Attachment>>,
}

/// The nodes that superpaths share with the graph.
pub struct AbfNodes {
    /// `abf-input-ip4`.
    pub ip4: Arc<AbfInput<u32>>,
    /// `abf-input-ip6`.
    pub ip6: Arc<AbfInput<u128>>,
}

fn add_node<A: Kind>(
    graph: &Graph,
    chains: &Chains<A>,
    matched: &Combined,
) -> Result<Arc<AbfInput<A>>, InitError> {
    let node = Arc::new(AbfInput { chains: chains.clone(), matched: matched.clone() });
    graph.add_packet_shared(Arc::clone(&node))?;
    // Behind what may find that a packet must not come in at all, or changes it.
    let after: &[&str] = match A::FAMILY {
        Family::Ip4 => {
            &["ip4-not-enabled", "ip4-rx-urpf-loose", "ip4-rx-urpf-strict", "tcp-mss-clamping-ip4-in"]
        }
        Family::Ip6 => {
            &["ip6-not-enabled", "ip6-rx-urpf-loose", "ip6-rx-urpf-strict", "tcp-mss-clamping-ip6-in"]
        }
    };
    graph.add_feature(FeatureSpec { arc: A::ARC, node: AbfInput::<A>::NAME, before: &[], after });
    Ok(node)
}

impl Abf {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let interfaces = control.get::<Interfaces>()?;
        let (ip4, ip6) = (Chains::new(), Chains::new());
        let matched = graph.counters().combined("/abf/policy", MOST_POLICIES)?;
        let nodes =
            AbfNodes { ip4: add_node(&graph, &ip4, &matched)?, ip6: add_node(&graph, &ip6, &matched)? };
        control.put(nodes);
        let abf = Rc::new(Abf {
            graph,
            interfaces: Rc::clone(&interfaces),
            fib: control.get::<Fib>()?,
            ip4,
            ip6,
            matched,
            policies: RefCell::default(),
            attached: RefCell::default(),
        });
        let weak = Rc::downgrade(&abf);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(interface), Some(abf)) = (event, weak.upgrade()) {
                abf.forget(interface);
            }
        });
        Ok(abf)
    }

    /// A policy's rule.
    ///
    /// # Errors
    /// There is no such policy.
    pub fn rule(&self, id: u32) -> Result<Rule, AbfError> {
        self.policies.borrow().get(&id).map(|p| p.rule).ok_or_else(|| self.no_policy(id))
    }

    /// Makes a policy, or gives one with the same rule more paths.
    ///
    /// # Errors
    /// The paths cannot be, the policy has another rule, or there are too many.
    pub fn add(&self, id: u32, rule: Rule, paths: &[Path]) -> Result<(), AbfError> {
        let known = self.policies.borrow().get(&id).map(|p| (p.rule, self.fib.held(&p.held).paths));
        let Some((there, old)) = known else { return self.create(id, rule, paths) };
        if there != rule {
            return Err(AbfError::OtherRule { id, rule: Box::new(there) });
        }
        let all: Vec<Path> = old.iter().chain(paths).copied().collect();
        self.set_paths(id, rule.family, &all)
    }

    fn create(&self, id: u32, rule: Rule, paths: &[Path]) -> Result<(), AbfError> {
        let counter = {
            let policies = self.policies.borrow();
            let used: BTreeSet<u32> = policies.values().map(|p| p.counter).collect();
            let free = (0..MOST_POLICIES as u32).find(|n| !used.contains(n));
            free.ok_or(AbfError::TooMany("65536 policies"))?
        };
        let held = self.fib.hold(rule.family, paths)?;
        self.matched.ensure(counter as usize + 1);
        self.matched.zero(counter as usize);
        self.policies.borrow_mut().insert(id, Policy { rule, held, counter });
        Ok(())
    }

    /// Packets of a policy take other paths from now on.
    fn set_paths(&self, id: u32, family: Family, paths: &[Path]) -> Result<(), AbfError> {
        let held = self.fib.hold(family, paths)?;
        let old = {
            let mut policies = self.policies.borrow_mut();
            let Some(policy) = policies.get_mut(&id) else {
                self.fib.release(held);
                return Ok(());
            };
            std::mem::replace(&mut policy.held, held)
        };
        let on: Vec<SwIfIndex> =
            self.attached.borrow().iter().filter(|a| a.3 == id).map(|(interface, ..)| *interface).collect();
        self.publish(family, &on);
        self.fib.release(old);
        Ok(())
    }

    /// Takes paths away from a policy, told by where they lead; or all of it, without any, or with the last one.
    ///
    /// # Errors
    /// There is no such policy, it has none of these paths, or it would go and is attached.
    pub fn remove(&self, id: u32, paths: &[Path]) -> Result<(), AbfError> {
        let rule = self.rule(id)?;
        let there = self.policies.borrow().get(&id).map(|p| self.fib.held(&p.held).paths).unwrap_or_default();
        if !paths.iter().all(|p| there.iter().any(|t| t.via == p.via)) {
            return Err(AbfError::NoPath { id, count: there.len() });
        }
        let gone = |path: &Path| paths.is_empty() || paths.iter().any(|p| p.via == path.via);
        let left: Vec<Path> = there.iter().filter(|p| !gone(p)).copied().collect();
        if !left.is_empty() {
            return self.set_paths(id, rule.family, &left);
        }
        let attached = self.attached.borrow().iter().find(|a| a.3 == id).map(|a| a.0);
        if let Some(interface) = attached {
            let interface = self.interfaces.name(interface).unwrap_or_default();
            return Err(AbfError::Attached { id, interface });
        }
        let policy = self.policies.borrow_mut().remove(&id);
        if let Some(policy) = policy {
            self.fib.release(policy.held);
        }
        Ok(())
    }

    /// Asks a policy about a family's packets that come in by an interface; policies of a lower priority are asked
    /// first, and the first that matches decides.
    ///
    /// # Errors
    /// There is no such interface or policy, it is for the other family, it is attached there, or there are too many.
    pub fn attach(
        &self,
        family: Family,
        interface: SwIfIndex,
        id: u32,
        priority: u32,
    ) -> Result<(), AbfError> {
        let name = self.interfaces.name(interface)?;
        let rule = self.rule(id)?;
        if rule.family != family {
            return Err(AbfError::Family { id, family: rule.family });
        }
        let there = self.on(interface, family);
        if let Some((.., priority, _)) = there.iter().find(|a| a.3 == id) {
            return Err(AbfError::Already { id, interface: name, priority: *priority });
        }
        if there.len() >= MOST_ATTACHED {
            return Err(AbfError::TooMany("1024 policies on an interface"));
        }
        self.attached.borrow_mut().insert((interface, family, priority, id));
        self.publish(family, &[interface]);
        if there.is_empty()
            && let Err(e) = self.enable(interface, family, true)
        {
            self.attached.borrow_mut().remove(&(interface, family, priority, id));
            self.publish(family, &[interface]);
            return Err(e);
        }
        Ok(())
    }

    /// A policy is no longer asked about an interface's packets.
    ///
    /// # Errors
    /// There is no such interface or policy, or it is not attached there.
    pub fn detach(&self, family: Family, interface: SwIfIndex, id: u32) -> Result<(), AbfError> {
        let name = self.interfaces.name(interface)?;
        self.rule(id)?;
        let there = self.on(interface, family);
        let Some(attachment) = there.iter().find(|a| a.3 == id) else {
            return Err(AbfError::NotAttached { id, interface: name });
        };
        if there.len() == 1 {
            self.enable(interface, family, false)?;
        }
        self.attached.borrow_mut().remove(attachment);
        self.publish(family, &[interface]);
        Ok(())
    }

    fn enable(&self, interface: SwIfIndex, family: Family, on: bool) -> Result<(), AbfError> {
        let (arc, node) = match family {
            Family::Ip4 => (<u32 as Kind>::ARC, <u32 as Kind>::NODE),
            Family::Ip6 => (<u128 as Kind>::ARC, <u128 as Kind>::NODE),
        };
        Ok(self.interfaces.enable_feature(arc, node, interface, on)?)
    }

    fn on(&self, interface: SwIfIndex, family: Family) -> Vec<Attachment> {
        let range = (interface, family, 0, 0)..=(interface, family, u32::MAX, u32::MAX);
        self.attached.borrow().range(range).copied().collect()
    }

    /// Writes what packets read of some interfaces.
    fn publish(&self, family: Family, on: &[SwIfIndex]) {
        match family {
            Family::Ip4 => self.ip4.set(on.iter().map(|i| (*i, self.chain(*i)))),
            Family::Ip6 => self.ip6.set(on.iter().map(|i| (*i, self.chain(*i)))),
        }
    }

    fn chain<A: Kind>(&self, interface: SwIfIndex) -> Option<Chain<A>> {
        let policies = self.policies.borrow();
        let entry = |(.., id): Attachment| {
            let policy = policies.get(&id)?;
            Some(Entry {
                rule: Matcher::new(&policy.rule),
                adj: self.fib.held(&policy.held).adj,
                counter: policy.counter,
                policy: id,
            })
        };
        let all: Vec<Entry<A>> = self.on(interface, A::FAMILY).into_iter().filter_map(entry).collect();
        (!all.is_empty()).then(|| all.into())
    }

    /// An interface is about to go: with it go its attachments and all paths by it. A policy that is left without any
    /// drops its packets: they must not take another way than it says.
    fn forget(&self, interface: SwIfIndex) {
        for AttachInfo { family, policy, .. } in
            self.attachments().iter().filter(|a| a.interface == interface)
        {
            if let Err(e) = self.detach(*family, interface, *policy) {
                tracing::warn!(interface = interface.0, "policy {policy} stays attached: {e}");
            }
        }
        for info in self.policies() {
            let gone = |path: &Path| path.via.interface() == Some(interface);
            if !info.paths.iter().any(gone) {
                continue;
            }
            let mut left: Vec<Path> = info.paths.iter().filter(|p| !gone(p)).copied().collect();
            if left.is_empty() {
                left.push(Via::Drop.into());
                let name = self.interfaces.name(interface).unwrap_or_default();
                self.graph.events().write(0, format!("policy {} drops: {name} is deleted", info.id));
                tracing::info!("policy {} drops its packets: {name} is deleted", info.id);
            }
            if let Err(e) = self.set_paths(info.id, info.rule.family, &left) {
                tracing::warn!("policy {} keeps a path through a deleted interface: {e}", info.id);
            }
        }
    }

    fn no_policy(&self, id: u32) -> AbfError {
        let nearest = self.policies.borrow().keys().copied().min_by_key(|n| n.abs_diff(id));
        AbfError::NoPolicy { id, nearest }
    }

    /// All policies by number.
    pub fn policies(&self) -> Vec<PolicyInfo> {
        self.policies.borrow().iter().map(|(id, policy)| self.info(*id, policy)).collect()
    }

    /// The first policy behind one, by number; the first of all for `None`.
    pub fn policy_after(&self, after: Option<u32>) -> Option<PolicyInfo> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let policies = self.policies.borrow();
        let (id, policy) = policies.range((after, Bound::Unbounded)).next()?;
        Some(self.info(*id, policy))
    }

    fn info(&self, id: u32, policy: &Policy) -> PolicyInfo {
        let held = self.fib.held(&policy.held);
        let (packets, bytes) = self.matched.sum(policy.counter as usize);
        let (paths, state, adj) = (held.paths, held.state, held.adj.0);
        PolicyInfo { id, rule: policy.rule, paths, state, adj, packets, bytes }
    }

    /// The first attachment behind a bound, by interface and in the order in which they are asked.
    pub fn attachment_after(&self, after: Bound<AttachInfo>) -> Option<AttachInfo> {
        let after = after.map(|info| (info.interface, info.family, info.priority, info.policy));
        let attached = self.attached.borrow();
        let (interface, family, priority, policy) = *attached.range((after, Bound::Unbounded)).next()?;
        Some(AttachInfo { interface, family, priority, policy })
    }

    /// All attachments, by interface and in the order in which they are asked.
    pub fn attachments(&self) -> Vec<AttachInfo> {
        let info = |(interface, family, priority, policy): &Attachment| AttachInfo {
            interface: *interface,
            family: *family,
            priority: *priority,
            policy: *policy,
        };
        self.attached.borrow().iter().map(info).collect()
    }
}
