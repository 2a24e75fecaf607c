//! Messages of memifs that VPP has in `memif.api`.

use std::rc::Rc;

use shoal_interface::{IfFlags, InterfaceError, Interfaces, SwIfIndex};
use shoal_message::{IfStatusFlags, InterfaceIndex, MacAddress, Message, Retval, Text, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::{BUFFER_SIZE, CreateMemif, Detail, Error, Memifs, Mode, RING_SIZE, Role};

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "memif",
    folder: Folder::Plugins,
    version: "3.1.0",
    messages: &[
        ApiMessage::request::<MemifSocketFilenameAddDel>(),
        ApiMessage::request::<MemifSocketFilenameAddDelV2>(),
        ApiMessage::sent::<MemifSocketFilenameAddDelV2Reply>(),
        ApiMessage::request::<MemifCreate>(),
        ApiMessage::sent::<MemifCreateReply>(),
        ApiMessage::request::<MemifCreateV2>(),
        ApiMessage::sent::<MemifCreateV2Reply>(),
        ApiMessage::request::<MemifDelete>(),
        ApiMessage::dump::<MemifSocketFilenameDump>(),
        ApiMessage::sent::<MemifSocketFilenameDetails>(),
        ApiMessage::dump::<MemifDump>(),
        ApiMessage::sent::<MemifDetails>(),
    ],
};

/// Which end of a connection an interface is.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(name = "memif_role")]
pub enum MemifRole {
    /// It listens.
    #[entry("MEMIF_ROLE_API_MASTER")]
    Master = 0,
    /// It connects.
    #[entry("MEMIF_ROLE_API_SLAVE")]
    Slave = 1,
}

/// What frames of an interface begin with.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(name = "memif_mode")]
pub enum MemifMode {
    /// An Ethernet header.
    #[entry("MEMIF_MODE_API_ETHERNET")]
    Ethernet = 0,
    /// An IP header.
    #[entry("MEMIF_MODE_API_IP")]
    Ip = 1,
    /// Not offered.
    #[entry("MEMIF_MODE_API_PUNT_INJECT")]
    PuntInject = 2,
}

fn memifs(call: &Call) -> Result<Rc<Memifs>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

impl From<Error> for Retval {
    fn from(error: Error) -> Self {
        match error {
            Error::Os { .. } | Error::File(_) => Retval::SYSCALL_ERROR_1,
            Error::FileName { .. } | Error::Range { .. } | Error::Memory { .. } | Error::Secret(_) => {
                Retval::INVALID_ARGUMENT
            }
            Error::PuntInject => Retval::UNIMPLEMENTED,
            Error::NoSocket { .. } | Error::FixedSocket(_) => Retval::INVALID_ARGUMENT,
            Error::SocketExists { .. } | Error::FileTaken { .. } => Retval::ENTRY_ALREADY_EXISTS,
            Error::SocketInUse { .. } => Retval::INVALID_INTERFACE,
            // VPP's word for an id that another interface of the socket has, and for one of the other role.
            Error::Role { .. } | Error::Interface(InterfaceError::Exists(_)) => Retval::SUBIF_ALREADY_EXISTS,
            Error::NoMemif { .. } => Retval::INVALID_SW_IF_INDEX,
            Error::Interface(error) => error.into(),
            Error::Ends(_) => Retval::UNSPECIFIED,
        }
    }
}

/// Adds or deletes a socket.
#[derive(Message)]
#[message(request, name = "memif_socket_filename_add_del")]
pub struct MemifSocketFilenameAddDel {
    /// Whether it is added.
    pub is_add: bool,
    /// Its number.
    pub socket_id: u32,
    /// Its file.
    pub socket_filename: Text<108>,
}

impl Request for MemifSocketFilenameAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let memifs = memifs(call)?;
        if self.is_add {
            memifs.add_socket(Some(self.socket_id), self.socket_filename.as_str())?;
            return Ok(());
        }
        Ok(memifs.delete_socket(self.socket_id)?)
    }
}

/// Adds or deletes a socket, whose number the router may choose.
#[derive(Message)]
#[message(request, name = "memif_socket_filename_add_del_v2", reply = MemifSocketFilenameAddDelV2Reply)]
pub struct MemifSocketFilenameAddDelV2 {
    /// Whether it is added.
    pub is_add: bool,
    /// Its number; all bits set for one that is free.
    #[preset(4294967295)]
    pub socket_id: u32,
    /// Its file.
    pub socket_filename: String,
}

/// The socket.
#[derive(Message)]
#[message(reply, name = "memif_socket_filename_add_del_v2_reply")]
pub struct MemifSocketFilenameAddDelV2Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// Its number.
    pub socket_id: u32,
}

impl Request for MemifSocketFilenameAddDelV2 {
    fn handle(self, call: &Call) -> Result<MemifSocketFilenameAddDelV2Reply, Retval> {
        let memifs = memifs(call)?;
        let said = Some(self.socket_id).filter(|id| *id != u32::MAX);
        let socket_id = if self.is_add {
            memifs.add_socket(said, &self.socket_filename)?
        } else {
            memifs.delete_socket(self.socket_id)?;
            self.socket_id
        };
        Ok(MemifSocketFilenameAddDelV2Reply { retval: 0, socket_id })
    }
}

/// Creates a memif.
#[derive(Message)]
#[message(request, name = "memif_create_v2", reply = MemifCreateV2Reply)]
pub struct MemifCreateV2 {
    /// Which end it is.
    pub role: MemifRole,
    /// What frames begin with.
    pub mode: MemifMode,
    /// Rings to receive by; 0 is 1.
    pub rx_queues: u8,
    /// Rings to send by; 0 is 1.
    pub tx_queues: u8,
    /// Its number on the socket.
    pub id: u32,
    /// The socket.
    pub socket_id: u32,
    /// Entries of each ring; 0 is 1024.
    pub ring_size: u32,
    /// Bytes of each buffer; 0 is 2048.
    pub buffer_size: u16,
    /// Kept and shown: packets are always copied.
    pub no_zero_copy: bool,
    /// Without effect.
    pub use_dma: bool,
    /// Its MAC address; all zero for one that is drawn.
    pub hw_addr: MacAddress,
    /// What the peer must know.
    pub secret: Text<24>,
}

/// The new memif.
#[derive(Message)]
#[message(reply, name = "memif_create_v2_reply")]
pub struct MemifCreateV2Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// Creates a memif.
#[derive(Message)]
#[message(request, name = "memif_create", reply = MemifCreateReply)]
pub struct MemifCreate {
    /// Which end it is.
    pub role: MemifRole,
    /// What frames begin with.
    pub mode: MemifMode,
    /// Rings to receive by; 0 is 1.
    pub rx_queues: u8,
    /// Rings to send by; 0 is 1.
    pub tx_queues: u8,
    /// Its number on the socket.
    pub id: u32,
    /// The socket.
    pub socket_id: u32,
    /// Entries of each ring; 0 is 1024.
    pub ring_size: u32,
    /// Bytes of each buffer; 0 is 2048.
    pub buffer_size: u16,
    /// Kept and shown: packets are always copied.
    pub no_zero_copy: bool,
    /// Its MAC address; all zero for one that is drawn.
    pub hw_addr: MacAddress,
    /// What the peer must know.
    pub secret: Text<24>,
}

/// The new memif.
#[derive(Message)]
#[message(reply, name = "memif_create_reply")]
pub struct MemifCreateReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl From<MemifCreate> for MemifCreateV2 {
    fn from(old: MemifCreate) -> Self {
        MemifCreateV2 {
            role: old.role,
            mode: old.mode,
            rx_queues: old.rx_queues,
            tx_queues: old.tx_queues,
            id: old.id,
            socket_id: old.socket_id,
            ring_size: old.ring_size,
            buffer_size: old.buffer_size,
            no_zero_copy: old.no_zero_copy,
            use_dma: false,
            hw_addr: old.hw_addr,
            secret: old.secret,
        }
    }
}

impl MemifCreateV2 {
    fn create(&self, call: &Call) -> Result<InterfaceIndex, Retval> {
        let mac = shoal_wire::MacAddress(self.hw_addr.0);
        let create = CreateMemif {
            id: self.id,
            socket: self.socket_id,
            role: match self.role {
                MemifRole::Master => Role::Master,
                MemifRole::Slave => Role::Slave,
            },
            mode: match self.mode {
                MemifMode::Ethernet => Mode::Ethernet,
                MemifMode::Ip => Mode::Ip,
                MemifMode::PuntInject => return Err(Error::PuntInject.into()),
            },
            ring_size: if self.ring_size == 0 { RING_SIZE } else { self.ring_size },
            buffer_size: if self.buffer_size == 0 { BUFFER_SIZE } else { self.buffer_size },
            rx_queues: self.rx_queues.max(1).into(),
            tx_queues: self.tx_queues.max(1).into(),
            mac: (!mac.is_zero()).then_some(mac),
            secret: self.secret.as_str().to_owned(),
            zero_copy: !self.no_zero_copy,
        };
        Ok(InterfaceIndex(memifs(call)?.create(&create)?.0))
    }
}

impl Request for MemifCreateV2 {
    fn handle(self, call: &Call) -> Result<MemifCreateV2Reply, Retval> {
        Ok(MemifCreateV2Reply { retval: 0, sw_if_index: self.create(call)? })
    }
}

impl Request for MemifCreate {
    fn handle(self, call: &Call) -> Result<MemifCreateReply, Retval> {
        Ok(MemifCreateReply { retval: 0, sw_if_index: MemifCreateV2::from(self).create(call)? })
    }
}

/// Deletes a memif.
#[derive(Message)]
#[message(request, name = "memif_delete")]
pub struct MemifDelete {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for MemifDelete {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(memifs(call)?.delete(SwIfIndex(self.sw_if_index.0))?)
    }
}

/// Asks for sockets.
#[derive(Message)]
#[message(request, name = "memif_socket_filename_dump", details = MemifSocketFilenameDetails)]
pub struct MemifSocketFilenameDump {}

/// A socket.
#[derive(Message)]
#[message(reply, name = "memif_socket_filename_details")]
pub struct MemifSocketFilenameDetails {
    /// Its number.
    pub socket_id: u32,
    /// Its file.
    pub socket_filename: Text<108>,
}

impl Dump for MemifSocketFilenameDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = MemifSocketFilenameDetails> + 'static {
        let sockets = memifs(call).map(|memifs| memifs.sockets()).unwrap_or_default();
        let details = |s: crate::SocketInfo| MemifSocketFilenameDetails {
            socket_id: s.id,
            socket_filename: Text::from(s.filename.as_str()),
        };
        sockets.into_iter().map(details)
    }
}

/// Asks for memifs.
#[derive(Message)]
#[message(request, name = "memif_dump", details = MemifDetails)]
pub struct MemifDump {}

/// A memif.
#[derive(Message)]
#[message(reply, name = "memif_details")]
pub struct MemifDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Its MAC address.
    pub hw_addr: MacAddress,
    /// Its number on the socket.
    pub id: u32,
    /// Which end it is.
    pub role: MemifRole,
    /// What frames begin with.
    pub mode: MemifMode,
    /// As it was asked for.
    pub zero_copy: bool,
    /// The socket.
    pub socket_id: u32,
    /// Entries of each ring of a slave that is connected, 1 for all others.
    pub ring_size: u32,
    /// Bytes of each buffer of a slave that is connected, 0 for all others.
    pub buffer_size: u16,
    /// Whether it is up, and connected.
    pub flags: IfStatusFlags,
    /// Its name.
    pub if_name: Text<64>,
}

impl Dump for MemifDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = MemifDetails> + 'static {
        let interfaces = call.get::<Interfaces>().ok();
        let all =
            memifs(call).ok().and_then(|memifs| memifs.list(None, Detail::Brief).ok()).unwrap_or_default();
        let details = move |info: crate::MemifInfo| {
            let data = interfaces.as_ref().and_then(|interfaces| interfaces.data(info.index).ok());
            let has = |flag: IfFlags| data.is_some_and(|d| d.flags().has(flag));
            let bit = |flag: IfFlags, said: u32| if has(flag) { said } else { 0 };
            let up = bit(IfFlags::ADMIN_UP, IfStatusFlags::ADMIN_UP);
            // Rings are the slave's, and are there while it is connected; VPP tells 1 and 0 for everyone else.
            let has_rings = info.connected && info.config.role == Role::Slave;
            let (ring_size, buffer_size) =
                if has_rings { (info.config.ring_size, info.config.buffer_size) } else { (1, 0) };
            MemifDetails {
                sw_if_index: InterfaceIndex(info.index.0),
                hw_addr: MacAddress(data.map(|d| d.mac().0).unwrap_or_default()),
                id: info.config.id,
                role: match info.config.role {
                    Role::Master => MemifRole::Master,
                    Role::Slave => MemifRole::Slave,
                },
                mode: match info.config.mode {
                    Mode::Ethernet => MemifMode::Ethernet,
                    Mode::Ip => MemifMode::Ip,
                },
                zero_copy: info.config.zero_copy,
                socket_id: info.config.socket,
                ring_size,
                buffer_size,
                flags: IfStatusFlags(up | bit(IfFlags::LINK_UP, IfStatusFlags::LINK_UP)),
                if_name: Text::from(info.name.as_str()),
            }
        };
        all.into_iter().map(details)
    }
}
