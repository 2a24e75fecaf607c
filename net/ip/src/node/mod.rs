//! Nodes that both families have.

mod drop;
mod interface_rx;
mod load_balance;
mod local_end;
mod not_enabled;
mod punt;

pub use drop::IpDrop;
pub use interface_rx::InterfaceRx;
pub use load_balance::{LoadBalance, RouteLookup};
pub use local_end::{LocalDelivery, LocalEnd};
pub use not_enabled::NotEnabled;
pub use punt::Punt;
