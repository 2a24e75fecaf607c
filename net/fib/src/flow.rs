//! Which fields of a packet choose among several paths, and the choice.

use std::fmt;

use shoal_wire::IpProtocol;
use shoal_wire::hash::{Flow4, Flow6, Symmetry};

/// Fields of a packet that make its flow, as `set ip flow-hash` names them. Bits are VPP's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowFields(u8);

impl FlowFields {
    /// Source address.
    pub const SRC: FlowFields = FlowFields(1);
    /// Destination address.
    pub const DST: FlowFields = FlowFields(1 << 1);
    /// Source port.
    pub const SPORT: FlowFields = FlowFields(1 << 2);
    /// Destination port.
    pub const DPORT: FlowFields = FlowFields(1 << 3);
    /// Protocol.
    pub const PROTO: FlowFields = FlowFields(1 << 4);
    /// Source and destination change places.
    pub const REVERSE: FlowFields = FlowFields(1 << 5);
    /// Both directions of a flow are one.
    pub const SYMMETRIC: FlowFields = FlowFields(1 << 6);
    /// The flow label of IPv6 (RFC 6438), where it is not 0.
    pub const FLOW_LABEL: FlowFields = FlowFields(1 << 7);

    /// All fields and their words, in VPP's order.
    pub const ALL: [(&'static str, FlowFields); 8] = [
        ("src", FlowFields::SRC),
        ("dst", FlowFields::DST),
        ("sport", FlowFields::SPORT),
        ("dport", FlowFields::DPORT),
        ("proto", FlowFields::PROTO),
        ("reverse", FlowFields::REVERSE),
        ("symmetric", FlowFields::SYMMETRIC),
        ("flowlabel", FlowFields::FLOW_LABEL),
    ];

    /// No field.
    pub const NONE: FlowFields = FlowFields(0);

    /// These and those.
    #[must_use]
    pub const fn with(self, other: FlowFields) -> FlowFields {
        FlowFields(self.0 | other.0)
    }

    /// Whether all of `other` are among these.
    #[inline(always)]
    pub const fn has(self, other: FlowFields) -> bool {
        self.0 & other.0 == other.0
    }

    /// As a number.
    pub const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// What a table without a choice of its own has is kept as 0.
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> FlowFields {
        if bits == 0 { FlowFields::DEFAULT } else { FlowFields(bits as u8) }
    }

    /// The usual ones: addresses, ports, protocol and flow label.
    pub const DEFAULT: FlowFields = FlowFields(0x9f);

    #[inline(always)]
    fn symmetry(self) -> Symmetry {
        if self.has(FlowFields::SYMMETRIC) { Symmetry::Symmetric } else { Symmetry::Directed }
    }

    #[inline(always)]
    fn ports(self, src: u16, dst: u16) -> (u16, u16) {
        let of = |field, port| if self.has(field) { port } else { 0 };
        (of(FlowFields::SPORT, src), of(FlowFields::DPORT, dst))
    }

    #[inline(always)]
    fn protocol(self, protocol: IpProtocol) -> IpProtocol {
        if self.has(FlowFields::PROTO) { protocol } else { IpProtocol(0) }
    }

    /// The hash of the IPv4 packet that starts at `packet`; 0 for one that is cut off.
    #[inline]
    pub fn hash_ip4(self, packet: &[u8], seed: u64) -> u32 {
        let Some(mut flow) = Flow4::of_packet(packet) else { return 0 };
        if !self.has(FlowFields::DEFAULT) || self.has(FlowFields::REVERSE) {
            (flow.src_port, flow.dst_port) = self.ports(flow.src_port, flow.dst_port);
            flow.protocol = self.protocol(flow.protocol);
            if !self.has(FlowFields::SRC) {
                flow.src = std::net::Ipv4Addr::UNSPECIFIED;
            }
            if !self.has(FlowFields::DST) {
                flow.dst = std::net::Ipv4Addr::UNSPECIFIED;
            }
            if self.has(FlowFields::REVERSE) {
                std::mem::swap(&mut flow.src, &mut flow.dst);
                std::mem::swap(&mut flow.src_port, &mut flow.dst_port);
            }
        }
        flow.hash(seed, self.symmetry())
    }

    /// The hash of the IPv6 packet that starts at `packet`; 0 for one that is cut off.
    #[inline]
    pub fn hash_ip6(self, packet: &[u8], seed: u64) -> u32 {
        let Some(mut flow) = Flow6::of_packet(packet) else { return 0 };
        (flow.src_port, flow.dst_port) = self.ports(flow.src_port, flow.dst_port);
        flow.protocol = self.protocol(flow.protocol);
        if !self.has(FlowFields::SRC) {
            flow.src = std::net::Ipv6Addr::UNSPECIFIED;
        }
        if !self.has(FlowFields::DST) {
            flow.dst = std::net::Ipv6Addr::UNSPECIFIED;
        }
        if self.has(FlowFields::REVERSE) {
            std::mem::swap(&mut flow.src, &mut flow.dst);
            std::mem::swap(&mut flow.src_port, &mut flow.dst_port);
        }
        let label = match packet {
            [_, b, c, d, ..] if self.has(FlowFields::FLOW_LABEL) => u32::from_be_bytes([0, b & 0x0f, *c, *d]),
            _ => 0,
        };
        flow.hash(seed ^ u64::from(label).wrapping_mul(0xff51_afd7_ed55_8ccd), self.symmetry())
    }
}

impl fmt::Display for FlowFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = FlowFields::ALL.into_iter().filter(|(_, field)| self.has(*field));
        words.into_iter().try_for_each(|(word, _)| write!(f, "{word} "))
    }
}

#[cfg(test)]
mod tests {
    use shoal_wire::packet::Packet;

    use super::*;

    fn packet(src: u8, dst: u8, sport: u16, dport: u16) -> Vec<u8> {
        Packet::raw().ip4([10, 0, 0, src], [10, 0, 0, dst]).udp(sport, dport).build()
    }

    #[test]
    fn only_the_chosen_fields_decide() {
        let base = packet(1, 2, 3, 4);
        let others = [packet(9, 2, 3, 4), packet(1, 9, 3, 4), packet(1, 2, 9, 4), packet(1, 2, 3, 9)];
        let fields = [FlowFields::SRC, FlowFields::DST, FlowFields::SPORT, FlowFields::DPORT];
        for (other, field) in others.iter().zip(fields) {
            for chosen in fields {
                let same = chosen.hash_ip4(&base, 5) == chosen.hash_ip4(other, 5);
                assert_eq!(same, chosen != field, "{chosen} {field}");
            }
            assert_ne!(FlowFields::DEFAULT.hash_ip4(&base, 5), FlowFields::DEFAULT.hash_ip4(other, 5));
        }
    }

    #[test]
    fn symmetric_and_reverse_do_what_they_say() {
        let (there, back) = (packet(1, 2, 3, 4), packet(2, 1, 4, 3));
        let (usual, both) = (FlowFields::DEFAULT, FlowFields::DEFAULT.with(FlowFields::SYMMETRIC));
        assert_eq!(both.hash_ip4(&there, 1), both.hash_ip4(&back, 1));
        let reverse = usual.with(FlowFields::REVERSE);
        assert_eq!(reverse.hash_ip4(&there, 1), usual.hash_ip4(&back, 1));
        assert_ne!(usual.hash_ip4(&there, 1), usual.hash_ip4(&back, 1));
    }
}
