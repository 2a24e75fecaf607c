//! Messages: `dhcp.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_message::{Count, InterfaceIndex, IpDscp, MacAddress, Message, Retval, Text, Value};
use shoal_module::Control;
use shoal_module::api::{ApiMessage, ApiPart, Call, ClientIndex, Clients, Dump, Folder, Request};

use crate::api6;
use crate::client::State;
use crate::{ClientIdentity, ClientInfo, Dhcp, RelayInfo, Server, VirtualSubnet};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "dhcp",
    folder: Folder::Plugins,
    version: "3.0.1",
    messages: &[
        ApiMessage::request::<DhcpPluginGetVersion>(),
        ApiMessage::sent::<DhcpPluginGetVersionReply>(),
        ApiMessage::request::<DhcpPluginControlPing>(),
        ApiMessage::sent::<DhcpPluginControlPingReply>(),
        ApiMessage::request::<DhcpProxyConfig>(),
        ApiMessage::request::<DhcpProxySetVss>(),
        ApiMessage::dump::<DhcpProxyDump>(),
        ApiMessage::sent::<DhcpProxyDetails>(),
        ApiMessage::request::<DhcpClientConfig>(),
        ApiMessage::sent::<DhcpComplEvent>(),
        ApiMessage::dump::<DhcpClientDump>(),
        ApiMessage::sent::<DhcpClientDetails>(),
        ApiMessage::request::<DhcpClientDetectEnableDisable>(),
        ApiMessage::request::<api6::Dhcp6DuidLlSet>(),
        ApiMessage::request::<api6::Dhcp6ClientsEnableDisable>(),
        ApiMessage::request::<api6::Dhcp6SendClientMessage>(),
        ApiMessage::request::<api6::Dhcp6PdSendClientMessage>(),
        ApiMessage::request::<api6::WantDhcp6ReplyEvents>(),
        ApiMessage::request::<api6::WantDhcp6PdReplyEvents>(),
        ApiMessage::sent::<api6::Dhcp6ReplyEvent>(),
        ApiMessage::sent::<api6::Dhcp6PdReplyEvent>(),
    ],
};

/// What tells VPNs apart.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("VSS_TYPE_API_ASCII", 0)]
#[entry("VSS_TYPE_API_VPN_ID", 1)]
#[entry("VSS_TYPE_API_INVALID", 123)]
#[entry("VSS_TYPE_API_DEFAULT", 255)]
pub struct VssType(pub u32);

/// How far a client is.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("DHCP_CLIENT_STATE_API_DISCOVER", 0)]
#[entry("DHCP_CLIENT_STATE_API_REQUEST", 1)]
#[entry("DHCP_CLIENT_STATE_API_BOUND", 2)]
pub struct DhcpClientState(pub u32);

fn dhcp(call: &Call) -> Result<Rc<Dhcp>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// Asks for the version of these messages.
#[derive(Message)]
#[message(request, reply = DhcpPluginGetVersionReply)]
pub struct DhcpPluginGetVersion {}

/// The version of these messages.
#[derive(Message)]
#[message(reply)]
pub struct DhcpPluginGetVersionReply {
    pub major: u32,
    pub minor: u32,
}

impl Request for DhcpPluginGetVersion {
    fn handle(self, _: &Call) -> Result<DhcpPluginGetVersionReply, Retval> {
        Ok(DhcpPluginGetVersionReply { major: 1, minor: 0 })
    }
}

/// Asks for an answer.
#[derive(Message)]
#[message(request, reply = DhcpPluginControlPingReply)]
pub struct DhcpPluginControlPing {}

/// The answer.
#[derive(Message)]
#[message(reply)]
pub struct DhcpPluginControlPingReply {
    pub retval: i32,
    pub client_index: u32,
    pub vpe_pid: u32,
}

impl Request for DhcpPluginControlPing {
    fn handle(self, call: &Call) -> Result<DhcpPluginControlPingReply, Retval> {
        let (retval, client_index) = (0, call.client.0);
        Ok(DhcpPluginControlPingReply { retval, client_index, vpe_pid: std::process::id() })
    }
}

/// Hands messages of a VRF's hosts on to a server, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct DhcpProxyConfig {
    pub rx_vrf_id: u32,
    pub server_vrf_id: u32,
    pub is_add: bool,
    pub dhcp_server: IpAddr,
    pub dhcp_src_address: IpAddr,
}

impl Request for DhcpProxyConfig {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (dhcp, server) = (dhcp(call)?, Server { address: self.dhcp_server, vrf: self.server_vrf_id });
        Ok(if self.is_add {
            dhcp.add_server(self.rx_vrf_id, server, self.dhcp_src_address)
        } else {
            dhcp.del_server(self.rx_vrf_id, server)
        }?)
    }
}

fn family(is_ip6: bool) -> Family {
    if is_ip6 { Family::Ip6 } else { Family::Ip4 }
}

/// Says which VPN the hosts of a VRF are in, or that they are in none.
#[derive(Message)]
#[message(request)]
pub struct DhcpProxySetVss {
    pub tbl_id: u32,
    pub vss_type: VssType,
    pub vpn_ascii_id: Text<129>,
    pub oui: u32,
    pub vpn_index: u32,
    pub is_ipv6: bool,
    pub is_add: bool,
}

impl Request for DhcpProxySetVss {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (dhcp, family) = (dhcp(call)?, family(self.is_ipv6));
        if !self.is_add {
            return Ok(dhcp.del_subnet(family, self.tbl_id)?);
        }
        let subnet = match self.vss_type.0 {
            0 => VirtualSubnet::Name(self.vpn_ascii_id.as_str().to_owned()),
            1 => VirtualSubnet::Number { organisation: self.oui, vpn: self.vpn_index },
            255 => VirtualSubnet::Default,
            _ => return Err(Retval::INVALID_VALUE),
        };
        Ok(dhcp.set_subnet(family, self.tbl_id, subnet)?)
    }
}

/// A server that messages are handed on to.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhcpServer {
    pub server_vrf_id: u32,
    pub dhcp_server: IpAddr,
}

/// Asks for servers that messages are handed on to.
#[derive(Message)]
#[message(request, details = DhcpProxyDetails)]
pub struct DhcpProxyDump {
    pub is_ip6: bool,
}

/// Servers of a VRF's hosts.
#[derive(Message)]
#[message(reply)]
pub struct DhcpProxyDetails {
    pub rx_vrf_id: u32,
    pub vss_oui: u32,
    pub vss_fib_id: u32,
    pub vss_type: VssType,
    pub is_ipv6: bool,
    pub vss_vpn_ascii_id: Text<129>,
    pub dhcp_src_address: IpAddr,
    pub count: Count<u8>,
    #[counted_by(count)]
    pub servers: Vec<DhcpServer>,
}

fn details(is_ipv6: bool, relay: RelayInfo) -> DhcpProxyDetails {
    let (vss_type, vss_oui, vss_fib_id, name) = match relay.subnet {
        None => (123, 0, 0, String::new()),
        Some(VirtualSubnet::Name(name)) => (0, 0, 0, name),
        Some(VirtualSubnet::Number { organisation, vpn }) => (1, organisation, vpn, String::new()),
        Some(VirtualSubnet::Default) => (255, 0, 0, String::new()),
    };
    let server = |one: &Server| DhcpServer { server_vrf_id: one.vrf, dhcp_server: one.address };
    DhcpProxyDetails {
        rx_vrf_id: relay.vrf,
        vss_oui,
        vss_fib_id,
        vss_type: VssType(vss_type),
        is_ipv6,
        vss_vpn_ascii_id: Text::from(name.as_str()),
        dhcp_src_address: relay.source,
        count: Count::default(),
        servers: relay.servers.iter().map(server).collect(),
    }
}

impl Dump for DhcpProxyDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = DhcpProxyDetails> + 'static {
        let relays = dhcp(call).map(|dhcp| dhcp.relays(family(self.is_ip6))).unwrap_or_default();
        relays.into_iter().map(move |relay| details(self.is_ip6, relay))
    }
}

/// A client, as it is asked for.
#[derive(Value, Clone, Debug, PartialEq, Eq)]
pub struct DhcpClient {
    pub sw_if_index: InterfaceIndex,
    pub hostname: Text<64>,
    pub id: [u8; 64],
    pub want_dhcp_event: bool,
    pub set_broadcast_flag: bool,
    pub dscp: IpDscp,
    pub pid: u32,
}

/// A server of names.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainServer {
    pub address: IpAddr,
}

/// What a client has.
#[derive(Value, Clone, Debug, PartialEq, Eq)]
pub struct DhcpLease {
    pub sw_if_index: InterfaceIndex,
    pub state: DhcpClientState,
    pub is_ipv6: bool,
    pub hostname: Text<64>,
    pub mask_width: u8,
    pub host_address: IpAddr,
    pub router_address: IpAddr,
    pub host_mac: MacAddress,
    pub count: Count<u8>,
    #[counted_by(count)]
    pub domain_server: Vec<DomainServer>,
}

/// Has an interface get its address from a server, or does so no more.
#[derive(Message)]
#[message(request, events = DhcpComplEvent)]
pub struct DhcpClientConfig {
    pub is_add: bool,
    pub client: DhcpClient,
}

impl Request for DhcpClientConfig {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (dhcp, client) = (dhcp(call)?, self.client);
        let interface = SwIfIndex(client.sw_if_index.0);
        if !self.is_add {
            return Ok(dhcp.del_client(interface)?);
        }
        let end = client.id.iter().position(|byte| *byte == 0).unwrap_or(client.id.len());
        let asks = ClientIdentity {
            hostname: client.hostname.as_str().to_owned(),
            id: client.id.get(..end).unwrap_or_default().to_vec(),
            broadcast: client.set_broadcast_flag,
            tos: client.dscp.0,
            tells: client.want_dhcp_event.then_some((call.client, client.pid)),
        };
        Ok(dhcp.add_client(interface, asks)?)
    }
}

/// A client has a lease.
#[derive(Message)]
#[message(event)]
pub struct DhcpComplEvent {
    pub lease: DhcpLease,
}

fn lease(info: &ClientInfo) -> DhcpLease {
    let none = Ipv4Addr::UNSPECIFIED;
    let (address, router, names) = match &info.lease {
        Some(lease) => (Some(lease.address), lease.router.unwrap_or(none), lease.name_servers.clone()),
        None => (None, none, Vec::new()),
    };
    DhcpLease {
        sw_if_index: InterfaceIndex(info.interface.0),
        state: DhcpClientState(info.state as u32),
        is_ipv6: false,
        hostname: Text::from(info.asks.hostname.as_str()),
        mask_width: address.map_or(0, |address| address.len()),
        host_address: address.map_or(none, |address| address.addr()).into(),
        router_address: router.into(),
        host_mac: MacAddress(info.mac.0),
        count: Count::default(),
        domain_server: names.into_iter().map(|name| DomainServer { address: name.into() }).collect(),
    }
}

/// Tells who wanted to know that a client has a lease.
pub(crate) fn bound(control: &Rc<Control>, (client, pid): (ClientIndex, u32), info: &ClientInfo) {
    debug_assert!(info.state == State::Bound, "told when it has one");
    if let Ok(clients) = control.get::<Clients>() {
        clients.send(client, pid, &DhcpComplEvent { lease: lease(info) });
    }
}

/// Asks for clients.
#[derive(Message)]
#[message(request, details = DhcpClientDetails)]
pub struct DhcpClientDump {}

/// A client, and what it has.
#[derive(Message)]
#[message(reply)]
pub struct DhcpClientDetails {
    pub client: DhcpClient,
    pub lease: DhcpLease,
}

impl Dump for DhcpClientDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = DhcpClientDetails> + 'static {
        let all = dhcp(call).map(|dhcp| dhcp.clients()).unwrap_or_default();
        all.into_iter().map(|info| {
            let mut id = [0; 64];
            id.iter_mut().zip(&info.asks.id).for_each(|(to, from)| *to = *from);
            let client = DhcpClient {
                sw_if_index: InterfaceIndex(info.interface.0),
                hostname: Text::from(info.asks.hostname.as_str()),
                id,
                want_dhcp_event: info.asks.tells.is_some(),
                set_broadcast_flag: info.asks.broadcast,
                dscp: IpDscp(info.asks.tos),
                pid: info.asks.tells.map_or(0, |(_, pid)| pid),
            };
            DhcpClientDetails { client, lease: lease(&info) }
        })
    }
}

/// Has answers to a client of another part of the router taken from an interface, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct DhcpClientDetectEnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub enable: bool,
}

impl Request for DhcpClientDetectEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(dhcp(call)?.set_detect(SwIfIndex(self.sw_if_index.0), self.enable)?)
    }
}
