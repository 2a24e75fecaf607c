//! Datagrams between two routers.
//!
//! ```text
//!  0 magic "ss" (2)   version (1)   kind (1)   flags (1): 1 the sender forwards   zero (3)
//!  8 the sender's number of the association (8)
//! 16 the receiver's number of it, as the sender knows it; 0: not known (8)
//! 24 sequence of data, or of hellos (8)
//! 32 data up to here has come, not including (8)
//! 40 of the 64 datagrams behind that, those that have come (8)
//! 48 records, of data only: kind of NAT and operation (1), length (1), a session
//!    keyed hash of all before it (16), unless the operators have agreed on none
//! ```
//! Numbers are in network order.

/// Bytes of a header.
pub const HEADER: usize = 48;
/// Bytes of a datagram's UDP data, at most.
pub const LONGEST: usize = 1400;
/// Bytes of a keyed hash.
pub const TAG: usize = 16;
/// Bytes of records in a datagram, at most.
pub const ROOM: usize = LONGEST - HEADER - TAG;
/// Bytes of one record's session, at most.
pub const RECORD: usize = 64;

const MAGIC: [u8; 2] = *b"ss";
const VERSION: u8 = 1;
const FORWARDS: u8 = 1;

/// What a datagram is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The sender is there, and this is its number.
    Hello,
    /// Sessions.
    Data,
    /// What has come.
    Ack,
}

/// Why a datagram is not looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalid {
    /// It is too short, too long, or none of these.
    Malformed,
    /// It is of another version.
    Version,
}

/// A header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What it is for.
    pub kind: Kind,
    /// Whether the sender forwards.
    pub is_active: bool,
    /// The sender's number.
    pub sender: u64,
    /// The receiver's number; 0: the sender does not know it.
    pub receiver: u64,
    /// Of data, or of hellos.
    pub sequence: u64,
    /// The first data that has not come.
    pub ack: u64,
    /// Which of those behind it have.
    pub behind: u64,
}

impl Header {
    /// Its bytes.
    pub fn write(&self, to: &mut Vec<u8>) {
        let kind = match self.kind {
            Kind::Hello => 1,
            Kind::Data => 2,
            Kind::Ack => 3,
        };
        let [m0, m1] = MAGIC;
        to.extend([m0, m1, VERSION, kind, u8::from(self.is_active) * FORWARDS, 0, 0, 0]);
        for number in [self.sender, self.receiver, self.sequence, self.ack, self.behind] {
            to.extend(number.to_be_bytes());
        }
    }

    /// Reads one; all else is behind [`HEADER`] bytes.
    ///
    /// # Errors
    /// It is none.
    pub fn read(bytes: &[u8]) -> Result<Header, Invalid> {
        if bytes.len() > LONGEST {
            return Err(Invalid::Malformed);
        }
        let (header, _) = bytes.split_first_chunk::<HEADER>().ok_or(Invalid::Malformed)?;
        let [m0, m1, version, kind, flags, 0, 0, 0, ..] = *header else { return Err(Invalid::Malformed) };
        if [m0, m1] != MAGIC || flags & !FORWARDS != 0 {
            return Err(Invalid::Malformed);
        }
        if version != VERSION {
            return Err(Invalid::Version);
        }
        let kind = match kind {
            1 => Kind::Hello,
            2 => Kind::Data,
            3 => Kind::Ack,
            _ => return Err(Invalid::Malformed),
        };
        let number = |at: usize| {
            let bytes = header.get(at..).and_then(|rest| rest.first_chunk::<8>());
            bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
        };
        Ok(Header {
            kind,
            is_active: flags & FORWARDS != 0,
            sender: number(8),
            receiver: number(16),
            sequence: number(24),
            ack: number(32),
            behind: number(40),
        })
    }
}

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordOp {
    /// A session is as this says.
    Put,
    /// It has ended.
    Gone,
    /// All sessions of this kind of NAT follow.
    BeginAll,
    /// These were all.
    EndAll,
    /// The sender wants to hear of all.
    WantAll,
}

impl RecordOp {
    const ALL: [RecordOp; 5] =
        [RecordOp::Put, RecordOp::Gone, RecordOp::BeginAll, RecordOp::EndAll, RecordOp::WantAll];

    fn number(self) -> u8 {
        match self {
            RecordOp::Put => 1,
            RecordOp::Gone => 2,
            RecordOp::BeginAll => 3,
            RecordOp::EndAll => 4,
            RecordOp::WantAll => 5,
        }
    }
}

/// Writes a record.
pub fn write_record(feature: u8, op: RecordOp, session: &[u8], to: &mut Vec<u8>) {
    to.extend([feature << 4 | op.number(), session.len() as u8]);
    to.extend(session);
}

/// The records of a datagram: kind of NAT, operation, session. Ends with an error at the first that is none.
pub struct Records<'a>(pub &'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Result<(u8, RecordOp, &'a [u8]), Invalid>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = || {
            let (&[what, length], rest) = self.0.split_first_chunk::<2>()?;
            let op = RecordOp::ALL.into_iter().find(|op| op.number() == what & 15)?;
            let (session, rest) = rest.split_at_checked(length.into())?;
            (session.len() <= RECORD).then_some(((what >> 4, op, session), rest))
        };
        let Some((record, rest)) = read() else {
            self.0 = &[];
            return Some(Err(Invalid::Malformed));
        };
        self.0 = rest;
        Some(Ok(record))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn header() -> Header {
        Header { kind: Kind::Data, is_active: true, sender: 1, receiver: 2, sequence: 3, ack: 4, behind: 5 }
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_cut_off_or_changed_not_at_all() {
        let mut bytes = Vec::new();
        header().write(&mut bytes);
        assert_eq!((bytes.len(), Header::read(&bytes)), (HEADER, Ok(header())));
        for end in 0..HEADER {
            assert_eq!(Header::read(&bytes[..end]), Err(Invalid::Malformed));
        }
        for (at, value, why) in [
            (0, 0, Invalid::Malformed),
            (2, 2, Invalid::Version),
            (3, 0, Invalid::Malformed),
            (3, 4, Invalid::Malformed),
            (4, 2, Invalid::Malformed),
            (7, 1, Invalid::Malformed),
        ] {
            let mut other = bytes.clone();
            other[at] = value;
            assert_eq!(Header::read(&other), Err(why), "byte {at}");
        }
        assert_eq!(Header::read(&[&bytes[..], &[0; LONGEST]].concat()), Err(Invalid::Malformed));
    }

    #[test]
    fn records_are_read_one_by_one_up_to_the_first_that_is_none() {
        let mut bytes = Vec::new();
        write_record(1, RecordOp::Put, b"abc", &mut bytes);
        write_record(2, RecordOp::EndAll, b"", &mut bytes);
        let good: Vec<_> = Records(&bytes).collect();
        assert_eq!(good, [Ok((1, RecordOp::Put, &b"abc"[..])), Ok((2, RecordOp::EndAll, &b""[..]))]);
        for end in [1, 2, 4] {
            assert_eq!(Records(&bytes[..end]).collect::<Vec<_>>(), [Err(Invalid::Malformed)], "{end}");
        }
        let bad = [&bytes[..], &[0x1f, 0, 0, 0]].concat();
        assert_eq!(Records(&bad).count(), 3, "nothing is read behind it");
        let long = [&[0x11, 65][..], &[0; 65]].concat();
        assert_eq!(Records(&long).collect::<Vec<_>>(), [Err(Invalid::Malformed)]);
    }
}
