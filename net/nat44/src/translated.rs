//! On which interfaces packets are translated: sides and output features, and what the graph does for them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_nat::{Side, Sides};
use shoal_reassembly::{Reassembly, Side as Where, Version};

use crate::NatError;

/// The nodes of a kind of NAT44, and its name among the users of shallow reassembly.
#[derive(Debug, Clone, Copy)]
pub struct Nodes {
    /// The user's name.
    pub user: &'static str,
    /// For interfaces on the inside.
    pub in2out: &'static str,
    /// For interfaces on the outside.
    pub out2in: &'static str,
    /// For interfaces on both sides.
    pub both: &'static str,
    /// For interfaces with an output feature, on the output arc.
    pub output: &'static str,
}

/// Interfaces on which one kind of NAT44 translates.
pub struct Translated {
    nodes: Nodes,
    interfaces: Rc<Interfaces>,
    reassembly: Rc<Reassembly>,
    sides: RefCell<BTreeMap<SwIfIndex, Sides>>,
    outputs: RefCell<BTreeMap<SwIfIndex, Sides>>,
}

impl Translated {
    /// None yet.
    pub fn new(nodes: Nodes, interfaces: Rc<Interfaces>, reassembly: Rc<Reassembly>) -> Self {
        let (sides, outputs) = (RefCell::default(), RefCell::default());
        Translated { nodes, interfaces, reassembly, sides, outputs }
    }

    /// Puts an interface on a side, too, or takes it from there. Says whether anything changed.
    ///
    /// # Errors
    /// There is no such interface, it is not on the side, or it has an output feature.
    pub fn set_side(&self, interface: SwIfIndex, side: Side, on: bool) -> Result<bool, NatError> {
        let name = self.interfaces.name(interface)?;
        if self.outputs.borrow().contains_key(&interface) {
            return Err(NatError::OtherKind(name));
        }
        let old = self.sides.borrow().get(&interface).copied().unwrap_or_default();
        if old.has(side) == on {
            return if on { Ok(false) } else { Err(NatError::NoInterface(name)) };
        }
        let new = old.with(side, on);
        self.apply(interface, new)?;
        let mut sides = self.sides.borrow_mut();
        if new == Sides::default() {
            sides.remove(&interface);
        } else {
            sides.insert(interface, new);
        }
        Ok(true)
    }

    /// Has the graph do what an interface's sides ask for.
    fn apply(&self, interface: SwIfIndex, sides: Sides) -> Result<(), NatError> {
        let wanted = [
            (self.nodes.in2out, sides.inside && !sides.outside),
            (self.nodes.out2in, sides.outside && !sides.inside),
            (self.nodes.both, sides.inside && sides.outside),
        ];
        let on = sides != Sides::default();
        self.reassembly.use_sv((interface, Version::Ip4, Where::Input), self.nodes.user, on)?;
        for (node, on) in wanted {
            self.interfaces.enable_feature(shoal_ip4::UNICAST_ARC, node, interface, on)?;
        }
        Ok(())
    }

    fn apply_output(&self, interface: SwIfIndex, on: bool) -> Result<(), NatError> {
        self.apply(interface, Sides { inside: false, outside: on })?;
        self.reassembly.use_sv((interface, Version::Ip4, Where::Output), self.nodes.user, on)?;
        self.interfaces.enable_feature(shoal_ip4::OUTPUT_ARC, self.nodes.output, interface, on)?;
        Ok(())
    }

    /// Translates what goes out by an interface after it was routed, and what comes back by it; or does so no more. Older requests
    /// name a side: on the inside, nothing is translated.
    ///
    /// # Errors
    /// There is no such interface, it is on a side, or it has the feature already, or has not.
    pub fn set_output(&self, interface: SwIfIndex, sides: Sides, on: bool) -> Result<(), NatError> {
        let name = self.interfaces.name(interface)?;
        if self.sides.borrow().contains_key(&interface) {
            return Err(NatError::OtherKind(name));
        }
        let there = self.outputs.borrow().get(&interface).copied();
        if there.is_some() == on {
            return if on { Err(NatError::OtherKind(name)) } else { Err(NatError::NoInterface(name)) };
        }
        if there.unwrap_or(sides).outside {
            self.apply_output(interface, on)?;
        }
        let mut outputs = self.outputs.borrow_mut();
        if on {
            outputs.insert(interface, sides);
        } else {
            outputs.remove(&interface);
        }
        Ok(())
    }

    /// Interfaces on sides, in order of their indices.
    pub fn sides(&self) -> Vec<(SwIfIndex, Sides)> {
        self.sides.borrow().iter().map(|(interface, sides)| (*interface, *sides)).collect()
    }

    /// Interfaces with an output feature, and which sides older requests named.
    pub fn outputs(&self) -> Vec<(SwIfIndex, Sides)> {
        self.outputs.borrow().iter().map(|(interface, sides)| (*interface, *sides)).collect()
    }

    /// Interfaces by which packets come from outside.
    pub fn outside(&self) -> Vec<SwIfIndex> {
        let all = self.sides().into_iter().chain(self.outputs());
        all.filter(|(_, sides)| sides.outside).map(|(interface, _)| interface).collect()
    }

    /// An interface is on a side, or has the output feature.
    pub fn has(&self, interface: SwIfIndex) -> bool {
        self.sides.borrow().contains_key(&interface) || self.outputs.borrow().contains_key(&interface)
    }

    /// Packets of an interface are translated no more.
    pub fn leave(&self, interface: SwIfIndex) {
        let sides = self.sides.borrow_mut().remove(&interface);
        let output = self.outputs.borrow_mut().remove(&interface);
        let left = match (sides, output) {
            (_, Some(sides)) if sides.outside => self.apply_output(interface, false),
            (Some(_), _) => self.apply(interface, Sides::default()),
            _ => Ok(()),
        };
        if let Err(e) = left {
            tracing::warn!(%interface, "NAT stays: {e}");
        }
    }

    /// No packets are translated any more.
    pub fn leave_all(&self) {
        for (interface, _) in self.sides().into_iter().chain(self.outputs()) {
            self.leave(interface);
        }
    }
}
