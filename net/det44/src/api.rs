//! Messages: `det44.api`. Those called `nat_det` are older names of the same.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};
use shoal_wire::Ip4Prefix;

use crate::config::{Map, Share, Timeouts};
use crate::sessions::Record;
use crate::{Det44, Enable, Side};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "det44",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<Det44PluginEnableDisable>(),
        ApiMessage::request::<Det44InterfaceAddDelFeature>(),
        ApiMessage::dump::<Det44InterfaceDump>(),
        ApiMessage::sent::<Det44InterfaceDetails>(),
        ApiMessage::request::<Det44AddDelMap>(),
        ApiMessage::request::<Det44Forward>(),
        ApiMessage::sent::<Det44ForwardReply>(),
        ApiMessage::request::<Det44Reverse>(),
        ApiMessage::sent::<Det44ReverseReply>(),
        ApiMessage::dump::<Det44MapDump>(),
        ApiMessage::sent::<Det44MapDetails>(),
        ApiMessage::request::<Det44CloseSessionOut>(),
        ApiMessage::request::<Det44CloseSessionIn>(),
        ApiMessage::dump::<Det44SessionDump>(),
        ApiMessage::sent::<Det44SessionDetails>(),
        ApiMessage::request::<Det44SetTimeouts>(),
        ApiMessage::request::<Det44GetTimeouts>(),
        ApiMessage::sent::<Det44GetTimeoutsReply>(),
        ApiMessage::request::<NatDetAddDelMap>(),
        ApiMessage::request::<NatDetForward>(),
        ApiMessage::sent::<NatDetForwardReply>(),
        ApiMessage::request::<NatDetReverse>(),
        ApiMessage::sent::<NatDetReverseReply>(),
        ApiMessage::dump::<NatDetMapDump>(),
        ApiMessage::sent::<NatDetMapDetails>(),
        ApiMessage::request::<NatDetCloseSessionOut>(),
        ApiMessage::request::<NatDetCloseSessionIn>(),
        ApiMessage::dump::<NatDetSessionDump>(),
        ApiMessage::sent::<NatDetSessionDetails>(),
    ],
};

fn det44(call: &Call) -> Result<Rc<Det44>, Retval> {
    call.get::<Det44>().map_err(|_| Retval::UNSPECIFIED)
}

fn prefix(address: Ipv4Addr, length: u8) -> Result<Ip4Prefix, Retval> {
    Ip4Prefix::new(address, length).map_err(|_| Retval::INVALID_VALUE)
}

fn change_map(
    call: &Call,
    is_add: bool,
    inside: (Ipv4Addr, u8),
    outside: (Ipv4Addr, u8),
) -> Result<(), Retval> {
    let (inside, outside) = (prefix(inside.0, inside.1)?, prefix(outside.0, outside.1)?);
    let det44 = det44(call)?;
    Ok(if is_add { det44.add_map(inside, outside) } else { det44.del_map(inside, outside) }?)
}

/// Maps, and how many sessions the hosts of each have.
fn maps(call: &Call) -> Vec<(Map, u32)> {
    let Ok(det44) = det44(call) else { return Vec::new() };
    let sessions = det44.sessions().unwrap_or_default();
    let of = |map: Map| {
        let count = sessions.iter().filter(|record| map.inside.contains(record.flow.host)).count();
        (map, u32::try_from(count).unwrap_or(u32::MAX))
    };
    det44.maps().into_iter().map(of).collect()
}

/// Sessions of a host.
fn sessions(call: &Call, host: Ipv4Addr) -> Vec<Record> {
    let all = det44(call).ok().and_then(|det44| det44.sessions().ok()).unwrap_or_default();
    all.into_iter().filter(|record| record.flow.host == host).collect()
}

/// Switches DET44 on or off.
#[derive(Message)]
#[message(request)]
pub struct Det44PluginEnableDisable {
    pub inside_vrf: u32,
    pub outside_vrf: u32,
    pub enable: bool,
}

impl Request for Det44PluginEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (det44, Self { inside_vrf, outside_vrf, enable }) = (det44(call)?, self);
        Ok(if enable { det44.enable(Enable { inside_vrf, outside_vrf }) } else { det44.disable() }?)
    }
}

/// Puts an interface on a side, or takes it from there.
#[derive(Message)]
#[message(request)]
pub struct Det44InterfaceAddDelFeature {
    pub is_add: bool,
    pub is_inside: bool,
    pub sw_if_index: InterfaceIndex,
}

impl Request for Det44InterfaceAddDelFeature {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let side = if self.is_inside { Side::Inside } else { Side::Outside };
        Ok(det44(call)?.set_side(SwIfIndex(self.sw_if_index.0), side, self.is_add)?)
    }
}

/// Asks for interfaces on sides.
#[derive(Message)]
#[message(request, details = Det44InterfaceDetails)]
pub struct Det44InterfaceDump {}

/// An interface on one side or both.
#[derive(Message)]
#[message(reply)]
pub struct Det44InterfaceDetails {
    pub is_inside: bool,
    pub is_outside: bool,
    pub sw_if_index: InterfaceIndex,
}

impl Dump for Det44InterfaceDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Det44InterfaceDetails> + 'static {
        let all = det44(call).map(|det44| det44.sides()).unwrap_or_default();
        all.into_iter().map(|(interface, sides)| Det44InterfaceDetails {
            is_inside: sides.inside,
            is_outside: sides.outside,
            sw_if_index: InterfaceIndex(interface.0),
        })
    }
}

/// Sets after how many seconds without a packet sessions end; 0: as before.
#[derive(Message)]
#[message(request)]
pub struct Det44SetTimeouts {
    pub udp: u32,
    pub tcp_established: u32,
    pub tcp_transitory: u32,
    pub icmp: u32,
}

impl Request for Det44SetTimeouts {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (det44, Self { udp, tcp_established, tcp_transitory, icmp }) = (det44(call)?, self);
        let old = det44.timeouts();
        let or = |new, old| if new == 0 { old } else { new };
        Ok(det44.set_timeouts(Timeouts {
            udp: or(udp, old.udp),
            tcp_established: or(tcp_established, old.tcp_established),
            tcp_transitory: or(tcp_transitory, old.tcp_transitory),
            icmp: or(icmp, old.icmp),
        })?)
    }
}

/// Asks for them.
#[derive(Message)]
#[message(request, reply = Det44GetTimeoutsReply)]
pub struct Det44GetTimeouts {}

/// Timeouts in seconds.
#[derive(Message)]
#[message(reply)]
pub struct Det44GetTimeoutsReply {
    pub retval: i32,
    pub udp: u32,
    pub tcp_established: u32,
    pub tcp_transitory: u32,
    pub icmp: u32,
}

impl Request for Det44GetTimeouts {
    fn handle(self, call: &Call) -> Result<Det44GetTimeoutsReply, Retval> {
        let Timeouts { udp, tcp_established, tcp_transitory, icmp } = det44(call)?.timeouts();
        Ok(Det44GetTimeoutsReply { retval: 0, udp, tcp_established, tcp_transitory, icmp })
    }
}

/// The messages that have two names.
macro_rules! twins {
    ($add:ident, $forward:ident, $forwarded:ident, $reverse:ident, $reversed:ident, $maps:ident, $map:ident,
     $out:ident, $in:ident, $sessions:ident, $session:ident) => {
        /// Has hosts share addresses, or no more.
        #[derive(Message)]
        #[message(request)]
        pub struct $add {
            pub is_add: bool,
            pub in_addr: Ipv4Addr,
            pub in_plen: u8,
            pub out_addr: Ipv4Addr,
            pub out_plen: u8,
        }

        impl Request for $add {
            fn handle(self, call: &Call) -> Result<(), Retval> {
                change_map(call, self.is_add, (self.in_addr, self.in_plen), (self.out_addr, self.out_plen))
            }
        }

        /// Asks which address and ports a host has.
        #[derive(Message)]
        #[message(request, reply = $forwarded)]
        pub struct $forward {
            pub in_addr: Ipv4Addr,
        }

        /// They are these.
        #[derive(Message)]
        #[message(reply)]
        pub struct $forwarded {
            pub retval: i32,
            pub out_port_lo: u16,
            pub out_port_hi: u16,
            pub out_addr: Ipv4Addr,
        }

        impl Request for $forward {
            fn handle(self, call: &Call) -> Result<$forwarded, Retval> {
                let share: Share = det44(call)?.forward(self.in_addr)?;
                Ok($forwarded {
                    retval: 0,
                    out_port_lo: share.first,
                    out_port_hi: share.last(),
                    out_addr: share.address,
                })
            }
        }

        /// Asks which host has a port.
        #[derive(Message)]
        #[message(request, reply = $reversed)]
        pub struct $reverse {
            pub out_port: u16,
            pub out_addr: Ipv4Addr,
        }

        /// It is this.
        #[derive(Message)]
        #[message(reply)]
        pub struct $reversed {
            pub retval: i32,
            pub in_addr: Ipv4Addr,
        }

        impl Request for $reverse {
            fn handle(self, call: &Call) -> Result<$reversed, Retval> {
                Ok($reversed { retval: 0, in_addr: det44(call)?.reverse(self.out_addr, self.out_port)? })
            }
        }

        /// Asks for maps.
        #[derive(Message)]
        #[message(request, details = $map)]
        pub struct $maps {}

        /// A map.
        #[derive(Message)]
        #[message(reply)]
        pub struct $map {
            pub in_addr: Ipv4Addr,
            pub in_plen: u8,
            pub out_addr: Ipv4Addr,
            pub out_plen: u8,
            pub sharing_ratio: u32,
            pub ports_per_host: u16,
            pub ses_num: u32,
        }

        impl Dump for $maps {
            fn dump(self, call: &Call) -> impl Iterator<Item = $map> + 'static {
                maps(call).into_iter().map(|(map, ses_num)| $map {
                    in_addr: map.inside.network(),
                    in_plen: map.inside.len(),
                    out_addr: map.outside.network(),
                    out_plen: map.outside.len(),
                    sharing_ratio: map.ratio,
                    ports_per_host: map.ports,
                    ses_num,
                })
            }
        }

        /// Ends the session of a shared address and port with a remote.
        #[derive(Message)]
        #[message(request)]
        pub struct $out {
            pub out_addr: Ipv4Addr,
            pub out_port: u16,
            pub ext_addr: Ipv4Addr,
            pub ext_port: u16,
        }

        impl Request for $out {
            fn handle(self, call: &Call) -> Result<(), Retval> {
                Ok(det44(call)?.close_out((self.out_addr, self.out_port), (self.ext_addr, self.ext_port))?)
            }
        }

        /// Ends the session of a host and its port with a remote.
        #[derive(Message)]
        #[message(request)]
        pub struct $in {
            pub in_addr: Ipv4Addr,
            pub in_port: u16,
            pub ext_addr: Ipv4Addr,
            pub ext_port: u16,
        }

        impl Request for $in {
            fn handle(self, call: &Call) -> Result<(), Retval> {
                Ok(det44(call)?.close_in((self.in_addr, self.in_port), (self.ext_addr, self.ext_port))?)
            }
        }

        /// Asks for sessions of a host.
        #[derive(Message)]
        #[message(request, details = $session)]
        pub struct $sessions {
            pub user_addr: Ipv4Addr,
        }

        /// A session. It ends in `expire` seconds, without a packet.
        #[derive(Message)]
        #[message(reply)]
        pub struct $session {
            pub in_port: u16,
            pub ext_addr: Ipv4Addr,
            pub ext_port: u16,
            pub out_port: u16,
            pub state: u8,
            pub expire: u32,
        }

        impl Dump for $sessions {
            fn dump(self, call: &Call) -> impl Iterator<Item = $session> + 'static {
                sessions(call, self.user_addr).into_iter().map(|Record { flow, state, expires }| $session {
                    in_port: flow.port,
                    ext_addr: flow.remote.0,
                    ext_port: flow.remote.1,
                    out_port: flow.shared.1,
                    state: state as u8,
                    expire: expires,
                })
            }
        }
    };
}

twins!(
    Det44AddDelMap,
    Det44Forward,
    Det44ForwardReply,
    Det44Reverse,
    Det44ReverseReply,
    Det44MapDump,
    Det44MapDetails,
    Det44CloseSessionOut,
    Det44CloseSessionIn,
    Det44SessionDump,
    Det44SessionDetails
);
twins!(
    NatDetAddDelMap,
    NatDetForward,
    NatDetForwardReply,
    NatDetReverse,
    NatDetReverseReply,
    NatDetMapDump,
    NatDetMapDetails,
    NatDetCloseSessionOut,
    NatDetCloseSessionIn,
    NatDetSessionDump,
    NatDetSessionDetails
);
