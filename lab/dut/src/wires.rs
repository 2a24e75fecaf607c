//! The wires between tester and device: two veth pairs, or two TAPs, with the device's ends in a namespace of its own and
//! each of the tester's in another.
//!
//! ```text
//! namespace ...l            namespace ...d             namespace ...r
//!   left  ======= veth =======  left   device   right  ======= veth =======  right
//! ```
//!
//! The tester's ends have no addresses and no IPv6, so that the kernel there says and answers nothing. Each end is told by
//! RPS to receive on its owner's processor; offloads are off, because a frame of the test is a frame.

use std::fs;

use shoal_lab_plan::{Attachment, Port, Ports, Scenario, Side};

use crate::device_environment::{DeviceEnvironment, Namespace};
use crate::error::SetupError;
use crate::routes::side;
use crate::settings::mask;

/// MACs of the device's ports, locally administered.
pub(crate) const DEVICE_MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0xd, 1], [2, 0, 0, 0, 0xd, 2]];
/// What the device's namespace is told before it has interfaces, so that they have it from the start: no address is
/// checked for duplicates (no host would answer), and both families are on.
const DEVICE_SETTINGS: &str = "net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0 \
    net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.accept_ra=0 net.ipv6.conf.all.keep_addr_on_down=1 \
    net.ipv6.conf.default.keep_addr_on_down=1";

/// What the wires are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The tester has the other end of a veth pair.
    Veth,
    /// The tester's process is the other end.
    Tap,
}

/// Two wires.
#[derive(Clone, Debug)]
pub(crate) struct Wires {
    /// Where the device's ends are; of TAPs the only ends.
    pub device: Namespace,
    /// Where the tester's ends are: left, right.
    pub tester: [Namespace; 2],
    kind: Kind,
}

/// The interface's name at both ends.
pub(crate) const fn name(side: Side) -> &'static str {
    match side {
        Side::Left => "left",
        Side::Right => "right",
    }
}

/// As `ip` writes it.
pub(crate) fn mac(mac: [u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

impl Wires {
    /// Makes namespaces and wires; all is up afterwards.
    pub fn make(stand: &mut DeviceEnvironment, scenario: &Scenario, kind: Kind) -> Result<Wires, SetupError> {
        let device = stand.namespace('d')?;
        let tester = [stand.namespace('l')?, stand.namespace('r')?];
        let wires = Wires { device, tester, kind };
        stand.run(&wires.device.exec(format!("sysctl -qw {DEVICE_SETTINGS}")))?;
        stand.run(&wires.device.ip("link set lo up"))?;
        for at in Side::BOTH {
            match kind {
                Kind::Veth => wires.veth(stand, scenario, at)?,
                Kind::Tap => wires.tap(stand, scenario, at)?,
            }
        }
        wires.place(stand, scenario.workers);
        for (file, what) in [
            ("/proc/sys/net/core/netdev_max_backlog", "frames that a processor keeps before it loses some"),
            ("/proc/sys/net/core/netdev_budget", "frames of a softirq pass"),
            ("/proc/sys/net/core/dev_weight", "frames taken of the backlog at once"),
        ] {
            if let Ok(value) = fs::read_to_string(file) {
                stand.note(format!("{file}: {} ({what})", value.trim()));
            }
        }
        Ok(wires)
    }

    fn veth(&self, stand: &mut DeviceEnvironment, scenario: &Scenario, at: Side) -> Result<(), SetupError> {
        let (peer, name, mtu) = (self.of_tester(at), name(at), scenario.mtu);
        stand.run(&peer.exec(
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 net.ipv6.conf.default.accept_dad=0",
        ))?;
        stand.run(&self.device.ip(format!(
            "link add {name} address {} mtu {mtu} type veth peer name {name} address {} mtu {mtu} netns {}",
            mac(device_mac(at)),
            mac(side(scenario, at).tester_mac),
            peer.name
        )))?;
        for end in [&self.device, peer] {
            stand.run(&end.exec(format!("ethtool -K {name} gro off gso off tso off tx off rx off")))?;
            stand.run(&end.ip(format!("link set {name} up")))?;
        }
        Ok(())
    }

    /// One that stays when no process has it open, so that it can be set up before the tester comes.
    fn tap(&self, stand: &mut DeviceEnvironment, scenario: &Scenario, at: Side) -> Result<(), SetupError> {
        let name = name(at);
        stand.run(&self.device.ip(format!("tuntap add {name} mode tap")))?;
        stand.run(&self.device.ip(format!(
            "link set {name} address {} mtu {} up",
            mac(device_mac(at)),
            scenario.mtu
        )))?;
        stand.run(&self.device.exec(format!("ethtool -K {name} gro off gso off tso off tx off")))?;
        Ok(())
    }

    /// Tells each end where to receive: the device's on its workers' processors, the tester's on its own.
    pub fn place(&self, stand: &mut DeviceEnvironment, workers: u16) {
        let device = stand.settings.cores.workers(workers);
        let tester = stand.settings.cores.tester.clone();
        for at in Side::BOTH {
            receive_on(stand, &self.device, name(at), &device);
            if self.kind == Kind::Veth {
                receive_on(stand, self.of_tester(at), name(at), &tester);
            }
        }
    }

    /// How the tester attaches.
    pub fn ports(&self, transport: &str, macs: bool) -> Ports {
        let port = |at: Side| {
            let attachment = match self.kind {
                Kind::Veth => Attachment::Interface {
                    namespace: Some(self.of_tester(at).path()),
                    name: name(at).to_owned(),
                    transport: transport.to_owned(),
                },
                Kind::Tap => {
                    Attachment::Tap { namespace: Some(self.device.path()), name: name(at).to_owned() }
                }
            };
            Port { attachment, mac: macs.then(|| device_mac(at)) }
        };
        Ports { left: port(Side::Left), right: port(Side::Right) }
    }

    /// The tester's namespace on a side.
    pub fn of_tester(&self, at: Side) -> &Namespace {
        let [left, right] = &self.tester;
        match at {
            Side::Left => left,
            Side::Right => right,
        }
    }

    /// Whether a probe can be sent from the kernel at the tester's end.
    pub fn probed(&self) -> bool {
        self.kind == Kind::Veth
    }
}

/// Sets RPS of an interface. In a user namespace the kernel refuses it: then it stands among the notes, and what the probe
/// counts says what came of it.
pub(crate) fn receive_on(stand: &mut DeviceEnvironment, at: &Namespace, interface: &str, cores: &[usize]) {
    let line = at.shell(format!("echo {} > /sys/class/net/{interface}/queues/rx-0/rps_cpus", mask(cores)));
    if let Err(why) = stand.run(&line) {
        stand.note(format!("receive placement could not be set: {why}"));
    }
}

/// The MAC of the device's port.
pub(crate) const fn device_mac(at: Side) -> [u8; 6] {
    let [left, right] = DEVICE_MACS;
    match at {
        Side::Left => left,
        Side::Right => right,
    }
}

/// The wires for a transport's name: of `tap` the TAPs, else veth.
pub(crate) fn kind_of(transport: &str) -> Kind {
    if transport == "tap" { Kind::Tap } else { Kind::Veth }
}
