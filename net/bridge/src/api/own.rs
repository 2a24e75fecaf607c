//! Messages that VPP does not have: limits of ports, and what domains do about loops. The names begin with `shoal_`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use shoal_message::{InterfaceIndex, MacAddress, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use super::{bridges, there};
use crate::{Bridges, LoopProtection, StormClass, StormLimits};

/// Messages of Shoal alone.
pub static API: ApiPart = ApiPart {
    file: "shoal_l2",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<ShoalL2StormControlSet>(),
        ApiMessage::dump::<ShoalL2StormControlDump>(),
        ApiMessage::sent::<ShoalL2StormControlDetails>(),
        ApiMessage::request::<ShoalL2LoopProtectionSet>(),
        ApiMessage::dump::<ShoalL2LoopProtectionDump>(),
        ApiMessage::sent::<ShoalL2LoopProtectionDetails>(),
    ],
};

/// Packets a second that mean no limit.
const UNLIMITED: u32 = u32::MAX;

/// Limits what a bridge's member brings in, in packets a second; all bits set: no limit.
#[derive(Message)]
#[message(request)]
pub struct ShoalL2StormControlSet {
    pub sw_if_index: InterfaceIndex,
    #[preset(4294967295)]
    pub broadcast: u32,
    #[preset(4294967295)]
    pub multicast: u32,
    #[preset(4294967295)]
    pub unknown_unicast: u32,
}

impl Request for ShoalL2StormControlSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let bridges = bridges(call)?;
        let port = there(&bridges, self.sw_if_index)?;
        let said = [
            (StormClass::Broadcast, self.broadcast),
            (StormClass::Multicast, self.multicast),
            (StormClass::UnknownUnicast, self.unknown_unicast),
        ];
        let limits = said.into_iter().fold(StormLimits::default(), |limits, (class, limit)| {
            limits.with(class, (limit != UNLIMITED).then_some(limit))
        });
        Ok(bridges.set_storm_limits(port, limits)?)
    }
}

/// Asks for limits of ports.
#[derive(Message)]
#[message(request, details = ShoalL2StormControlDetails)]
pub struct ShoalL2StormControlDump {
    /// All bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// The limits of a port, and what was dropped.
#[derive(Message)]
#[message(reply)]
pub struct ShoalL2StormControlDetails {
    pub sw_if_index: InterfaceIndex,
    pub broadcast: u32,
    pub multicast: u32,
    pub unknown_unicast: u32,
    pub broadcast_drops: u64,
    pub multicast_drops: u64,
    pub unknown_unicast_drops: u64,
}

impl Dump for ShoalL2StormControlDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = ShoalL2StormControlDetails> + 'static {
        let bridges = bridges(call).ok();
        let ports = bridges.as_ref().map(|bridges| bridges.storm_ports()).unwrap_or_default();
        let only = self.sw_if_index;
        let wanted =
            ports.into_iter().filter(move |(port, _)| only == InterfaceIndex::NONE || only.0 == port.0);
        wanted.filter_map(move |(port, limits)| {
            let bridges = bridges.as_ref()?;
            let limit = |class| limits.get(class).unwrap_or(UNLIMITED);
            let drops = |class| bridges.storm_drops(port, class);
            Some(ShoalL2StormControlDetails {
                sw_if_index: InterfaceIndex(port.0),
                broadcast: limit(StormClass::Broadcast),
                multicast: limit(StormClass::Multicast),
                unknown_unicast: limit(StormClass::UnknownUnicast),
                broadcast_drops: drops(StormClass::Broadcast),
                multicast_drops: drops(StormClass::Multicast),
                unknown_unicast_drops: drops(StormClass::UnknownUnicast),
            })
        })
    }
}

/// Says what a domain does about stations that move too often.
#[derive(Message)]
#[message(request)]
pub struct ShoalL2LoopProtectionSet {
    pub bd_id: u32,
    /// Moves of one station in a second that are a loop; 0: none are.
    pub moves: u16,
    /// For how many seconds the port it moved to is blocked; 0: it is only reported.
    pub block_seconds: u32,
}

impl Request for ShoalL2LoopProtectionSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let ShoalL2LoopProtectionSet { bd_id, moves, block_seconds: block } = self;
        let protection = (moves != 0).then_some(LoopProtection { moves, block });
        Ok(bridges(call)?.set_loop_protection(bd_id, protection)?)
    }
}

/// Asks for domains that watch for loops.
#[derive(Message)]
#[message(request, details = ShoalL2LoopProtectionDetails)]
pub struct ShoalL2LoopProtectionDump {
    /// All bits set for all.
    #[preset(4294967295)]
    pub bd_id: u32,
}

/// What a domain does about loops, and what it has seen.
#[derive(Message)]
#[message(reply)]
pub struct ShoalL2LoopProtectionDetails {
    pub bd_id: u32,
    pub moves: u16,
    pub block_seconds: u32,
    pub seen: u64,
    pub blocks: u64,
    /// How many ports are blocked at this moment.
    pub blocked: u32,
    /// The station of the last loop; all zero: none was seen.
    pub mac: MacAddress,
    pub from_sw_if_index: InterfaceIndex,
    pub to_sw_if_index: InterfaceIndex,
}

fn details(bridges: &Bridges, bd_id: u32) -> Option<ShoalL2LoopProtectionDetails> {
    let LoopProtection { moves, block } = bridges.loop_protection(bd_id).ok()??;
    let state = bridges.loop_state(bd_id).ok()?;
    let index = |port: Option<shoal_interface::SwIfIndex>| {
        port.map_or(InterfaceIndex::NONE, |port| InterfaceIndex(port.0))
    };
    Some(ShoalL2LoopProtectionDetails {
        bd_id,
        moves,
        block_seconds: block,
        seen: state.seen,
        blocks: state.blocks,
        blocked: state.blocked.len() as u32,
        mac: MacAddress(state.last.map_or([0; 6], |last| last.mac.0)),
        from_sw_if_index: index(state.last.map(|last| last.from)),
        to_sw_if_index: index(state.last.map(|last| last.to)),
    })
}

impl Dump for ShoalL2LoopProtectionDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = ShoalL2LoopProtectionDetails> + 'static {
        let bridges = bridges(call).ok();
        let numbers = bridges.as_ref().map(|bridges| bridges.numbers()).unwrap_or_default();
        let only = self.bd_id;
        let wanted = numbers.into_iter().filter(move |number| only == u32::MAX || only == *number);
        wanted.filter_map(move |number| details(bridges.as_ref()?, number))
    }
}
