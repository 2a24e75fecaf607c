//! Messages: `npt66.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};
use shoal_wire::Ip6Prefix;

use crate::{Binding, Npt66, Npt66Error};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "npt66",
    folder: Folder::Plugins,
    version: "0.0.1",
    messages: &[ApiMessage::request::<Npt66BindingAddDel>()],
};

impl From<Npt66Error> for Retval {
    fn from(error: Npt66Error) -> Self {
        match error {
            Npt66Error::TooLong(_) => Retval::INVALID_VALUE,
            Npt66Error::Exists(_) => Retval::VALUE_EXIST,
            Npt66Error::None(_) => Retval::NO_SUCH_ENTRY,
            Npt66Error::Interface(error) => error.into(),
        }
    }
}

/// Has a prefix stand for another, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct Npt66BindingAddDel {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
    pub internal: shoal_message::Ip6Prefix,
    pub external: shoal_message::Ip6Prefix,
}

impl Request for Npt66BindingAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let npt = call.get::<Npt66>().map_err(|_| Retval::UNSPECIFIED)?;
        let interface = SwIfIndex(self.sw_if_index.0);
        // As in VPP, an interface's binding goes whatever the prefixes are.
        if !self.is_add {
            return Ok(npt.remove(interface, None)?);
        }
        let prefix = |prefix: shoal_message::Ip6Prefix| Ip6Prefix::new(prefix.address, prefix.len);
        let both = (prefix(self.internal), prefix(self.external));
        let (Ok(internal), Ok(external)) = both else { return Err(Retval::INVALID_VALUE) };
        Ok(npt.add(interface, Binding { internal, external })?)
    }
}
