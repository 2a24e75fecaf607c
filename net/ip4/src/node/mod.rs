//! The nodes an IPv4 packet passes.

pub mod drop;
pub mod frag;
pub mod input;
pub mod interface_rx;
pub mod load_balance;
pub mod local;
pub mod local_end;
pub mod lookup;
pub mod not_enabled;
pub mod options;
pub mod punt;
pub mod redirect;
pub mod rewrite;
