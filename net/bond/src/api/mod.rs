//! VPP's `bond.api`.

mod dump;
mod member;
mod state;

use std::rc::Rc;

use shoal_message::{Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder};

use crate::{BondError, Bonds};

/// The messages.
pub static BOND: ApiPart = ApiPart {
    file: "bond",
    folder: Folder::Core,
    version: "2.1.0",
    messages: &[
        ApiMessage::request::<state::BondCreate>(),
        ApiMessage::sent::<state::BondCreateReply>(),
        ApiMessage::request::<state::BondCreate2>(),
        ApiMessage::sent::<state::BondCreate2Reply>(),
        ApiMessage::request::<state::BondDelete>(),
        ApiMessage::request::<member::BondEnslave>(),
        ApiMessage::request::<member::BondAddMember>(),
        ApiMessage::request::<member::BondDetachSlave>(),
        ApiMessage::request::<member::BondDetachMember>(),
        ApiMessage::request::<member::SwInterfaceSetBondWeight>(),
        ApiMessage::dump::<dump::SwInterfaceBondDump>(),
        ApiMessage::sent::<dump::SwInterfaceBondDetails>(),
        ApiMessage::dump::<dump::SwBondInterfaceDump>(),
        ApiMessage::sent::<dump::SwBondInterfaceDetails>(),
        ApiMessage::dump::<dump::SwInterfaceSlaveDump>(),
        ApiMessage::sent::<dump::SwInterfaceSlaveDetails>(),
        ApiMessage::dump::<dump::SwMemberInterfaceDump>(),
        ApiMessage::sent::<dump::SwMemberInterfaceDetails>(),
    ],
};

/// What a bond does with its members.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("BOND_API_MODE_ROUND_ROBIN", 1)]
#[entry("BOND_API_MODE_ACTIVE_BACKUP", 2)]
#[entry("BOND_API_MODE_XOR", 3)]
#[entry("BOND_API_MODE_BROADCAST", 4)]
#[entry("BOND_API_MODE_LACP", 5)]
pub struct BondMode(pub u32);

/// What makes packets a flow.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("BOND_API_LB_ALGO_L2", 0)]
#[entry("BOND_API_LB_ALGO_L34", 1)]
#[entry("BOND_API_LB_ALGO_L23", 2)]
#[entry("BOND_API_LB_ALGO_RR", 3)]
#[entry("BOND_API_LB_ALGO_BC", 4)]
#[entry("BOND_API_LB_ALGO_AB", 5)]
pub struct BondLbAlgo(pub u32);

fn bonds(call: &Call) -> Result<Rc<Bonds>, Retval> {
    call.get::<Bonds>().map_err(|_| Retval::UNSPECIFIED)
}

/// VPP's number for an error.
fn retval(error: BondError) -> Retval {
    match error {
        BondError::NotBond(_) => Retval::INVALID_SW_IF_INDEX,
        BondError::Exists(_) => Retval::INSTANCE_IN_USE,
        BondError::Number(..) | BondError::NoWeights(..) | BondError::Mac(_) => Retval::INVALID_ARGUMENT,
        BondError::Unfit(..) | BondError::NotMember(_) => Retval::INVALID_INTERFACE,
        BondError::IsMember(..) => Retval::VALUE_EXIST,
        BondError::Table(_) => Retval::UNSPECIFIED,
        BondError::Interface(e) => e.into(),
    }
}
