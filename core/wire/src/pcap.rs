//! Classic pcap capture files (draft-ietf-opsawg-pcap): read with suspicion, written as VPP writes them.
//!
//! ```
//! use std::time::Duration;
//! use shoal_wire::pcap::{LinkType, Reader, Writer};
//! let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET)?;
//! writer.write(Duration::from_micros(1_500_000), b"not much of a frame")?;
//! let file = writer.into_inner();
//! let record = Reader::new(&file[..])?.next().expect("one record")?;
//! assert_eq!((record.timestamp, &record.data[..3]), (Duration::from_millis(1500), &b"not"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Longest record the writer stores, in bytes; longer packets are cut and keep their length.
pub const SNAPLEN: u32 = 65_536;
/// Longest record a reader may be told to accept, in bytes: libpcap's own limit.
pub const MAX_RECORD: u32 = 262_144;

const MAGIC_USEC: u32 = 0xa1b2_c3d4;
const MAGIC_NSEC: u32 = 0xa1b2_3c4d;
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// What the records start with (the LINKTYPE_ registry of tcpdump.org).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkType(pub u32);

impl LinkType {
    /// An Ethernet header.
    pub const ETHERNET: Self = Self(1);
    /// An IP header, as VPP and most systems number it.
    pub const RAW_IP: Self = Self(12);
    /// An IP header, as LINKTYPE_RAW numbers it.
    pub const RAW: Self = Self(101);
    /// Packets with the node they were dispatched to: VPP's dispatch trace.
    pub const VPP_DISPATCH: Self = Self(280);

    /// Records start with an IP header, whichever number says so (14 is OpenBSD's).
    pub const fn is_raw_ip(self) -> bool {
        matches!(self.0, 12 | 14 | 101)
    }
}

/// Why a capture file cannot be read. Offsets count bytes from the start of the file.
#[derive(Debug)]
pub enum Error {
    /// The first four bytes are no pcap magic.
    Magic {
        /// The bytes as a big-endian number.
        value: u32,
    },
    /// A version other than 2.4.
    Version {
        /// Major and minor number.
        value: (u16, u16),
    },
    /// The file ends inside a header or a record.
    Truncated {
        /// Where the incomplete part starts.
        offset: u64,
        /// Its length in bytes.
        needed: u32,
        /// How many of its bytes are there.
        present: u32,
    },
    /// A record claims to be longer than the reader accepts.
    RecordLength {
        /// Where the length field is.
        offset: u64,
        /// The length claimed, in bytes.
        value: u32,
        /// The longest accepted, in bytes.
        max: u32,
    },
    /// The source failed.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { value: 0x0a0d_0d0a } => {
                f.write_str("pcap: offset 0: this is pcapng, convert it with `editcap -F pcap`")
            }
            Self::Magic { value } => {
                write!(
                    f,
                    "pcap: offset 0: magic 0x{value:08x}, expected 0x{MAGIC_USEC:08x} or 0x{MAGIC_NSEC:08x}"
                )
            }
            Self::Version { value: (major, minor) } => {
                write!(f, "pcap: offset 4: version {major}.{minor}, expected 2.4")
            }
            Self::Truncated { offset, needed, present } => {
                write!(f, "pcap: offset {offset}: file truncated, {needed} bytes needed, {present} present")
            }
            Self::RecordLength { offset, value, max } => {
                write!(f, "pcap: offset {offset}: record length {value}, at most {max}")
            }
            Self::Io(error) => write!(f, "pcap: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// One captured packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Time since the Unix epoch.
    pub timestamp: Duration,
    /// Bytes the packet had on the wire, as claimed; `data` may be shorter.
    pub original_len: u32,
    /// The bytes captured.
    pub data: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Endian {
    Big,
    Little,
}

impl Endian {
    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }

    fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        }
    }
}

/// Reads a capture from `&[u8]`, a file or any [`Read`] (buffer it), either byte order, micro- or
/// nanoseconds. As an iterator it ends after the first error.
pub struct Reader<R> {
    input: R,
    endian: Endian,
    nanoseconds: bool,
    link_type: LinkType,
    snaplen: u32,
    max_record: u32,
    offset: u64,
    done: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the file header; records longer than [`MAX_RECORD`] will be refused.
    pub fn new(input: R) -> Result<Self, Error> {
        Self::with_max_record(input, MAX_RECORD)
    }

    /// As [`new`](Self::new) with another limit in bytes, taken into [`SNAPLEN`]..=[`MAX_RECORD`].
    /// No record makes the reader allocate more than that.
    pub fn with_max_record(mut input: R, max_record: u32) -> Result<Self, Error> {
        let mut header = [0; FILE_HEADER];
        let present = read_full(&mut input, &mut header)?;
        if present < FILE_HEADER {
            return Err(Error::Truncated { offset: 0, needed: FILE_HEADER as u32, present: present as u32 });
        }
        let [m0, m1, m2, m3, v0, v1, v2, v3, .., s0, s1, s2, s3, l0, l1, l2, l3] = header;
        let magic = [m0, m1, m2, m3];
        let (endian, nanoseconds) = match (u32::from_be_bytes(magic), u32::from_le_bytes(magic)) {
            (MAGIC_USEC, _) => (Endian::Big, false),
            (MAGIC_NSEC, _) => (Endian::Big, true),
            (_, MAGIC_USEC) => (Endian::Little, false),
            (_, MAGIC_NSEC) => (Endian::Little, true),
            (value, _) => return Err(Error::Magic { value }),
        };
        let version = (endian.u16([v0, v1]), endian.u16([v2, v3]));
        if version != (2, 4) {
            return Err(Error::Version { value: version });
        }
        Ok(Self {
            input,
            endian,
            nanoseconds,
            // The upper half holds flags about frame check sequences.
            link_type: LinkType(endian.u32([l0, l1, l2, l3]) & 0xffff),
            snaplen: endian.u32([s0, s1, s2, s3]),
            max_record: max_record.clamp(SNAPLEN, MAX_RECORD),
            offset: FILE_HEADER as u64,
            done: false,
        })
    }

    /// What the records start with.
    pub fn link_type(&self) -> LinkType {
        self.link_type
    }

    /// The snapshot length the file claims, in bytes. Not a limit: many writers get it wrong.
    pub fn snaplen(&self) -> u32 {
        self.snaplen
    }

    /// The next record, or `None` at a clean end of the file.
    pub fn read(&mut self) -> Result<Option<Record>, Error> {
        let mut record = Record { timestamp: Duration::ZERO, original_len: 0, data: Vec::new() };
        Ok(self.read_into(&mut record)?.then_some(record))
    }

    /// As [`read`](Self::read) into a record whose memory is used again; `false` at the end.
    pub fn read_into(&mut self, record: &mut Record) -> Result<bool, Error> {
        let mut header = [0; RECORD_HEADER];
        let present = read_full(&mut self.input, &mut header)?;
        if present == 0 {
            return Ok(false);
        }
        if present < RECORD_HEADER {
            return Err(self.truncated(RECORD_HEADER as u32, present));
        }
        let [seconds, fraction, captured, original] = self.fields(&header);
        if captured > self.max_record {
            let offset = self.offset + 8;
            return Err(Error::RecordLength { offset, value: captured, max: self.max_record });
        }
        self.offset += RECORD_HEADER as u64;
        record.data.clear();
        record.data.resize(captured as usize, 0);
        let present = read_full(&mut self.input, &mut record.data)?;
        if present < captured as usize {
            return Err(self.truncated(captured, present));
        }
        self.offset += u64::from(captured);
        // A fraction beyond a second is carried, not refused: broken clocks write them.
        record.timestamp = Duration::from_secs(u64::from(seconds))
            + if self.nanoseconds {
                Duration::from_nanos(u64::from(fraction))
            } else {
                Duration::from_micros(u64::from(fraction))
            };
        record.original_len = original;
        Ok(true)
    }

    fn fields(&self, header: &[u8; RECORD_HEADER]) -> [u32; 4] {
        let mut fields = [0; 4];
        for (field, bytes) in fields.iter_mut().zip(header.as_chunks::<4>().0) {
            *field = self.endian.u32(*bytes);
        }
        fields
    }

    fn truncated(&self, needed: u32, present: usize) -> Error {
        Error::Truncated { offset: self.offset, needed, present: present as u32 }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.read().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Fills `buffer` as far as the input goes; the number of bytes read.
fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(space) = buffer.get_mut(filled..).filter(|s| !s.is_empty()) {
        match input.read(space) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Writes a capture in this machine's byte order, with microseconds: version 2.4, [`SNAPLEN`].
/// It neither buffers nor flushes; wrap the output in a `BufWriter` and call [`flush`](Self::flush).
pub struct Writer<W> {
    output: W,
}

impl<W: Write> Writer<W> {
    /// Writes the file header.
    pub fn new(mut output: W, link_type: LinkType) -> io::Result<Self> {
        let version = [2u16.to_ne_bytes(), 4u16.to_ne_bytes()].concat();
        output.write_all(&MAGIC_USEC.to_ne_bytes())?;
        output.write_all(&version)?;
        // Time zone and accuracy: always zero in practice.
        output.write_all(&[0; 8])?;
        output.write_all(&SNAPLEN.to_ne_bytes())?;
        output.write_all(&link_type.0.to_ne_bytes())?;
        Ok(Self { output })
    }

    /// Appends a packet; `timestamp` is the time since the Unix epoch and ends at 2106, `packet`
    /// beyond [`SNAPLEN`] bytes is cut.
    pub fn write(&mut self, timestamp: Duration, packet: &[u8]) -> io::Result<()> {
        self.write_part(timestamp, packet, packet.len())
    }

    /// As [`write`](Self::write), with the first bytes only of a packet of `original_len` bytes.
    pub fn write_part(&mut self, timestamp: Duration, start: &[u8], original_len: usize) -> io::Result<()> {
        let data = start.get(..SNAPLEN as usize).unwrap_or(start);
        let mut header = [0; RECORD_HEADER];
        let fields = [
            u32::try_from(timestamp.as_secs()).unwrap_or(u32::MAX),
            timestamp.subsec_micros(),
            data.len() as u32,
            u32::try_from(original_len).unwrap_or(u32::MAX),
        ];
        for (bytes, field) in header.as_chunks_mut::<4>().0.iter_mut().zip(fields) {
            *bytes = field.to_ne_bytes();
        }
        self.output.write_all(&header)?;
        self.output.write_all(data)
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Gives the output back, not flushed.
    pub fn into_inner(self) -> W {
        self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(big: bool, magic: u32, records: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
        let w = |v: u32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        let version = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
        let mut out = [w(magic), version, [0; 4], [0; 4], w(65_535), w(1)].concat();
        for &(sec, frac, len, data) in records {
            out.extend([w(sec), w(frac), w(len), w(1500)].concat());
            out.extend(data);
        }
        out
    }

    #[test]
    fn reads_both_byte_orders_and_both_resolutions() {
        for (big, magic, nanos) in [
            (true, MAGIC_USEC, 7000),
            (false, MAGIC_USEC, 7000),
            (true, MAGIC_NSEC, 7),
            (false, MAGIC_NSEC, 7),
        ] {
            let bytes = file(big, magic, &[(3, 7, 2, b"ab"), (4, 0, 0, b"")]);
            let reader = Reader::new(&bytes[..]).unwrap();
            assert_eq!((reader.link_type(), reader.snaplen()), (LinkType::ETHERNET, 65_535));
            let records: Vec<_> = reader.map(Result::unwrap).collect();
            assert_eq!(records.len(), 2);
            assert_eq!(records[0].timestamp, Duration::new(3, nanos));
            assert_eq!((&records[0].data[..], records[0].original_len), (&b"ab"[..], 1500));
        }
    }

    #[test]
    fn every_cut_is_an_error_or_a_clean_end() {
        let bytes = file(false, MAGIC_USEC, &[(0, 0, 3, b"abc")]);
        for cut in 0..=bytes.len() {
            let result = Reader::new(&bytes[..cut]).and_then(|mut r| r.read());
            match cut {
                24 => assert!(matches!(result, Ok(None))),
                43 => assert!(matches!(result, Ok(Some(_)))),
                _ => assert!(matches!(result, Err(Error::Truncated { .. })), "{cut}: {result:?}"),
            }
        }
        let error = Reader::new(&bytes[..42]).unwrap().read().unwrap_err();
        assert_eq!(error.to_string(), "pcap: offset 40: file truncated, 3 bytes needed, 2 present");
    }

    #[test]
    fn a_record_longer_than_the_limit_is_refused_before_memory_is_taken() {
        let bytes = file(true, MAGIC_USEC, &[(0, 0, u32::MAX, b"abc")]);
        let mut reader = Reader::new(&bytes[..]).unwrap();
        let error = reader.next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "pcap: offset 32: record length 4294967295, at most 262144");
        assert!(reader.next().is_none());
        let long = file(true, MAGIC_USEC, &[(0, 0, 65_537, &vec![0; 65_537])]);
        assert!(Reader::with_max_record(&long[..], 0).unwrap().read().is_err());
        assert!(Reader::new(&long[..]).unwrap().read().is_ok());
    }

    #[test]
    fn refuses_other_files_by_name() {
        let message = |bytes: &[u8]| Reader::new(bytes).err().unwrap().to_string();
        let mut bytes = file(true, 0x0a0d_0d0a, &[]);
        assert!(message(&bytes).contains("pcapng"));
        bytes[..4].copy_from_slice(b"%PDF");
        assert_eq!(message(&bytes), "pcap: offset 0: magic 0x25504446, expected 0xa1b2c3d4 or 0xa1b23c4d");
        let mut bytes = file(true, MAGIC_USEC, &[]);
        bytes[5] = 3;
        assert_eq!(message(&bytes), "pcap: offset 4: version 3.4, expected 2.4");
    }

    #[test]
    fn cuts_packets_beyond_the_snapshot_length_and_keeps_their_length() {
        let mut writer = Writer::new(Vec::new(), LinkType::RAW_IP).unwrap();
        writer.write(Duration::new(1, 2_999), &vec![7; 70_000]).unwrap();
        writer.flush().unwrap();
        let bytes = writer.into_inner();
        let mut reader = Reader::new(&bytes[..]).unwrap();
        assert!(reader.link_type().is_raw_ip());
        let record = reader.read().unwrap().unwrap();
        assert_eq!((record.data.len(), record.original_len), (65_536, 70_000));
        assert_eq!(record.timestamp, Duration::new(1, 2_000));
    }
}
