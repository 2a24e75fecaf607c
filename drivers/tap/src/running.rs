//! What rebuilds TAPs that an operator made.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};
use shoal_wire::MacAddress;

use crate::{Coalesce, Lifetime, Mode, NetnsRef, Offload, TapInfo, Taps, VhostNet};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(taps), Some(interfaces)) = (running.part::<Taps>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    for info in taps.list(None).unwrap_or_default() {
        if interfaces.follows(info.index) {
            continue;
        }
        let mac = interfaces.data(info.index).map(|data| data.mac()).unwrap_or_default();
        let kind = if info.config.tap.mode == Mode::Tap { "tap" } else { "tun" };
        let made_as = format!("{kind}{}", info.id);
        interfaces.write_create(running, info.index, line(&info, mac), &made_as);
        if info.config.tap.offload == Offload::Nothing {
            let line = format!("set tap offload {} csum-offload-disable", word(&info.name));
            running.line_at(Phase::Settings, info.index.0, line);
        }
    }
}

fn line(info: &TapInfo, mac: MacAddress) -> String {
    let (config, tap) = (&info.config, &info.config.tap);
    let host = &tap.host;
    let mut line = format!("create tap id {}", info.id);
    let mut say = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(line, " {name} {value}");
        }
    };
    // Also those that were drawn: hosts that know the router by them still do after a restart.
    say("hw-addr", (!mac.is_zero()).then(|| mac.to_string()));
    say("host-if-name", tap.name.as_deref().map(|name| word(name).into_owned()));
    let netns = host.netns.as_ref().map(|netns| match netns {
        NetnsRef::Name(name) => word(name).into_owned(),
        NetnsRef::Pid(pid) => format!("pid:{pid}"),
        NetnsRef::Path(path) => word(&path.display().to_string()).into_owned(),
    });
    say("host-ns", netns);
    say("host-mac-addr", host.mac.map(|mac| MacAddress(mac).to_string()));
    for address in &host.addresses {
        let name = if address.addr.is_ipv4() { "host-ip4-addr" } else { "host-ip6-addr" };
        say(name, Some(format!("{}/{}", address.addr, address.prefix_len)));
    }
    say("host-ip4-gw", host.ip4_gateway.map(|gateway| gateway.to_string()));
    say("host-ip6-gw", host.ip6_gateway.map(|gateway| gateway.to_string()));
    say("host-bridge", host.bridge.as_deref().map(|bridge| word(bridge).into_owned()));
    say("host-mtu-size", host.mtu.map(|mtu| mtu.to_string()));
    say("num-rx-queues", config.rx_queues.map(|n| n.to_string()));
    say("num-tx-queues", config.tx_queues.map(|n| n.to_string()));
    let [rx, tx] = config.ring_sizes;
    say("rx-ring-size", rx.map(|n| n.to_string()));
    say("tx-ring-size", tx.map(|n| n.to_string()));
    line.push_str(match tap.lifetime {
        Lifetime::Temporary | Lifetime::Inherited => "",
        Lifetime::Persistent => " persist",
        Lifetime::Attached => " attach",
    });
    line.push_str(if tap.mode == Mode::Tun { " tun" } else { "" });
    line.push_str(if tap.offload == Offload::Checksum { " no-gso" } else { "" });
    line.push_str(if config.coalesce == Coalesce::On { " gro-coalesce" } else { "" });
    line.push_str(match config.vhost {
        VhostNet::Auto => "",
        VhostNet::On => " vhost-net",
        VhostNet::Off => " no-vhost-net",
    });
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, CreateTap, HostConfig, TapConfig};
    use shoal_interface::SwIfIndex;

    #[test]
    fn a_tap_is_written_with_everything_that_was_asked_for() {
        let host = HostConfig {
            netns: Some(NetnsRef::Name("blue".into())),
            mac: Some([2, 0xfe, 0, 0, 0, 9]),
            mtu: Some(9000),
            addresses: vec![
                Address { addr: "10.0.0.1".parse().unwrap(), prefix_len: 24 },
                Address { addr: "2001:db8::1".parse().unwrap(), prefix_len: 64 },
            ],
            ip4_gateway: Some("10.0.0.254".parse().unwrap()),
            ip6_gateway: Some("2001:db8::fe".parse().unwrap()),
            bridge: Some("br0".into()),
            ..HostConfig::default()
        };
        let tap = TapConfig {
            name: Some("lstack".into()),
            lifetime: Lifetime::Persistent,
            host,
            ..TapConfig::default()
        };
        let config =
            CreateTap { rx_queues: Some(2), ring_sizes: [Some(1024), None], tap, ..CreateTap::default() };
        let config = CreateTap { vhost: VhostNet::Off, ..config };
        let info = TapInfo {
            index: SwIfIndex(3),
            name: "tap7".into(),
            id: 7,
            config,
            tx_queues: 1,
            host_ifindex: 9,
            carrier: true,
            gone: false,
            refused: 0,
            vhost: Err("not asked for".into()),
        };
        assert_eq!(
            line(&info, MacAddress([2, 0xfe, 0, 0, 0, 1])),
            "create tap id 7 hw-addr 02:fe:00:00:00:01 host-if-name lstack host-ns blue \
             host-mac-addr 02:fe:00:00:00:09 host-ip4-addr 10.0.0.1/24 host-ip6-addr 2001:db8::1/64 \
             host-ip4-gw 10.0.0.254 host-ip6-gw 2001:db8::fe host-bridge br0 host-mtu-size 9000 num-rx-queues 2 \
             rx-ring-size 1024 persist no-vhost-net"
        );
    }
}
