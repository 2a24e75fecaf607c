//! CDP's PDUs: a version, a time, a checksum, and parts, each with its kind and length in two bytes each.

use shoal_ethernet::Snap;
use shoal_wire::MacAddress;
use shoal_wire::checksum::{Sum, checksum, verify};

/// Where they are sent: bridges of Cisco do not pass them on.
pub const GROUP: MacAddress = MacAddress([0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc]);
/// What the frames carry.
pub const PROTOCOL: Snap = Snap { organization: [0x00, 0x00, 0x0c], protocol: 0x2000 };
/// Bytes of a name that are kept.
pub const MOST_NAME: usize = 64;
/// For how many seconds what this router says is to be believed.
pub const TTL: u8 = 180;

/// Version, time and checksum.
const HEAD: usize = 4;

/// Kinds of parts.
mod kind {
    pub const DEVICE: u16 = 1;
    pub const PORT: u16 = 3;
    pub const CAPABILITIES: u16 = 4;
    pub const VERSION: u16 = 5;
    pub const PLATFORM: u16 = 6;
}

/// It routes, among capabilities.
const ROUTER: u32 = 1;

/// A name, as many bytes of it as are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    bytes: [u8; MOST_NAME],
    len: u8,
}

impl Name {
    /// Of these bytes.
    pub fn new(from: &[u8]) -> Name {
        let mut bytes = [0; MOST_NAME];
        bytes.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        Name { bytes, len: from.len().min(MOST_NAME) as u8 }
    }
}

/// What a stranger sends is shown without what a terminal would obey.
impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes);
        let shown: String = text.chars().map(|c| if c.is_control() { '.' } else { c }).collect();
        f.write_str(&shown)
    }
}

/// What the other end says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbor {
    /// The device.
    pub device: Name,
    /// Its port.
    pub port: Name,
    /// For so many seconds it is so.
    pub ttl: u8,
}

/// What is wrong with a PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalid {
    /// It is of no version that is known.
    Version,
    /// Its checksum is wrong.
    Checksum,
    /// A part is shorter than its head, ends beyond the PDU, or the device or the port is missing.
    Tlv,
}

/// Whether the checksum is right. The last byte of an odd number of them is a word's first one, as everywhere, or its second one,
/// as Cisco's devices have it, which also extend its sign.
fn is_whole(bytes: &[u8]) -> bool {
    if verify(bytes) {
        return true;
    }
    let Some((last, rest)) = bytes.split_last().filter(|_| bytes.len() % 2 == 1) else { return false };
    let mut sum = Sum::default();
    sum.add(rest);
    sum.add_u16(if *last <= 0x80 { u16::from(*last) } else { 0xff00 | u16::from(*last - 1) });
    sum.finish() == 0
}

/// Reads a PDU, from its version on.
///
/// # Errors
/// What is wrong with it.
pub fn read(bytes: &[u8]) -> Result<Neighbor, Invalid> {
    let Some(([version, ttl, ..], mut rest)) = bytes.split_first_chunk::<HEAD>() else {
        return Err(Invalid::Tlv);
    };
    if !(1..=2).contains(version) {
        return Err(Invalid::Version);
    }
    if !is_whole(bytes) {
        return Err(Invalid::Checksum);
    }
    let (mut device, mut port) = (None, None);
    while let Some(([a, b, c, d], behind)) = rest.split_first_chunk::<4>() {
        let len = usize::from(u16::from_be_bytes([*c, *d])).checked_sub(4).ok_or(Invalid::Tlv)?;
        let value = behind.get(..len).ok_or(Invalid::Tlv)?;
        match u16::from_be_bytes([*a, *b]) {
            kind::DEVICE => device = Some(Name::new(value)),
            kind::PORT => port = Some(Name::new(value)),
            _ => {}
        }
        rest = behind.get(len..).unwrap_or_default();
    }
    match (device, port) {
        (Some(device), Some(port)) if rest.is_empty() => Ok(Neighbor { device, port, ttl: *ttl }),
        _ => Err(Invalid::Tlv),
    }
}

/// What this router says on a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnAnnouncement<'a> {
    /// The router's name.
    pub device: &'a str,
    /// The port's.
    pub port: &'a str,
    /// What the router runs.
    pub version: &'a str,
}

fn part(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let value = value.get(..MAX).unwrap_or(value);
    to.extend(kind.to_be_bytes());
    to.extend((value.len() as u16 + 4).to_be_bytes());
    to.extend(value);
}

/// Bytes of a part of ours at most, so that all fit a frame.
const MAX: usize = 255;

impl OwnAnnouncement<'_> {
    /// The bytes behind the length of the frame.
    pub fn bytes(&self) -> Vec<u8> {
        let mut pdu = vec![2, TTL, 0, 0];
        part(&mut pdu, kind::DEVICE, self.device.as_bytes());
        part(&mut pdu, kind::PORT, self.port.as_bytes());
        part(&mut pdu, kind::CAPABILITIES, &ROUTER.to_be_bytes());
        part(&mut pdu, kind::PLATFORM, b"Shoal");
        // Never an odd number of bytes, of which there are two checksums.
        let odd = (pdu.len() + self.version.len().min(MAX)) % 2 == 1;
        let version = format!("{}{}", self.version, if odd { " " } else { "" });
        part(&mut pdu, kind::VERSION, version.as_bytes());
        let sum = checksum(&pdu).to_be_bytes();
        if let Some(field) = pdu.get_mut(2..HEAD) {
            field.copy_from_slice(&sum);
        }
        [&PROTOCOL.header()[..], &pdu].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(mut pdu: Vec<u8>) -> Vec<u8> {
        let sum = checksum(&pdu).to_be_bytes();
        pdu[2..4].copy_from_slice(&sum);
        pdu
    }

    #[test]
    fn what_is_written_is_read_again_and_nothing_shorter_is() {
        for (device, port) in [("edge", "pg0"), ("edge1", "pg0"), ("", "x")] {
            let bytes = OwnAnnouncement { device, port, version: "Shoal 0.1" }.bytes();
            let pdu = &bytes[8..];
            assert_eq!(pdu.len() % 2, 0);
            let there = read(pdu).unwrap();
            assert_eq!((there.device.to_string(), there.port.to_string()), (device.into(), port.into()));
            assert_eq!(there.ttl, 180);
            assert!((0..pdu.len()).all(|len| read(&pdu[..len]).is_err()));
        }
    }

    #[test]
    fn both_checksums_of_odd_lengths_are_right() {
        for last in [0u8, 1, 0x7f, 0x80, 0x81, 0xff] {
            let pdu = [&[2, 180, 0, 0, 0, 1, 0, 5, b'd', 0, 3, 0, 6, b'p'][..], &[last]].concat();
            assert!(read(&sealed(pdu.clone())).is_ok(), "the usual one");
            // As Cisco's devices count: over an even number of bytes, the last one extended.
            let mut even = pdu.clone();
            even.pop();
            even.extend(if last <= 0x80 { [0, last] } else { [0xff, last - 1] });
            let sum = sealed(even)[2..4].to_vec();
            let mut pdu = pdu;
            pdu[2..4].copy_from_slice(&sum);
            assert!(read(&pdu).is_ok(), "{last:#x}");
            pdu[3] ^= 1;
            assert_eq!(read(&pdu), Err(Invalid::Checksum));
        }
    }

    #[test]
    fn wrong_lengths_versions_and_missing_parts_are_told_apart() {
        let read = |pdu: &[u8]| read(&sealed(pdu.to_vec()));
        let (device, port) = ([0, 1, 0, 6, b'a', b'b'], [0, 3, 0, 6, b'c', b'd']);
        let of = |parts: &[&[u8]]| [&[2, 180, 0, 0][..], &parts.concat()].concat();
        assert!(read(&of(&[&device, &port])).is_ok());
        assert_eq!(read(&of(&[&device])), Err(Invalid::Tlv));
        for wrong in [[0, 1, 0, 3], [0, 1, 0, 8], [0, 9, 0xff, 0xff], [0, 9, 0, 0]] {
            assert_eq!(read(&of(&[&device, &port, &wrong])), Err(Invalid::Tlv));
        }
        assert_eq!(read(&of(&[&device, &port, &[0, 9]])), Err(Invalid::Tlv));
        let mut newer = of(&[&device, &port]);
        newer[0] = 3;
        assert_eq!(read(&newer), Err(Invalid::Version));
    }
}
