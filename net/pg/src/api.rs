//! Messages of the packet generator that VPP has in `pg.api`.

use std::path::Path;
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::{CreateInterface, Mode, Pg};

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "pg",
    folder: Folder::Core,
    version: "2.1.0",
    messages: &[
        ApiMessage::request::<PgCreateInterface>(),
        ApiMessage::request::<PgCreateInterfaceV2>(),
        ApiMessage::request::<PgCreateInterfaceV3>(),
        ApiMessage::sent::<PgCreateInterfaceReply>(),
        ApiMessage::sent::<PgCreateInterfaceV2Reply>(),
        ApiMessage::sent::<PgCreateInterfaceV3Reply>(),
        ApiMessage::request::<PgDeleteInterface>(),
        ApiMessage::request::<PgInterfaceEnableDisableCoalesce>(),
        ApiMessage::request::<PgCapture>(),
        ApiMessage::request::<PgEnableDisable>(),
    ],
};

/// Payload bytes of each piece of a large packet when a client says nothing.
const GSO_SIZE: u16 = 1460;

/// What the packets of an interface begin with.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(width = u8)]
pub enum PgInterfaceMode {
    /// An Ethernet header.
    #[entry("PG_API_MODE_ETHERNET")]
    Ethernet = 0,
    /// An IPv4 header.
    #[entry("PG_API_MODE_IP4")]
    Ip4 = 1,
    /// An IPv6 header.
    #[entry("PG_API_MODE_IP6")]
    Ip6 = 2,
}

/// What an interface can do: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("PG_API_FLAG_NONE", 0)]
#[entry("PG_API_FLAG_CSUM_OFFLOAD", 1)]
#[entry("PG_API_FLAG_GSO", 2)]
#[entry("PG_API_FLAG_GRO_COALESCE", 4)]
pub struct PgInterfaceFlags(pub u32);

impl PgInterfaceFlags {
    /// Checksums of received packets are left open.
    pub const CHECKSUM: u32 = 1;
    /// It takes packets that are too large for its link.
    pub const GSO: u32 = 2;
    /// It may join packets into large ones.
    pub const COALESCE: u32 = 4;
}

/// Creates a packet-generator interface; the one that is there if there is one.
#[derive(Message)]
#[message(request, reply = PgCreateInterfaceReply)]
pub struct PgCreateInterface {
    /// The number in its name.
    pub interface_id: InterfaceIndex,
    /// Whether it takes packets that are too large for its link.
    pub gso_enabled: bool,
    /// Payload bytes of each of their pieces.
    pub gso_size: u32,
}

/// Creates a packet-generator interface; the one that is there if there is one.
#[derive(Message)]
#[message(request, name = "pg_create_interface_v2", reply = PgCreateInterfaceV2Reply)]
pub struct PgCreateInterfaceV2 {
    /// The number in its name.
    pub interface_id: InterfaceIndex,
    /// Whether it takes packets that are too large for its link.
    pub gso_enabled: bool,
    /// Payload bytes of each of their pieces.
    pub gso_size: u32,
    /// What its packets begin with.
    pub mode: PgInterfaceMode,
}

/// Creates a packet-generator interface; the one that is there if there is one.
#[derive(Message)]
#[message(request, name = "pg_create_interface_v3", reply = PgCreateInterfaceV3Reply)]
pub struct PgCreateInterfaceV3 {
    /// The number in its name.
    pub interface_id: InterfaceIndex,
    /// What it can do. It always completes checksums of packets it sends.
    pub pg_flags: PgInterfaceFlags,
    /// Payload bytes of each piece of a large packet.
    pub gso_size: u32,
    /// What its packets begin with.
    pub mode: PgInterfaceMode,
}

/// The new interface.
#[derive(Message)]
#[message(reply)]
pub struct PgCreateInterfaceReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The new interface.
#[derive(Message)]
#[message(reply, name = "pg_create_interface_v2_reply")]
pub struct PgCreateInterfaceV2Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The new interface.
#[derive(Message)]
#[message(reply, name = "pg_create_interface_v3_reply")]
pub struct PgCreateInterfaceV3Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

fn pg(call: &Call) -> Result<Rc<Pg>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

fn create(
    call: &Call,
    id: InterfaceIndex,
    flags: u32,
    gso_size: u32,
    mode: PgInterfaceMode,
) -> Result<InterfaceIndex, Retval> {
    let gso_size = match gso_size {
        _ if flags & PgInterfaceFlags::GSO == 0 => None,
        0 => Some(GSO_SIZE),
        size => Some(u16::try_from(size).map_err(|_| Retval::INVALID_VALUE)?),
    };
    let mode = match mode {
        PgInterfaceMode::Ethernet => Mode::Ethernet,
        PgInterfaceMode::Ip4 => Mode::Ip4,
        PgInterfaceMode::Ip6 => Mode::Ip6,
    };
    let coalesce = flags & PgInterfaceFlags::COALESCE != 0;
    let checksum_offload = flags & PgInterfaceFlags::CHECKSUM != 0;
    let create = CreateInterface { id: id.0, mac: None, gso_size, coalesce, checksum_offload, mode };
    let pg = pg(call)?;
    let index = pg.create_interface(&create)?;
    pg.interfaces.set_fed(index);
    Ok(InterfaceIndex(index.0))
}

fn flags(gso_enabled: bool) -> u32 {
    if gso_enabled { PgInterfaceFlags::GSO } else { 0 }
}

impl Request for PgCreateInterface {
    fn handle(self, call: &Call) -> Result<PgCreateInterfaceReply, Retval> {
        let (flags, mode) = (flags(self.gso_enabled), PgInterfaceMode::Ethernet);
        let sw_if_index = create(call, self.interface_id, flags, self.gso_size, mode)?;
        Ok(PgCreateInterfaceReply { retval: 0, sw_if_index })
    }
}

impl Request for PgCreateInterfaceV2 {
    fn handle(self, call: &Call) -> Result<PgCreateInterfaceV2Reply, Retval> {
        let flags = flags(self.gso_enabled);
        let sw_if_index = create(call, self.interface_id, flags, self.gso_size, self.mode)?;
        Ok(PgCreateInterfaceV2Reply { retval: 0, sw_if_index })
    }
}

impl Request for PgCreateInterfaceV3 {
    fn handle(self, call: &Call) -> Result<PgCreateInterfaceV3Reply, Retval> {
        let sw_if_index = create(call, self.interface_id, self.pg_flags.0, self.gso_size, self.mode)?;
        Ok(PgCreateInterfaceV3Reply { retval: 0, sw_if_index })
    }
}

/// Deletes a packet-generator interface, with its streams.
#[derive(Message)]
#[message(request)]
pub struct PgDeleteInterface {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for PgDeleteInterface {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(pg(call)?.delete_interface(SwIfIndex(self.sw_if_index.0))?)
    }
}

/// Lets an interface join packets into large ones, or not.
#[derive(Message)]
#[message(request)]
pub struct PgInterfaceEnableDisableCoalesce {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether it may.
    pub coalesce_enabled: bool,
}

impl Request for PgInterfaceEnableDisableCoalesce {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(pg(call)?.set_coalesce(SwIfIndex(self.sw_if_index.0), self.coalesce_enabled)?)
    }
}

/// Writes what an interface sends into a file, or ends that. The file appears with the first packet.
#[derive(Message)]
#[message(request)]
pub struct PgCapture {
    /// The number in the interface's name.
    pub interface_id: InterfaceIndex,
    /// Whether it begins.
    #[preset("true")]
    pub is_enabled: bool,
    /// Packets after which it ends; 0 or all bits set for no limit.
    pub count: u32,
    /// The file, which must not be there yet.
    pub pcap_file_name: String,
}

impl Request for PgCapture {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let pg = pg(call)?;
        let index = pg.interface(self.interface_id.0).ok_or(Retval::INVALID_SW_IF_INDEX)?;
        if !self.is_enabled {
            pg.end_capture(index)?;
            return Ok(());
        }
        let path = self.pcap_file_name.trim_end_matches('\0');
        if path.is_empty() || path.contains('\0') {
            return Err(Retval::INVALID_VALUE);
        }
        let count = Some(u64::from(self.count)).filter(|count| ![0, u64::from(u32::MAX)].contains(count));
        Ok(pg.capture(index, Path::new(path), count)?)
    }
}

/// Starts streams, or stops them.
#[derive(Message)]
#[message(request)]
pub struct PgEnableDisable {
    /// Whether they start.
    #[preset("true")]
    pub is_enabled: bool,
    /// One stream; nothing for all.
    pub stream_name: String,
}

impl Request for PgEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let pg = pg(call)?;
        let set = |name: &str| if self.is_enabled { pg.enable(name) } else { pg.disable(name) };
        match self.stream_name.trim_end_matches('\0') {
            "" => pg.stream_names().iter().try_for_each(|name| set(name))?,
            name => set(name)?,
        }
        Ok(())
    }
}
