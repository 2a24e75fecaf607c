//! The data plane, written once for both families.

mod lookup;
mod mark;
mod replicate;
mod rewrite;
mod rpf;

pub(crate) use lookup::MfibLookup;
pub(crate) use replicate::Replicate;
pub(crate) use rewrite::RewriteMcast;
pub(crate) use rpf::MfibRpf;
