//! The nodes of ARP.

mod arp;
mod ask;
mod failed;
mod glean;
mod input;
mod proxy;
mod reply;

pub(crate) use arp::Ip4Arp;
pub(crate) use ask::Asker;
pub(crate) use failed::ArpFailed;
pub(crate) use glean::Ip4Glean;
pub(crate) use input::ArpInput;
pub(crate) use proxy::ArpProxy;
pub(crate) use reply::ArpReply;
