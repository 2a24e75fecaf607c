//! ICMP errors: what packet one is about, and how it follows when that packet was translated (RFC 5508, 4).

use shoal_wire::checksum;

use crate::delta::Delta;
use crate::tuple::{ICMP, Kind, ParsedPacket, TCP, Tuple, UDP, word};

/// Bytes of an ICMP error in front of the packet it carries.
const ICMP_HEADER: usize = 8;

/// What was read of an ICMP error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// The flow that the error's sender would answer by: the carried packet's tuple, reversed.
    pub answer: Tuple,
    /// The carried packet's protocol.
    pub protocol: u8,
    /// Where the carried packet begins.
    inner: usize,
    /// Where its transport header begins.
    transport: usize,
}

/// Why an ICMP error is not translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is cut short.
    Short,
    /// A checksum is wrong. RFC 5508, REQ-3: it is dropped, outer or inner; that of the inner transport header is not looked at.
    Checksum,
    /// It is about a packet that no flow has.
    Unsupported,
}

impl Quoted {
    /// Reads an ICMP error whose IP header of `header` bytes is at the front. `whole`: all of its bytes are here, so that its
    /// checksum can be checked.
    ///
    /// # Errors
    /// It cannot be translated.
    pub fn read(bytes: &[u8], header: usize, whole: Option<usize>) -> Result<Quoted, Fault> {
        if let Some(message) = whole.and_then(|total| bytes.get(header..total))
            && !checksum::verify(message)
        {
            return Err(Fault::Checksum);
        }
        let inner = header + ICMP_HEADER;
        let carried = bytes.get(inner..).ok_or(Fault::Short)?;
        let ip: &[u8; 20] = carried.first_chunk().ok_or(Fault::Short)?;
        let inner_header = usize::from(ip[0] & 15) * 4;
        if ip[0] >> 4 != 4 || inner_header < 20 {
            return Err(Fault::Unsupported);
        }
        let header_bytes = carried.get(..inner_header).ok_or(Fault::Short)?;
        if !checksum::verify(header_bytes) {
            return Err(Fault::Checksum);
        }
        let tuple = Self::ports(carried, inner_header)?;
        let transport = inner + inner_header;
        Ok(Quoted { answer: tuple.reversed(), protocol: ip[9], inner, transport })
    }

    /// The carried packet's tuple. Little of its transport header needs to be there.
    fn ports(carried: &[u8], header: usize) -> Result<Tuple, Fault> {
        // Flags of TCP may be cut off, which are not needed.
        let mut room = [0; 80];
        let kept = carried.len().min(header + 20);
        let (Some(to), Some(from)) = (room.get_mut(..kept), carried.get(..kept)) else {
            return Err(Fault::Short);
        };
        to.copy_from_slice(from);
        if kept < header + 8 {
            return Err(Fault::Short);
        }
        let seen = ParsedPacket::read(&room).ok_or(Fault::Short)?;
        // A fragment that is not the first says no ports: its datagram's flow is not known any more.
        match seen.kind {
            Kind::Tcp | Kind::Udp | Kind::Query if seen.first => Ok(seen.tuple),
            Kind::Other => Ok(seen.tuple),
            _ => Err(Fault::Unsupported),
        }
    }

    /// Rewrites the error: its packet's tuple becomes that of which `to` is the answer, its own addresses become `outer`.
    ///
    /// # Errors
    /// It is cut short.
    pub fn write(&self, bytes: &mut [u8], header: usize, outer: (u32, u32), to: Tuple) -> Result<(), Fault> {
        let inner = to.reversed();
        let message = bytes.get_mut(header..).ok_or(Fault::Short)?;
        let sum = word(message, 2).ok_or(Fault::Short)?;
        let mut edit = Edit { bytes: message, delta: Delta::NONE };
        let (ip, transport) = (self.inner - header, self.transport - header);
        let was = self.answer.reversed();
        let addresses = Delta::addresses(was, inner);
        let old = word(edit.bytes, ip + 10).ok_or(Fault::Short)?;
        edit.word(ip + 10, addresses.apply(old)).ok_or(Fault::Short)?;
        edit.long(ip + 12, inner.src).ok_or(Fault::Short)?;
        edit.long(ip + 16, inner.dst).ok_or(Fault::Short)?;
        self.write_transport(&mut edit, transport, was, inner).ok_or(Fault::Short)?;
        let delta = edit.delta;
        edit.word(2, delta.apply(sum)).ok_or(Fault::Short)?;
        let ip: &mut [u8; 20] = bytes.first_chunk_mut().ok_or(Fault::Short)?;
        let at = |n: usize, ip: &[u8; 20]| long_at(ip, n);
        let delta = Delta::NONE.long(at(12, ip), outer.0).long(at(16, ip), outer.1);
        [ip[10], ip[11]] = delta.apply(u16::from_be_bytes([ip[10], ip[11]])).to_be_bytes();
        [ip[12], ip[13], ip[14], ip[15]] = outer.0.to_be_bytes();
        [ip[16], ip[17], ip[18], ip[19]] = outer.1.to_be_bytes();
        Ok(())
    }

    fn write_transport(&self, edit: &mut Edit<'_>, at: usize, was: Tuple, inner: Tuple) -> Option<()> {
        let addresses = Delta::addresses(was, inner);
        match self.protocol {
            TCP | UDP => {
                let field = at + if self.protocol == TCP { 16 } else { 6 };
                // Of TCP's header only eight bytes may be there.
                if let Some(old) = word(edit.bytes, field).filter(|old| self.protocol == TCP || *old != 0) {
                    let new = addresses.ports(was, inner).apply(old);
                    let new = if self.protocol == UDP && new == 0 { 0xffff } else { new };
                    edit.word(field, new)?;
                }
                edit.word(at, inner.sport)?;
                edit.word(at + 2, inner.dport)
            }
            ICMP => {
                let old = word(edit.bytes, at + 2)?;
                edit.word(at + 2, Delta::NONE.word(was.sport, inner.sport).apply(old))?;
                edit.word(at + 4, inner.sport)
            }
            _ => Some(()),
        }
    }
}

fn long_at(ip: &[u8; 20], at: usize) -> u32 {
    crate::tuple::long(ip, at).unwrap_or_default()
}

/// Bytes that are changed, and what that does to a checksum that covers them.
struct Edit<'a> {
    bytes: &'a mut [u8],
    delta: Delta,
}

impl Edit<'_> {
    fn word(&mut self, at: usize, new: u16) -> Option<()> {
        let field: &mut [u8; 2] = self.bytes.get_mut(at..)?.first_chunk_mut()?;
        self.delta = self.delta.word(u16::from_be_bytes(*field), new);
        *field = new.to_be_bytes();
        Some(())
    }

    fn long(&mut self, at: usize, new: u32) -> Option<()> {
        self.word(at, (new >> 16) as u16)?;
        self.word(at + 2, new as u16)
    }
}
