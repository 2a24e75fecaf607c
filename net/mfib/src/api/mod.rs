//! Messages of the binary API: multicast routes, and what is done to all routes of a table, those to one host included.

mod replace;
mod route;
mod route_dump;
mod signal;
mod table;

use shoal_adj::AdjError;
use shoal_message::{AddressUnion, Mprefix, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Folder};

use crate::{MfibError, Prefix};

/// Messages that VPP has in `ip.api`.
pub static IP: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[
        ApiMessage::task::<replace::IpTableReplaceBegin>(),
        ApiMessage::task::<replace::IpTableReplaceEnd>(),
        ApiMessage::task::<replace::IpTableFlush>(),
        ApiMessage::dump::<table::IpMtableDump>(),
        ApiMessage::sent::<table::IpMtableDetails>(),
        ApiMessage::request::<route::IpMrouteAddDel>(),
        ApiMessage::sent::<route::IpMrouteAddDelReply>(),
        ApiMessage::dump::<route_dump::IpMrouteDump>(),
        ApiMessage::sent::<route_dump::IpMrouteDetails>(),
        ApiMessage::dump::<signal::MfibSignalDump>(),
        ApiMessage::sent::<signal::MfibSignalDetails>(),
    ],
};

/// VPP's number for what is wrong with an operation on multicast routes.
pub fn retval(error: &MfibError) -> Retval {
    match error {
        MfibError::NotAGroup(_) | MfibError::LinkGroup(_) => Retval::INVALID_DST_ADDRESS,
        MfibError::NotASource(_) => Retval::INVALID_SRC_ADDRESS,
        MfibError::Families { .. } => Retval::INVALID_ADDRESS_FAMILY,
        MfibError::SourceAndPrefix(_) => Retval::INVALID_PREFIX_LENGTH,
        MfibError::LocalAccepts | MfibError::NoFlags => Retval::INVALID_VALUE,
        MfibError::Nothing => Retval::NO_PATHS_IN_ROUTE,
        MfibError::NoEntry { .. } | MfibError::NoPath { .. } => Retval::NO_SUCH_ENTRY,
        MfibError::Full { .. } | MfibError::TooManyInterfaces { .. } => Retval::TABLE_TOO_BIG,
        MfibError::Fib(e) => shoal_fib::api::retval(e),
        MfibError::Adj(AdjError::Interface(_)) | MfibError::Interface(_) => Retval::NO_MATCHING_INTERFACE,
        MfibError::Adj(_) | MfibError::Missing(_) => Retval::UNSPECIFIED,
    }
}

/// An entry's packets as clients receive them: with a source both addresses count.
fn told(prefix: Prefix) -> Mprefix {
    let (group, len, source) = prefix.parts();
    let family = prefix.family();
    let bits = if source.is_some() { u16::from(family.max_len()) * 2 } else { len.into() };
    Mprefix {
        af: shoal_fib::api::af_of(family),
        grp_address_length: bits,
        grp_address: group.into(),
        src_address: source.map_or_else(AddressUnion::default, AddressUnion::from),
    }
}
