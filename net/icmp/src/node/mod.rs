//! The nodes of ICMP.

pub(crate) mod echo_request;
pub(crate) mod error;
pub(crate) mod icmp6_echo_request;
pub(crate) mod icmp6_input;
mod input;
mod listener;

pub(crate) use echo_request::EchoRequest;
pub(crate) use error::IcmpErrorNode;
pub(crate) use icmp6_echo_request::Echo6Request;
pub(crate) use icmp6_input::Icmp6Input;
pub(crate) use input::IcmpInput;
pub(crate) use listener::ListenerNode;
