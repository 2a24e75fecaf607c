//! ping and traceroute from the router.
//!
//! Control plane only: requests are put into the graph at `ip4-lookup` or `ip6-lookup`, answers come from
//! `ip4-icmp-listener` or `ip6-icmp-listener` by way of [`shoal_icmp::Messages::listen`]. Both commands are tasks of the
//! main thread that print while they run and end when their client leaves.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod echo;
mod ping;
mod text;
mod traceroute;
mod wait;

pub use echo::{Echo, HEADER, PingError, Target, most_data};
pub use ping::{Detail, Ping};
pub use traceroute::Traceroute;

use shoal_module::Module;

/// The module.
pub static MODULE: Module = Module {
    name: "ping",
    description: "ping and traceroute from the router",
    commands: cli::COMMANDS,
    api: &[&api::API],
    ..Module::NONE
};
