//! Messages: `gso.api`.

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::{Cutting, Gso, GsoError};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "gso",
    folder: Folder::Core,
    version: "1.0.0",
    messages: &[ApiMessage::request::<FeatureGsoEnableDisable>()],
};

impl From<GsoError> for Retval {
    fn from(error: GsoError) -> Self {
        match error {
            GsoError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
        }
    }
}

/// Says whether large packets that leave by an interface are cut in software.
#[derive(Message)]
#[message(request)]
pub struct FeatureGsoEnableDisable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether they are.
    pub enable_disable: bool,
}

impl Request for FeatureGsoEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let gso = call.get::<Gso>().map_err(|_| Retval::UNSPECIFIED)?;
        let cutting = if self.enable_disable { Cutting::On } else { Cutting::Off };
        Ok(gso.set(SwIfIndex(self.sw_if_index.0), cutting)?)
    }
}
