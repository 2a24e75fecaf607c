//! Rubbish for every node, with NAT off and on, with every kind of interface and mapping.

use shoal_nat::tuple::TCP;
use shoal_nat44_ed::Purpose;
use shoal_nat44_ed::mapping::TwiceNat;
use shoal_testkit::{Rng, fuzz_all_nodes};

use crate::common::{SHARED, bed, plain, spec};

#[test]
fn rubbish_does_no_harm_to_any_node() {
    let seed = Rng::seed(44);
    let mut off = plain();
    // Fragments wait for others, packets for neighbours.
    off.router.may_hold(2000);
    fuzz_all_nodes(&mut off.router, seed, 300);
    for round in 0..2 {
        let mut bed = bed();
        bed.share(SHARED);
        let nat = bed.nat();
        let twice = "192.0.2.101".parse().unwrap();
        nat.add_addresses((twice, twice), Purpose::Twice, None).unwrap();
        let mut one = spec(("10.0.0.5", 80), (SHARED, 8080), TCP);
        one.twice = TwiceNat::Always;
        nat.add_mapping(one).unwrap();
        nat.add_mapping(spec(("10.0.0.6", 0), ("192.0.2.60", 0), 0)).unwrap();
        nat.set_forwarding(round == 1).unwrap();
        nat.set_mss(1000).unwrap();
        bed.router.may_hold(2000);
        fuzz_all_nodes(&mut bed.router, seed + round, 1000);
        let sessions = bed.sessions();
        assert!(sessions.len() <= 1000, "{}", sessions.len());
    }
}
