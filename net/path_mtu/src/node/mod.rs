//! The data plane: what errors say of the length of paths.

mod fact;
mod ip4;
mod ip6;

pub(crate) use fact::{ErrorReader, Fact, Wanted};
pub(crate) use ip4::Ip4TooBig;
pub(crate) use ip6::Ip6TooBig;
