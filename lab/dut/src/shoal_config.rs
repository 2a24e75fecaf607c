//! Shoal's start-up file and CLI script for a scenario. FD.io VPP has the same words for most of it.

use std::fmt::Write as _;
use std::path::Path;

use shoal_lab_plan::{Forwarding, Nat, Scenario, Side};

use crate::routes::{Route, side, taken};
use crate::settings::list;
use crate::wires::{device_mac, mac};

/// How ports are made, and what they are called then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attach {
    /// Names of the left and the right port.
    pub names: [String; 2],
    create: String,
}

/// Entries of a memif's ring that are wished for: the tester is the slave and decides. Large ones outlast its stalls.
const RING: u32 = 2048;
/// Sessions a NAT may have, and seconds that one may be silent.
const SESSIONS: u32 = 4_194_304;
const UDP_TIMEOUT: u32 = 3600;

impl Attach {
    /// The router is the master of both on one socket.
    pub fn memif(socket: &Path) -> Attach {
        let mut create = format!("create memif socket id 1 filename {}\n", socket.display());
        for at in Side::BOTH {
            let _ = writeln!(
                create,
                "create interface memif id {} socket-id 1 master hw-addr {} ring-size {RING}",
                at.index(),
                mac(device_mac(at))
            );
        }
        Attach { names: ["memif1/0".to_owned(), "memif1/1".to_owned()], create }
    }

    /// The kernel's interfaces `left` and `right`.
    pub fn af_packet() -> Attach {
        let mut create = String::new();
        for at in Side::BOTH {
            let _ = writeln!(
                create,
                "create host-interface name {} hw-addr {}",
                crate::wires::name(at),
                mac(device_mac(at))
            );
        }
        Attach { names: ["host-left".to_owned(), "host-right".to_owned()], create }
    }

    /// The same by AF_XDP.
    pub fn af_xdp() -> Attach {
        let mut create = String::new();
        for at in Side::BOTH {
            let _ = writeln!(create, "create interface af_xdp host-if {} mac-reuse", crate::wires::name(at));
        }
        Attach { names: ["left/0".to_owned(), "right/0".to_owned()], create }
    }

    /// The name of a port.
    pub fn name(&self, at: Side) -> &str {
        let [left, right] = &self.names;
        match at {
            Side::Left => left,
            Side::Right => right,
        }
    }
}

/// The start-up file. The main thread has a processor of its own only if no worker is on it.
pub(crate) fn startup(run: &Path, lib: &Path, setup: &Path, main: usize, workers: &[usize]) -> String {
    let main = if workers.contains(&main) { String::new() } else { format!("main-core {main} ") };
    format!(
        "unix {{ nodaemon nosyslog runtime-dir {} exec {} }}\n\
         configuration {{ directory {} restore off }}\n\
         cpu {{ {main}corelist-workers {} }}\n",
        run.display(),
        setup.display(),
        lib.display(),
        list(workers)
    )
}

/// Commands that make the ports, say what is to be done with frames, and put the ports up.
pub(crate) fn setup(attach: &Attach, scenario: &Scenario) -> String {
    let mut text = attach.create.clone();
    let [left, right] = &attach.names;
    for name in [left, right] {
        let _ = writeln!(text, "set interface mtu {} {name}", scenario.mtu);
    }
    match scenario.forwarding {
        Forwarding::CrossConnect => {
            let _ = writeln!(text, "set interface l2 xconnect {left} {right}");
            let _ = writeln!(text, "set interface l2 xconnect {right} {left}");
        }
        Forwarding::Bridge => {
            let _ = writeln!(text, "create bridge-domain 1");
            let _ = writeln!(text, "set interface l2 bridge {left} 1\nset interface l2 bridge {right} 1");
        }
        Forwarding::Route => text += &layer3(attach, scenario),
        Forwarding::Snat(ref nat) => {
            text += &layer3(attach, scenario);
            text += &translation([left, right], nat);
        }
    }
    for name in [left, right] {
        let _ = writeln!(text, "set interface state {name} up");
    }
    text
}

/// Commands for a NAT from the left to the right, whose sessions last as long as any test: FD.io VPP's words.
pub(crate) fn translation([left, right]: [&str; 2], Nat { first, last }: &Nat) -> String {
    format!(
        "nat44 plugin enable sessions {SESSIONS}\nset interface nat44 in {left} out {right}\n\
         nat44 add address {first} - {last}\nset nat timeout udp {UDP_TIMEOUT}\n"
    )
}

/// The command that makes it forget what it has learned of frames; nothing where it learns nothing.
pub(crate) fn forget(forwarding: &Forwarding) -> Option<&'static str> {
    match forwarding {
        Forwarding::Bridge => Some("clear l2fib"),
        Forwarding::Snat(_) => Some("clear nat44 ed sessions"),
        Forwarding::Route | Forwarding::CrossConnect => None,
    }
}

/// Commands for addresses, neighbours and the routes that frames take.
fn layer3(attach: &Attach, scenario: &Scenario) -> String {
    let mut text = String::new();
    for at in Side::BOTH {
        let (own, name) = (side(scenario, at), attach.name(at));
        let _ = writeln!(text, "set interface ip address {name} {}/{}", own.device4, own.length4);
        let _ = writeln!(text, "set interface ip address {name} {}/{}", own.device6, own.length6);
    }
    for at in Side::BOTH {
        let (own, name, mac) = (side(scenario, at), attach.name(at), mac(side(scenario, at).tester_mac));
        let _ = writeln!(text, "set ip neighbor {name} {} {mac} static", own.tester4);
        let _ = writeln!(text, "set ip neighbor {name} {} {mac} static", own.tester6);
    }
    for one in taken(scenario) {
        text += &route(&one, attach.name(one.out));
    }
    text
}

/// The command for a route.
pub(crate) fn route(route: &Route, out: &str) -> String {
    format!("ip route add {}/{} via {} {out}\n", route.to, route.length, route.via)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::tests::scenario;

    #[test]
    fn memifs_are_masters_with_addresses_and_static_neighbours() {
        let attach = Attach::memif(Path::new("/tmp/x/memif.sock"));
        let scenario = Scenario { networks: 2, ..scenario() };
        let text = setup(&attach, &scenario);
        assert!(text.starts_with("create memif socket id 1 filename /tmp/x/memif.sock\n"));
        for line in [
            "create interface memif id 1 socket-id 1 master hw-addr 02:00:00:00:0d:02 ring-size 2048",
            "set interface ip address memif1/0 198.18.0.1/24",
            "set interface ip address memif1/1 2001:2:0:8000::1/64",
            "set interface state memif1/1 up",
            "set ip neighbor memif1/1 198.19.0.2 02:00:00:00:5a:02 static",
            "ip route add 2001:2:0:8001::/64 via 2001:2:0:8000::2 memif1/1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_switch_has_no_addresses() {
        let attach = Attach::memif(Path::new("/tmp/x/memif.sock"));
        let text = |forwarding| setup(&attach, &Scenario { forwarding, ..scenario() });
        let connect = text(Forwarding::CrossConnect);
        assert!(connect.contains("set interface l2 xconnect memif1/1 memif1/0\n"));
        let bridge = text(Forwarding::Bridge);
        assert!(bridge.contains("set interface l2 bridge memif1/1 1\n"));
        for text in [connect, bridge] {
            assert!(!text.contains("ip "), "{text}");
            assert!(text.ends_with("set interface state memif1/0 up\nset interface state memif1/1 up\n"));
        }
    }

    #[test]
    fn a_nat_has_its_pool_and_routes() {
        let attach = Attach::memif(Path::new("/tmp/x/memif.sock"));
        let nat = Nat { first: [203, 0, 113, 1].into(), last: [203, 0, 113, 9].into() };
        let text = setup(&attach, &Scenario { forwarding: Forwarding::Snat(nat), ..scenario() });
        for line in [
            "set interface ip address memif1/0 198.18.0.1/24",
            "nat44 plugin enable sessions 4194304",
            "set interface nat44 in memif1/0 out memif1/1",
            "nat44 add address 203.0.113.1 - 203.0.113.9",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_main_thread_that_shares_its_processor_has_none_of_its_own() {
        let text = |workers: &[usize]| startup(Path::new("r"), Path::new("l"), Path::new("s"), 0, workers);
        assert!(text(&[0]).ends_with("cpu { corelist-workers 0 }\n"));
        assert!(text(&[2, 4]).ends_with("cpu { main-core 0 corelist-workers 2,4 }\n"));
    }

    #[test]
    fn kernel_interfaces_are_taken_by_their_names() {
        assert!(
            Attach::af_packet()
                .create
                .contains("create host-interface name right hw-addr 02:00:00:00:0d:02\n")
        );
        assert_eq!(Attach::af_xdp().name(Side::Left), "left/0");
    }
}
