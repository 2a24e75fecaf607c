//! The crate's only unsafe code. Each file states its invariant first.

pub(crate) mod published;
