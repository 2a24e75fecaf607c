//! Messages: `arp.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::Ipv4Addr;
use std::ops::Bound;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::ProxyError;

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "arp",
    folder: Folder::Core,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<ProxyArpAddDel>(),
        ApiMessage::dump::<ProxyArpDump>(),
        ApiMessage::sent::<ProxyArpDetails>(),
        ApiMessage::request::<ProxyArpIntfcEnableDisable>(),
        ApiMessage::dump::<ProxyArpIntfcDump>(),
        ApiMessage::sent::<ProxyArpIntfcDetails>(),
    ],
};

/// Addresses that are answered for.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyArp {
    /// The table they belong to.
    pub table_id: u32,
    /// The first one.
    pub low: Ipv4Addr,
    /// The last one.
    pub hi: Ipv4Addr,
}

impl From<ProxyError> for Retval {
    fn from(error: ProxyError) -> Self {
        match error {
            ProxyError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            ProxyError::Fib(_) => Retval::NO_SUCH_FIB,
            ProxyError::Empty(..) | ProxyError::NoHosts(..) => Retval::INVALID_VALUE,
            ProxyError::NoRange { .. } => Retval::NO_SUCH_ENTRY,
            ProxyError::Full(_) => Retval::LIMIT_EXCEEDED,
            ProxyError::NotEthernet(_) => Retval::NON_ETHERNET,
        }
    }
}

/// Answers ARP requests for addresses of other hosts, or no longer.
#[derive(Message)]
#[message(request)]
pub struct ProxyArpAddDel {
    pub is_add: bool,
    pub proxy: ProxyArp,
}

impl Request for ProxyArpAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let proxy = call.get::<crate::ProxyArp>().map_err(|_| Retval::UNSPECIFIED)?;
        let ProxyArp { table_id, low, hi } = self.proxy;
        Ok(if self.is_add { proxy.add(table_id, low, hi) } else { proxy.remove(table_id, low, hi) }?)
    }
}

/// Asks for the addresses for which ARP requests are answered.
#[derive(Message)]
#[message(request, details = ProxyArpDetails)]
pub struct ProxyArpDump {}

/// Addresses that are answered for.
#[derive(Message)]
#[message(reply)]
pub struct ProxyArpDetails {
    pub proxy: ProxyArp,
}

impl Dump for ProxyArpDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = ProxyArpDetails> + 'static {
        let (proxy, mut after) = (call.get::<crate::ProxyArp>().ok(), Bound::Unbounded);
        std::iter::from_fn(move || {
            let (table_id, range) = proxy.as_ref()?.range_after(after)?;
            after = Bound::Excluded(range);
            Some(ProxyArpDetails { proxy: ProxyArp { table_id, low: range.first, hi: range.last } })
        })
    }
}

/// Lets an interface answer ARP requests for other hosts, or no longer.
#[derive(Message)]
#[message(request)]
pub struct ProxyArpIntfcEnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub enable: bool,
}

impl Request for ProxyArpIntfcEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let proxy = call.get::<crate::ProxyArp>().map_err(|_| Retval::UNSPECIFIED)?;
        Ok(proxy.enable(SwIfIndex(self.sw_if_index.0), self.enable)?)
    }
}

/// Asks which interfaces answer ARP requests for other hosts.
#[derive(Message)]
#[message(request, details = ProxyArpIntfcDetails)]
pub struct ProxyArpIntfcDump {}

/// An interface that answers ARP requests for other hosts.
#[derive(Message)]
#[message(reply)]
pub struct ProxyArpIntfcDetails {
    pub sw_if_index: u32,
}

impl Dump for ProxyArpIntfcDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = ProxyArpIntfcDetails> + 'static {
        // There are no more of them than interfaces: four bytes each.
        let all = call.get::<crate::ProxyArp>().map(|proxy| proxy.enabled()).unwrap_or_default();
        all.into_iter().map(|interface| ProxyArpIntfcDetails { sw_if_index: interface.0 })
    }
}
