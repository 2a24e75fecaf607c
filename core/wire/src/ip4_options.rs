//! IPv4 options (RFC 791 section 3.1), read without trusting their lengths.

use std::error::Error;
use std::fmt;

/// One option. `data` excludes the kind and length bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip4Option<'a> {
    /// The whole kind byte: copied flag, class and number.
    pub kind: u8,
    /// Offset of the kind byte in the option area, in bytes (for an ICMP parameter problem pointer).
    pub offset: usize,
    /// What follows kind and length; empty for a no-operation.
    pub data: &'a [u8],
}

impl Ip4Option<'_> {
    /// End of the option list.
    pub const END: u8 = 0;
    /// No operation: padding between options.
    pub const NOP: u8 = 1;
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Internet timestamp.
    pub const TIMESTAMP: u8 = 68;
    /// Loose source route.
    pub const LOOSE_SOURCE_ROUTE: u8 = 131;
    /// Strict source route.
    pub const STRICT_SOURCE_ROUTE: u8 = 137;
    /// Router alert (RFC 2113).
    pub const ROUTER_ALERT: u8 = 148;

    /// The option must be copied into every fragment.
    pub const fn is_copied(&self) -> bool {
        self.kind & 0x80 != 0
    }
}

/// An option whose length is missing, below 2 or beyond the option area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedOption {
    /// Offset of the kind byte in the option area, in bytes.
    pub offset: usize,
}

impl fmt::Display for MalformedOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed IPv4 option at offset {}", self.offset)
    }
}

impl Error for MalformedOption {}

/// Walks the option area of an IPv4 header: at most 40 bytes. Each step takes at least one byte and
/// never more than remain; the first malformed option is reported and ends the walk.
#[derive(Clone, Debug)]
pub struct Ip4Options<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Ip4Options<'a> {
    /// The options in `area`: the bytes from 20 to the header length. Bytes past 40 are ignored.
    pub fn new(area: &'a [u8]) -> Self {
        Self { rest: area.get(..40).unwrap_or(area), offset: 0 }
    }

    /// The options of the IPv4 packet that starts at `packet`; none when its header length is below
    /// 20 bytes or beyond the slice.
    pub fn of_packet(packet: &'a [u8]) -> Self {
        let header_len = packet.first().map_or(0, |b| usize::from(b & 0xf) * 4);
        Self::new(packet.get(20..header_len).unwrap_or(&[]))
    }
}

impl<'a> Iterator for Ip4Options<'a> {
    type Item = Result<Ip4Option<'a>, MalformedOption>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, after) = self.rest.split_first()?;
        let offset = self.offset;
        let (data, rest) = match kind {
            Ip4Option::END => {
                self.rest = &[];
                return None;
            }
            Ip4Option::NOP => (Some(&[][..]), after),
            _ => match after.first().map(|&len| usize::from(len)) {
                Some(len) if len >= 2 => (self.rest.get(2..len), self.rest.get(len..).unwrap_or(&[])),
                _ => (None, &[][..]),
            },
        };
        let Some(data) = data else {
            self.rest = &[];
            return Some(Err(MalformedOption { offset }));
        };
        self.offset += self.rest.len() - rest.len();
        self.rest = rest;
        Some(Ok(Ip4Option { kind, offset, data }))
    }
}

impl std::iter::FusedIterator for Ip4Options<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_nops_and_lengths_to_the_end_marker() {
        let area = [1, 148, 4, 0, 0, 7, 3, 4, 0, 99, 99, 99];
        let options: Vec<_> = Ip4Options::new(&area).map(Result::unwrap).collect();
        let want = [
            Ip4Option { kind: 1, offset: 0, data: &[] },
            Ip4Option { kind: 148, offset: 1, data: &[0, 0] },
            Ip4Option { kind: 7, offset: 5, data: &[4] },
        ];
        assert_eq!(options, want);
        assert!(options[1].is_copied() && !options[2].is_copied());
    }

    #[test]
    fn a_lying_length_is_reported_once_and_ends_the_walk() {
        for area in [&[1, 7, 0][..], &[1, 7, 1], &[1, 7, 3], &[1, 7]] {
            let mut options = Ip4Options::new(area);
            assert!(options.next().unwrap().is_ok());
            assert_eq!(options.next(), Some(Err(MalformedOption { offset: 1 })), "{area:?}");
            assert_eq!(options.next(), None);
        }
    }

    #[test]
    fn a_header_length_outside_the_packet_has_no_options() {
        assert_eq!(Ip4Options::of_packet(&[0x4f; 30]).next(), None);
        assert_eq!(Ip4Options::of_packet(&[0x41; 30]).next(), None);
        assert_eq!(Ip4Options::of_packet(&[]).next(), None);
    }
}
