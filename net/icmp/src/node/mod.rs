//! The nodes of ICMP.

mod echo_request;
mod error;
mod input;
mod listener;

pub(crate) use echo_request::EchoRequest;
pub(crate) use error::IcmpErrorNode;
pub(crate) use input::IcmpInput;
pub(crate) use listener::ListenerNode;
