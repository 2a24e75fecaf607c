//! Messages of the binary API: tables and routes.

mod flow;
mod path;
mod retval;
mod route;
mod route_walk;
mod source;
mod table;

use shoal_adj::Family;
use shoal_message::AddressFamily;
use shoal_module::api::{ApiMessage, ApiPart, Folder};

pub use flow::IpFlowHashConfigV2;
pub use path::{from_path, path_of};
pub use retval::retval;
pub use table::IpTable;

/// Messages that VPP has in `ip.api`.
pub static IP: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[
        ApiMessage::request::<table::IpTableAddDel>(),
        ApiMessage::request::<table::IpTableAddDelV2>(),
        ApiMessage::request::<table::IpTableAllocate>(),
        ApiMessage::sent::<table::IpTableAllocateReply>(),
        ApiMessage::dump::<table::IpTableDump>(),
        ApiMessage::sent::<table::IpTableDetails>(),
        ApiMessage::request::<route::IpRouteAddDel>(),
        ApiMessage::sent::<route::IpRouteAddDelReply>(),
        ApiMessage::request::<route::IpRouteAddDelV2>(),
        ApiMessage::sent::<route::IpRouteAddDelV2Reply>(),
        ApiMessage::dump::<route_walk::IpRouteDump>(),
        ApiMessage::sent::<route_walk::IpRouteDetails>(),
        ApiMessage::dump::<route_walk::IpRouteV2Dump>(),
        ApiMessage::sent::<route_walk::IpRouteV2Details>(),
        ApiMessage::request::<route::IpRouteLookup>(),
        ApiMessage::sent::<route::IpRouteLookupReply>(),
        ApiMessage::request::<route::IpRouteLookupV2>(),
        ApiMessage::sent::<route::IpRouteLookupV2Reply>(),
        ApiMessage::request::<flow::SetIpFlowHash>(),
        ApiMessage::request::<flow::SetIpFlowHashV2>(),
        ApiMessage::request::<flow::SetIpFlowHashV3>(),
        ApiMessage::request::<flow::SetIpFlowHashRouterId>(),
    ],
};

/// Messages that VPP has in `fib.api`.
pub static FIB: ApiPart = ApiPart {
    file: "fib",
    folder: Folder::Core,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<source::FibSourceAdd>(),
        ApiMessage::sent::<source::FibSourceAddReply>(),
        ApiMessage::dump::<source::FibSourceDump>(),
        ApiMessage::sent::<source::FibSourceDetails>(),
    ],
};

/// The family a message names by a truth.
pub const fn family_if(is_ip6: bool) -> Family {
    if is_ip6 { Family::Ip6 } else { Family::Ip4 }
}

/// The family a message names.
pub const fn family_of(af: AddressFamily) -> Family {
    match af {
        AddressFamily::Ip4 => Family::Ip4,
        AddressFamily::Ip6 => Family::Ip6,
    }
}

/// What messages call a family.
pub const fn af_of(family: Family) -> AddressFamily {
    match family {
        Family::Ip4 => AddressFamily::Ip4,
        Family::Ip6 => AddressFamily::Ip6,
    }
}
