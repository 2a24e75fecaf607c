//! Devices on the PCI bus get a driver that hands them to programs.

use std::fs;
use std::path::{Path, PathBuf};

/// Drivers that hand devices to programs, the best first.
const HAND_OVER: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];
/// Drivers that DPDK shares a device with.
const SHARING: [&str; 2] = ["mlx5_core", "mlx4_core"];

/// Where the bus is.
pub(crate) struct Bus(PathBuf);

impl Bus {
    /// The system's.
    pub(crate) fn system() -> Self {
        Bus(PathBuf::from("/sys/bus/pci"))
    }

    fn device(&self, address: &str) -> PathBuf {
        self.0.join("devices").join(address)
    }

    /// The driver that a device has.
    pub(crate) fn driver(&self, address: &str) -> Option<String> {
        let link = fs::read_link(self.device(address).join("driver")).ok()?;
        Some(link.file_name()?.to_string_lossy().into_owned())
    }

    /// Names of the host's interfaces on a device that are up.
    fn up(&self, address: &str) -> Vec<String> {
        let mut nets = vec![self.device(address).join("net")];
        // Of virtio, a device below the device.
        if let Ok(below) = fs::read_dir(self.device(address)) {
            nets.extend(below.flatten().map(|d| d.path().join("net")).filter(|n| n.is_dir()));
        }
        let names = nets.iter().filter_map(|n| fs::read_dir(n).ok()).flatten().flatten();
        let up = |d: &fs::DirEntry| {
            let flags = fs::read_to_string(d.path().join("flags")).unwrap_or_default();
            u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).is_ok_and(|f| f & 1 != 0)
        };
        names.filter(up).map(|d| d.file_name().to_string_lossy().into_owned()).collect()
    }

    fn has_driver(&self, name: &str) -> bool {
        self.0.join("drivers").join(name).is_dir()
    }

    /// Gives a device the driver that is asked for, or the best there is; one that has such a driver keeps it.
    ///
    /// # Errors
    /// There is no such device or driver, an interface of the host would be lost, or the system says no.
    pub(crate) fn bind(&self, address: &str, asked: Option<&str>) -> Result<(), String> {
        if !self.device(address).is_dir() {
            return Err(format!("there is no device {address} on the PCI bus, expected one of `lspci -D`"));
        }
        let has = self.driver(address);
        let fine = |has: &str| match asked {
            None | Some("auto") => HAND_OVER.contains(&has) || SHARING.contains(&has),
            Some(asked) => has == asked,
        };
        if has.as_deref().is_some_and(fine) {
            return Ok(());
        }
        let driver = match asked {
            None | Some("auto") => {
                let found = HAND_OVER.into_iter().find(|d| self.has_driver(d));
                found.ok_or_else(|| {
                    format!(
                        "{address}: no driver hands devices to programs here, expected `modprobe vfio-pci'"
                    )
                })?
            }
            Some(asked) if self.has_driver(asked) => asked,
            Some(asked) => return Err(format!("there is no driver {asked}, expected `modprobe {asked}'")),
        };
        if let Some(name) = self.up(address).first() {
            return Err(format!(
                "{address} is the host's interface {name}, which is up; `ip link set {name} down' gives it up"
            ));
        }
        let device = self.device(address);
        let write = |path: &Path, text: &str| {
            fs::write(path, text).map_err(|e| format!("{address}: {}: {e}", path.display()))
        };
        write(&device.join("driver_override"), driver)?;
        if has.is_some() {
            write(&device.join("driver").join("unbind"), address)?;
        }
        write(&self.0.join("drivers_probe"), address)?;
        match self.driver(address) {
            Some(now) if now == driver => Ok(()),
            now => {
                let now = now.unwrap_or_else(|| "no driver".to_owned());
                Err(format!("{address} did not take {driver}, it has {now}; `dmesg' says why"))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A bus with one device that has a driver and an interface of the host.
    fn bus(test: &str, driver: &str, flags: &str) -> (PathBuf, Bus) {
        let root = std::env::temp_dir().join(format!("shoal-dpdk-bind-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let device = root.join("devices/0000:00:05.0");
        fs::create_dir_all(device.join("virtio2/net/eth7")).unwrap();
        fs::write(device.join("virtio2/net/eth7/flags"), flags).unwrap();
        for name in ["uio_pci_generic", driver] {
            fs::create_dir_all(root.join("drivers").join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("drivers").join(driver), device.join("driver")).unwrap();
        let bus = Bus(root.clone());
        (root, bus)
    }

    #[test]
    fn a_device_whose_interface_is_up_stays_the_hosts() {
        let (root, bus) = bus("up", "virtio-pci", "0x1003\n");
        let why = bus.bind("0000:00:05.0", None).unwrap_err();
        assert!(why.contains("eth7") && why.contains("ip link set eth7 down"), "{why}");
        assert!(!root.join("devices/0000:00:05.0/driver_override").exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_cannot_be_is_said() {
        let (root, bus) = bus("wrong", "virtio-pci", "0x1002\n");
        assert!(bus.bind("0000:00:06.0", None).unwrap_err().contains("no device 0000:00:06.0"));
        assert!(bus.bind("0000:00:05.0", Some("vfio-pci")).unwrap_err().contains("modprobe vfio-pci"));
        // Nothing behind these files binds anything.
        let why = bus.bind("0000:00:05.0", None).unwrap_err();
        assert!(why.contains("did not take uio_pci_generic, it has virtio-pci"), "{why}");
        let written = |name: &str| fs::read_to_string(root.join("devices/0000:00:05.0").join(name)).unwrap();
        assert_eq!(
            (written("driver_override").as_str(), written("driver/unbind").as_str()),
            ("uio_pci_generic", "0000:00:05.0")
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_device_that_has_such_a_driver_keeps_it() {
        let (root, bus) = bus("kept", "vfio-pci", "0x1003\n");
        bus.bind("0000:00:05.0", None).unwrap();
        bus.bind("0000:00:05.0", Some("auto")).unwrap();
        bus.bind("0000:00:05.0", Some("vfio-pci")).unwrap();
        fs::remove_dir_all(root).unwrap();
    }
}
