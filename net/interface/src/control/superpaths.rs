//! Which superpath an interface's frames take.
//!
//! A superpath is declared with what it is for. Of those an interface may take it takes the one that serves most of the
//! protocols that run on it; then the one that covers most of the features that packets may meet where they go out, or by their
//! route; then the cheapest. A protocol is served when all its features on the interface are covered. The choice is made again
//! when features or protocols change.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use shoal_buffer::SwIfIndex;
use shoal_graph::superpath::{ArcPassage, Chain};
use shoal_graph::{ArcSide, FeatureChange, NodeIndex};

use super::{InterfaceError, Interfaces};
use crate::IfFlags;

/// What frames of an interface begin with, and what is done with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    /// An Ethernet header, and they are routed.
    Ethernet,
    /// An IP header. Such an interface takes a superpath only if its chain begins with the node that the interface's
    /// packets go to: that tells which family they are of.
    Ip,
    /// An Ethernet header, and they are switched.
    Layer2,
}

impl Medium {
    fn of(flags: IfFlags) -> Medium {
        match (flags.all(IfFlags::ETHERNET), flags.all(IfFlags::L2)) {
            (_, true) => Medium::Layer2,
            (true, false) => Medium::Ethernet,
            (false, false) => Medium::Ip,
        }
    }
}

/// What a superpath is for.
#[derive(Clone, Copy, Debug)]
pub struct Superpath {
    /// The name of its node.
    pub name: &'static str,
    /// Which interfaces it is for.
    pub medium: Medium,
    /// What each of its branches serves: a protocol that runs on the interface, or anything (no flag).
    pub serves: &'static [IfFlags],
    /// About how many clocks a packet takes on it: of two that suit an interface the cheaper one is taken.
    pub cost: u32,
}

struct Declared {
    superpath: Superpath,
    node: NodeIndex,
    /// The first node of its chain.
    first: NodeIndex,
    passages: Vec<ArcPassage>,
    /// A node that its packets reach by a route: it is taken while there are such routes.
    by_route_to: Option<&'static str>,
}

/// All superpaths.
#[derive(Default)]
pub(super) struct Superpaths {
    all: RefCell<Vec<Declared>>,
    /// By name of an arc of the sending interface: on how many interfaces each feature is enabled.
    outgoing: RefCell<BTreeMap<&'static str, [u32; 64]>>,
    /// Nodes of features that routes lead to.
    by_route: RefCell<BTreeSet<&'static str>>,
    off: Cell<bool>,
    /// The node that sorts frames by their tags, in front of the superpaths of sub-interfaces.
    sorts: Cell<Option<NodeIndex>>,
}

/// Why an interface does not take a superpath.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SuperpathObstacle {
    /// Superpaths are switched off.
    Off,
    /// It is for other interfaces.
    Medium(Medium),
    /// Nothing that it serves runs on the interface.
    Nothing,
    /// A feature on an arc is not part of it.
    Feature {
        /// The feature.
        feature: String,
        /// The arc.
        arc: &'static str,
    },
    /// It is for packets that a route leads to a node, and there is no such route.
    NoRouteTo(&'static str),
    /// It leaves out a protocol that another serves.
    Protocol(&'static str),
    /// Features that packets may meet behind the look-up are not part of it, and of another they are: of interfaces they go out by, or
    /// at the end of routes.
    Outgoing(Vec<String>),
    /// It costs as much or more than another that serves as much.
    Cost(u32),
}

impl fmt::Display for SuperpathObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SuperpathObstacle::Off => f.write_str("superpaths are off"),
            SuperpathObstacle::Medium(Medium::Ethernet) => {
                f.write_str("it is for routed Ethernet interfaces")
            }
            SuperpathObstacle::Medium(Medium::Ip) => {
                f.write_str("it is for interfaces without a link header, of one family")
            }
            SuperpathObstacle::Medium(Medium::Layer2) => f.write_str("it is for switched interfaces"),
            SuperpathObstacle::Nothing => f.write_str("no protocol it serves runs here"),
            SuperpathObstacle::Feature { feature, arc } => write!(f, "{feature} on {arc} is not part of it"),
            SuperpathObstacle::NoRouteTo(node) => write!(f, "no route leads to {node}"),
            SuperpathObstacle::Protocol(protocol) => write!(f, "it does not serve {protocol}"),
            SuperpathObstacle::Outgoing(features) => {
                write!(f, "without {}, which packets meet behind the look-up", features.join(", "))
            }
            SuperpathObstacle::Cost(cost) => write!(f, "it costs {cost}"),
        }
    }
}

/// How well a superpath suits an interface; the greatest is taken.
type Suitability = (u32, u32, std::cmp::Reverse<u32>);

impl Superpaths {
    /// Features in use on an arc of sending interfaces.
    fn in_use(&self, arc: &str) -> u64 {
        let outgoing = self.outgoing.borrow();
        let counts = outgoing.get(arc).map_or(&[][..], |counts| counts);
        counts.iter().enumerate().filter(|(_, n)| **n > 0).fold(0, |bits, (at, _)| bits | 1 << at)
    }

    /// Whether packets may meet what a superpath is for, if that is at the end of routes.
    fn is_met(&self, superpath: &Declared) -> bool {
        superpath.by_route_to.is_none_or(|node| self.by_route.borrow().contains(node))
    }

    /// Takes notice of a change on an arc of sending interfaces; tells whether other features are in use now.
    fn note(&self, arc: &'static str, change: FeatureChange) -> bool {
        let before = self.in_use(arc);
        for (at, n) in self.outgoing.borrow_mut().entry(arc).or_insert([0; 64]).iter_mut().enumerate() {
            match (change.before >> at & 1, change.after >> at & 1) {
                (0, 1) => *n += 1,
                (1, 0) => *n = n.saturating_sub(1),
                _ => {}
            }
        }
        self.in_use(arc) != before
    }
}

impl Declared {
    /// What runs on an interface and is served by a branch.
    fn wanted(&self, flags: IfFlags) -> impl Iterator<Item = usize> {
        let serves = self.superpath.serves.iter().enumerate();
        serves.filter(move |(_, protocol)| flags.all(**protocol)).map(|(branch, _)| branch)
    }

    /// Passages of a branch on arcs of the receiving interface that features hinder, with those.
    fn hindered(&self, branch: usize, interface: SwIfIndex) -> impl Iterator<Item = (&ArcPassage, u64)> {
        let own = self.passages.iter().filter(move |p| p.branch == branch && p.side == ArcSide::Receive);
        own.map(move |p| (p, p.arc.enabled(interface) & !p.covered)).filter(|(_, bits)| *bits != 0)
    }

    /// Whether it is for interfaces of such flags, whose packets go to `plain` otherwise.
    fn is_for(&self, flags: IfFlags, plain: NodeIndex) -> bool {
        let medium = Medium::of(flags);
        self.superpath.medium == medium && (medium != Medium::Ip || self.first == plain)
    }

    fn suits(&self, interface: SwIfIndex, flags: IfFlags, all: &Superpaths) -> Option<Suitability> {
        let served: Vec<usize> =
            self.wanted(flags).filter(|b| self.hindered(*b, interface).next().is_none()).collect();
        if served.is_empty() || !all.is_met(self) {
            return None;
        }
        let out = self.passages.iter().filter(|p| p.side == ArcSide::Send && served.contains(&p.branch));
        let covered: u32 = out.map(|p| (p.covered & all.in_use(p.name)).count_ones()).sum();
        let covered = covered + u32::from(self.by_route_to.is_some());
        Some((served.len() as u32, covered, std::cmp::Reverse(self.superpath.cost)))
    }
}

impl Interfaces {
    /// Puts a superpath into the graph and offers it to interfaces; after the graph was built.
    ///
    /// # Errors
    /// A node of it is not in the graph, features do not stand in the order of their arc, or the table of interfaces
    /// cannot be written.
    pub fn add_superpath<C: Chain>(
        self: &Rc<Self>,
        superpath: Superpath,
        chain: C,
    ) -> Result<(), InterfaceError> {
        self.declare(superpath, None, chain)
    }

    /// The same for one that leads packets to a feature's node which routes lead them to otherwise: it is offered while there are
    /// such routes, as [`set_routes_to`](Self::set_routes_to) says.
    ///
    /// # Errors
    /// As of [`add_superpath`](Self::add_superpath).
    pub fn add_superpath_by_route<C: Chain>(
        self: &Rc<Self>,
        superpath: Superpath,
        node: &'static str,
        chain: C,
    ) -> Result<(), InterfaceError> {
        self.declare(superpath, Some(node), chain)
    }

    fn declare<C: Chain>(
        self: &Rc<Self>,
        superpath: Superpath,
        by_route_to: Option<&'static str>,
        chain: C,
    ) -> Result<(), InterfaceError> {
        let info = self.graph.add_superpath(superpath.name, chain)?;
        for passage in &info.passages {
            self.watch(passage);
        }
        let (node, first, passages) = (info.node, info.first, info.passages);
        let declared = Declared { superpath, node, first, passages, by_route_to };
        self.superpaths.all.borrow_mut().push(declared);
        self.choose_all()
    }

    /// Whether routes lead packets to a feature's node.
    ///
    /// # Errors
    /// The table of interfaces cannot be written.
    pub fn set_routes_to(&self, node: &'static str, lead: bool) -> Result<(), InterfaceError> {
        let mut nodes = self.superpaths.by_route.borrow_mut();
        let changed = if lead { nodes.insert(node) } else { nodes.remove(node) };
        drop(nodes);
        if changed { self.choose_all() } else { Ok(()) }
    }

    /// Follows the features of an arc, unless that is done already.
    fn watch(self: &Rc<Self>, passage: &ArcPassage) {
        let known = |d: &Declared| d.passages.iter().any(|p| p.name == passage.name);
        if self.superpaths.all.borrow().iter().any(known) {
            return;
        }
        let (name, side) = (passage.name, passage.side);
        if side == ArcSide::Send {
            for interface in self.indices() {
                let after = passage.arc.enabled(interface);
                self.superpaths.note(name, FeatureChange { before: 0, after });
            }
        }
        let weak = Rc::downgrade(self);
        self.graph.watch_features(&passage.arc, move |interface, change| {
            let Some(this) = weak.upgrade() else { return };
            let done = match side {
                ArcSide::Send if this.superpaths.note(name, change) => this.choose_all(),
                ArcSide::Send => Ok(()),
                ArcSide::Receive | ArcSide::All => this.choose_rx_next(interface),
            };
            if let Err(e) = done {
                tracing::error!(%interface, arc = name, "the superpath stays: {e}");
            }
        });
    }

    fn choose_all(&self) -> Result<(), InterfaceError> {
        self.indices().into_iter().try_for_each(|i| self.choose_rx_next(i))
    }

    /// Frames of ports with sub-interfaces go to this node from now on while superpaths are on: it sends them to the
    /// superpaths of those that take them ([`IfData::superpath`](crate::IfData::superpath)).
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn sort_tags_by(&self, node: NodeIndex) -> Result<(), InterfaceError> {
        self.superpaths.sorts.set(Some(node));
        self.choose_all()
    }

    /// A sub-interface of a port is gone: the port's frames are not sorted any more if it was the last.
    pub(super) fn sub_has_gone(&self, port: SwIfIndex) {
        if self.subs_of(port).is_empty()
            && let Err(e) = self.choose_rx_next(port)
        {
            tracing::warn!(%port, "its frames are still sorted by their tags: {e}");
        }
    }

    /// The node that sorts an interface's frames by their tags, if they are.
    pub(super) fn sorts_tags(&self, index: SwIfIndex) -> Option<NodeIndex> {
        let none = self.superpaths.off.get()
            || self.superpaths.all.borrow().is_empty()
            || self.subs.borrow().range((index, 0)..=(index, u32::MAX)).next().is_none();
        if none { None } else { self.superpaths.sorts.get() }
    }

    /// Switches superpaths on or off.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn enable_superpath(&self, on: bool) -> Result<(), InterfaceError> {
        self.superpaths.off.set(!on);
        self.choose_all()
    }

    /// Whether superpaths are switched on.
    pub fn superpath_enabled(&self) -> bool {
        !self.superpaths.off.get()
    }

    /// The superpath that suits an interface best.
    pub(super) fn superpath_for(&self, index: SwIfIndex) -> Result<Option<NodeIndex>, InterfaceError> {
        let flags = self.data(index)?.flags();
        if self.superpaths.off.get() {
            return Ok(None);
        }
        let all = self.superpaths.all.borrow();
        let plain = self.plain_rx_next(index);
        let suiting = all.iter().filter(|d| d.is_for(flags, plain));
        let suiting = suiting.filter_map(|d| Some((d.suits(index, flags, &self.superpaths)?, d.node)));
        Ok(suiting.max_by_key(|(suits, _)| *suits).map(|(_, node)| node))
    }

    /// Where the packets of an interface go without a superpath.
    fn plain_rx_next(&self, index: SwIfIndex) -> NodeIndex {
        self.all.borrow().get(&index).map_or(self.graph.drop_node(), |i| i.plain_rx_next)
    }

    /// All superpaths in the order of their declaration, by name and node.
    pub fn superpaths(&self) -> Vec<(&'static str, NodeIndex)> {
        self.superpaths.all.borrow().iter().map(|d| (d.superpath.name, d.node)).collect()
    }

    /// The superpath an interface takes, if any, and why it takes none of the others.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn superpath_of(&self, index: SwIfIndex) -> Result<SuperpathChoice, InterfaceError> {
        let (flags, taken) = (self.data(index)?.flags(), self.superpath_for(index)?);
        let all = self.superpaths.all.borrow();
        let best = all.iter().find(|d| Some(d.node) == taken);
        let others = all.iter().filter(|d| Some(d.node) != taken);
        Ok(SuperpathChoice {
            taken: best.map(|d| d.superpath.name),
            left_out: best.map_or_else(Vec::new, |d| self.hindrances(d, index, flags)),
            others: others
                .map(|d| (d.superpath.name, self.why_not(d, best.filter(|_| taken.is_some()), index, flags)))
                .collect(),
        })
    }

    /// Features that keep packets of some protocol from a superpath.
    fn hindrances(&self, d: &Declared, index: SwIfIndex, flags: IfFlags) -> Vec<SuperpathObstacle> {
        let passages = d.wanted(flags).flat_map(|branch| d.hindered(branch, index));
        let features = passages.flat_map(|(passage, bits)| {
            let names = self.graph.feature_names(&passage.arc, bits);
            names.into_iter().map(|feature| SuperpathObstacle::Feature { feature, arc: passage.name })
        });
        features.collect()
    }

    fn why_not(
        &self,
        d: &Declared,
        best: Option<&Declared>,
        index: SwIfIndex,
        flags: IfFlags,
    ) -> Vec<SuperpathObstacle> {
        if self.superpaths.off.get() {
            return vec![SuperpathObstacle::Off];
        }
        if !d.is_for(flags, self.plain_rx_next(index)) {
            return vec![SuperpathObstacle::Medium(d.superpath.medium)];
        }
        let features = self.hindrances(d, index, flags);
        if !features.is_empty() {
            return features;
        }
        if let Some(node) = d.by_route_to.filter(|_| !self.superpaths.is_met(d)) {
            return vec![SuperpathObstacle::NoRouteTo(node)];
        }
        let Some(best) = best else { return vec![SuperpathObstacle::Nothing] };
        let (own, taken) =
            (d.suits(index, flags, &self.superpaths), best.suits(index, flags, &self.superpaths));
        match (own, taken) {
            (None, _) => vec![SuperpathObstacle::Nothing],
            (Some((served, ..)), Some((most, ..))) if served < most => {
                let serves = |d: &Declared, p: IfFlags| d.superpath.serves.contains(&p);
                let only = [(IfFlags::IP4, "IPv4"), (IfFlags::IP6, "IPv6")].into_iter();
                let missing = only.filter(|(p, _)| flags.all(*p) && serves(best, *p) && !serves(d, *p));
                missing.map(|(_, name)| SuperpathObstacle::Protocol(name)).collect()
            }
            (Some((_, covered, _)), Some((_, most, _))) if covered < most => {
                vec![SuperpathObstacle::Outgoing(self.outgoing_missing(d, best))]
            }
            _ => vec![SuperpathObstacle::Cost(d.superpath.cost)],
        }
    }

    /// Features in use on sending interfaces that one superpath covers and the other does not.
    fn outgoing_missing(&self, d: &Declared, best: &Declared) -> Vec<String> {
        let out = best.passages.iter().filter(|p| p.side == ArcSide::Send);
        let features = out.flat_map(|p| {
            let own = d.passages.iter().find(|own| own.name == p.name).map_or(0, |own| own.covered);
            self.graph.feature_names(&p.arc, self.superpaths.in_use(p.name) & p.covered & !own)
        });
        features.chain(best.by_route_to.map(str::to_owned)).collect()
    }
}

/// The superpath of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SuperpathChoice {
    /// Its name; `None`: packets go from node to node.
    pub taken: Option<&'static str>,
    /// Features that keep packets of one protocol from it.
    pub left_out: Vec<SuperpathObstacle>,
    /// The others, and why they are not taken.
    pub others: Vec<(&'static str, Vec<SuperpathObstacle>)>,
}
