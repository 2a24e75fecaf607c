//! Whether frames pass: a few UDP datagrams both ways and of both families, before the tester attaches.
//!
//! The kernel of the tester's namespaces sends and receives them: for that its interfaces get the tester's addresses,
//! with the device as gateway and static neighbour, and lose them again, so that it answers to nothing that a test sends.
//! Nothing of the lab's own frame and engine code takes part, so that a probe that passes says something about that too.

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::unistd::Pid;
use shoal_lab_plan::{Family, Forwarding, Scenario, Side};

use crate::device_environment::{DeviceEnvironment, Namespace};
use crate::error::SetupError;
use crate::routes::side;
use crate::softnet;
use crate::wires::{Wires, device_mac, mac, name};

/// The port of the probe's datagrams, at both ends.
const PORT: u16 = 49_000;
/// How long a device may take to forward the first.
const FIRST: Duration = Duration::from_secs(8);
/// How long one of the others is waited for.
const NEXT: Duration = Duration::from_millis(200);
/// Sent before their arrival is looked at: far fewer than any queue on the way holds.
const BURST: u32 = 16;

/// What passed in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// `IPv4 left to right`.
    pub what: String,
    /// Datagrams that were sent.
    pub sent: u32,
    /// Those that arrived.
    pub arrived: u32,
    /// Whom the last one came from, as the receiver sees it: behind a NAT another than who sent it.
    pub from: Option<SocketAddr>,
}

/// Probes a device on `wires`, and records what passed and on which processors the kernel worked. `rewrites`: the device
/// has MACs of its own. An error if nothing passes in some direction.
pub(crate) fn probe(
    stand: &mut DeviceEnvironment,
    wires: &Wires,
    scenario: &Scenario,
    rewrites: bool,
) -> Result<Vec<Passed>, SetupError> {
    if !wires.probed() {
        stand.note("not probed: the tester's end of a TAP is its own process");
        return Ok(Vec::new());
    }
    for at in Side::BOTH {
        for line in put_on(wires.of_tester(at), scenario, at, rewrites) {
            line.run()?;
        }
    }
    let before = softnet::read();
    let passed = exchange(wires, scenario, stand.settings.probe.max(1), stand.settings.cores.tester.clone());
    let after = softnet::read();
    for at in Side::BOTH {
        for line in take_off(wires.of_tester(at), at) {
            line.run()?;
        }
    }
    let passed = passed?;
    for one in &passed {
        let seen = one.from.map(|from| format!(", seen as {}", from.ip())).unwrap_or_default();
        stand.note(format!("probe: {}: {} of {} arrived{seen}", one.what, one.arrived, one.sent));
    }
    if let (Some(before), Some(after)) = (before, after) {
        let frames = passed.iter().map(|p| u64::from(p.arrived)).sum();
        let device = stand.settings.cores.workers(scenario.workers);
        let fact = softnet::placement(&before, &after, &device, &stand.settings.cores.tester, frames);
        stand.note(fact);
    }
    if let (Forwarding::Snat(nat), Some(forward)) = (&scenario.forwarding, passed.first())
        && let Some(from) = forward.from.map(|f| f.ip())
        && !matches!(from, IpAddr::V4(from) if (nat.first..=nat.last).contains(&from))
    {
        return Err(SetupError::Answer {
            program: "the NAT".to_owned(),
            answer: format!("the sender is seen as {from}, not as one of {}-{}", nat.first, nat.last),
        });
    }
    match passed.iter().find(|p| p.arrived == 0) {
        None => Ok(passed),
        Some(none) => Err(SetupError::NotReady {
            what: format!("nothing passes, {}", none.what),
            seconds: FIRST.as_secs(),
            last: format!("{} datagrams were sent", none.sent),
        }),
    }
}

/// Commands that make the tester's end a host with the device as its gateway.
fn put_on(at: &Namespace, scenario: &Scenario, of: Side, rewrites: bool) -> Vec<crate::line::Line> {
    let (own, name) = (side(scenario, of), name(of));
    let gateway = if rewrites { device_mac(of) } else { side(scenario, of.other()).tester_mac };
    let gateway = mac(gateway);
    vec![
        at.exec(format!("sysctl -qw net.ipv6.conf.{name}.disable_ipv6=0")),
        at.ip(format!("addr add {}/32 dev {name}", own.tester4)),
        at.ip(format!("addr add {}/128 dev {name} nodad", own.tester6)),
        at.ip(format!("neigh replace {} lladdr {gateway} dev {name} nud permanent", own.device4)),
        at.ip(format!("neigh replace {} lladdr {gateway} dev {name} nud permanent", own.device6)),
        at.ip(format!("route replace default via {} dev {name} onlink", own.device4)),
        at.ip(format!("-6 route replace default via {} dev {name} onlink", own.device6)),
    ]
}

/// Commands that undo it.
fn take_off(at: &Namespace, of: Side) -> Vec<crate::line::Line> {
    let name = name(of);
    vec![
        at.ip(format!("addr flush dev {name}")),
        at.ip(format!("route flush dev {name}")),
        at.ip(format!("neigh flush dev {name} nud permanent")),
        at.exec(format!("sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1")),
    ]
}

/// Sends and receives in a thread of its own, on the tester's processor: its namespace and processor are given up with it.
fn exchange(
    wires: &Wires,
    scenario: &Scenario,
    frames: u32,
    cores: Vec<usize>,
) -> Result<Vec<Passed>, SetupError> {
    let files = [wires.of_tester(Side::Left).path(), wires.of_tester(Side::Right).path()];
    let scenario = scenario.clone();
    let probing = thread::spawn(move || {
        let mut set = CpuSet::new();
        // A machine without the tester's processor is told elsewhere; the probe runs all the same.
        if cores.iter().all(|core| set.set(*core).is_ok()) {
            let _ = sched_setaffinity(Pid::from_raw(0), &set);
        }
        let mut sockets = Vec::new();
        for (file, at) in files.iter().zip(Side::BOTH) {
            let open = File::open(file).map_err(SetupError::file(file))?;
            setns(open, CloneFlags::CLONE_NEWNET).map_err(|e| SetupError::file(file)(e.into()))?;
            let own = side(&scenario, at);
            for address in [IpAddr::V4(own.tester4), IpAddr::V6(own.tester6)] {
                let socket =
                    UdpSocket::bind((address, PORT)).map_err(SetupError::file(address.to_string()))?;
                sockets.push(socket);
            }
        }
        let [left4, left6, right4, right6] = sockets.as_slice() else {
            unreachable!("two sides, two families")
        };
        let mut passed = Vec::new();
        for (family, left, right) in [(Family::Ip4, left4, right4), (Family::Ip6, left6, right6)] {
            let ip = if family == Family::Ip4 { "IPv4" } else { "IPv6" };
            let to = right.local_addr().map_err(SetupError::file(ip))?;
            let forward = one_way(left, right, to, frames, format!("{ip} left to right"));
            // Through a NAT only answers come back, and to the address that it put in place of the sender's.
            let hidden = family == Family::Ip4 && matches!(scenario.forwarding, Forwarding::Snat(_));
            let back = match (hidden, forward.from) {
                (true, Some(from)) => from,
                _ => left.local_addr().map_err(SetupError::file(ip))?,
            };
            passed.push(forward);
            passed.push(one_way(right, left, back, frames, format!("{ip} right to left")));
        }
        Ok(passed)
    });
    probing.join().unwrap_or_else(|_| Err(SetupError::file("probe")(io::Error::other("it panicked"))))
}

/// Sends until one arrives, then `frames` more.
fn one_way(from: &UdpSocket, at: &UdpSocket, to: SocketAddr, frames: u32, what: String) -> Passed {
    let mut passed = Passed { what, sent: 0, arrived: 0, from: None };
    let mut bytes = [0; 64];
    let mut hear = |wait: Duration, passed: &mut Passed| {
        // A wait of 0 is refused; these are constants.
        let _ = at.set_read_timeout(Some(wait));
        let heard = at.recv_from(&mut bytes);
        if let Ok((_, who)) = heard {
            passed.from = Some(who);
        }
        heard.is_ok()
    };
    let until = Instant::now() + FIRST;
    let mut first = 0;
    loop {
        // What cannot be sent yet (no carrier, no route) does not arrive either.
        first += u32::from(from.send_to(b"first", to).is_ok());
        if hear(NEXT, &mut passed) {
            break;
        }
        if Instant::now() > until {
            passed.sent = first;
            return passed;
        }
    }
    // Those of the first that come late are not counted among the others.
    while first > 1 && hear(NEXT / 4, &mut passed) {
        first -= 1;
    }
    while passed.sent < frames {
        let burst = BURST.min(frames - passed.sent);
        let mut sent = 0;
        while sent < burst && from.send_to(b"probe", to).is_ok() {
            sent += 1;
        }
        if sent == 0 {
            return passed;
        }
        passed.sent += sent;
        for _ in 0..sent {
            if !hear(NEXT, &mut passed) {
                break;
            }
            passed.arrived += 1;
        }
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::tests::scenario;

    #[test]
    fn the_gateway_of_a_bridge_is_the_other_end_of_the_tester() {
        let at = Namespace { name: "x".to_owned() };
        let told = |rewrites| {
            put_on(&at, &scenario(), Side::Left, rewrites).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(told(false).contains(
            &"ip -n x neigh replace 198.18.0.1 lladdr 02:00:00:00:5a:02 dev left nud permanent".to_owned()
        ));
        assert!(told(true).contains(
            &"ip -n x neigh replace 198.18.0.1 lladdr 02:00:00:00:0d:01 dev left nud permanent".to_owned()
        ));
    }

    #[test]
    fn datagrams_that_arrive_are_counted_one_by_one() {
        let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let passed = one_way(&a, &b, b.local_addr().unwrap(), 50, "here".to_owned());
        assert_eq!((passed.sent, passed.arrived, passed.from), (50, 50, Some(a.local_addr().unwrap())));
    }
}
