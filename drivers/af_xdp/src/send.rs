//! One transmit queue, and what packets still owe: nobody behind it completes checksums or cuts.

use shoal_buffer::{Cache, Flags, Packet};
use shoal_vnet::{Offload, PieceError, SegmentList, Segments, complete_checksum, ethernet_payload};

use crate::sys::queue::{CHUNK, Kick, TxRefused, XskTx};

/// What became of the packets of one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// No room in the ring.
    pub(crate) full: usize,
    /// Longer than a frame can be.
    pub(crate) too_long: usize,
    /// Offsets that make no sense.
    pub(crate) invalid: usize,
    /// No buffer to cut a long packet into.
    pub(crate) no_buffer: usize,
    /// The interface is down; they go when it is up.
    pub(crate) down: usize,
    /// The interface is gone.
    pub(crate) gone: usize,
}

/// A transmit queue.
pub(crate) struct Sender {
    queue: XskTx,
    malformed: u64,
}

impl Sender {
    pub(crate) fn new(queue: XskTx) -> Self {
        Sender { queue, malformed: 0 }
    }

    /// Adds a packet, with everything it owes paid.
    pub(crate) fn push(&mut self, pkt: &mut Packet<'_>, cache: &mut Cache, sum: &mut Sum) {
        if pkt.flags().has(Flags::GSO) {
            return self.cut(pkt, cache, sum);
        }
        if complete_checksum(pkt).is_none() {
            sum.invalid += 1;
            return;
        }
        self.push_whole(pkt, sum);
    }

    fn push_whole(&mut self, pkt: &Packet<'_>, sum: &mut Sum) {
        let mut pushed = self.queue.push(pkt.len(), pkt.segments());
        if pushed == Err(TxRefused::Full) {
            self.kick(sum);
            pushed = self.queue.push(pkt.len(), pkt.segments());
        }
        match pushed {
            Ok(()) => {}
            Err(TxRefused::Full) => sum.full += 1,
            Err(TxRefused::TooLong) => sum.too_long += 1,
        }
    }

    /// Adds a superframe piece by piece.
    fn cut(&mut self, pkt: &Packet<'_>, cache: &mut Cache, sum: &mut Sum) {
        let list = SegmentList::of(pkt);
        let pieces = list.as_ref().and_then(|list| {
            let (offload, net) = Offload::load(pkt).zip(ethernet_payload(pkt.data()))?;
            Segments::bounded(list.as_slice(), &offload, net)
        });
        let Some(mut pieces) = pieces else {
            sum.invalid += 1;
            return;
        };
        if pieces.max_len() > CHUNK {
            return self.cut_long(&mut pieces, pkt.current(), cache, sum);
        }
        let mut tried = false;
        loop {
            let mut ended = false;
            let pushed = self.queue.push_with(|chunk| match pieces.next_into(chunk) {
                None => {
                    ended = true;
                    None
                }
                Some(piece) => piece.ok(),
            });
            match pushed {
                _ if ended => return,
                Ok(()) => tried = false,
                Err(TxRefused::Full) if !tried => {
                    tried = true;
                    self.kick(sum);
                }
                Err(TxRefused::Full) => {
                    sum.full += 1;
                    return;
                }
                Err(TxRefused::TooLong) => {
                    sum.invalid += 1;
                    return;
                }
            }
        }
    }

    /// Adds the pieces of a superframe that need several chunks each.
    #[cold]
    fn cut_long(&mut self, pieces: &mut Segments<'_>, front: i16, cache: &mut Cache, sum: &mut Sum) {
        while let Some(piece) = pieces.next_packet(cache, front) {
            let lost = match piece {
                Ok(mut piece) => {
                    self.push_whole(&cache.packet(&mut piece), sum);
                    cache.free(piece);
                    continue;
                }
                Err(PieceError::NoBuffer) => &mut sum.no_buffer,
                Err(PieceError::BadHeaders) => &mut sum.invalid,
            };
            *lost += 1;
            return;
        }
    }

    /// Hands what was added to the kernel.
    pub(crate) fn kick(&mut self, sum: &mut Sum) {
        match self.queue.send() {
            Kick::Done | Kick::Later => {}
            Kick::Down => sum.down += 1,
            Kick::Gone => sum.gone += 1,
        }
    }

    /// What the kernel gave that made no sense, since the last time.
    pub(crate) fn malformed(&mut self) -> u64 {
        let now = self.queue.malformed();
        now - std::mem::replace(&mut self.malformed, now)
    }
}
