//! Messages of the binary API: how they are declared, laid out and told apart.
//!
//! A message is a Rust struct with a derive, in the `api.rs` of the feature it belongs to. From its fields come the bytes
//! on the wire, the checksum by which clients tell one version of a message from another, and its description.
//!
//! ```
//! use shoal_message::{Message, Value};
//!
//! /// Index of an interface.
//! #[derive(Value, Clone, Copy, Debug, PartialEq)]
//! #[value(alias)]
//! struct InterfaceIndex(u32);
//!
//! /// Gives an interface a name.
//! #[derive(Message, Clone, Debug, PartialEq)]
//! #[message(request)]
//! struct SwInterfaceSetInterfaceName {
//!     /// The interface.
//!     sw_if_index: InterfaceIndex,
//!     /// Its new name.
//!     name: shoal_message::Text<64>,
//! }
//!
//! assert_eq!(SwInterfaceSetInterfaceName::NAME, "sw_interface_set_interface_name");
//! assert_eq!(shoal_message::crc::<SwInterfaceSetInterfaceName>(), 0x45a1d548);
//! ```
//!
//! | question | file |
//! |---|---|
//! | what a value is, and the values there are | [`value`], [`text`], [`count`] |
//! | addresses, interfaces, paths and times | [`address`], [`interface`], [`ip`], [`path`], [`time`] |
//! | what comes from a client, read within its bounds | [`input`] |
//! | what a description consists of | [`definition`] |
//! | what a request is answered with | [`answer`], [`retval`] |
//! | the checksum of a message | [`checksum`] |
//! | the file that clients load | [`describe`] |
#![forbid(unsafe_code)]

// The derives name this crate.
extern crate self as shoal_message;

pub mod address;
pub mod answer;
pub mod checksum;
pub mod count;
pub mod definition;
pub mod describe;
pub mod input;
pub mod interface;
pub mod ip;
pub mod path;
pub mod retval;
pub mod text;
pub mod time;
pub mod value;

pub use address::{
    AddressFamily, AddressUnion, AddressWithPrefix, Ip4AddressWithPrefix, Ip4Prefix, Ip6AddressWithPrefix,
    Ip6Prefix, Mprefix, Prefix,
};
pub use answer::{Answer, Answered, Detailed};
pub use checksum::{crc, table_name};
pub use count::Count;
pub use definition::{Definition, Entry, Field, Header, Kind, Reply, Service, Shape, Type};
pub use describe::{Described, Module, plain_reply_crc};
pub use input::{Input, Malformed};
pub use interface::{
    Direction, IfStatusFlags, IfType, InterfaceIndex, LinkDuplex, MacAddress, MtuProto, RxMode, SubIfFlags,
};
pub use ip::{IpDscp, IpProto};
pub use path::{FibMplsLabel, FibPath, FibPathFlags, FibPathNh, FibPathNhProto, FibPathType};
pub use retval::Retval;
pub use shoal_derive::{Message, Value};
pub use text::Text;
pub use time::{Timedelta, Timestamp};
pub use value::{Message, Value};
