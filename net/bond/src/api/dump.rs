//! `sw_bond_interface_dump`, `sw_member_interface_dump`, and their older names.

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_message::{InterfaceIndex, Message, Text};
use shoal_module::api::{Call, Dump};

use super::{BondLbAlgo, BondMode};
use crate::{Bond, Bonds};

/// Asks for all bonds; the older message.
#[derive(Message)]
#[message(request, details = SwInterfaceBondDetails)]
pub struct SwInterfaceBondDump {}

/// A bond, for the older message.
#[derive(Message)]
#[message(reply)]
pub struct SwInterfaceBondDetails {
    pub sw_if_index: InterfaceIndex,
    /// The number in its name.
    pub id: u32,
    pub mode: BondMode,
    pub lb: BondLbAlgo,
    pub numa_only: bool,
    /// How many members are active.
    pub active_slaves: u32,
    /// How many there are.
    pub slaves: u32,
    pub interface_name: Text<64>,
}

/// Asks for a bond, or for all.
#[derive(Message)]
#[message(request, details = SwBondInterfaceDetails)]
pub struct SwBondInterfaceDump {
    /// The bond; all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// A bond.
#[derive(Message)]
#[message(reply)]
pub struct SwBondInterfaceDetails {
    pub sw_if_index: InterfaceIndex,
    /// The number in its name.
    pub id: u32,
    pub mode: BondMode,
    pub lb: BondLbAlgo,
    pub numa_only: bool,
    /// How many members are active.
    pub active_members: u32,
    /// How many there are.
    pub members: u32,
    pub interface_name: Text<64>,
}

/// Asks for the members of a bond; the older message.
#[derive(Message)]
#[message(request, details = SwInterfaceSlaveDetails)]
pub struct SwInterfaceSlaveDump {
    /// The bond.
    pub sw_if_index: InterfaceIndex,
}

/// A member, for the older message.
#[derive(Message)]
#[message(reply)]
pub struct SwInterfaceSlaveDetails {
    pub sw_if_index: InterfaceIndex,
    pub interface_name: Text<64>,
    pub is_passive: bool,
    pub is_long_timeout: bool,
    pub is_local_numa: bool,
    pub weight: u32,
}

/// Asks for the members of a bond.
#[derive(Message)]
#[message(request, details = SwMemberInterfaceDetails)]
pub struct SwMemberInterfaceDump {
    /// The bond.
    pub sw_if_index: InterfaceIndex,
}

/// A member.
#[derive(Message)]
#[message(reply)]
pub struct SwMemberInterfaceDetails {
    pub sw_if_index: InterfaceIndex,
    pub interface_name: Text<64>,
    pub is_passive: bool,
    pub is_long_timeout: bool,
    pub is_local_numa: bool,
    pub weight: u32,
}

fn name(call: &Call, index: SwIfIndex) -> String {
    call.get::<Interfaces>().ok().and_then(|all| all.name(index).ok()).unwrap_or_default()
}

/// The bonds that are asked for, with their names.
fn wanted(call: &Call, only: InterfaceIndex) -> Vec<(Bond, String)> {
    let all = call.get::<Bonds>().map(|bonds| bonds.list()).unwrap_or_default();
    let wanted = all.into_iter().filter(|bond| only == InterfaceIndex::NONE || bond.index.0 == only.0);
    wanted.map(|bond| (name(call, bond.index), bond)).map(|(name, bond)| (bond, name)).collect()
}

impl Dump for SwBondInterfaceDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwBondInterfaceDetails> + 'static {
        wanted(call, self.sw_if_index).into_iter().map(|(bond, name)| SwBondInterfaceDetails {
            sw_if_index: InterfaceIndex(bond.index.0),
            id: bond.id,
            mode: BondMode(bond.how.mode as u32),
            lb: BondLbAlgo(bond.how.balance as u32),
            numa_only: bond.how.numa_only,
            active_members: bond.active.len() as u32,
            members: bond.members.len() as u32,
            interface_name: name.as_str().into(),
        })
    }
}

impl Dump for SwInterfaceBondDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwInterfaceBondDetails> + 'static {
        wanted(call, InterfaceIndex::NONE).into_iter().map(|(bond, name)| SwInterfaceBondDetails {
            sw_if_index: InterfaceIndex(bond.index.0),
            id: bond.id,
            mode: BondMode(bond.how.mode as u32),
            lb: BondLbAlgo(bond.how.balance as u32),
            numa_only: bond.how.numa_only,
            active_slaves: bond.active.len() as u32,
            slaves: bond.members.len() as u32,
            interface_name: name.as_str().into(),
        })
    }
}

/// The members of a bond, with their names; of all bonds, if none is named.
fn members(call: &Call, bond: InterfaceIndex) -> Vec<(crate::Member, String)> {
    let all = wanted(call, bond).into_iter().flat_map(|(bond, _)| bond.members);
    all.map(|member| (member, name(call, member.index))).collect()
}

impl Dump for SwMemberInterfaceDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwMemberInterfaceDetails> + 'static {
        members(call, self.sw_if_index).into_iter().map(|(member, name)| SwMemberInterfaceDetails {
            sw_if_index: InterfaceIndex(member.index.0),
            interface_name: name.as_str().into(),
            is_passive: member.how.passive,
            is_long_timeout: member.how.long_timeout,
            is_local_numa: true,
            weight: member.weight,
        })
    }
}

impl Dump for SwInterfaceSlaveDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwInterfaceSlaveDetails> + 'static {
        members(call, self.sw_if_index).into_iter().map(|(member, name)| SwInterfaceSlaveDetails {
            sw_if_index: InterfaceIndex(member.index.0),
            interface_name: name.as_str().into(),
            is_passive: member.how.passive,
            is_long_timeout: member.how.long_timeout,
            is_local_numa: true,
            weight: member.weight,
        })
    }
}
