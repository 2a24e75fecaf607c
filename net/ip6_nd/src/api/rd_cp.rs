//! Messages: `rd_cp.api`, addresses that routers give.

use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use super::{interface, nd};
use crate::{Autoconfigure, DefaultRoute};

/// Messages that VPP has in `rd_cp.api`.
pub static API: ApiPart = ApiPart {
    file: "rd_cp",
    folder: Folder::Core,
    version: "1.0.1",
    messages: &[ApiMessage::request::<Ip6NdAddressAutoconfig>()],
};

/// Lets routers of a link give an interface its addresses, or no longer.
#[derive(Message)]
#[message(request)]
pub struct Ip6NdAddressAutoconfig {
    /// The link.
    pub sw_if_index: InterfaceIndex,
    /// Whether they may.
    pub enable: bool,
    /// Whether those that advertise themselves share the default route.
    pub install_default_routes: bool,
}

impl Request for Ip6NdAddressAutoconfig {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (interface, nd) = (interface(call, self.sw_if_index)?, nd(call)?);
        let on = match (self.enable, self.install_default_routes) {
            (false, _) if nd.autoconfigured(interface).is_none() => return Ok(()),
            (false, _) => Autoconfigure::No,
            (true, true) => Autoconfigure::Yes(DefaultRoute::Wanted),
            (true, false) => Autoconfigure::Yes(DefaultRoute::Unwanted),
        };
        Ok(nd.set_autoconfigure(interface, on)?)
    }
}
