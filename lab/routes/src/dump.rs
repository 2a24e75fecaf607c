//! The table as a route collector would publish it: MRT, TABLE_DUMP_V2 (RFC 6396 4.3), of one peer.

use std::io::{self, Write};
use std::net::IpAddr;

use crate::commands::{self, Wanted};

/// TABLE_DUMP_V2 (RFC 6396 4.3).
const TABLE_DUMP_V2: u16 = 13;
/// The table of peers (RFC 6396 4.3.1).
const PEER_INDEX_TABLE: u16 = 1;
const RIB_IPV4_UNICAST: u16 = 2;
const RIB_IPV6_UNICAST: u16 = 4;
/// When the table is from: 2026-01-01 00:00 UTC, always, so that the same seed gives the same file.
const TIME: u32 = 1_767_225_600;
/// An AS number for documentation (RFC 5398).
const AS: u32 = 64_496;

/// Writes the dump.
///
/// # Errors
/// The output's.
pub fn write(wanted: &Wanted, out: &mut impl Write) -> io::Result<()> {
    record(out, PEER_INDEX_TABLE, &peers())?;
    let mut sequence = 0u32;
    commands::routes(wanted, |network, len, via| {
        let body = rib(sequence, (network, len), &attributes(via));
        sequence = sequence.wrapping_add(1);
        record(out, if network.is_ipv4() { RIB_IPV4_UNICAST } else { RIB_IPV6_UNICAST }, &body)
    })
}

/// A record with its header (RFC 6396 2).
fn record(out: &mut impl Write, subtype: u16, body: &[u8]) -> io::Result<()> {
    out.write_all(&TIME.to_be_bytes())?;
    out.write_all(&TABLE_DUMP_V2.to_be_bytes())?;
    out.write_all(&subtype.to_be_bytes())?;
    out.write_all(&(body.len() as u32).to_be_bytes())?;
    out.write_all(body)
}

/// One peer with a four-byte AS number and an IPv4 address; the view has no name.
fn peers() -> Vec<u8> {
    let (collector, peer) = ([192, 0, 2, 254], [192, 0, 2, 1]);
    let counts = [[0, 0], [0, 1]].concat();
    [&collector[..], &counts, &[2], &peer, &peer, &AS.to_be_bytes()].concat()
}

/// A prefix with one entry (RFC 6396 4.3.2, 4.3.4).
fn rib(sequence: u32, (network, len): (IpAddr, u8), attributes: &[u8]) -> Vec<u8> {
    let octets = octets(network);
    let network = octets.get(..usize::from(len).div_ceil(8)).unwrap_or(&octets);
    let mut body = sequence.to_be_bytes().to_vec();
    body.push(len);
    body.extend(network);
    // One entry, of peer 0.
    body.extend([0, 1, 0, 0]);
    body.extend(TIME.to_be_bytes());
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
    body
}

/// ORIGIN, AS_PATH, and where the route leads (RFC 4271 5.1; RFC 6396 4.3.4 for IPv6: the next hop alone).
fn attributes(next_hop: IpAddr) -> Vec<u8> {
    let mut all = vec![0x40, 1, 1, 0, 0x40, 2, 6, 2, 1];
    all.extend(AS.to_be_bytes());
    let octets = octets(next_hop);
    match next_hop {
        IpAddr::V4(_) => all.extend([0x40, 3, 4]),
        IpAddr::V6(_) => all.extend([0x80, 14, 17, 16]),
    }
    all.extend(octets);
    all
}

fn octets(addr: IpAddr) -> Vec<u8> {
    match addr {
        IpAddr::V4(addr) => addr.octets().to_vec(),
        IpAddr::V6(addr) => addr.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mrt::{Route, Routes};

    #[test]
    fn what_is_written_is_read_again() {
        let wanted = Wanted { ip4: 3_000, ip6: 2_000, next_hops: 20, ..Wanted::INTERNET };
        let (mut written, mut dump) = (Vec::new(), Vec::new());
        write(&wanted, &mut dump).unwrap();
        commands::routes(&wanted, |network, len, next_hop| {
            written.push(Route { network, len, next_hop });
            Ok(())
        })
        .unwrap();
        let mut read = Routes::new(dump.as_slice());
        for route in written {
            assert_eq!(read.read().unwrap(), Some(route));
        }
        assert_eq!(read.read().unwrap(), None);
    }
}
