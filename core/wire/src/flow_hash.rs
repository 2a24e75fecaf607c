//! Which fields of a packet choose its path: VPP's `set ip flow-hash`.
//!
//! ```
//! use shoal_wire::{FlowFields, FlowHash, FromBytes, Ip6Header, Packet};
//! let fields = "src dst flowlabel".split(' ').map(|w| w.parse()).collect::<Result<FlowFields, _>>()?;
//! let hash = FlowHash::new(fields, 0x5eed);
//! let of = |port| hash.ip6_packet(&Packet::raw().ip6([1; 8], [2; 8]).udp(port, 80).build());
//! assert_eq!(of(1), of(2));
//! # Ok::<(), shoal_wire::flow_hash::UnknownFlowField>(())
//! ```

use std::error::Error;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::BitOr;
use std::str::FromStr;

use zerocopy::FromBytes;

use crate::hash::{Flow4, Flow6, Symmetry};
use crate::{Ip6Header, IpProtocol};

/// A set of fields and how they are used. `Display` is the words of `set ip flow-hash`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowFields(pub u8);

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $bit:literal $word:literal;)*) => {
        impl FlowFields {
            $($(#[$doc])* pub const $name: Self = Self($bit);)*

            /// Every word in VPP's order.
            pub const WORDS: &'static [(Self, &'static str)] = &[$((Self::$name, $word)),*];
        }
    };
}

fields! {
    /// Source address.
    SRC = 0x01 "src";
    /// Destination address.
    DST = 0x02 "dst";
    /// Source port.
    SPORT = 0x04 "sport";
    /// Destination port.
    DPORT = 0x08 "dport";
    /// Protocol.
    PROTO = 0x10 "proto";
    /// Source and destination swap places: the hash of the way back.
    REVERSE = 0x20 "reverse";
    /// Both directions hash alike.
    SYMMETRIC = 0x40 "symmetric";
    /// Flow label of IPv6 (RFC 6438); IPv4 has none.
    FLOWLABEL = 0x80 "flowlabel";
}

impl FlowFields {
    /// Nothing: every packet hashes alike.
    pub const NONE: Self = Self(0);
    /// The 5-tuple, VPP's default.
    pub const DEFAULT: Self = Self(0x1f);

    /// Every field of `other` is in this set.
    #[inline(always)]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Default for FlowFields {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl BitOr for FlowFields {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Self> for FlowFields {
    fn from_iter<I: IntoIterator<Item = Self>>(fields: I) -> Self {
        fields.into_iter().fold(Self::NONE, BitOr::bitor)
    }
}

impl fmt::Display for FlowFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (_, word) in Self::WORDS.iter().filter(|(field, _)| self.contains(*field)) {
            write!(f, "{separator}{word}")?;
            separator = " ";
        }
        Ok(())
    }
}

/// The word names no field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownFlowField {
    text: String,
}

impl fmt::Display for UnknownFlowField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: no field of the flow hash, expected one of {}", self.text, FlowFields(0xff))
    }
}

impl Error for UnknownFlowField {}

/// One word.
impl FromStr for FlowFields {
    type Err = UnknownFlowField;

    fn from_str(text: &str) -> Result<Self, UnknownFlowField> {
        let found = Self::WORDS.iter().find(|(_, word)| *word == text);
        found
            .map(|(field, _)| *field)
            .ok_or_else(|| UnknownFlowField { text: text.chars().take(64).collect() })
    }
}

/// A hash over chosen fields, prepared once per table: what is not chosen is masked to zero, so that
/// a packet costs the same whatever was chosen.
#[derive(Clone, Copy, Debug)]
pub struct FlowHash {
    seed: u64,
    src: u64,
    dst: u64,
    sport: u16,
    dport: u16,
    protocol: u8,
    flow_label: u32,
    symmetry: Symmetry,
    fields: FlowFields,
}

/// All ones or none.
macro_rules! mask {
    ($fields:expr, $field:ident, $type:ty) => {
        if $fields.contains(FlowFields::$field) { <$type>::MAX } else { 0 }
    };
}

impl FlowHash {
    /// A hash over `fields`; see [`hash`](crate::hash) for the seed.
    pub const fn new(fields: FlowFields, seed: u64) -> Self {
        let symmetric = fields.contains(FlowFields::SYMMETRIC);
        Self {
            seed,
            src: mask!(fields, SRC, u64),
            dst: mask!(fields, DST, u64),
            sport: mask!(fields, SPORT, u16),
            dport: mask!(fields, DPORT, u16),
            protocol: mask!(fields, PROTO, u8),
            flow_label: mask!(fields, FLOWLABEL, u32),
            symmetry: if symmetric { Symmetry::Symmetric } else { Symmetry::Directed },
            fields,
        }
    }

    /// The fields it was made of.
    pub const fn fields(&self) -> FlowFields {
        self.fields
    }

    /// The hash of an IPv4 flow.
    #[inline]
    pub fn ip4(&self, flow: &Flow4) -> u32 {
        let chosen = Flow4 {
            src: Ipv4Addr::from_bits(flow.src.to_bits() & self.src as u32),
            dst: Ipv4Addr::from_bits(flow.dst.to_bits() & self.dst as u32),
            src_port: flow.src_port & self.sport,
            dst_port: flow.dst_port & self.dport,
            protocol: IpProtocol(flow.protocol.0 & self.protocol),
        };
        let Flow4 { src, dst, src_port, dst_port, protocol } = chosen;
        let chosen = if self.fields.contains(FlowFields::REVERSE) {
            Flow4 { src: dst, dst: src, src_port: dst_port, dst_port: src_port, protocol }
        } else {
            chosen
        };
        chosen.hash(self.seed, self.symmetry)
    }

    /// The hash of an IPv6 flow with its flow label.
    #[inline]
    pub fn ip6(&self, flow: &Flow6, flow_label: u32) -> u32 {
        let wide = |mask: u64| u128::from(mask) << 64 | u128::from(mask);
        let chosen = Flow6 {
            src: Ipv6Addr::from_bits(flow.src.to_bits() & wide(self.src)),
            dst: Ipv6Addr::from_bits(flow.dst.to_bits() & wide(self.dst)),
            src_port: flow.src_port & self.sport,
            dst_port: flow.dst_port & self.dport,
            protocol: IpProtocol(flow.protocol.0 & self.protocol),
        };
        let Flow6 { src, dst, src_port, dst_port, protocol } = chosen;
        let chosen = if self.fields.contains(FlowFields::REVERSE) {
            Flow6 { src: dst, dst: src, src_port: dst_port, dst_port: src_port, protocol }
        } else {
            chosen
        };
        chosen.hash_labelled(self.seed, self.symmetry, flow_label & self.flow_label)
    }

    /// The hash of the IPv4 packet that starts at `packet`; of a header that is cut off, 0.
    #[inline]
    pub fn ip4_packet(&self, packet: &[u8]) -> u32 {
        Flow4::of_packet(packet).map_or(0, |flow| self.ip4(&flow))
    }

    /// The hash of the IPv6 packet that starts at `packet`; of a header that is cut off, 0. Bytes past
    /// the headers are not needed; extension headers are walked only if there are any.
    #[inline]
    pub fn ip6_packet(&self, packet: &[u8]) -> u32 {
        match (Ip6Header::ref_from_prefix(packet), Flow6::of_packet(packet)) {
            (Ok((ip, _)), Some(flow)) => self.ip6(&flow, ip.flow_label()),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    fn fields(text: &str) -> FlowFields {
        text.split_whitespace().map(|word| word.parse::<FlowFields>().unwrap()).collect()
    }

    /// Hashes of a base packet and of others that differ from it in one field each: source,
    /// destination, source port, destination port, protocol, flow label.
    fn differs(hash: &FlowHash) -> ([bool; 5], [bool; 6]) {
        let four = |s: u8, d: u8, sport, dport, p| {
            hash.ip4(&Flow4 {
                src: [10, 0, 0, s].into(),
                dst: [10, 0, 0, d].into(),
                src_port: sport,
                dst_port: dport,
                protocol: IpProtocol(p),
            })
        };
        let six = |s: u16, d: u16, sport, dport, p, label| {
            hash.ip6(
                &Flow6 {
                    src: [0x2001, 0, 0, 0, 0, 0, 0, s].into(),
                    dst: [0x2001, 0, 0, 0, 0, 0, 0, d].into(),
                    src_port: sport,
                    dst_port: dport,
                    protocol: IpProtocol(p),
                },
                label,
            )
        };
        let (base4, base6) = (four(1, 2, 3, 4, 6), six(1, 2, 3, 4, 6, 7));
        (
            [
                four(9, 2, 3, 4, 6),
                four(1, 9, 3, 4, 6),
                four(1, 2, 9, 4, 6),
                four(1, 2, 3, 9, 6),
                four(1, 2, 3, 4, 17),
            ]
            .map(|h| h != base4),
            [
                six(9, 2, 3, 4, 6, 7),
                six(1, 9, 3, 4, 6, 7),
                six(1, 2, 9, 4, 6, 7),
                six(1, 2, 3, 9, 6, 7),
                six(1, 2, 3, 4, 17, 7),
                six(1, 2, 3, 4, 6, 9),
            ]
            .map(|h| h != base6),
        )
    }

    #[test]
    fn only_chosen_fields_count() {
        for chosen in 0..=0xff {
            let fields = FlowFields(chosen);
            let (four, six) = differs(&FlowHash::new(fields, 5));
            let want =
                [FlowFields::SRC, FlowFields::DST, FlowFields::SPORT, FlowFields::DPORT, FlowFields::PROTO]
                    .map(|field| fields.contains(field));
            assert_eq!((four, &six[..5]), (want, &want[..]), "{fields}");
            assert_eq!(six[5], fields.contains(FlowFields::FLOWLABEL), "{fields}");
        }
    }

    #[test]
    fn the_way_back_is_reversed_or_alike() {
        let there = Packet::raw().ip6([1; 8], [2; 8]).udp(3, 4).flow_label(5).build();
        let back = Packet::raw().ip6([2; 8], [1; 8]).udp(4, 3).flow_label(5).build();
        let hash = |extra, packet: &[u8]| FlowHash::new(FlowFields::DEFAULT | extra, 1).ip6_packet(packet);
        assert_ne!(hash(FlowFields::NONE, &there), hash(FlowFields::NONE, &back));
        assert_eq!(hash(FlowFields::REVERSE, &there), hash(FlowFields::NONE, &back));
        assert_eq!(hash(FlowFields::SYMMETRIC, &there), hash(FlowFields::SYMMETRIC, &back));
        let there = Packet::raw().ip4([1; 4], [2; 4]).udp(3, 4).build();
        let back = Packet::raw().ip4([2; 4], [1; 4]).udp(4, 3).build();
        let hash = |extra, packet: &[u8]| FlowHash::new(FlowFields::DEFAULT | extra, 1).ip4_packet(packet);
        assert_ne!(hash(FlowFields::NONE, &there), hash(FlowFields::NONE, &back));
        assert_eq!(hash(FlowFields::REVERSE, &there), hash(FlowFields::NONE, &back));
        assert_eq!(hash(FlowFields::SYMMETRIC, &there), hash(FlowFields::SYMMETRIC, &back));
        assert_eq!((hash(FlowFields::NONE, &there[..19]), hash(FlowFields::NONE, &[])), (0, 0));
    }

    #[test]
    fn words_are_those_of_the_command() {
        let all = "src dst sport dport proto reverse symmetric flowlabel";
        assert_eq!((fields(all), fields(all).to_string()), (FlowFields(0xff), all.to_owned()));
        assert_eq!(FlowFields::default(), fields("src dst sport dport proto"));
        assert_eq!(FlowFields::NONE.to_string(), "");
        let error = "srv".parse::<FlowFields>().unwrap_err().to_string();
        assert_eq!(error, format!("srv: no field of the flow hash, expected one of {all}"));
    }
}
