//! What packets are known by, and what becomes of them.

use std::fmt;
use std::net::Ipv4Addr;

use shoal_nat::Tuple;
use shoal_wire::IpProtocol;

/// Fields of a packet, or things to be done: bits of VPP's `pnat_mask`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Fields(pub u32);

impl Fields {
    /// Source address.
    pub const SRC: Fields = Fields(1);
    /// Destination address.
    pub const DST: Fields = Fields(2);
    /// Source port.
    pub const SPORT: Fields = Fields(4);
    /// Destination port.
    pub const DPORT: Fields = Fields(8);
    /// A byte is copied to another place.
    pub const COPY_BYTE: Fields = Fields(16);
    /// A byte becomes 0.
    pub const CLEAR_BYTE: Fields = Fields(32);
    /// The protocol.
    pub const PROTO: Fields = Fields(64);
    /// What a packet can be known by.
    pub const OF_MATCH: Fields = Fields(1 | 2 | 4 | 8 | 64);
    /// What can be done to it. The protocol is none of it, and VPP's clients set its bit all the same.
    pub const OF_REWRITE: Fields = Fields(1 | 2 | 4 | 8 | 16 | 32);

    /// Whether any of these is among them.
    pub const fn has(self, other: Fields) -> bool {
        self.0 & other.0 != 0
    }

    /// Those that are in both.
    #[must_use]
    pub const fn and(self, other: Fields) -> Fields {
        Fields(self.0 & other.0)
    }

    /// Those that are in one of them.
    #[must_use]
    pub const fn or(self, other: Fields) -> Fields {
        Fields(self.0 | other.0)
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Fields::SRC, "SA "),
            (Fields::SPORT, "SP "),
            (Fields::DST, "DA "),
            (Fields::DPORT, "DP "),
            (Fields::PROTO, "PROTO "),
        ];
        names.iter().filter(|(field, _)| self.has(*field)).try_for_each(|(_, name)| f.write_str(name))
    }
}

/// Where packets are looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// What comes in by an interface.
    Input,
    /// What goes out by it.
    Output,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Place::Input { "in" } else { "out" })
    }
}

/// Which packets: those whose fields in the mask have these values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Match {
    /// What is looked at.
    pub mask: Fields,
    /// Addresses and ports.
    pub tuple: Tuple,
    /// The protocol above IP.
    pub protocol: u8,
}

impl Match {
    /// The values of these fields alone.
    #[must_use]
    pub fn masked(self, mask: Fields) -> Match {
        let keep = |field, word: u32| if mask.has(field) { word } else { 0 };
        let port = |field, port: u16| if mask.has(field) { port } else { 0 };
        let Tuple { src, dst, sport, dport } = self.tuple;
        Match {
            mask,
            tuple: Tuple {
                src: keep(Fields::SRC, src),
                dst: keep(Fields::DST, dst),
                sport: port(Fields::SPORT, sport),
                dport: port(Fields::DPORT, dport),
            },
            protocol: if mask.has(Fields::PROTO) { self.protocol } else { 0 },
        }
    }
}

/// What becomes of a packet: the fields in the mask get these values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rewrite {
    /// What is done.
    pub mask: Fields,
    /// Addresses and ports.
    pub tuple: Tuple,
    /// Which byte is copied, counted from the IP header.
    pub from_offset: u8,
    /// Where to.
    pub to_offset: u8,
    /// Which byte becomes 0.
    pub clear_offset: u8,
}

impl Rewrite {
    /// The tuple of a packet after it.
    #[must_use]
    pub fn applied(&self, old: Tuple, has_ports: bool) -> Tuple {
        let mut new = old;
        if self.mask.has(Fields::SRC) {
            new.src = self.tuple.src;
        }
        if self.mask.has(Fields::DST) {
            new.dst = self.tuple.dst;
        }
        if has_ports && self.mask.has(Fields::SPORT) {
            new.sport = self.tuple.sport;
        }
        if has_ports && self.mask.has(Fields::DPORT) {
            new.dport = self.tuple.dport;
        }
        new
    }
}

/// An address and a port, or `*` for what is not in the mask.
struct End(Fields, (Fields, u32), (Fields, u16));

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let End(mask, (address_field, address), (port_field, port)) = *self;
        if mask.has(address_field) {
            write!(f, "{}:", Ipv4Addr::from_bits(address))?;
        } else {
            f.write_str("*:")?;
        }
        if mask.has(port_field) { write!(f, "{port}") } else { f.write_str("*") }
    }
}

fn ends(mask: Fields, tuple: &Tuple) -> (End, End) {
    let source = End(mask, (Fields::SRC, tuple.src), (Fields::SPORT, tuple.sport));
    (source, End(mask, (Fields::DST, tuple.dst), (Fields::DPORT, tuple.dport)))
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = ends(self.mask, &self.tuple);
        if self.mask.has(Fields::PROTO) {
            write!(f, "{{{source},{},{destination}}}", IpProtocol(self.protocol))
        } else {
            write!(f, "{{{source},*,{destination}}}")
        }
    }
}

impl fmt::Display for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = ends(self.mask, &self.tuple);
        write!(f, "{{{source},{destination}}}")?;
        if self.mask.has(Fields::COPY_BYTE) {
            write!(f, " copy byte@[{}->{}]", self.from_offset, self.to_offset)?;
        }
        if self.mask.has(Fields::CLEAR_BYTE) {
            write!(f, " clear byte@[{}]", self.clear_offset)?;
        }
        Ok(())
    }
}
