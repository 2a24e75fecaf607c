//! Messages of `l2.api` about bridge domains and stations.

mod bvi;
mod domain;
mod events;
mod fib;
mod own;

use std::rc::Rc;

use shoal_graph::process::Processes;
use shoal_message::{InterfaceIndex, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder};
use shoal_module::{Control, InitError};

use crate::{BridgeError, Bridges};

pub(crate) use events::news_client;
pub use own::API as OWN;

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "l2",
    folder: Folder::Core,
    version: "3.3.0",
    messages: &[
        ApiMessage::request::<domain::BridgeDomainAddDel>(),
        ApiMessage::request::<domain::BridgeDomainAddDelV2>(),
        ApiMessage::sent::<domain::BridgeDomainAddDelV2Reply>(),
        ApiMessage::dump::<domain::BridgeDomainDump>(),
        ApiMessage::sent::<domain::BridgeDomainDetails>(),
        ApiMessage::request::<domain::BridgeFlags>(),
        ApiMessage::sent::<domain::BridgeFlagsReply>(),
        ApiMessage::request::<domain::BridgeDomainSetMacAge>(),
        ApiMessage::request::<domain::BridgeDomainSetLearnLimit>(),
        ApiMessage::request::<domain::BridgeDomainSetDefaultLearnLimit>(),
        ApiMessage::request::<domain::SwInterfaceSetL2Bridge>(),
        ApiMessage::request::<domain::BdIpMacAddDel>(),
        ApiMessage::request::<domain::BdIpMacFlush>(),
        ApiMessage::dump::<domain::BdIpMacDump>(),
        ApiMessage::sent::<domain::BdIpMacDetails>(),
        ApiMessage::request::<fib::L2fibAddDel>(),
        ApiMessage::request::<fib::L2FibClearTable>(),
        ApiMessage::request::<fib::L2fibFlushAll>(),
        ApiMessage::request::<fib::L2fibFlushBd>(),
        ApiMessage::request::<fib::L2fibFlushInt>(),
        ApiMessage::dump::<fib::L2FibTableDump>(),
        ApiMessage::sent::<fib::L2FibTableDetails>(),
        ApiMessage::request::<fib::L2fibSetScanDelay>(),
        ApiMessage::request::<events::WantL2MacsEvents>(),
        ApiMessage::request::<events::WantL2MacsEvents2>(),
        ApiMessage::sent::<events::L2MacsEvent>(),
        ApiMessage::request::<events::WantL2ArpTermEvents>(),
        ApiMessage::sent::<events::L2ArpTermEvent>(),
        ApiMessage::request::<bvi::BviCreate>(),
        ApiMessage::sent::<bvi::BviCreateReply>(),
        ApiMessage::request::<bvi::BviDelete>(),
    ],
};

pub(crate) fn follow(control: &Rc<Control>, processes: &Rc<Processes>) -> Result<(), InitError> {
    events::follow(control, processes)
}

fn bridges(call: &Call) -> Result<Rc<Bridges>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// An interface that is there.
fn there(bridges: &Bridges, index: InterfaceIndex) -> Result<shoal_interface::SwIfIndex, Retval> {
    let index = shoal_interface::SwIfIndex(index.0);
    bridges.interfaces.data(index).map(|_| index).map_err(|_| Retval::INVALID_SW_IF_INDEX)
}

/// What VPP answers to a domain that is not there, where it looks for it first.
fn no_entry(error: BridgeError) -> Retval {
    error.into()
}
