//! Static mappings, identity mappings, hairpinning, hosts of several VRFs.

use shoal_message::Retval;
use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_nat44::mapping::External;
use shoal_nat44_ei::config::Mode;
use shoal_nat44_ei::{Enable, NatError, Spec};

use crate::common::{SHARED, bed, bed_of, ip, read, spec, tuple};

const SYN: u8 = 2;

#[test]
fn an_outside_port_leads_to_a_host_and_its_answers_come_from_there() {
    let mut bed = bed();
    bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    let asked = tuple(("192.0.2.2", 999), (SHARED, 8080));
    let at_host = tuple(("192.0.2.2", 999), ("10.0.0.5", 80));
    assert_eq!(bed.back(asked, TCP, SYN), Some(bed.came(at_host, TCP, SYN)));
    assert_eq!(bed.out(at_host.reversed(), TCP, 18), Some(bed.left(asked.reversed(), TCP, 18)));
    let sessions = bed.sessions();
    assert_eq!((sessions.len(), sessions[0].session.is_static), (1, true));
    let user = bed.nat().users().unwrap()[0];
    assert_eq!((user.sessions, user.statics), (0, 1));
    // Its port is given to no host.
    assert_eq!(bed.back(tuple(("192.0.2.2", 999), (SHARED, 8081)), TCP, SYN), None);
    bed.nat().del_mapping(&spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    assert_eq!(bed.sessions().len(), 0);
    assert_eq!(bed.back(asked, TCP, SYN), None);
}

#[test]
fn a_whole_address_leads_to_a_host_whatever_the_protocol() {
    let mut bed = bed();
    bed.nat().add_mapping(spec(("10.0.0.5", 0), ("192.0.2.50", 0), 0)).unwrap();
    for (protocol, flags) in [(TCP, SYN), (UDP, 0), (ICMP, 0), (47, 0)] {
        let port = if protocol == 47 { 0 } else { 80 };
        let asked = tuple(("192.0.2.2", port), ("192.0.2.50", port));
        let at_host = tuple(("192.0.2.2", port), ("10.0.0.5", port));
        assert_eq!(bed.back(asked, protocol, flags), Some(bed.came(at_host, protocol, flags)), "{protocol}");
        let back = at_host.reversed();
        assert_eq!(bed.out(back, protocol, flags), Some(bed.left(asked.reversed(), protocol, flags)));
    }
    // Protocols without ports need an address of their own.
    assert_eq!(bed.out(tuple(("10.0.0.2", 0), ("192.0.2.2", 0)), 47, 0), None);
    assert_eq!(bed.router.error("nat44-ei-in2out-slowpath", "unsupported protocol"), 1);
    assert_eq!(bed.sessions().len(), 3, "none of the protocol without ports");
}

#[test]
fn what_is_to_stay_as_it_is_stays() {
    let mut bed = bed();
    let identity = Spec { identity: true, ..spec(("10.0.0.8", 0), ("10.0.0.8", 0), 0) };
    bed.nat().add_mapping(identity).unwrap();
    let asked = tuple(("10.0.0.8", 5000), ("192.0.2.2", 80));
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(asked, UDP, 0)));
    assert_eq!(bed.back(asked.reversed(), UDP, 0), Some(bed.came(asked.reversed(), UDP, 0)));
    assert_eq!(bed.sessions().len(), 0);
}

#[test]
fn hosts_reach_each_other_by_their_outside_addresses() {
    let mut bed = bed();
    bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), UDP)).unwrap();
    // A host asks a server of this router by its outside address.
    let asked = tuple(("10.0.0.2", 5000), (SHARED, 8080));
    let came = read(&bed.hairpin(asked, UDP, 0).unwrap());
    assert_eq!((came.src, came.dst, came.dport), (ip(SHARED), ip("10.0.0.5"), 80), "RFC 4787, REQ-9");
    // The server answers to what it saw.
    let answer = tuple(("10.0.0.5", 80), (SHARED, came.sport));
    let back = read(&bed.hairpin(answer, UDP, 0).unwrap());
    assert_eq!(back, asked.reversed());
    // A host that is known by a session only.
    let end = (SHARED, came.sport);
    let third = read(&bed.hairpin(tuple(("10.0.0.3", 7), end), UDP, 0).unwrap());
    assert_eq!((third.dst, third.dport), (asked.src, asked.sport));
    assert_eq!(bed.router.if_counter("/nat44-ei/hairpinning", bed.inside.index()), 3);
    // And again, when all sessions are there.
    assert_eq!(read(&bed.hairpin(asked, UDP, 0).unwrap()), came);
}

#[test]
fn without_sessions_only_mappings_translate() {
    for (mode, sessions) in [(Mode::Static, 0), (Mode::StaticTracked, 1)] {
        let mut bed = bed_of(Enable { mode, ..Enable::default() });
        bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
        let asked = tuple(("192.0.2.2", 999), (SHARED, 8080));
        let at_host = tuple(("192.0.2.2", 999), ("10.0.0.5", 80));
        assert_eq!(bed.back(asked, TCP, SYN), Some(bed.came(at_host, TCP, SYN)));
        assert_eq!(bed.out(at_host.reversed(), TCP, 18), Some(bed.left(asked.reversed(), TCP, 18)));
        assert_eq!(bed.out(tuple(("10.0.0.2", 1), ("192.0.2.2", 80)), UDP, 0), None);
        assert_eq!(bed.router.error("nat44-ei-in2out-slowpath", "no translation"), 1);
        assert_eq!(bed.sessions().len(), sessions);
    }
}

#[test]
fn mappings_that_cannot_be_are_refused_and_nothing_is_half_done() {
    let bed = bed();
    let nat = bed.nat();
    nat.add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    let again = nat.add_mapping(spec(("10.0.0.6", 80), (SHARED, 8080), TCP));
    assert_eq!(again, Err(NatError::MappingExists));
    let other = nat.add_mapping(spec(("10.0.0.5", 80), (SHARED, 8081), TCP));
    assert_eq!(other, Err(NatError::MappingExists), "a host's port has one outside");
    let none = nat.add_mapping(spec(("10.0.0.5", 0), (SHARED, 8081), TCP));
    assert!(matches!(none, Err(NatError::Unsupported(_))), "{none:?}");
    let missing = nat.del_mapping(&spec(("10.0.0.5", 81), (SHARED, 8081), TCP));
    assert_eq!(missing, Err(NatError::NoMapping));
    assert_eq!(nat.mappings().len(), 1);
}

#[test]
fn a_mapping_takes_the_place_of_what_a_host_was_given() {
    let mut bed = bed();
    let asked = tuple(("10.0.0.5", 80), ("192.0.2.2", 9));
    bed.out(asked, UDP, 0).unwrap();
    bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), UDP)).unwrap();
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(tuple((SHARED, 8080), ("192.0.2.2", 9)), UDP, 0)));
}

#[test]
fn a_mapping_follows_the_address_of_an_interface() {
    let mut bed = bed();
    let follows = Spec {
        external: External::Interface(bed.outside.index()),
        ..spec(("10.0.0.5", 80), ("0.0.0.0", 8080), TCP)
    };
    let own = "192.0.2.1".parse().unwrap();
    assert_eq!(bed.nat().add_mapping(follows.clone()), Err(NatError::NotShared(own)), "as VPP");
    bed.nat().follow_interface(bed.outside.index()).unwrap();
    bed.nat().add_mapping(follows).unwrap();
    bed.nat().add_mapping(spec(("10.0.0.6", 80), ("192.0.2.1", 8081), TCP)).unwrap();
    let asked = tuple(("192.0.2.2", 999), ("192.0.2.1", 8080));
    let at_host = tuple(("192.0.2.2", 999), ("10.0.0.5", 80));
    assert_eq!(bed.back(asked, TCP, SYN), Some(bed.came(at_host, TCP, SYN)));
    assert_eq!(bed.nat().addresses().len(), 2);
    let prefix = "192.0.2.1/24".parse().unwrap();
    bed.router.get::<shoal_ip4::Ip4>().del_address(bed.outside.index(), prefix).unwrap();
    assert_eq!(bed.nat().addresses().len(), 1);
    assert_eq!(bed.nat().mappings().len(), 1, "the one that names the address is gone");
    assert_eq!(bed.nat().mappings()[0].1, None);
    assert_eq!(bed.sessions().len(), 0);
    bed.router.get::<shoal_ip4::Ip4>().add_address(bed.outside.index(), prefix).unwrap();
    assert_eq!(bed.nat().mappings()[0].1, Some(own));
    bed.nat().unfollow_interface(bed.outside.index()).unwrap();
    assert_eq!(bed.nat().mappings()[0].1, None);
}

#[test]
fn a_mapping_of_a_port_is_of_a_shared_address_and_keeps_it() {
    let bed = bed();
    let nat = bed.nat();
    let other = "192.0.2.60".parse().unwrap();
    let refused = nat.add_mapping(spec(("10.0.0.5", 80), ("192.0.2.60", 80), TCP));
    assert_eq!(refused, Err(NatError::NotShared(other)));
    assert_eq!(Retval::from(NatError::NotShared(other)), Retval::NO_SUCH_ENTRY);
    nat.add_mapping(spec(("10.0.0.5", 0), ("192.0.2.60", 0), 0)).unwrap();
    nat.add_mapping(spec(("10.0.0.6", 80), (SHARED, 80), TCP)).unwrap();
    let shared = SHARED.parse().unwrap();
    assert_eq!(nat.del_addresses((shared, shared)), Err(NatError::Mapped(shared)));
    assert_eq!(Retval::from(NatError::Mapped(shared)), Retval::UNSPECIFIED);
    nat.del_mapping(&spec(("10.0.0.6", 80), (SHARED, 80), TCP)).unwrap();
    nat.del_addresses((shared, shared)).unwrap();
    // Without sessions mappings need no shared address, and there are none.
    let bed = bed_of(Enable { mode: Mode::Static, ..Enable::default() });
    assert_eq!(bed.nat().add_addresses((shared, shared), None), Err(NatError::StaticOnly));
    bed.nat().add_mapping(spec(("10.0.0.5", 80), ("192.0.2.60", 80), TCP)).unwrap();
}

#[test]
fn hosts_have_the_address_that_vpp_picks() {
    let mut bed = bed();
    bed.share("192.0.2.101");
    bed.share("192.0.2.102");
    // 10.0.0.5 is 0x0500000a to a processor that reads the lowest byte first: 83886090 % 3 = 0, the one before is the last.
    for (host, address) in [("10.0.0.5", "192.0.2.102"), ("10.0.0.6", SHARED), ("10.0.0.7", "192.0.2.101")] {
        let left = read(&bed.out(tuple((host, 5), ("192.0.2.2", 80)), UDP, 0).unwrap());
        assert_eq!(left.src, ip(address), "{host}");
    }
}
