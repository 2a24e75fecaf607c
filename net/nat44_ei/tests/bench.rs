//! Figures: `cargo test --release -p shoal-nat44-ei --test all -- --ignored --nocapture --test-threads 1 bench`. Nothing is asserted of
//! speed. Times are of the processor, so that others on the machine count little.

use shoal_nat::tuple::UDP;
use shoal_nat44_ei::Enable;
use shoal_testkit::processor_time;

use crate::common::{Bed, HOST, bed_of, packet, tuple};

/// Hosts.
const HOSTS: u32 = 8;

/// Sends a packet of each session, of which each host has so many, in vectors; nanoseconds for each.
fn packets(bed: &mut Bed, each: u32) -> f64 {
    let hosts: Vec<String> = (2..2 + HOSTS).map(|n| format!("10.0.0.{n}")).collect();
    let mac = bed.inside.mac();
    let flows = (0..each).flat_map(|n| hosts.iter().map(move |host| (host, 1024 + n as u16)));
    let frames: Vec<Vec<u8>> = flows
        .map(|(host, port)| {
            packet((HOST, mac), tuple((host, port), ("192.0.2.2", 80)), UDP, 0, 64, b"payload")
        })
        .collect();
    let before = processor_time();
    let mut left = 0;
    for some in frames.chunks(256) {
        bed.send_all_inside(some);
        left += bed.outside.received().len();
    }
    assert_eq!(left, frames.len(), "{:?}", bed.router.errors());
    (processor_time() - before) as f64 / frames.len() as f64
}

/// Sessions begin, first while no port rests, then while as many rest as there were sessions, and so on.
#[test]
#[ignore = "it measures"]
fn sessions_begin_beside_ports_that_rest() {
    for each in [500, 4000] {
        let sessions = HOSTS * each;
        let mut bed = bed_of(Enable { sessions, user_sessions: sessions, ..Enable::default() });
        for round in 0..4 {
            let begins = packets(&mut bed, each);
            let goes_on = packets(&mut bed, each);
            println!(
                "{sessions} sessions, up to {} of 64,512 ports rest: {:.0} ns to begin one, {goes_on:.0} to go on",
                round * sessions,
                begins - goes_on
            );
            bed.nat().clear_sessions().unwrap();
            bed.router.run();
        }
    }
}
