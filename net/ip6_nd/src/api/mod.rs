//! Messages: `ip6_nd.api`, `ip6_dad.api` and `rd_cp.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

pub mod dad;
pub mod events;
pub mod proxy;
pub mod radv;
pub mod rd_cp;
pub mod solicit;

use std::rc::Rc;

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_message::{InterfaceIndex, Retval};
use shoal_module::Control;
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder};

use crate::{Nd, NdError};

/// Messages that VPP has in `ip6_nd.api`.
pub static API: ApiPart = ApiPart {
    file: "ip6_nd",
    folder: Folder::Core,
    version: "1.1.0",
    messages: &[
        ApiMessage::request::<radv::SwInterfaceIp6ndRaConfig>(),
        ApiMessage::request::<radv::SwInterfaceIp6ndRaPrefix>(),
        ApiMessage::dump::<radv::SwInterfaceIp6ndRaDump>(),
        ApiMessage::sent::<radv::SwInterfaceIp6ndRaDetails>(),
        ApiMessage::request::<proxy::Ip6ndProxyAddDel>(),
        ApiMessage::request::<proxy::Ip6ndProxyEnableDisable>(),
        ApiMessage::dump::<proxy::Ip6ndProxyDump>(),
        ApiMessage::sent::<proxy::Ip6ndProxyDetails>(),
        ApiMessage::request::<solicit::Ip6ndSendRouterSolicitation>(),
        ApiMessage::request::<events::WantIp6RaEvents>(),
        ApiMessage::sent::<events::Ip6RaEvent>(),
    ],
};

/// Messages that VPP has in `ip6_dad.api`.
pub static DAD: ApiPart = ApiPart {
    file: "ip6_dad",
    folder: Folder::Core,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<dad::Ip6DadEnableDisable>(),
        ApiMessage::dump::<dad::Ip6DadDump>(),
        ApiMessage::sent::<dad::Ip6DadDetails>(),
        ApiMessage::request::<events::WantIp6DadEvents>(),
        ApiMessage::sent::<events::Ip6DadEvent>(),
    ],
};

impl From<NdError> for Retval {
    fn from(error: NdError) -> Self {
        match error {
            NdError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            NdError::Range { .. }
            | NdError::Lifetimes { .. }
            | NdError::NoPrefix(_)
            | NdError::Unknown(..)
            | NdError::NoHost(_) => Retval::INVALID_VALUE,
            NdError::Full(_) => Retval::LIMIT_EXCEEDED,
            NdError::NoProxy(..) => Retval::NO_SUCH_ENTRY,
            NdError::Forwarding(_) => Retval::UNSPECIFIED,
            NdError::NotAutoconfigured(_) => Retval::FEATURE_ALREADY_DISABLED,
            NdError::NotEthernet(_) => Retval::NON_ETHERNET,
        }
    }
}

fn nd(call: &Call) -> Result<Rc<Nd>, Retval> {
    call.get::<Nd>().map_err(|_| Retval::UNSPECIFIED)
}

/// An interface that is there.
fn interface(call: &Call, which: InterfaceIndex) -> Result<SwIfIndex, Retval> {
    let interfaces = call.get::<Interfaces>().map_err(|_| Retval::UNSPECIFIED)?;
    let interface = SwIfIndex(which.0);
    interfaces.data(interface).map_err(|_| Retval::INVALID_SW_IF_INDEX)?;
    Ok(interface)
}

/// Tells clients from now on.
pub(crate) fn follow(control: &Rc<Control>, nd: &Nd) {
    events::follow(control, nd);
}
