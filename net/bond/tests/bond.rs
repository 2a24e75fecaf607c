//! Bonds among packet-generator ports: what goes out by which member, and what comes in.

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_bond::{AddMember, Balance, BondError, Bonds, Create, MODULE, Mode};
use shoal_ethernet::Ethernet;
use shoal_interface::{IfFlags, Match, SwIfIndex, Vid};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::Running;
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_wire::{EtherType, MacAddress};

const PEER: [u8; 6] = [2, 0xbb, 0, 0, 0, 1];

/// A bond with the members `pg0` and `pg1`, and a routed port, `pg2`. Behind the bond is the host 10.0.0.2, 2001:db8::2,
/// behind the port everybody else.
struct Bench {
    router: Router,
    bond: SwIfIndex,
    members: [Port; 2],
    far: Port,
}

impl Bench {
    fn new(create: Create) -> Bench {
        let mut modules = STACK.to_vec();
        modules.extend([&shoal_ip6_nd::MODULE, &shoal_l2::MODULE, &MODULE]);
        let mut router = Router::new(&modules);
        let ports = [0, 1, 2].map(|n| router.pg(n));
        let bonds = router.get::<Bonds>();
        let bond = bonds.create(create).unwrap();
        router.interfaces().set_admin(bond, true).unwrap();
        let [a, b, far] = ports;
        for member in [&a, &b] {
            bonds.add(bond, member.index(), AddMember::default()).unwrap();
        }
        for (n, index) in [bond, far.index()].into_iter().enumerate() {
            let (ip4, ip6) = (router.get::<Ip4>(), router.get::<Ip6>());
            ip4.add_address(index, format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
            ip6.add_address(index, format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
            let arp = router.get::<shoal_arp::Neighbours>();
            let host = (index, Ipv4Addr::new(10, 0, n as u8, 2));
            arp.set(host, MacAddress(PEER), Origin::Static, FibEntry::Wanted).unwrap();
        }
        let mut bench = Bench { router, bond, members: [a, b], far };
        bench.router.advance(std::time::Duration::from_secs(3));
        bench.clear();
        bench
    }

    fn bonds(&self) -> Rc<Bonds> {
        self.router.get()
    }

    fn clear(&mut self) {
        self.members.iter().for_each(|member| drop(member.received()));
        self.far.received();
    }

    fn mac(&self, index: SwIfIndex) -> MacAddress {
        self.router.interfaces().data(index).unwrap().mac()
    }

    fn link(&self) -> bool {
        self.router.interfaces().data(self.bond).unwrap().flags().has(IfFlags::LINK_UP)
    }

    /// Sends packets of these ports from the far side to the host behind the bond; those that each member sends.
    fn out(&mut self, ports: impl IntoIterator<Item = u16>) -> [Vec<Vec<u8>>; 2] {
        let mac = self.far.mac();
        let packet = |port: u16| {
            let frame = PacketBuilder::ethernet(PEER, mac).ip4([10, 0, 1, 2], [10, 0, 0, 2]);
            frame.udp(port, 7).payload(b"payload").build()
        };
        let packets: Vec<Vec<u8>> = ports.into_iter().map(packet).collect();
        self.router.send_all(&self.far, packets);
        self.members.each_ref().map(sent_on)
    }

    /// Sends a packet of the host behind the bond in by a member; whether it comes out at the far side.
    fn passes(&mut self, member: usize) -> bool {
        let mac = self.mac(self.bond);
        let frame = PacketBuilder::ethernet(PEER, mac).ip4([10, 0, 0, 2], [10, 0, 1, 2]);
        self.router.send(&self.members[member], frame.udp(1, 2).payload(b"back").build());
        !self.far.received().is_empty()
    }
}

fn with_balance(mode: Mode, balance: Balance) -> Create {
    Create { balance, ..Create::mode(mode) }
}

/// What a member sends, but for what the router says itself.
fn sent_on(member: &Port) -> Vec<Vec<u8>> {
    let mut all = member.received();
    all.retain(|frame| frame.ends_with(b"payload"));
    all
}

/// The source port of a frame without tags.
fn port(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[34], frame[35]])
}

#[test]
fn flows_keep_to_a_member_and_many_use_all() {
    let mut bench = Bench::new(with_balance(Mode::Xor, Balance::L34));
    let [a, b] = bench.out((0..200).chain(0..200));
    assert_eq!(a.len() + b.len(), 400);
    assert!(a.len() > 120 && b.len() > 120, "{} and {}", a.len(), b.len());
    assert!(a.iter().all(|one| b.iter().all(|other| port(one) != port(other))));
    let (packets, _) = bench.router.graph().graph_counters().tx.sum(bench.bond.0 as usize);
    assert!(packets >= 400);
    // All flows of one pair of stations are one flow in layer 2.
    let mut bench = Bench::new(with_balance(Mode::Xor, Balance::L2));
    let [a, b] = bench.out(0..200);
    assert!(a.is_empty() != b.is_empty());
}

#[test]
fn round_robin_takes_turns_and_broadcast_gives_to_all() {
    let mut bench = Bench::new(Create::mode(Mode::RoundRobin));
    let [a, b] = bench.out(0..101);
    assert_eq!((a.len().abs_diff(b.len()), a.len() + b.len()), (1, 101));
    assert!(a.windows(2).all(|w| port(&w[0]) + 2 == port(&w[1])));
    let mut bench = Bench::new(Create::mode(Mode::Broadcast));
    let [a, b] = bench.out(0..300);
    assert_eq!((a.len(), a.clone()), (300, b));
    assert_eq!(bench.router.buffers_in_use(), 0);
}

#[test]
fn the_other_member_takes_over_and_says_so() {
    let mut bench = Bench::new(Create::mode(Mode::ActiveBackup));
    let [first, second] = bench.members.each_ref().map(Port::index);
    assert_eq!(bench.bonds().get(bench.bond).unwrap().active, [first, second], "the lowest number");
    let [a, b] = bench.out(0..50);
    assert_eq!((a.len(), b.len()), (50, 0));
    assert!(bench.passes(0) && !bench.passes(1));
    assert_eq!(bench.router.error("bond-input", "traffic received on passive interface"), 1);
    bench.router.interfaces().set_admin(first, false).unwrap();
    bench.router.run();
    let said = bench.members[1].received();
    let gratuitous = said.iter().any(|frame| frame[12..14] == [8, 6] && frame[28..32] == frame[38..42]);
    let advertised = said.iter().any(|frame| frame[12..14] == [0x86, 0xdd] && frame[54] == 136);
    assert!(gratuitous && advertised, "{said:02x?}");
    let [a, b] = bench.out(0..50);
    assert_eq!((a.len(), b.len()), (0, 50));
    assert!(bench.passes(1));
    // The first one comes back and waits, until it has more weight.
    bench.router.interfaces().set_admin(first, true).unwrap();
    assert_eq!(bench.bonds().get(bench.bond).unwrap().active, [second, first]);
    bench.bonds().set_weight(first, 5).unwrap();
    assert_eq!(bench.bonds().get(bench.bond).unwrap().active, [first, second]);
}

#[test]
fn what_members_receive_is_the_bonds_but_for_the_links_own_protocols() {
    for mode in [Mode::RoundRobin, Mode::Xor, Mode::Broadcast, Mode::Lacp] {
        let mut bench = Bench::new(Create::mode(mode));
        assert!(bench.passes(0) && bench.passes(1), "{mode:?}");
        let (packets, _) = bench.router.graph().graph_counters().rx.sum(bench.bond.0 as usize);
        assert_eq!(packets, 2);
        for kind in [EtherType::LLDP, EtherType::SLOW_PROTOCOLS] {
            let frame = PacketBuilder::ethernet(PEER, [1, 0x80, 0xc2, 0, 0, 2]).ether_type(kind);
            bench.router.send(&bench.members[0], frame.payload(&[1; 50]).build());
        }
        let (packets, _) = bench.router.graph().graph_counters().rx.sum(bench.bond.0 as usize);
        assert_eq!(packets, 2);
        assert_eq!(bench.router.error("bond-input", "pass through (CDP, LLDP, slow protocols)"), 2);
    }
}

#[test]
fn members_lend_and_borrow_the_mac_address() {
    let bench = Bench::new(Create::mode(Mode::Xor));
    let [first, second] = bench.members.each_ref().map(Port::index);
    let own = bench.members.each_ref().map(Port::mac);
    assert_eq!([bench.bond, first, second].map(|index| bench.mac(index)), [own[0]; 3]);
    let given = MacAddress([2, 0xfe, 0, 0, 0, 9]);
    bench.router.interfaces().set_mac(bench.bond, given).unwrap();
    assert_eq!([first, second].map(|index| bench.mac(index)), [given; 2]);
    bench.bonds().detach(second).unwrap();
    bench.bonds().delete(bench.bond).unwrap();
    assert_eq!([first, second].map(|index| bench.mac(index)), own);
    assert_eq!(bench.bonds().list(), []);
}

#[test]
fn the_link_is_there_when_a_member_works_and_the_bond_is_up() {
    let mut bench = Bench::new(Create::mode(Mode::Xor));
    let [first, second] = bench.members.each_ref().map(Port::index);
    assert!(bench.link());
    let admin = |bench: &Bench, index, up| bench.router.interfaces().set_admin(index, up).unwrap();
    admin(&bench, first, false);
    assert!(bench.link());
    let [a, b] = bench.out(0..40);
    assert_eq!((a.len(), b.len()), (0, 40), "all flows go by the one that works");
    admin(&bench, second, false);
    assert!(!bench.link());
    bench.out(0..5);
    assert_eq!(bench.router.error("BondEthernet0-tx", "no member"), 5);
    admin(&bench, second, true);
    assert!(bench.link());
    admin(&bench, bench.bond, false);
    assert!(!bench.link());
    // A bond with LACP uses no member that the other end has not agreed to.
    let mut bench = Bench::new(Create::mode(Mode::Lacp));
    assert!(!bench.link());
    bench.bonds().set_agreed(bench.members[1].index(), true);
    assert!(bench.link());
    let [a, b] = bench.out(0..40);
    assert_eq!((a.len(), b.len()), (0, 40));
}

#[test]
fn members_have_no_sub_interfaces_of_their_own() {
    let bench = Bench::new(with_balance(Mode::Xor, Balance::L34));
    let takes = Match::exact_dot1q(Vid::new(7).unwrap());
    let member = bench.members[0].index();
    let refused = bench.router.get::<Ethernet>().create_sub(member, 7, takes).unwrap_err().to_string();
    assert_eq!(refused, "pg0 is a member of BondEthernet0: create the sub-interface on BondEthernet0");
}

#[test]
fn a_port_with_sub_interfaces_does_not_become_a_member() {
    let bench = Bench::new(with_balance(Mode::Xor, Balance::L34));
    let (ethernet, bonds) = (bench.router.get::<Ethernet>(), bench.bonds());
    let far = bench.far.index();
    let takes = Match::exact_dot1q(Vid::new(7).unwrap());
    let sub = ethernet.create_sub(far, 7, takes).unwrap();
    let refused = bonds.add(bench.bond, far, AddMember::default()).unwrap_err().to_string();
    let name = bench.router.interfaces().name(far).unwrap();
    assert_eq!(
        refused,
        format!(
            "{name} cannot be a member of a bond: it has sub-interfaces, which can be created on the bond instead"
        )
    );
    assert_eq!((bonds.bond_of(far), bonds.get(bench.bond).unwrap().members.len()), (None, 2));
    bench.router.interfaces().delete(sub).unwrap();
    bonds.add(bench.bond, far, AddMember::default()).unwrap();
}

/// VPP hashes one packet of four.
#[test]
fn each_packet_of_a_burst_is_spread_by_its_own_addresses() {
    let mut bench = Bench::new(with_balance(Mode::Xor, Balance::L2));
    let arp = bench.router.get::<shoal_arp::Neighbours>();
    for host in 10..50 {
        let at = (bench.bond, Ipv4Addr::new(10, 0, 0, host));
        arp.set(at, MacAddress([2, 9, 0, 0, 0, host]), Origin::Static, FibEntry::Wanted).unwrap();
    }
    bench.clear();
    let mac = bench.far.mac();
    let packet = |n: u8| {
        let frame = PacketBuilder::ethernet(PEER, mac).ip4([10, 0, 1, 2], [10, 0, 0, 10 + n % 40]);
        frame.udp(u16::from(n), 7).payload(b"payload").build()
    };
    bench.router.send_all(&bench.far, (0..240).map(packet).collect::<Vec<_>>());
    let [a, b] = bench.members.each_ref().map(sent_on);
    let hosts =
        |frames: &[Vec<u8>]| frames.iter().map(|frame| frame[5]).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(a.len() + b.len(), 240);
    assert!(hosts(&a).is_disjoint(&hosts(&b)), "one station's packets keep to one member");
    assert!(hosts(&a).len() > 8 && hosts(&b).len() > 8, "{} and {}", hosts(&a).len(), hosts(&b).len());
}

/// VPP looks for IPv6 where it would be without a tag.
#[test]
fn flows_of_ip6_behind_a_tag_use_all_members() {
    let mut bench = Bench::new(with_balance(Mode::Xor, Balance::L34));
    let l2 = bench.router.get::<shoal_l2::L2>();
    let (far, bond) = (bench.far.index(), bench.bond);
    l2.set_mode(bond, shoal_l2::Mode::Xconnect(far)).unwrap();
    l2.set_mode(far, shoal_l2::Mode::Xconnect(bond)).unwrap();
    bench.clear();
    let [from, to] = [1, 2].map(|n| [0x2001, 0xdb8, 0, 0, 0, 0, 0, n]);
    let packet = |port: u16| {
        let frame = PacketBuilder::ethernet(PEER, [2, 7, 7, 7, 7, 7]).vlan(7).ip6(from, to);
        frame.udp(port, 7).payload(b"payload").build()
    };
    bench.router.send_all(&bench.far, (0..200).map(packet).collect::<Vec<_>>());
    let [a, b] = bench.members.each_ref().map(sent_on);
    assert_eq!(a.len() + b.len(), 200);
    assert!(a.len() > 50 && b.len() > 50, "{} and {}", a.len(), b.len());
}

#[test]
fn sub_interfaces_of_a_bond_send_and_receive_tagged() {
    let mut bench = Bench::new(with_balance(Mode::Xor, Balance::L34));
    let interfaces = Rc::clone(bench.router.interfaces());
    let takes = Match::exact_dot1q(Vid::new(7).unwrap());
    let sub = bench.router.get::<Ethernet>().create_sub(bench.bond, 7, takes).unwrap();
    interfaces.set_admin(sub, true).unwrap();
    bench.router.get::<Ip4>().add_address(sub, "10.0.7.1/24".parse().unwrap()).unwrap();
    let host = (sub, Ipv4Addr::new(10, 0, 7, 2));
    let arp = bench.router.get::<shoal_arp::Neighbours>();
    arp.set(host, MacAddress(PEER), Origin::Static, FibEntry::Wanted).unwrap();
    bench.clear();
    let mac = bench.far.mac();
    for port in 0..40 {
        let frame = PacketBuilder::ethernet(PEER, mac).ip4([10, 0, 1, 2], [10, 0, 7, 2]);
        bench.router.send(&bench.far, frame.udp(port, 7).payload(b"payload").build());
    }
    let [a, b] = bench.members.each_ref().map(sent_on);
    assert!(!a.is_empty() && !b.is_empty() && a.len() + b.len() == 40, "{} and {}", a.len(), b.len());
    assert!(a.iter().chain(&b).all(|frame| frame[12..16] == [0x81, 0, 0, 7]));
    let mac = bench.mac(bench.bond);
    let frame = PacketBuilder::ethernet(PEER, mac).vlan(7).ip4([10, 0, 7, 2], [10, 0, 1, 2]);
    bench.router.send(&bench.members[0], frame.udp(1, 2).payload(b"back").build());
    assert_eq!(bench.far.received().len(), 1);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut bench = Bench::new(Create::mode(Mode::Xor));
    let (bonds, bond) = (bench.bonds(), bench.bond);
    let [first, _] = bench.members.each_ref().map(Port::index);
    let loopback = bench.router.interfaces().create_loopback(None, None).unwrap();
    let before = bonds.list();
    let add = |bond, index| bonds.add(bond, index, AddMember::default()).map_err(|e| e.to_string());
    assert_eq!(
        add(bond, first).unwrap_err(),
        "interface was already added as member: pg0 is one of BondEthernet0"
    );
    assert_eq!(add(first, bench.far.index()).unwrap_err(), "bond interface not found: pg0 is none");
    assert_eq!(
        add(bond, bond).unwrap_err(),
        "BondEthernet0 cannot be a member of a bond: it is a bond itself"
    );
    assert_eq!(add(bond, loopback).unwrap_err(), "loop0 cannot be a member of a bond: it is a loopback");
    assert!(add(bond, SwIfIndex(99)).is_err() && add(bond, SwIfIndex(0)).is_err());
    assert!(matches!(bonds.detach(bench.far.index()), Err(BondError::NotMember(_))));
    assert!(matches!(bonds.set_weight(first, 1), Err(BondError::NoWeights(..))));
    assert!(matches!(bonds.delete(first), Err(BondError::NotBond(_))));
    let create =
        |id, mac| bonds.create(Create { id, mac, ..Create::mode(Mode::Xor) }).map_err(|e| e.to_string());
    assert_eq!(create(Some(0), None).unwrap_err(), "BondEthernet0 exists already");
    assert_eq!(create(Some(20_000), None).unwrap_err(), "20000 is no number of a bond: 0 to 16383 are");
    assert!(create(None, Some(MacAddress::BROADCAST)).is_err());
    assert_eq!(bonds.list(), before);
    bench.router.run();
}

#[test]
fn members_and_bonds_go_while_packets_come() {
    for mode in [Mode::RoundRobin, Mode::ActiveBackup, Mode::Broadcast, Mode::Xor] {
        let mut bench = Bench::new(Create::mode(mode));
        bench.out(0..300);
        bench.router.interfaces().delete(bench.members[0].index()).unwrap();
        let [_, b] = bench.out(0..300);
        assert_eq!(b.len(), 300, "{mode:?}");
        bench.bonds().delete(bench.bond).unwrap();
        bench.out(0..300);
        assert_eq!(bench.router.buffers_in_use(), 0, "{mode:?}");
        assert!(bench.router.interfaces().data(bench.members[1].index()).is_ok());
    }
}

#[test]
fn frames_of_any_length_and_content_do_no_harm() {
    let mut bench = Bench::new(with_balance(Mode::Xor, Balance::L34));
    let mut rng = shoal_testkit::Rng::new(shoal_testkit::Rng::seed(7));
    for _ in 0..2000 {
        let (len, member) = (rng.below(120), rng.below(2));
        let bytes = rng.bytes(len);
        bench.router.send(&bench.members[member], bytes);
    }
    assert_eq!(bench.router.buffers_in_use(), 0);
}

#[test]
fn the_configuration_makes_the_same_bonds_again() {
    let bench = Bench::new(with_balance(Mode::Lacp, Balance::L34));
    let bonds = bench.bonds();
    let backup =
        Create { id: Some(5), mac: Some(MacAddress([2, 0, 0, 0, 0, 5])), ..Create::mode(Mode::ActiveBackup) };
    let backup = bonds.create(backup).unwrap();
    bonds.detach(bench.members[1].index()).unwrap();
    bonds.add(backup, bench.members[1].index(), AddMember { passive: true, long_timeout: true }).unwrap();
    bonds.set_weight(bench.members[1].index(), 9).unwrap();
    let mut running = Running::default();
    (MODULE.running)(bench.router.control(), &mut running);
    let lines: String = running.pieces().collect();
    assert_eq!(
        lines,
        "# interfaces\ncreate bond mode lacp load-balance l34 id 0\n\
         create bond mode active-backup hw-addr 02:00:00:00:00:05 id 5\n\
         # settings\nbond add BondEthernet0 pg0\n\
         bond add BondEthernet5 pg1 passive long-timeout\n\
         set interface bond pg1 weight 9\n"
    );
}

#[test]
fn declared_messages_are_those_of_vpp() {
    shoal_testkit::api::same_as_vpp(&[&shoal_bond::BOND]);
}

#[test]
fn random_messages_do_no_harm() {
    let mut bench = Bench::new(Create::mode(Mode::Xor));
    shoal_testkit::api::random_bytes_do_no_harm(&mut bench.router, &[&shoal_bond::BOND], 300);
}
