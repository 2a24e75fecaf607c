//! Messages of the vhost-user protocol, as bytes.
//!
//! A message is a header of three words (request, flags, bytes that follow), its body, and descriptors beside it. All
//! numbers are in the machine's order, which is little-endian here.

use crate::memory::{MOST_REGIONS, RegionDescription};
use crate::vring::VringPlace;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 12;
/// Bytes of the longest body that is taken: a guest's memory in eight regions.
pub const MOST_BYTES: usize = 8 + MOST_REGIONS * REGION_BYTES;
const REGION_BYTES: usize = 32;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;
/// In the body of a message that brings a descriptor: it does not.
const NO_FD: u64 = 1 << 8;

/// What stands in front of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which message.
    pub request: u32,
    /// The front end waits until it is done, though it has no answer of its own.
    pub need_reply: bool,
    /// Bytes of its body.
    pub size: usize,
}

/// Bytes that are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The header's flags are wrong.
    #[error("message {0} of protocol version {1}, must be 1")]
    Version(u32, u32),
    /// An answer to a question that was not asked.
    #[error("message {0} is an answer, to no question")]
    Reply(u32),
    /// The body is longer than any.
    #[error("message {0} of {1} bytes, at most 264")]
    TooLong(u32, usize),
    /// The body's length is wrong.
    #[error("{0} of {1} bytes, must be {2}")]
    Size(&'static str, usize, usize),
    /// Too many descriptors, or too few.
    #[error("{0} with {1} descriptors, must be {2}")]
    Fds(&'static str, usize, usize),
    /// Too many regions, or none.
    #[error("memory of {0} regions, must be 1 to 8")]
    Regions(u32),
    /// A message that the features in use do not have.
    #[error("message {0} was not offered")]
    Unknown(u32),
}

/// What the front end says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Asks for the device's features.
    GetFeatures,
    /// Chooses among them.
    SetFeatures(u64),
    /// Begins.
    SetOwner,
    /// Ends, in the words of old front ends.
    ResetOwner,
    /// Gives the guest's memory; a descriptor for each region.
    SetMemTable(Vec<RegionDescription>),
    /// Gives a ring's size.
    SetVringNum(u32, u32),
    /// Gives a ring's place.
    SetVringAddr(u32, VringPlace),
    /// Gives the index at which a ring begins.
    SetVringBase(u32, u32),
    /// Stops a ring and asks for that index.
    GetVringBase(u32),
    /// Starts a ring; a descriptor that wakes this end, unless it is to look by itself.
    SetVringKick(u32),
    /// A descriptor that wakes the guest, or none.
    SetVringCall(u32),
    /// A descriptor by which the hypervisor hears of errors, or none.
    SetVringErr(u32),
    /// Asks for the protocol's features.
    GetProtocolFeatures,
    /// Chooses among them.
    SetProtocolFeatures(u64),
    /// Asks for the most pairs of rings.
    GetQueueNum,
    /// Lets packets through a ring, or no more.
    SetVringEnable(u32, bool),
}

impl Header {
    /// Reads one.
    ///
    /// # Errors
    /// It is of another protocol, or of a body that none has.
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> Result<Self, Malformed> {
        let [request, flags, size] = words(bytes);
        if flags & VERSION_MASK != VERSION {
            return Err(Malformed::Version(request, flags & VERSION_MASK));
        }
        if flags & REPLY != 0 {
            return Err(Malformed::Reply(request));
        }
        let size = size as usize;
        if size > MOST_BYTES {
            return Err(Malformed::TooLong(request, size));
        }
        Ok(Header { request, need_reply: flags & NEED_REPLY != 0, size })
    }

    /// Writes one that goes to the back end.
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let flags = VERSION | if self.need_reply { NEED_REPLY } else { 0 };
        bytes([self.request, flags, self.size as u32])
    }
}

fn words(from: [u8; HEADER_BYTES]) -> [u32; 3] {
    let (words, _) = from.as_chunks::<4>();
    let mut all = [0; 3];
    all.iter_mut().zip(words).for_each(|(to, from)| *to = u32::from_le_bytes(*from));
    all
}

fn bytes(from: [u32; 3]) -> [u8; HEADER_BYTES] {
    let mut all = [0; HEADER_BYTES];
    let (words, _) = all.as_chunks_mut::<4>();
    words.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_le_bytes());
    all
}

/// An answer: of a number, or of a ring and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A number.
    Number(u64),
    /// A ring, and its index.
    Vring(u32, u32),
}

impl Answer {
    /// The whole message.
    pub fn encode(self, request: u32) -> Vec<u8> {
        let mut message = bytes([request, VERSION | REPLY, 8]).to_vec();
        match self {
            Answer::Number(number) => message.extend(number.to_le_bytes()),
            Answer::Vring(ring, number) => {
                message.extend((u64::from(number) << 32 | u64::from(ring)).to_le_bytes());
            }
        }
        message
    }
}

/// The body of one message while it is read.
struct Body<'a> {
    name: &'static str,
    bytes: &'a [u8],
    fds: usize,
}

impl Body<'_> {
    /// Its words of 64 bits, after a check of length and descriptors.
    fn numbers<const N: usize>(&self, fds: usize) -> Result<[u64; N], Malformed> {
        if self.bytes.len() != N * 8 {
            return Err(Malformed::Size(self.name, self.bytes.len(), N * 8));
        }
        self.count(fds)?;
        let mut all = [0; N];
        let (words, _) = self.bytes.as_chunks::<8>();
        all.iter_mut().zip(words).for_each(|(to, from)| *to = u64::from_le_bytes(*from));
        Ok(all)
    }

    fn count(&self, fds: usize) -> Result<(), Malformed> {
        if self.fds == fds { Ok(()) } else { Err(Malformed::Fds(self.name, self.fds, fds)) }
    }

    /// A ring and a number.
    fn state(&self) -> Result<(u32, u32), Malformed> {
        self.numbers::<1>(0).map(|[word]| (word as u32, (word >> 32) as u32))
    }

    /// A ring, with a descriptor or without.
    fn ring_fd(&self) -> Result<u32, Malformed> {
        let [word] = self.numbers::<1>(self.fds)?;
        self.count(usize::from(word & NO_FD == 0))?;
        Ok(word as u32 & 0xff)
    }

    fn memory(&self) -> Result<Vec<RegionDescription>, Malformed> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<8>() else {
            return Err(Malformed::Size(self.name, self.bytes.len(), 8 + REGION_BYTES));
        };
        let count = u64::from_le_bytes(*head) as u32;
        let regions = count as usize;
        if regions == 0 || regions > MOST_REGIONS {
            return Err(Malformed::Regions(count));
        }
        // Some front ends send room for all regions, whatever their number.
        let (chunks, left) = rest.as_chunks::<REGION_BYTES>();
        if chunks.len() < regions || !left.is_empty() {
            return Err(Malformed::Size(self.name, self.bytes.len(), 8 + regions * REGION_BYTES));
        }
        self.count(regions)?;
        let region = |bytes: &[u8; REGION_BYTES]| {
            let (words, _) = bytes.as_chunks::<8>();
            let at = |i: usize| words.get(i).map_or(0, |w| u64::from_le_bytes(*w));
            RegionDescription { guest: at(0), size: at(1), user: at(2), offset: at(3) }
        };
        Ok(chunks.iter().take(regions).map(region).collect())
    }
}

impl Message {
    /// Reads a body that came with so many descriptors.
    ///
    /// # Errors
    /// It is not what a message of this kind looks like, or there is no such kind.
    pub fn decode(request: u32, bytes: &[u8], fds: usize) -> Result<Self, Malformed> {
        let name = Message::name(request).ok_or(Malformed::Unknown(request))?;
        let body = Body { name, bytes, fds };
        let empty = |message: Message| body.numbers::<0>(0).map(|_| message);
        let number = || body.numbers::<1>(0).map(|[n]| n);
        match request {
            1 => empty(Message::GetFeatures),
            2 => Ok(Message::SetFeatures(number()?)),
            3 => empty(Message::SetOwner),
            4 => empty(Message::ResetOwner),
            5 => Ok(Message::SetMemTable(body.memory()?)),
            8 => body.state().map(|(ring, n)| Message::SetVringNum(ring, n)),
            9 => {
                let [state, desc, used, avail, _log] = body.numbers(0)?;
                Ok(Message::SetVringAddr(state as u32, VringPlace { desc, used, avail }))
            }
            10 => body.state().map(|(ring, n)| Message::SetVringBase(ring, n)),
            11 => body.state().map(|(ring, _)| Message::GetVringBase(ring)),
            12 => Ok(Message::SetVringKick(body.ring_fd()?)),
            13 => Ok(Message::SetVringCall(body.ring_fd()?)),
            14 => Ok(Message::SetVringErr(body.ring_fd()?)),
            15 => empty(Message::GetProtocolFeatures),
            16 => Ok(Message::SetProtocolFeatures(number()?)),
            17 => empty(Message::GetQueueNum),
            18 => body.state().map(|(ring, n)| Message::SetVringEnable(ring, n != 0)),
            _ => Err(Malformed::Unknown(request)),
        }
    }

    fn name(request: u32) -> Option<&'static str> {
        Some(match request {
            1 => "VHOST_USER_GET_FEATURES",
            2 => "VHOST_USER_SET_FEATURES",
            3 => "VHOST_USER_SET_OWNER",
            4 => "VHOST_USER_RESET_OWNER",
            5 => "VHOST_USER_SET_MEM_TABLE",
            8 => "VHOST_USER_SET_VRING_NUM",
            9 => "VHOST_USER_SET_VRING_ADDR",
            10 => "VHOST_USER_SET_VRING_BASE",
            11 => "VHOST_USER_GET_VRING_BASE",
            12 => "VHOST_USER_SET_VRING_KICK",
            13 => "VHOST_USER_SET_VRING_CALL",
            14 => "VHOST_USER_SET_VRING_ERR",
            15 => "VHOST_USER_GET_PROTOCOL_FEATURES",
            16 => "VHOST_USER_SET_PROTOCOL_FEATURES",
            17 => "VHOST_USER_GET_QUEUE_NUM",
            18 => "VHOST_USER_SET_VRING_ENABLE",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn messages_are_read_as_the_protocol_writes_them() {
        let decode = |request, words: &[u64], fds| Message::decode(request, &body(words), fds).unwrap();
        assert_eq!(decode(1, &[], 0), Message::GetFeatures);
        assert_eq!(decode(2, &[1 << 32], 0), Message::SetFeatures(1 << 32));
        assert_eq!(decode(8, &[256 << 32 | 1], 0), Message::SetVringNum(1, 256));
        let place = VringPlace { desc: 0x1000, used: 0x2000, avail: 0x3000 };
        assert_eq!(decode(9, &[3, 0x1000, 0x2000, 0x3000, 0], 0), Message::SetVringAddr(3, place));
        assert_eq!(decode(12, &[5], 1), Message::SetVringKick(5));
        assert_eq!(decode(13, &[5 | 256], 0), Message::SetVringCall(5));
        let region = RegionDescription { guest: 1, size: 2, user: 3, offset: 4 };
        assert_eq!(decode(5, &[1, 1, 2, 3, 4], 1), Message::SetMemTable(vec![region]));
        assert_eq!(decode(5, &[1, 1, 2, 3, 4, 0, 0, 0, 0], 1), Message::SetMemTable(vec![region]));
    }

    #[test]
    fn what_is_too_long_too_short_or_has_other_descriptors_is_refused() {
        let refused = |request, words: &[u64], fds| Message::decode(request, &body(words), fds).unwrap_err();
        assert!(matches!(refused(1, &[0], 0), Malformed::Size(..)));
        assert!(matches!(refused(2, &[], 0), Malformed::Size(..)));
        assert!(matches!(refused(2, &[1], 1), Malformed::Fds(_, 1, 0)));
        assert!(matches!(refused(12, &[5], 0), Malformed::Fds(_, 0, 1)));
        assert!(matches!(refused(12, &[5 | 256], 1), Malformed::Fds(_, 1, 0)));
        assert!(matches!(refused(12, &[5], 2), Malformed::Fds(_, 2, 1)));
        assert!(matches!(refused(5, &[0], 0), Malformed::Regions(0)));
        assert!(matches!(refused(5, &[9], 9), Malformed::Regions(9)));
        assert!(matches!(refused(5, &[2, 1, 2, 3, 4], 2), Malformed::Size(..)));
        assert!(matches!(refused(5, &[1, 1, 2, 3, 4], 2), Malformed::Fds(_, 2, 1)));
        assert!(matches!(refused(6, &[], 0), Malformed::Unknown(6)));
        assert!(Message::decode(8, &[0; 7], 0).is_err());
    }

    #[test]
    fn headers_of_others_are_refused() {
        let header = |flags: u32, size: u32| Header::decode(bytes([2, flags, size]));
        assert_eq!(header(9, 8).unwrap(), Header { request: 2, need_reply: true, size: 8 });
        assert_eq!(header(2, 8), Err(Malformed::Version(2, 2)));
        assert_eq!(header(5, 8), Err(Malformed::Reply(2)));
        assert_eq!(header(1, 265), Err(Malformed::TooLong(2, 265)));
        assert_eq!(header(1, u32::MAX), Err(Malformed::TooLong(2, u32::MAX as usize)));
        assert_eq!(
            Answer::Vring(1, 2).encode(11),
            bytes([11, 5, 8]).iter().copied().chain([1, 0, 0, 0, 2, 0, 0, 0]).collect::<Vec<_>>()
        );
    }
}
