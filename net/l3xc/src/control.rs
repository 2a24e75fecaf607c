//! The control plane: which interface has which paths.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_adj::Family;
use shoal_fib::{Fib, FibError, HeldPathList, Path, Via};
use shoal_graph::{FeatureSpec, PacketNode};
use shoal_infra::StableArena;
use shoal_interface::{Event, InterfaceError, Interfaces, MAX_INTERFACES, SwIfIndex};
use shoal_module::{Control, InitError};

use crate::node::input::L3xcInput;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum L3xcError {
    /// There are no paths.
    #[error("Specify some paths")]
    NoPaths,
    /// There is no cross-connect.
    #[error("{0} has no cross-connect of {1}")]
    None(String, Family),
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

/// The adjacency of each interface and 1; 0: none. Clones are the same.
#[derive(Clone)]
pub(crate) struct CrossConnects(Arc<StableArena<AtomicU32>>);

impl CrossConnects {
    fn new() -> io::Result<Self> {
        Ok(CrossConnects(Arc::new(StableArena::with_capacity(MAX_INTERFACES)?)))
    }

    #[inline(always)]
    pub(crate) fn of(&self, interface: SwIfIndex) -> Option<u32> {
        self.0.get(interface.0 as usize)?.load(Ordering::Relaxed).checked_sub(1)
    }

    fn set(&self, interface: SwIfIndex, adj: Option<u32>) {
        if let Some(way) = self.0.get(interface.0 as usize) {
            way.store(adj.map_or(0, |adj| adj + 1), Ordering::Relaxed);
        }
    }
}

/// A cross-connect as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct L3xcInfo {
    /// The interface.
    pub interface: SwIfIndex,
    /// The packets' family.
    pub family: Family,
    /// Its paths.
    pub paths: Rc<[Path]>,
    /// The adjacency its packets take.
    pub adj: u32,
}

/// All cross-connects.
pub struct L3xc {
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    ways: [CrossConnects; 2],
    all: RefCell<BTreeMap<(SwIfIndex, Family), HeldPathList>>,
}

impl L3xc {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let ways = [CrossConnects::new()?, CrossConnects::new()?];
        let [ip4, ip6] = &ways;
        graph.add_packet(L3xcInput::<false> { ways: ip4.clone() })?;
        graph.add_packet(L3xcInput::<true> { ways: ip6.clone() })?;
        for family in [Family::Ip4, Family::Ip6] {
            let (arc, node) = feature(family);
            let after: &[&str] = match family {
                Family::Ip4 => &["ip4-not-enabled"],
                Family::Ip6 => &["ip6-not-enabled"],
            };
            graph.add_feature(FeatureSpec { arc, node, before: &[], after });
        }
        let fib = control.get::<Fib>()?;
        let l3xc = Rc::new(L3xc { interfaces: Rc::clone(&interfaces), fib, ways, all: RefCell::default() });
        let weak = Rc::downgrade(&l3xc);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(interface), Some(l3xc)) = (event, weak.upgrade()) {
                l3xc.forget(interface);
            }
        });
        Ok(l3xc)
    }

    fn ways(&self, family: Family) -> &CrossConnects {
        let [ip4, ip6] = &self.ways;
        if family == Family::Ip4 { ip4 } else { ip6 }
    }

    /// Gives all packets of a family that come in by an interface these paths, instead of those they had.
    ///
    /// # Errors
    /// There is no such interface, or the paths cannot be.
    pub fn set(&self, interface: SwIfIndex, family: Family, paths: &[Path]) -> Result<(), L3xcError> {
        self.interfaces.name(interface)?;
        if paths.is_empty() {
            return Err(L3xcError::NoPaths);
        }
        let held = self.fib.hold(family, paths)?;
        self.ways(family).set(interface, Some(self.fib.held(&held).adj.0));
        let (arc, node) = feature(family);
        if let Err(e) = self.interfaces.enable_feature(arc, node, interface, true) {
            self.fib.release(held);
            return Err(e.into());
        }
        if let Some(old) = self.all.borrow_mut().insert((interface, family), held) {
            self.fib.release(old);
        }
        Ok(())
    }

    /// Packets of a family that come in by an interface are routed again.
    ///
    /// # Errors
    /// There is no such interface or cross-connect.
    pub fn remove(&self, interface: SwIfIndex, family: Family) -> Result<(), L3xcError> {
        let name = self.interfaces.name(interface)?;
        let held = self.all.borrow_mut().remove(&(interface, family));
        let held = held.ok_or(L3xcError::None(name, family))?;
        let (arc, node) = feature(family);
        self.interfaces.enable_feature(arc, node, interface, false)?;
        self.ways(family).set(interface, None);
        self.fib.release(held);
        Ok(())
    }

    /// All cross-connects, by interface.
    pub fn list(&self) -> Vec<L3xcInfo> {
        let info = |((interface, family), held): (&(SwIfIndex, Family), &HeldPathList)| {
            let held = self.fib.held(held);
            L3xcInfo { interface: *interface, family: *family, paths: held.paths, adj: held.adj.0 }
        };
        self.all.borrow().iter().map(info).collect()
    }

    /// An interface goes, and with it its cross-connects and all paths by it. What is left without any drops its packets:
    /// they must not take another way.
    fn forget(&self, gone: SwIfIndex) {
        for L3xcInfo { interface, family, paths, .. } in self.list() {
            let by_it = |path: &Path| path.via.interface() == Some(gone);
            let done = if interface == gone {
                self.remove(interface, family)
            } else if paths.iter().any(by_it) {
                let mut left: Vec<Path> = paths.iter().filter(|path| !by_it(path)).copied().collect();
                if left.is_empty() {
                    left.push(Via::Drop.into());
                }
                self.set(interface, family, &left)
            } else {
                continue;
            };
            if let Err(e) = done {
                tracing::warn!(%interface, "a cross-connect stays: {e}");
            }
        }
    }
}

/// The arc and the node of a family.
fn feature(family: Family) -> (&'static str, &'static str) {
    match family {
        Family::Ip4 => (shoal_ip4::UNICAST_ARC, L3xcInput::<false>::NAME),
        Family::Ip6 => (shoal_ip6::UNICAST_ARC, L3xcInput::<true>::NAME),
    }
}
