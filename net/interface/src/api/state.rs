//! State, MTU, counters: `sw_interface_set_flags`, `sw_interface_set_promisc`, `hw_interface_set_mtu`,
//! `sw_interface_set_mtu`, `sw_interface_clear_stats`, `collect_detailed_interface_stats`.

use shoal_message::{IfStatusFlags, InterfaceIndex, Message, Retval};
use shoal_module::api::{Call, Request};

use super::interfaces;
use crate::{MtuLayer, SwIfIndex};

/// Sets an interface up or down.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetFlags {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether it is to be admin up; whether there is a link is not for clients to say.
    pub flags: IfStatusFlags,
}

impl Request for SwInterfaceSetFlags {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let up = self.flags.0 & IfStatusFlags::ADMIN_UP != 0;
        Ok(interfaces(call)?.set_admin(SwIfIndex(self.sw_if_index.0), up)?)
    }
}

/// Lets an interface accept frames for all MAC addresses, or only for its own.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetPromisc {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether it accepts them all.
    pub promisc_on: bool,
}

impl Request for SwInterfaceSetPromisc {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(interfaces(call)?.set_promiscuous(SwIfIndex(self.sw_if_index.0), self.promisc_on)?)
    }
}

/// Sets the largest packet that an interface's device carries, without the Ethernet header.
#[derive(Message)]
#[message(request)]
pub struct HwInterfaceSetMtu {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Bytes.
    pub mtu: u16,
}

impl Request for HwInterfaceSetMtu {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (interfaces, index) = (interfaces(call)?, SwIfIndex(self.sw_if_index.0));
        if interfaces.sub(index).is_some() {
            return Err(Retval::INVALID_VALUE);
        }
        Ok(interfaces.set_mtu(index, MtuLayer::L3, self.mtu.into())?)
    }
}

/// Sets the largest packets of an interface, all or none.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetMtu {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Bytes: of all packets, of IPv4, IPv6, MPLS. 0 leaves the first as it is, and lets it hold for the others.
    pub mtu: [u32; 4],
}

impl Request for SwInterfaceSetMtu {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(interfaces(call)?.set_mtus(SwIfIndex(self.sw_if_index.0), self.mtu)?)
    }
}

/// Sets the counters of an interface to zero.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceClearStats {
    /// The interface; all bits set for all of them.
    pub sw_if_index: InterfaceIndex,
}

impl Request for SwInterfaceClearStats {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let interfaces = interfaces(call)?;
        if self.sw_if_index == InterfaceIndex::NONE {
            return Ok(interfaces.clear_counters(&interfaces.indices())?);
        }
        let index = SwIfIndex(self.sw_if_index.0);
        interfaces.data(index)?;
        Ok(interfaces.clear_counters(&[index])?)
    }
}

/// Counts an interface's packets for one station, for groups and for everybody apart, or no longer.
#[derive(Message)]
#[message(request)]
pub struct CollectDetailedInterfaceStats {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether they are.
    pub enable_disable: bool,
}

impl Request for CollectDetailedInterfaceStats {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(interfaces(call)?.collect_detailed(SwIfIndex(self.sw_if_index.0), self.enable_disable)?)
    }
}
