//! The control plane: what hosts may send, where; and what the threads know of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use shoal_graph::clock::Time;
use shoal_graph::superpath::WithState;
use shoal_graph::{
    FeatureSpec, FrameCx, Graph, GraphError, NoError, NoNext, StateKey, Stateful, StatefulStagedNode,
};
use shoal_interface::{Event, InterfaceError, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};

use crate::hosts::{Hosts, MOST_HOSTS, parts};
use crate::limits::Limits;
use crate::node::check::Check;

/// Hosts listed of each thread.
const LISTED: usize = 256;

/// What each host may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Packets a second.
    pub rate: u32,
    /// Packets at once.
    pub burst: u32,
}

impl Limit {
    /// Lowest and highest rate.
    pub const RATE: (u32, u32) = (1, 100_000_000);
    /// Smallest and largest burst.
    pub const BURST: (u32, u32) = (1, 1_000_000);
}

/// Why a setting was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// There is no such interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A thread does not answer.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A value is out of range; the nearest that is not.
    #[error("a {what} of {value} is not possible: {least} to {most}, nearest {nearest}", nearest = (*.value).clamp(*.least, *.most))]
    Range {
        /// What was to be set.
        what: &'static str,
        /// The value.
        value: u32,
        /// Smallest possible.
        least: u32,
        /// Largest possible.
        most: u32,
    },
}

/// What the threads keep, and how.
pub struct ThreadStores {
    pub(crate) limits: Limits,
}

impl Stateful for ThreadStores {
    const NAME: &'static str = "source-limit-timer";
    type Next = NoNext;
    type Error = NoError;
    type State = Hosts;

    fn make(&self, thread: usize) -> Hosts {
        Hosts::new(MOST_HOSTS).unwrap_or_else(|e| {
            tracing::warn!(thread, "source-limit knows no hosts: {e}");
            Hosts::NONE
        })
    }

    #[inline(always)]
    fn due(&self, hosts: &Hosts) -> Option<Time> {
        hosts.due()
    }

    fn expire(&self, hosts: &mut Hosts, cx: &mut FrameCx<'_>) {
        hosts.forget(cx.now());
    }

    /// Hosts begin with a full burst on the thread they come to: what is known of them is a few seconds old at most.
    fn adopt(&self, _: &mut Hosts, _: Hosts, _: &mut FrameCx<'_>) {}
}

/// A host that lost packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The thread that knows it.
    pub thread: usize,
    /// Where it sends.
    pub interface: SwIfIndex,
    /// Its address.
    pub address: IpAddr,
    /// Packets it lost.
    pub lost: u64,
}

/// What the threads know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Hosts known, by thread.
    pub hosts: BTreeMap<usize, usize>,
    /// Some that lost packets.
    pub losers: Vec<Host>,
}

/// What hosts may send, where.
pub struct SourceLimit {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    hosts: StateKey<ThreadStores>,
    all: RefCell<BTreeMap<SwIfIndex, Limit>>,
}

/// The nodes' common cases, for chains.
pub struct SourceLimitStages {
    /// Of IPv4.
    pub ip4: Arc<WithState<Check<false>>>,
    /// Of IPv6.
    pub ip6: Arc<WithState<Check<true>>>,
}

/// Arcs and nodes.
const FEATURES: [(&str, &str); 2] = [
    (shoal_ip4::UNICAST_ARC, <Check<false> as StatefulStagedNode>::NAME),
    (shoal_ip6::UNICAST_ARC, <Check<true> as StatefulStagedNode>::NAME),
];

fn within(what: &'static str, value: u32, (least, most): (u32, u32)) -> Result<(), LimitError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(LimitError::Range { what, value, least, most })
}

impl SourceLimit {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let hosts = graph.add_state(ThreadStores { limits: Limits::new()? })?;
        let feature = hosts.feature();
        graph.add_stateful_staged(Check::<false> { feature: Arc::clone(feature) }, &hosts)?;
        graph.add_stateful_staged(Check::<true> { feature: Arc::clone(feature) }, &hosts)?;
        let stage = || Arc::clone(feature);
        control.put(SourceLimitStages {
            ip4: WithState::new(Check { feature: stage() }, &hosts),
            ip6: WithState::new(Check { feature: stage() }, &hosts),
        });
        for (arc, node) in FEATURES {
            graph.add_feature(FeatureSpec { arc, node, before: &[], after: &[] });
        }
        let all = RefCell::default();
        let limit = Rc::new(SourceLimit { graph, interfaces: Rc::clone(&interfaces), hosts, all });
        let weak = Rc::downgrade(&limit);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(limit)) = (event, weak.upgrade())
                && let Err(e) = limit.set(index, None)
            {
                tracing::warn!(sw_if_index = index.0, "the limit of sources stays: {e}");
            }
        });
        Ok(limit)
    }

    /// Limits what each host sends by an interface, or does so no more.
    ///
    /// # Errors
    /// There is no such interface, a value is out of range, or a thread does not answer.
    pub fn set(&self, interface: SwIfIndex, limit: Option<Limit>) -> Result<(), LimitError> {
        self.interfaces.name(interface)?;
        let limits = &self.hosts.feature().limits;
        if let Some(Limit { rate, burst }) = limit {
            within("rate", rate, Limit::RATE)?;
            within("burst", burst, Limit::BURST)?;
            limits.set(interface, 1_000_000_000 / rate, burst);
        }
        for (arc, node) in FEATURES {
            self.interfaces.enable_feature(arc, node, interface, limit.is_some())?;
        }
        let mut all = self.all.borrow_mut();
        match limit {
            Some(limit) => {
                all.insert(interface, limit);
            }
            None if all.remove(&interface).is_some() => {
                limits.set(interface, 0, 0);
                self.graph.on_every_state(&self.hosts, move |_, hosts| hosts.forget_interface(interface))?;
            }
            None => {}
        }
        Ok(())
    }

    /// The limits, by interface.
    pub fn limits(&self) -> Vec<(SwIfIndex, Limit)> {
        self.all.borrow().iter().map(|(interface, limit)| (*interface, *limit)).collect()
    }

    /// What the threads know of hosts.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn look(&self) -> Result<Look, LimitError> {
        let all = self.graph.on_every_state(&self.hosts, |_, hosts| (hosts.len(), hosts.losers(LISTED)))?;
        let hosts = all.iter().map(|(thread, (known, _))| (*thread, *known)).collect();
        let host = |thread, (key, lost)| {
            let (address, interface) = parts(key);
            Host { thread, interface, address, lost }
        };
        let each = |(thread, (_, list)): (usize, (usize, Vec<_>))| {
            list.into_iter().map(move |one| host(thread, one))
        };
        let mut losers: Vec<Host> = all.into_iter().flat_map(each).collect();
        losers.sort_by_key(|host| (std::cmp::Reverse(host.lost), host.address));
        Ok(Look { hosts, losers })
    }
}
