//! All devices by name.

use shoal_lab_plan::{Device, DeviceError, nearest};
use thiserror::Error;

use crate::error::SetupError;
use crate::kernel::Role;
use crate::linux::Linux;
use crate::ovs::Ovs;
use crate::settings::Settings;
use crate::shoal::Shoal;
use crate::testpmd::Testpmd;
use crate::user_space::UserSpace;
use crate::vpp::Vpp;
use crate::wire::Wire;

/// A device that the lab knows, whether it is installed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// As users write it.
    pub name: &'static str,
    /// What it is, for `shoal-lab list duts`.
    pub what: &'static str,
    /// What it can do, in the words of [`Forwarding::name`](shoal_lab_plan::Forwarding::name).
    pub forwardings: &'static [&'static str],
    /// Whether it learns addresses when it bridges, and can be told to forget them
    /// ([`Reset::Flush`](shoal_lab_plan::Reset::Flush)).
    pub learns: bool,
}

const ALL_OF_THEM: &[&str] = &["route", "cross-connect", "bridge", "snat"];

/// All of them.
pub const KNOWN: &[Known] = &[
    Known { name: "shoal", what: "this project's router", forwardings: ALL_OF_THEM, learns: true },
    Known {
        name: "linux-route",
        what: "this kernel's IPv4 and IPv6 routing, in a namespace",
        forwardings: &["route"],
        learns: false,
    },
    Known { name: "linux-bridge", what: "this kernel's bridge", forwardings: &["bridge"], learns: true },
    Known {
        name: "linux-nft",
        what: "this kernel's source NAT, by nftables",
        forwardings: &["snat"],
        learns: false,
    },
    Known {
        name: "linux-iptables",
        what: "this kernel's source NAT, by iptables",
        forwardings: &["snat"],
        learns: false,
    },
    Known {
        name: "testpmd-io",
        what: "DPDK's test program, frames as they are",
        forwardings: &["cross-connect", "bridge"],
        learns: false,
    },
    Known {
        name: "testpmd-mac",
        what: "DPDK's test program, MACs rewritten",
        forwardings: &["route", "cross-connect"],
        learns: false,
    },
    Known {
        name: "ovs",
        what: "Open vSwitch in user space, with the kernel's interfaces",
        forwardings: &["cross-connect", "bridge"],
        learns: true,
    },
    Known {
        name: "ovs-dpdk",
        what: "Open vSwitch in user space, with DPDK's devices",
        forwardings: &["cross-connect", "bridge"],
        learns: true,
    },
    Known { name: "vpp", what: "FD.io VPP", forwardings: ALL_OF_THEM, learns: true },
    Known {
        name: "wire",
        what: "no device: the tester's ports joined, for self-tests",
        forwardings: ALL_OF_THEM,
        learns: false,
    },
];

/// No device has this name.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("no device is called '{name}'; the nearest is '{nearest}', all are: {all}")]
pub struct UnknownDevice {
    /// What was asked for.
    pub name: String,
    /// The name most like it.
    pub nearest: &'static str,
    /// All names.
    pub all: String,
}

/// The device of this name, not started.
///
/// # Errors
///
/// If there is none.
pub fn device(name: &str, settings: &Settings) -> Result<Box<dyn Device>, UnknownDevice> {
    let settings = settings.clone();
    Ok(match name {
        "shoal" => Box::new(UserSpace::new(Shoal, settings)),
        "testpmd-io" => Box::new(UserSpace::new(Testpmd::Io, settings)),
        "testpmd-mac" => Box::new(UserSpace::new(Testpmd::Mac, settings)),
        "linux-route" => Box::new(Linux::new(Role::Route, settings)),
        "linux-bridge" => Box::new(Linux::new(Role::Bridge, settings)),
        "linux-nft" => Box::new(Linux::new(Role::Nft, settings)),
        "linux-iptables" => Box::new(Linux::new(Role::Iptables, settings)),
        "ovs" => Box::new(UserSpace::new(Ovs::Netdev, settings)),
        "ovs-dpdk" => Box::new(UserSpace::new(Ovs::Dpdk, settings)),
        "vpp" => Box::new(UserSpace::new(Vpp, settings)),
        "wire" => Box::new(Wire::new(settings)),
        _ => {
            let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
            return Err(UnknownDevice {
                name: name.to_owned(),
                nearest: nearest(name, KNOWN.iter().map(|k| k.name)),
                all: names.join(", "),
            });
        }
    })
}

/// All devices, in the order of [`KNOWN`].
pub fn devices(settings: &Settings) -> Vec<Box<dyn Device>> {
    KNOWN.iter().filter_map(|known| device(known.name, settings).ok()).collect()
}

/// An error if the device cannot be measured over this wire.
pub(crate) fn check_transport(device: &dyn Device, transport: &str) -> Result<(), DeviceError> {
    let able = device.transports();
    if able.contains(&transport) {
        return Ok(());
    }
    Err(DeviceError::Cannot {
        device: device.name().to_owned(),
        what: format!("be measured over '{transport}', only over {}", able.join(", ")),
    })
}

/// For `map_err` behind the set-up of the device of this name.
pub(crate) fn not_started(device: &str) -> impl FnOnce(SetupError) -> DeviceError + use<> {
    let device = device.to_owned();
    move |why| DeviceError::Start { device, reason: why.to_string() }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use shoal_lab_plan::{Forwarding, Nat};

    use super::*;
    use crate::routes::tests::scenario;

    #[test]
    fn every_known_name_is_a_device_of_that_name() {
        let names: HashSet<&str> = KNOWN.iter().map(|k| k.name).collect();
        assert_eq!(names.len(), KNOWN.len());
        for known in KNOWN {
            assert_eq!(device(known.name, &Settings::default()).unwrap().name(), known.name);
        }
        assert_eq!(devices(&Settings::default()).len(), KNOWN.len());
    }

    #[test]
    fn the_readme_has_each_device_with_its_wires() {
        let readme = include_str!("../README.md");
        let rows: Vec<&str> =
            readme.lines().filter(|l| l.starts_with("| `") && !l.contains(".rs`")).collect();
        let names: Vec<&str> = rows.iter().filter_map(|l| l.split('`').nth(1)).collect();
        assert_eq!(names, KNOWN.iter().map(|k| k.name).collect::<Vec<_>>());
        for (row, known) in rows.iter().zip(KNOWN) {
            let wires = row.split('|').nth(3).unwrap().trim();
            if wires != "the same" {
                assert_eq!(
                    wires,
                    device(known.name, &Settings::default()).unwrap().transports().join(", "),
                    "{row}"
                );
            }
        }
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let Err(error) = device("linux-rout", &Settings::default()) else { panic!("there is such a device") };
        assert_eq!(error.nearest, "linux-route");
        assert!(
            error
                .to_string()
                .starts_with("no device is called 'linux-rout'; the nearest is 'linux-route', all are: ")
        );
    }

    #[test]
    fn what_is_not_among_its_forwardings_no_device_offers() {
        let nat = Nat { first: [203, 0, 113, 1].into(), last: [203, 0, 113, 9].into() };
        for forwarding in
            [Forwarding::Route, Forwarding::CrossConnect, Forwarding::Bridge, Forwarding::Snat(nat)]
        {
            for known in KNOWN.iter().filter(|k| !k.forwardings.contains(&forwarding.name())) {
                let mut scenario = scenario();
                scenario.forwarding = forwarding.clone();
                let reason =
                    device(known.name, &Settings::default()).unwrap().available(&scenario).unwrap_err();
                assert!(reason.contains(forwarding.name()), "{}: {reason}", known.name);
            }
        }
    }

    #[test]
    fn what_learns_can_bridge() {
        let learning: Vec<&Known> = KNOWN.iter().filter(|k| k.learns).collect();
        assert!(learning.len() > 1 && learning.iter().all(|k| k.forwardings.contains(&"bridge")));
    }

    #[test]
    fn a_wrong_wire_is_refused_with_those_that_go() {
        let device = device("wire", &Settings::default()).unwrap();
        assert!(check_transport(&*device, "af-xdp").is_ok());
        let error = check_transport(&*device, "memif").unwrap_err().to_string();
        assert_eq!(error, "wire cannot be measured over 'memif', only over af-packet, af-xdp");
    }
}
