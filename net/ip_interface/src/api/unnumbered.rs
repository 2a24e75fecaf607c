//! `ip_unnumbered_dump`: which interfaces use the addresses of others.

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_message::{InterfaceIndex, Message};
use shoal_module::api::{Call, Dump};

use crate::lender;

/// Asks which interfaces use the addresses of others.
#[derive(Message)]
#[message(request, details = IpUnnumberedDetails)]
pub struct IpUnnumberedDump {
    /// One interface; all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// An interface that uses the addresses of another one.
#[derive(Message)]
#[message(reply)]
pub struct IpUnnumberedDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The one whose addresses it uses.
    pub ip_sw_if_index: InterfaceIndex,
}

impl Dump for IpUnnumberedDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpUnnumberedDetails> + 'static {
        let all = match (self.sw_if_index, call.get::<Interfaces>()) {
            (InterfaceIndex::NONE, Ok(interfaces)) => interfaces.indices(),
            (one, _) => vec![SwIfIndex(one.0)],
        };
        let call = call.clone();
        all.into_iter().filter_map(move |interface| {
            let ip_sw_if_index = InterfaceIndex(lender(&call.control, interface)?.0);
            Some(IpUnnumberedDetails { sw_if_index: InterfaceIndex(interface.0), ip_sw_if_index })
        })
    }
}
