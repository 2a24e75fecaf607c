//! Addresses and prefixes as arguments.

use shoal_wire::{Ip4Prefix, Ip6Prefix, MacAddress};

use super::{ArgType, Expected, FromArg, check};
use crate::Control;

impl FromArg for MacAddress {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        text.parse().map_err(|_| Expected::new("a MAC address such as 02:fe:00:00:00:01"))
    }
}

impl FromArg for Ip4Prefix {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        text.parse().map_err(|e| Expected::new(format!("an IPv4 prefix such as 10.0.0.0/24 ({e})")))
    }
}

impl FromArg for Ip6Prefix {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        text.parse().map_err(|e| Expected::new(format!("an IPv6 prefix such as 2001:db8::/32 ({e})")))
    }
}

/// The argument types of wire formats.
pub static WIRE: &[ArgType] = &[
    ArgType::new("mac", "a MAC address", check::<MacAddress>),
    ArgType::new("ip4-prefix", "an IPv4 address and prefix length", check::<Ip4Prefix>),
    ArgType::new("ip6-prefix", "an IPv6 address and prefix length", check::<Ip6Prefix>),
];
