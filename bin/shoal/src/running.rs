//! The running configuration of a whole router: shown, run on a fresh one, shown again.

use std::cell::RefCell;
use std::rc::Rc;

use shoal_cli::Cli;
use shoal_graph::process::Processes;
use shoal_module::{Control, Module, ModuleList};
use shoal_testkit::Router;

/// Runs a line that may take its time.
fn cli(control: &Rc<Control>, line: &str) -> Result<String, String> {
    let (cli, processes) = (control.get::<Cli>().unwrap(), control.get::<Processes>().unwrap());
    let answer = Rc::new(RefCell::new(None));
    let (to, with, text) = (Rc::clone(&answer), Rc::clone(control), line.to_owned());
    processes.spawn_unlisted(async move {
        let reply = cli.execute(&with, &text).await;
        *to.borrow_mut() = Some(if reply.is_ok() { Ok(reply.text()) } else { Err(reply.text()) });
    });
    while answer.borrow().is_none() {
        if !processes.run_until_idle() {
            // A thread of its own has the work.
            std::thread::yield_now();
        }
    }
    answer.take().unwrap()
}

/// All modules but those that need files, sockets or privileges.
fn router() -> Router {
    let needs_more = ["logging", "stats", "af_packet", "tap"];
    let modules: Vec<&'static Module> =
        crate::modules::all().filter(|m| !needs_more.contains(&m.name)).collect();
    let router = Router::with_cli(&modules, cli);
    let types = modules.iter().flat_map(|m| m.arg_types).chain(shoal_module::cli::WIRE);
    router.control().put(Cli::new(modules.iter().flat_map(|m| m.commands), types).unwrap());
    router.control().put(ModuleList(modules));
    router
}

fn shown(router: &mut Router) -> String {
    router.cli("show running-config").unwrap()
}

/// Another router that has run the configuration, every line of it.
fn rebuilt(text: &str) -> Router {
    let mut other = router();
    for line in text.lines() {
        other.cli(line).unwrap_or_else(|e| panic!("`{line}': {e}\nof:\n{text}"));
    }
    other
}

/// The configuration of a router that has run `lines`, which another one that runs it has, too.
fn round(lines: &[&str]) -> String {
    let mut first = router();
    for line in lines {
        first.cli(line).unwrap_or_else(|e| panic!("`{line}': {e}"));
    }
    let text = shown(&mut first);
    assert_eq!(shown(&mut rebuilt(&text)), text);
    text
}

/// What was said is what is shown, line by line, but for the headings.
fn same(lines: &[&str]) {
    let text = round(lines);
    let found: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(found, lines);
}

#[test]
fn a_fresh_router_has_nothing_to_say() {
    assert_eq!(shown(&mut router()), "");
}

#[test]
fn interfaces_and_their_names() {
    same(&[
        "set superpath off",
        "create loopback interface mac 02:fe:00:00:00:01 instance 7",
        "create loopback interface instance 0",
        "set interface name loop7 uplink",
        "set interface tag uplink north",
        "set interface mtu 1500 uplink",
        "set interface mtu ip4 1400 uplink",
        "set interface mtu ip6 1380 uplink",
        "set interface promiscuous on loop0",
        "set interface state uplink up",
    ]);
    // Names that changed places.
    let text = round(&[
        "create loopback interface instance 0",
        "create loopback interface instance 1",
        "set interface name loop0 x",
        "set interface name loop1 loop0",
        "set interface name x loop1",
        "set interface tag loop1 first",
        "set interface mtu 1500 loop0",
        "set interface mtu 9000 loop0",
    ]);
    assert!(text.contains("set interface tag loop1 first") && !text.contains("mtu"), "{text}");
}

#[test]
fn packet_generators_and_features_by_name() {
    same(&[
        "create packet-generator interface pg0 hw-addr 02:fe:00:00:00:07 gso-enabled gso-size 1460 coalesce-enabled",
        "create packet-generator interface pg4 mode ip4",
        "create packet-generator interface pg6 mode ip6",
        "packet-generator mac-filter pg0 on",
        "set interface feature pg4 ip4-sv-reassembly-output-feature arc ip4-output",
        "set interface state pg4 up",
    ]);
    let text = round(&[
        "create packet-generator interface pg0",
        "set interface feature pg0 ip4-sv-reassembly-output-feature arc ip4-output",
        "set interface feature pg0 ip4-sv-reassembly-output-feature arc ip4-output disable",
    ]);
    // A drawn MAC address is said; a feature that was switched on and off again is not.
    assert!(text.contains("pg0 hw-addr 02:fe:") && !text.contains("feature"), "{text}");
}

#[test]
fn addresses_and_tables() {
    same(&[
        "ip table add 7 customers",
        "ip table add 9",
        "set ip flow-hash table 0 src dst symmetric",
        "ip6 table add 7",
        "set ip6 flow-hash table 7 src dst flowlabel",
        "create loopback interface instance 0",
        "create loopback interface instance 1",
        "create loopback interface instance 2",
        "set interface ip table loop0 7",
        "set interface ip directed-broadcast loop0 enable",
        "set interface ip6 table loop1 7",
        "set interface ip address loop0 10.0.0.2/24",
        "set interface ip address loop0 10.0.0.1/24",
        "enable ip6 interface loop1",
        "set ip6 link-local address loop1 fe80::77",
        "set interface ip address loop1 2001:db8::1/64",
        "set interface unnumbered loop2 use loop1",
    ]
    .map(|line| line)
    .as_slice());
}

#[test]
fn routes_of_every_kind() {
    same(&[
        "ip table add 7",
        "ip6 table add 7",
        "create loopback interface instance 0",
        "create loopback interface instance 1",
        "set interface ip address loop0 10.0.0.1/24",
        "set interface ip address loop0 2001:db8::1/64",
        "ip route add 0.0.0.0/0 via 10.0.0.9",
        "ip route add 20.0.0.0/8 via drop",
        "ip route add 20.1.0.0/16 via unreachable",
        "ip route add 20.2.0.0/16 via prohibit",
        "ip route add 20.3.0.0/16 via punt",
        "ip route add 20.4.0.0/16 via local",
        "ip route add 20.5.0.0/16 via ip4-lookup-in-table 7",
        "ip route add 20.6.0.0/16 via rx-ip4 loop1",
        "ip route add 20.7.0.0/16 via loop1",
        "ip route add 20.8.0.0/16 via 10.0.0.2 loop0 weight 2 via 10.0.0.3 loop0 preference 1",
        "ip route add 20.9.0.0/16 via 10.0.0.2 loop0 resilient via 10.0.0.3 loop0 resilient",
        "ip route add 20.10.0.0/16 via 10.0.0.2 next-hop-table 7",
        "ip route add 20.11.0.0/16 via 2001:db8::2",
        "ip route add 20.12.0.1/32 via 20.12.0.1 loop1",
        "ip route add 30.0.0.0/8 table 7 via 10.0.0.2 next-hop-table 0",
        "ip route add 31.0.0.0/8 table 7 via 30.0.0.1",
        "ip route add ::/0 via 2001:db8::2 loop0",
        "ip route add 2a00::/16 via ip6-lookup-in-table 7",
        "ip route add 2a01::/16 via rx-ip6 loop1",
        "ip route add 2a02::/16 table 7 via 2001:db8::2 next-hop-table 0 weight 3 via drop",
        "ip mroute add 232.1.1.1/32 via local Forward via loop0 Accept",
        "ip mroute add 192.0.2.1 232.1.1.1 Signal via loop0 Accept Negate-Signal",
        "ip mroute add table 7 239.1.0.0/16 Accept-all-itf via loop1 Forward",
        "ip mroute add 2001:db8::1 ff3e::1 Drop via loop0 Accept",
        "set ip route counters enable table 7",
        "set ip6 route counters enable 2a00::/16 table 0",
    ]);
}
