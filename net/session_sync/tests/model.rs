//! Random traffic, losses and fail-overs, against what was seen: no tuple is given to two live flows, and a connection that both
//! routers can know goes on with the tuple that it has.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use shoal_nat::Tuple;
use shoal_nat::tuple::TCP;
use shoal_session_sync::RoleSource;
use shoal_testkit::Rng;

use crate::common::{ACK, Pair, SYN, SYN_ACK, pair, tuple};

/// A connection that was established, and how it leaves.
type Flows = BTreeMap<(u32, u16, u16), (Tuple, Tuple)>;

fn lossy(pair: &mut Pair, rng: &mut Rng, milliseconds: u64, held: &mut Vec<(usize, Vec<u8>)>) {
    pair.advance_by(milliseconds, &mut |from, frame| {
        // Lost, repeated, or later than others of its way.
        match rng.below(10) {
            0 => vec![],
            1 => vec![frame.clone(), frame],
            2 => {
                held.push((from, frame));
                vec![]
            }
            _ => {
                let mut all = vec![frame];
                if let Some(at) = held.iter().position(|(way, _)| *way == from)
                    && rng.one_in(2)
                {
                    all.push(held.swap_remove(at).1);
                }
                all
            }
        }
    });
}

/// Until all that was told is acknowledged: an active router that fails sooner takes its last news with it.
fn settle(pair: &mut Pair, rng: &mut Rng, held: &mut Vec<(usize, Vec<u8>)>) {
    for _ in 0..400 {
        lossy(pair, rng, 20, held);
        let quiet = pair.sides.iter().all(|side| side.sync().view().unacknowledged == 0);
        if quiet && pair.is_up() {
            return;
        }
    }
    panic!("the routers do not come to agree");
}

/// All live flows go on as they were, and no two are one outside.
fn check(pair: &mut Pair, active: usize, flows: &Flows, why: &str) {
    let mut outside = BTreeMap::new();
    for (flow, left) in flows.values() {
        let there = outside.insert((left.src, left.sport, left.dst, left.dport), *flow);
        assert_eq!(there, None, "{why}: one outside, two flows");
        assert_eq!(pair.sides[active].out(*flow, TCP, ACK), Some(*left), "{why}");
        assert_eq!(pair.sides[active].back(left.reversed(), TCP, ACK), Some(flow.reversed()), "{why}");
    }
}

#[test]
fn no_tuple_is_two_flows_and_no_connection_is_lost_whatever_fails() {
    let seed = Rng::seed(41);
    for round in 0..3 {
        let mut rng = Rng::new(seed + round);
        let mut pair = pair(round % 2 == 1);
        let (mut active, mut flows, mut held) = (0, Flows::new(), Vec::new());
        let (mut fails, mut deaths) = (0, 0);
        for step in 0..120 {
            let why = format!("seed {} step {step}", seed + round);
            match rng.below(12) {
                // A connection begins; few ports, so that they are taken.
                0..=6 => {
                    let host = *rng.pick(&["10.0.0.2", "10.0.0.3", "10.0.0.4"]);
                    let port = 5000 + rng.below(12) as u16;
                    let far = ("198.51.100.7", 80 + rng.below(2) as u16);
                    let flow = tuple((host, port), far);
                    let key = (flow.src, port, far.1);
                    if let Entry::Vacant(place) = flows.entry(key) {
                        let left = pair.sides[active].out(flow, TCP, SYN).unwrap_or_else(|| panic!("{why}"));
                        pair.sides[active].back(left.reversed(), TCP, SYN_ACK).unwrap();
                        pair.sides[active].out(flow, TCP, ACK).unwrap();
                        place.insert((flow, left));
                    }
                }
                7 => {
                    // One ends: an operator ends its session.
                    if let Some(key) = flows.keys().nth(rng.below(flows.len().max(1))).copied() {
                        let (flow, _) = flows.remove(&key).unwrap();
                        let end =
                            |(address, port): (u32, u16)| (std::net::Ipv4Addr::from_bits(address), port);
                        let ends = (end((flow.src, flow.sport)), end((flow.dst, flow.dport)));
                        pair.sides[active].nat().del_session(ends.0, ends.1, TCP, 0).unwrap();
                    }
                }
                8 | 9 => lossy(&mut pair, &mut rng, 50, &mut held),
                10 => {
                    settle(&mut pair, &mut rng, &mut held);
                    active = 1 - active;
                    pair.fail_over(active);
                    fails += 1;
                    check(&mut pair, active, &flows, &why);
                }
                _ => {
                    // The active one dies and comes back as standby.
                    settle(&mut pair, &mut rng, &mut held);
                    pair.sides[1 - active].sync().set_role(RoleSource::Active).unwrap();
                    pair.restart(active);
                    held.clear();
                    pair.configure(active, RoleSource::Standby);
                    active = 1 - active;
                    deaths += 1;
                    check(&mut pair, active, &flows, &why);
                    // The router that has come back hears of all, whatever is lost.
                    for _ in 0..100 {
                        lossy(&mut pair, &mut rng, 50, &mut held);
                        if pair.sides[1 - active].sessions().len() == pair.sides[active].sessions().len() {
                            break;
                        }
                    }
                }
            }
            check(&mut pair, active, &flows, &why);
        }
        assert!(fails > 3 && deaths > 3 && flows.len() > 10, "{fails} {deaths} {}: too little", flows.len());
    }
}
