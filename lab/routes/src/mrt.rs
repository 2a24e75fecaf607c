//! Routing tables as route collectors publish them: MRT, TABLE_DUMP_V2 (RFC 6396, with RFC 8050's path identifiers).
//!
//! Of each prefix the first next hop counts. Records of other types are passed over. A file that is cut off or lies
//! about a length is an error that says where.

use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// TABLE_DUMP_V2 (RFC 6396 4.3).
const TABLE_DUMP_V2: u16 = 13;
/// A record of this many bytes is none: that of the prefix with the most peers has some hundred thousand.
const MOST: u32 = 16 << 20;
/// NEXT_HOP (RFC 4271 4.3).
const NEXT_HOP: u8 = 3;
/// MP_REACH_NLRI (RFC 4760 3), cut down to its next hop (RFC 6396 4.3.4).
const MP_REACH_NLRI: u8 = 14;
/// The attribute's length has two bytes (RFC 4271 4.3).
const EXTENDED_LENGTH: u8 = 0x10;

/// A prefix, its length, and where it leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The network.
    pub network: IpAddr,
    /// Its length in bits.
    pub len: u8,
    /// The first next hop that a peer told.
    pub next_hop: IpAddr,
}

/// The routes of a dump, one by one.
pub struct Routes<R> {
    input: R,
    record: Vec<u8>,
    at: u64,
}

impl<R: Read> Routes<R> {
    /// Reads a dump that is not compressed.
    pub fn new(input: R) -> Self {
        Routes { input, record: Vec::new(), at: 0 }
    }

    fn wrong(&self, what: &str) -> io::Error {
        io::Error::new(ErrorKind::InvalidData, format!("the record at byte {}: {what}", self.at))
    }

    /// The next route, or the end.
    ///
    /// # Errors
    /// The input's, or a record that is no record.
    pub fn read(&mut self) -> io::Result<Option<Route>> {
        loop {
            let mut header = [0; 12];
            match self.input.read(&mut header[..1])? {
                0 => return Ok(None),
                _ => self.input.read_exact(&mut header[1..]).map_err(|_| self.wrong("cut off"))?,
            }
            let [_, _, _, _, t0, t1, s0, s1, l0, l1, l2, l3] = header;
            let (kind, subtype) = (u16::from_be_bytes([t0, t1]), u16::from_be_bytes([s0, s1]));
            let length = u32::from_be_bytes([l0, l1, l2, l3]);
            if length > MOST {
                return Err(
                    self.wrong(&format!("{length} bytes, that is no MRT file (is it still compressed?)"))
                );
            }
            self.record.resize(length as usize, 0);
            self.input.read_exact(&mut self.record).map_err(|_| self.wrong("cut off"))?;
            let found = match (kind, subtype) {
                // RIB_IPV4_UNICAST, RIB_IPV6_UNICAST, and both with path identifiers.
                (TABLE_DUMP_V2, 2 | 4) => rib(&self.record, subtype == 4, false),
                (TABLE_DUMP_V2, 8 | 10) => rib(&self.record, subtype == 10, true),
                _ => Ok(None),
            };
            let route = found.map_err(|TooLong| self.wrong("a length in it is too long"))?;
            self.at += 12 + u64::from(length);
            if route.is_some() {
                return Ok(route);
            }
        }
    }
}

/// A length in a record goes beyond it.
struct TooLong;

/// Takes so many bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Result<&'a [u8], TooLong> {
    let (front, rest) = bytes.split_at_checked(n).ok_or(TooLong)?;
    *bytes = rest;
    Ok(front)
}

fn number(bytes: &mut &[u8], n: usize) -> Result<usize, TooLong> {
    Ok(take(bytes, n)?.iter().fold(0, |sum, b| sum << 8 | usize::from(*b)))
}

/// A prefix's record (RFC 6396 4.3.2); `None` if no peer tells a next hop.
fn rib(mut bytes: &[u8], six: bool, path_ids: bool) -> Result<Option<Route>, TooLong> {
    let _sequence = number(&mut bytes, 4)?;
    let len = number(&mut bytes, 1)? as u8;
    if len > if six { 128 } else { 32 } {
        return Err(TooLong);
    }
    let network = address(take(&mut bytes, usize::from(len).div_ceil(8))?, six);
    for _ in 0..number(&mut bytes, 2)? {
        let _peer_and_time = take(&mut bytes, 6 + if path_ids { 4 } else { 0 })?;
        let length = number(&mut bytes, 2)?;
        if let Some(next_hop) = next_hop(take(&mut bytes, length)?)? {
            return Ok(Some(Route { network, len, next_hop }));
        }
    }
    Ok(None)
}

/// An address whose last bytes may be left out.
fn address(bytes: &[u8], six: bool) -> IpAddr {
    let mut all = [0; 16];
    for (to, from) in all.iter_mut().zip(bytes) {
        *to = *from;
    }
    let [a, b, c, d, ..] = all;
    if six { Ipv6Addr::from(all).into() } else { Ipv4Addr::new(a, b, c, d).into() }
}

/// The next hop among a route's attributes.
fn next_hop(mut attributes: &[u8]) -> Result<Option<IpAddr>, TooLong> {
    while !attributes.is_empty() {
        let (flags, kind) = (number(&mut attributes, 1)? as u8, number(&mut attributes, 1)? as u8);
        let length = number(&mut attributes, if flags & EXTENDED_LENGTH == 0 { 1 } else { 2 })?;
        let mut value = take(&mut attributes, length)?;
        match kind {
            NEXT_HOP if length == 4 => return Ok(Some(address(value, false))),
            MP_REACH_NLRI => {
                // Some collectors write the whole attribute: family and kind stand in front then.
                if value.first() == Some(&0) {
                    take(&mut value, 3)?;
                }
                let n = number(&mut value, 1)?;
                let global = take(&mut value, n)?;
                if n >= 16 {
                    return Ok(Some(address(global, true)));
                }
                if n == 4 {
                    return Ok(Some(address(global, false)));
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
        let mut all = vec![0; 4];
        all.extend(kind.to_be_bytes());
        all.extend(subtype.to_be_bytes());
        all.extend((body.len() as u32).to_be_bytes());
        all.extend(body);
        all
    }

    fn entry(path_id: bool, attributes: &[u8]) -> Vec<u8> {
        let mut all = vec![0; if path_id { 10 } else { 6 }];
        all.extend((attributes.len() as u16).to_be_bytes());
        all.extend(attributes);
        all
    }

    fn rib(len: u8, network: &[u8], entries: &[Vec<u8>]) -> Vec<u8> {
        let mut all = vec![0, 0, 0, 1, len];
        all.extend(network);
        all.extend((entries.len() as u16).to_be_bytes());
        all.extend(entries.concat());
        all
    }

    const ORIGIN: &[u8] = &[0x40, 1, 1, 0];
    const HOP4: &[u8] = &[0x40, 3, 4, 192, 0, 2, 1];

    fn hop6(full: bool) -> Vec<u8> {
        let mut hop = if full { vec![0, 2, 1, 16] } else { vec![16] };
        hop.extend("2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
        let mut all = vec![0x90, 14, 0, hop.len() as u8];
        all.extend(hop);
        all
    }

    fn all(bytes: &[u8]) -> io::Result<Vec<String>> {
        let mut routes = Routes::new(bytes);
        let mut found = Vec::new();
        while let Some(Route { network, len, next_hop }) = routes.read()? {
            found.push(format!("{network}/{len} {next_hop}"));
        }
        Ok(found)
    }

    fn dump() -> Vec<u8> {
        [
            record(13, 1, &[0; 8]),
            record(
                13,
                2,
                &rib(20, &[198, 51, 0xf0], &[entry(false, ORIGIN), entry(false, &[ORIGIN, HOP4].concat())]),
            ),
            record(13, 2, &rib(0, &[], &[entry(false, HOP4)])),
            record(13, 2, &rib(24, &[1, 2, 3], &[])),
            record(13, 4, &rib(32, &[0x20, 1, 0xd, 0xb8], &[entry(false, &hop6(false))])),
            record(13, 4, &rib(33, &[0x20, 1, 0xd, 0xb8, 0x80], &[entry(false, &hop6(true))])),
            record(13, 8, &rib(8, &[9], &[entry(true, HOP4)])),
            record(16, 4, b"an update"),
        ]
        .concat()
    }

    #[test]
    fn each_prefix_has_its_first_next_hop() {
        let wanted = [
            "198.51.240.0/20 192.0.2.1",
            "0.0.0.0/0 192.0.2.1",
            "2001:db8::/32 2001:db8::7",
            "2001:db8:8000::/33 2001:db8::7",
            "9.0.0.0/8 192.0.2.1",
        ];
        assert_eq!(all(&dump()).unwrap(), wanted);
    }

    #[test]
    fn what_is_cut_off_or_lies_is_an_error_and_never_worse() {
        let dump = dump();
        let whole: Vec<usize> = (0..=dump.len()).filter(|n| all(&dump[..*n]).is_ok()).collect();
        assert_eq!(whole.len(), 9, "the end of each record, and the beginning");
        let mut lying = record(13, 2, &rib(20, &[198, 51, 0xf0], &[entry(false, HOP4)]));
        for at in 12..lying.len() {
            let before = std::mem::replace(&mut lying[at], 0xff);
            let _ = all(&lying);
            lying[at] = before;
        }
        assert!(all(b"BZh91AY&SY, and so on").unwrap_err().to_string().contains("byte 0"));
        let long = all(&record(13, 2, &rib(33, &[1, 2, 3, 4, 5], &[]))).unwrap_err();
        assert!(long.to_string().contains("byte 0"), "{long}");
    }
}
