//! Addresses and prefixes, as all messages have them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::definition::{Definition, Field, Kind, Shape, Type};
use crate::input::{Input, Malformed};
use crate::value::Value;

/// Which kind an address is.
#[derive(shoal_derive::Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(width = u8)]
pub enum AddressFamily {
    /// IPv4.
    #[entry("ADDRESS_IP4")]
    Ip4 = 0,
    /// IPv6.
    #[entry("ADDRESS_IP6")]
    Ip6 = 1,
}

macro_rules! addresses {
    ($($address:ty, $name:literal, $doc:literal, $bytes:literal;)*) => {$(
        impl Value for $address {
            const TYPE: Type = Type::User(&Definition {
                name: $name,
                doc: $doc,
                kind: Kind::Alias(Type::Base("u8"), Shape::Array($bytes)),
            });
            const LEAST: usize = $bytes;

            fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
                Ok(input.array::<$bytes>()?.into())
            }

            fn encode(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.octets());
            }
        }
    )*};
}

addresses! {
    Ipv4Addr, "ip4_address", "An IPv4 address", 4;
    Ipv6Addr, "ip6_address", "An IPv6 address", 16;
}

/// The bytes of an address whose family is told elsewhere: an IPv4 address is the first four, with zeros behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressUnion(pub [u8; 16]);

impl AddressUnion {
    /// The address, if it is one of this family.
    pub fn of(self, family: AddressFamily) -> IpAddr {
        let [a, b, c, d, ..] = self.0;
        match family {
            AddressFamily::Ip4 => Ipv4Addr::new(a, b, c, d).into(),
            AddressFamily::Ip6 => Ipv6Addr::from(self.0).into(),
        }
    }
}

impl From<IpAddr> for AddressUnion {
    fn from(address: IpAddr) -> Self {
        let mut bytes = [0; 16];
        match address {
            IpAddr::V4(ip4) => bytes.iter_mut().zip(ip4.octets()).for_each(|(to, from)| *to = from),
            IpAddr::V6(ip6) => bytes = ip6.octets(),
        }
        AddressUnion(bytes)
    }
}

const fn field(name: &'static str, of: Type) -> Field {
    Field { name, doc: "", of, shape: Shape::One, default: None }
}

impl Value for AddressUnion {
    const TYPE: Type = Type::User(&Definition {
        name: "address_union",
        doc: "An address whose family is told elsewhere",
        kind: Kind::Union(&[field("ip4", Ipv4Addr::TYPE), field("ip6", Ipv6Addr::TYPE)]),
    });
    const LEAST: usize = 16;

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(AddressUnion(input.array()?))
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.0);
    }
}

impl Value for IpAddr {
    const TYPE: Type = Type::User(&Definition {
        name: "address",
        doc: "An address",
        kind: Kind::Struct(&[field("af", AddressFamily::TYPE), field("un", AddressUnion::TYPE)]),
    });
    const LEAST: usize = 17;

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let family = AddressFamily::decode(input)?;
        Ok(AddressUnion::decode(input)?.of(family))
    }

    fn encode(&self, to: &mut Vec<u8>) {
        let family = if self.is_ipv4() { AddressFamily::Ip4 } else { AddressFamily::Ip6 };
        family.encode(to);
        AddressUnion::from(*self).encode(to);
    }
}

/// An address and how many of its bits count. The others are not mentioned, nor their number.
#[derive(shoal_derive::Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address.
    pub address: IpAddr,
    /// Its bits that count.
    pub len: u8,
}

/// An address on an interface, and how many of its bits say which link that is.
#[derive(shoal_derive::Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(alias)]
pub struct AddressWithPrefix(pub Prefix);

/// An IPv4 address and how many of its bits count.
#[derive(shoal_derive::Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip4Prefix {
    /// The address.
    pub address: Ipv4Addr,
    /// Its bits that count.
    pub len: u8,
}

/// An IPv6 address and how many of its bits count.
#[derive(shoal_derive::Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip6Prefix {
    /// The address.
    pub address: Ipv6Addr,
    /// Its bits that count.
    pub len: u8,
}

/// An IPv4 address on an interface, and how many of its bits say which link that is.
#[derive(shoal_derive::Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(alias)]
pub struct Ip4AddressWithPrefix(pub Ip4Prefix);

/// An IPv6 address on an interface, and how many of its bits say which link that is.
#[derive(shoal_derive::Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(alias)]
pub struct Ip6AddressWithPrefix(pub Ip6Prefix);

/// Multicast packets: of which source, to which group.
#[derive(shoal_derive::Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mprefix {
    /// The family of both addresses.
    pub af: AddressFamily,
    /// How many bits of the group and the source count.
    pub grp_address_length: u16,
    /// The group.
    pub grp_address: AddressUnion,
    /// The source; 0 for any.
    pub src_address: AddressUnion,
}
