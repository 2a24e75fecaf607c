//! TAPs that features ask for: see [`shoal_interface::HostPorts`].

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use netlink_packet_route::link::LinkAttribute;
use shoal_interface::{
    HostChange, HostEventHandler, HostLayer, HostListener, HostPort, HostPorts, SwIfIndex,
};
use shoal_wire::MacAddress;

use crate::{
    Address, AdminState, CreateTap, Error, HostConfig, Lifetime, Mode, NetnsRef, TapConfig, Taps, host, kept,
    listen, netns,
};

impl HostPorts for Taps {
    fn create(&self, port: &HostPort) -> Result<SwIfIndex, String> {
        let host = HostConfig {
            netns: port.netns.clone().map(NetnsRef::Name),
            mac: Some(port.mac.0),
            mtu: Some(port.mtu.into()),
            admin: if port.up { AdminState::Up } else { AdminState::Down },
            ..HostConfig::default()
        };
        let (mode, host) = match port.layer {
            HostLayer::Ethernet => (Mode::Tap, host),
            HostLayer::Ip => (Mode::Tun, HostConfig { mac: None, ..host }),
        };
        let netns = host.netns.clone();
        let tap = TapConfig { name: Some(port.name.clone()), host, mode, ..TapConfig::default() };
        let mut create = CreateTap { tap, ..CreateTap::default() };
        if self.kept.take(netns.as_ref(), &port.name) {
            create.tap.lifetime = Lifetime::Inherited;
            match Taps::create(self, &create) {
                Ok(index) => return self.follows(index).map(|()| index).map_err(|e| e.to_string()),
                Err(error) => {
                    tracing::warn!("{} of an earlier start is not taken over: {error}", port.name);
                    kept::discard(netns.as_ref(), &port.name);
                    create.tap.lifetime = Lifetime::Temporary;
                }
            }
        }
        let index = Taps::create(self, &create).map_err(|e| e.to_string())?;
        self.follows(index).map_err(|e| e.to_string())?;
        self.keep(index);
        Ok(index)
    }

    fn delete(&self, interface: SwIfIndex) -> Result<(), String> {
        Taps::delete(self, interface).map_err(|e| e.to_string())
    }

    fn host_index(&self, interface: SwIfIndex) -> Option<u32> {
        self.list(Some(interface)).ok()?.first().map(|tap| tap.host_ifindex)
    }

    fn set_up(&self, interface: SwIfIndex, up: bool) -> Result<(), String> {
        self.set_host_up(interface, up).map_err(|e| e.to_string())
    }

    fn is_up(&self, interface: SwIfIndex) -> Option<bool> {
        self.change(interface, host::is_up).ok()
    }

    fn set_carrier(&self, interface: SwIfIndex, plugged: bool) -> Result<(), String> {
        Taps::set_carrier(self, interface, plugged).map_err(|e| e.to_string())
    }

    fn listen(&self, netns: Option<&str>, hear: HostEventHandler) -> Result<Box<dyn HostListener>, String> {
        listen::listen(self.processes(), netns, hear).map_err(|e| e.to_string())
    }

    fn listen_tcp(&self, netns: &str, at: SocketAddr) -> Result<TcpListener, String> {
        let netns = netns::open(&NetnsRef::Name(netns.to_owned())).map_err(|e| e.to_string())?;
        let bind = || TcpListener::bind(at).map_err(Error::os("bind"));
        netns::run_in(Some(&netns), bind).map_err(|e| e.to_string())
    }

    fn connect_tcp(&self, netns: &str, at: SocketAddr) -> Result<TcpStream, String> {
        let netns = netns::open(&NetnsRef::Name(netns.to_owned())).map_err(|e| e.to_string())?;
        netns::run_in(Some(&netns), || begin_to_connect(at)).map_err(|e| e.to_string())
    }

    fn set_mtu(&self, interface: SwIfIndex, mtu: u16) -> Result<(), String> {
        self.change(interface, |index| host::set(index, LinkAttribute::Mtu(mtu.into())))
    }

    fn set_mac(&self, interface: SwIfIndex, mac: MacAddress) -> Result<(), String> {
        self.change(interface, |index| host::set(index, LinkAttribute::Address(mac.0.to_vec())))
    }

    fn set_address(
        &self,
        interface: SwIfIndex,
        (addr, prefix_len): (IpAddr, u8),
        present: bool,
    ) -> Result<(), String> {
        let change = if present { host::add_address } else { host::del_address };
        self.change(interface, |index| change(index, Address { addr, prefix_len }))
    }

    fn change_link(&self, interface: SwIfIndex, host_index: u32, change: HostChange) -> Result<(), String> {
        self.change(interface, |_| match change {
            HostChange::Up(up) => host::set_up(host_index, up),
            HostChange::Mtu(mtu) => host::set(host_index, LinkAttribute::Mtu(mtu.into())),
            HostChange::Address((addr, prefix_len), true) => {
                host::add_address(host_index, Address { addr, prefix_len })
            }
            HostChange::Address((addr, prefix_len), false) => {
                host::del_address(host_index, Address { addr, prefix_len })
            }
        })
    }
}

/// A socket that does not block, on its way to an address.
fn begin_to_connect(at: SocketAddr) -> Result<TcpStream, Error> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)
        .map_err(|e| Error::os("socket")(e.into()))?;
    match rustix::net::connect(&socket, &at) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(e) => Err(Error::os("connect")(e.into())),
    }
}
