//! Rubbish for every node, with NAT off and on, with every kind of interface and mapping.

use shoal_nat::tuple::TCP;
use shoal_nat44_ei::config::Mode;
use shoal_nat44_ei::{Enable, Failover, Listener};
use shoal_testkit::{Rng, fuzz_all_nodes};

use crate::common::{SHARED, bed_of, plain, spec};

#[test]
fn rubbish_does_no_harm_to_any_node() {
    let seed = Rng::seed(45);
    let mut off = plain();
    // Fragments wait for others, packets for neighbours.
    off.router.may_hold(2000);
    fuzz_all_nodes(&mut off.router, seed, 300);
    for mode in [Mode::Dynamic, Mode::Static] {
        let mut bed =
            bed_of(Enable { mode, sessions: 1000, users: 100, user_sessions: 10, ..Enable::default() });
        let nat = bed.nat();
        nat.add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
        nat.add_mapping(spec(("10.0.0.6", 0), ("192.0.2.60", 0), 0)).unwrap();
        nat.set_forwarding(mode == Mode::Static);
        nat.set_mss(1000);
        let address = "192.0.2.1".parse().unwrap();
        nat.set_listener(Listener { address, port: 1234, path_mtu: 512 }).unwrap();
        let address = "192.0.2.2".parse().unwrap();
        nat.set_failover(Failover { address, port: 1234, refresh: 10 });
        bed.router.may_hold(2000);
        fuzz_all_nodes(&mut bed.router, seed, 1000);
        let sessions = bed.sessions();
        assert!(sessions.len() <= 1000, "{}", sessions.len());
        assert!(bed.nat().users().unwrap().iter().all(|user| user.sessions + user.statics <= 10));
    }
}
