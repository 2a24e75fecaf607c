//! One transmit queue, and who pays what packets still owe: the kernel, or the router itself.

use shoal_buffer::{Flags, Packet};
use shoal_vnet::{Offload, SegmentList, Segments, VnetHdr, complete_checksum, ethernet_payload, owed};

use crate::queue::{TX_BATCH, TxOffload};
use crate::{TxQueue, TxRefused, TxReport};
use shoal_link::Layer;

/// Bytes for the pieces of one superframe, unless it is cut very small: then they go in several calls.
const STORE: usize = 128 << 10;

/// What became of the packets of one frame.
#[derive(Default)]
pub(crate) struct Sum {
    pub(crate) report: TxReport,
    pub(crate) segments: usize,
}

impl Sum {
    fn add(&mut self, batch: TxReport) {
        let sum = &mut self.report;
        sum.queue_full += batch.queue_full;
        sum.too_big += batch.too_big;
        sum.invalid += batch.invalid;
        sum.down += batch.down;
        sum.gone += batch.gone;
        sum.other += batch.other;
    }
}

/// A transmit queue with its way of sending.
pub(crate) struct Sender {
    queue: TxQueue,
    /// None: the kernel completes checksums and cuts large packets.
    cutter: Option<Cutter>,
}

struct Cutter {
    layer: Layer,
    store: Box<[u8]>,
}

impl Sender {
    pub(crate) fn new(queue: TxQueue, offload: TxOffload, layer: Layer) -> Self {
        let cutter = || Cutter { layer, store: vec![0; STORE].into() };
        Sender { queue, cutter: (offload == TxOffload::Router).then(cutter) }
    }

    /// Sends some packets and counts what was not sent.
    pub(crate) fn send(&mut self, packets: &mut [Option<Packet<'_>>], sum: &mut Sum) {
        let Sender { queue, cutter } = self;
        if cutter.is_some() {
            complete(packets, sum);
        }
        let mut batch = queue.batch();
        for pkt in packets.iter().flatten() {
            if let Some(cutter) = cutter
                && pkt.flags().has(Flags::GSO)
            {
                // In order: what came before it goes before it.
                sum.add(batch.send());
                cutter.send(queue, pkt, sum);
                batch = queue.batch();
                continue;
            }
            let Some(vnet) = owed(pkt) else {
                sum.report.invalid += 1;
                continue;
            };
            let mut pushed = batch.push(vnet, pkt.segments());
            if pushed == Err(TxRefused::BatchFull) {
                sum.add(batch.send());
                batch = queue.batch();
                pushed = batch.push(vnet, pkt.segments());
            }
            sum.segments += usize::from(pushed.is_err());
        }
        sum.add(batch.send());
    }
}

/// Completes the checksums of packets that are not to be cut; takes out those whose offsets make no sense.
fn complete(packets: &mut [Option<Packet<'_>>], sum: &mut Sum) {
    for slot in packets {
        let Some(pkt) = slot else { continue };
        if !pkt.flags().has(Flags::GSO) && complete_checksum(pkt).is_none() {
            sum.report.invalid += 1;
            *slot = None;
        }
    }
}

impl Cutter {
    /// Sends a superframe piece by piece.
    fn send(&mut self, queue: &mut TxQueue, pkt: &Packet<'_>, sum: &mut Sum) {
        let Some(list) = SegmentList::of(pkt) else {
            sum.segments += 1;
            return;
        };
        let net = match self.layer {
            Layer::Ethernet => ethernet_payload(pkt.data()),
            Layer::Ip { .. } => Some(0),
        };
        let pieces = Offload::load(pkt)
            .zip(net)
            .and_then(|(offload, net)| Segments::bounded(list.as_slice(), &offload, net))
            .filter(|p| p.max_len() <= STORE);
        let Some(mut pieces) = pieces else {
            sum.report.invalid += 1;
            return;
        };
        while self.send_some(queue, &mut pieces, sum) {}
    }

    /// As many pieces as one call takes; whether there are more.
    fn send_some(&mut self, queue: &mut TxQueue, pieces: &mut Segments<'_>, sum: &mut Sum) -> bool {
        let (mut batch, mut room) = (queue.batch(), &mut *self.store);
        let more = loop {
            if batch.len() == TX_BATCH || room.len() < pieces.max_len() {
                break true;
            }
            let piece = match pieces.next_into(room) {
                None => break false,
                Some(piece) => piece.ok().and_then(|len| room.split_at_mut_checked(len)),
            };
            let Some((piece, rest)) = piece else {
                sum.report.invalid += 1;
                break false;
            };
            sum.segments += usize::from(batch.push(VnetHdr::default(), [&*piece]).is_err());
            room = rest;
        };
        sum.add(batch.send());
        more
    }
}
