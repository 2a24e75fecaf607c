//! Messages of AF_XDP interfaces that VPP has in `af_xdp.api`.

use std::rc::Rc;

use shoal_interface::{InterfaceError, SwIfIndex};
use shoal_message::{InterfaceIndex, Message, Retval, Text, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::{Copying, CreateXdp, Error, Mac, Queues, XdpInterfaces};

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "af_xdp",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<AfXdpCreateV3>(),
        ApiMessage::sent::<AfXdpCreateV3Reply>(),
        ApiMessage::request::<AfXdpDelete>(),
    ],
};

/// As many queues as there are.
const ALL: u16 = u16::MAX;

/// Who copies.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfXdpMode {
    /// No copies if the driver can, else the kernel copies.
    #[default]
    #[entry("AF_XDP_API_MODE_AUTO")]
    Auto = 0,
    /// The kernel.
    #[entry("AF_XDP_API_MODE_COPY")]
    Copy = 1,
    /// No copies.
    #[entry("AF_XDP_API_MODE_ZERO_COPY")]
    ZeroCopy = 2,
}

/// How it works: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(flags)]
#[entry("AF_XDP_API_FLAGS_NO_SYSCALL_LOCK", 1)]
#[entry("AF_XDP_API_FLAGS_MAC_REUSE", 2, late)]
pub struct AfXdpFlag(pub u8);

impl AfXdpFlag {
    /// Without effect.
    pub const NO_SYSCALL_LOCK: u8 = 1;
    /// The router's MAC address is the kernel's.
    pub const MAC_REUSE: u8 = 2;
}

/// Takes an interface of the host kernel into the router by AF_XDP. What the host keeps of it is chosen by a command.
#[derive(Message)]
#[message(request, name = "af_xdp_create_v3", reply = AfXdpCreateV3Reply)]
pub struct AfXdpCreateV3 {
    /// The kernel's name of it.
    pub host_if: Text<64>,
    /// Its name in the router; the kernel's with a number if empty.
    pub name: Text<64>,
    /// Queues, 65535 for all.
    #[preset(1)]
    pub rxq_num: u16,
    /// Entries of each receive ring; 1024 if 0.
    #[preset(0)]
    pub rxq_size: u16,
    /// Entries of each transmit ring; 1024 if 0.
    #[preset(0)]
    pub txq_size: u16,
    /// Who copies.
    #[preset(0)]
    pub mode: AfXdpMode,
    /// How it works.
    #[preset(0)]
    pub flags: AfXdpFlag,
    /// A program of one's own: refused.
    pub prog: Text<256>,
    /// The network namespace it is in; the router's if empty.
    pub netns: Text<64>,
}

/// The new interface.
#[derive(Message)]
#[message(reply, name = "af_xdp_create_v3_reply")]
pub struct AfXdpCreateV3Reply {
    /// 0, or why there is none.
    pub retval: i32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

fn interfaces(call: &Call) -> Result<Rc<XdpInterfaces>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

impl From<Error> for Retval {
    fn from(error: Error) -> Self {
        match error {
            Error::Os { .. } | Error::Program { .. } => Retval::SYSCALL_ERROR_1,
            Error::Netns { .. } => Retval::SYSCALL_ERROR_2,
            Error::NoInterface { .. } | Error::Gone(_) => Retval::INVALID_INTERFACE,
            Error::NotOurs { .. } => Retval::INVALID_SW_IF_INDEX,
            Error::Taken { .. } | Error::Interface(InterfaceError::Exists(_)) => Retval::IF_ALREADY_EXISTS,
            Error::Busy(_) | Error::QueueBusy { .. } | Error::DefaultRoute(_) => Retval::INSTANCE_IN_USE,
            Error::NoZeroCopy(_) | Error::NoSharing(_) | Error::NoEthernet(_) | Error::Prog(_) => {
                Retval::UNSUPPORTED
            }
            Error::MtuTooLarge { .. }
            | Error::Config { .. }
            | Error::NotAStation(_)
            | Error::TooManyQueues { .. }
            | Error::Rule(_) => Retval::INVALID_VALUE,
            Error::Interface(error) => error.into(),
            Error::Link(_) | Error::NoWatch(_) => Retval::NETLINK_ERROR,
        }
    }
}

fn said<const N: usize>(text: &Text<N>) -> Option<String> {
    Some(text.as_str().to_owned()).filter(|text| !text.is_empty())
}

impl Request for AfXdpCreateV3 {
    fn handle(self, call: &Call) -> Result<AfXdpCreateV3Reply, Retval> {
        let has = |bit| self.flags.0 & bit != 0;
        let size = |n: u16| Some(u32::from(n)).filter(|n| *n != 0);
        let create = CreateXdp {
            host_if: self.host_if.as_str().to_owned(),
            name: said(&self.name),
            mac: if has(AfXdpFlag::MAC_REUSE) { Mac::Kernels } else { Mac::Random },
            queues: if self.rxq_num == ALL { Queues::All } else { Queues::Count(self.rxq_num.into()) },
            rx_size: size(self.rxq_size),
            tx_size: size(self.txq_size),
            copying: match self.mode {
                AfXdpMode::Auto => Copying::Auto,
                AfXdpMode::Copy => Copying::Copy,
                AfXdpMode::ZeroCopy => Copying::ZeroCopy,
            },
            no_syscall_lock: has(AfXdpFlag::NO_SYSCALL_LOCK),
            prog: said(&self.prog),
            netns: said(&self.netns),
            ..CreateXdp::default()
        };
        let index = interfaces(call)?.create(&create)?;
        Ok(AfXdpCreateV3Reply { retval: 0, sw_if_index: InterfaceIndex(index.0) })
    }
}

/// Gives an interface back to the host kernel.
#[derive(Message)]
#[message(request)]
pub struct AfXdpDelete {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

impl Request for AfXdpDelete {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(interfaces(call)?.delete(SwIfIndex(self.sw_if_index.0))?)
    }
}
