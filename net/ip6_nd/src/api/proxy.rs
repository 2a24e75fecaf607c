//! `ip6nd_proxy_*`: whose solicitations are answered for others.

use std::net::Ipv6Addr;
use std::ops::Bound;

use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{Call, Dump, Request};

use super::{interface, nd};
use crate::{Nd, Proxy};

/// Answers solicitations for the address of a host on another link, or no longer.
#[derive(Message)]
#[message(request)]
pub struct Ip6ndProxyAddDel {
    /// The link whose stations are answered.
    pub sw_if_index: InterfaceIndex,
    pub is_add: bool,
    /// The address.
    pub ip: Ipv6Addr,
}

impl Request for Ip6ndProxyAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let on = if self.is_add { Proxy::Answer } else { Proxy::Ignore };
        Ok(nd(call)?.set_proxy(interface(call, self.sw_if_index)?, self.ip, on)?)
    }
}

/// Answers the solicitations of an interface's hosts for everybody, or no longer.
#[derive(Message)]
#[message(request)]
pub struct Ip6ndProxyEnableDisable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    pub is_enable: bool,
}

impl Request for Ip6ndProxyEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let on = if self.is_enable { Proxy::Answer } else { Proxy::Ignore };
        Ok(nd(call)?.set_mirror(interface(call, self.sw_if_index)?, on)?)
    }
}

/// Asks which addresses are answered for.
#[derive(Message)]
#[message(request, details = Ip6ndProxyDetails)]
pub struct Ip6ndProxyDump {}

/// An address that is answered for.
#[derive(Message)]
#[message(reply)]
pub struct Ip6ndProxyDetails {
    /// The link whose stations are answered.
    pub sw_if_index: InterfaceIndex,
    /// The address.
    pub ip: Ipv6Addr,
}

impl Dump for Ip6ndProxyDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Ip6ndProxyDetails> + 'static {
        let (nd, mut after) = (call.get::<Nd>().ok(), Bound::Unbounded);
        std::iter::from_fn(move || {
            let key = nd.as_ref()?.proxied_after(after)?;
            after = Bound::Excluded(key);
            Some(Ip6ndProxyDetails { sw_if_index: InterfaceIndex(key.0.0), ip: key.1 })
        })
    }
}
