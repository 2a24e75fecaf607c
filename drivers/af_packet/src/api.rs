//! Messages of host interfaces that VPP has in `af_packet.api`.

use std::rc::Rc;

use shoal_interface::{InterfaceError, SwIfIndex};
use shoal_message::{InterfaceIndex, MacAddress, Message, Retval, Text, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::{CreateHostInterface, Error, HostInterfaces, Mode, Qdisc, TxOffload};

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "af_packet",
    folder: Folder::Plugins,
    version: "2.0.0",
    messages: &[
        ApiMessage::request::<AfPacketCreate>(),
        ApiMessage::sent::<AfPacketCreateReply>(),
        ApiMessage::request::<AfPacketCreateV2>(),
        ApiMessage::sent::<AfPacketCreateV2Reply>(),
        ApiMessage::request::<AfPacketCreateV3>(),
        ApiMessage::sent::<AfPacketCreateV3Reply>(),
        ApiMessage::request::<AfPacketDelete>(),
        ApiMessage::request::<AfPacketSetL4CksumOffload>(),
        ApiMessage::dump::<AfPacketDump>(),
        ApiMessage::sent::<AfPacketDetails>(),
    ],
};

/// What frames begin with.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfPacketMode {
    /// An Ethernet header.
    #[entry("AF_PACKET_API_MODE_ETHERNET")]
    Ethernet = 1,
    /// An IP header.
    #[entry("AF_PACKET_API_MODE_IP")]
    Ip = 2,
}

/// How frames are sent: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("AF_PACKET_API_FLAG_QDISC_BYPASS", 1)]
#[entry("AF_PACKET_API_FLAG_CKSUM_GSO", 2)]
#[entry("AF_PACKET_API_FLAG_VERSION_2", 8, late)]
pub struct AfPacketFlags(pub u32);

impl AfPacketFlags {
    /// Past the kernel's queueing discipline.
    pub const QDISC_BYPASS: u32 = 1;
    /// The kernel completes checksums and cuts large packets.
    pub const CKSUM_GSO: u32 = 2;
}

/// Takes an interface of the host kernel into the router, with one receive queue.
#[derive(Message)]
#[message(request, reply = AfPacketCreateReply)]
pub struct AfPacketCreate {
    /// The router's MAC address on it.
    pub hw_addr: MacAddress,
    /// Whether one is drawn instead.
    pub use_random_hw_addr: bool,
    /// The kernel's name of it.
    pub host_if_name: Text<64>,
}

/// The new interface.
#[derive(Message)]
#[message(reply)]
pub struct AfPacketCreateReply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface; if it was there already, too.
    pub sw_if_index: InterfaceIndex,
}

/// Takes an interface of the host kernel into the router, with a transmit queue for each thread.
#[derive(Message)]
#[message(request, name = "af_packet_create_v2", reply = AfPacketCreateV2Reply)]
pub struct AfPacketCreateV2 {
    /// The router's MAC address on it.
    pub hw_addr: MacAddress,
    /// Whether one is drawn instead.
    pub use_random_hw_addr: bool,
    /// The kernel's name of it.
    pub host_if_name: Text<64>,
    /// Without effect: rings are as large as the MTU asks for.
    pub rx_frame_size: u32,
    /// Without effect.
    pub tx_frame_size: u32,
    /// Without effect.
    pub rx_frames_per_block: u32,
    /// Without effect.
    pub tx_frames_per_block: u32,
    /// How frames are sent.
    pub flags: u32,
    /// Receive queues.
    #[preset(1)]
    pub num_rx_queues: u16,
}

/// The new interface.
#[derive(Message)]
#[message(reply, name = "af_packet_create_v2_reply")]
pub struct AfPacketCreateV2Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface; if it was there already, too.
    pub sw_if_index: InterfaceIndex,
}

/// Takes an interface of the host kernel into the router.
#[derive(Message)]
#[message(request, name = "af_packet_create_v3", reply = AfPacketCreateV3Reply)]
pub struct AfPacketCreateV3 {
    /// What its frames begin with.
    pub mode: AfPacketMode,
    /// The router's MAC address on it.
    pub hw_addr: MacAddress,
    /// Whether one is drawn instead.
    pub use_random_hw_addr: bool,
    /// The kernel's name of it.
    pub host_if_name: Text<64>,
    /// Without effect: rings are as large as the MTU asks for.
    pub rx_frame_size: u32,
    /// Without effect.
    pub tx_frame_size: u32,
    /// Without effect.
    pub rx_frames_per_block: u32,
    /// Without effect.
    pub tx_frames_per_block: u32,
    /// How frames are sent. Which kind of rings is the driver's choice.
    pub flags: AfPacketFlags,
    /// Receive queues.
    #[preset(1)]
    pub num_rx_queues: u16,
    /// Transmit queues.
    #[preset(1)]
    pub num_tx_queues: u16,
}

/// The new interface.
#[derive(Message)]
#[message(reply, name = "af_packet_create_v3_reply")]
pub struct AfPacketCreateV3Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface; if it was there already, too.
    pub sw_if_index: InterfaceIndex,
}

fn hosts(call: &Call) -> Result<Rc<HostInterfaces>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

impl From<Error> for Retval {
    fn from(error: Error) -> Self {
        match error {
            Error::Os { .. } => Retval::SYSCALL_ERROR_1,
            Error::NoInterface { .. } | Error::Gone { .. } => Retval::INVALID_INTERFACE,
            Error::NoHostInterface { .. } => Retval::INVALID_SW_IF_INDEX,
            Error::Mode { .. } | Error::Config { .. } => Retval::INVALID_VALUE,
            Error::Interface(error) => error.into(),
            Error::Link(_) | Error::NoWatch(_) => Retval::NETLINK_ERROR,
        }
    }
}

/// What the router is asked for in all versions of the message.
fn wish(name: &Text<64>, mac: MacAddress, random: bool) -> CreateHostInterface {
    CreateHostInterface {
        name: name.as_str().to_owned(),
        mac: (!random).then_some(shoal_wire::MacAddress(mac.0)),
        ..CreateHostInterface::default()
    }
}

fn send_as(wish: &mut CreateHostInterface, flags: u32) {
    let has = |bit| flags & bit != 0;
    wish.qdisc = if has(AfPacketFlags::QDISC_BYPASS) { Qdisc::Bypass } else { Qdisc::Use };
    wish.offload = if has(AfPacketFlags::CKSUM_GSO) { TxOffload::Kernel } else { TxOffload::Router };
}

/// A number of queues; 0 stands for the default.
fn queues(number: u16) -> Option<u32> {
    Some(number.into()).filter(|n| *n != 0)
}

/// The new interface and 0, or the one that is there and that it was.
fn create(call: &Call, wish: &CreateHostInterface) -> Result<(i32, InterfaceIndex), Retval> {
    let hosts = hosts(call)?;
    match hosts.create(wish) {
        Ok(index) => Ok((0, InterfaceIndex(index.0))),
        Err(Error::Interface(InterfaceError::Exists(_))) => {
            let there = hosts.named(&wish.name).map_err(|_| Retval::IF_ALREADY_EXISTS)?;
            Ok((Retval::IF_ALREADY_EXISTS.0, InterfaceIndex(there.0)))
        }
        Err(error) => Err(error.into()),
    }
}

impl Request for AfPacketCreate {
    fn handle(self, call: &Call) -> Result<AfPacketCreateReply, Retval> {
        let wish = wish(&self.host_if_name, self.hw_addr, self.use_random_hw_addr);
        let (retval, sw_if_index) = create(call, &wish)?;
        Ok(AfPacketCreateReply { retval, sw_if_index })
    }
}

impl Request for AfPacketCreateV2 {
    fn handle(self, call: &Call) -> Result<AfPacketCreateV2Reply, Retval> {
        let mut wish = wish(&self.host_if_name, self.hw_addr, self.use_random_hw_addr);
        send_as(&mut wish, self.flags);
        wish.rx_queues = queues(self.num_rx_queues);
        let (retval, sw_if_index) = create(call, &wish)?;
        Ok(AfPacketCreateV2Reply { retval, sw_if_index })
    }
}

impl Request for AfPacketCreateV3 {
    fn handle(self, call: &Call) -> Result<AfPacketCreateV3Reply, Retval> {
        let mut wish = wish(&self.host_if_name, self.hw_addr, self.use_random_hw_addr);
        send_as(&mut wish, self.flags.0);
        wish.mode = match self.mode {
            AfPacketMode::Ethernet => Mode::Ethernet,
            AfPacketMode::Ip => Mode::Ip,
        };
        wish.rx_queues = queues(self.num_rx_queues);
        wish.tx_queues = queues(self.num_tx_queues);
        let (retval, sw_if_index) = create(call, &wish)?;
        Ok(AfPacketCreateV3Reply { retval, sw_if_index })
    }
}

/// Gives an interface back to the host kernel.
#[derive(Message)]
#[message(request)]
pub struct AfPacketDelete {
    /// The kernel's name of it.
    pub host_if_name: Text<64>,
}

impl Request for AfPacketDelete {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        hosts(call)?.delete(self.host_if_name.as_str()).map_err(|e| match e {
            // What VPP says of a name that is none of its interfaces.
            Error::NoHostInterface { .. } => Retval::SYSCALL_ERROR_1,
            e => e.into(),
        })
    }
}

/// Lets the kernel complete checksums and cut large packets, or the router.
#[derive(Message)]
#[message(request, name = "af_packet_set_l4_cksum_offload")]
pub struct AfPacketSetL4CksumOffload {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether the kernel does.
    pub set: bool,
}

impl Request for AfPacketSetL4CksumOffload {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let offload = if self.set { TxOffload::Kernel } else { TxOffload::Router };
        Ok(hosts(call)?.set_offload(SwIfIndex(self.sw_if_index.0), offload)?)
    }
}

/// Asks for all host interfaces.
#[derive(Message)]
#[message(request, details = AfPacketDetails)]
pub struct AfPacketDump {}

/// A host interface.
#[derive(Message)]
#[message(reply)]
pub struct AfPacketDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The kernel's name of it.
    pub host_if_name: Text<64>,
}

impl Dump for AfPacketDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = AfPacketDetails> + 'static {
        let all = hosts(call).map(|hosts| hosts.list()).unwrap_or_default();
        all.into_iter().map(|(index, name)| AfPacketDetails {
            sw_if_index: InterfaceIndex(index.0),
            host_if_name: name.as_str().into(),
        })
    }
}
