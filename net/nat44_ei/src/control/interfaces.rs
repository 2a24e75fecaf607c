//! On which interfaces packets are translated.

use shoal_graph::StatefulStagedNode;
use shoal_interface::SwIfIndex;
use shoal_nat44::translated::Nodes;

use super::{Nat44Ei, NatError, Side, Sides};
use crate::node::fast::{BOTH, Fast, IN2OUT, OUT2IN, OUTPUT};

/// The nodes that translate.
pub(super) const NODES: Nodes = Nodes {
    user: "nat44-ei",
    in2out: Fast::<IN2OUT>::NAME,
    out2in: Fast::<OUT2IN>::NAME,
    both: Fast::<BOTH>::NAME,
    output: Fast::<OUTPUT>::NAME,
};

impl Nat44Ei {
    /// Puts an interface on a side, too, or takes it from there.
    ///
    /// # Errors
    /// NAT is off, there is no such interface, it has an output feature, or NAT has no outside interfaces.
    pub fn set_side(&self, interface: SwIfIndex, side: Side, on: bool) -> Result<(), NatError> {
        if self.on()?.out2in_dpo && side == Side::Outside {
            return Err(NatError::Unsupported("with out2in-dpo there is no outside interface"));
        }
        if self.translated.set_side(interface, side, on)? {
            self.publish();
        }
        Ok(())
    }

    /// Translates what goes out by an interface after it was routed, and what comes back by it; or does so no more. Older requests
    /// name a side: on the inside, nothing is translated.
    ///
    /// # Errors
    /// NAT is off, there is no such interface, or it is on a side.
    pub fn set_output(&self, interface: SwIfIndex, sides: Sides, on: bool) -> Result<(), NatError> {
        self.on()?;
        self.translated.set_output(interface, sides, on)?;
        self.publish();
        Ok(())
    }

    /// Interfaces on sides.
    pub fn sides(&self) -> Vec<(SwIfIndex, Sides)> {
        self.translated.sides()
    }

    /// Interfaces with an output feature.
    pub fn outputs(&self) -> Vec<(SwIfIndex, Sides)> {
        self.translated.outputs()
    }

    /// An interface goes.
    pub(super) fn forget_interface(&self, interface: SwIfIndex) {
        if self.enabled().is_none() {
            return;
        }
        self.translated.leave(interface);
        self.unfollow(interface);
        self.publish();
    }
}
