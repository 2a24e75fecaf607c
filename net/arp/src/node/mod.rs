//! The nodes of ARP.

mod answer;
mod arp;
mod ask;
mod disabled;
mod error;
mod failed;
mod glean;
mod input;
mod proxy;
mod reply;

pub(crate) use answer::Answer;
pub(crate) use arp::Ip4Arp;
pub(crate) use ask::ArpRequester;
pub(crate) use disabled::ArpDisabled;
pub(crate) use failed::ArpFailed;
pub(crate) use glean::Ip4Glean;
pub(crate) use input::ArpInput;
pub(crate) use proxy::ArpProxy;
pub(crate) use reply::ArpReply;
