//! `bond_create`, `bond_create2`, `bond_delete`.

use shoal_message::{InterfaceIndex, MacAddress, Message, Retval};
use shoal_module::api::{Call, Request};

use super::{BondLbAlgo, BondMode, bonds, retval};
use crate::{Balance, Create, Mode};
use shoal_interface::SwIfIndex;

/// Creates a bond; the older message.
#[derive(Message)]
#[message(request, reply = BondCreateReply)]
pub struct BondCreate {
    /// The number in its name; all bits set for the first free one.
    #[preset(4294967295)]
    pub id: u32,
    /// Whether an address is given.
    pub use_custom_mac: bool,
    /// The address.
    pub mac_address: MacAddress,
    /// What it does with its members.
    pub mode: BondMode,
    /// What makes packets a flow, in modes `xor` and `lacp`.
    pub lb: BondLbAlgo,
    /// Whether only members near the processor are used.
    pub numa_only: bool,
}

/// The new bond.
#[derive(Message)]
#[message(reply)]
pub struct BondCreateReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// Creates a bond.
#[derive(Message)]
#[message(request, reply = BondCreate2Reply)]
pub struct BondCreate2 {
    /// What it does with its members.
    pub mode: BondMode,
    /// What makes packets a flow, in modes `xor` and `lacp`.
    pub lb: BondLbAlgo,
    /// Whether only members near the processor are used.
    pub numa_only: bool,
    /// Whether it takes large packets, which members cut.
    pub enable_gso: bool,
    /// Whether an address is given.
    pub use_custom_mac: bool,
    /// The address.
    pub mac_address: MacAddress,
    /// The number in its name; all bits set for the first free one.
    #[preset(4294967295)]
    pub id: u32,
}

/// The new bond.
#[derive(Message)]
#[message(reply)]
pub struct BondCreate2Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The choices both messages have.
struct Choices {
    mode: BondMode,
    lb: BondLbAlgo,
    numa_only: bool,
    gso: bool,
    mac: Option<MacAddress>,
    id: u32,
}

fn create(call: &Call, choices: Choices) -> Result<InterfaceIndex, Retval> {
    let Choices { mode: BondMode(mode), lb: BondLbAlgo(lb), numa_only, gso, mac, id } = choices;
    let mode = Mode::from_number(mode).ok_or(Retval::INVALID_ARGUMENT)?;
    // What the other modes are given says nothing.
    let balance = if mode.hashes() { Balance::from_number(lb) } else { Some(Balance::L2) };
    let how = Create {
        mode,
        balance: balance.ok_or(Retval::INVALID_ARGUMENT)?,
        id: (id != u32::MAX).then_some(id),
        mac: mac.map(|mac| shoal_wire::MacAddress(mac.0)),
        numa_only,
        gso,
    };
    bonds(call)?.create(how).map(|index| InterfaceIndex(index.0)).map_err(retval)
}

impl Request for BondCreate {
    fn handle(self, call: &Call) -> Result<BondCreateReply, Retval> {
        let mac = self.use_custom_mac.then_some(self.mac_address);
        let BondCreate { id, mode, lb, numa_only, .. } = self;
        let sw_if_index = create(call, Choices { mode, lb, numa_only, gso: false, mac, id })?;
        Ok(BondCreateReply { retval: 0, sw_if_index })
    }
}

impl Request for BondCreate2 {
    fn handle(self, call: &Call) -> Result<BondCreate2Reply, Retval> {
        let mac = self.use_custom_mac.then_some(self.mac_address);
        let BondCreate2 { id, mode, lb, numa_only, enable_gso: gso, .. } = self;
        let sw_if_index = create(call, Choices { mode, lb, numa_only, gso, mac, id })?;
        Ok(BondCreate2Reply { retval: 0, sw_if_index })
    }
}

/// Deletes a bond; its members stay.
#[derive(Message)]
#[message(request)]
pub struct BondDelete {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for BondDelete {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        bonds(call)?.delete(SwIfIndex(self.sw_if_index.0)).map_err(retval)
    }
}
