//! Dumps of objects that this router has none of. Programs that list everything, such as vppcfg, ask for them without
//! looking whether they are there. The feature that brings such objects takes its messages over.

use std::iter;

use shoal_message::{Count, InterfaceIndex, Message, Text, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder};

/// Bonds: none.
pub static BOND: ApiPart = ApiPart {
    file: "bond",
    folder: Folder::Core,
    version: "2.1.0",
    messages: &[
        ApiMessage::dump::<SwBondInterfaceDump>(),
        ApiMessage::sent::<SwBondInterfaceDetails>(),
        ApiMessage::dump::<SwMemberInterfaceDump>(),
        ApiMessage::sent::<SwMemberInterfaceDetails>(),
    ],
};

/// Bridge domains and cross-connects: none.
pub static L2: ApiPart = ApiPart {
    file: "l2",
    folder: Folder::Core,
    version: "3.3.0",
    messages: &[
        ApiMessage::dump::<BridgeDomainDump>(),
        ApiMessage::sent::<BridgeDomainDetails>(),
        ApiMessage::dump::<L2XconnectDump>(),
        ApiMessage::sent::<L2XconnectDetails>(),
    ],
};

/// Which member of a bond sends a packet.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BondMode {
    /// One after the other.
    #[entry("BOND_API_MODE_ROUND_ROBIN")]
    RoundRobin = 1,
    /// One of them while it works.
    #[entry("BOND_API_MODE_ACTIVE_BACKUP")]
    ActiveBackup = 2,
    /// By a hash of the packet.
    #[entry("BOND_API_MODE_XOR")]
    Xor = 3,
    /// All.
    #[entry("BOND_API_MODE_BROADCAST")]
    Broadcast = 4,
    /// Those that the other end agrees to, by a hash.
    #[entry("BOND_API_MODE_LACP")]
    Lacp = 5,
}

/// What of a packet is hashed.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BondLbAlgo {
    /// MAC addresses.
    #[entry("BOND_API_LB_ALGO_L2")]
    L2 = 0,
    /// IP addresses and ports.
    #[entry("BOND_API_LB_ALGO_L34")]
    L34 = 1,
    /// MAC and IP addresses.
    #[entry("BOND_API_LB_ALGO_L23")]
    L23 = 2,
    /// Nothing: one after the other.
    #[entry("BOND_API_LB_ALGO_RR")]
    Rr = 3,
    /// Nothing: all.
    #[entry("BOND_API_LB_ALGO_BC")]
    Bc = 4,
    /// Nothing: the one in use.
    #[entry("BOND_API_LB_ALGO_AB")]
    Ab = 5,
}

/// Asks for the bonds. There are none.
#[derive(Message)]
#[message(request, details = SwBondInterfaceDetails)]
struct SwBondInterfaceDump {
    #[preset(4_294_967_295)]
    sw_if_index: InterfaceIndex,
}

/// A bond.
#[derive(Message)]
#[message(reply)]
struct SwBondInterfaceDetails {
    sw_if_index: InterfaceIndex,
    id: u32,
    mode: BondMode,
    lb: BondLbAlgo,
    numa_only: bool,
    active_members: u32,
    members: u32,
    interface_name: Text<64>,
}

/// Asks for the members of a bond. There are none.
#[derive(Message)]
#[message(request, details = SwMemberInterfaceDetails)]
struct SwMemberInterfaceDump {
    sw_if_index: InterfaceIndex,
}

/// A member of a bond.
#[derive(Message)]
#[message(reply)]
struct SwMemberInterfaceDetails {
    sw_if_index: InterfaceIndex,
    interface_name: Text<64>,
    is_passive: bool,
    is_long_timeout: bool,
    is_local_numa: bool,
    weight: u32,
}

/// Asks for the bridge domains. There are none.
#[derive(Message)]
#[message(request, details = BridgeDomainDetails)]
struct BridgeDomainDump {
    #[preset(4_294_967_295)]
    bd_id: u32,
    #[preset(4_294_967_295)]
    sw_if_index: InterfaceIndex,
}

/// A member of a bridge domain.
#[derive(Value)]
struct BridgeDomainSwIf {
    context: u32,
    sw_if_index: InterfaceIndex,
    shg: u8,
}

/// A bridge domain.
#[derive(Message)]
#[message(reply)]
struct BridgeDomainDetails {
    bd_id: u32,
    flood: bool,
    uu_flood: bool,
    forward: bool,
    learn: bool,
    arp_term: bool,
    arp_ufwd: bool,
    mac_age: u8,
    bd_tag: Text<64>,
    bvi_sw_if_index: InterfaceIndex,
    uu_fwd_sw_if_index: InterfaceIndex,
    n_sw_ifs: Count<u32>,
    #[counted_by(n_sw_ifs)]
    sw_if_details: Vec<BridgeDomainSwIf>,
}

/// Asks for the cross-connects. There are none.
#[derive(Message)]
#[message(request, name = "l2_xconnect_dump", details = L2XconnectDetails)]
struct L2XconnectDump {}

/// A cross-connect.
#[derive(Message)]
#[message(reply, name = "l2_xconnect_details")]
struct L2XconnectDetails {
    rx_sw_if_index: InterfaceIndex,
    tx_sw_if_index: InterfaceIndex,
}

macro_rules! none {
    ($($dump:ty, $details:ty;)*) => {$(
        impl Dump for $dump {
            fn dump(self, _: &Call) -> impl Iterator<Item = $details> + 'static {
                iter::empty()
            }
        }
    )*};
}

none! {
    SwBondInterfaceDump, SwBondInterfaceDetails;
    SwMemberInterfaceDump, SwMemberInterfaceDetails;
    BridgeDomainDump, BridgeDomainDetails;
    L2XconnectDump, L2XconnectDetails;
}
