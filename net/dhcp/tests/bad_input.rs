//! Rubbish for every node, with clients and relays.

use shoal_dhcp::{ClientIdentity, Dhcp, Server};
use shoal_testkit::{Rng, fuzz_all_nodes};

use crate::common::{OWN, SERVER, bed};

#[test]
fn rubbish_does_no_harm_to_any_node() {
    let mut bed = bed();
    let dhcp = bed.router.get::<Dhcp>();
    dhcp.add_server(0, Server { address: SERVER.into(), vrf: 0 }, OWN.into()).unwrap();
    let (six, source) = ("2001:db8::2".parse().unwrap(), "2001:db8::1".parse().unwrap());
    dhcp.add_server(0, Server { address: six, vrf: 0 }, source).unwrap();
    dhcp.add_client(bed.inside.index(), ClientIdentity::default()).unwrap();
    // Packets wait for neighbours.
    bed.router.may_hold(2000);
    fuzz_all_nodes(&mut bed.router, Rng::seed(67), 1000);
}
