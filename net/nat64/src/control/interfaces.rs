//! On which interfaces packets are translated.

use shoal_graph::StatefulNode;
use shoal_interface::SwIfIndex;
pub use shoal_nat::{Side, Sides};
use shoal_reassembly::{Side as Where, Version};

use super::{Nat64, Nat64Error, USER};
use crate::node::in2out::In2out;
use crate::node::out2in::Out2in;

impl Nat64 {
    /// Puts an interface on a side, too, or takes it from there.
    ///
    /// # Errors
    /// NAT64 is off, or there is no such interface, or it is not on that side.
    pub fn set_side(&self, interface: SwIfIndex, side: Side, on: bool) -> Result<(), Nat64Error> {
        self.on()?;
        let name = self.interfaces.name(interface)?;
        let old = self.state.borrow().sides.get(&interface).copied().unwrap_or_default();
        if old.has(side) == on {
            return if on { Ok(()) } else { Err(Nat64Error::NoInterface(name)) };
        }
        self.enable_side(interface, side, on)?;
        let new = old.with(side, on);
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

    fn enable_side(&self, interface: SwIfIndex, side: Side, on: bool) -> Result<(), Nat64Error> {
        let (version, arc, node) = match side {
            Side::Inside => (Version::Ip6, shoal_ip6::UNICAST_ARC, In2out::<false>::NAME),
            Side::Outside => (Version::Ip4, shoal_ip4::UNICAST_ARC, Out2in::<false>::NAME),
        };
        self.reassembly.use_sv((interface, version, Where::Input), USER, on)?;
        self.interfaces.enable_feature(arc, node, interface, on)?;
        Ok(())
    }

    /// Interfaces on sides.
    pub fn sides(&self) -> Vec<(SwIfIndex, Sides)> {
        self.state.borrow().sides.iter().map(|(interface, sides)| (*interface, *sides)).collect()
    }

    fn leave(&self, interface: SwIfIndex, sides: Sides) {
        for side in [Side::Inside, Side::Outside].into_iter().filter(|side| sides.has(*side)) {
            if let Err(e) = self.enable_side(interface, side, false) {
                tracing::warn!(%interface, "NAT64 stays: {e}");
            }
        }
    }

    /// No interface translates any more.
    pub(super) fn leave_interfaces(&self) {
        for (interface, sides) in self.sides() {
            self.leave(interface, sides);
        }
        self.state.borrow_mut().sides.clear();
    }

    /// An interface goes.
    pub(super) fn forget_interface(&self, interface: SwIfIndex) {
        if !self.is_on() {
            return;
        }
        let sides = self.state.borrow_mut().sides.remove(&interface);
        if let Some(sides) = sides {
            self.leave(interface, sides);
        }
        if self.state.borrow_mut().followed.remove(&interface) {
            self.set_followed(interface, None);
        }
        self.publish();
    }
}
