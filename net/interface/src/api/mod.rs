//! Messages of interfaces that VPP has in `interface.api`. Those of addresses and tables are with IPv6.

pub mod details;
pub mod events;
pub mod features;
pub mod loopback;
pub mod mac;
pub mod names;
pub mod queues;
pub mod state;

use std::rc::Rc;

use shoal_message::{Retval, RxMode};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder};

use crate::{Interfaces, SwIfIndex};

pub(crate) use events::watch;

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "interface",
    folder: Folder::Core,
    version: "3.2.4",
    messages: &[
        ApiMessage::request::<state::SwInterfaceSetFlags>(),
        ApiMessage::request::<state::SwInterfaceSetPromisc>(),
        ApiMessage::request::<state::HwInterfaceSetMtu>(),
        ApiMessage::request::<state::SwInterfaceSetMtu>(),
        ApiMessage::sent::<events::SwInterfaceEvent>(),
        ApiMessage::request::<events::WantInterfaceEvents>(),
        ApiMessage::sent::<details::SwInterfaceDetails>(),
        ApiMessage::dump::<details::SwInterfaceDump>(),
        ApiMessage::request::<state::SwInterfaceClearStats>(),
        ApiMessage::request::<names::SwInterfaceTagAddDel>(),
        ApiMessage::request::<mac::SwInterfaceAddDelMacAddress>(),
        ApiMessage::request::<mac::SwInterfaceSetMacAddress>(),
        ApiMessage::request::<mac::SwInterfaceGetMacAddress>(),
        ApiMessage::sent::<mac::SwInterfaceGetMacAddressReply>(),
        ApiMessage::request::<queues::SwInterfaceSetRxMode>(),
        ApiMessage::request::<queues::SwInterfaceSetRxPlacement>(),
        ApiMessage::request::<queues::SwInterfaceSetTxPlacement>(),
        ApiMessage::request::<names::SwInterfaceSetInterfaceName>(),
        ApiMessage::dump::<queues::SwInterfaceRxPlacementDump>(),
        ApiMessage::sent::<queues::SwInterfaceRxPlacementDetails>(),
        ApiMessage::get::<queues::SwInterfaceTxPlacementGet>(),
        ApiMessage::sent::<queues::SwInterfaceTxPlacementGetReply>(),
        ApiMessage::sent::<queues::SwInterfaceTxPlacementDetails>(),
        ApiMessage::request::<names::InterfaceNameRenumber>(),
        ApiMessage::request::<loopback::CreateLoopback>(),
        ApiMessage::sent::<loopback::CreateLoopbackReply>(),
        ApiMessage::request::<loopback::CreateLoopbackInstance>(),
        ApiMessage::sent::<loopback::CreateLoopbackInstanceReply>(),
        ApiMessage::request::<loopback::DeleteLoopback>(),
        ApiMessage::request::<state::CollectDetailedInterfaceStats>(),
        ApiMessage::request::<queues::SwInterfaceSetDefaultRxMode>(),
        ApiMessage::request::<queues::SwInterfaceGetDefaultRxMode>(),
        ApiMessage::sent::<queues::SwInterfaceGetDefaultRxModeReply>(),
    ],
};

fn interfaces(call: &Call) -> Result<Rc<Interfaces>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// One interface or all of them by number, while they come and go.
fn walk(call: &Call, only: Option<SwIfIndex>) -> impl Iterator<Item = (Rc<Interfaces>, SwIfIndex)> + 'static {
    let interfaces = interfaces(call).ok();
    let mut from = Some(only.map_or(0, |only| only.0));
    std::iter::from_fn(move || {
        let interfaces = interfaces.as_ref()?;
        let at = interfaces.at_or_after(SwIfIndex(from.take()?))?;
        from = at.0.checked_add(1).filter(|_| only.is_none());
        only.is_none_or(|only| only == at).then(|| (Rc::clone(interfaces), at))
    })
}

fn mode_of(mode: shoal_graph::RxMode) -> RxMode {
    match mode {
        shoal_graph::RxMode::Polling => RxMode::Polling,
        shoal_graph::RxMode::Interrupt => RxMode::Interrupt,
        shoal_graph::RxMode::Adaptive => RxMode::Adaptive,
    }
}
