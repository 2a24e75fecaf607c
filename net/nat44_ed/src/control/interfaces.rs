//! On which interfaces packets are translated.

use shoal_graph::StatefulStagedNode;
use shoal_interface::SwIfIndex;
pub use shoal_nat::{Side, Sides};
use shoal_reassembly::{Side as Where, Version};

use super::{Nat44, NatError, USER};
use crate::node::fast::{BOTH, Fast, IN2OUT, OUT2IN, OUTPUT};

impl Nat44 {
    /// Puts an interface on a side, too, or takes it from there.
    ///
    /// # Errors
    /// NAT is off, there is no such interface, or it has an output feature.
    pub fn set_side(&self, interface: SwIfIndex, side: Side, on: bool) -> Result<(), NatError> {
        self.on()?;
        let name = self.interfaces.name(interface)?;
        let state = self.state.borrow();
        if state.outputs.contains(&interface) {
            return Err(NatError::OtherKind(name));
        }
        let old = state.sides.get(&interface).copied().unwrap_or_default();
        drop(state);
        if old.has(side) == on {
            return if on { Ok(()) } else { Err(NatError::NoInterface(name)) };
        }
        let new = old.with(side, on);
        self.enable(interface, new)?;
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
    fn enable(&self, interface: SwIfIndex, sides: Sides) -> Result<(), NatError> {
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

    fn enable_output(&self, interface: SwIfIndex, on: bool) -> Result<(), NatError> {
        self.enable(interface, Sides { inside: false, outside: on })?;
        self.reassembly.use_sv((interface, Version::Ip4, Where::Output), USER, on)?;
        let node = Fast::<OUTPUT>::NAME;
        self.interfaces.enable_feature(shoal_ip4::OUTPUT_ARC, node, interface, on)?;
        Ok(())
    }

    /// Translates what goes out by an interface, after it was routed, and what comes back by it; or does so no more.
    ///
    /// # Errors
    /// NAT is off, there is no such interface, or it is on a side.
    pub fn set_output(&self, interface: SwIfIndex, on: bool) -> Result<(), NatError> {
        self.on()?;
        let name = self.interfaces.name(interface)?;
        let state = self.state.borrow();
        if state.sides.contains_key(&interface) {
            return Err(NatError::OtherKind(name));
        }
        let there = state.outputs.contains(&interface);
        drop(state);
        if there == on {
            return if on { Err(NatError::OtherKind(name)) } else { Err(NatError::NoInterface(name)) };
        }
        self.enable_output(interface, on)?;
        let mut state = self.state.borrow_mut();
        if on {
            state.outputs.insert(interface)
        } else {
            state.outputs.remove(&interface)
        };
        drop(state);
        self.publish();
        Ok(())
    }

    /// Interfaces on sides.
    pub fn sides(&self) -> Vec<(SwIfIndex, Sides)> {
        self.state.borrow().sides.iter().map(|(interface, sides)| (*interface, *sides)).collect()
    }

    /// Interfaces with an output feature.
    pub fn outputs(&self) -> Vec<SwIfIndex> {
        self.state.borrow().outputs.iter().copied().collect()
    }

    pub(super) fn is_used(&self, interface: SwIfIndex) -> bool {
        let state = self.state.borrow();
        state.sides.contains_key(&interface) || state.outputs.contains(&interface)
    }

    /// No interface translates any more.
    pub(super) fn leave_interfaces(&self) {
        for (interface, _) in self.sides() {
            if let Err(e) = self.enable(interface, Sides::default()) {
                tracing::warn!(%interface, "NAT stays: {e}");
            }
        }
        for interface in self.outputs() {
            if let Err(e) = self.enable_output(interface, false) {
                tracing::warn!(%interface, "NAT stays: {e}");
            }
        }
        let mut state = self.state.borrow_mut();
        state.sides.clear();
        state.outputs.clear();
    }

    /// An interface goes.
    pub(super) fn forget_interface(&self, interface: SwIfIndex) {
        if !self.is_on() {
            return;
        }
        if self.is_used(interface) {
            let left = self.enable(interface, Sides::default());
            if let Err(e) = left.and_then(|()| self.enable_output(interface, false)) {
                tracing::warn!(%interface, "NAT of a deleted interface stays: {e}");
            }
        }
        let mut state = self.state.borrow_mut();
        state.sides.remove(&interface);
        state.outputs.remove(&interface);
        drop(state);
        self.unfollow(interface);
        self.publish();
    }
}
