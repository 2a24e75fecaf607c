//! The control plane: which interface has which binding.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::Adjacencies;
use shoal_fib::FibTables;
use shoal_graph::{FeatureSpec, PacketNode};
use shoal_infra::Published;
use shoal_interface::{Event, InterfaceError, Interfaces, SwIfIndex};
use shoal_ip6::{OUTPUT_ARC, UNICAST_ARC};
use shoal_module::{Control, InitError};
use shoal_wire::Ip6Prefix;

use crate::node::translate::{Entry, Shared, Translate};
use crate::prefixes::{LONGEST, Prefixes};

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Npt66Error {
    /// A prefix is too long.
    #[error("{0} is too long: at most /{LONGEST}")]
    TooLong(Ip6Prefix),
    /// The interface has a binding.
    #[error("{0} has a binding already")]
    Exists(String),
    /// The interface has none, or another one.
    #[error("{0} has no such binding")]
    None(String),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

/// A binding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The prefix of hosts.
    pub internal: Ip6Prefix,
    /// The prefix that stands for it.
    pub external: Ip6Prefix,
}

/// Bindings with their numbers.
type All = BTreeMap<SwIfIndex, (u32, Binding)>;

/// NPTv6 of this router.
pub struct Npt66 {
    interfaces: Rc<Interfaces>,
    shared: Arc<Shared>,
    all: RefCell<All>,
}

/// The arc and the node of packets that come in, and of those that go out.
const FEATURES: [(&str, &str); 2] =
    [(UNICAST_ARC, Translate::<false>::NAME), (OUTPUT_ARC, Translate::<true>::NAME)];

/// Behind what may find that a packet must not come in at all.
const AFTER: &[&str] = &["ip6-not-enabled", "ip6-rx-urpf-loose", "ip6-rx-urpf-strict"];

impl Npt66 {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let shared = Arc::new(Shared {
            entries: Published::new(Vec::new()),
            fib: FibTables::clone(&*control.get::<FibTables>()?),
            adjacencies: control.get::<Adjacencies>()?.table(),
            interfaces: interfaces.table(),
        });
        graph.add_packet(Translate::<false> { shared: Arc::clone(&shared) })?;
        graph.add_packet(Translate::<true> { shared: Arc::clone(&shared) })?;
        for (arc, node) in FEATURES {
            let after = if arc == UNICAST_ARC { AFTER } else { &[] };
            graph.add_feature(FeatureSpec { arc, node, before: &[], after });
        }
        let npt = Rc::new(Npt66 { interfaces: Rc::clone(&interfaces), shared, all: RefCell::default() });
        let weak = Rc::downgrade(&npt);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(interface), Some(npt)) = (event, weak.upgrade()) {
                npt.forget(interface);
            }
        });
        Ok(npt)
    }

    /// Has packets see what is configured now.
    fn publish(&self) {
        let all = self.all.borrow();
        let mut entries = Vec::new();
        for (interface, (index, Binding { internal, external })) in all.iter() {
            let at = interface.0 as usize;
            if entries.len() <= at {
                entries.resize(at + 1, None);
            }
            let shown = [internal.network(), external.network()];
            let prefixes = Prefixes::new(*internal, *external);
            if let (Some(entry), Some(prefixes)) = (entries.get_mut(at), prefixes) {
                *entry = Some(Entry { index: *index, prefixes, shown });
            }
        }
        self.shared.entries.replace(entries);
    }

    fn set_features(&self, interface: SwIfIndex, on: bool) -> Result<(), InterfaceError> {
        for (arc, node) in FEATURES {
            self.interfaces.enable_feature(arc, node, interface, on)?;
        }
        Ok(())
    }

    /// Has a prefix stand for another in what goes out and comes in by an interface.
    ///
    /// # Errors
    /// There is no such interface, it has a binding, or a prefix is too long.
    pub fn add(&self, interface: SwIfIndex, binding: Binding) -> Result<(), Npt66Error> {
        let name = self.interfaces.name(interface)?;
        for prefix in [binding.internal, binding.external] {
            if prefix.len() > LONGEST {
                return Err(Npt66Error::TooLong(prefix));
            }
        }
        let binding =
            Binding { internal: binding.internal.normalized(), external: binding.external.normalized() };
        let mut all = self.all.borrow_mut();
        if all.contains_key(&interface) {
            return Err(Npt66Error::Exists(name));
        }
        let used = |index: &u32| all.values().any(|(other, _)| other == index);
        let index = (0..=u32::MAX).find(|index| !used(index)).unwrap_or_default();
        all.insert(interface, (index, binding));
        drop(all);
        self.publish();
        if let Err(e) = self.set_features(interface, true) {
            self.forget(interface);
            return Err(e.into());
        }
        Ok(())
    }

    /// Packets keep their addresses again.
    ///
    /// # Errors
    /// There is no such interface, or it has no such binding; `None`: any.
    pub fn remove(&self, interface: SwIfIndex, binding: Option<Binding>) -> Result<(), Npt66Error> {
        let name = self.interfaces.name(interface)?;
        let old = self.all.borrow().get(&interface).map(|(_, binding)| *binding);
        let wanted = |old: &Binding| {
            binding.is_none_or(|b| {
                (b.internal.normalized(), b.external.normalized()) == (old.internal, old.external)
            })
        };
        old.filter(wanted).ok_or(Npt66Error::None(name))?;
        self.set_features(interface, false)?;
        self.all.borrow_mut().remove(&interface);
        self.publish();
        Ok(())
    }

    /// All bindings, by interface, with their numbers.
    pub fn list(&self) -> Vec<(SwIfIndex, u32, Binding)> {
        self.all.borrow().iter().map(|(interface, (index, binding))| (*interface, *index, *binding)).collect()
    }

    /// An interface goes.
    fn forget(&self, interface: SwIfIndex) {
        if self.all.borrow().contains_key(&interface) {
            if let Err(e) = self.set_features(interface, false) {
                tracing::warn!(%interface, "NPTv6 stays: {e}");
            }
            self.all.borrow_mut().remove(&interface);
            self.publish();
        }
    }
}
