//! FD.io VPP's start-up file and CLI script for a scenario, as in its manuals and in the paper's set-up: ports by memif or
//! as host-interfaces, addresses, static neighbours, routes; for cross-connects and bridges `set interface l2`.

use std::fmt::Write as _;
use std::path::Path;

use shoal_lab_plan::{Forwarding, Scenario, Side};

use crate::routes::{side, taken};
use crate::settings::list;
use crate::wires::{device_mac, mac, name};

/// Names of the left and the right port.
pub(crate) fn names(memif: bool) -> [&'static str; 2] {
    if memif { ["memif1/0", "memif1/1"] } else { ["host-left", "host-right"] }
}

/// The start-up file. VPP gives no worker the main thread's processor, and no thread one outside `taskset`'s.
pub(crate) fn startup(run: &Path, setup: &Path, main: usize, workers: &[usize]) -> String {
    // With one processor for both there is no worker: the main thread forwards.
    let workers: Vec<usize> = workers.iter().copied().filter(|core| *core != main).collect();
    let workers =
        if workers.is_empty() { String::new() } else { format!(" corelist-workers {}", list(&workers)) };
    format!(
        "unix {{ nodaemon nosyslog runtime-dir {0} cli-listen {0}/cli.sock exec {1} }}\n\
         api-segment {{ prefix {2} }}\n\
         cpu {{ main-core {main}{workers} }}\n\
         buffers {{ buffers-per-numa 32768 }}\n\
         statseg {{ socket-name {0}/stats.sock }}\n\
         socksvr {{ socket-name {0}/api.sock }}\n\
         plugins {{ plugin dpdk_plugin.so {{ disable }} }}\n",
        run.display(),
        setup.display(),
        run.parent().and_then(Path::file_name).map_or_else(String::new, |n| n.to_string_lossy().into_owned())
    )
}

/// The CLI script.
pub(crate) fn setup(memif: Option<&Path>, scenario: &Scenario) -> String {
    let mut text = String::new();
    // Writing into a string does not fail.
    if let Some(socket) = memif {
        let _ = writeln!(text, "create memif socket id 1 filename {}", socket.display());
    }
    let [left, right] = names(memif.is_some());
    for (at, port) in Side::BOTH.into_iter().zip([left, right]) {
        let hw = mac(device_mac(at));
        let _ = match memif {
            Some(_) => writeln!(
                text,
                "create interface memif id {} socket-id 1 master hw-addr {hw} ring-size 2048",
                at.index()
            ),
            None => writeln!(text, "create host-interface name {} hw-addr {hw}", name(at)),
        };
        let _ = writeln!(text, "set interface mtu packet {} {port}", scenario.mtu);
        let _ = writeln!(text, "set interface state {port} up");
    }
    match &scenario.forwarding {
        Forwarding::CrossConnect => {
            let _ = writeln!(text, "set interface l2 xconnect {left} {right}");
            let _ = writeln!(text, "set interface l2 xconnect {right} {left}");
        }
        Forwarding::Bridge => {
            let _ = writeln!(text, "set interface l2 bridge {left} 1\nset interface l2 bridge {right} 1");
        }
        Forwarding::Route => layer3(&mut text, [left, right], scenario),
        Forwarding::Snat(nat) => {
            layer3(&mut text, [left, right], scenario);
            text += &crate::shoal_config::translation([left, right], nat);
        }
    }
    text
}

fn layer3(text: &mut String, ports: [&str; 2], scenario: &Scenario) {
    let [left, right] = ports;
    let port = |at: Side| if at == Side::Left { left } else { right };
    for at in Side::BOTH {
        let (own, port, mac) = (side(scenario, at), port(at), mac(side(scenario, at).tester_mac));
        let _ = writeln!(
            text,
            "set interface ip address {port} {}/{}\nset interface ip address {port} {}/{}\n\
             set ip neighbor {port} {} {mac} static\nset ip neighbor {port} {} {mac} static",
            own.device4, own.length4, own.device6, own.length6, own.tester4, own.tester6
        );
    }
    for one in taken(scenario) {
        *text += &crate::shoal_config::route(&one, port(one.out));
    }
}

#[cfg(test)]
mod tests {
    use shoal_lab_plan::Nat;

    use super::*;
    use crate::routes::tests::scenario;

    #[test]
    fn a_router_by_memif_has_masters_addresses_and_neighbours() {
        let text = setup(Some(Path::new("/tmp/x/memif.sock")), &scenario());
        for line in [
            "create memif socket id 1 filename /tmp/x/memif.sock",
            "create interface memif id 0 socket-id 1 master hw-addr 02:00:00:00:0d:01 ring-size 2048",
            "set interface ip address memif1/1 198.19.0.1/24",
            "set ip neighbor memif1/0 2001:2::2 02:00:00:00:5a:01 static",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("l2"));
    }

    #[test]
    fn a_cross_connect_has_no_addresses() {
        let text = setup(None, &Scenario { forwarding: Forwarding::CrossConnect, ..scenario() });
        assert!(text.contains("set interface l2 xconnect host-left host-right\n"));
        assert!(!text.contains("ip address"));
    }

    #[test]
    fn a_nat_has_its_pool_and_long_timeouts() {
        let nat = Nat { first: [203, 0, 113, 1].into(), last: [203, 0, 113, 9].into() };
        let text = setup(None, &Scenario { forwarding: Forwarding::Snat(nat), ..scenario() });
        assert!(text.contains(
            "set interface nat44 in host-left out host-right\nnat44 add address 203.0.113.1 - 203.0.113.9\n"
        ));
    }

    #[test]
    fn a_worker_on_the_main_threads_processor_is_the_main_thread() {
        let text = |workers: &[usize]| startup(Path::new("/x/run"), Path::new("/x/s"), 0, workers);
        assert!(text(&[0]).contains("cpu { main-core 0 }\n"));
        assert!(text(&[2, 4]).contains("cpu { main-core 0 corelist-workers 2,4 }\n"));
    }
}
