//! One transmit queue, and what packets still owe: nothing behind it completes checksums or cuts.

use shoal_buffer::{Buffer, Cache, Flags, Packet};
use shoal_vnet::{Offload, PieceError, SegmentList, Segments, complete_checksum, ethernet_payload};

use crate::queue_memory::Tx;
use crate::sys::lent::Pushed;
use crate::sys::queue::{CHUNK, Kick, TxRefused};

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
    queue: Tx,
    malformed: u64,
}

impl Sender {
    pub(crate) fn new(queue: Tx) -> Self {
        Sender { queue, malformed: 0 }
    }

    /// Adds a packet, with everything it owes paid.
    #[inline]
    pub(crate) fn push(&mut self, mut buffer: Buffer, cache: &mut Cache, sum: &mut Sum) {
        let mut pkt = cache.packet(&mut buffer);
        if pkt.flags().has(Flags::GSO) {
            self.cut(&pkt, cache, sum);
            return cache.free(buffer);
        }
        if complete_checksum(&mut pkt).is_none() {
            sum.invalid += 1;
            return cache.free(buffer);
        }
        self.push_whole(buffer, cache, sum);
    }

    #[inline]
    fn push_whole(&mut self, buffer: Buffer, cache: &mut Cache, sum: &mut Sum) {
        let mut pushed = self.try_push(buffer, cache);
        if let Err((TxRefused::Full, buffer)) = pushed {
            self.kick(cache, sum);
            pushed = self.try_push(buffer, cache);
        }
        let Err((why, buffer)) = pushed else { return };
        cache.free(buffer);
        match why {
            TxRefused::Full => sum.full += 1,
            TxRefused::TooLong => sum.too_long += 1,
        }
    }

    #[inline]
    fn try_push(&mut self, mut buffer: Buffer, cache: &mut Cache) -> Pushed {
        match &mut self.queue {
            Tx::Lent(queue) => queue.push(buffer, cache),
            Tx::Own(queue) => {
                let pkt = cache.packet(&mut buffer);
                match queue.push(pkt.len(), pkt.segments()) {
                    Ok(()) => {
                        cache.free(buffer);
                        Ok(())
                    }
                    Err(why) => Err((why, buffer)),
                }
            }
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
        let mut tried = false;
        while let Tx::Own(queue) = &mut self.queue {
            if pieces.max_len() > CHUNK {
                break;
            }
            let mut ended = false;
            let pushed = queue.push_with(|chunk| match pieces.next_into(chunk) {
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
                    self.kick(cache, sum);
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
        self.cut_to_buffers(&mut pieces, pkt.current(), cache, sum);
    }

    /// Adds the pieces of a superframe as packets: those that need several chunks each, or are sent from their buffers.
    fn cut_to_buffers(&mut self, pieces: &mut Segments<'_>, front: i16, cache: &mut Cache, sum: &mut Sum) {
        while let Some(piece) = pieces.next_packet(cache, front) {
            let lost = match piece {
                Ok(piece) => {
                    self.push_whole(piece, cache, sum);
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
    pub(crate) fn kick(&mut self, cache: &mut Cache, sum: &mut Sum) {
        let kick = match &mut self.queue {
            Tx::Own(queue) => queue.send(),
            Tx::Lent(queue) => queue.send(cache),
        };
        match kick {
            Kick::Done | Kick::Later => {}
            Kick::Down => sum.down += 1,
            Kick::Gone => sum.gone += 1,
        }
    }

    /// What the kernel gave that made no sense, since the last time.
    pub(crate) fn malformed(&mut self) -> u64 {
        let now = match &self.queue {
            Tx::Own(queue) => queue.malformed(),
            Tx::Lent(queue) => queue.malformed(),
        };
        now - std::mem::replace(&mut self.malformed, now)
    }
}
