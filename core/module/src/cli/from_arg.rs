//! From an argument's text to a value.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use shoal_wire::plain;

use super::Expected;
use crate::Control;

/// A type that an argument's text can become.
///
/// Features implement it for their own types (an interface index looks its name up in the [`Control`]). For
/// a type of another crate that has [`std::str::FromStr`], [`super::Args::parse`] needs no implementation.
pub trait FromArg: Sized {
    /// Reads the text, or says what was expected and what came nearest.
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected>;
}

/// `on`/`off` and their equals `enable`/`disable`, `yes`/`no`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    /// `on`, `enable` or `yes`.
    On,
    /// `off`, `disable` or `no`.
    Off,
}

impl Toggle {
    /// Whether it is [`Toggle::On`].
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

impl FromArg for Toggle {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        match text {
            "on" | "enable" | "yes" => Ok(Self::On),
            "off" | "disable" | "no" => Ok(Self::Off),
            _ => Err("on or off".into()),
        }
    }
}

impl FromArg for String {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        Ok(text.to_owned())
    }
}

impl FromArg for PathBuf {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        if text.is_empty() { Err("a path".into()) } else { Ok(text.into()) }
    }
}

impl FromArg for f64 {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        match text.parse::<f64>() {
            Ok(n) if n.is_finite() => Ok(n),
            _ => Err("a number".into()),
        }
    }
}

impl FromArg for Ipv4Addr {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        plain::ip4(text)
            .map_or_else(|| text.parse(), Ok)
            .map_err(|_| "an IPv4 address such as 192.0.2.1".into())
    }
}

impl FromArg for Ipv6Addr {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        plain::ip6(text)
            .map_or_else(|| text.parse(), Ok)
            .map_err(|_| "an IPv6 address such as 2001:db8::1".into())
    }
}

impl FromArg for IpAddr {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let read = plain::ip4(text).map(IpAddr::V4).or_else(|| plain::ip6(text).map(IpAddr::V6));
        read.map_or_else(|| text.parse(), Ok)
            .map_err(|_| "an IP address such as 192.0.2.1 or 2001:db8::1".into())
    }
}

/// A number in decimal, or in hexadecimal after `0x`, that lies in the range of its type.
fn integer<T: TryFrom<i128> + fmt::Display>(text: &str, min: T, max: T) -> Result<T, Expected> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => (16, hex),
        None => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(format!("a number, {min} to {max}").into());
    }
    // All digits, so the only failure left is a number beyond 128 bits, which fits nothing either.
    let value = i128::from_str_radix(digits, radix).ok().map(|n| if negative { -n } else { n });
    value.and_then(|n| T::try_from(n).ok()).ok_or_else(|| {
        let nearest = if negative { min.to_string() } else { max.to_string() };
        Expected::new(format!("a number that fits: {text} does not fit, {min} to {max}"))
            .nearest(Some(nearest))
    })
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl FromArg for $t {
            fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
                integer(text, <$t>::MIN, <$t>::MAX)
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64);

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: FromArg>(text: &str) -> Result<T, String> {
        T::from_arg(text, &Control::new()).map_err(|e| e.what)
    }

    #[test]
    fn integers_read_decimal_and_hexadecimal() {
        assert_eq!(read::<u8>("255"), Ok(255));
        assert_eq!(read::<u32>("0xff"), Ok(255));
        assert_eq!(read::<i32>("-4"), Ok(-4));
        assert_eq!(read::<u64>("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn integers_name_their_range() {
        assert_eq!(read::<u8>("300").unwrap_err(), "a number that fits: 300 does not fit, 0 to 255");
        assert!(read::<u8>("-1").unwrap_err().contains("-1 does not fit, 0 to 255"));
        assert!(read::<u64>(&"9".repeat(60)).unwrap_err().contains("does not fit"));
        assert_eq!(read::<u16>("ten").unwrap_err(), "a number, 0 to 65535");
        assert_eq!(read::<u16>("+1").unwrap_err(), "a number, 0 to 65535");
        assert_eq!(read::<u16>("").unwrap_err(), "a number, 0 to 65535");
    }

    #[test]
    fn toggles_have_three_spellings() {
        assert_eq!(read::<Toggle>("enable"), Ok(Toggle::On));
        assert_eq!(read::<Toggle>("no"), Ok(Toggle::Off));
        assert_eq!(read::<Toggle>("maybe").unwrap_err(), "on or off");
    }

    #[test]
    fn floats_refuse_what_is_no_number() {
        assert_eq!(read::<f64>("1.5"), Ok(1.5));
        assert!(read::<f64>("nan").is_err());
        assert!(read::<f64>("inf").is_err());
    }
}
