//! Messages: `dslite.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_message::{Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::config::TunnelAddresses;
use crate::{Dslite, DsliteError};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "dslite",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<DsliteAddDelPoolAddrRange>(),
        ApiMessage::dump::<DsliteAddressDump>(),
        ApiMessage::sent::<DsliteAddressDetails>(),
        ApiMessage::request::<DsliteSetAftrAddr>(),
        ApiMessage::request::<DsliteGetAftrAddr>(),
        ApiMessage::sent::<DsliteGetAftrAddrReply>(),
        ApiMessage::request::<DsliteSetB4Addr>(),
        ApiMessage::request::<DsliteGetB4Addr>(),
        ApiMessage::sent::<DsliteGetB4AddrReply>(),
    ],
};

impl From<DsliteError> for Retval {
    fn from(error: DsliteError) -> Self {
        match error {
            DsliteError::Exists(_) => Retval::VALUE_EXIST,
            DsliteError::None(_) => Retval::NO_SUCH_ENTRY,
            DsliteError::Range(..) | DsliteError::Address(_) => Retval::INVALID_VALUE,
            DsliteError::NoB4 => Retval::FEATURE_DISABLED,
            DsliteError::Fib(error) => shoal_fib::api::retval(&error),
            DsliteError::Memory(_) | DsliteError::Graph(_) => Retval::UNSPECIFIED,
        }
    }
}

fn dslite(call: &Call) -> Result<Rc<Dslite>, Retval> {
    call.get::<Dslite>().map_err(|_| Retval::UNSPECIFIED)
}

/// Shares a range of addresses, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct DsliteAddDelPoolAddrRange {
    pub start_addr: Ipv4Addr,
    pub end_addr: Ipv4Addr,
    pub is_add: bool,
}

impl Request for DsliteAddDelPoolAddrRange {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (dslite, range) = (dslite(call)?, (self.start_addr, self.end_addr));
        Ok(if self.is_add { dslite.add_addresses(range) } else { dslite.del_addresses(range) }?)
    }
}

/// Asks for shared addresses.
#[derive(Message)]
#[message(request, details = DsliteAddressDetails)]
pub struct DsliteAddressDump {}

/// A shared address.
#[derive(Message)]
#[message(reply)]
pub struct DsliteAddressDetails {
    pub ip_address: Ipv4Addr,
}

impl Dump for DsliteAddressDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = DsliteAddressDetails> + 'static {
        let all = dslite(call).map(|dslite| dslite.addresses()).unwrap_or_default();
        all.into_iter().map(|ip_address| DsliteAddressDetails { ip_address })
    }
}

/// Sets the AFTR's end of tunnels.
#[derive(Message)]
#[message(request)]
pub struct DsliteSetAftrAddr {
    pub ip4_addr: Ipv4Addr,
    pub ip6_addr: Ipv6Addr,
}

impl Request for DsliteSetAftrAddr {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(dslite(call)?.set_aftr(TunnelAddresses { ip4: self.ip4_addr, ip6: self.ip6_addr })?)
    }
}

/// Asks for the AFTR's end of tunnels.
#[derive(Message)]
#[message(request, reply = DsliteGetAftrAddrReply)]
pub struct DsliteGetAftrAddr {}

/// The AFTR's end of tunnels.
#[derive(Message)]
#[message(reply)]
pub struct DsliteGetAftrAddrReply {
    pub retval: i32,
    pub ip4_addr: Ipv4Addr,
    pub ip6_addr: Ipv6Addr,
}

const NO_END: TunnelAddresses = TunnelAddresses { ip4: Ipv4Addr::UNSPECIFIED, ip6: Ipv6Addr::UNSPECIFIED };

impl Request for DsliteGetAftrAddr {
    fn handle(self, call: &Call) -> Result<DsliteGetAftrAddrReply, Retval> {
        let TunnelAddresses { ip4, ip6 } = dslite(call)?.aftr().unwrap_or(NO_END);
        Ok(DsliteGetAftrAddrReply { retval: 0, ip4_addr: ip4, ip6_addr: ip6 })
    }
}

/// Sets the B4's end of its tunnel.
#[derive(Message)]
#[message(request)]
pub struct DsliteSetB4Addr {
    pub ip4_addr: Ipv4Addr,
    pub ip6_addr: Ipv6Addr,
}

impl Request for DsliteSetB4Addr {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(dslite(call)?.set_b4(TunnelAddresses { ip4: self.ip4_addr, ip6: self.ip6_addr })?)
    }
}

/// Asks for the B4's end of its tunnel.
#[derive(Message)]
#[message(request, reply = DsliteGetB4AddrReply)]
pub struct DsliteGetB4Addr {}

/// The B4's end of its tunnel.
#[derive(Message)]
#[message(reply)]
pub struct DsliteGetB4AddrReply {
    pub retval: i32,
    pub ip4_addr: Ipv4Addr,
    pub ip6_addr: Ipv6Addr,
}

impl Request for DsliteGetB4Addr {
    fn handle(self, call: &Call) -> Result<DsliteGetB4AddrReply, Retval> {
        let TunnelAddresses { ip4, ip6 } = dslite(call)?.b4().unwrap_or(NO_END);
        Ok(DsliteGetB4AddrReply { retval: 0, ip4_addr: ip4, ip6_addr: ip6 })
    }
}
