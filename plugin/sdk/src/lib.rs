//! Plugins in safe Rust: a trait for what happens to one packet, and one macro that exports the plugin.
//!
//! ```
//! use shoal_plugin_sdk::{Call, Counter, Feature, Next, Node, Packet, Plugin};
//!
//! struct Short;
//!
//! impl Node for Short {
//!     const NAME: &'static str = "example-short";
//!     const COUNTERS: &'static [Counter] = &[Counter::error("short", "shorter than a header")];
//!     const FEATURES: &'static [Feature] = &[Feature::on("ip4-unicast").before(&["ip4-lookup"])];
//!
//!     fn packet(&self, packet: &mut Packet<'_>, _: &mut Call<'_>) -> Next {
//!         if packet.data().len() < 20 { Next::Drop(0) } else { Next::Feature }
//!     }
//! }
//!
//! shoal_plugin_sdk::export!(Plugin::new("short", "1.0.0", "Drops what is too short").node(Short));
//! # fn main() {}
//! ```
//!
//! The plugin's crate is a `cdylib`. It depends on this crate and on nothing of the router.
#![deny(clippy::undocumented_unsafe_blocks)]

mod command;
mod describe;
mod driver;
mod log;
mod node;
mod packet;

pub use command::{Answer, Words};
pub use describe::{Built, Plugin};
pub use driver::{Arm, Burst, Driver, Link, Opened, Setting};
pub use log::{Level, log};
pub use node::{Call, Counter, Feature, Next, Node};
pub use packet::Packet;
pub use shoal_plugin_abi as abi;

/// Exports a plugin: the expression makes a [`Plugin`]. Once in a crate.
#[macro_export]
macro_rules! export {
    ($plugin:expr) => {
        /// What the router asks for.
        #[unsafe(no_mangle)]
        pub extern "C" fn shoal_plugin_v1() -> *const $crate::abi::Plugin {
            static BUILT: $crate::Built = $crate::Built::new();
            BUILT.get(|| $plugin)
        }
    };
}
