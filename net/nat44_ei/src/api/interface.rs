//! On which interfaces packets are translated.

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{Call, Dump, Get, Request};

use super::{Nat44EiConfigFlags, all, nat};
use crate::{Nat44Ei, Side, Sides};

fn flags(sides: Sides) -> Nat44EiConfigFlags {
    let inside = if sides.inside { Nat44EiConfigFlags::INSIDE } else { 0 };
    Nat44EiConfigFlags(inside | if sides.outside { Nat44EiConfigFlags::OUTSIDE } else { 0 })
}

/// Puts an interface on a side, or takes it from there.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiInterfaceAddDelFeature {
    pub is_add: bool,
    pub flags: Nat44EiConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

impl Request for Nat44EiInterfaceAddDelFeature {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let side = if self.flags.has(Nat44EiConfigFlags::INSIDE) { Side::Inside } else { Side::Outside };
        Ok(nat(call)?.set_side(SwIfIndex(self.sw_if_index.0), side, self.is_add)?)
    }
}

/// Asks for interfaces on sides.
#[derive(Message)]
#[message(request, details = Nat44EiInterfaceDetails)]
pub struct Nat44EiInterfaceDump {}

/// An interface on a side, or both.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiInterfaceDetails {
    pub flags: Nat44EiConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

impl Dump for Nat44EiInterfaceDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EiInterfaceDetails> + 'static {
        all(call, Nat44Ei::sides).map(|(interface, sides)| Nat44EiInterfaceDetails {
            flags: flags(sides),
            sw_if_index: InterfaceIndex(interface.0),
        })
    }
}

/// Translates what goes out by an interface after it was routed, or does so no more. An inside interface needs nothing.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiInterfaceAddDelOutputFeature {
    pub is_add: bool,
    pub flags: Nat44EiConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

impl Request for Nat44EiInterfaceAddDelOutputFeature {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let inside = self.flags.has(Nat44EiConfigFlags::INSIDE);
        let sides = Sides { inside, outside: !inside || self.flags.has(Nat44EiConfigFlags::OUTSIDE) };
        Ok(nat(call)?.set_output(SwIfIndex(self.sw_if_index.0), sides, self.is_add)?)
    }
}

/// Asks for interfaces whose packets are translated after they were routed.
#[derive(Message)]
#[message(request, details = Nat44EiInterfaceOutputFeatureDetails)]
pub struct Nat44EiInterfaceOutputFeatureDump {}

/// An interface whose packets are translated after they were routed.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiInterfaceOutputFeatureDetails {
    pub flags: Nat44EiConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

impl Dump for Nat44EiInterfaceOutputFeatureDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EiInterfaceOutputFeatureDetails> + 'static {
        // What the newer message has set is in the newer list only.
        let older = |nat: &Nat44Ei| {
            let all = nat.outputs().into_iter();
            all.filter(|(_, sides)| !(sides.inside && sides.outside)).collect::<Vec<_>>()
        };
        all(call, older).map(|(interface, sides)| Nat44EiInterfaceOutputFeatureDetails {
            flags: flags(Sides { outside: false, ..sides }),
            sw_if_index: InterfaceIndex(interface.0),
        })
    }
}

/// Translates what goes out by an interface after it was routed, and what comes back by it, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiAddDelOutputInterface {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
}

impl Request for Nat44EiAddDelOutputInterface {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let sides = Sides { inside: true, outside: true };
        Ok(nat(call)?.set_output(SwIfIndex(self.sw_if_index.0), sides, self.is_add)?)
    }
}

/// Asks for interfaces whose packets are translated after they were routed.
#[derive(Message)]
#[message(request, reply = Nat44EiOutputInterfaceGetReply, details = Nat44EiOutputInterfaceDetails)]
pub struct Nat44EiOutputInterfaceGet {
    pub cursor: u32,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiOutputInterfaceGetReply {
    pub retval: i32,
    /// Where to go on; all bits set at the end.
    pub cursor: u32,
}

/// An interface whose packets are translated after they were routed.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiOutputInterfaceDetails {
    pub sw_if_index: InterfaceIndex,
}

/// Details of one answer at most.
const PAGE: usize = 500;

impl Get for Nat44EiOutputInterfaceGet {
    fn get(
        self,
        call: &Call,
    ) -> Result<(Vec<Nat44EiOutputInterfaceDetails>, Nat44EiOutputInterfaceGetReply), Retval> {
        let from = if self.cursor == u32::MAX { 0 } else { self.cursor };
        let all = nat(call)?.outputs().into_iter().map(|(interface, _)| interface.0);
        let mut left = all.filter(|interface| *interface >= from);
        let detail = |interface| Nat44EiOutputInterfaceDetails { sw_if_index: InterfaceIndex(interface) };
        let details = left.by_ref().take(PAGE).map(detail).collect();
        let reply = match left.next() {
            Some(cursor) => Nat44EiOutputInterfaceGetReply { retval: Retval::EAGAIN.0, cursor },
            None => Nat44EiOutputInterfaceGetReply { retval: 0, cursor: u32::MAX },
        };
        Ok((details, reply))
    }
}
