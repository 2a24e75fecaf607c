//! Messages: `nat64.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Ip6Prefix, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};
pub use shoal_nat::NatConfigFlags;
use shoal_nat::tuple::ICMP;

use crate::config::{Inside, Outside, Timeouts};
use crate::sessions::{Bound, Record};
use crate::{Enable, Nat64, Side};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "nat64",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<Nat64PluginEnableDisable>(),
        ApiMessage::request::<Nat64SetTimeouts>(),
        ApiMessage::request::<Nat64GetTimeouts>(),
        ApiMessage::sent::<Nat64GetTimeoutsReply>(),
        ApiMessage::request::<Nat64AddDelPoolAddrRange>(),
        ApiMessage::dump::<Nat64PoolAddrDump>(),
        ApiMessage::sent::<Nat64PoolAddrDetails>(),
        ApiMessage::request::<Nat64AddDelInterface>(),
        ApiMessage::dump::<Nat64InterfaceDump>(),
        ApiMessage::sent::<Nat64InterfaceDetails>(),
        ApiMessage::request::<Nat64AddDelStaticBib>(),
        ApiMessage::dump::<Nat64BibDump>(),
        ApiMessage::sent::<Nat64BibDetails>(),
        ApiMessage::dump::<Nat64StDump>(),
        ApiMessage::sent::<Nat64StDetails>(),
        ApiMessage::request::<Nat64AddDelPrefix>(),
        ApiMessage::dump::<Nat64PrefixDump>(),
        ApiMessage::sent::<Nat64PrefixDetails>(),
        ApiMessage::request::<Nat64AddDelInterfaceAddr>(),
    ],
};

/// The protocol of a dump of all.
const ALL: u8 = u8::MAX;
/// ICMPv6's number, which clients may use for ICMP.
const ICMP6: u8 = shoal_translate46::ICMP6;

fn nat(call: &Call) -> Result<Rc<Nat64>, Retval> {
    call.get::<Nat64>().map_err(|_| Retval::UNSPECIFIED)
}

/// A VRF, or none.
fn vrf(number: u32) -> Option<u32> {
    (number != u32::MAX).then_some(number)
}

fn wanted(asked: u8, protocol: u8) -> bool {
    asked == ALL || asked == protocol || (asked == ICMP6 && protocol == ICMP)
}

/// Switches NAT64 on or off. Buckets of 0 are as usual; memory is taken for VPP's sake.
#[derive(Message)]
#[message(request)]
pub struct Nat64PluginEnableDisable {
    pub bib_buckets: u32,
    pub bib_memory_size: u32,
    pub st_buckets: u32,
    pub st_memory_size: u32,
    pub enable: bool,
}

impl Request for Nat64PluginEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (nat, Self { bib_buckets, st_buckets, enable, .. }) = (nat(call)?, self);
        Ok(if enable { nat.enable(Enable { bib_buckets, st_buckets }) } else { nat.disable() }?)
    }
}

/// Sets after how many seconds without a packet sessions end.
#[derive(Message)]
#[message(request)]
pub struct Nat64SetTimeouts {
    pub udp: u32,
    pub tcp_established: u32,
    pub tcp_transitory: u32,
    pub icmp: u32,
}

impl Request for Nat64SetTimeouts {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let Self { udp, tcp_established, tcp_transitory, icmp } = self;
        Ok(nat(call)?.set_timeouts(Timeouts { udp, tcp_established, tcp_transitory, icmp })?)
    }
}

/// Asks for them.
#[derive(Message)]
#[message(request, reply = Nat64GetTimeoutsReply)]
pub struct Nat64GetTimeouts {}

/// Timeouts in seconds.
#[derive(Message)]
#[message(reply)]
pub struct Nat64GetTimeoutsReply {
    pub retval: i32,
    pub udp: u32,
    pub tcp_established: u32,
    pub tcp_transitory: u32,
    pub icmp: u32,
}

impl Request for Nat64GetTimeouts {
    fn handle(self, call: &Call) -> Result<Nat64GetTimeoutsReply, Retval> {
        let Timeouts { udp, tcp_established, tcp_transitory, icmp } = nat(call)?.timeouts();
        Ok(Nat64GetTimeoutsReply { retval: 0, udp, tcp_established, tcp_transitory, icmp })
    }
}

/// Has hosts share a range of addresses, or no more.
#[derive(Message)]
#[message(request)]
pub struct Nat64AddDelPoolAddrRange {
    pub start_addr: Ipv4Addr,
    pub end_addr: Ipv4Addr,
    /// Of the hosts; all ones: all hosts.
    pub vrf_id: u32,
    pub is_add: bool,
}

impl Request for Nat64AddDelPoolAddrRange {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (nat, range) = (nat(call)?, (self.start_addr, self.end_addr));
        Ok(if self.is_add { nat.add_addresses(range, vrf(self.vrf_id)) } else { nat.del_addresses(range) }?)
    }
}

/// Asks for shared addresses.
#[derive(Message)]
#[message(request, details = Nat64PoolAddrDetails)]
pub struct Nat64PoolAddrDump {}

/// A shared address.
#[derive(Message)]
#[message(reply)]
pub struct Nat64PoolAddrDetails {
    pub address: Ipv4Addr,
    pub vrf_id: u32,
}

impl Dump for Nat64PoolAddrDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat64PoolAddrDetails> + 'static {
        let all = nat(call).map(|nat| nat.addresses()).unwrap_or_default();
        all.into_iter().map(|shared| Nat64PoolAddrDetails {
            address: shared.address,
            vrf_id: shared.vrf.unwrap_or(u32::MAX),
        })
    }
}

/// Puts an interface on a side, or takes it from there.
#[derive(Message)]
#[message(request)]
pub struct Nat64AddDelInterface {
    pub is_add: bool,
    /// Inside if that bit is set, outside otherwise.
    pub flags: NatConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

impl Request for Nat64AddDelInterface {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let side = if self.flags.has(NatConfigFlags::INSIDE) { Side::Inside } else { Side::Outside };
        Ok(nat(call)?.set_side(SwIfIndex(self.sw_if_index.0), side, self.is_add)?)
    }
}

/// Asks for interfaces on sides.
#[derive(Message)]
#[message(request, details = Nat64InterfaceDetails)]
pub struct Nat64InterfaceDump {}

/// An interface on one side or both.
#[derive(Message)]
#[message(reply)]
pub struct Nat64InterfaceDetails {
    pub flags: NatConfigFlags,
    pub sw_if_index: InterfaceIndex,
}

impl Dump for Nat64InterfaceDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat64InterfaceDetails> + 'static {
        let all = nat(call).map(|nat| nat.sides()).unwrap_or_default();
        all.into_iter().map(|(interface, sides)| {
            let flag = |on, flag| if on { flag } else { 0 };
            let inside = flag(sides.inside, NatConfigFlags::INSIDE);
            let flags = NatConfigFlags(inside | flag(sides.outside, NatConfigFlags::OUTSIDE));
            Nat64InterfaceDetails { flags, sw_if_index: InterfaceIndex(interface.0) }
        })
    }
}

/// Has the Internet reach a port of a host, or no more.
#[derive(Message)]
#[message(request)]
pub struct Nat64AddDelStaticBib {
    pub i_addr: Ipv6Addr,
    pub o_addr: Ipv4Addr,
    pub i_port: u16,
    pub o_port: u16,
    pub vrf_id: u32,
    pub proto: u8,
    pub is_add: bool,
}

impl Request for Nat64AddDelStaticBib {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let protocol = if self.proto == ICMP6 { ICMP } else { self.proto };
        let inside = Inside { address: self.i_addr, port: self.i_port, protocol, table: 0 };
        let outside = Outside { address: self.o_addr, port: self.o_port, protocol };
        let (nat, vrf) = (nat(call)?, self.vrf_id);
        Ok(if self.is_add { nat.add_binding(vrf, inside, outside) } else { nat.del_binding(vrf, inside) }?)
    }
}

/// Asks for bindings of a protocol; 255: of all.
#[derive(Message)]
#[message(request, details = Nat64BibDetails)]
pub struct Nat64BibDump {
    pub proto: u8,
}

/// A binding.
#[derive(Message)]
#[message(reply)]
pub struct Nat64BibDetails {
    pub i_addr: Ipv6Addr,
    pub o_addr: Ipv4Addr,
    pub i_port: u16,
    pub o_port: u16,
    pub vrf_id: u32,
    pub proto: u8,
    pub flags: NatConfigFlags,
    pub ses_num: u32,
}

impl Dump for Nat64BibDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat64BibDetails> + 'static {
        let found = nat(call).ok().and_then(|nat| Some((nat.bindings().ok()?, nat)));
        let (all, nat) = found.map_or((Vec::new(), None), |(all, nat)| (all, Some(nat)));
        let asked = self.proto;
        all.into_iter().filter(move |bound| wanted(asked, bound.inside.protocol)).map(move |bound| {
            let Bound { inside, outside, is_static, sessions } = bound;
            Nat64BibDetails {
                i_addr: inside.address,
                o_addr: outside.address,
                i_port: inside.port,
                o_port: outside.port,
                vrf_id: nat.as_ref().map_or(0, |nat| nat.vrf(inside.table)),
                proto: inside.protocol,
                flags: NatConfigFlags(if is_static { NatConfigFlags::STATIC } else { 0 }),
                ses_num: sessions,
            }
        })
    }
}

/// Asks for sessions of a protocol; 255: of all.
#[derive(Message)]
#[message(request, details = Nat64StDetails)]
pub struct Nat64StDump {
    pub proto: u8,
}

/// A session.
#[derive(Message)]
#[message(reply)]
pub struct Nat64StDetails {
    pub il_addr: Ipv6Addr,
    pub ol_addr: Ipv4Addr,
    pub il_port: u16,
    pub ol_port: u16,
    pub ir_addr: Ipv6Addr,
    pub or_addr: Ipv4Addr,
    pub r_port: u16,
    pub vrf_id: u32,
    pub proto: u8,
}

impl Dump for Nat64StDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat64StDetails> + 'static {
        let found = nat(call).ok().and_then(|nat| Some((nat.sessions().ok()?, nat)));
        let (all, nat) = found.map_or((Vec::new(), None), |(all, nat)| (all, Some(nat)));
        let asked = self.proto;
        all.into_iter().filter(move |record| wanted(asked, record.inside.protocol)).map(move |record| {
            let Record { inside, outside, remote: (remote, port), .. } = record;
            let of = |nat: &Rc<Nat64>| (nat.of_internet(inside.table, remote), nat.vrf(inside.table));
            let (ir_addr, vrf_id) = nat.as_ref().map_or((Ipv6Addr::UNSPECIFIED, 0), of);
            Nat64StDetails {
                il_addr: inside.address,
                ol_addr: outside.address,
                il_port: inside.port,
                ol_port: outside.port,
                ir_addr,
                or_addr: remote,
                r_port: port,
                vrf_id,
                proto: inside.protocol,
            }
        })
    }
}

/// Sets the prefix that stands for the IPv4 Internet in a VRF, or takes it away.
#[derive(Message)]
#[message(request)]
pub struct Nat64AddDelPrefix {
    pub prefix: Ip6Prefix,
    pub vrf_id: u32,
    pub is_add: bool,
}

impl Request for Nat64AddDelPrefix {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (nat, Self { prefix, vrf_id, is_add }) = (nat(call)?, self);
        let prefix = shoal_wire::Ip6Prefix::new(prefix.address, prefix.len);
        let prefix = prefix.map_err(|_| Retval::INVALID_VALUE)?;
        Ok(if is_add { nat.set_prefix(vrf_id, prefix) } else { nat.del_prefix(vrf_id, prefix) }?)
    }
}

/// Asks for prefixes.
#[derive(Message)]
#[message(request, details = Nat64PrefixDetails)]
pub struct Nat64PrefixDump {}

/// A prefix.
#[derive(Message)]
#[message(reply)]
pub struct Nat64PrefixDetails {
    pub prefix: Ip6Prefix,
    pub vrf_id: u32,
}

impl Dump for Nat64PrefixDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat64PrefixDetails> + 'static {
        let all = nat(call).map(|nat| nat.prefixes()).unwrap_or_default();
        all.into_iter().map(|(vrf_id, prefix)| {
            let prefix = prefix.prefix();
            Nat64PrefixDetails { prefix: Ip6Prefix { address: prefix.network(), len: prefix.len() }, vrf_id }
        })
    }
}

/// Has hosts share the first address of an interface, or no more.
#[derive(Message)]
#[message(request)]
pub struct Nat64AddDelInterfaceAddr {
    pub is_add: bool,
    pub sw_if_index: InterfaceIndex,
}

impl Request for Nat64AddDelInterfaceAddr {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (nat, interface) = (nat(call)?, SwIfIndex(self.sw_if_index.0));
        Ok(if self.is_add { nat.follow_interface(interface) } else { nat.unfollow_interface(interface) }?)
    }
}
