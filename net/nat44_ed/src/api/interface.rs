//! On which interfaces packets are translated.

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{Call, Dump, Get, Request};

use super::{INSIDE, NatConfigFlags, OUTSIDE, all, nat};
use crate::Side;

/// Puts an interface on a side, or takes it from there.
#[derive(Message)]
#[message(request)]
pub struct Nat44InterfaceAddDelFeature {
    pub is_add: bool,
    pub flags: NatConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

impl Request for Nat44InterfaceAddDelFeature {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let side = if self.flags.has(INSIDE) { Side::Inside } else { Side::Outside };
        Ok(nat(call)?.set_side(SwIfIndex(self.sw_if_index.0), side, self.is_add)?)
    }
}

/// Asks for interfaces on sides.
#[derive(Message)]
#[message(request, details = Nat44InterfaceDetails)]
pub struct Nat44InterfaceDump {}

/// An interface on a side, or both.
#[derive(Message)]
#[message(reply)]
pub struct Nat44InterfaceDetails {
    pub flags: NatConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

impl Dump for Nat44InterfaceDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44InterfaceDetails> + 'static {
        all(call, super::super::control::Nat44::sides).map(|(interface, sides)| {
            let flags = if sides.inside { INSIDE } else { 0 } | if sides.outside { OUTSIDE } else { 0 };
            Nat44InterfaceDetails { flags: NatConfigFlags(flags), sw_if_index: InterfaceIndex(interface.0) }
        })
    }
}

/// Translates what goes out by an interface after it was routed, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Nat44EdAddDelOutputInterface {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
}

impl Request for Nat44EdAddDelOutputInterface {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(nat(call)?.set_output(SwIfIndex(self.sw_if_index.0), self.is_add)?)
    }
}

/// Asks for interfaces whose packets are translated after they were routed.
#[derive(Message)]
#[message(request, reply = Nat44EdOutputInterfaceGetReply, details = Nat44EdOutputInterfaceDetails)]
pub struct Nat44EdOutputInterfaceGet {
    pub cursor: u32,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EdOutputInterfaceGetReply {
    pub retval: i32,
    /// Where to go on; all bits set at the end.
    pub cursor: u32,
}

/// An interface whose packets are translated after they were routed.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EdOutputInterfaceDetails {
    pub sw_if_index: InterfaceIndex,
}

/// Details of one answer at most.
const PAGE: usize = 500;

impl Get for Nat44EdOutputInterfaceGet {
    fn get(
        self,
        call: &Call,
    ) -> Result<(Vec<Nat44EdOutputInterfaceDetails>, Nat44EdOutputInterfaceGetReply), Retval> {
        let end = u32::MAX;
        let from = if self.cursor == end { 0 } else { self.cursor };
        let mut left = nat(call)?.outputs().into_iter().filter(|interface| interface.0 >= from);
        let detail =
            |interface: SwIfIndex| Nat44EdOutputInterfaceDetails { sw_if_index: InterfaceIndex(interface.0) };
        let details = left.by_ref().take(PAGE).map(detail).collect();
        let reply = match left.next() {
            Some(next) => Nat44EdOutputInterfaceGetReply { retval: Retval::EAGAIN.0, cursor: next.0 },
            None => Nat44EdOutputInterfaceGetReply { retval: 0, cursor: end },
        };
        Ok((details, reply))
    }
}
