//! The data plane: nodes of one kind that show packets to the kernel, and one that lets the kernel's frames out.

mod groups;
mod osi;
mod other;
mod packet_owner;
mod to_host;
mod xc;

pub(crate) use groups::{Groups, Ip4Groups, Ip6Groups, LinuxGroups};
pub(crate) use osi::{Osi, Protocols};
pub(crate) use other::Other;
pub(crate) use packet_owner::{ArpReplies, Decide, Ip4Local, Ip4Punt, Ip6Local, Ip6Punt};
pub(crate) use to_host::ToHost;
pub(crate) use xc::Xc;
