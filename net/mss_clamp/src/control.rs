//! The control plane: how large segments may be, where.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use shoal_graph::{FeatureSpec, Graph, GraphError, PacketNode};
use shoal_interface::{Event, InterfaceError, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};

use crate::node::clamping::Clamping;
use crate::sizes::Sizes;

/// Smallest size that makes sense: every host takes datagrams of 576 bytes, which leaves this much; anything smaller
/// makes connections crawl (CVE-2019-11479).
const LEAST: u16 = 48;

/// Why a setting was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MssError {
    /// There is no such interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// An impossible size.
    #[error("a maximum segment size of {0} is too small: at least {LEAST}")]
    TooSmall(u16),
}

impl MssError {
    /// The smallest size there may be.
    pub const LEAST: u16 = LEAST;
}

/// Which packets of an interface are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Directions {
    /// Those that come in.
    pub rx: bool,
    /// Those that go out.
    pub tx: bool,
}

impl Directions {
    /// Neither.
    pub const NONE: Directions = Directions { rx: false, tx: false };
    /// Those that come in.
    pub const RX: Directions = Directions { rx: true, tx: false };
    /// Those that go out.
    pub const TX: Directions = Directions { rx: false, tx: true };
    /// Both.
    pub const BOTH: Directions = Directions { rx: true, tx: true };
}

impl fmt::Display for Directions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.rx, self.tx) {
            (false, false) => "disabled",
            (true, false) => "rx",
            (false, true) => "tx",
            (true, true) => "rx tx",
        })
    }
}

/// What holds for one family on an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Setting {
    /// Which packets are looked at.
    pub directions: Directions,
    /// The largest segment.
    pub mss: u16,
}

/// How large segments may be, where.
pub struct MssClamp {
    interfaces: Rc<Interfaces>,
    ip4: Sizes,
    ip6: Sizes,
    /// Settings of IPv4 and IPv6.
    all: RefCell<BTreeMap<SwIfIndex, [Setting; 2]>>,
}

/// The arc and the node of packets that come in, and of those that go out.
type Features = [(&'static str, &'static str); 2];

const IP4: Features = [
    (shoal_ip4::UNICAST_ARC, Clamping::<false, false>::NAME),
    (shoal_ip4::OUTPUT_ARC, Clamping::<false, true>::NAME),
];
const IP6: Features = [
    (shoal_ip6::UNICAST_ARC, Clamping::<true, false>::NAME),
    (shoal_ip6::OUTPUT_ARC, Clamping::<true, true>::NAME),
];

/// The nodes of one family.
pub struct FamilyNodes<const IP6: bool> {
    /// Of packets that come in.
    pub rx: Arc<Clamping<IP6, false>>,
    /// Of packets that go out.
    pub tx: Arc<Clamping<IP6, true>>,
}

/// The nodes that superpaths share with the graph.
pub struct MssNodes {
    /// Those of IPv4.
    pub ip4: FamilyNodes<false>,
    /// Those of IPv6.
    pub ip6: FamilyNodes<true>,
}

fn add_family<const IP6: bool>(graph: &Graph, sizes: &Sizes) -> Result<FamilyNodes<IP6>, GraphError> {
    let rx = Arc::new(Clamping { sizes: sizes.clone() });
    let tx = Arc::new(Clamping { sizes: sizes.clone() });
    graph.add_packet_shared(Arc::clone(&rx))?;
    graph.add_packet_shared(Arc::clone(&tx))?;
    Ok(FamilyNodes { rx, tx })
}

fn add_nodes(graph: &Graph, ip4: &Sizes, ip6: &Sizes) -> Result<MssNodes, GraphError> {
    let nodes = MssNodes { ip4: add_family(graph, ip4)?, ip6: add_family(graph, ip6)? };
    for (arc, node) in IP4.into_iter().chain(IP6) {
        graph.add_feature(FeatureSpec { arc, node, before: &[], after: &[] });
    }
    Ok(nodes)
}

impl MssClamp {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let interfaces = control.get::<Interfaces>()?;
        let (ip4, ip6) = (Sizes::new()?, Sizes::new()?);
        control.put(add_nodes(&*control.graph()?, &ip4, &ip6)?);
        let all = RefCell::default();
        let clamp = Rc::new(MssClamp { interfaces: Rc::clone(&interfaces), ip4, ip6, all });
        let weak = Rc::downgrade(&clamp);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(clamp)) = (event, weak.upgrade())
                && let Err(e) = clamp.set(index, [Some(Setting::default()); 2])
            {
                tracing::warn!(sw_if_index = index.0, "segment sizes stay: {e}");
            }
        });
        Ok(clamp)
    }

    /// Says what holds for IPv4 and for IPv6 on an interface from now on; `None`: what held before.
    ///
    /// # Errors
    /// There is no such interface, or a size is too small; nothing is changed then.
    pub fn set(&self, interface: SwIfIndex, wanted: [Option<Setting>; 2]) -> Result<(), MssError> {
        self.interfaces.name(interface)?;
        for Setting { directions, mss } in wanted.into_iter().flatten() {
            if directions != Directions::NONE && mss < LEAST {
                return Err(MssError::TooSmall(mss));
            }
        }
        let old = self.all.borrow().get(&interface).copied().unwrap_or_default();
        let families = [(IP4, &self.ip4), (IP6, &self.ip6)];
        let mut now = old;
        for (((features, sizes), wanted), now) in families.into_iter().zip(wanted).zip(&mut now) {
            let Some(Setting { directions, mss }) = wanted else { continue };
            if directions != Directions::NONE {
                sizes.set(interface, mss);
            }
            for ((arc, node), on) in features.into_iter().zip([directions.rx, directions.tx]) {
                self.interfaces.enable_feature(arc, node, interface, on)?;
            }
            if directions == Directions::NONE {
                sizes.set(interface, 0);
            }
            *now =
                if directions == Directions::NONE { Setting::default() } else { Setting { directions, mss } };
        }
        let mut all = self.all.borrow_mut();
        if now == [Setting::default(); 2] {
            all.remove(&interface);
        } else {
            all.insert(interface, now);
        }
        Ok(())
    }

    /// What holds on interfaces where packets are looked at: of IPv4 and of IPv6.
    pub fn settings(&self) -> Vec<(SwIfIndex, [Setting; 2])> {
        self.all.borrow().iter().map(|(interface, settings)| (*interface, *settings)).collect()
    }
}
