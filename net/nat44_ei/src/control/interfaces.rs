//! On which interfaces packets are translated.

use shoal_graph::StatefulStagedNode;
use shoal_interface::SwIfIndex;
use shoal_reassembly::{Side as Where, Version};

use super::{Nat44Ei, NatError, Side, Sides, USER};
use crate::node::fast::{BOTH, Fast, IN2OUT, OUT2IN, OUTPUT};

impl Nat44Ei {
    /// Puts an interface on a side, too, or takes it from there.
    ///
    /// # Errors
    /// NAT is off, there is no such interface, or it has an output feature.
    pub fn set_side(&self, interface: SwIfIndex, side: Side, on: bool) -> Result<(), NatError> {
        self.on()?;
        let name = self.interfaces.name(interface)?;
        let state = self.state.borrow();
        if state.outputs.contains_key(&interface) {
            return Err(NatError::OtherKind(name));
        }
        let old = state.sides.get(&interface).copied().unwrap_or_default();
        drop(state);
        if old.has(side) == on {
            return if on { Ok(()) } else { Err(NatError::NoInterface(name)) };
        }
        let new = old.with(side, on);
        self.apply(interface, new)?;
        let mut state = self.state.borrow_mut();
        if new == Sides::default() {
            state.sides.remove(&interface);
        } else {
            state.sides.insert(interface, new);
        }
        drop(state);
        self.publish();
        Ok(())
    }

    /// Has the graph do what an interface's sides ask for.
    fn apply(&self, interface: SwIfIndex, sides: Sides) -> Result<(), NatError> {
        let wanted = [
            (Fast::<IN2OUT>::NAME, sides.inside && !sides.outside),
            (Fast::<OUT2IN>::NAME, sides.outside && !sides.inside),
            (Fast::<BOTH>::NAME, sides.inside && sides.outside),
        ];
        let on = sides != Sides::default();
        self.reassembly.use_sv((interface, Version::Ip4, Where::Input), USER, on)?;
        for (node, on) in wanted {
            self.interfaces.enable_feature(shoal_ip4::UNICAST_ARC, node, interface, on)?;
        }
        Ok(())
    }

    fn apply_output(&self, interface: SwIfIndex, on: bool) -> Result<(), NatError> {
        self.apply(interface, Sides { inside: false, outside: on })?;
        self.reassembly.use_sv((interface, Version::Ip4, Where::Output), USER, on)?;
        let node = Fast::<OUTPUT>::NAME;
        self.interfaces.enable_feature(shoal_ip4::OUTPUT_ARC, node, interface, on)?;
        Ok(())
    }

    /// Translates what goes out by an interface after it was routed, and what comes back by it; or does so no more. Older requests
    /// name a side: on the inside, nothing is translated.
    ///
    /// # Errors
    /// NAT is off, there is no such interface, or it is on a side.
    pub fn set_output(&self, interface: SwIfIndex, sides: Sides, on: bool) -> Result<(), NatError> {
        self.on()?;
        let name = self.interfaces.name(interface)?;
        let state = self.state.borrow();
        if state.sides.contains_key(&interface) {
            return Err(NatError::OtherKind(name));
        }
        let there = state.outputs.get(&interface).copied();
        drop(state);
        if there.is_some() == on {
            return if on { Err(NatError::OtherKind(name)) } else { Err(NatError::NoInterface(name)) };
        }
        if there.unwrap_or(sides).outside {
            self.apply_output(interface, on)?;
        }
        let mut state = self.state.borrow_mut();
        if on {
            state.outputs.insert(interface, sides);
        } else {
            state.outputs.remove(&interface);
        }
        drop(state);
        self.publish();
        Ok(())
    }

    /// Interfaces on sides.
    pub fn sides(&self) -> Vec<(SwIfIndex, Sides)> {
        self.state.borrow().sides.iter().map(|(interface, sides)| (*interface, *sides)).collect()
    }

    /// Interfaces with an output feature.
    pub fn outputs(&self) -> Vec<(SwIfIndex, Sides)> {
        self.state.borrow().outputs.iter().map(|(interface, sides)| (*interface, *sides)).collect()
    }

    pub(super) fn is_used(&self, interface: SwIfIndex) -> bool {
        let state = self.state.borrow();
        state.sides.contains_key(&interface) || state.outputs.contains_key(&interface)
    }

    fn leave(&self, interface: SwIfIndex) {
        let mut state = self.state.borrow_mut();
        let (sides, output) = (state.sides.remove(&interface), state.outputs.remove(&interface));
        drop(state);
        let left = match (sides, output) {
            (_, Some(sides)) if sides.outside => self.apply_output(interface, false),
            (Some(_), _) => self.apply(interface, Sides::default()),
            _ => Ok(()),
        };
        if let Err(e) = left {
            tracing::warn!(%interface, "NAT stays: {e}");
        }
    }

    /// No interface translates any more.
    pub(super) fn leave_interfaces(&self) {
        let of_outputs = self.outputs().into_iter();
        for (interface, _) in self.sides().into_iter().chain(of_outputs) {
            self.leave(interface);
        }
    }

    /// An interface goes.
    pub(super) fn forget_interface(&self, interface: SwIfIndex) {
        if self.enabled().is_none() {
            return;
        }
        self.leave(interface);
        self.unfollow(interface);
        self.publish();
    }
}
