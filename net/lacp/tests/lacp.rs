//! Bonds whose other end speaks LACP, or lies.

use std::rc::Rc;
use std::time::Duration;

use shoal_bond::{AddMember, Bonds, Create, Mode};
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_lacp::machine::{Mux, Port as Machine, Rx};
use shoal_lacp::pdu::{End, Message, Pdu, SLOW_PROTOCOLS, State, read};
use shoal_lacp::{Lacp, MODULE};
use shoal_module::cli::{Args, Run};
use shoal_testkit::{PacketBuilder, Port, Rng, Router, STACK};
use shoal_wire::EtherType;

const ACTIVE: State = State(State::ACTIVITY.0 | State::TIMEOUT.0 | State::AGGREGATION.0);
const PEER: [u8; 6] = [2, 0xbb, 0, 0, 0, 1];

/// The other end of a link.
struct Other {
    machine: Machine,
    /// Nothing passes this way.
    cut: bool,
}

struct Bench {
    router: Router,
    bond: SwIfIndex,
    ports: Vec<Port>,
    others: Vec<Other>,
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    PacketBuilder::ethernet(PEER, SLOW_PROTOCOLS).ether_type(EtherType::SLOW_PROTOCOLS).payload(bytes).build()
}

impl Bench {
    /// A bond with two members, and what the other end is there.
    fn new(how: AddMember, others: [End; 2]) -> Bench {
        let mut modules = STACK.to_vec();
        modules.extend([&shoal_ip6_nd::MODULE, &shoal_bond::MODULE, &MODULE]);
        let mut router = Router::new(&modules);
        let ports: Vec<Port> = (0..2).map(|n| router.pg(n)).collect();
        let bonds = router.get::<Bonds>();
        let bond = bonds.create(Create::mode(Mode::Lacp)).unwrap();
        router.interfaces().set_admin(bond, true).unwrap();
        for port in &ports {
            bonds.add(bond, port.index(), how).unwrap();
        }
        let now = router.now();
        let other = |end: End| {
            let mut machine = Machine::new(end);
            machine.set_enabled(true, now);
            Other { machine, cut: false }
        };
        router.run();
        Bench { router, bond, ports, others: others.map(other).into() }
    }

    /// Lets time go by, while both ends hear each other.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds * 10 {
            for (port, other) in self.ports.iter().zip(&mut self.others) {
                let now = self.router.now();
                for sent in port.received() {
                    if sent[12..14] == [0x88, 0x09]
                        && !other.cut
                        && let Ok(Message::Lacp(pdu)) = read(&sent[14..])
                    {
                        other.machine.hear(&pdu, now);
                    }
                }
                other.machine.run(now);
                while let Some(pdu) = other.machine.transmit(now) {
                    if !other.cut {
                        self.router.send(port, frame(&pdu.bytes()));
                    }
                }
            }
            self.router.advance(Duration::from_millis(100));
        }
    }

    fn active(&self) -> Vec<SwIfIndex> {
        let mut active = self.router.get::<Bonds>().get(self.bond).unwrap().active;
        active.sort();
        active
    }

    fn indices(&self) -> Vec<SwIfIndex> {
        self.ports.iter().map(Port::index).collect()
    }

    fn show(&self, words: &[&'static str]) -> String {
        let Run::Now(handler) = MODULE.commands[0].run else { panic!("answers later") };
        let start = Args::new(Rc::clone(self.router.control()), "");
        let args = words.iter().fold(start, |args, word| args.with_word(word, 0..0));
        handler(self.router.control(), &args).unwrap().to_text()
    }
}

fn end(system: u8, key: u16, port: u16, state: State) -> End {
    End { system_priority: 0x8000, system: [2, 0, 0, 0, 0, system], key, port_priority: 0x80, port, state }
}

fn usual() -> [End; 2] {
    [end(9, 1, 3, ACTIVE), end(9, 1, 4, ACTIVE)]
}

#[test]
fn both_ends_use_what_they_agree_on_and_leave_what_is_silent() {
    let mut bench = Bench::new(AddMember::default(), usual());
    assert_eq!(bench.active(), []);
    bench.pass(5);
    assert_eq!(bench.active(), bench.indices());
    assert!(bench.others.iter().all(|other| other.machine.is_used()));
    assert!(bench.router.interfaces().data(bench.bond).unwrap().flags().has(IfFlags::LINK_UP));
    bench.others[1].cut = true;
    bench.pass(4);
    assert_eq!(bench.active(), bench.indices()[..1]);
    bench.others[1].cut = false;
    bench.pass(5);
    assert_eq!(bench.active(), bench.indices());
    // A cable that is pulled is seen at once.
    bench.router.interfaces().set_link(bench.indices()[0], false).unwrap();
    assert_eq!(bench.active(), bench.indices()[1..]);
}

#[test]
fn a_passive_member_waits_to_be_spoken_to() {
    let passive = AddMember { passive: true, long_timeout: false };
    let silent = State(ACTIVE.0 & !State::ACTIVITY.0);
    let mut bench = Bench::new(passive, [end(9, 1, 3, silent), end(9, 1, 4, ACTIVE)]);
    bench.pass(6);
    assert_eq!(bench.active(), bench.indices()[1..]);
    assert_eq!(bench.router.get::<Lacp>().list()[0].counts.sent, 0);
}

#[test]
fn links_to_another_system_or_bond_and_loops_are_not_used() {
    for other in [end(8, 1, 4, ACTIVE), end(9, 2, 4, ACTIVE)] {
        let mut bench = Bench::new(AddMember::default(), [usual()[0], other]);
        bench.pass(6);
        assert_eq!(bench.active(), bench.indices()[..1]);
    }
    // What one member sends comes in by the other.
    let mut bench = Bench::new(AddMember::default(), usual());
    for _ in 0..60 {
        let sent = bench.ports[0].received();
        for bytes in sent {
            bench.router.send(&bench.ports[1], bytes);
        }
        bench.router.advance(Duration::from_millis(100));
    }
    assert_eq!(bench.active(), []);
    assert!(bench.router.get::<Lacp>().list()[1].is_loop);
}

#[test]
fn members_that_leave_are_forgotten_and_may_come_again() {
    let mut bench = Bench::new(AddMember::default(), usual());
    bench.pass(5);
    let (bonds, first) = (bench.router.get::<Bonds>(), bench.indices()[0]);
    bonds.detach(first).unwrap();
    assert_eq!(bench.router.get::<Lacp>().list().len(), 1);
    let mut sent = bench.ports[0].received();
    sent.clear();
    bench.router.advance(Duration::from_secs(5));
    assert!(bench.ports[0].received().iter().all(|frame| frame[12..14] != [0x88, 0x09]));
    bonds.add(bench.bond, first, AddMember::default()).unwrap();
    bench.pass(6);
    assert_eq!(bench.active(), bench.indices());
    bonds.delete(bench.bond).unwrap();
    assert!(bench.router.get::<Lacp>().list().is_empty());
    bench.router.run();
    assert_eq!(bench.router.buffers_in_use(), 0);
}

#[test]
fn sub_interfaces_of_a_bond_come_and_go_and_lacp_goes_on() {
    let mut bench = Bench::new(AddMember::default(), usual());
    bench.pass(5);
    let ethernet = bench.router.get::<shoal_ethernet::Ethernet>();
    let takes = shoal_interface::Match::exact_dot1q(shoal_interface::Vid::new(7).unwrap());
    for _ in 0..3 {
        let sub = ethernet.create_sub(bench.bond, 7, takes).unwrap();
        bench.router.interfaces().set_admin(sub, true).unwrap();
        bench.pass(4);
        bench.router.interfaces().delete(sub).unwrap();
        bench.pass(8);
        assert_eq!(bench.active(), bench.indices());
        assert!(bench.others.iter().all(|other| other.machine.is_used()));
    }
}

#[test]
fn a_member_that_comes_up_later_speaks_then() {
    let mut bench = Bench::new(AddMember::default(), usual());
    let late = bench.indices()[1];
    bench.router.interfaces().set_admin(late, false).unwrap();
    bench.pass(5);
    assert_eq!(bench.active(), bench.indices()[..1]);
    bench.router.interfaces().set_admin(late, true).unwrap();
    bench.pass(6);
    assert_eq!(bench.active(), bench.indices());
}

#[test]
fn markers_are_answered_and_bad_frames_counted() {
    let mut bench = Bench::new(AddMember::default(), usual());
    bench.ports[0].received();
    let mut marker = vec![2, 1, 1, 16];
    marker.extend(*b"port,system,");
    marker.resize(110, 0);
    bench.router.send(&bench.ports[0], frame(&marker));
    bench.router.run();
    let answers = bench.ports[0].received();
    let answer = answers.iter().find(|sent| sent[14] == 2).unwrap();
    assert_eq!(answer[14..30], [&[2, 1, 2, 16][..], b"port,system,"].concat());
    bench.router.send(&bench.ports[0], frame(&[1, 1, 1, 20, 0]));
    let mut bytes = Pdu::default().bytes();
    bytes[3] = 7;
    bench.router.send(&bench.ports[0], frame(&bytes));
    bench.router.send(&bench.ports[0], frame(&[10, 1, 0, 0]));
    let errors = [
        "bad lacp packets -- packet too small",
        "bad lacp packets -- bad TLV length",
        "unsupported slow protocol packets",
    ];
    assert_eq!(errors.map(|error| bench.router.error("lacp-input", error)), [1, 1, 1]);
    let other = bench.router.pg(7);
    bench.router.send(&other, frame(&Pdu::default().bytes()));
    assert_eq!(bench.router.error("lacp-input", "lacp packets received on disabled interfaces"), 1);
}

#[test]
fn any_bytes_do_no_harm_and_cause_no_storm() {
    let mut bench = Bench::new(AddMember::default(), usual());
    let mut rng = Rng::new(Rng::seed(3));
    let mut sent = 0;
    for _ in 0..3000 {
        let mut bytes = Pdu::default().bytes();
        let (at, len) = (rng.below(bytes.len()), rng.below(bytes.len()) + 1);
        bytes[at] = rng.next_u64() as u8;
        bytes.truncate(len);
        bench.router.send(&bench.ports[0], frame(&bytes));
        bench.router.advance(Duration::from_millis(1));
        sent += bench.ports[0].received().iter().filter(|frame| frame[12..14] == [0x88, 0x09]).count();
    }
    assert!(sent <= 12, "{sent} PDUs in three seconds");
    assert_eq!(bench.active(), []);
}

#[test]
fn states_are_shown_and_counted_as_vpp_does() {
    let mut bench = Bench::new(AddMember::default(), usual());
    bench.pass(5);
    let text = bench.show(&[]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[1],
        "interface name            sw_if_index  bond interface   exp/def/dis/col/syn/agg/tim/act  exp/def/dis/col/syn/agg/tim/act"
    );
    let bits = "  0   0   1   1   1   1   1   1    0   0   1   1   1   1   1   1";
    assert_eq!(lines[2], format!("pg0                       1            BondEthernet0    {bits}"));
    assert!(lines[3].ends_with("(8000,02-00-00-00-00-09,0001,0080,0003)]"), "{}", lines[3]);
    assert_eq!(
        lines[4],
        "  RX-state: CURRENT, TX-state: TRANSMIT, MUX-state: COLLECTING_DISTRIBUTING, PTX-state: PERIODIC_TX"
    );
    assert!(
        bench.show(&["details"]).starts_with("Number of interfaces: 2\n  pg0\n    Good LACP PDUs received: ")
    );
    let look = &bench.router.get::<Lacp>().list()[0];
    assert_eq!((look.port.rx, look.port.mux), (Rx::Current, Mux::CollectingDistributing));
    let gauge = format!("/if/lacp/{}/{}/state", bench.bond, bench.indices()[0]);
    assert_eq!(bench.router.counter(&gauge), 0x3f);
}

#[test]
fn declared_messages_are_those_of_vpp() {
    shoal_testkit::api::same_as_vpp(&[&shoal_lacp::LACP]);
}
