//! What rebuilds DHCP.

use std::fmt::Write;

use shoal_adj::Family;
use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::client_message6::Wanted;
use crate::{Dhcp, VirtualSubnet};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(dhcp) = running.part::<Dhcp>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let mut line = |line: String| running.line(Phase::Policies, line);
    for (family, words) in [(Family::Ip4, "dhcp"), (Family::Ip6, "dhcpv6")] {
        for relay in dhcp.relays(family) {
            for server in &relay.servers {
                let mut text =
                    format!("set {words} proxy server {} src-address {}", server.address, relay.source);
                for (word, vrf) in [("server-fib-id", server.vrf), ("rx-fib-id", relay.vrf)] {
                    if vrf > 0 {
                        let _ = write!(text, " {word} {vrf}");
                    }
                }
                line(text);
            }
        }
        let words = if family == Family::Ip4 { "dhcp option-82" } else { "dhcpv6" };
        for (vrf, subnet) in dhcp.subnets(family) {
            let what = match subnet {
                VirtualSubnet::Name(name) => format!("vpn-ascii-id {}", word(&name)),
                VirtualSubnet::Number { organisation, vpn } => format!("oui {organisation} vpn-id {vpn}"),
                VirtualSubnet::Default => "default".to_owned(),
            };
            line(format!("set {words} vss table {vrf} {what}"));
        }
    }
    for client in dhcp.clients() {
        let Ok(name) = interfaces.name(client.interface) else { continue };
        let mut text = format!("set dhcp client intfc {}", word(&name));
        if !client.asks.hostname.is_empty() {
            let _ = write!(text, " hostname {}", word(&client.asks.hostname));
        }
        if let Ok(id) = str::from_utf8(&client.asks.id)
            && !id.is_empty()
        {
            let _ = write!(text, " client-id {}", word(id));
        }
        if client.asks.broadcast {
            text += " broadcast";
        }
        if client.asks.tos > 0 {
            let _ = write!(text, " dscp {}", client.asks.tos);
        }
        line(text);
    }
    if let Some(duid) = dhcp.given_duid() {
        line(format!("dhcp6 duid {}", crate::cli6::hex(&duid)));
    }
    for client in dhcp.clients6() {
        let Ok(name) = interfaces.name(client.interface) else { continue };
        let name = word(&name);
        line(match client.wanted {
            Wanted::Addresses => format!("dhcp6 client {name}"),
            Wanted::Prefixes => format!("dhcp6 pd client {name} prefix group {}", word(&client.group)),
        });
    }
    for of in dhcp.from_prefixes() {
        if let Ok(name) = interfaces.name(of.interface) {
            line(format!("set ip6 address {} prefix group {} {}", word(&name), word(&of.group), of.rest));
        }
    }
}
