//! The control plane: where large packets are cut.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use shoal_graph::{FeatureSpec, FrameNode as _};
use shoal_interface::{Event, IfFlags, InterfaceError, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};

use crate::node::cut::Cut;

/// Why a setting was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GsoError {
    /// There is no such interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

/// Whether large packets that leave by an interface are cut before its device gets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cutting {
    /// They are, unless the device takes them.
    On,
    /// It is left to the device and its driver.
    Off,
}

/// Where large packets are cut.
pub struct Gso {
    interfaces: Rc<Interfaces>,
    enabled: RefCell<BTreeSet<SwIfIndex>>,
}

/// The arc and the node of each family.
const FEATURES: [(&str, &str); 2] =
    [(shoal_ip4::OUTPUT_ARC, Cut::<false>::NAME), (shoal_ip6::OUTPUT_ARC, Cut::<true>::NAME)];

impl Gso {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        graph.add_frame(Cut::<false> { interfaces: interfaces.table() })?;
        graph.add_frame(Cut::<true> { interfaces: interfaces.table() })?;
        for (arc, node) in FEATURES {
            graph.add_feature(FeatureSpec { arc, node, before: &[], after: &[] });
        }
        let gso = Rc::new(Gso { interfaces: Rc::clone(&interfaces), enabled: RefCell::default() });
        let weak = Rc::downgrade(&gso);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(gso)) = (event, weak.upgrade())
                && let Err(e) = gso.set(index, Cutting::Off)
            {
                tracing::warn!(sw_if_index = index.0, "gso stays: {e}");
            }
        });
        Ok(gso)
    }

    /// Says whether large packets that leave by an interface are cut.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set(&self, interface: SwIfIndex, cutting: Cutting) -> Result<(), GsoError> {
        self.interfaces.name(interface)?;
        let on = cutting == Cutting::On;
        for (done, (arc, node)) in FEATURES.into_iter().enumerate() {
            if let Err(error) = self.interfaces.enable_feature(arc, node, interface, on) {
                // As it was: both families or none.
                for (arc, node) in FEATURES.into_iter().take(done) {
                    let _ = self.interfaces.enable_feature(arc, node, interface, !on);
                }
                return Err(error.into());
            }
        }
        let mut enabled = self.enabled.borrow_mut();
        if on {
            enabled.insert(interface)
        } else {
            enabled.remove(&interface)
        };
        Ok(())
    }

    /// What holds on an interface.
    pub fn get(&self, interface: SwIfIndex) -> Cutting {
        if self.enabled.borrow().contains(&interface) { Cutting::On } else { Cutting::Off }
    }

    /// Interfaces where large packets are cut.
    pub fn enabled(&self) -> Vec<SwIfIndex> {
        self.enabled.borrow().iter().copied().collect()
    }

    /// Whether an interface's device completes checksums, and whether it cuts.
    pub(crate) fn device(&self, interface: SwIfIndex) -> Result<(bool, bool), GsoError> {
        let flags = self.interfaces.data(interface)?.flags();
        Ok((flags.has(IfFlags::TX_CHECKSUM), flags.has(IfFlags::TX_GSO)))
    }
}
