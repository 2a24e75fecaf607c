//! Messages that VPP has in `vhost_user.api`.

use std::rc::Rc;

use shoal_interface::{InterfaceError, Interfaces, SwIfIndex};
use shoal_message::{InterfaceIndex, MacAddress, Message, Retval, Text, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::features::{EVENT_IDX, INDIRECT_DESC, MRG_RXBUF};
use crate::{CreateVhost, Detail, Error, Role, VhostInfo, Vhosts};

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "vhost_user",
    folder: Folder::Plugins,
    version: "4.1.1",
    messages: &[
        ApiMessage::request::<CreateVhostUserIf>(),
        ApiMessage::sent::<CreateVhostUserIfReply>(),
        ApiMessage::request::<ModifyVhostUserIf>(),
        ApiMessage::request::<CreateVhostUserIfV2>(),
        ApiMessage::sent::<CreateVhostUserIfV2Reply>(),
        ApiMessage::request::<ModifyVhostUserIfV2>(),
        ApiMessage::request::<DeleteVhostUserIf>(),
        ApiMessage::sent::<SwInterfaceVhostUserDetails>(),
        ApiMessage::dump::<SwInterfaceVhostUserDump>(),
    ],
};

/// Features of the device, bits 0 to 31: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open, name = "virtio_net_features_first_32")]
#[entry("VIRTIO_NET_F_API_CSUM", 1)]
#[entry("VIRTIO_NET_F_API_GUEST_CSUM", 2)]
#[entry("VIRTIO_NET_F_API_GUEST_TSO4", 128)]
#[entry("VIRTIO_NET_F_API_GUEST_TSO6", 256)]
#[entry("VIRTIO_NET_F_API_GUEST_UFO", 1024)]
#[entry("VIRTIO_NET_F_API_HOST_TSO4", 2048)]
#[entry("VIRTIO_NET_F_API_HOST_TSO6", 4096)]
#[entry("VIRTIO_NET_F_API_HOST_UFO", 16384)]
#[entry("VIRTIO_NET_F_API_MRG_RXBUF", 32768)]
#[entry("VIRTIO_NET_F_API_CTRL_VQ", 131072)]
#[entry("VIRTIO_NET_F_API_GUEST_ANNOUNCE", 2097152)]
#[entry("VIRTIO_NET_F_API_MQ", 4194304)]
#[entry("VHOST_F_API_LOG_ALL", 67108864)]
#[entry("VIRTIO_F_API_ANY_LAYOUT", 134217728)]
#[entry("VIRTIO_F_API_INDIRECT_DESC", 268435456)]
#[entry("VHOST_USER_F_API_PROTOCOL_FEATURES", 1073741824)]
pub struct VirtioNetFeaturesFirst32(pub u32);

/// Features of the device, bits 32 to 63: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open, name = "virtio_net_features_last_32")]
#[entry("VIRTIO_F_API_VERSION_1", 1)]
pub struct VirtioNetFeaturesLast32(pub u32);

fn vhosts(call: &Call) -> Result<Rc<Vhosts>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

impl From<Error> for Retval {
    fn from(error: Error) -> Self {
        match error {
            Error::File(_) => Retval::SYSCALL_ERROR_1,
            Error::FileName { .. } => Retval::INVALID_ARGUMENT,
            Error::Taken { .. } => Retval::IF_ALREADY_EXISTS,
            Error::Packed => Retval::UNIMPLEMENTED,
            Error::NoVhost { .. } => Retval::INVALID_SW_IF_INDEX,
            Error::Interface(InterfaceError::Exists(_)) => Retval::SUBIF_ALREADY_EXISTS,
            Error::Interface(error) => error.into(),
            Error::Ends => Retval::UNSPECIFIED,
        }
    }
}

/// Creates an interface.
#[derive(Message)]
#[message(request, name = "create_vhost_user_if", reply = CreateVhostUserIfReply)]
pub struct CreateVhostUserIf {
    /// Whether the router listens.
    pub is_server: bool,
    /// The socket's file.
    pub sock_filename: Text<256>,
    /// Whether the number in its name is given.
    pub renumber: bool,
    /// Do not offer packets that go over several buffers.
    pub disable_mrg_rxbuf: bool,
    /// Do not offer tables of descriptors.
    pub disable_indirect_desc: bool,
    /// Kept: large packets are always offered.
    pub enable_gso: bool,
    /// Not offered.
    pub enable_packed: bool,
    /// The number in its name.
    pub custom_dev_instance: u32,
    /// Whether its MAC address is given.
    pub use_custom_mac: bool,
    /// Its MAC address.
    pub mac_address: MacAddress,
    /// The operator's note.
    pub tag: Text<64>,
}

/// The new interface.
#[derive(Message)]
#[message(reply, name = "create_vhost_user_if_reply")]
pub struct CreateVhostUserIfReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// Creates an interface.
#[derive(Message, Clone)]
#[message(request, name = "create_vhost_user_if_v2", reply = CreateVhostUserIfV2Reply)]
pub struct CreateVhostUserIfV2 {
    /// Whether the router listens.
    pub is_server: bool,
    /// The socket's file.
    pub sock_filename: Text<256>,
    /// Whether the number in its name is given.
    pub renumber: bool,
    /// Do not offer packets that go over several buffers.
    pub disable_mrg_rxbuf: bool,
    /// Do not offer tables of descriptors.
    pub disable_indirect_desc: bool,
    /// Kept: large packets are always offered.
    pub enable_gso: bool,
    /// Not offered.
    pub enable_packed: bool,
    /// Offer that each end says at which index it wants to be woken.
    pub enable_event_idx: bool,
    /// The number in its name.
    pub custom_dev_instance: u32,
    /// Whether its MAC address is given.
    pub use_custom_mac: bool,
    /// Its MAC address.
    pub mac_address: MacAddress,
    /// The operator's note.
    pub tag: Text<64>,
}

/// The new interface.
#[derive(Message)]
#[message(reply, name = "create_vhost_user_if_v2_reply")]
pub struct CreateVhostUserIfV2Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl From<CreateVhostUserIf> for CreateVhostUserIfV2 {
    fn from(old: CreateVhostUserIf) -> Self {
        CreateVhostUserIfV2 {
            is_server: old.is_server,
            sock_filename: old.sock_filename,
            renumber: old.renumber,
            disable_mrg_rxbuf: old.disable_mrg_rxbuf,
            disable_indirect_desc: old.disable_indirect_desc,
            enable_gso: old.enable_gso,
            enable_packed: old.enable_packed,
            enable_event_idx: false,
            custom_dev_instance: old.custom_dev_instance,
            use_custom_mac: old.use_custom_mac,
            mac_address: old.mac_address,
            tag: old.tag,
        }
    }
}

fn role(is_server: bool) -> Role {
    if is_server { Role::Server } else { Role::Client }
}

impl CreateVhostUserIfV2 {
    fn create(&self, call: &Call) -> Result<InterfaceIndex, Retval> {
        if self.enable_packed {
            return Err(Error::Packed.into());
        }
        let without = [
            (MRG_RXBUF, self.disable_mrg_rxbuf),
            (INDIRECT_DESC, self.disable_indirect_desc),
            (EVENT_IDX, !self.enable_event_idx),
        ];
        let masked = without.iter().filter(|(_, off)| *off).fold(0, |all, (bit, _)| all | 1_u64 << bit);
        let create = CreateVhost {
            socket: self.sock_filename.as_str().to_owned(),
            role: role(self.is_server),
            mask: !masked,
            mac: self.use_custom_mac.then_some(shoal_wire::MacAddress(self.mac_address.0)),
            number: self.renumber.then_some(self.custom_dev_instance),
            gso: self.enable_gso,
        };
        let index = vhosts(call)?.create(&create)?;
        if !self.tag.as_str().is_empty() {
            let interfaces = call.get::<Interfaces>().map_err(|_| Retval::UNSPECIFIED)?;
            interfaces.set_tag(index, self.tag.as_str())?;
        }
        Ok(InterfaceIndex(index.0))
    }
}

impl Request for CreateVhostUserIfV2 {
    fn handle(self, call: &Call) -> Result<CreateVhostUserIfV2Reply, Retval> {
        Ok(CreateVhostUserIfV2Reply { retval: 0, sw_if_index: self.create(call)? })
    }
}

impl Request for CreateVhostUserIf {
    fn handle(self, call: &Call) -> Result<CreateVhostUserIfReply, Retval> {
        let sw_if_index = CreateVhostUserIfV2::from(self).create(call)?;
        Ok(CreateVhostUserIfReply { retval: 0, sw_if_index })
    }
}

/// Gives an interface another socket.
#[derive(Message)]
#[message(request, name = "modify_vhost_user_if")]
pub struct ModifyVhostUserIf {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether the router listens.
    pub is_server: bool,
    /// The socket's file.
    pub sock_filename: Text<256>,
    /// Whether the number in its name is given.
    pub renumber: bool,
    /// Kept: large packets are always offered.
    pub enable_gso: bool,
    /// Not offered.
    pub enable_packed: bool,
    /// The number in its name.
    pub custom_dev_instance: u32,
}

/// Gives an interface another socket.
#[derive(Message)]
#[message(request, name = "modify_vhost_user_if_v2")]
pub struct ModifyVhostUserIfV2 {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether the router listens.
    pub is_server: bool,
    /// The socket's file.
    pub sock_filename: Text<256>,
    /// Whether the number in its name is given.
    pub renumber: bool,
    /// Kept: large packets are always offered.
    pub enable_gso: bool,
    /// Not offered.
    pub enable_packed: bool,
    /// Without effect: the offer was made when the interface was created.
    pub enable_event_idx: bool,
    /// The number in its name.
    pub custom_dev_instance: u32,
}

impl From<ModifyVhostUserIf> for ModifyVhostUserIfV2 {
    fn from(old: ModifyVhostUserIf) -> Self {
        ModifyVhostUserIfV2 {
            sw_if_index: old.sw_if_index,
            is_server: old.is_server,
            sock_filename: old.sock_filename,
            renumber: old.renumber,
            enable_gso: old.enable_gso,
            enable_packed: old.enable_packed,
            enable_event_idx: false,
            custom_dev_instance: old.custom_dev_instance,
        }
    }
}

impl Request for ModifyVhostUserIfV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        if self.enable_packed {
            return Err(Error::Packed.into());
        }
        let to = CreateVhost {
            socket: self.sock_filename.as_str().to_owned(),
            role: role(self.is_server),
            number: self.renumber.then_some(self.custom_dev_instance),
            gso: self.enable_gso,
            ..CreateVhost::default()
        };
        Ok(vhosts(call)?.modify(SwIfIndex(self.sw_if_index.0), &to)?)
    }
}

impl Request for ModifyVhostUserIf {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        ModifyVhostUserIfV2::from(self).handle(call)
    }
}

/// Deletes an interface.
#[derive(Message)]
#[message(request, name = "delete_vhost_user_if")]
pub struct DeleteVhostUserIf {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for DeleteVhostUserIf {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(vhosts(call)?.delete(SwIfIndex(self.sw_if_index.0))?)
    }
}

/// Asks for vhost-user interfaces.
#[derive(Message)]
#[message(request, name = "sw_interface_vhost_user_dump", details = SwInterfaceVhostUserDetails)]
pub struct SwInterfaceVhostUserDump {
    /// The interface; all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// A vhost-user interface.
#[derive(Message)]
#[message(reply, name = "sw_interface_vhost_user_details")]
pub struct SwInterfaceVhostUserDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Its name.
    pub interface_name: Text<64>,
    /// Bytes in front of each frame.
    pub virtio_net_hdr_sz: u32,
    /// What was negotiated.
    pub features_first_32: VirtioNetFeaturesFirst32,
    /// What was negotiated.
    pub features_last_32: VirtioNetFeaturesLast32,
    /// Whether the router listens.
    pub is_server: bool,
    /// The socket's file.
    pub sock_filename: Text<256>,
    /// Regions of the guest's memory.
    pub num_regions: u32,
    /// Always 0: `show vhost-user` tells in words why there is no guest.
    pub sock_errno: i32,
}

impl From<VhostInfo> for SwInterfaceVhostUserDetails {
    fn from(info: VhostInfo) -> Self {
        SwInterfaceVhostUserDetails {
            sw_if_index: InterfaceIndex(info.index.0),
            interface_name: info.name.as_str().into(),
            virtio_net_hdr_sz: info.features.header_len(),
            features_first_32: VirtioNetFeaturesFirst32(info.features.0 as u32),
            features_last_32: VirtioNetFeaturesLast32((info.features.0 >> 32) as u32),
            is_server: info.config.role == Role::Server,
            sock_filename: info.path.as_str().into(),
            num_regions: info.regions.len() as u32,
            sock_errno: 0,
        }
    }
}

impl Dump for SwInterfaceVhostUserDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwInterfaceVhostUserDetails> + 'static {
        let only = (self.sw_if_index != InterfaceIndex::NONE).then_some(SwIfIndex(self.sw_if_index.0));
        let all = vhosts(call).ok().and_then(|vhosts| vhosts.list(only, Detail::Brief).ok());
        all.unwrap_or_default().into_iter().map(SwInterfaceVhostUserDetails::from)
    }
}
