//! The control plane of `l2-patch`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_graph::{FeatureSpec, PacketNode};
use shoal_infra::StableArena;
use shoal_interface::{DEVICE_INPUT_ARC, Event, Interfaces, MAX_INTERFACES, SwIfIndex};
use shoal_module::{Control, InitError};

use crate::L2Error;
use crate::node::patch::Patch;

/// Where what an interface receives goes: the index of the other one and 1, 0 for none.
#[derive(Clone)]
pub(crate) struct Peers(Arc<StableArena<AtomicU32>>);

impl Peers {
    fn new() -> io::Result<Self> {
        Ok(Peers(Arc::new(StableArena::with_capacity(MAX_INTERFACES)?)))
    }

    #[inline(always)]
    pub(crate) fn of(&self, rx: SwIfIndex) -> Option<SwIfIndex> {
        self.0.get(rx.0 as usize)?.load(Ordering::Relaxed).checked_sub(1).map(SwIfIndex)
    }

    fn set(&self, rx: SwIfIndex, tx: Option<SwIfIndex>) {
        if let Some(peer) = self.0.get(rx.0 as usize) {
            peer.store(tx.map_or(0, |tx| tx.0 + 1), Ordering::Relaxed);
        }
    }
}

/// All patches.
pub struct Patches {
    interfaces: Rc<Interfaces>,
    peers: Peers,
    all: RefCell<BTreeMap<SwIfIndex, SwIfIndex>>,
}

impl Patches {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let peers = Peers::new()?;
        graph.add_packet(Patch { peers: peers.clone() })?;
        graph.add_feature(FeatureSpec { arc: DEVICE_INPUT_ARC, node: Patch::NAME, before: &[], after: &[] });
        let patches = Rc::new(Patches { interfaces: Rc::clone(&interfaces), peers, all: RefCell::default() });
        let weak = Rc::downgrade(&patches);
        interfaces.subscribe(move |_, event| {
            let (Some(patches), Event::Deleting(gone)) = (weak.upgrade(), event) else { return };
            let of_it = |(rx, tx): &(SwIfIndex, SwIfIndex)| *rx == gone || *tx == gone;
            for (rx, _) in patches.list().into_iter().filter(of_it) {
                if let Err(e) = patches.set(rx, None) {
                    tracing::warn!(%rx, "a patch stays: {e}");
                }
            }
        });
        Ok(patches)
    }

    /// Sends what an interface receives out of another one, or no longer.
    ///
    /// # Errors
    /// There is no such interface, or they are the same.
    pub fn set(&self, rx: SwIfIndex, tx: Option<SwIfIndex>) -> Result<(), L2Error> {
        let name = self.interfaces.name(rx)?;
        if let Some(tx) = tx {
            self.interfaces.name(tx)?;
        }
        if tx == Some(rx) {
            return Err(L2Error::Itself(name));
        }
        self.peers.set(rx, tx);
        self.interfaces.enable_feature(DEVICE_INPUT_ARC, Patch::NAME, rx, tx.is_some())?;
        let mut all = self.all.borrow_mut();
        match tx {
            Some(tx) => all.insert(rx, tx),
            None => all.remove(&rx),
        };
        Ok(())
    }

    /// All of them: from, to.
    pub fn list(&self) -> Vec<(SwIfIndex, SwIfIndex)> {
        self.all.borrow().iter().map(|(rx, tx)| (*rx, *tx)).collect()
    }
}
