//! Trials over DPDK's devices, by the plugin that `make dpdk` builds; skipped by name without it. Memory is ordinary: no
//! huge pages are needed. DPDK starts once in a process, so all tests here share it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::path::Path;

use shoal_lab_engine::{
    DpdkPort, DpdkSettings, Engine, MachineClock, SelfTest, Transport as _, attach, dpdk_plugin,
    dpdk_settings, self_test,
};
use shoal_lab_plan::*;
use shoal_testkit::netns::{can_run, skipped};
use support::*;

/// Whether there is a plugin; says so as a skip does if not.
fn has_plugin(test: &str) -> bool {
    let stanza = Some("no-pci no-hugetlb num-mbufs 8192".to_owned());
    dpdk_settings(DpdkSettings { plugin: None, stanza });
    match dpdk_plugin() {
        Ok(_) => true,
        Err(missing) => {
            skipped(format_args!("{test}: {missing}"));
            false
        }
    }
}

fn engine([left, right]: [DpdkPort; 2]) -> Engine<DpdkPort, MachineClock> {
    Engine::new(left, right, MachineClock::calibrated())
}

fn port(namespace: Option<&Path>, words: &str) -> Port {
    let (namespace, words) = (namespace.map(Path::to_owned), words.to_owned());
    Port { attachment: Attachment::Dpdk { namespace, words }, mac: None }
}

#[test]
fn all_frames_arrive_over_a_veth_pair_by_dpdk_and_its_devices_can_be_opened_again() {
    const NAME: &str = "all_frames_arrive_over_a_veth_pair_by_dpdk_and_its_devices_can_be_opened_again";
    if !can_run(NAME, &[]) || !has_plugin(NAME) {
        return;
    }
    let (_namespace, path) = veth("sllengine-d");
    let clock = MachineClock::calibrated();
    for _ in 0..2 {
        let ports = Ports {
            left: port(Some(&path), "net_af_packet0,iface=left"),
            right: port(Some(&path), "net_af_packet1,iface=right num-rx-desc 512"),
        };
        let tester = attach(&ports, &clock, Link::default()).unwrap();
        let facts = tester.facts();
        assert_eq!((facts.transport.as_str(), facts.most_frame, facts.smallest_ring), ("dpdk", 1526, 512));
        all_arrive(Boxed(tester));
    }
}

/// A tester of any kind.
struct Boxed(Box<dyn Tester>);

impl Tester for Boxed {
    fn facts(&self) -> TesterFacts {
        self.0.facts()
    }

    fn run(&mut self, trial: &Trial, watch: &mut dyn Watch) -> Result<Outcome, TesterError> {
        self.0.run(trial, watch)
    }
}

#[test]
fn all_frames_arrive_over_two_devices_that_a_memif_joins() {
    if !has_plugin("all_frames_arrive_over_two_devices_that_a_memif_joins") {
        return;
    }
    let pair = DpdkPort::pair(1500).unwrap();
    assert_eq!(
        pair.each_ref().map(|port| (port.kind(), port.ring(), port.most_frame())),
        [("dpdk", 2048, 1522); 2]
    );
    all_arrive(engine(pair));
    all_arrive_of(engine(DpdkPort::pair(9198).unwrap()), &[(2_003, 9216), (2_003, 64)]);
}

#[test]
fn what_does_not_open_is_named_with_what_would() {
    if !has_plugin("what_does_not_open_is_named_with_what_would") {
        return;
    }
    let clock = MachineClock::calibrated();
    for (words, said) in [
        ("net_nul5", "dpdk: net_nul5 is no virtual device of DPDK, did you mean `net_null'?"),
        (
            "net_null5 num-rx-quues 2",
            "net_null5 has no setting `num-rx-quues', did you mean `num-rx-queues'?",
        ),
        ("net_null5 num-rx-queues 2", "net_null5 has 2 receive queues; the tester reads one"),
        ("net_af_packet5,iface=sll-nowhere", "net_af_packet5"),
        ("0000:03:00.0", "0000:03:00.0 is on the PCI bus, and DPDK was started in this process without it"),
    ] {
        // Whatever the first has opened is closed again, each time.
        let ports = Ports { left: port(None, "net_null4"), right: port(None, words) };
        let why = attach(&ports, &clock, Link::default()).map(drop).unwrap_err().to_string();
        assert!(why.contains(said), "{words}: {why}");
    }
    let nowhere = Path::new("/run/netns/sllengine-missing");
    let ports = Ports { left: port(Some(nowhere), "net_null4"), right: port(None, "net_null5") };
    let why = attach(&ports, &clock, Link::default()).map(drop).unwrap_err().to_string();
    assert!(why.contains("sllengine-missing"), "{why}");
}

/// By hand: `cargo test --release -p shoal-lab-engine --test dpdk -- --ignored --nocapture`.
#[test]
#[ignore = "takes seconds and prints figures that mean something on an idle machine only"]
fn the_ceiling_of_dpdks_ports_is_printed() {
    if !has_plugin("the_ceiling_of_dpdks_ports_is_printed") {
        return;
    }
    let mut tester = engine(DpdkPort::pair(1500).unwrap());
    let mut test = SelfTest::quick(both(64, 1));
    test.error = 0.03;
    let ceiling = self_test(&mut tester, &test, &mut Unwatched).unwrap();
    let floor = ceiling.floor.iter().map(|d| (d.min, d.mean as u64, d.uncertainty)).collect::<Vec<_>>();
    assert!(ceiling.rate > 0);
    eprintln!("memif by dpdk: {} fps a side, floor {floor:?} ns", ceiling.rate);
}
