//! Messages: `ip_container_proxy_add_del`, `ip_container_proxy_dump`.

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Prefix, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};
use shoal_wire::IpPrefix;

use crate::{ContainerProxy, ProxyError};

/// Messages that VPP has in `ip.api`.
pub static API: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[
        ApiMessage::request::<IpContainerProxyAddDel>(),
        ApiMessage::dump::<IpContainerProxyDump>(),
        ApiMessage::sent::<IpContainerProxyDetails>(),
    ],
};

/// Takes packets to a prefix behind an interface, or no longer.
#[derive(Message)]
#[message(request)]
pub struct IpContainerProxyAddDel {
    /// Whose packets.
    pub pfx: Prefix,
    /// The interface; the prefix is in its table.
    pub sw_if_index: InterfaceIndex,
    /// Whether they are taken.
    #[preset("true")]
    pub is_add: bool,
}

/// Asks whose packets are taken.
#[derive(Message)]
#[message(request, details = IpContainerProxyDetails)]
pub struct IpContainerProxyDump {}

/// Whose packets are taken.
#[derive(Message)]
#[message(reply)]
pub struct IpContainerProxyDetails {
    /// The interface they are behind.
    pub sw_if_index: InterfaceIndex,
    /// The prefix.
    pub prefix: Prefix,
}

impl Request for IpContainerProxyAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let proxy = call.get::<ContainerProxy>().map_err(|_| Retval::UNSPECIFIED)?;
        let prefix =
            IpPrefix::new(self.pfx.address, self.pfx.len).map_err(|_| Retval::INVALID_PREFIX_LENGTH)?;
        let interface = SwIfIndex(self.sw_if_index.0);
        let done = if self.is_add { proxy.add(prefix, interface) } else { proxy.remove(prefix, interface) };
        match done {
            // As in VPP, what is not there is gone.
            Ok(()) | Err(ProxyError::NotProxied(..)) => Ok(()),
            Err(ProxyError::Interface(_)) => Err(Retval::INVALID_INTERFACE),
            Err(ProxyError::Fib(e)) => Err(shoal_fib::api::retval(&e)),
        }
    }
}

impl Dump for IpContainerProxyDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpContainerProxyDetails> + 'static {
        let all = call.get::<ContainerProxy>().map(|proxy| proxy.list()).unwrap_or_default();
        all.into_iter().map(|(prefix, interface)| IpContainerProxyDetails {
            sw_if_index: InterfaceIndex(interface.0),
            prefix: Prefix { address: prefix.addr(), len: prefix.len() },
        })
    }
}
