//! Stations.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::time::Duration;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, MacAddress, Message, Retval};
use shoal_module::api::{Call, Dump, Request};

use super::{bridges, there};
use crate::{Bridges, Entry, MacInfo, Provision};

/// Says where a station is, or forgets it.
#[derive(Message)]
#[message(request)]
pub struct L2fibAddDel {
    pub mac: MacAddress,
    pub bd_id: u32,
    pub sw_if_index: InterfaceIndex,
    #[preset("true")]
    pub is_add: bool,
    pub static_mac: bool,
    pub filter_mac: bool,
    pub bvi_mac: bool,
}

impl Request for L2fibAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let bridges = bridges(call)?;
        let mac = shoal_wire::MacAddress(self.mac.0);
        bridges.index_of(self.bd_id)?;
        if !self.is_add {
            return Ok(bridges.forget(mac, self.bd_id)?);
        }
        let how = match (self.filter_mac, self.bvi_mac, self.static_mac) {
            (true, ..) => Provision::Filter,
            (_, true, _) => Provision::Bvi,
            (.., true) => Provision::Static,
            _ => Provision::Movable,
        };
        let interface = if how == Provision::Filter {
            SwIfIndex::NONE
        } else {
            let interface = there(&bridges, self.sw_if_index)?;
            // VPP refuses what is no member; the command does not.
            if !bridges.members(self.bd_id)?.iter().any(|member| member.interface == interface) {
                return Err(Retval::INVALID_SW_IF_INDEX);
            }
            interface
        };
        Ok(bridges.provision(mac, self.bd_id, interface, how)?)
    }
}

/// Forgets all stations.
#[derive(Message)]
#[message(request)]
pub struct L2FibClearTable {}

impl Request for L2FibClearTable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        bridges(call)?.clear_macs();
        Ok(())
    }
}

/// Forgets what was learned.
#[derive(Message)]
#[message(request)]
pub struct L2fibFlushAll {}

impl Request for L2fibFlushAll {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        bridges(call)?.flush_all();
        Ok(())
    }
}

/// Forgets what was learned of a domain.
#[derive(Message)]
#[message(request)]
pub struct L2fibFlushBd {
    pub bd_id: u32,
}

impl Request for L2fibFlushBd {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(bridges(call)?.flush_domain(self.bd_id)?)
    }
}

/// Forgets what was learned of an interface.
#[derive(Message)]
#[message(request)]
pub struct L2fibFlushInt {
    pub sw_if_index: InterfaceIndex,
}

impl Request for L2fibFlushInt {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let bridges = bridges(call)?;
        let interface = there(&bridges, self.sw_if_index)?;
        bridges.flush_interface(interface);
        Ok(())
    }
}

/// Asks for the stations of a domain.
#[derive(Message)]
#[message(request, details = L2FibTableDetails)]
pub struct L2FibTableDump {
    /// All bits set for all.
    pub bd_id: u32,
}

/// A station.
#[derive(Message)]
#[message(reply)]
pub struct L2FibTableDetails {
    pub bd_id: u32,
    pub mac: MacAddress,
    pub sw_if_index: InterfaceIndex,
    pub static_mac: bool,
    pub filter_mac: bool,
    pub bvi_mac: bool,
}

fn details(bridges: &Bridges, info: MacInfo, only: u32) -> Option<L2FibTableDetails> {
    let bd_id = bridges.number_of(info.domain)?;
    let wanted = (only == u32::MAX || only == bd_id) && bridges.is_current(&info);
    wanted.then(|| L2FibTableDetails {
        bd_id,
        mac: MacAddress(info.mac.0),
        sw_if_index: InterfaceIndex(info.entry.interface().0),
        static_mac: info.entry.has(Entry::STATIC),
        filter_mac: info.entry.has(Entry::FILTER),
        bvi_mac: info.entry.has(Entry::BVI),
    })
}

impl Dump for L2FibTableDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = L2FibTableDetails> + 'static {
        let bridges = bridges(call).ok();
        let only = self.bd_id;
        bridges.into_iter().flat_map(move |bridges| {
            bridges.table().macs().groups().flat_map(move |group| {
                let all = bridges.stations_of(group).into_iter();
                all.filter_map(|info| details(&bridges, info, only)).collect::<Vec<_>>()
            })
        })
    }
}

/// Says how often news of stations is looked for.
#[derive(Message)]
#[message(request)]
pub struct L2fibSetScanDelay {
    /// In units of 10 ms.
    #[preset(10)]
    pub scan_delay: u16,
}

impl Request for L2fibSetScanDelay {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let delay = Duration::from_millis(u64::from(self.scan_delay.max(1)) * 10);
        bridges(call)?.set_scan_delay(delay);
        Ok(())
    }
}
