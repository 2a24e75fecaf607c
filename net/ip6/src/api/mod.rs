//! Messages of IP on interfaces, of both families.

pub mod interface;
