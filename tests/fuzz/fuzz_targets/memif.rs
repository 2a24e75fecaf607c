//! What a memif peer may say and write: a message of the control channel, and the memory of two rings between looks at it.
//! The first byte chooses the ends, each five bytes after it are one thing the peer does.
#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use shoal_buffer::{Cache, Pages, Pool, PoolConfig};
use shoal_memif::{
    Consumer, Desc, Doorbell, EventFd, Found, Message, Producer, Region, Regions, RingMemory, RingPlace,
    Slots,
};

const LOG2: u8 = 3;
const LEN: usize = 16 << 10;

thread_local! {
    static CACHE: RefCell<Option<Cache>> = const { RefCell::new(None) };
}

fn ring(regions: &Arc<Regions>, offset: u32) -> RingMemory {
    RingMemory::new(regions, RingPlace { region: 0, offset, log2: LOG2 }).expect("it is all there")
}

fn slots(first: u32) -> Slots {
    Slots { region: 0, first, stride: 512, size: 500 }
}

fn event() -> EventFd {
    EventFd::create().expect("the system has one")
}

fn doorbell() -> Doorbell {
    Doorbell::new(event()).expect("the kernel has asynchronous I/O")
}

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Message::decode(data) {
        let again = Message::decode(&message.encode()).expect("what we say is a message");
        assert_eq!(Message::decode(&again.encode()), Ok(again));
    }
    let Some((first, rest)) = data.split_first() else { return };
    let (region, _fd) = Region::create(LEN).expect("memory");
    let regions = Arc::new(Regions::new(vec![region]));
    let (into, out) = (ring(&regions, 0), ring(&regions, 1024));
    let (peer_into, peer_out) = (ring(&regions, 0), ring(&regions, 1024));
    peer_into.format();
    peer_out.format();
    let (mut consumer, mut producer) = if first & 1 == 0 {
        (Consumer::master(into, event()), Producer::master(out, doorbell()))
    } else {
        (Consumer::slave(into, slots(2048), event()), Producer::slave(out, slots(2048 + 8 * 512), doorbell()))
    };
    let mut found = Found::default();
    CACHE.with_borrow_mut(|cache| {
        let cache = cache.get_or_insert_with(|| {
            let config = PoolConfig { buffers: 64, most: 64, pages: Pages::Small, ..PoolConfig::default() };
            Pool::new(config).expect("memory").cache()
        });
        for act in rest.chunks_exact(5) {
            let [kind, a, b, c, d] = *act else { unreachable!("five bytes") };
            let (low, high) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
            let ring = if kind & 0x80 == 0 { &peer_into } else { &peer_out };
            match kind & 7 {
                0 => ring.set_head(low),
                1 => ring.set_tail(low),
                2 => ring.set_desc(
                    high,
                    Desc { flags: low & 3, region: low >> 12, length: low.into(), offset: high.into() },
                ),
                3 => ring.set_desc(
                    u16::from(a),
                    Desc { flags: 1, region: 0, length: high.into(), offset: u32::MAX - u32::from(b) },
                ),
                4 => drop(regions.copy_in(0, low.into(), &[c, d])),
                5 => {
                    let Ok(mut buffer) = cache.alloc_data(&vec![a; usize::from(high) % 4096 + 1]) else {
                        continue;
                    };
                    if producer.begin().is_ok() {
                        let _ = producer.send(&cache.packet(&mut buffer));
                        producer.publish();
                    }
                    cache.free(buffer);
                }
                _ => {
                    if consumer.find(&mut found).is_err() {
                        return;
                    }
                    for i in 0..found.len() {
                        let mut bytes = 0;
                        for part in found.packet(i) {
                            let mut to = vec![0; part.length as usize];
                            consumer
                                .regions()
                                .copy_out(part.region, part.offset, &mut to)
                                .expect("it was checked");
                            bytes += to.len();
                        }
                        assert!((1..=65_535).contains(&bytes));
                    }
                    consumer.release(&found);
                }
            }
        }
    });
});
