//! Reads `data { ... }` in VPP's syntax.
//!
//! ```text
//! IP4: 00:01:02:03:04:05 -> 06:07:08:09:0a:0b        Ethernet header, `vlan 100` may follow
//! UDP: 10.0.0.1 - 10.0.0.100 -> 10.1.0.1             IPv4 or IPv6 header; `ttl`, `tos`, `id`, `df`, `length`, `checksum`
//! UDP: 1234 -> 5678                                  UDP or TCP header; `length`, `checksum`, `seq`, `ack`, flags
//! ICMP echo_request                                  ICMP header; `code`
//! ARP: MAC -> MAC   request: MAC/IP -> MAC/IP        ARP in Ethernet
//! incrementing 30 | hex 0x45...                      payload
//! ```

use shoal_wire::{
    ArpHeader, ArpOpcode, EtherType, EthernetHeader, FromBytes, Icmp4Type, IntoBytes, Ip4Header, Ip6Header,
    IpProtocol, TcpFlags, TcpHeader, UdpHeader, VlanHeader,
};

use super::operand::{Operand, Value, operand};
use super::template::Field;
use super::{Blueprint, Layer};
use crate::PgError;
use crate::tokens::{Tokens, number};

/// Most bytes of a described packet.
const MOST: u64 = 65_535;

const EXPECTED: &str = "a header such as `UDP: 10.0.0.1 -> 10.0.0.2', `incrementing N', `hex 0x...' or `}'";

/// Reads up to and including the closing brace.
pub(crate) fn parse(tokens: &mut Tokens) -> Result<Blueprint, PgError> {
    let mut plan = Blueprint::default();
    loop {
        let word = tokens.word("`}' at the end of data")?;
        match word.as_str() {
            "}" => return Ok(plan),
            "hex" => plan.bytes.extend(tokens.parse("an even number of hexadecimal digits", hex)?),
            "incrementing" => {
                let n = tokens.number("bytes of payload", 0, MOST)?;
                plan.bytes.extend((0..n).map(|i| i as u8));
            }
            "ICMP" | "ICMP4" => icmp(tokens, &mut plan)?,
            _ => match word.strip_suffix(':') {
                Some(name) => header(name, tokens, &mut plan)?,
                None => option(&word, tokens, &mut plan)?,
            },
        }
        if plan.bytes.len() > MOST as usize {
            return Err(tokens.expected(format!("at most {MOST} bytes of headers and payload")));
        }
    }
}

fn hex(word: &str) -> Option<Vec<u8>> {
    let digits = word.strip_prefix("0x").unwrap_or(word).as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() || pairs.is_empty() {
        return None;
    }
    let byte = |pair: &[u8; 2]| {
        let digit = |c: u8| char::from(c).to_digit(16);
        let [high, low] = *pair;
        Some((digit(high)? << 4 | digit(low)?) as u8)
    };
    pairs.iter().map(byte).collect()
}

fn header(name: &str, tokens: &mut Tokens, plan: &mut Blueprint) -> Result<(), PgError> {
    let src = operand(tokens)?;
    if !tokens.take("->") {
        return Err(tokens.expected("`->' and the destination"));
    }
    let dst = operand(tokens)?;
    if src.first.kind() != dst.first.kind() {
        return Err(tokens.expected(format!("{} as the destination", src.first.kind())));
    }
    let at = plan.bytes.len();
    match (src.first, dst.first) {
        (Value::Mac(a), Value::Mac(b)) => {
            if at != 0 {
                return Err(tokens.expected("an Ethernet header in front of all others"));
            }
            let ether_type =
                ether_type(name).ok_or_else(|| tokens.expected("IP4, IP6, ARP or an EtherType as 0x0800"))?;
            plan.bytes.extend(EthernetHeader::new(a, b, ether_type).as_bytes());
            plan.layers.push(Layer::Ethernet { at });
            field(plan, 6, 6, src);
            field(plan, 0, 6, dst);
        }
        (Value::MacIp4(a, from), Value::MacIp4(b, to)) => {
            let opcode = match name {
                "request" => ArpOpcode::REQUEST,
                "reply" => ArpOpcode::REPLY,
                _ => return Err(tokens.expected("request or reply in front of the colon")),
            };
            plan.bytes.extend(ArpHeader::new(opcode, a, from, b, to).as_bytes());
            plan.layers.push(Layer::Arp { at });
        }
        (Value::Ip4(a), Value::Ip4(b)) => {
            let protocol =
                protocol(name).ok_or_else(|| tokens.expected("UDP, TCP, ICMP or a protocol number"))?;
            plan.bytes.extend(Ip4Header::new(a, b, protocol, 64, 0).as_bytes());
            plan.layers.push(Layer::Ip4 { at, fixed_length: false, fixed_checksum: false });
            field(plan, at + 12, 4, src);
            field(plan, at + 16, 4, dst);
        }
        (Value::Ip6(a), Value::Ip6(b)) => {
            let protocol =
                protocol(name).ok_or_else(|| tokens.expected("UDP, TCP, ICMP6 or a protocol number"))?;
            plan.bytes.extend(Ip6Header::new(a, b, protocol, 64, 0).as_bytes());
            plan.layers.push(Layer::Ip6 { at, fixed_length: false });
            // Ranges are of the lower half of an address.
            field(plan, at + 16, 8, src);
            field(plan, at + 32, 8, dst);
        }
        (Value::Port(a), Value::Port(b)) => {
            if !matches!(plan.layers.last(), Some(Layer::Ip4 { .. } | Layer::Ip6 { .. })) {
                return Err(tokens.expected("ports only right after an IP header"));
            }
            match name {
                "UDP" => {
                    plan.bytes.extend(UdpHeader::new(a, b, 0).as_bytes());
                    plan.layers.push(Layer::Udp { at, fixed_length: false, fixed_checksum: false });
                }
                "TCP" => {
                    plan.bytes.extend(TcpHeader::new(a, b, TcpFlags::default()).as_bytes());
                    plan.layers.push(Layer::Tcp { at, fixed_checksum: false });
                }
                _ => return Err(tokens.expected("UDP or TCP in front of ports")),
            }
            field(plan, at, 2, src);
            field(plan, at + 2, 2, dst);
        }
        _ => return Err(tokens.expected(EXPECTED)),
    }
    Ok(())
}

/// Notes a field that changes, if the operand is a range.
fn field(plan: &mut Blueprint, at: usize, width: usize, operand: Operand) {
    if let Some((count, order)) = operand.range {
        plan.fields.push(Field { at, width, first: operand.first.number(), count, order });
    }
}

fn ether_type(name: &str) -> Option<EtherType> {
    Some(match name {
        "IP4" => EtherType::IP4,
        "IP6" => EtherType::IP6,
        "ARP" => EtherType::ARP,
        "MPLS" => EtherType::MPLS,
        _ => EtherType(u16::try_from(number(name)?).ok()?),
    })
}

fn protocol(name: &str) -> Option<IpProtocol> {
    let named = (0..=u8::MAX).map(IpProtocol).find(|p| p.name() == Some(name));
    named.or_else(|| Some(IpProtocol(u8::try_from(number(name)?).ok()?)))
}

/// `ICMP echo_request [code N]`, right after an IPv4 header.
fn icmp(tokens: &mut Tokens, plan: &mut Blueprint) -> Result<(), PgError> {
    if !matches!(plan.layers.last(), Some(Layer::Ip4 { .. })) {
        return Err(tokens.expected("ICMP only right after an IPv4 header"));
    }
    let kind = tokens.parse("an ICMP type such as echo_request, or its number", |word| {
        let named = (0..=u8::MAX).map(Icmp4Type).find(|t| t.name() == Some(word));
        named.or_else(|| Some(Icmp4Type(u8::try_from(number(word)?).ok()?)))
    })?;
    let code = if tokens.take("code") { tokens.number("an ICMP code", 0, 255)? } else { 0 };
    plan.layers.push(Layer::Icmp { at: plan.bytes.len(), fixed_checksum: false });
    plan.bytes.extend([kind.0, code as u8, 0, 0]);
    Ok(())
}

/// A word that changes the header before it.
fn option(word: &str, tokens: &mut Tokens, plan: &mut Blueprint) -> Result<(), PgError> {
    let Some(layer) = plan.layers.last().copied() else { return Err(tokens.expected(EXPECTED)) };
    match (layer, word) {
        (Layer::Ethernet { .. }, "vlan") => vlan(tokens, plan),
        (Layer::Ip4 { at, fixed_length, fixed_checksum }, _) => {
            let fixed = ip4_option(word, at, tokens, plan)?;
            set(
                plan,
                Layer::Ip4 {
                    at,
                    fixed_length: fixed_length || fixed == Fixed::Length,
                    fixed_checksum: fixed_checksum || fixed == Fixed::Checksum,
                },
            );
            Ok(())
        }
        (Layer::Ip6 { at, .. }, "length") => {
            write(plan, at + 4, tokens.number("a payload length", 0, MOST)? as u16);
            set(plan, Layer::Ip6 { at, fixed_length: true });
            Ok(())
        }
        (Layer::Ip6 { at, .. }, "hop-limit" | "ttl") => {
            let limit = tokens.number("a hop limit", 0, 255)?;
            byte(plan, at + 7, limit as u8);
            Ok(())
        }
        (Layer::Udp { at, fixed_checksum, .. }, "length") => {
            write(plan, at + 4, tokens.number("a UDP length", 0, MOST)? as u16);
            set(plan, Layer::Udp { at, fixed_length: true, fixed_checksum });
            Ok(())
        }
        (Layer::Udp { at, fixed_length, .. }, "checksum") => {
            write(plan, at + 6, tokens.number("a checksum", 0, MOST)? as u16);
            set(plan, Layer::Udp { at, fixed_length, fixed_checksum: true });
            Ok(())
        }
        (Layer::Tcp { at, .. }, "checksum") => {
            write(plan, at + 16, tokens.number("a checksum", 0, MOST)? as u16);
            set(plan, Layer::Tcp { at, fixed_checksum: true });
            Ok(())
        }
        (Layer::Icmp { at, .. }, "checksum") => {
            write(plan, at + 2, tokens.number("a checksum", 0, MOST)? as u16);
            set(plan, Layer::Icmp { at, fixed_checksum: true });
            Ok(())
        }
        (Layer::Tcp { at, .. }, _) => tcp_option(word, at, tokens, plan),
        _ => Err(tokens.expected(EXPECTED)),
    }
}

#[derive(PartialEq, Eq)]
enum Fixed {
    Nothing,
    Length,
    Checksum,
}

fn ip4_option(word: &str, at: usize, tokens: &mut Tokens, plan: &mut Blueprint) -> Result<Fixed, PgError> {
    match word {
        "ttl" => {
            let ttl = tokens.number("a TTL", 0, 255)?;
            byte(plan, at + 8, ttl as u8);
        }
        "tos" => {
            let tos = tokens.number("a type of service", 0, 255)?;
            byte(plan, at + 1, tos as u8);
        }
        "id" => write(plan, at + 4, tokens.number("an identification", 0, MOST)? as u16),
        "df" => write(plan, at + 6, Ip4Header::DONT_FRAGMENT),
        "length" => {
            write(plan, at + 2, tokens.number("a total length", 0, MOST)? as u16);
            return Ok(Fixed::Length);
        }
        "checksum" => {
            write(plan, at + 10, tokens.number("a checksum", 0, MOST)? as u16);
            return Ok(Fixed::Checksum);
        }
        _ => return Err(tokens.expected("ttl, tos, id, df, length, checksum, another header or a payload")),
    }
    Ok(Fixed::Nothing)
}

fn tcp_option(word: &str, at: usize, tokens: &mut Tokens, plan: &mut Blueprint) -> Result<(), PgError> {
    let flag = match word {
        "SYN" => TcpFlags::SYN,
        "ACK" => TcpFlags::ACK,
        "FIN" => TcpFlags::FIN,
        "RST" => TcpFlags::RST,
        "PSH" => TcpFlags::PSH,
        "URG" => TcpFlags::URG,
        "window" => {
            write(plan, at + 14, tokens.number("a window", 0, MOST)? as u16);
            return Ok(());
        }
        "seq" | "ack" => {
            let value = tokens.number("a sequence number", 0, u64::from(u32::MAX))? as u32;
            let from = at + if word == "seq" { 4 } else { 8 };
            write(plan, from, (value >> 16) as u16);
            write(plan, from + 2, value as u16);
            return Ok(());
        }
        _ => return Err(tokens.expected("seq, ack, window, checksum, a flag such as SYN, or a payload")),
    };
    if let Some(flags) = plan.bytes.get_mut(at + 13) {
        *flags |= flag.0;
    }
    Ok(())
}

/// Puts an 802.1Q tag between the addresses' EtherType and what follows.
fn vlan(tokens: &mut Tokens, plan: &mut Blueprint) -> Result<(), PgError> {
    let id = tokens.number("a VLAN", 0, 4095)?;
    let Some(at) = plan.bytes.len().checked_sub(2) else { return Ok(()) };
    let inner = plan.bytes.split_off(at);
    let inner = EtherType(u16::from_be_bytes(inner.first_chunk::<2>().copied().unwrap_or_default()));
    plan.bytes.extend(EtherType::VLAN.0.to_be_bytes());
    plan.bytes.extend(VlanHeader::new(id as u16, inner).as_bytes());
    debug_assert!(EthernetHeader::ref_from_prefix(&plan.bytes).is_ok());
    Ok(())
}

fn set(plan: &mut Blueprint, layer: Layer) {
    if let Some(last) = plan.layers.last_mut() {
        *last = layer;
    }
}

fn byte(plan: &mut Blueprint, at: usize, value: u8) {
    if let Some(place) = plan.bytes.get_mut(at) {
        *place = value;
    }
}

fn write(plan: &mut Blueprint, at: usize, value: u16) {
    if let Some(place) = plan.bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Offload, Order};
    use shoal_wire::Packet;

    fn read(text: &str) -> Result<Blueprint, String> {
        parse(&mut Tokens::new(text)).map_err(|e| e.to_string())
    }

    fn bytes(text: &str) -> Vec<u8> {
        let plan = read(text).unwrap();
        let mut out = Vec::new();
        plan.render(plan.natural_size(), Offload::No, &mut out);
        out
    }

    #[test]
    fn describes_what_the_packet_builder_builds() {
        let (us, them) = ([0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]);
        let udp = "IP4: 00:01:02:03:04:05 -> 06:07:08:09:0a:0b UDP: 10.0.0.1 -> 10.0.0.2 UDP: 1234 -> 5678 incrementing 18 }";
        let built =
            Packet::ethernet(us, them).ip4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1234, 5678).payload_len(18);
        assert_eq!(bytes(udp), built.build());
        let tcp = "TCP: 10.0.0.1->10.0.0.2 ttl 3 tos 8 id 77 df TCP: 1 -> 2 SYN seq 5 }";
        let tcp = bytes(tcp);
        assert!(Ip4Header::ref_from_prefix(&tcp).unwrap().0.checksum_ok());
        assert_eq!((tcp.len(), tcp[8], tcp[33], tcp[27]), (40, 3, 2, 5));
        let arp = "ARP: 0.102.304 -> ffff.ffff.ffff request: 00:00:01:02:03:04/10.0.0.1 -> 00:00:00:00:00:00/10.0.0.2 }";
        assert_eq!(bytes(arp), Packet::arp_request([0, 0, 1, 2, 3, 4], [10, 0, 0, 1], [10, 0, 0, 2]).build());
        let ip6 = "UDP: 2001:db8::1 -> 2001:db8::2 UDP: 5 -> 6 incrementing 3 }";
        let a = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let b = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
        assert_eq!(bytes(ip6), Packet::raw().ip6(a, b).udp(5, 6).payload_len(3).build());
        assert_eq!(bytes("hex 0x45ff incrementing 2 }"), [0x45, 0xff, 0, 1]);
    }

    #[test]
    fn a_vlan_tag_goes_between_the_addresses_and_the_type() {
        let tagged = bytes("IP4: 1.2.3 -> 4.5.6 vlan 100 UDP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 2 }");
        assert_eq!(tagged[12..18], [0x81, 0, 0, 100, 8, 0]);
        assert_eq!(tagged.len(), 46);
    }

    #[test]
    fn icmp_carries_its_checksum() {
        let echo = bytes("ICMP: 1.0.0.2 -> 1.0.0.1 ICMP echo_request incrementing 100 }");
        assert_eq!((echo.len(), echo[20]), (124, 8));
        assert_eq!(shoal_wire::checksum::checksum(&echo[20..]), 0);
    }

    #[test]
    fn ranges_become_fields() {
        let plan = read("UDP: 10.0.0.1 - 10.0.0.100 -> 10.1.0.0+10.1.255.255 UDP: 1 - 3 -> 5 }").unwrap();
        assert_eq!(
            plan.fields,
            [
                Field { at: 12, width: 4, first: 0x0a00_0001, count: 100, order: Order::Increment },
                Field { at: 16, width: 4, first: 0x0a01_0000, count: 65_536, order: Order::Random },
                Field { at: 20, width: 2, first: 1, count: 3, order: Order::Increment },
            ]
        );
    }

    #[test]
    fn explicit_lengths_and_checksums_are_lies_that_stay() {
        let lying =
            bytes("UDP: 1.1.1.1 -> 2.2.2.2 length 9000 UDP: 1 -> 2 length 7 checksum 0 incrementing 4 }");
        assert_eq!((&lying[2..4], &lying[24..28]), (&9000u16.to_be_bytes()[..], &[0, 7, 0, 0][..]));
    }

    #[test]
    fn errors_say_what_was_expected_and_where() {
        for (text, part) in [
            ("UDP: 1.2.3.4", "after `UDP: 1.2.3.4': expected `->'"),
            ("UDP: 1.2.3.4 -> fish }", "after `-> fish': expected a MAC address, an IPv4"),
            ("UDP: 1.2.3.4 -> 5 }", "expected an IPv4 address as the destination"),
            ("fish: 1.2.3.4 -> 1.2.3.5 }", "expected UDP, TCP, ICMP"),
            ("UDP: 1 -> 2 }", "right after an IP header"),
            ("hex 0x123 }", "even number of hexadecimal digits"),
            ("incrementing 70000 }", "bytes of payload, 0 to 65535"),
            ("incrementing 40000 incrementing 40000 }", "at most 65535 bytes"),
            ("UDP: 10.0.0.9 - 10.0.0.1 -> 1.1.1.1 }", "at or behind its beginning"),
            ("UDP: 1.1.1.1 -> 2.2.2.2 ttl 300 }", "a TTL, 0 to 255"),
            ("UDP: 1.1.1.1 -> 2.2.2.2", "`}' at the end of data"),
            ("ttl 3 }", "a header such as"),
            ("UDP: 1.1.1.1 -> 2.2.2.2 IP4: 1.2.3 -> 4.5.6 }", "in front of all others"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_field_keeps_every_checksum_right_through_its_range() {
        use crate::data::{Template, template::Random};
        let plan = read(
            "IP4: 1.2.3 -> 4.5.6 UDP: 10.0.255.250 - 10.1.0.10 -> 20.0.0.0 + 20.0.255.255 UDP: 65530 - 65535 -> 9 incrementing 11 }",
        )
        .unwrap();
        let template = Template::new(&plan, plan.natural_size(), Offload::No);
        let mut random = Random(1);
        for number in 0..1000 {
            let mut data = template.bytes.clone();
            template.vary(number, &mut random, &mut data);
            let mut fresh = data.clone();
            plan.finish(Offload::No, &mut fresh);
            assert_eq!(data, fresh, "packet {number}");
        }
    }
}
