//! Software segmentation: cuts a superframe the way a TSO or USO device would.

use shoal_buffer::{Buffer, Cache, DATA_SIZE, Packet};

use crate::bytes::{be16, be32, copy_out, each_part, put, total};
use crate::checksum::Sum;
use crate::hdr::{Csum, Gso, GsoKind, Offload, VnetError};

/// Ethernet with two VLAN tags, the longest IPv4 or an IPv6 header with room for extensions, the longest
/// TCP header. A superframe with more headers is refused.
const MAX_HEADERS: usize = 256;

/// Most pieces of one superframe: 64 KiB cut for the least MTU of IPv4 hosts (RFC 1122, 3.3.3: 576 bytes) are 123.
pub const MOST_PIECES: usize = 1024;

const TCP_FIN_PSH: u8 = 0x01 | 0x08;
const TCP_CWR: u8 = 0x80;
const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;

/// The segments of one superframe, written one by one into the caller's buffer.
///
/// Each is a complete frame: lengths, IPv4 identification (counting up, as the kernel does), IPv4 header
/// checksum, TCP sequence numbers and flags (FIN and PSH on the last only, CWR on the first only), and a
/// finished transport checksum.
pub struct Segments<'a> {
    segs: &'a [&'a [u8]],
    gso: Gso,
    head: [u8; MAX_HEADERS],
    net: usize,
    transport: usize,
    len: usize,
    at: usize,
    index: u16,
}

impl<'a> Segments<'a> {
    /// Prepares the cutting of the frame `segs`, whose network header starts at byte `net_offset`
    /// ([`crate::ethernet_payload`]; 0 on a TUN). `Ok(None)` when `offload` says it is no superframe.
    ///
    /// Error: [`VnetError::BadHeaders`] when the IP header is not of the family, or the transport not of
    /// the protocol, that `offload` promises.
    pub fn new(
        segs: &'a [&'a [u8]],
        offload: &Offload,
        net_offset: usize,
    ) -> Result<Option<Self>, VnetError> {
        let (Some(gso), Csum::Partial { start, .. }) = (offload.gso, offload.csum) else {
            return Ok(None);
        };
        let bad = VnetError::BadHeaders { kind: gso.kind };
        let header_len = usize::from(gso.header_len);
        let mut head = [0; MAX_HEADERS];
        copy_out(segs, 0, head.get_mut(..header_len).ok_or(bad)?).ok_or(bad)?;
        let transport = usize::from(start);
        let len = total(segs);
        check_network(&head, net_offset, transport, gso.kind).ok_or(bad)?;
        check_length(&head, net_offset, len).ok_or(bad)?;
        Ok(Some(Self { segs, gso, head, net: net_offset, transport, len, at: header_len, index: 0 }))
    }

    /// As [`new`](Self::new), for senders: `None` too if the headers are not as promised, or more than
    /// [`MOST_PIECES`] would come out.
    pub fn bounded(segs: &'a [&'a [u8]], offload: &Offload, net_offset: usize) -> Option<Self> {
        Self::new(segs, offload, net_offset).ok().flatten().filter(|pieces| pieces.count() <= MOST_PIECES)
    }

    /// How many segments will come out, at least one.
    pub fn count(&self) -> usize {
        (self.len - usize::from(self.gso.header_len)).div_ceil(usize::from(self.gso.size.get())).max(1)
    }

    /// Bytes a buffer needs to hold any of the segments.
    pub fn max_len(&self) -> usize {
        self.len.min(usize::from(self.gso.header_len) + usize::from(self.gso.size.get()))
    }

    /// Payload bytes of the next segment; `None` after the last.
    fn next_payload(&self) -> Option<usize> {
        let payload = (self.len - self.at).min(usize::from(self.gso.size.get()));
        (payload > 0 || self.index == 0).then_some(payload)
    }

    /// Writes the next segment at the start of `out` and returns its length; `None` after the last.
    pub fn next_into(&mut self, out: &mut [u8]) -> Option<Result<usize, VnetError>> {
        let payload = self.next_payload()?;
        let header_len = usize::from(self.gso.header_len);
        let need = header_len + payload;
        let too_small = VnetError::BufferTooSmall { need, have: out.len() };
        let Some(out) = out.get_mut(..need) else { return Some(Err(too_small)) };
        let bad = VnetError::BadHeaders { kind: self.gso.kind };
        Some(self.write(out, header_len).map(|()| need).ok_or(bad))
    }

    /// The next segment as a packet whose front is at `front`, so that offsets into the headers of the superframe hold
    /// for it, too; over several buffers when it is long. `None` after the last.
    ///
    /// # Errors
    /// No buffer is free, or the headers do not let themselves be written; nothing is kept then.
    pub fn next_packet(&mut self, cache: &mut Cache, front: i16) -> Option<Result<Buffer, PieceError>> {
        let payload = self.next_payload()?;
        let need = usize::from(self.gso.header_len) + payload;
        // What lies in front of the data area is headroom.
        let room = DATA_SIZE.saturating_sub(front.max(0).cast_unsigned().into());
        Some(if need <= room {
            self.one_buffer(cache, front, need)
        } else {
            self.chain(cache, front, payload, room)
        })
    }

    fn one_buffer(&mut self, cache: &mut Cache, front: i16, need: usize) -> Result<Buffer, PieceError> {
        let mut buffer = cache.alloc_one().ok_or(PieceError::NoBuffer)?;
        let mut pkt = cache.packet(&mut buffer);
        let header_len = usize::from(self.gso.header_len);
        let written = place(&mut pkt, front, need).and_then(|()| self.write(pkt.data_mut(), header_len));
        if written.is_none() {
            cache.free(buffer);
            return Err(PieceError::BadHeaders);
        }
        Ok(buffer)
    }

    /// A segment over several buffers, from the last to the first, as [`crate::fill`] does.
    #[cold]
    fn chain(
        &mut self,
        cache: &mut Cache,
        front: i16,
        payload: usize,
        room: usize,
    ) -> Result<Buffer, PieceError> {
        let header_len = usize::from(self.gso.header_len);
        let first = room.saturating_sub(header_len).min(payload);
        let (mut tail, mut end) = (None::<Buffer>, payload);
        loop {
            let start = if end > first { first + (end - first - 1) / DATA_SIZE * DATA_SIZE } else { 0 };
            let made = match cache.alloc_one() {
                None => Err(PieceError::NoBuffer),
                Some(mut buffer) => {
                    let mut pkt = cache.packet(&mut buffer);
                    let done = if end > first {
                        pkt.put(end - start).and_then(|to| copy_out(self.segs, self.at + start, to))
                    } else {
                        self.chain_head(&mut pkt, front, first, payload)
                    };
                    if done.is_some() {
                        Ok(buffer)
                    } else {
                        cache.free(buffer);
                        Err(PieceError::BadHeaders)
                    }
                }
            };
            let mut buffer = match made {
                Ok(buffer) => buffer,
                Err(error) => {
                    if let Some(tail) = tail {
                        cache.free(tail);
                    }
                    return Err(error);
                }
            };
            if let Some(tail) = tail.take() {
                let added = cache.append(&mut cache.packet(&mut buffer), tail);
                debug_assert!(added.is_ok(), "nothing of it is shared");
            }
            if end <= first {
                return Ok(buffer);
            }
            (tail, end) = (Some(buffer), start);
        }
    }

    /// The headers and the first bytes of a segment of which `payload` bytes follow in all.
    fn chain_head(&mut self, pkt: &mut Packet<'_>, front: i16, first: usize, payload: usize) -> Option<()> {
        let header_len = usize::from(self.gso.header_len);
        place(pkt, front, header_len + first)?;
        let (head, body) = pkt.data_mut().split_at_mut_checked(header_len)?;
        head.copy_from_slice(self.head.get(..header_len)?);
        copy_out(self.segs, self.at, body)?;
        let (segs, at) = (self.segs, self.at);
        self.fix(head, payload, |sum| each_part(segs, at, payload, |part| sum.add(part)))?;
        self.passed(payload);
        Some(())
    }

    fn write(&mut self, out: &mut [u8], header_len: usize) -> Option<()> {
        let (head, body) = out.split_at_mut_checked(header_len)?;
        head.copy_from_slice(self.head.get(..header_len)?);
        copy_out(self.segs, self.at, body)?;
        self.fix(head, body.len(), |sum| sum.add(body))?;
        self.passed(body.len());
        Some(())
    }

    fn passed(&mut self, payload: usize) {
        self.at += payload;
        self.index = self.index.wrapping_add(1);
    }

    /// Makes the superframe's headers those of the next segment, whose payload has so many bytes and adds itself to the
    /// sum.
    fn fix(&self, head: &mut [u8], payload: usize, body: impl FnOnce(&mut Sum)) -> Option<()> {
        let sent = self.at - head.len();
        let last = self.at + payload == self.len;
        let l4_len = head.len() - self.transport + payload;

        if self.gso.kind == GsoKind::Udp {
            put(head, self.transport + 4, &u16::try_from(l4_len).ok()?.to_be_bytes())?;
        } else {
            self.fix_tcp(head, sent as u32, last)?;
        }
        let pseudo = self.fix_network(head, l4_len)?;
        let field = self.transport + if self.gso.kind == GsoKind::Udp { 6 } else { 16 };
        put(head, field, &[0, 0])?;
        let mut sum = pseudo;
        sum.add(head.get(self.transport..)?);
        body(&mut sum);
        put(head, field, &sum.finish_transport().to_be_bytes())
    }

    fn fix_tcp(&self, head: &mut [u8], sent: u32, last: bool) -> Option<()> {
        let seq = be32(head, self.transport + 4)?.wrapping_add(sent);
        put(head, self.transport + 4, &seq.to_be_bytes())?;
        let flags = head.get_mut(self.transport + 13)?;
        if !last {
            *flags &= !TCP_FIN_PSH;
        }
        // RFC 3168 6.1.2: CWR answers one congestion signal once.
        if self.index > 0 {
            *flags &= !TCP_CWR;
        }
        Some(())
    }

    /// Lengths, id and header checksum of the IP header; returns the pseudo-header's sum.
    fn fix_network(&self, head: &mut [u8], l4_len: usize) -> Option<Sum> {
        let mut pseudo = Sum::default();
        pseudo.add_u16(u16::try_from(l4_len).ok()?);
        let ip_len = self.transport - self.net + l4_len;
        let ip = head.get_mut(self.net..self.transport)?;
        pseudo.add_u16(u16::from(if self.gso.kind == GsoKind::Udp { IPPROTO_UDP } else { IPPROTO_TCP }));
        if ip.first()? >> 4 == 4 {
            pseudo.add(ip.get(12..20)?);
            put(ip, 2, &u16::try_from(ip_len).ok()?.to_be_bytes())?;
            let id = be16(ip, 4)?.wrapping_add(self.index);
            put(ip, 4, &id.to_be_bytes())?;
            put(ip, 10, &[0, 0])?;
            let mut sum = Sum::default();
            sum.add(ip);
            put(ip, 10, &sum.finish().to_be_bytes())?;
        } else {
            pseudo.add(ip.get(8..40)?);
            put(ip, 4, &u16::try_from(ip_len.checked_sub(40)?).ok()?.to_be_bytes())?;
        }
        Some(pseudo)
    }
}

/// Why a segment does not become a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceError {
    /// No buffer is free.
    NoBuffer,
    /// The headers cannot be those of a segment.
    BadHeaders,
}

/// Makes a fresh packet `len` bytes long, with its front at `front`.
fn place(pkt: &mut Packet<'_>, front: i16, len: usize) -> Option<()> {
    let ahead = usize::from(front.max(0).cast_unsigned());
    pkt.put(ahead)?;
    pkt.pull(ahead)?;
    let behind = usize::from(front.min(0).unsigned_abs());
    pkt.push(behind)?;
    match len.checked_sub(behind) {
        Some(more) => pkt.put(more).map(drop),
        None => pkt.truncate(len),
    }
}

/// The IP header must be of the right version, end at or before the transport header and name the protocol. IPv6 extension
/// headers between the two are carried along unread, as devices do.
fn check_network(head: &[u8], net: usize, transport: usize, kind: GsoKind) -> Option<()> {
    let ip = head.get(net..transport)?;
    let first = *ip.first()?;
    let protocol = if kind == GsoKind::Udp { IPPROTO_UDP } else { IPPROTO_TCP };
    let ok = match (first >> 4, kind) {
        (4, GsoKind::Tcp4 | GsoKind::Udp) => *ip.get(9)? == protocol,
        (6, GsoKind::Tcp6 | GsoKind::Udp) => ip.len() > 40 || ip.len() == 40 && *ip.get(6)? == protocol,
        _ => false,
    };
    let v4_len_ok = first >> 4 != 4 || (usize::from(first & 0xf) * 4 == ip.len() && ip.len() >= 20);
    (ok && v4_len_ok).then_some(())
}

/// The IP header must know how long the superframe is: code that has compared it with an MTU has believed it.
fn check_length(head: &[u8], net: usize, len: usize) -> Option<()> {
    let ip = head.get(net..)?;
    let claimed = if ip.first()? >> 4 == 4 { be16(ip, 2)?.into() } else { usize::from(be16(ip, 4)?) + 40 };
    (net + claimed == len).then_some(())
}
