//! Figures: `cargo test --release -p shoal-session-sync --test all -- --ignored --nocapture --test-threads 1 bench`. Nothing is
//! asserted of speed. Times are of the processor, so that others on the machine count little; both routers are one thread.

use std::time::Duration;

use shoal_nat::tuple::UDP;
use shoal_session_sync::RoleSource;
use shoal_testkit::processor_time;

use crate::common::{Pair, Side, tuple};

/// Sessions, unless `SHOAL_SESSIONS` says another number.
const SESSIONS: u32 = 200_000;

fn sessions() -> u32 {
    std::env::var("SHOAL_SESSIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(SESSIONS)
}

fn side(nth: u8, sessions: u32) -> Side {
    let mut side = Side::plain(nth);
    side.enable_for(sessions + 1000);
    side.router.run();
    side.forget();
    side
}

/// Sessions of two packets each, all on the first router.
fn begin(side: &mut Side, sessions: u32, mut each_thousand: impl FnMut(&mut Side)) {
    for n in 0..sessions {
        let far = ("198.51.100.7", 1 + (n / 60_000) as u16);
        let flow = tuple(("10.0.0.2", 1024 + (n % 60_000) as u16), far);
        let left = side.out(flow, UDP, 0).unwrap();
        side.back(left.reversed(), UDP, 0).unwrap();
        if n % 1000 == 999 {
            each_thousand(side);
        }
    }
}

/// Time goes by for both; what each of them took is added.
fn advance(pair: &mut Pair, milliseconds: u64, of: &mut [u64; 2]) {
    for (side, of) in pair.sides.iter_mut().zip(of) {
        let before = processor_time();
        side.router.advance(Duration::from_millis(milliseconds));
        *of += processor_time() - before;
    }
}

/// Frames of the link go to the other end; whether there were any.
fn carry(pair: &mut Pair, of: &mut [u64; 2]) -> bool {
    let mut any = false;
    for from in 0..2 {
        let frames = pair.sides[from].link.received();
        any |= !frames.is_empty();
        let to = &mut pair.sides[1 - from];
        let port = to.link.clone();
        let before = processor_time();
        to.router.send_all(&port, frames);
        of[1 - from] += processor_time() - before;
    }
    any
}

/// A router tells what is due, and hears the other one's answers.
fn advance_and_answer(pair: &mut Pair, of: &mut [u64; 2]) {
    advance(pair, 5, of);
    while carry(pair, of) {}
}

#[test]
#[ignore = "it measures"]
fn all_sessions_are_told_to_a_router_that_comes_back() {
    let sessions = sessions();
    let mut pair = Pair { sides: [side(1, sessions), side(2, sessions)], is_ip6: false };
    begin(&mut pair.sides[0], sessions, |_| {});
    pair.configure(0, RoleSource::Active);
    pair.configure(1, RoleSource::Standby);
    let (mut of, mut elapsed) = ([0; 2], 0);
    while pair.sides[1].nat().counts().unwrap().values().sum::<usize>() < sessions as usize {
        advance(&mut pair, 1, &mut of);
        carry(&mut pair, &mut of);
        elapsed += 1;
        assert!(elapsed < 60_000, "it does not come to an end");
    }
    let rate = |nanoseconds: u64| u64::from(sessions) * 1_000_000_000 / nanoseconds;
    println!("{sessions} sessions: {elapsed} ms of the routers' clock with 1 ms on the link");
    println!("told: {} sessions a second of a processor", rate(of[0]));
    println!("taken in: {} sessions a second of a processor", rate(of[1]));
    println!("{:?}", pair.sides[0].sync().view().counters);
}

/// `SHOAL_ALONE=1`: the same without another router, for the difference.
#[test]
#[ignore = "it measures"]
fn a_new_session_is_told() {
    let (sessions, is_alone) = (sessions(), std::env::var_os("SHOAL_ALONE").is_some());
    let mut pair = Pair { sides: [side(1, sessions), side(2, sessions)], is_ip6: false };
    if !is_alone {
        pair.configure(0, RoleSource::Active);
        pair.configure(1, RoleSource::Standby);
        pair.advance(300);
    }
    assert_eq!(pair.sides[0].sync().peer().is_some(), !is_alone);
    let (mut packets, mut of) = (0, [0; 2]);
    let step = 1000.min(sessions);
    for from in (0..sessions).step_by(step as usize) {
        let before = processor_time();
        for n in from..(from + step).min(sessions) {
            let far = ("198.51.100.7", 1 + (n / 60_000) as u16);
            let flow = tuple(("10.0.0.2", 1024 + (n % 60_000) as u16), far);
            let left = pair.sides[0].out(flow, UDP, 0).unwrap();
            pair.sides[0].back(left.reversed(), UDP, 0).unwrap();
        }
        packets += processor_time() - before;
        advance_and_answer(&mut pair, &mut of);
    }
    for _ in 0..30 {
        advance_and_answer(&mut pair, &mut of);
    }
    let each = |nanoseconds: u64| nanoseconds / u64::from(sessions);
    println!(
        "{} ns of a processor for the packets of each session, {} to tell the other router of it and hear its answers",
        each(packets),
        each(of[0])
    );
    println!("{} ns of the other router", each(of[1]));
    println!("{:?}", pair.sides[0].sync().view().counters);
}
