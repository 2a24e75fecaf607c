//! Messages of the binary API: what the host gets, and what takes another way.

mod redirect;
mod redirect_v2;
mod set;
mod socket;

use shoal_message::Retval;
use shoal_module::api::{ApiMessage, ApiPart, Folder};

use crate::PuntError;

/// Messages that VPP has in `punt.api`.
pub static PUNT: ApiPart = ApiPart {
    file: "punt",
    folder: Folder::Core,
    version: "2.2.1",
    messages: &[
        ApiMessage::request::<set::SetPunt>(),
        ApiMessage::request::<socket::PuntSocketRegister>(),
        ApiMessage::sent::<socket::PuntSocketRegisterReply>(),
        ApiMessage::dump::<socket::PuntSocketDump>(),
        ApiMessage::sent::<socket::PuntSocketDetails>(),
        ApiMessage::request::<socket::PuntSocketDeregister>(),
        ApiMessage::dump::<socket::PuntReasonDump>(),
        ApiMessage::sent::<socket::PuntReasonDetails>(),
    ],
};

/// Messages that VPP has in `ip.api`.
pub static IP: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[
        ApiMessage::request::<redirect::IpPuntRedirect>(),
        ApiMessage::dump::<redirect::IpPuntRedirectDump>(),
        ApiMessage::sent::<redirect::IpPuntRedirectDetails>(),
        ApiMessage::request::<redirect_v2::AddDelIpPuntRedirectV2>(),
        ApiMessage::dump::<redirect_v2::IpPuntRedirectV2Dump>(),
        ApiMessage::sent::<redirect_v2::IpPuntRedirectV2Details>(),
    ],
};

fn retval(error: &PuntError) -> Retval {
    match error {
        // VPP says no more than this of what is to be punted.
        PuntError::Taken { .. }
        | PuntError::NotPunted { .. }
        | PuntError::TcpPort(_)
        | PuntError::Protocol(_)
        | PuntError::NotConfigured
        | PuntError::Open(_)
        | PuntError::Socket(_)
        | PuntError::Path { .. }
        | PuntError::NotUdp(_)
        | PuntError::NoPort
        | PuntError::Version(_)
        | PuntError::NoReason { .. }
        | PuntError::ReasonTaken { .. }
        | PuntError::TooManyReasons(_)
        | PuntError::Graph(_) => Retval::UNSPECIFIED,
        PuntError::NotRedirected { .. } => Retval::NO_SUCH_ENTRY,
        PuntError::NoRate => Retval::INVALID_VALUE,
        PuntError::Fib(e) => shoal_fib::api::retval(e),
        PuntError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
    }
}
