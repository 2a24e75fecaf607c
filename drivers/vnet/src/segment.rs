//! Software segmentation: cuts a superframe the way a TSO or USO device would.

use crate::bytes::{be16, be32, copy_out, put, total};
use crate::checksum::Sum;
use crate::hdr::{Csum, Gso, GsoKind, Offload, VnetError};

/// Ethernet with two VLAN tags, the longest IPv4 or an IPv6 header with room for extensions, the longest
/// TCP header. A superframe with more headers is refused.
const MAX_HEADERS: usize = 256;

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
        check_network(&head, net_offset, transport, gso.kind).ok_or(bad)?;
        Ok(Some(Self {
            segs,
            gso,
            head,
            net: net_offset,
            transport,
            len: total(segs),
            at: header_len,
            index: 0,
        }))
    }

    /// How many segments will come out, at least one.
    pub fn count(&self) -> usize {
        (self.len - usize::from(self.gso.header_len)).div_ceil(usize::from(self.gso.size.get())).max(1)
    }

    /// Bytes a buffer needs to hold any of the segments.
    pub fn max_len(&self) -> usize {
        self.len.min(usize::from(self.gso.header_len) + usize::from(self.gso.size.get()))
    }

    /// Writes the next segment at the start of `out` and returns its length; `None` after the last.
    pub fn next_into(&mut self, out: &mut [u8]) -> Option<Result<usize, VnetError>> {
        let payload = (self.len - self.at).min(usize::from(self.gso.size.get()));
        if payload == 0 && self.index > 0 {
            return None;
        }
        let header_len = usize::from(self.gso.header_len);
        let need = header_len + payload;
        let too_small = VnetError::BufferTooSmall { need, have: out.len() };
        let Some(out) = out.get_mut(..need) else { return Some(Err(too_small)) };
        let bad = VnetError::BadHeaders { kind: self.gso.kind };
        Some(self.write(out, header_len).map(|()| need).ok_or(bad))
    }

    fn write(&mut self, out: &mut [u8], header_len: usize) -> Option<()> {
        let (head, body) = out.split_at_mut_checked(header_len)?;
        head.copy_from_slice(self.head.get(..header_len)?);
        copy_out(self.segs, self.at, body)?;
        let sent = self.at - header_len;
        let last = self.at + body.len() == self.len;
        let l4_len = head.len() - self.transport + body.len();

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
        sum.add(body);
        put(head, field, &sum.finish_transport().to_be_bytes())?;
        self.at += body.len();
        self.index = self.index.wrapping_add(1);
        Some(())
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

/// The IP header must be of the right version, end at or before the transport header and, for IPv4,
/// name the protocol. IPv6 extension headers between the two are carried along unread, as devices do.
fn check_network(head: &[u8], net: usize, transport: usize, kind: GsoKind) -> Option<()> {
    let ip = head.get(net..transport)?;
    let first = *ip.first()?;
    let ok = match (first >> 4, kind) {
        (4, GsoKind::Tcp4) => *ip.get(9)? == IPPROTO_TCP,
        (4, GsoKind::Udp) => *ip.get(9)? == IPPROTO_UDP,
        (6, GsoKind::Tcp6 | GsoKind::Udp) => ip.len() >= 40,
        _ => false,
    };
    let v4_len_ok = first >> 4 != 4 || (usize::from(first & 0xf) * 4 == ip.len() && ip.len() >= 20);
    (ok && v4_len_ok).then_some(())
}
