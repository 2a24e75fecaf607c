//! IPv6 extension headers for RFC 5180's traffic: the smallest of each kind, asking nothing of the device but to pass them.

use std::str::FromStr;

use crate::error::FrameError;

/// An extension header of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extension {
    /// Hop-by-hop options: one PadN (RFC 8200 section 4.3).
    HopByHop,
    /// Destination options: one PadN (RFC 8200 section 4.6).
    Destination,
    /// Routing of an experimental type (253, RFC 4727) with no segments left, which a node must pass over (RFC 8200 4.4).
    Routing,
    /// A fragment that is the whole packet (RFC 6946).
    Fragment,
}

/// Bytes of each.
const LENGTH: usize = 8;

impl Extension {
    /// All, in the order in which RFC 8200 section 4.1 wants them.
    pub const ALL: [Extension; 4] =
        [Extension::HopByHop, Extension::Destination, Extension::Routing, Extension::Fragment];

    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Extension::HopByHop => "hop-by-hop",
            Extension::Destination => "destination",
            Extension::Routing => "routing",
            Extension::Fragment => "fragment",
        }
    }

    const fn number(self) -> u8 {
        match self {
            Extension::HopByHop => 0,
            Extension::Destination => 60,
            Extension::Routing => 43,
            Extension::Fragment => 44,
        }
    }

    const fn bytes(self, next: u8) -> [u8; LENGTH] {
        match self {
            Extension::HopByHop | Extension::Destination => [next, 0, 1, 4, 0, 0, 0, 0],
            Extension::Routing => [next, 0, 253, 0, 0, 0, 0, 0],
            Extension::Fragment => [next, 0, 0, 0, 0, 0, 0, 1],
        }
    }
}

impl FromStr for Extension {
    type Err = FrameError;

    fn from_str(name: &str) -> Result<Self, FrameError> {
        Self::ALL
            .into_iter()
            .find(|e| e.name() == name)
            .ok_or_else(|| FrameError::unknown("extension header", name, &Self::ALL.map(Extension::name)))
    }
}

/// Bytes of all.
pub(crate) fn length(extensions: &[Extension]) -> usize {
    extensions.len() * LENGTH
}

/// The number for the IPv6 header, and the headers in RFC 8200's order; the last names `transport`.
pub(crate) fn bytes(extensions: &[Extension], transport: u8) -> (u8, Vec<u8>) {
    let mut ordered = extensions.to_vec();
    ordered.sort_unstable();
    let numbers: Vec<u8> = ordered.iter().map(|e| e.number()).chain([transport]).collect();
    let nexts = numbers.iter().copied().skip(1);
    let headers = ordered.iter().zip(nexts).flat_map(|(e, next)| e.bytes(next)).collect();
    (numbers.first().copied().unwrap_or(transport), headers)
}
