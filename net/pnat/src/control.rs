//! The control plane: bindings, and where they are attached.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use shoal_graph::{FeatureSpec, PacketNode};
use shoal_infra::Published;
use shoal_interface::{Event, InterfaceError, Interfaces, SwIfIndex};
use shoal_ip4::{OUTPUT_ARC, UNICAST_ARC};
use shoal_module::{Control, InitError};
use shoal_nat::ParsedPacket;
use shoal_reassembly::{Reassembly, ReassemblyError, Side, Version};

use crate::config::{At, Config, Rule, Shared};
use crate::node::Node;
use crate::rule::{Fields, Match, Place, Rewrite};

/// Bindings there may be.
const MOST: usize = 1 << 20;
/// The user name for shallow reassembly.
const USER: &str = "pnat";
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PnatError {
    /// Ports are looked at, and the protocol has none.
    #[error("ports are looked at, so the protocol is to be TCP or UDP, not {0}")]
    NoPorts(u8),
    /// Nothing is looked at, or nothing is done.
    #[error("a binding looks at a field at least, and changes one")]
    Empty,
    /// There are bits that mean nothing.
    #[error("mask {0:#x} has bits that mean nothing here, nearest {1:#x}")]
    Mask(u32, u32),
    /// There is no such binding.
    #[error("no binding {0}")]
    NoBinding(u32),
    /// Others there look at other fields.
    #[error("bindings there look at the fields {0}, this one at {1}")]
    OtherFields(String, String),
    /// Another binding there has these packets.
    #[error("binding {0} has these packets there")]
    Taken(u32),
    /// It is not attached there.
    #[error("binding {0} is not attached there")]
    NotAttached(u32),
    /// There are as many bindings as there may be.
    #[error("there are {MOST} bindings already, and there may not be more")]
    TooMany,
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Shallow reassembly refused.
    #[error(transparent)]
    Reassembly(#[from] ReassemblyError),
}

/// What there is at an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AttachedTo {
    /// The fields that rules look at, of what comes in.
    pub input: Option<Fields>,
    /// The same of what goes out.
    pub output: Option<Fields>,
}

struct Binding {
    of: Match,
    rewrite: Rewrite,
    at: BTreeSet<At>,
}

#[derive(Default)]
struct State {
    bindings: BTreeMap<u32, Binding>,
    config: Config,
}

/// PNAT of this router.
pub struct Pnat {
    interfaces: Rc<Interfaces>,
    reassembly: Rc<Reassembly>,
    shared: Arc<Shared>,
    state: RefCell<State>,
}

impl Pnat {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let reassembly = control.get::<Reassembly>()?;
        let shared =
            Arc::new(Shared { config: Published::new(Config::default()), words: reassembly.words() });
        graph.add_packet(Node::<false> { shared: Arc::clone(&shared) })?;
        graph.add_packet(Node::<true> { shared: Arc::clone(&shared) })?;
        let after_input = &["ip4-not-enabled", "ip4-sv-reassembly-feature"];
        let after_output = &["ip4-sv-reassembly-output-feature"];
        let (input, output) = (Node::<false>::NAME, Node::<true>::NAME);
        graph.add_feature(FeatureSpec { arc: UNICAST_ARC, node: input, before: &[], after: after_input });
        graph.add_feature(FeatureSpec { arc: OUTPUT_ARC, node: output, before: &[], after: after_output });
        let state = RefCell::default();
        let pnat = Rc::new(Pnat { interfaces: Rc::clone(&interfaces), reassembly, shared, state });
        let weak = Rc::downgrade(&pnat);
        interfaces.subscribe(move |_, event| {
            if let (Some(pnat), Event::Deleting(interface)) = (weak.upgrade(), event) {
                pnat.forget(interface);
            }
        });
        Ok(pnat)
    }

    /// Makes a binding; its number.
    ///
    /// # Errors
    /// It looks at nothing, does nothing, looks at ports of a protocol without any, or there are too many.
    pub fn add(&self, of: Match, rewrite: Rewrite) -> Result<u32, PnatError> {
        for (mask, known) in
            [(of.mask, Fields::OF_MATCH), (rewrite.mask, Fields::OF_REWRITE.or(Fields::PROTO))]
        {
            if mask.and(known) != mask {
                return Err(PnatError::Mask(mask.0, mask.and(known).0));
            }
        }
        if of.mask == Fields::default() || !rewrite.mask.has(Fields::OF_REWRITE) {
            return Err(PnatError::Empty);
        }
        if of.mask.has(Fields::SPORT.or(Fields::DPORT)) && ![TCP, UDP].contains(&of.protocol) {
            return Err(PnatError::NoPorts(of.protocol));
        }
        let mut state = self.state.borrow_mut();
        if state.bindings.len() >= MOST {
            return Err(PnatError::TooMany);
        }
        let index = free(&state.bindings);
        let of = of.masked(of.mask);
        state.bindings.insert(index, Binding { of, rewrite, at: BTreeSet::new() });
        Ok(index)
    }

    /// Deletes a binding, wherever it is attached.
    ///
    /// # Errors
    /// There is none of that number.
    pub fn del(&self, index: u32) -> Result<(), PnatError> {
        let at = self.state.borrow().bindings.get(&index).map(|binding| binding.at.clone());
        for at in at.ok_or(PnatError::NoBinding(index))? {
            self.detach(at, index)?;
        }
        self.state.borrow_mut().bindings.remove(&index);
        Ok(())
    }

    /// Has a binding look at packets.
    ///
    /// # Errors
    /// There is no such binding or interface, those that are there look at other fields, or one has its packets.
    pub fn attach(&self, at: At, index: u32) -> Result<(), PnatError> {
        self.interfaces.name(at.0)?;
        let (of, rewrite, first) = {
            let state = self.state.borrow();
            let binding = state.bindings.get(&index).ok_or(PnatError::NoBinding(index))?;
            let (of, there) = (binding.of, state.config.masks.get(&at).copied());
            if let Some(there) = there.filter(|there| *there != of.mask) {
                return Err(PnatError::OtherFields(there.to_string(), of.mask.to_string()));
            }
            if let Some(rule) = state.config.rules.get(&(at, of)) {
                return Err(PnatError::Taken(rule.index));
            }
            (of, binding.rewrite, there.is_none())
        };
        if first {
            self.switch(at, true)?;
        }
        let mut state = self.state.borrow_mut();
        state.config.masks.insert(at, of.mask);
        state.config.rules.insert((at, of), Rule { index, of, rewrite });
        if let Some(binding) = state.bindings.get_mut(&index) {
            binding.at.insert(at);
        }
        self.shared.config.replace(state.config.clone());
        Ok(())
    }

    /// Has a binding look at packets no longer.
    ///
    /// # Errors
    /// There is no such binding, or it is not attached there.
    pub fn detach(&self, at: At, index: u32) -> Result<(), PnatError> {
        let mut state = self.state.borrow_mut();
        let binding = state.bindings.get_mut(&index).ok_or(PnatError::NoBinding(index))?;
        if !binding.at.remove(&at) {
            return Err(PnatError::NotAttached(index));
        }
        let of = binding.of;
        state.config.rules.remove(&(at, of));
        let last = !state.bindings.values().any(|binding| binding.at.contains(&at));
        if last {
            state.config.masks.remove(&at);
        }
        self.shared.config.replace(state.config.clone());
        drop(state);
        if last { self.switch(at, false) } else { Ok(()) }
    }

    /// Has packets of a place come by, or no longer.
    fn switch(&self, (interface, place): At, on: bool) -> Result<(), PnatError> {
        let (arc, node, side) = match place {
            Place::Input => (UNICAST_ARC, Node::<false>::NAME, Side::Input),
            Place::Output => (OUTPUT_ARC, Node::<true>::NAME, Side::Output),
        };
        self.reassembly.use_sv((interface, Version::Ip4, side), USER, on)?;
        Ok(self.interfaces.enable_feature(arc, node, interface, on)?)
    }

    /// An interface goes.
    fn forget(&self, interface: SwIfIndex) {
        let state = self.state.borrow();
        let of = |(index, binding): (&u32, &Binding)| {
            binding.at.iter().filter(|at| at.0 == interface).map(|at| (*index, *at)).collect::<Vec<_>>()
        };
        let there: Vec<(u32, At)> = state.bindings.iter().flat_map(of).collect();
        drop(state);
        for (index, at) in there {
            if let Err(e) = self.detach(at, index) {
                tracing::warn!(%interface, "PNAT stays: {e}");
            }
        }
    }

    /// All bindings from a number on.
    pub fn bindings(&self, from: u32) -> Vec<(u32, Match, Rewrite)> {
        let state = self.state.borrow();
        state.bindings.range(from..).map(|(index, binding)| (*index, binding.of, binding.rewrite)).collect()
    }

    /// Where which binding is attached.
    pub fn attached(&self) -> Vec<(At, u32, Match, Rewrite)> {
        let state = self.state.borrow();
        let of = |(index, binding): (&u32, &Binding)| {
            let (index, of, rewrite) = (*index, binding.of, binding.rewrite);
            binding.at.iter().map(|at| (*at, index, of, rewrite)).collect::<Vec<_>>()
        };
        state.bindings.iter().flat_map(of).collect()
    }

    /// Interfaces with bindings.
    pub fn interfaces(&self) -> BTreeMap<SwIfIndex, AttachedTo> {
        let mut all: BTreeMap<SwIfIndex, AttachedTo> = BTreeMap::new();
        for ((interface, place), mask) in &self.state.borrow().config.masks {
            let entry = all.entry(*interface).or_default();
            match place {
                Place::Input => entry.input = Some(*mask),
                Place::Output => entry.output = Some(*mask),
            }
        }
        all
    }

    /// The binding that a packet of these fields meets at a place.
    pub fn find(&self, at: At, of: Match) -> Option<u32> {
        let state = self.state.borrow();
        let mask = state.config.masks.get(&at)?;
        state.config.rules.get(&(at, of.masked(*mask))).map(|rule| rule.index)
    }

    /// The binding that is exactly so and attached at a place.
    pub fn exact(&self, at: At, of: Match, rewrite: Rewrite) -> Option<u32> {
        let of = of.masked(of.mask);
        let state = self.state.borrow();
        let rule = state.config.rules.get(&(at, of))?;
        (rule.rewrite == rewrite).then_some(rule.index)
    }
}

/// The lowest number that is free.
fn free(bindings: &BTreeMap<u32, Binding>) -> u32 {
    let last = bindings.last_key_value().map_or(0, |(index, _)| index + 1);
    if last as usize == bindings.len() {
        return last;
    }
    let used = bindings.keys().zip(0..).find(|(index, at)| **index != *at);
    used.map_or(last, |(_, at)| at)
}

/// What a packet's fields are, for [`Pnat::find`].
impl From<&ParsedPacket> for Match {
    fn from(seen: &ParsedPacket) -> Self {
        Match { mask: Fields::OF_MATCH, tuple: seen.tuple, protocol: seen.protocol }
    }
}
