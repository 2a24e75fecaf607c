//! What a copy costs: `cargo test -p shoal-buffer --test cost -- --ignored --nocapture`.
//!
//! A packet is received, given to eight, and all are freed, as in multicast; the payload of each is read once on its way
//! out, as a driver that copies does. Figures are medians of windows, to be compared with each other only.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::time::Instant;

use shoal_buffer::{Buffer, Cache, Pages, Pool, PoolConfig};

const OUTPUTS: usize = 8;

fn round(cache: &mut Cache, packet: &[u8], share: bool, out: &mut [u8]) {
    let mut first = cache.alloc_data(packet).unwrap();
    if share {
        first = cache.share(first);
    }
    let mut all: [Option<Buffer>; OUTPUTS] = [const { None }; OUTPUTS];
    for place in &mut all[1..] {
        let pkt = cache.packet(&mut first);
        *place = Some(cache.copy(&pkt).unwrap());
    }
    all[0] = Some(first);
    for mut buffer in all.into_iter().flatten() {
        let pkt = cache.packet(&mut buffer);
        std::hint::black_box(pkt.copy_to(out));
        cache.free(buffer);
    }
}

fn nanoseconds(cache: &mut Cache, len: usize, share: bool, read: bool) -> f64 {
    let packet = vec![7; len];
    let mut out = vec![0; if read { len } else { 1 }];
    let mut windows: Vec<f64> = (0..61)
        .map(|_| {
            let from = Instant::now();
            for _ in 0..500 {
                round(cache, &packet, share, &mut out);
            }
            from.elapsed().as_secs_f64() * 1e9 / 500.0 / OUTPUTS as f64
        })
        .collect();
    windows.sort_by(f64::total_cmp);
    windows[windows.len() / 2]
}

#[test]
#[ignore = "it measures, and asks for a quiet machine"]
fn what_each_of_eight_outputs_costs() {
    let config = PoolConfig { name: "cost".into(), buffers: 4096, most: 4096, pages: Pages::Small };
    let pool = Pool::new(config).unwrap();
    let mut cache = pool.cache();
    println!("   len | ns an output, copied  shared | read as well, copied  shared");
    for len in [64, 300, 520, 700, 1000, 1500, 2048, 4000, 9000, 64_000] {
        let [a, b, c, d] = [(false, false), (true, false), (false, true), (true, true)]
            .map(|(share, read)| nanoseconds(&mut cache, len, share, read));
        println!("{len:6} | {a:20.1} {b:8.1} | {c:20.1} {d:8.1}");
    }
}
