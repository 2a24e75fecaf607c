//! VPP's protocol between two endpoint-independent NATs: UDP datagrams with changes of sessions, each acknowledged.

use shoal_nat::tuple::{ICMP, TCP, UDP};

use crate::sessions::{Endpoint, Event, Session};

/// Bytes of the header.
pub const HEADER: usize = 12;
/// Bytes of a change.
pub const CHANGE: usize = 44;
const VERSION: u8 = 1;
const ACK: u8 = 1;
/// The session is a mapping's.
const STATIC: u16 = 1;

/// The header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Whether it acknowledges one with the same number.
    pub is_ack: bool,
    /// How many changes follow.
    pub count: u16,
    /// Its number.
    pub sequence: u32,
    /// The thread that has the sessions.
    pub thread: u32,
}

/// A change of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// What happened.
    pub event: Event,
    /// The session. One that begins has both ends and its inside table, another its outside end and outside table only; the table that
    /// is not sent is the same.
    pub session: Session,
    /// Packets so far.
    pub packets: u32,
    /// Bytes so far.
    pub bytes: u64,
}

/// VPP's number of a protocol.
fn number(protocol: u8) -> u8 {
    match protocol {
        UDP => 1,
        TCP => 2,
        ICMP => 3,
        _ => 0,
    }
}

fn protocol(number: u8) -> Option<u8> {
    match number {
        1 => Some(UDP),
        2 => Some(TCP),
        3 => Some(ICMP),
        _ => None,
    }
}

impl Header {
    /// Its bytes.
    pub fn write(&self) -> [u8; HEADER] {
        let Header { is_ack, count, sequence, thread } = *self;
        let mut bytes = [0; HEADER];
        bytes[0] = VERSION;
        bytes[1] = if is_ack { ACK } else { 0 };
        bytes[2..4].copy_from_slice(&count.to_be_bytes());
        bytes[4..8].copy_from_slice(&sequence.to_be_bytes());
        bytes[8..12].copy_from_slice(&thread.to_be_bytes());
        bytes
    }

    /// Reads one; `None`: it is no such header.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let &[version, flags, c0, c1, s0, s1, s2, s3, t0, t1, t2, t3] = bytes.first_chunk::<HEADER>()?;
        (version == VERSION).then(|| Header {
            is_ack: flags & ACK != 0,
            count: u16::from_be_bytes([c0, c1]),
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            thread: u32::from_be_bytes([t0, t1, t2, t3]),
        })
    }
}

impl Change {
    /// Its bytes.
    pub fn write(&self) -> Vec<u8> {
        let Session { inside, inside_table, outside, outside_table, protocol, is_static, remote } =
            self.session;
        // What is known already goes by its outside end.
        let (inside, table) = match self.event {
            Event::Begins => (inside, inside_table),
            Event::Ends | Event::Used => ((0, 0), outside_table),
        };
        let event = match self.event {
            Event::Begins => 1,
            Event::Ends => 2,
            Event::Used => 3,
        };
        let mut bytes = Vec::with_capacity(CHANGE);
        bytes.extend([event, number(protocol)]);
        bytes.extend(if is_static { STATIC } else { 0 }.to_be_bytes());
        bytes.extend(inside.0.to_be_bytes());
        bytes.extend(outside.0.to_be_bytes());
        bytes.extend(inside.1.to_be_bytes());
        bytes.extend(outside.1.to_be_bytes());
        bytes.extend(remote.0.to_be_bytes());
        // What stands for the remote end: this NAT never replaces it.
        bytes.extend(0_u32.to_be_bytes());
        bytes.extend(remote.1.to_be_bytes());
        bytes.extend(0_u16.to_be_bytes());
        bytes.extend(table.to_be_bytes());
        bytes.extend(self.packets.to_be_bytes());
        bytes.extend(self.bytes.to_be_bytes());
        bytes
    }

    /// Reads one; `None`: it is none.
    pub fn read(bytes: &[u8]) -> Option<Change> {
        let bytes: &[u8; CHANGE] = bytes.first_chunk()?;
        let two = |at: usize| bytes.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b));
        let four = |at: usize| bytes.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b));
        let event = match bytes[0] {
            1 => Event::Begins,
            2 => Event::Ends,
            3 => Event::Used,
            _ => return None,
        };
        let end = |address: usize, port: usize| -> Option<Endpoint> { Some((four(address)?, two(port)?)) };
        let inside_table = four(28)?;
        let session = Session {
            inside: end(4, 12)?,
            inside_table,
            outside: end(8, 14)?,
            outside_table: inside_table,
            protocol: protocol(bytes[1])?,
            is_static: two(2)? & STATIC != 0,
            remote: end(16, 24)?,
        };
        Some(Change { event, session, packets: four(32)?, bytes: u64::from_be_bytes(*bytes.last_chunk()?) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn change(event: Event) -> Change {
        let session = Session {
            inside: (0x0a00_0005, 2000),
            inside_table: 7,
            outside: (0x1400_000a, 63327),
            outside_table: if event == Event::Begins { 7 } else { 8 },
            protocol: UDP,
            is_static: true,
            remote: (0x1400_0009, 53),
        };
        Change { event, session, packets: 3, bytes: 0x1_0000_0002 }
    }

    #[test]
    fn bytes_are_those_that_vpp_sends() {
        let expected = [
            1, 1, 0, 1, 10, 0, 0, 5, 20, 0, 0, 10, 7, 208, 247, 95, 20, 0, 0, 9, 0, 0, 0, 0, 0, 53, 0, 0, 0,
            0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2,
        ];
        assert_eq!(change(Event::Begins).write(), expected);
        // One that is used, or ends, is named by its outside end.
        let mut expected = expected;
        (expected[0], expected[31]) = (3, 8);
        expected[4..8].fill(0);
        expected[12..14].fill(0);
        assert_eq!(change(Event::Used).write(), expected);
        expected[0] = 2;
        assert_eq!(change(Event::Ends).write(), expected);
        let header = Header { is_ack: true, count: 2, sequence: 0x0102_0304, thread: 5 };
        assert_eq!(header.write(), [1, 1, 0, 2, 1, 2, 3, 4, 0, 0, 0, 5]);
    }

    #[test]
    fn what_was_written_is_read() {
        let begins = change(Event::Begins);
        assert_eq!(Change::read(&begins.write()), Some(begins));
        let header = Header { is_ack: false, count: 9, sequence: u32::MAX, thread: 1 };
        assert_eq!(Header::read(&header.write()), Some(header));
    }

    #[test]
    fn what_is_none_is_refused() {
        let bytes = change(Event::Begins).write();
        assert_eq!(Change::read(bytes.get(1..).unwrap()), None, "too short");
        for (at, value) in [(0, 0), (0, 4), (1, 0), (1, 4)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert_eq!(Change::read(&bytes), None, "{at} {value}");
        }
        assert_eq!(Header::read(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None, "another version");
        assert_eq!(Header::read(&[1; 11]), None);
    }
}
