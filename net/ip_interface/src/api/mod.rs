//! Messages of the binary API about both families on interfaces.

mod addresses;
pub mod interface;
mod unnumbered;

use shoal_module::api::{ApiMessage, ApiPart, Folder};

/// Messages that VPP has in `ip.api`.
pub static IP: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[
        ApiMessage::dump::<addresses::IpAddressDump>(),
        ApiMessage::sent::<addresses::IpAddressDetails>(),
        ApiMessage::dump::<addresses::IpDump>(),
        ApiMessage::sent::<addresses::IpDetails>(),
        ApiMessage::dump::<unnumbered::IpUnnumberedDump>(),
        ApiMessage::sent::<unnumbered::IpUnnumberedDetails>(),
    ],
};
