//! Options of the hop-by-hop and destination options headers (RFC 8200 section 4.2), read without
//! trusting their lengths.

use std::error::Error;
use std::fmt;

use crate::ip6_ext::Ip6ExtHeader;

/// What a node does with an option that it does not recognise: the two highest bits of its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// 00: goes on as if it were not there.
    Skip,
    /// 01: drops the packet.
    Discard,
    /// 10: drops the packet and tells its source, even if it went to a group.
    Report,
    /// 11: drops the packet and tells its source unless it went to a group.
    ReportUnlessGroup,
}

/// One option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip6Option<'a> {
    /// The whole type byte: action, change bit and number.
    pub kind: u8,
    /// Offset of the type byte from where the walk counts: the packet, or the header.
    pub offset: usize,
    /// What follows type and length; empty for one byte of padding.
    pub data: &'a [u8],
}

impl Ip6Option<'_> {
    /// One byte of padding, without a length.
    pub const PAD1: u8 = 0;
    /// Padding of two bytes or more.
    pub const PADN: u8 = 1;
    /// Tunnel encapsulation limit (RFC 2473).
    pub const TUNNEL_ENCAPSULATION_LIMIT: u8 = 4;
    /// Router alert (RFC 2711).
    pub const ROUTER_ALERT: u8 = 5;
    /// Jumbo payload (RFC 2675).
    pub const JUMBO_PAYLOAD: u8 = 0xc2;

    /// What a node does that does not know it.
    #[inline]
    pub const fn action(&self) -> Action {
        match self.kind >> 6 {
            0 => Action::Skip,
            1 => Action::Discard,
            2 => Action::Report,
            _ => Action::ReportUnlessGroup,
        }
    }

    /// The data may change on the way: authentication takes it for zeroes.
    pub const fn may_change(&self) -> bool {
        self.kind & 0x20 != 0
    }

    /// One of the two kinds of padding.
    pub const fn is_padding(&self) -> bool {
        self.kind <= Self::PADN
    }

    /// The value of a router alert of right length (RFC 2711 section 2.1): 0 is "multicast listener
    /// discovery inside".
    pub const fn router_alert(&self) -> Option<u16> {
        match (self.kind, self.data) {
            (Self::ROUTER_ALERT, &[a, b]) => Some(u16::from_be_bytes([a, b])),
            _ => None,
        }
    }
}

/// An option whose length is missing or reaches past its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedIp6Option {
    /// Offset of the type byte, counted as [`Ip6Option::offset`] is.
    pub offset: usize,
}

impl fmt::Display for MalformedIp6Option {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed IPv6 option at offset {}", self.offset)
    }
}

impl Error for MalformedIp6Option {}

/// Walks the options of a header. Each step takes at least one byte and never more than remain; the
/// first malformed option is reported and ends the walk.
#[derive(Clone, Debug)]
pub struct Ip6Options<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Ip6Options<'a> {
    /// The options in `area`, whose first byte has this `offset`.
    pub const fn new(area: &'a [u8], offset: usize) -> Self {
        Self { rest: area, offset }
    }

    /// The options of a header, with offsets in the packet.
    pub fn of_header(header: &Ip6ExtHeader<'a>) -> Self {
        Self::new(header.bytes.get(2..).unwrap_or(&[]), header.offset + 2)
    }
}

impl<'a> Iterator for Ip6Options<'a> {
    type Item = Result<Ip6Option<'a>, MalformedIp6Option>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset;
        let (kind, data, rest) = match self.rest {
            [] => return None,
            [Ip6Option::PAD1, rest @ ..] => (Ip6Option::PAD1, &[][..], rest),
            [kind, len, rest @ ..] if usize::from(*len) <= rest.len() => {
                let (data, rest) = rest.split_at(usize::from(*len));
                (*kind, data, rest)
            }
            _ => {
                self.rest = &[];
                return Some(Err(MalformedIp6Option { offset }));
            }
        };
        self.offset += self.rest.len() - rest.len();
        self.rest = rest;
        Some(Ok(Ip6Option { kind, offset, data }))
    }
}

impl std::iter::FusedIterator for Ip6Options<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_padding_and_lengths() {
        let area = [0, 1, 2, 0, 0, 5, 2, 0, 7, 0x23, 0];
        let options: Vec<_> = Ip6Options::new(&area, 42).map(Result::unwrap).collect();
        let want = [
            Ip6Option { kind: 0, offset: 42, data: &[] },
            Ip6Option { kind: 1, offset: 43, data: &[0, 0] },
            Ip6Option { kind: 5, offset: 47, data: &[0, 7] },
            Ip6Option { kind: 0x23, offset: 51, data: &[] },
        ];
        assert_eq!(options, want);
        assert_eq!(
            options.iter().map(Ip6Option::router_alert).collect::<Vec<_>>(),
            [None, None, Some(7), None]
        );
        assert!(options[1].is_padding() && !options[2].may_change() && options[3].may_change());
    }

    #[test]
    fn a_lying_length_is_reported_once_and_ends_the_walk() {
        for area in [&[0, 5][..], &[0, 5, 1], &[0, 1, 255, 0]] {
            let mut options = Ip6Options::new(area, 0);
            assert!(options.next().unwrap().is_ok());
            assert_eq!(options.next(), Some(Err(MalformedIp6Option { offset: 1 })), "{area:?}");
            assert_eq!(options.next(), None);
        }
    }

    #[test]
    fn the_two_highest_bits_are_the_action() {
        // RFC 8200 4.2.
        let actions = [0x3e, 0x7e, 0xbe, 0xfe].map(|kind| Ip6Option { kind, offset: 0, data: &[] }.action());
        assert_eq!(actions, [Action::Skip, Action::Discard, Action::Report, Action::ReportUnlessGroup]);
    }
}
