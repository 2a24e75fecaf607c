//! Messages of bfdd's data plane protocol (FRR, bfdd/bfddp_packet.h): numbers most significant byte first.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Bytes of a message's header: version, a zero, type, number, and the length of all of it.
pub const HEADER: usize = 8;
/// Bytes of the longest message that is read.
pub const LONGEST: usize = 1024;
/// Versions that are spoken. The second has more fields at the end of a session.
const VERSIONS: [u8; 2] = [1, 2];

const ECHO_REQUEST: u16 = 0;
const ECHO_REPLY: u16 = 1;
const ADD: u16 = 2;
const DELETE: u16 = 3;
const STATE_CHANGE: u16 = 4;
const REQUEST_COUNTERS: u16 = 5;
const COUNTERS: u16 = 6;

const MULTI_HOP: u32 = 1;
const ECHO: u32 = 1 << 3;
const IPV6: u32 = 1 << 4;
const PASSIVE: u32 = 1 << 5;
const SHUTDOWN: u32 = 1 << 6;
/// In a state change: the other end is in demand mode.
const REMOTE_DEMAND: u32 = 1 << 1;

/// Bytes of a session in the first version.
const SESSION: usize = 132;
/// Bytes of an interface's name, with the zero behind it.
const NAME: usize = 64;

/// Why a connection cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Another version of the protocol.
    Version(u8),
    /// A length that no message has.
    Length(u16),
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Malformed::Version(version) => write!(f, "version {version} of the protocol, expected 1 or 2"),
            Malformed::Length(length) => {
                write!(f, "a message of {length} bytes, expected {HEADER} to {LONGEST}")
            }
        }
    }
}

impl std::error::Error for Malformed {}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The version of the protocol.
    pub version: u8,
    /// What it is.
    pub kind: u16,
    /// The number that an answer has, too; 0: there is none.
    pub id: u16,
    /// Bytes behind the header.
    pub rest: usize,
}

impl Header {
    /// Reads one.
    ///
    /// # Errors
    /// It is none of this protocol.
    pub fn read(bytes: &[u8; HEADER]) -> Result<Header, Malformed> {
        let [version, _, kind @ .., id_high, id_low, high, low] = *bytes;
        if !VERSIONS.contains(&version) {
            return Err(Malformed::Version(version));
        }
        let length = u16::from_be_bytes([high, low]);
        let rest = usize::from(length).checked_sub(HEADER).filter(|rest| *rest <= LONGEST - HEADER);
        let Some(rest) = rest else { return Err(Malformed::Length(length)) };
        let id = u16::from_be_bytes([id_high, id_low]);
        Ok(Header { version, kind: u16::from_be_bytes(kind), id, rest })
    }
}

/// A session that bfdd asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Bfdd's number of it.
    pub discr: u32,
    /// The other end is several hops away.
    pub is_multi_hop: bool,
    /// It waits until the other end begins.
    pub is_passive: bool,
    /// It is switched off.
    pub is_shut_down: bool,
    /// The lowest TTL with which packets of a session over several hops are taken.
    pub least_ttl: u8,
    /// Our address, if it is given.
    pub local: Option<IpAddr>,
    /// The other end's.
    pub peer: IpAddr,
    /// Microseconds between packets that it would like to send.
    pub min_tx: u32,
    /// Microseconds between packets that it can receive.
    pub min_rx: u32,
    /// Microseconds between echo packets that it would like to send and can receive, if it is to have the echo function.
    pub echo: Option<(u32, u32)>,
    /// How long it is to wait before it begins.
    pub hold: Duration,
    /// How many packets may be lost.
    pub detect_mult: u8,
    /// The interface, by its name in Linux; empty if it is not given.
    pub interface: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Asks for the same bytes.
    Echo([u8; 16]),
    /// Makes a session, or changes it.
    Add(Request),
    /// Deletes the one with this number.
    Delete(u32),
    /// Asks for counters of the one with this number.
    Counters(u32),
    /// Something else.
    Other,
    /// Cut short, or with addresses that cannot be.
    Malformed,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Message {
    /// Reads what is behind a header.
    pub fn read(kind: u16, bytes: &[u8]) -> Message {
        let message = match kind {
            ECHO_REQUEST => bytes.first_chunk().map(|times| Message::Echo(*times)),
            ADD => Request::read(bytes).map(Message::Add),
            DELETE => Request::read(bytes).map(|request| Message::Delete(request.discr)),
            REQUEST_COUNTERS => word(bytes, 0).map(Message::Counters),
            _ => Some(Message::Other),
        };
        message.unwrap_or(Message::Malformed)
    }
}

impl Request {
    fn read(bytes: &[u8]) -> Option<Request> {
        let bytes: &[u8; SESSION] = bytes.first_chunk()?;
        let flags = word(bytes, 0)?;
        let address = |at: usize| {
            let all: [u8; 16] = *bytes.get(at..)?.first_chunk()?;
            let [a, b, c, d, ..] = all;
            let address = if flags & IPV6 == 0 {
                IpAddr::V4(Ipv4Addr::new(a, b, c, d))
            } else {
                IpAddr::V6(Ipv6Addr::from(all))
            };
            Some(address)
        };
        let peer = address(20).filter(|peer| !peer.is_unspecified() && !peer.is_multicast())?;
        let name = bytes.get(SESSION - NAME..)?.split(|byte| *byte == 0).next()?;
        Some(Request {
            discr: word(bytes, 36).filter(|discr| *discr != 0)?,
            is_multi_hop: flags & MULTI_HOP != 0,
            is_passive: flags & PASSIVE != 0,
            is_shut_down: flags & SHUTDOWN != 0,
            least_ttl: *bytes.get(60)?,
            local: address(4).filter(|local| !local.is_unspecified()),
            peer,
            min_tx: word(bytes, 40)?,
            min_rx: word(bytes, 44)?,
            echo: Some((word(bytes, 48)?, word(bytes, 52)?)).filter(|_| flags & ECHO != 0),
            hold: Duration::from_millis(word(bytes, 56)?.into()),
            detect_mult: *bytes.get(61)?,
            interface: String::from_utf8_lossy(name).into_owned(),
        })
    }
}

/// What bfdd hears of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateChange {
    /// Bfdd's number of it.
    pub discr: u32,
    /// The other end's.
    pub remote_discr: u32,
    /// The other end does not want periodic packets.
    pub remote_demand: bool,
    /// Microseconds between packets the other end would like to send, can receive, and sends back.
    pub remote_times: [u32; 3],
    /// Our state, as on the wire.
    pub state: u8,
    /// Why it went down last.
    pub diag: u8,
    /// How many packets may be lost, says the other end.
    pub remote_detect_mult: u8,
}

/// Begins a message of a known length.
fn begin(version: u8, kind: u16, id: u16, rest: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + rest);
    out.extend([version, 0]);
    out.extend(kind.to_be_bytes());
    out.extend(id.to_be_bytes());
    out.extend(((HEADER + rest) as u16).to_be_bytes());
    out
}

/// Answers an echo.
pub fn echo_reply(version: u8, id: u16, times: &[u8; 16]) -> Vec<u8> {
    let mut out = begin(version, ECHO_REPLY, id, times.len());
    out.extend(times);
    out
}

/// Tells a session's state.
pub fn state_change(version: u8, change: &StateChange) -> Vec<u8> {
    let StateChange { discr, remote_discr, remote_demand, remote_times, state, diag, remote_detect_mult } =
        *change;
    let mut out = begin(version, STATE_CHANGE, 0, 28);
    let flags = if remote_demand { REMOTE_DEMAND } else { 0 };
    for number in [discr, remote_discr, flags].into_iter().chain(remote_times) {
        out.extend(number.to_be_bytes());
    }
    out.extend([state, diag, remote_detect_mult, 0]);
    out
}

/// Tells a session's counters: packets and bytes received and sent, echo packets received and sent.
pub fn counters(version: u8, id: u16, discr: u32, counts: [(u64, u64); 4]) -> Vec<u8> {
    let mut out = begin(version, COUNTERS, id, 72);
    out.extend(discr.to_be_bytes());
    // Numbers of eight bytes begin at a multiple of eight.
    out.extend([0; 4]);
    for (packets, bytes) in counts {
        out.extend(bytes.to_be_bytes());
        out.extend(packets.to_be_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_protocol() {
        assert_eq!(state_change(1, &StateChange::default()).len(), HEADER + 28);
        assert_eq!(counters(1, 5, 9, [(1, 2); 4]).len(), HEADER + 72);
        assert_eq!(echo_reply(2, 7, &[1; 16]), [&[2, 0, 0, 1, 0, 7, 0, 24][..], &[1; 16]].concat());
    }

    #[test]
    fn a_header_of_another_protocol_is_refused() {
        let header = |version, length: u16| {
            let [high, low] = length.to_be_bytes();
            Header::read(&[version, 0, 0, 2, 0, 0, high, low])
        };
        assert_eq!(header(1, 140), Ok(Header { version: 1, kind: 2, id: 0, rest: 132 }));
        assert_eq!(header(3, 140), Err(Malformed::Version(3)));
        assert_eq!(header(1, 7), Err(Malformed::Length(7)));
        assert_eq!(header(2, 1025), Err(Malformed::Length(1025)));
    }

    #[test]
    fn no_bytes_make_the_reader_fail() {
        let mut bytes = vec![0xa5; 200];
        for len in 0..bytes.len() {
            for kind in 0..8 {
                let _ = Message::read(kind, &bytes[..len]);
            }
            assert!(len >= SESSION || Message::read(ADD, &bytes[..len]) == Message::Malformed);
        }
        // Without a peer, and without a number.
        bytes[..SESSION].fill(0);
        assert_eq!(Message::read(ADD, &bytes), Message::Malformed);
        bytes[20] = 10;
        assert_eq!(Message::read(ADD, &bytes), Message::Malformed);
        bytes[39] = 1;
        assert!(matches!(Message::read(ADD, &bytes), Message::Add(Request { discr: 1, local: None, .. })));
    }

    #[test]
    fn times_of_echo_packets_count_if_there_are_to_be_some() {
        let mut bytes = [0; SESSION];
        (bytes[20], bytes[39]) = (10, 1);
        bytes[48..56].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 1, 0x11, 0x70]);
        let echo = |bytes: &[u8]| match Message::read(ADD, bytes) {
            Message::Add(request) => request.echo,
            other => panic!("{other:?}"),
        };
        assert_eq!(echo(&bytes), None);
        bytes[3] = 1 << 3;
        assert_eq!(echo(&bytes), Some((60_000, 70_000)));
    }
}
