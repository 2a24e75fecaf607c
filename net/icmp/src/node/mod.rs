//! The nodes of ICMP.

mod echo_request;
mod error;
mod icmp6_echo_request;
mod icmp6_error;
mod icmp6_input;
mod input;
mod listener;

pub(crate) use echo_request::EchoRequest;
pub(crate) use error::IcmpErrorNode;
pub(crate) use icmp6_echo_request::Echo6Request;
pub(crate) use icmp6_error::Icmp6ErrorNode;
pub(crate) use icmp6_input::Icmp6Input;
pub(crate) use input::IcmpInput;
pub(crate) use listener::ListenerNode;
