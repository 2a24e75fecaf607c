//! The nodes an IPv4 packet passes.

pub mod frag;
pub mod input;
pub mod local;
pub mod lookup;
pub mod options;
pub mod redirect;
pub mod rewrite;
