//! What is known of the kernel's network drivers.

/// A version of Linux: `(6, 12)`.
pub(crate) type Version = (u32, u32);

/// What a driver of the kernel can do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Driver {
    /// Its name as `device/driver` has it.
    pub name: &'static str,
    /// Since when XDP programs run in it, before the kernel has made a packet of a frame.
    pub native: Option<Version>,
    /// Since when AF_XDP receives without copying.
    pub zero_copy: Option<Version>,
    /// How DPDK 22.11 takes the device.
    pub dpdk: Dpdk,
}

/// How DPDK takes a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dpdk {
    /// Not at all.
    No,
    /// The device is taken from the kernel, through vfio-pci.
    Vfio,
    /// Beside the kernel's driver, which stays.
    Shared,
}

const fn driver(
    name: &'static str,
    native: Option<Version>,
    zero_copy: Option<Version>,
    dpdk: Dpdk,
) -> Driver {
    Driver { name, native, zero_copy, dpdk }
}

use Dpdk::{No, Shared, Vfio};

/// By the kernel's history: the release in which each driver learnt it. Zero-copy that takes both directions counts.
#[rustfmt::skip]
static DRIVERS: &[Driver] = &[
    driver("atlantic",        Some((5, 19)), None,          Vfio),
    driver("bnx2x",           None,          None,          Vfio),
    driver("bnxt_en",         Some((4, 11)), None,          Vfio),
    driver("cpsw",            Some((5, 3)),  None,          No),
    driver("cxgb4",           None,          None,          Vfio),
    driver("e1000",           None,          None,          Vfio),
    driver("e1000e",          None,          None,          Vfio),
    driver("ena",             Some((5, 6)),  None,          Vfio),
    driver("enic",            None,          None,          Vfio),
    driver("fec",             Some((6, 2)),  None,          No),
    driver("fm10k",           None,          None,          Vfio),
    driver("fsl_dpaa2_eth",   Some((5, 0)),  Some((6, 2)),  No),
    driver("fsl_enetc",       Some((5, 13)), None,          Vfio),
    driver("gve",             Some((6, 4)),  None,          Vfio),
    driver("hinic",           None,          None,          Vfio),
    driver("hns3",            None,          None,          Vfio),
    driver("hv_netvsc",       Some((5, 6)),  None,          Shared),
    driver("i40e",            Some((4, 13)), Some((4, 20)), Vfio),
    driver("iavf",            None,          None,          Vfio),
    driver("ice",             Some((5, 5)),  Some((5, 5)),  Vfio),
    driver("igb",             Some((5, 10)), Some((6, 14)), Vfio),
    driver("igc",             Some((5, 13)), Some((5, 14)), Vfio),
    driver("ixgbe",           Some((4, 12)), Some((4, 20)), Vfio),
    driver("ixgbevf",         Some((4, 17)), None,          Vfio),
    driver("mana",            Some((5, 17)), None,          No),
    driver("mlx4_core",       Some((4, 8)),  None,          Shared),
    driver("mlx4_en",         Some((4, 8)),  None,          Shared),
    driver("mlx5_core",       Some((4, 9)),  Some((5, 3)),  Shared),
    driver("mvneta",          Some((5, 5)),  None,          No),
    driver("mvpp2",           Some((5, 9)),  None,          No),
    driver("netsec",          Some((5, 3)),  None,          No),
    driver("nfp",             Some((4, 10)), None,          Vfio),
    driver("nicvf",           Some((4, 12)), None,          Vfio),
    driver("qede",            Some((4, 10)), None,          Vfio),
    driver("r8169",           None,          None,          No),
    driver("sfc",             Some((5, 5)),  None,          Vfio),
    driver("st_gmac",         Some((5, 13)), Some((5, 13)), No),
    driver("intel-eth-pci",   Some((5, 13)), Some((5, 13)), No),
    driver("tsnep",           Some((6, 3)),  Some((6, 4)),  No),
    driver("tun",             Some((4, 14)), None,          No),
    driver("veth",            Some((4, 19)), None,          No),
    driver("virtio_net",      Some((4, 10)), Some((6, 12)), Vfio),
    driver("vmxnet3",         Some((6, 6)),  None,          Vfio),
    driver("vif",             Some((5, 9)),  None,          No),
];

/// What is known of a driver.
pub(crate) fn known(name: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| driver.name == name)
}

/// Names that people know cards by: vendor, device, name.
#[rustfmt::skip]
static MODELS: &[(u16, u16, &str)] = &[
    (0x8086, 0x100e, "82540EM"), (0x8086, 0x10d3, "82574L"), (0x8086, 0x1521, "I350"), (0x8086, 0x1533, "I210"),
    (0x8086, 0x1539, "I211"), (0x8086, 0x15f2, "I225-LM"), (0x8086, 0x15f3, "I225-V"), (0x8086, 0x125b, "I226-LM"),
    (0x8086, 0x125c, "I226-V"), (0x8086, 0x125d, "I226-IT"), (0x8086, 0x10fb, "82599"), (0x8086, 0x1528, "X540"),
    (0x8086, 0x1563, "X550"), (0x8086, 0x1572, "X710"), (0x8086, 0x1581, "X710"), (0x8086, 0x15ff, "X710-T"),
    (0x8086, 0x1583, "XL710"), (0x8086, 0x1584, "XL710"), (0x8086, 0x158b, "XXV710"), (0x8086, 0x1592, "E810-C"),
    (0x8086, 0x1593, "E810-C"), (0x8086, 0x159b, "E810-XXV"), (0x8086, 0x1889, "E800 VF"), (0x8086, 0x154c, "X710 VF"),
    (0x15b3, 0x1003, "ConnectX-3"), (0x15b3, 0x1013, "ConnectX-4"), (0x15b3, 0x1015, "ConnectX-4 Lx"),
    (0x15b3, 0x1017, "ConnectX-5"), (0x15b3, 0x1019, "ConnectX-5 Ex"), (0x15b3, 0x101b, "ConnectX-6"),
    (0x15b3, 0x101d, "ConnectX-6 Dx"), (0x15b3, 0x101f, "ConnectX-6 Lx"), (0x15b3, 0x1021, "ConnectX-7"),
    (0x14e4, 0x16d7, "BCM57414"), (0x14e4, 0x1750, "BCM57508"), (0x14e4, 0x1751, "BCM57504"), (0x14e4, 0x1639, "BCM5709"),
    (0x10ec, 0x8168, "RTL8111"), (0x10ec, 0x8125, "RTL8125"), (0x1d6a, 0x94c0, "AQC113"), (0x1d0f, 0xec20, "ENA"),
    (0x1af4, 0x1000, "virtio"), (0x1af4, 0x1041, "virtio"), (0x15ad, 0x07b0, "vmxnet3"), (0x1ae0, 0x0042, "gVNIC"),
];

/// The name of a PCI device; its numbers where the name is unknown.
pub(crate) fn model(vendor: u16, device: u16) -> String {
    let known = MODELS.iter().find(|(v, d, _)| (*v, *d) == (vendor, device));
    known.map_or_else(|| format!("{vendor:04x}:{device:04x}"), |(_, _, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_copy_is_never_older_than_xdp_itself() {
        for driver in DRIVERS {
            assert!(driver.zero_copy.is_none_or(|zero_copy| driver.native <= Some(zero_copy)), "{driver:?}");
        }
        assert_eq!(known("igc").unwrap().zero_copy, Some((5, 14)));
        assert_eq!(known("igc2"), None);
        assert_eq!(model(0x8086, 0x1572), "X710");
        assert_eq!(model(0x1234, 0xabc), "1234:0abc");
    }
}
