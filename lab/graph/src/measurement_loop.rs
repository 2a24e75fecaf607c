//! `ruler-fused`: what the job costs at least. Not a feature, and never part of the router.
//!
//! One loop over the same buffers and tables parses, checks, looks up and rewrites. There are no counters but one,
//! no features, no errors told apart, no nodes: the distance to it is what a runtime costs. It also takes the machine's
//! mood out of a figure, because it suffers as the router does.

use std::hint::black_box;
use std::sync::Arc;

use shoal_adj::{AdjIndex, AdjTable, Adjacencies};
use shoal_buffer::{Cache, Frame, Memory, Packet, SwIfIndex};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::clock::tsc;
use shoal_infra::{Guard, Reader};
use shoal_wire::Packet as Build;

use crate::Result;
use crate::meter::Meter;
use crate::router::{BYTES, MAC_IN, Router};
use crate::work::{Count, SLICE, Work};

const FRAME: usize = 256;

/// The loop with what it needs.
pub struct MeasurementLoop {
    /// Whose memory and tables it uses.
    router: Router,
    cache: Cache,
    reader: Reader,
    template: Vec<u8>,
    path: Path,
    meter: Option<Arc<Meter>>,
    refused: usize,
    sent: usize,
}

struct Path {
    fib: FibTables,
    adjacencies: AdjTable,
}

impl MeasurementLoop {
    pub fn new(router: Router) -> Result<Self> {
        let fib = FibTables::clone(&*router.control.get::<FibTables>()?);
        let adjacencies = router.control.get::<Adjacencies>()?.table();
        let template = Build::ethernet(shoal_wire::MacAddress([2, 0, 0, 0, 0, 1]), MAC_IN)
            .ip4([10, 0, 0, 2], [16, 0, 0, 2])
            .udp(1, 2)
            .payload_len(18)
            .build();
        if template.len() != BYTES {
            return Err(format!("the ruler's packet has {} bytes, not {BYTES}", template.len()).into());
        }
        Ok(MeasurementLoop {
            cache: router.graph.pool().cache(),
            router,
            reader: Reader::register(),
            template,
            path: Path { fib, adjacencies },
            meter: None,
            refused: 0,
            sent: 0,
        })
    }

    fn fill(&mut self, frame: &mut Frame) {
        let n = self.cache.alloc(frame, FRAME);
        let memory = self.cache.memory();
        for i in 0..n {
            memory.prefetch(frame, i + 4);
            if let Some(mut pkt) = frame.packet(memory, i) {
                let _ = pkt.set_data(&self.template);
                pkt.meta_mut().rx = SwIfIndex(1);
            }
        }
    }
}

impl Work for MeasurementLoop {
    fn nodes(&self) -> Vec<String> {
        vec!["generation".into(), "ruler-fused".into()]
    }

    fn slice(&mut self, counts: &mut [Count]) -> u64 {
        let [generation, path] = counts else { return 0 };
        (*generation, *path) = (Count::default(), Count::default());
        let memory = self.cache.memory();
        self.reader.online();
        let mut frame = Frame::new();
        let mut before = tsc();
        for _ in 0..SLICE / FRAME {
            if let Some(meter) = &self.meter {
                meter.pause();
            }
            self.fill(&mut frame);
            if let Some(meter) = &self.meter {
                meter.resume();
            }
            let n = frame.len();
            let filled = tsc();
            let done = self.path.run(memory, &mut frame, self.reader.guard());
            self.cache.free_frame(&mut frame);
            let after = tsc();
            self.sent += black_box(done);
            self.refused += n - done;
            let vectors = n as u64;
            generation.add(Count { calls: 1, vectors, clocks: filled.wrapping_sub(before) });
            path.add(Count { calls: 1, vectors, clocks: after.wrapping_sub(filled) });
            before = after;
        }
        self.reader.offline();
        path.vectors
    }

    fn exclude_generation(&mut self, meter: Arc<Meter>) -> Result<()> {
        self.meter = Some(meter);
        Ok(())
    }

    fn verify(&self) -> Result<()> {
        if self.refused > 0 || self.sent == 0 {
            return Err(format!("the ruler sent {} and refused {} packets", self.sent, self.refused).into());
        }
        match self.router.graph.pool().stats().used {
            0 => Ok(()),
            used => Err(format!("{used} buffers are still in use").into()),
        }
    }
}

impl Path {
    /// Forwards a frame in place; tells how many packets were fit to be forwarded.
    #[inline(never)]
    fn run(&self, memory: Memory, frame: &mut Frame, guard: Guard<'_>) -> usize {
        let mut done = 0;
        for i in 0..frame.len() {
            memory.prefetch(frame, i + 4);
            if let Some(mut pkt) = frame.packet(memory, i) {
                done += usize::from(self.forward(&mut pkt, guard).is_some());
            }
        }
        done
    }

    #[inline(always)]
    fn forward(&self, pkt: &mut Packet<'_>, guard: Guard<'_>) -> Option<()> {
        let len = pkt.segment_len();
        let head: &mut [u8; 34] = pkt.data_mut().first_chunk_mut()?;
        let (ethernet, ip) = head.split_first_chunk_mut::<14>()?;
        let ip: &mut [u8; 20] = ip.try_into().ok()?;
        let [d0, d1, d2, d3, d4, d5, _, _, _, _, _, _, t0, t1] = *ethernet;
        let plain = [d0, d1, d2, d3, d4, d5] == MAC_IN.0 && [t0, t1] == [8, 0];
        if !plain || ip[0] != 0x45 || ip[8] < 2 || sum(ip) != 0xffff {
            return None;
        }
        if usize::from(u16::from_be_bytes([ip[2], ip[3]])) > len - 14 {
            return None;
        }
        let dst = u32::from_be_bytes([ip[16], ip[17], ip[18], ip[19]]);
        let index: AdjIndex = self.fib.lookup(FibIndex::DEFAULT, dst, guard);
        let adj = self.adjacencies.get(index, guard);
        *ethernet = *adj.ethernet_rewrite()?;
        // RFC 1624: one less in the upper half of a word is one more in the sum.
        ip[8] -= 1;
        let checksum = u32::from(u16::from_be_bytes([ip[10], ip[11]])) + 0x100;
        let checksum = (checksum + (checksum >> 16)) as u16;
        [ip[10], ip[11]] = checksum.to_be_bytes();
        let meta = pkt.meta_mut();
        (meta.adj, meta.tx) = (index.0, adj.tx());
        Some(())
    }
}

/// The one's complement sum, all ones when the header's checksum is right.
#[inline(always)]
fn sum(ip: &[u8; 20]) -> u16 {
    let mut sum = 0u64;
    for word in ip.as_chunks::<4>().0 {
        sum += u64::from(u32::from_ne_bytes(*word));
    }
    sum = (sum & 0xffff_ffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    (sum + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    fn ruler() -> MeasurementLoop {
        MeasurementLoop::new(Router::new(&scenario::find("ruler-fused").unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn it_forwards_all_packets_of_a_slice() {
        let mut ruler = ruler();
        let mut counts = [Count::default(); 2];
        assert_eq!(ruler.slice(&mut counts), SLICE as u64);
        ruler.verify().unwrap();
    }

    #[test]
    fn it_rewrites_as_the_router_does_and_refuses_a_wrong_checksum() {
        let mut ruler = ruler();
        let mut frame = Frame::new();
        ruler.fill(&mut frame);
        let memory = ruler.cache.memory();
        frame.packet(memory, 1).unwrap().data_mut()[24] ^= 1;
        ruler.reader.online();
        assert_eq!(ruler.path.run(memory, &mut frame, ruler.reader.guard()), FRAME - 1);
        let pkt = frame.packet(memory, 0).unwrap();
        assert_eq!(pkt.data()[..6], crate::router::MAC_NEXT_HOP.0);
        assert_eq!(pkt.data()[22], 63);
        assert_eq!(shoal_wire::checksum::checksum(&pkt.data()[14..34]), 0);
        ruler.cache.free_frame(&mut frame);
        ruler.reader.offline();
    }
}
