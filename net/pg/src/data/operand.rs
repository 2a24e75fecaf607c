//! One side of an arrow: an address, a port, or a range of them.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_wire::MacAddress;

use super::template::Order;
use crate::PgError;
use crate::tokens::{Tokens, number};

/// What stands on one side of `->`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Mac(MacAddress),
    Ip4(Ipv4Addr),
    Ip6(Ipv6Addr),
    Port(u16),
    /// Of an ARP header.
    MacIp4(MacAddress, Ipv4Addr),
}

impl Value {
    pub(super) fn kind(self) -> &'static str {
        match self {
            Value::Mac(_) => "a MAC address",
            Value::Ip4(_) => "an IPv4 address",
            Value::Ip6(_) => "an IPv6 address",
            Value::Port(_) => "a port",
            Value::MacIp4(..) => "a MAC/IPv4 address pair",
        }
    }

    /// The value as a number, of IPv6 the lower half.
    pub(super) fn number(self) -> u64 {
        match self {
            Value::Mac(mac) => mac.to_u64(),
            Value::Ip4(ip) => u64::from(u32::from(ip)),
            Value::Ip6(ip) => u128::from(ip) as u64,
            Value::Port(port) => u64::from(port),
            Value::MacIp4(..) => 0,
        }
    }
}

/// A value, and the last of its range with the order the range is gone through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Operand {
    pub(super) first: Value,
    pub(super) range: Option<(u64, Order)>,
}

const EXPECTED: &str = "a MAC address, an IPv4 or IPv6 address, a port, or a MAC/IPv4 pair";

/// `A`, `A - B` (one after the other) or `A + B` (at random), with or without blanks around the sign.
pub(super) fn operand(tokens: &mut Tokens) -> Result<Operand, PgError> {
    let word = tokens.word(EXPECTED)?;
    if let Some(first) = value(&word) {
        let order = if tokens.take("-") {
            Order::Increment
        } else if tokens.take("+") {
            Order::Random
        } else {
            return Ok(Operand { first, range: None });
        };
        let last = tokens.parse("the last of the range", value)?;
        return range(tokens, first, last, order);
    }
    for (sign, order) in [('-', Order::Increment), ('+', Order::Random)] {
        if let Some((a, b)) = word.split_once(sign)
            && let (Some(first), Some(last)) = (value(a), value(b))
        {
            return range(tokens, first, last, order);
        }
    }
    Err(tokens.expected(EXPECTED))
}

fn range(tokens: &Tokens, first: Value, last: Value, order: Order) -> Result<Operand, PgError> {
    let same = std::mem::discriminant(&first) == std::mem::discriminant(&last);
    let halves = match (first, last) {
        (Value::Ip6(a), Value::Ip6(b)) => u128::from(a) >> 64 == u128::from(b) >> 64,
        (Value::MacIp4(..), _) => false,
        _ => true,
    };
    if !same || !halves || last.number() < first.number() {
        let what = format!("the end of a range of {}s, at or behind its beginning", first.kind());
        return Err(tokens.expected(what.replacen("a ", "", 1).replacen("an ", "", 1)));
    }
    let count = (last.number() - first.number()).saturating_add(1);
    Ok(Operand { first, range: Some((count, order)) })
}

fn value(word: &str) -> Option<Value> {
    if let Some((mac, ip)) = word.split_once('/') {
        return Some(Value::MacIp4(mac_address(mac)?, ip.parse().ok()?));
    }
    let port = || number(word).and_then(|n| u16::try_from(n).ok()).map(Value::Port);
    let ip4 = || word.parse().ok().map(Value::Ip4);
    let ip6 = || word.parse().ok().map(Value::Ip6);
    mac_address(word).map(Value::Mac).or_else(ip4).or_else(ip6).or_else(port)
}

/// `00:01:02:03:04:05`, or three groups of two bytes as VPP's own scripts write: `1.2.ffff`.
fn mac_address(word: &str) -> Option<MacAddress> {
    if word.contains(':') {
        return word.parse().ok();
    }
    let groups: Vec<u16> =
        word.split('.').map(|g| u16::from_str_radix(g, 16)).collect::<Result<_, _>>().ok()?;
    let [a, b, c] = groups.as_slice() else { return None };
    let number = u64::from(*a) << 32 | u64::from(*b) << 16 | u64::from(*c);
    Some(MacAddress::from_u64(number))
}
