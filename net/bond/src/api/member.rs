//! `bond_add_member`, `bond_detach_member`, their older names, and `sw_interface_set_bond_weight`.

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{Call, Request};

use super::{bonds, retval};
use crate::AddMember;

/// Makes an interface a member of a bond; the older name.
#[derive(Message)]
#[message(request)]
pub struct BondEnslave {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The bond.
    pub bond_sw_if_index: InterfaceIndex,
    /// Whether LACP speaks only when it is spoken to.
    pub is_passive: bool,
    /// Whether the other end may be silent for 90 seconds instead of 3.
    pub is_long_timeout: bool,
}

/// Makes an interface a member of a bond.
#[derive(Message)]
#[message(request)]
pub struct BondAddMember {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The bond.
    pub bond_sw_if_index: InterfaceIndex,
    /// Whether LACP speaks only when it is spoken to.
    pub is_passive: bool,
    /// Whether the other end may be silent for 90 seconds instead of 3.
    pub is_long_timeout: bool,
}

fn add(call: &Call, bond: InterfaceIndex, member: InterfaceIndex, how: AddMember) -> Result<(), Retval> {
    bonds(call)?.add(SwIfIndex(bond.0), SwIfIndex(member.0), how).map_err(retval)
}

impl Request for BondEnslave {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let how = AddMember { passive: self.is_passive, long_timeout: self.is_long_timeout };
        add(call, self.bond_sw_if_index, self.sw_if_index, how)
    }
}

impl Request for BondAddMember {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let how = AddMember { passive: self.is_passive, long_timeout: self.is_long_timeout };
        add(call, self.bond_sw_if_index, self.sw_if_index, how)
    }
}

/// Lets a member go; the older name.
#[derive(Message)]
#[message(request)]
pub struct BondDetachSlave {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// Lets a member go.
#[derive(Message)]
#[message(request)]
pub struct BondDetachMember {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for BondDetachSlave {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        bonds(call)?.detach(SwIfIndex(self.sw_if_index.0)).map_err(retval)
    }
}

impl Request for BondDetachMember {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        bonds(call)?.detach(SwIfIndex(self.sw_if_index.0)).map_err(retval)
    }
}

/// Says which member of mode active-backup is to do all: that of the highest weight.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetBondWeight {
    /// The member.
    pub sw_if_index: InterfaceIndex,
    /// Its weight.
    pub weight: u32,
}

impl Request for SwInterfaceSetBondWeight {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        bonds(call)?.set_weight(SwIfIndex(self.sw_if_index.0), self.weight).map_err(retval)
    }
}
