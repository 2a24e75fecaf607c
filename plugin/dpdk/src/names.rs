//! What interfaces are called: as in VPP, by speed and place on the bus; virtual devices by their own name.

use crate::config::pci;
use crate::sys::Info;

/// `RTE_ETH_LINK_SPEED_*`, the fastest first, and what VPP calls ports of that speed.
const SPEEDS: [(u32, &str); 8] = [
    (1 << 15 | 1 << 14, "TwoHundredGigabitEthernet"),
    (1 << 13, "HundredGigabitEthernet"),
    (1 << 12, "FiftySixGigabitEthernet"),
    (1 << 11, "FiftyGigabitEthernet"),
    (1 << 10, "FortyGigabitEthernet"),
    (1 << 9, "TwentyFiveGigabitEthernet"),
    (1 << 8, "TenGigabitEthernet"),
    (1 << 7 | 1 << 6, "GigabitEthernet"),
];

/// Functions of a card that a machine has lent to its guest.
const VIRTUAL_FUNCTIONS: [&str; 9] = [
    "net_e1000_igb_vf",
    "net_ixgbe_vf",
    "net_i40e_vf",
    "net_iavf",
    "net_ena",
    "net_gve",
    "net_fm10k_vf",
    "net_qede_vf",
    "net_hns3_vf",
];

/// Devices of virtual machines say any speed or none: VPP calls them so.
const GIGABIT: [&str; 5] = ["net_virtio", "net_vmxnet3", "net_e1000_em", "net_e1000_igb", "net_e1000_igc"];

/// The interface's name of a port.
pub(crate) fn name(info: &Info, decimal: bool) -> String {
    let Some((domain, bus, slot, function)) = pci(&info.device) else {
        return info
            .device
            .replace(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'), "_");
    };
    let kind = if VIRTUAL_FUNCTIONS.contains(&info.driver.as_str()) {
        "VirtualFunctionEthernet"
    } else if GIGABIT.contains(&info.driver.as_str()) {
        "GigabitEthernet"
    } else {
        let found = SPEEDS.iter().find(|(bits, _)| info.speed_capa & bits != 0);
        found.map_or("UnknownEthernet", |(_, name)| name)
    };
    let domain = match (domain, decimal) {
        (0, _) => String::new(),
        (n, true) => format!("{n}/"),
        (n, false) => format!("{n:x}/"),
    };
    if decimal {
        format!("{kind}{domain}{bus}/{slot}/{function}")
    } else {
        format!("{kind}{domain}{bus:x}/{slot:x}/{function:x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_vpps() {
        let of = |device: &str, driver: &str, speed_capa, decimal| {
            let (device, driver) = (device.to_owned(), driver.to_owned());
            name(&Info { device, driver, speed_capa, ..Info::default() }, decimal)
        };
        assert_eq!(of("0000:00:08.0", "net_virtio", 0, false), "GigabitEthernet0/8/0");
        assert_eq!(of("0000:00:10.0", "net_e1000_em", 1 << 5, false), "GigabitEthernet0/10/0");
        assert_eq!(of("0000:00:10.0", "net_e1000_em", 1 << 5, true), "GigabitEthernet0/16/0");
        assert_eq!(of("0000:3b:00.1", "net_ixgbe", 1 << 8, false), "TenGigabitEthernet3b/0/1");
        assert_eq!(of("0000:3b:00.1", "net_i40e", 1 << 10, false), "FortyGigabitEthernet3b/0/1");
        assert_eq!(of("0001:3b:00.1", "net_iavf", 1 << 10, false), "VirtualFunctionEthernet1/3b/0/1");
        assert_eq!(of("net_null0", "net_null", 0, false), "net_null0");
        assert_eq!(of("0000:3b:00.1", "net_x", 0, false), "UnknownEthernet3b/0/1");
    }
}
