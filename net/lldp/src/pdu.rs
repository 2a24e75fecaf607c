//! LLDPDUs: IEEE 802.1AB-2016, 8 and 9. Parts one after the other, each with its kind and length in two bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_wire::MacAddress;

/// Where they are sent: to the nearest bridge, which does not pass them on.
pub const NEAREST_BRIDGE: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]);
/// Bytes of an identity that are kept.
pub const MOST_ID: usize = 64;

/// Kinds of parts.
mod kind {
    pub const END: u8 = 0;
    pub const CHASSIS: u8 = 1;
    pub const PORT: u8 = 2;
    pub const TTL: u8 = 3;
    pub const PORT_DESCRIPTION: u8 = 4;
    pub const SYSTEM_NAME: u8 = 5;
    pub const MANAGEMENT: u8 = 8;
}

/// The identity is a MAC address: of a chassis.
const CHASSIS_MAC: u8 = 4;
/// The identity is the name of an interface: of a port.
const PORT_NAME: u8 = 5;

/// Who a chassis or a port is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Id {
    /// What the bytes are.
    pub subtype: u8,
    bytes: [u8; MOST_ID],
    len: u8,
}

impl Id {
    /// As many bytes as are kept.
    pub fn new(subtype: u8, from: &[u8]) -> Id {
        let mut bytes = [0; MOST_ID];
        bytes.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        Id { subtype, bytes, len: from.len().min(MOST_ID) as u8 }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    fn text(&self, mac: u8, net: u8) -> String {
        let bytes = self.bytes();
        if self.subtype == mac
            && let Ok(mac) = <[u8; 6]>::try_from(bytes)
        {
            return MacAddress(mac).to_string();
        }
        if self.subtype == net {
            match bytes {
                [1, a, b, c, d] => return Ipv4Addr::new(*a, *b, *c, *d).to_string(),
                [2, rest @ ..] => {
                    if let Ok(address) = <[u8; 16]>::try_from(rest) {
                        return Ipv6Addr::from(address).to_string();
                    }
                }
                _ => {}
            }
        }
        // What a stranger sends is shown without what a terminal would obey.
        String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '.' } else { c }).collect()
    }

    /// A chassis as text.
    pub fn chassis(&self) -> String {
        self.text(4, 5)
    }

    /// A port as text.
    pub fn port(&self) -> String {
        self.text(3, 4)
    }
}

/// What the other end says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbor {
    /// The system.
    pub chassis: Id,
    /// Its port.
    pub port: Id,
    /// For so many seconds it is so; 0: it goes.
    pub ttl: u16,
}

/// It is not one: a part is missing, ends beyond the frame, or is no such part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadTlvs;

/// Reads a PDU behind its Ethernet header: chassis, port and time come first, then anything, then an end or the end of the frame.
///
/// # Errors
/// It is none.
pub fn read(mut bytes: &[u8]) -> Result<Neighbor, BadTlvs> {
    let mut parts = std::iter::from_fn(|| {
        let [a, b] = *bytes.first_chunk::<2>()?;
        let (kind, len) = (a >> 1, usize::from(a & 1) << 8 | usize::from(b));
        let value = bytes.get(2..2 + len);
        bytes = bytes.get(2 + len..).unwrap_or_default();
        Some(value.map(|value| (kind, value)).ok_or(BadTlvs))
    });
    let mut mandatory = |wanted: u8| match parts.next() {
        Some(Ok((kind, value))) if kind == wanted => Ok(value),
        _ => Err(BadTlvs),
    };
    let id = |value: &[u8]| match value {
        // 1 to 255 bytes behind the subtype.
        [subtype, id @ ..] if (1..=255).contains(&id.len()) => Ok(Id::new(*subtype, id)),
        _ => Err(BadTlvs),
    };
    let chassis = id(mandatory(kind::CHASSIS)?)?;
    let port = id(mandatory(kind::PORT)?)?;
    let [high, low, ..] = mandatory(kind::TTL)? else { return Err(BadTlvs) };
    let ttl = u16::from_be_bytes([*high, *low]);
    for part in parts {
        match part? {
            (kind::END, _) => break,
            // A second one of these: 9.2.7.7.1.
            (kind::CHASSIS | kind::PORT | kind::TTL, _) => return Err(BadTlvs),
            _ => {}
        }
    }
    Ok(Neighbor { chassis, port, ttl })
}

/// What this router says on a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnAnnouncement<'a> {
    /// The MAC address of the port.
    pub mac: MacAddress,
    /// Its name.
    pub port: &'a str,
    /// For how many seconds it is so.
    pub ttl: u16,
    /// What the port is for.
    pub description: &'a str,
    /// The router's name.
    pub system: &'a str,
    /// Addresses it is managed by, with the number of the interface and an object identifier.
    pub management: (Option<Ipv4Addr>, Option<Ipv6Addr>, u32, &'a [u8]),
}

fn part(to: &mut Vec<u8>, kind: u8, value: &[u8]) {
    // A length has nine bits; none of ours comes near.
    let value = value.get(..511).unwrap_or(value);
    to.extend([kind << 1 | (value.len() >> 8) as u8, value.len() as u8]);
    to.extend(value);
}

impl OwnAnnouncement<'_> {
    /// The bytes behind the Ethernet header.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        part(&mut bytes, kind::CHASSIS, &[&[CHASSIS_MAC], &self.mac.0[..]].concat());
        part(&mut bytes, kind::PORT, &[&[PORT_NAME], self.port.as_bytes()].concat());
        part(&mut bytes, kind::TTL, &self.ttl.to_be_bytes());
        if !self.description.is_empty() {
            part(&mut bytes, kind::PORT_DESCRIPTION, self.description.as_bytes());
        }
        if !self.system.is_empty() {
            part(&mut bytes, kind::SYSTEM_NAME, self.system.as_bytes());
        }
        let (ip4, ip6, index, oid) = self.management;
        let addresses = [ip4.map(|a| (1, a.octets().to_vec())), ip6.map(|a| (2, a.octets().to_vec()))];
        for (family, address) in addresses.into_iter().flatten() {
            let mut value = vec![address.len() as u8 + 1, family];
            value.extend(address);
            // The interface's number is that of SNMP.
            value.push(2);
            value.extend(index.to_be_bytes());
            value.push(oid.len() as u8);
            value.extend(oid);
            part(&mut bytes, kind::MANAGEMENT, &value);
        }
        part(&mut bytes, kind::END, &[]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> OwnAnnouncement<'static> {
        OwnAnnouncement {
            mac: MacAddress([2, 0xfe, 0, 0, 0, 1]),
            port: "pg0",
            ttl: 121,
            description: "uplink",
            system: "shoal",
            management: (Some(Ipv4Addr::new(10, 0, 0, 1)), Some(Ipv6Addr::LOCALHOST), 3, b"1234"),
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_nothing_shorter_is() {
        let bytes = own().bytes();
        let read_back = read(&bytes).unwrap();
        assert_eq!(
            (read_back.chassis.chassis(), read_back.port.port()),
            ("02:fe:00:00:00:01".into(), "pg0".into())
        );
        assert_eq!(read_back.ttl, 121);
        // Nothing is announced up to the end of the time.
        let said = 2 + 7 + 2 + 4 + 2 + 2;
        assert!((0..said).all(|len| read(&bytes[..len]).is_err()));
        // A part that ends beyond the frame.
        assert_eq!(read(&bytes[..said + 3]), Err(BadTlvs));
        assert!(read(&bytes[..said]).is_ok(), "the end of the frame is an end");
    }

    #[test]
    fn parts_in_another_order_twice_or_empty_are_refused() {
        let (chassis, port, ttl) = ([2, 2, 4, 9], [4, 2, 3, 9], [6, 2, 0, 120]);
        let read = |parts: &[&[u8]]| read(&parts.concat());
        assert!(read(&[&chassis, &port, &ttl, &[0, 0]]).is_ok());
        assert!(read(&[&port, &chassis, &ttl, &[0, 0]]).is_err());
        assert!(read(&[&chassis, &port, &ttl, &chassis, &[0, 0]]).is_err());
        assert!(read(&[&[2, 1, 4], &port, &ttl, &[0, 0]]).is_err());
        assert!(read(&[&chassis, &port, &[6, 1, 0], &[0, 0]]).is_err());
        assert!(read(&[&chassis, &port, &ttl, &[0xff, 0xff, 1]]).is_err());
    }

    #[test]
    fn what_strangers_call_themselves_is_shown_harmlessly() {
        assert_eq!(Id::new(7, b"a\x1b[31mb\n\xff").port(), "a.[31mb.\u{fffd}");
        assert_eq!(Id::new(5, &[1, 10, 0, 0, 1]).chassis(), "10.0.0.1");
        assert_eq!(Id::new(3, &[1, 2, 3, 4, 5, 6]).port(), "01:02:03:04:05:06");
        assert_eq!(Id::new(7, &[b'x'; 200]).chassis().len(), MOST_ID);
    }
}
