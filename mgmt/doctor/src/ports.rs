//! The network interfaces and NICs of the machine, as `/sys` and `/proc` show them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::drivers;
use crate::root::{Root, plain};

/// Bytes of `/proc/net/dev`; 65,536 interfaces need half of it.
const DEV: usize = 16 << 20;
/// Ports that are listed; the rest is counted.
const MOST_PORTS: usize = 1024;
/// The kernel's longest name of an interface.
const NAME: usize = 15;
/// Interfaces below one.
const MOST_LOWER: usize = 256;
const NET: &str = "sys/class/net";

/// What an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A device on a bus, virtio included.
    Physical,
    Loopback,
    Veth,
    Tap,
    Tun,
    Bridge,
    Bond,
    Vlan,
    Wireless,
    /// Tunnels and other interfaces the kernel made.
    Virtual,
    /// Nothing tells.
    Unknown,
}

impl Kind {
    /// What a router is likely to want comes first.
    fn rank(self) -> u8 {
        match self {
            Kind::Physical => 0,
            Kind::Veth | Kind::Tap | Kind::Tun | Kind::Unknown => 1,
            Kind::Bridge | Kind::Bond | Kind::Vlan | Kind::Wireless | Kind::Virtual => 2,
            Kind::Loopback => 3,
        }
    }
}

/// Whether packets can pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Link {
    Up,
    /// Up, without a carrier.
    NoCarrier,
    /// Switched off.
    Down,
    Unknown,
}

/// One interface.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Port {
    /// Its name, escaped.
    pub name: String,
    #[serde(skip)]
    pub raw: OsString,
    pub kind: Kind,
    pub driver: Option<String>,
    pub model: Option<String>,
    /// Address on the bus.
    pub bus: Option<String>,
    pub mac: Option<String>,
    pub link: Link,
    /// Mbit/s.
    pub speed: Option<u32>,
    pub rx_queues: usize,
    pub tx_queues: usize,
    pub mtu: Option<u32>,
    pub numa_node: Option<u32>,
    pub iommu_group: Option<String>,
    /// The bridge or bond it is a member of.
    pub master: Option<String>,
    /// Frames without an Ethernet header.
    pub raw_ip: bool,
}

/// A network card that has no interface.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Card {
    pub bus: String,
    pub model: String,
    pub driver: Option<String>,
    pub iommu_group: Option<String>,
}

/// All that is there.
#[derive(Debug)]
pub(crate) struct Ports {
    pub listed: Vec<Port>,
    pub cards: Vec<Card>,
    /// Interfaces that were left out.
    pub more: usize,
    /// `/sys` shows another network namespace than this process is in.
    pub other_namespace: bool,
}

impl Ports {
    pub fn read(root: &Root) -> Self {
        let is_one = |n: &OsString| n.len() <= NAME && root.is_folder(Path::new(NET).join(n));
        let mut names: Vec<OsString> = root.names(NET).into_iter().filter(is_one).collect();
        let here = names_of_process(root);
        // A process in a new network namespace sees the /sys of the one it came from until it is mounted again.
        let other_namespace = here.as_ref().is_some_and(|here| here.iter().ne(&names));
        if let Some(here) = here.filter(|_| other_namespace) {
            names = here.into_iter().collect();
        } else {
            // Ports with a device behind them are listed whatever else there is.
            names.sort_by_key(|n| !root.exists(Path::new(NET).join(n).join("device")));
        }
        let more = names.len().saturating_sub(MOST_PORTS);
        let read = |name: &OsString| if other_namespace { Port::named(name) } else { Port::read(root, name) };
        let mut ports: Vec<Port> = names.iter().take(MOST_PORTS).map(read).collect();
        ports.sort_by_key(|p| (p.kind.rank(), p.raw.clone()));
        Self {
            listed: ports,
            cards: if other_namespace { Vec::new() } else { cards(root) },
            more,
            other_namespace,
        }
    }
}

/// An interface and all it is made on: a VLAN's port, a bond's members. Listed or not: safety depends on it.
pub(crate) fn with_lower(root: &Root, name: &OsStr) -> BTreeSet<OsString> {
    let mut found = BTreeSet::from([name.to_owned()]);
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        for entry in root.names(Path::new(NET).join(&name)) {
            let Some(lower) = entry.as_bytes().strip_prefix(b"lower_") else { continue };
            if found.len() < MOST_LOWER && found.insert(OsStr::from_bytes(lower).to_owned()) {
                open.push(OsStr::from_bytes(lower).to_owned());
            }
        }
    }
    found
}

/// The interfaces of this process's network namespace.
fn names_of_process(root: &Root) -> Option<BTreeSet<OsString>> {
    let text = root.bytes("proc/net/dev", DEV)?;
    let names = text.split(|&b| b == b'\n').skip(2).filter_map(|line| {
        let colon = line.iter().position(|&b| b == b':')?;
        Some(OsString::from_vec(line.get(..colon)?.trim_ascii().to_vec()))
    });
    Some(names.filter(|n| (1..=NAME).contains(&n.len())).collect())
}

impl Port {
    /// One of which only the name is known.
    fn named(name: &OsStr) -> Self {
        let kind = if name == "lo" { Kind::Loopback } else { Kind::Unknown };
        Self {
            name: plain(name.as_bytes()),
            raw: name.to_owned(),
            kind,
            driver: None,
            model: None,
            bus: None,
            mac: None,
            link: Link::Unknown,
            speed: None,
            rx_queues: 0,
            tx_queues: 0,
            mtu: None,
            numa_node: None,
            iommu_group: None,
            master: None,
            raw_ip: false,
        }
    }

    fn read(root: &Root, name: &OsStr) -> Self {
        let dir = Path::new(NET).join(name);
        let of = |file: &str| dir.join(file);
        let queues = root.names(of("queues"));
        let count = |way: &str| queues.iter().filter(|q| q.as_bytes().starts_with(way.as_bytes())).count();
        let kind = kind(root, &dir, name);
        let mut port = Self {
            kind,
            driver: root.link(of("device/driver")).or_else(|| implied(kind).map(Into::into)),
            mac: root.word(of("address")).filter(|mac| mac.len() == 17),
            link: link(root, &dir),
            speed: root.number(of("speed")).filter(|&speed: &u32| speed > 0 && speed <= 10_000_000),
            rx_queues: count("rx-"),
            tx_queues: count("tx-"),
            mtu: root.number(of("mtu")),
            numa_node: root.number(of("device/numa_node")),
            iommu_group: root.link(of("device/iommu_group")),
            master: root.link(of("master")),
            raw_ip: matches!(root.number(of("type")), Some(512u32 | 519 | 65534)),
            ..Self::named(name)
        };
        if kind == Kind::Physical {
            port.on_bus(root, &of("device"));
        }
        port
    }

    /// Fills in what the bus knows; a virtio device lies below the PCI device that carries it.
    fn on_bus(&mut self, root: &Root, device: &Path) {
        let Some(real) = root.real(device) else { return };
        let Some(pci) = real.ancestors().find(|path| path.file_name().is_some_and(is_pci)) else {
            self.bus = real.file_name().map(|n| plain(n.as_bytes()));
            return;
        };
        self.bus = pci.file_name().map(|n| plain(n.as_bytes()));
        let Ok(inner) = pci.strip_prefix(real_root(root)).map(PathBuf::from) else { return };
        self.model = pci_model(root, &inner);
        self.iommu_group = self.iommu_group.take().or_else(|| root.link(inner.join("iommu_group")));
        self.numa_node = self.numa_node.or_else(|| root.number(inner.join("numa_node")));
    }
}

fn real_root(root: &Root) -> PathBuf {
    root.path().canonicalize().unwrap_or_else(|_| root.path().to_owned())
}

/// The driver of an interface that has no device.
fn implied(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Veth => Some("veth"),
        Kind::Tap | Kind::Tun => Some("tun"),
        _ => None,
    }
}

fn kind(root: &Root, dir: &Path, name: &OsStr) -> Kind {
    let of = |file: &str| dir.join(file);
    let number = |file: &str| root.number::<u32>(of(file));
    if number("type") == Some(772) {
        return Kind::Loopback;
    }
    if let Some(flags) = root.text(of("tun_flags")) {
        // IFF_TUN is 1, IFF_TAP is 2.
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(2);
        return if flags & 1 == 1 { Kind::Tun } else { Kind::Tap };
    }
    let uevent = root.text(of("uevent")).unwrap_or_default();
    match uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE=")) {
        Some("bridge") => return Kind::Bridge,
        Some("bond") => return Kind::Bond,
        Some("vlan") => return Kind::Vlan,
        Some("wlan") => return Kind::Wireless,
        Some("dsa") | None => {}
        Some(_) => return Kind::Virtual,
    }
    if root.is_folder(of("bridge")) {
        Kind::Bridge
    } else if root.is_folder(of("bonding")) {
        Kind::Bond
    } else if root.exists(of("device")) {
        Kind::Physical
    } else if number("type") == Some(1)
        && (number("iflink") != number("ifindex") || name.as_bytes().starts_with(b"veth"))
    {
        // Nothing in /sys says veth. It has a partner, as a VLAN has its port, and none of those types.
        Kind::Veth
    } else {
        Kind::Virtual
    }
}

fn link(root: &Root, dir: &Path) -> Link {
    let flags =
        root.text(dir.join("flags")).and_then(|f| u32::from_str_radix(f.trim_start_matches("0x"), 16).ok());
    match (flags, root.word(dir.join("operstate")).as_deref()) {
        // IFF_UP
        (Some(flags), _) if flags & 1 == 0 => Link::Down,
        (_, Some("up")) => Link::Up,
        (_, Some("down" | "lowerlayerdown")) => Link::NoCarrier,
        _ => Link::Unknown,
    }
}

/// `0000:03:00.0`
pub(crate) fn is_pci(name: &OsStr) -> bool {
    let shape = |b: (usize, &u8)| match b.0 {
        4 | 7 => *b.1 == b':',
        10 => *b.1 == b'.',
        _ => b.1.is_ascii_hexdigit(),
    };
    name.len() == 12 && name.as_bytes().iter().enumerate().all(shape)
}

fn hex(root: &Root, path: PathBuf) -> Option<u32> {
    u32::from_str_radix(root.text(path)?.trim_start_matches("0x"), 16).ok()
}

fn pci_model(root: &Root, device: &Path) -> Option<String> {
    let vendor = hex(root, device.join("vendor"))?;
    let number = hex(root, device.join("device"))?;
    Some(drivers::model(vendor as u16, number as u16))
}

/// PCI network cards without an interface: taken by vfio-pci, or without a driver.
fn cards(root: &Root) -> Vec<Card> {
    let dir = Path::new("sys/bus/pci/devices");
    let names = root.names(dir);
    let card = |name: &OsString| {
        let device = dir.join(name);
        // Class 02 is a network controller. Below a virtio device the interface hangs one step deeper.
        let network = hex(root, device.join("class"))? >> 16 == 2;
        let has_interface = root.exists(device.join("net"))
            || root.names(&device).iter().any(|sub| root.exists(device.join(sub).join("net")));
        (is_pci(name) && network && !has_interface).then(|| Card {
            bus: plain(name.as_bytes()),
            model: pci_model(root, &device).unwrap_or_else(|| "unknown".into()),
            driver: root.link(device.join("driver")),
            iommu_group: root.link(device.join("iommu_group")),
        })
    };
    names.iter().filter_map(card).collect()
}
