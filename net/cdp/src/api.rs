//! Messages: `cdp.api`.

use shoal_message::{Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::Cdp;

/// Messages of this crate.
pub static CDP: ApiPart = ApiPart {
    file: "cdp",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[ApiMessage::request::<CdpEnableDisable>()],
};

/// Speaks CDP on all ports, or no longer.
#[derive(Message)]
#[message(request)]
pub struct CdpEnableDisable {
    /// Whether it is to speak.
    pub enable_disable: bool,
}

impl Request for CdpEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let cdp = call.get::<Cdp>().map_err(|_| Retval::UNSPECIFIED)?;
        if cdp.enable(self.enable_disable) { Ok(()) } else { Err(Retval::UNSPECIFIED) }
    }
}
