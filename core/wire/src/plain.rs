//! Addresses and prefixes as nearly everybody writes them, read a few times faster than the library does: files have
//! millions of them.
//!
//! What is read here the library reads, too, and as the same. `None` says nothing: the library knows what is right, and
//! has to say what is wrong.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Ip4Prefix;

/// The number that one to three digits are, and what follows them; `None` where the library has to say.
#[inline]
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (mut n, mut rest, mut digits) = (0, bytes, 0);
    while let [b @ b'0'..=b'9', after @ ..] = rest {
        (n, rest, digits) = (n * 10 + u32::from(b - b'0'), after, digits + 1);
        if digits > 3 {
            return None;
        }
    }
    // A leading zero means octal to some; the library refuses it.
    let leads = digits > 1 && bytes.first() == Some(&b'0');
    if digits == 0 || leads { None } else { Some((n, rest)) }
}

/// The IPv4 address at the beginning, and what follows it.
#[inline]
fn dotted(bytes: &[u8]) -> Option<(Ipv4Addr, &[u8])> {
    let (mut bits, mut rest) = (0u32, bytes);
    for octet in 0..4 {
        if octet > 0 {
            let [b'.', after @ ..] = rest else { return None };
            rest = after;
        }
        let (n, after) = number(rest)?;
        if n > 255 {
            return None;
        }
        (bits, rest) = (bits << 8 | n, after);
    }
    Some((Ipv4Addr::from_bits(bits), rest))
}

/// An IPv4 address.
///
/// ```
/// use shoal_wire::plain;
/// assert_eq!(plain::ip4("10.0.0.1"), Some([10, 0, 0, 1].into()));
/// assert_eq!(plain::ip4("10.0.0.256"), None);
/// ```
#[inline]
pub fn ip4(text: &str) -> Option<Ipv4Addr> {
    match dotted(text.as_bytes())? {
        (addr, []) => Some(addr),
        _ => None,
    }
}

/// The same of an IPv4 prefix.
#[inline]
pub fn prefix4(text: &str) -> Option<Ip4Prefix> {
    let (addr, rest) = dotted(text.as_bytes())?;
    let [b'/', rest @ ..] = rest else { return None };
    match number(rest)? {
        (len, []) => {
            Ip4Prefix::new(addr, u8::try_from(len).ok().filter(|len| *len <= Ip4Prefix::MAX_LEN)?).ok()
        }
        _ => None,
    }
}

/// The same of an IPv6 address, without an IPv4 address in it.
///
/// ```
/// use shoal_wire::plain;
/// assert_eq!(plain::ip6("2001:db8::1"), "2001:db8::1".parse().ok());
/// assert_eq!(plain::ip6("::ffff:10.0.0.1"), None);
/// ```
pub fn ip6(text: &str) -> Option<Ipv6Addr> {
    // What stands before `::', and behind it or behind everything: RFC 4291 2.2.
    let (mut before, mut groups, mut bits) = (None, 0u32, 0u128);
    let mut rest = text.as_bytes();
    if let [b':', b':', after @ ..] = rest {
        (before, rest) = (Some((0, 0)), after);
    }
    while !rest.is_empty() {
        let (mut group, mut digits) = (0u32, 0);
        while let [b, after @ ..] = rest {
            let Some(digit) = char::from(*b).to_digit(16) else { break };
            (group, digits, rest) = (group << 4 | digit, digits + 1, after);
            if digits > 4 {
                return None;
            }
        }
        if digits == 0 || groups == 8 {
            return None;
        }
        (groups, bits) = (groups + 1, bits << 16 | u128::from(group));
        match rest {
            [] => {}
            [b':', b':', after @ ..] if before.is_none() => {
                (before, rest, bits) = (Some((groups, bits)), after, 0);
            }
            [b':', after @ ..] if !after.is_empty() => rest = after,
            _ => return None,
        }
    }
    match before {
        None if groups == 8 => Some(bits.into()),
        // The double colon stands for one group at least.
        Some((first, high)) if groups < 8 => {
            let high = high.checked_shl(16 * (8 - first)).unwrap_or(0);
            Some((high | bits).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IpPrefix;
    use crate::prefix::PrefixError;

    #[test]
    fn what_is_read_fast_is_what_the_library_reads() {
        let texts = [
            "0.0.0.0",
            "255.255.255.255",
            "1.2.3.4",
            "10.20.30.40",
            "256.1.1.1",
            "1.2.3",
            "1.2.3.4.5",
            "01.2.3.4",
            "1.2.3.04",
            "1.2.3.0",
            "1.2.3.00",
            "1..3.4",
            ".1.2.3",
            "1.2.3.",
            "1.2.3.4 ",
            " 1.2.3.4",
            "1.2.3.1000",
            "1.2.3.-4",
            "+1.2.3.4",
            "1.2.3.a",
            "",
            "::1",
            "1.2.3.4/",
            "\u{661}.2.3.4",
        ];
        for text in texts {
            let library: Option<Ipv4Addr> = text.parse().ok();
            assert_eq!(ip4(text), library, "{text}");
            for len in ["0", "8", "32", "33", "08", "008", "0x8", "+8", "-1", "", "8 ", "256", "999", "9999"]
            {
                let text = format!("{text}/{len}");
                let slow: Result<Ip4Prefix, PrefixError> = text.parse();
                if let Some(fast) = prefix4(&text) {
                    assert_eq!(Ok(fast), slow, "{text}");
                }
                assert!(text.contains(':') || text.parse::<IpPrefix>().is_ok() == slow.is_ok(), "{text}");
            }
        }
        let texts = [
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1::8",
            "2001:DB8::a:0",
            "1:2:3:4::5:6:7:8",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "12345::",
            "1:::2",
            "1::2::3",
            ":1::2",
            "1:",
            ":",
            "",
            "1:2:3:4:5:6:7:",
            "g::",
            "::1%1",
            " ::1",
            "::ffff:1.2.3.4",
            "0:0:0:0:0:0:0:0",
            "00001::",
            "0001::",
            "1:2:3:4:5:6::8",
            "::1:2:3:4:5:6:7:8",
        ];
        for text in texts {
            let library: Option<Ipv6Addr> = text.parse().ok();
            let fast = ip6(text);
            assert!(fast == library || (fast.is_none() && text.contains('.')), "{text}: {fast:?}");
        }
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..seed >> 60 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(
                    ["::", ":", ":1", "f00d", "0", ":a:", "1.", "/", ":b:c", "10"]
                        [(seed >> 33) as usize % 10],
                );
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (fast, library) = (ip6(&text), text.parse::<Ipv6Addr>().ok());
            assert!(fast == library || (fast.is_none() && text.contains('.')), "{text}: {fast:?}");
            assert_eq!(ip4(&text), text.parse::<Ipv4Addr>().ok(), "{text}");
        }
        assert!(prefix4("10.0.0.0/24").is_some() && prefix4("10.0.0.0/33").is_none());
    }
}
