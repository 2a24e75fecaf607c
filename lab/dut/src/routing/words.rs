//! Who forwards, and where routes come from.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::device_environment::need_namespaces;
use crate::program::{can_run, find, need};
use crate::settings::Settings;
use crate::shoal::programs;

/// Where distributions keep FRR's daemons.
pub(super) const FRR: &str = "/usr/lib/frr";

/// Who forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarder {
    /// The router of this project; the daemon works on images of its ports.
    Shoal,
    /// The kernel.
    LinuxRoute,
    /// No forwarder: the daemon has the table for itself, and the machine. It shows what a daemon takes alone.
    None,
}

impl Forwarder {
    /// All.
    pub const ALL: [Forwarder; 3] = [Forwarder::Shoal, Forwarder::LinuxRoute, Forwarder::None];

    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Forwarder::Shoal => "shoal",
            Forwarder::LinuxRoute => "linux-route",
            Forwarder::None => "none",
        }
    }
}

/// Where routes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Daemon {
    /// FRR, by the kernel's table.
    Frr,
    /// FRR, by the kernel's table and FPM.
    FrrFpm,
    /// BIRD 2, by the kernel's table.
    Bird,
    /// The lab writes them into the kernel's table: no daemon, and so what the kernel takes alone.
    Netlink,
    /// The lab sends them by FPM: neither daemon nor kernel.
    Fpm,
}

impl Daemon {
    /// All.
    pub const ALL: [Daemon; 5] = [Daemon::Frr, Daemon::FrrFpm, Daemon::Bird, Daemon::Netlink, Daemon::Fpm];

    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Daemon::Frr => "frr",
            Daemon::FrrFpm => "frr-fpm",
            Daemon::Bird => "bird",
            Daemon::Netlink => "netlink",
            Daemon::Fpm => "fpm",
        }
    }

    /// Whether it has sessions with a peer.
    pub const fn speaks_bgp(self) -> bool {
        matches!(self, Daemon::Frr | Daemon::FrrFpm | Daemon::Bird)
    }

    /// Whether routes reach the forwarder by FPM, which only Shoal has.
    pub const fn is_fpm(self) -> bool {
        matches!(self, Daemon::FrrFpm | Daemon::Fpm)
    }

    /// Whether this is of any use with that forwarder; the reason if not.
    ///
    /// # Errors
    ///
    /// The reason.
    pub fn fits(self, forwarder: Forwarder) -> Result<(), String> {
        match forwarder {
            Forwarder::Shoal => Ok(()),
            _ if self.is_fpm() => Err(format!("{} is for shoal: nothing else here speaks FPM", self.name())),
            Forwarder::None if !self.speaks_bgp() => {
                Err(format!("{} is no daemon that could be alone", self.name()))
            }
            Forwarder::LinuxRoute | Forwarder::None => Ok(()),
        }
    }

    /// Whether both can run here; the reason if not.
    ///
    /// # Errors
    ///
    /// The reason, with the command that helps.
    pub fn available(self, forwarder: Forwarder, settings: &Settings) -> Result<(), String> {
        self.fits(forwarder)?;
        need_namespaces()?;
        need(&[("ping", "iputils-ping"), ("taskset", "util-linux")])?;
        if forwarder == Forwarder::Shoal {
            let (daemon, client) = programs(settings)?;
            if !can_run(&client) {
                return Err(format!("{} is there, its client {} is not", daemon.display(), client.display()));
            }
        }
        let frr = |program: &str| can_run(&Path::new(FRR).join(program));
        match self {
            Daemon::Frr | Daemon::FrrFpm if !(frr("zebra") && frr("bgpd")) => {
                Err("FRR is not installed: apt install frr".into())
            }
            Daemon::Bird if find("bird").is_none() => Err("BIRD is not installed: apt install bird2".into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_together_is_refused_with_the_reason() {
        for (daemon, forwarder, word) in [
            (Daemon::FrrFpm, Forwarder::LinuxRoute, "FPM"),
            (Daemon::Fpm, Forwarder::None, "FPM"),
            (Daemon::Netlink, Forwarder::None, "no daemon"),
        ] {
            let why = daemon.fits(forwarder).unwrap_err();
            assert!(why.contains(word) && why.contains(daemon.name()), "{why}");
        }
        for daemon in Daemon::ALL {
            assert_eq!(daemon.fits(Forwarder::Shoal), Ok(()));
        }
        assert_eq!(Daemon::Netlink.fits(Forwarder::LinuxRoute), Ok(()));
    }
}
