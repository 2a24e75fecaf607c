//! The control plane: where fragments are put together, within which limits, and what is held now.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use shoal_buffer::SwIfIndex;
use shoal_buffer::slot::SlotKey;
use shoal_graph::{FeatureSpec, Graph, StateKey};
use shoal_interface::{Event, Interfaces};
use shoal_ip::{ListenerTable, Listeners};
use shoal_ip4::Ip4Family;
use shoal_ip6::Ip6Family;
use shoal_module::{Control, InitError};

use crate::L4;
use crate::ReassemblyError;
use crate::budget::Budget;
use crate::family::{Family, Ip4, Ip6};
use crate::node::expired::Expired;
use crate::node::full::{FullNode, Origin, Receiver};
use crate::node::full_feature::FullFeature;
use crate::node::sv::SvNode;
use crate::node::sv_feature::SvFeature;
use crate::settings::{Settings, Shared};
use crate::state::{Full, Sv};
use crate::table::WaitFor;

mod look;

pub use look::{Datagram, Look};

/// The part of all buffers that fragments may hold while they wait.
const SHARE_OF_BUFFERS: u32 = 4;

/// An address family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

/// What is done with fragments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// They become one packet.
    Full,
    /// They stay what they are, and each knows what the first says of ports.
    ShallowVirtual,
}

/// For which families.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Families {
    /// IPv4.
    pub ip4: bool,
    /// IPv6.
    pub ip6: bool,
}

impl Families {
    /// Neither.
    pub const NONE: Families = Families { ip4: false, ip6: false };
    /// Both.
    pub const BOTH: Families = Families { ip4: true, ip6: true };
}

/// Which packets of an interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    /// What it receives.
    Input,
    /// What goes out by it.
    Output,
}

/// Where shallow virtual reassembly is wanted.
type SvPlace = (SwIfIndex, Version, Side);

/// What there is for one family.
struct Part<F: Family> {
    full: StateKey<Full<F>>,
    sv: StateKey<Sv<F>>,
    receiver: Receiver,
    /// Where packets go that are looked up again.
    lookup: Receiver,
}

/// Packets that are no fragments, for chains: shallow reassembly, and full.
pub struct ReassemblyStages {
    /// Of IPv4.
    pub ip4: Arc<SvFeature<Ip4, false>>,
    /// Of IPv6.
    pub ip6: Arc<SvFeature<Ip6, false>>,
    /// Of IPv4, of the sending interface.
    pub ip4_output: Arc<SvFeature<Ip4, true>>,
    /// Of IPv6.
    pub ip6_output: Arc<SvFeature<Ip6, true>>,
    /// Full reassembly of IPv6.
    pub ip6_full: Arc<FullFeature<Ip6>>,
}

/// Reassembly of this router.
pub struct Reassembly {
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    budget: Budget,
    words: SlotKey<L4>,
    ip4: Part<Ip4>,
    ip6: Part<Ip6>,
    local: Cell<Families>,
    on: RefCell<BTreeMap<SwIfIndex, Families>>,
    /// Users of shallow virtual reassembly, by place.
    sv_users: RefCell<BTreeMap<SvPlace, BTreeSet<&'static str>>>,
    /// The same of full reassembly.
    full_users: RefCell<BTreeMap<(SwIfIndex, Version), BTreeSet<&'static str>>>,
}

impl<F: Family> Part<F> {
    fn new(
        graph: &Graph,
        interfaces: &Interfaces,
        words: SlotKey<L4>,
        budget: &Budget,
    ) -> Result<Self, InitError> {
        let settings = Shared::new(Settings::FULL);
        let full = graph.add_state(Full::<F>::new(settings, interfaces.table(), budget))?;
        let (receiver, lookup) = (Receiver::default(), Receiver::default());
        let node = |origin| FullNode { full: Arc::clone(full.feature()), origin };
        graph.add_stateful_frame(node(Origin::Arc), &full)?;
        for (name, receiver) in [(F::NODES.local, &receiver), (F::NODES.custom, &lookup)] {
            graph.add_stateful_frame_named(name, node(Origin::Local(receiver.clone())), &full)?;
        }
        let handoff = graph.add_stateful_frame_named(F::NODES.handoff, node(Origin::Elsewhere), &full)?;
        let expired = graph.add_packet(Expired::<F>::default())?;
        full.feature().set_nodes(handoff, expired);
        let node = F::NODES.feature;
        graph.add_feature(FeatureSpec { arc: F::NODES.unicast, node, before: &[], after: &[] });
        let settings = Shared::new(Settings::SHALLOW);
        let sv = graph.add_state(Sv::<F>::new(settings, interfaces.table(), budget))?;
        let node = |origin| SvNode { sv: Arc::clone(sv.feature()), origin, words };
        graph.add_stateful_frame(node(Origin::Arc), &sv)?;
        let handoff = graph.add_stateful_frame_named(F::NODES.sv_handoff, node(Origin::Elsewhere), &sv)?;
        let expired = graph.add_packet_named(F::NODES.sv_expired, Expired::<F>::default())?;
        sv.feature().set_nodes(handoff, expired);
        graph.add_packet(SvFeature::<F, false>::new(words))?;
        graph.add_packet(SvFeature::<F, true>::new(words))?;
        let (input, output) = (F::NODES.sv_feature, F::NODES.sv_output_feature);
        // What was put together needs no words of its first fragment.
        let after: &'static [&'static str] = const { &[F::NODES.feature] };
        graph.add_feature(FeatureSpec { arc: F::NODES.unicast, node: input, before: &[], after });
        graph.add_feature(FeatureSpec { arc: F::NODES.output, node: output, before: &[], after: &[] });
        Ok(Part { full, sv, receiver, lookup })
    }

    /// Once the graph is built: whole datagrams for this router go back to who asked.
    fn connect(&self, graph: &Graph) -> Result<(), InitError> {
        self.receiver.set(graph.node(F::NODES.receiver)?);
        self.lookup.set(graph.node(F::NODES.lookup)?);
        Ok(())
    }

    /// Sends fragments for this router here, or leaves them to be dropped.
    fn set_local(graph: &Graph, listeners: &Listeners, on: bool) -> Result<(), ReassemblyError> {
        let edge = graph.add_edge(graph.node(F::NODES.receiver)?, graph.node(F::NODES.local)?)?;
        listeners.set_fragments(on.then_some(edge));
        Ok(())
    }
}

fn within(what: &'static str, value: u32, (least, most): (u32, u32)) -> Result<(), ReassemblyError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ReassemblyError::Range { what, value, least, most })
}

impl Reassembly {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let budget = Budget::part_of(Arc::clone(graph.pool()), SHARE_OF_BUFFERS);
        let words = graph.claim_slot::<L4>("reassembly")?;
        control.put(ReassemblyStages {
            ip4: Arc::new(SvFeature::new(words)),
            ip6: Arc::new(SvFeature::new(words)),
            ip4_output: Arc::new(SvFeature::new(words)),
            ip6_output: Arc::new(SvFeature::new(words)),
            ip6_full: Arc::default(),
        });
        let reassembly = Rc::new(Reassembly {
            words,
            ip4: Part::new(&graph, &interfaces, words, &budget)?,
            ip6: Part::new(&graph, &interfaces, words, &budget)?,
            local: Cell::new(Families::NONE),
            on: RefCell::default(),
            sv_users: RefCell::default(),
            full_users: RefCell::default(),
            graph,
            interfaces: Rc::clone(&interfaces),
            budget,
        });
        let weak = Rc::downgrade(&reassembly);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(reassembly)) = (event, weak.upgrade()) {
                reassembly.on.borrow_mut().remove(&index);
                reassembly.sv_users.borrow_mut().retain(|(interface, ..), _| *interface != index);
                reassembly.full_users.borrow_mut().retain(|(interface, _), _| *interface != index);
            }
        });
        Ok(reassembly)
    }

    /// Once the graph is built.
    pub(crate) fn connect(&self, control: &Control) -> Result<(), InitError> {
        self.ip4.connect(&self.graph)?;
        self.ip6.connect(&self.graph)?;
        self.set_local(control, Families::BOTH).map_err(|e| InitError::Other(e.to_string()))
    }

    /// Puts together what an interface receives, or lets it pass as it is.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_interface(&self, interface: SwIfIndex, families: Families) -> Result<(), ReassemblyError> {
        self.interfaces.name(interface)?;
        let mut all = self.on.borrow_mut();
        if families == Families::NONE {
            all.remove(&interface)
        } else {
            all.insert(interface, families)
        };
        drop(all);
        self.set_full(interface)
    }

    /// Full reassembly is where it was configured or a feature wants it.
    fn set_full(&self, interface: SwIfIndex) -> Result<(), ReassemblyError> {
        let Families { ip4, ip6 } = self.interface(interface);
        for (version, names, on) in [(Version::Ip4, Ip4::NODES, ip4), (Version::Ip6, Ip6::NODES, ip6)] {
            let on = on || self.full_users.borrow().contains_key(&(interface, version));
            self.interfaces.enable_feature(names.unicast, names.feature, interface, on)?;
        }
        Ok(())
    }

    /// A feature wants an interface's fragments put together, or does so no more. It goes on as long as anybody wants it.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn use_full(
        &self,
        (interface, version): (SwIfIndex, Version),
        user: &'static str,
        on: bool,
    ) -> Result<(), ReassemblyError> {
        self.interfaces.name(interface)?;
        let mut all = self.full_users.borrow_mut();
        let users = all.entry((interface, version)).or_default();
        if on {
            users.insert(user);
        } else {
            users.remove(user);
        }
        all.retain(|_, users| !users.is_empty());
        drop(all);
        self.set_full(interface)
    }

    /// For which families an interface's fragments are put together.
    pub fn interface(&self, interface: SwIfIndex) -> Families {
        self.on.borrow().get(&interface).copied().unwrap_or(Families::NONE)
    }

    /// A feature wants to know what the transport headers of an interface's packets say, of fragments too, or does so no
    /// more. It goes on as long as anybody wants it.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn use_sv(&self, place: SvPlace, user: &'static str, on: bool) -> Result<(), ReassemblyError> {
        let (interface, version, side) = place;
        self.interfaces.name(interface)?;
        let names = if version == Version::Ip4 { Ip4::NODES } else { Ip6::NODES };
        let (arc, node) = match side {
            Side::Input => (names.unicast, names.sv_feature),
            Side::Output => (names.output, names.sv_output_feature),
        };
        let wanted = {
            let mut all = self.sv_users.borrow_mut();
            let users = all.entry(place).or_default();
            if on {
                users.insert(user)
            } else {
                users.remove(user)
            };
            let wanted = !users.is_empty();
            all.retain(|_, users| !users.is_empty());
            wanted
        };
        Ok(self.interfaces.enable_feature(arc, node, interface, wanted)?)
    }

    /// Where shallow virtual reassembly leaves in packets what their transport header says, for features behind it.
    pub fn words(&self) -> SlotKey<L4> {
        self.words
    }

    /// Whether somebody wants shallow virtual reassembly at a place.
    pub fn is_sv_user(&self, place: SvPlace, user: &str) -> bool {
        self.sv_users.borrow().get(&place).is_some_and(|users| users.contains(user))
    }

    /// Puts fragments for this router together, which it does from the start, or drops them.
    ///
    /// # Errors
    /// The graph refused.
    pub fn set_local(&self, control: &Control, families: Families) -> Result<(), ReassemblyError> {
        if let Ok(listeners) = control.get::<ListenerTable<Ip4Family>>() {
            Part::<Ip4>::set_local(&self.graph, &listeners, families.ip4)?;
        }
        if let Ok(listeners) = control.get::<ListenerTable<Ip6Family>>() {
            Part::<Ip6>::set_local(&self.graph, &listeners, families.ip6)?;
        }
        self.local.set(families);
        Ok(())
    }

    /// For which families fragments for this router are put together.
    pub fn local(&self) -> Families {
        self.local.get()
    }

    fn shared(&self, version: Version, kind: Kind) -> &Shared {
        match (version, kind) {
            (Version::Ip4, Kind::Full) => &self.ip4.full.feature().settings,
            (Version::Ip6, Kind::Full) => &self.ip6.full.feature().settings,
            (Version::Ip4, Kind::ShallowVirtual) => &self.ip4.sv.feature().settings,
            (Version::Ip6, Kind::ShallowVirtual) => &self.ip6.sv.feature().settings,
        }
    }

    /// What fragments wait for with shallow virtual reassembly.
    pub fn waits(&self, version: Version) -> WaitFor {
        self.shared(version, Kind::ShallowVirtual).until()
    }

    /// What they wait for from their next fragment on.
    pub fn set_waits(&self, version: Version, until: WaitFor) {
        self.shared(version, Kind::ShallowVirtual).wait(until);
    }

    /// Limits and times.
    pub fn settings(&self, version: Version, kind: Kind) -> Settings {
        self.shared(version, kind).get()
    }

    /// Sets limits and times. Datagrams that are held keep within the new ones from their next fragment on.
    ///
    /// # Errors
    /// A value is out of range; none is set then.
    pub fn set(&self, version: Version, kind: Kind, settings: Settings) -> Result<(), ReassemblyError> {
        let Settings { timeout_ms, max_reassemblies, max_fragments, expire_walk_interval_ms } = settings;
        within("timeout", timeout_ms, Settings::TIMEOUT_MS)?;
        within("max-reassemblies", max_reassemblies, Settings::REASSEMBLIES)?;
        within("max-fragments", max_fragments, Settings::FRAGMENTS)?;
        within("expire-walk-interval", expire_walk_interval_ms, Settings::INTERVAL_MS)?;
        self.shared(version, kind).set(settings);
        // Timers follow.
        self.look(version, kind, false)?;
        Ok(())
    }
}
