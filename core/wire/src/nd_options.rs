//! Options of neighbor discovery (RFC 4861 section 4.6, RFC 8106), read without trusting their
//! lengths, and the writer that puts them behind a message of [`nd`](crate::nd).
//!
//! An option is a kind, a length in units of 8 bytes and that many bytes less two. Each step of a
//! walk takes at least 8 bytes, so a walk ends after an eighth as many steps as there are bytes.

use std::error::Error;
use std::fmt;
use std::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::nd::PrefixFlags;
use crate::{Ip6Header, Ip6Prefix, MacAddress, icmp6};

/// Bytes per unit of an option's length.
const UNIT: usize = 8;
/// Most bytes of a message that fits the smallest MTU.
const MAX_MESSAGE: usize = Ip6Header::MIN_MTU - Ip6Header::LEN;

/// Kinds of options (IANA, "IPv6 Neighbor Discovery Option Formats").
mod kind {
    pub(super) const SOURCE_LINK_LAYER: u8 = 1;
    pub(super) const TARGET_LINK_LAYER: u8 = 2;
    pub(super) const PREFIX_INFORMATION: u8 = 3;
    pub(super) const REDIRECTED_HEADER: u8 = 4;
    pub(super) const MTU: u8 = 5;
    pub(super) const RDNSS: u8 = 25;
    pub(super) const DNSSL: u8 = 31;
}

/// One option. One of a known kind whose length does not suit it is [`Other`](Self::Other), which a
/// receiver ignores (RFC 4861 section 6.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NdOption<'a> {
    /// Link-layer address of the sender (section 4.6.1); of Ethernet's length.
    SourceLinkLayer(MacAddress),
    /// Link-layer address of the target.
    TargetLinkLayer(MacAddress),
    /// A prefix of the link (section 4.6.2).
    PrefixInformation(&'a PrefixInformation),
    /// The start of the packet that was redirected (section 4.6.3).
    RedirectedHeader(&'a [u8]),
    /// The MTU of the link in bytes (section 4.6.4).
    Mtu(u32),
    /// Recursive DNS servers (RFC 8106 section 5.1).
    Rdnss {
        /// How long they may be used, in seconds; `u32::MAX` is forever, 0 is "no longer".
        lifetime_secs: u32,
        /// Addresses, at least one.
        servers: &'a [[u8; 16]],
    },
    /// DNS search list (RFC 8106 section 5.2).
    Dnssl {
        /// How long the names may be used, in seconds; `u32::MAX` is forever, 0 is "no longer".
        lifetime_secs: u32,
        /// The names.
        names: DnsNames<'a>,
    },
    /// Any other.
    Other {
        /// What kind of option.
        kind: u8,
        /// What follows kind and length.
        data: &'a [u8],
    },
}

/// A prefix information option with its kind and length (RFC 4861 section 4.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PrefixInformation {
    kind: u8,
    units: u8,
    prefix_len: u8,
    flags: u8,
    valid_lifetime: U32,
    preferred_lifetime: U32,
    reserved: U32,
    prefix: [u8; 16],
}

impl PrefixInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 32;

    /// Announces `prefix` without its host bits. Lifetimes are in seconds, `u32::MAX` is forever.
    pub const fn new(
        prefix: Ip6Prefix,
        flags: PrefixFlags,
        valid_lifetime_secs: u32,
        preferred_lifetime_secs: u32,
    ) -> Self {
        Self {
            kind: kind::PREFIX_INFORMATION,
            units: 4,
            prefix_len: prefix.len(),
            flags: flags.0,
            valid_lifetime: U32::new(valid_lifetime_secs),
            preferred_lifetime: U32::new(preferred_lifetime_secs),
            reserved: U32::ZERO,
            prefix: prefix.network().octets(),
        }
    }

    /// The prefix, host bits cleared; `None` when its length is above 128.
    pub fn prefix(&self) -> Option<Ip6Prefix> {
        Some(Ip6Prefix::new(Ipv6Addr::from_octets(self.prefix), self.prefix_len).ok()?.normalized())
    }

    /// The flags.
    pub const fn flags(&self) -> PrefixFlags {
        PrefixFlags(self.flags)
    }

    /// How long the prefix is valid, in seconds.
    pub const fn valid_lifetime_secs(&self) -> u32 {
        self.valid_lifetime.get()
    }

    /// How long addresses made of the prefix are preferred, in seconds.
    pub const fn preferred_lifetime_secs(&self) -> u32 {
        self.preferred_lifetime.get()
    }
}

/// Kind, length and the fixed field of RDNSS and DNSSL.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Lifetime {
    kind: u8,
    units: u8,
    reserved: U16,
    seconds: U32,
}

/// An option of length zero or one that reaches past the message: the whole message is discarded
/// (RFC 4861 section 4.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedNdOption {
    /// Offset of the kind byte in the option area, in bytes.
    pub offset: usize,
}

impl fmt::Display for MalformedNdOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed neighbor discovery option at offset {}", self.offset)
    }
}

impl Error for MalformedNdOption {}

/// The options of a message, all of right length; an iterator over them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NdOptions<'a> {
    rest: &'a [u8],
}

impl<'a> NdOptions<'a> {
    /// The options in `area`, which ends where the message ends; an error when one of them has
    /// length zero or reaches past it.
    pub fn new(area: &'a [u8]) -> Result<Self, MalformedNdOption> {
        let mut rest = area;
        while !rest.is_empty() {
            let Some((_, after)) = split(rest) else {
                return Err(MalformedNdOption { offset: area.len() - rest.len() });
            };
            rest = after;
        }
        Ok(Self { rest: area })
    }

    /// The first source link-layer address.
    #[inline]
    pub fn source_link_layer(&self) -> Option<MacAddress> {
        self.clone().find_map(|option| match option {
            NdOption::SourceLinkLayer(mac) => Some(mac),
            _ => None,
        })
    }

    /// The first target link-layer address.
    #[inline]
    pub fn target_link_layer(&self) -> Option<MacAddress> {
        self.clone().find_map(|option| match option {
            NdOption::TargetLinkLayer(mac) => Some(mac),
            _ => None,
        })
    }
}

/// The first option with its kind and length, and what follows it. RFC 4861 section 4.6: length zero
/// is refused.
#[inline(always)]
fn split(area: &[u8]) -> Option<(&[u8], &[u8])> {
    match area {
        [_, units @ 1..=255, ..] => area.split_at_checked(usize::from(*units) * UNIT),
        _ => None,
    }
}

impl<'a> Iterator for NdOptions<'a> {
    type Item = NdOption<'a>;

    #[inline]
    fn next(&mut self) -> Option<NdOption<'a>> {
        let (option, rest) = split(self.rest)?;
        self.rest = rest;
        let (&[kind, _], data) = option.split_first_chunk::<2>()?;
        Some(known(kind, option, data).unwrap_or(NdOption::Other { kind, data }))
    }
}

impl std::iter::FusedIterator for NdOptions<'_> {}

/// The option if its kind is known and its length suits.
#[inline]
fn known<'a>(kind: u8, option: &'a [u8], data: &'a [u8]) -> Option<NdOption<'a>> {
    let mac = || Some(MacAddress(data.try_into().ok()?));
    Some(match kind {
        kind::SOURCE_LINK_LAYER => NdOption::SourceLinkLayer(mac()?),
        kind::TARGET_LINK_LAYER => NdOption::TargetLinkLayer(mac()?),
        kind::PREFIX_INFORMATION => {
            NdOption::PrefixInformation(PrefixInformation::ref_from_bytes(option).ok()?)
        }
        kind::REDIRECTED_HEADER => NdOption::RedirectedHeader(data.get(6..)?),
        kind::MTU if option.len() == UNIT => NdOption::Mtu(u32::from_be_bytes(*data.last_chunk()?)),
        kind::RDNSS => {
            let (fixed, rest) = Lifetime::ref_from_prefix(option).ok()?;
            let (servers, []) = rest.as_chunks() else { return None };
            // RFC 8106 5.1: at least one address.
            servers.first()?;
            NdOption::Rdnss { lifetime_secs: fixed.seconds.get(), servers }
        }
        kind::DNSSL => {
            let (fixed, rest) = Lifetime::ref_from_prefix(option).ok()?;
            NdOption::Dnssl { lifetime_secs: fixed.seconds.get(), names: DnsNames { rest } }
        }
        _ => return None,
    })
}

/// The names of a search list, one after another. A name that is cut off, compressed or longer than
/// 255 bytes ends the list, as do the zeroes that pad it (RFC 8106 section 5.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DnsNames<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for DnsNames<'a> {
    type Item = DnsName<'a>;

    fn next(&mut self) -> Option<DnsName<'a>> {
        let list = std::mem::take(&mut self.rest);
        let mut len = 0;
        // RFC 1035 3.1: labels of at most 63 bytes until one of none, at most 255 bytes in all.
        loop {
            match *list.get(len)? {
                0 => break,
                label @ 1..=63 => len += 1 + usize::from(label),
                _ => return None,
            }
        }
        if len == 0 || len > 254 {
            return None;
        }
        self.rest = list.get(len + 1..)?;
        Some(DnsName { labels: list.get(..len)? })
    }
}

impl std::iter::FusedIterator for DnsNames<'_> {}

/// A domain name. `Display` has dots between labels and `?` for what is not printable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DnsName<'a> {
    labels: &'a [u8],
}

impl fmt::Display for DnsName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        let mut rest = self.labels;
        let mut first = true;
        while let Some((&len, after)) = rest.split_first() {
            let Some((label, after)) = after.split_at_checked(usize::from(len)) else { return Ok(()) };
            if !std::mem::take(&mut first) {
                f.write_char('.')?;
            }
            for &byte in label {
                f.write_char(if byte.is_ascii_graphic() { char::from(byte) } else { '?' })?;
            }
            rest = after;
        }
        Ok(())
    }
}

/// Puts options behind a message of [`nd`](crate::nd), into a buffer and without allocation. What
/// does not fit spoils the message: [`finish`](Self::finish) then says `None`.
#[derive(Debug)]
pub struct NdWriter<'a> {
    out: &'a mut [u8],
    len: Option<usize>,
}

impl<'a> NdWriter<'a> {
    pub(crate) fn new(out: &'a mut [u8], message: &[u8]) -> Self {
        Self { out, len: Some(0) }.bytes(message)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.len = self.len.and_then(|len| {
            let end = len + bytes.len();
            self.out.get_mut(len..end)?.copy_from_slice(bytes);
            Some(end)
        });
        self
    }

    /// Kind and length of an option of `len` bytes in all. RFC 4861 section 4.6: at most 255 units.
    fn head(mut self, kind: u8, len: usize) -> Self {
        let Ok(units) = u8::try_from(len.div_ceil(UNIT)) else {
            self.len = None;
            return self;
        };
        self.bytes(&[kind, units])
    }

    /// The sender's link-layer address; not in a message from the unspecified address.
    pub fn source_link_layer(self, mac: MacAddress) -> Self {
        self.head(kind::SOURCE_LINK_LAYER, UNIT).bytes(&mac.0)
    }

    /// The target's link-layer address.
    pub fn target_link_layer(self, mac: MacAddress) -> Self {
        self.head(kind::TARGET_LINK_LAYER, UNIT).bytes(&mac.0)
    }

    /// The link's MTU in bytes.
    pub fn mtu(self, mtu: u32) -> Self {
        self.head(kind::MTU, UNIT).bytes(&[0; 2]).bytes(&mtu.to_be_bytes())
    }

    /// A prefix of the link.
    pub fn prefix_information(self, prefix: &PrefixInformation) -> Self {
        self.bytes(prefix.as_bytes())
    }

    /// As much of the redirected packet as fits the smallest MTU, rounded down to 8 bytes (RFC 4861
    /// section 4.6.3). The last option: nothing fits after it.
    pub fn redirected_header(self, packet: &[u8]) -> Self {
        let room = MAX_MESSAGE.saturating_sub(self.len.unwrap_or(0) + UNIT);
        let quote = packet.get(..room.min(packet.len()) / UNIT * UNIT).unwrap_or(&[]);
        self.head(kind::REDIRECTED_HEADER, UNIT + quote.len()).bytes(&[0; 6]).bytes(quote)
    }

    /// Recursive DNS servers for so many seconds. None at all leaves the option out.
    pub fn rdnss(self, lifetime_secs: u32, servers: &[Ipv6Addr]) -> Self {
        if servers.is_empty() {
            return self;
        }
        let this = self.head(kind::RDNSS, UNIT + 16 * servers.len()).lifetime(lifetime_secs);
        servers.iter().fold(this, |this, server| this.bytes(&server.octets()))
    }

    /// A DNS search list for so many seconds. A name that is none (an empty or too long label, more
    /// than 255 bytes) spoils the message. None at all leaves the option out.
    pub fn dnssl(mut self, lifetime_secs: u32, names: &[&str]) -> Self {
        if names.is_empty() {
            return self;
        }
        // On the wire a name has a length byte per label and a zero at its end: two bytes more than
        // its text without a dot at the end.
        let Some(len) = names.iter().map(|name| Some(domain(name)?.len() + 2)).sum::<Option<usize>>() else {
            self.len = None;
            return self;
        };
        let mut this = self.head(kind::DNSSL, UNIT + len).lifetime(lifetime_secs);
        for name in names.iter().filter_map(|name| domain(name)) {
            for label in name.split('.') {
                this = this.bytes(&[label.len() as u8]).bytes(label.as_bytes());
            }
            this = this.bytes(&[0]);
        }
        let padding = len.next_multiple_of(UNIT) - len;
        this.bytes([0; UNIT].get(..padding).unwrap_or(&[]))
    }

    fn lifetime(self, seconds: u32) -> Self {
        self.bytes(&[0; 2]).bytes(&seconds.to_be_bytes())
    }

    /// Writes the checksum for the way from `src` to `dst` and returns the message's length in
    /// bytes; `None` when it did not fit.
    pub fn finish(self, src: Ipv6Addr, dst: Ipv6Addr) -> Option<usize> {
        let len = self.len?;
        icmp6::make(src, dst, self.out.get_mut(..len)?);
        Some(len)
    }
}

/// `name` without a dot at its end if it is a domain name: labels of 1 to 63 bytes, 255 bytes on the
/// wire (RFC 1035 section 2.3.4).
fn domain(name: &str) -> Option<&str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    (name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()))).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nd::{RaFlags, Redirect, RouterAdvertisement};

    const SRC: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const DST: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

    #[test]
    fn every_option_is_read_back_as_written() {
        let mac = MacAddress([2, 0xfe, 0, 0, 0, 1]);
        let prefix = PrefixInformation::new(
            "2001:db8::1/64".parse().unwrap(),
            PrefixFlags::ON_LINK | PrefixFlags::AUTONOMOUS,
            u32::MAX,
            600,
        );
        let mut out = [0xff; 256];
        let len = RouterAdvertisement::new(RaFlags::default(), 1800)
            .write(&mut out)
            .source_link_layer(mac)
            .mtu(1500)
            .prefix_information(&prefix)
            .rdnss(30, &[SRC, DST])
            .dnssl(40, &["example.com", "a.b."])
            .rdnss(1, &[])
            .dnssl(1, &[])
            .finish(SRC, DST)
            .unwrap();
        assert!(len.is_multiple_of(8) && icmp6::verify(SRC, DST, &out[..len]));
        let options = NdOptions::new(&out[RouterAdvertisement::LEN..len]).unwrap();
        let all: Vec<_> = options.clone().collect();
        let [
            NdOption::SourceLinkLayer(source),
            NdOption::Mtu(1500),
            NdOption::PrefixInformation(read),
            NdOption::Rdnss { lifetime_secs: 30, servers },
            NdOption::Dnssl { lifetime_secs: 40, names },
        ] = &all[..]
        else {
            panic!("{all:?}")
        };
        assert_eq!((*source, *read, options.source_link_layer()), (mac, &prefix, Some(mac)));
        assert_eq!(read.prefix().unwrap().to_string(), "2001:db8::/64");
        assert_eq!((read.valid_lifetime_secs(), read.preferred_lifetime_secs()), (u32::MAX, 600));
        assert!(read.flags().contains(PrefixFlags::AUTONOMOUS));
        assert_eq!(*servers, [SRC.octets(), DST.octets()]);
        let names: Vec<_> = names.clone().map(|name| name.to_string()).collect();
        assert_eq!(names, ["example.com", "a.b"]);
    }

    #[test]
    fn a_length_of_zero_or_past_the_end_is_refused() {
        // RFC 4861 4.6.
        let good = [5, 1, 0, 0, 0, 0, 5, 0];
        for bad in [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[1, 2, 0, 0, 0, 0, 0, 0], &[1, 1, 0], &[1]] {
            let area = [&good, bad].concat();
            assert_eq!(NdOptions::new(&area), Err(MalformedNdOption { offset: 8 }));
        }
        assert_eq!(NdOptions::new(&[]).unwrap().next(), None);
    }

    #[test]
    fn a_known_kind_of_the_wrong_length_is_another_option() {
        for (kind, units) in [(1, 2), (2, 2), (3, 1), (3, 5), (5, 2), (25, 1), (25, 2), (25, 4), (99, 1)] {
            let mut area = vec![0; units * 8];
            (area[0], area[1]) = (kind, units as u8);
            let mut options = NdOptions::new(&area).unwrap();
            assert_eq!(options.next(), Some(NdOption::Other { kind, data: &area[2..] }));
            assert_eq!(options.next(), None);
        }
        let mut area =
            PrefixInformation::new(Ip6Prefix::ANY, PrefixFlags::default(), 0, 0).as_bytes().to_vec();
        area[2] = 129;
        let Some(NdOption::PrefixInformation(prefix)) = NdOptions::new(&area).unwrap().next() else {
            panic!()
        };
        assert_eq!(prefix.prefix(), None);
    }

    #[test]
    fn search_lists_end_at_what_is_no_name() {
        for (rest, want) in [
            (&[1, b'a', 0, 0, 0][..], &["a"][..]),
            (&[1, b' ', 1, b'\\', 0, 0xc0, 0], &["?.\\"]),
            (&[64, b'a', 0], &[]),
            (&[2, b'a'], &[]),
            (&[1, b'a'], &[]),
            (&[0, 1, b'a', 0], &[]),
        ] {
            let names: Vec<_> = DnsNames { rest }.map(|name| name.to_string()).collect();
            assert_eq!(names, want, "{rest:?}");
        }
        // RFC 1035 3.1: 255 bytes with the last zero are a name, 256 are not.
        let label = |len: usize| [&[len as u8][..], &vec![b'x'; len]].concat();
        let long = |last| [label(63), label(63), label(63), label(last), vec![0]].concat();
        assert_eq!(DnsNames { rest: &long(61) }.count(), 1);
        assert_eq!(DnsNames { rest: &long(62) }.count(), 0);
    }

    #[test]
    fn what_is_no_option_spoils_the_message() {
        let mut out = [0; 4096];
        let mut fits = |edit: fn(NdWriter<'_>) -> NdWriter<'_>| {
            edit(Redirect::new(SRC, DST).write(&mut out)).finish(SRC, DST)
        };
        assert_eq!(fits(|w| w.dnssl(1, &["a..b"])), None);
        assert_eq!(fits(|w| w.dnssl(1, &[""])), None);
        assert_eq!(fits(|w| w.rdnss(1, &[SRC; 128])), None);
        assert_eq!(fits(|w| w.rdnss(1, &[SRC; 127])), Some(40 + 8 + 16 * 127));
        // RFC 4861 4.6.3: the redirect fits the smallest MTU.
        assert_eq!(fits(|w| w.redirected_header(&[1; 2000])), Some(1240));
        assert_eq!(fits(|w| w.redirected_header(&[1; 47])), Some(40 + 8 + 40));
        let options = NdOptions::new(&out[40..88]).unwrap().next();
        assert_eq!(options, Some(NdOption::RedirectedHeader(&[1; 40])));
        let mut small = [0; 47];
        assert_eq!(Redirect::new(SRC, DST).write(&mut small).mtu(9).finish(SRC, DST), None);
    }
}
