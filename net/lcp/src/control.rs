//! The control plane: pairs, and what is passed on to the kernel.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::time::Duration;

use shoal_buffer::SwIfIndex;
use shoal_interface::{
    DEVICE_INPUT_ARC, Event, HostChange, HostLayer, HostPort, HostPorts, HostSide, IfFlags, Interfaces,
};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::{Control, InitError};

use shoal_ethernet::Ethernet;
use shoal_graph::Edge;
use shoal_wire::EtherType;

use crate::LcpError;
use crate::node::{LinuxGroups, Protocols};
use crate::peers::Peers;

/// The features of an interface with a pair: arc and node.
const PHY_FEATURES: [(&str, &str); 5] = [
    (shoal_ip4::LOCAL_ARC, "linux-cp-ip4-local"),
    (shoal_ip6::LOCAL_ARC, "linux-cp-ip6-local"),
    (shoal_ip4::MULTICAST_ARC, "linux-cp-ip4-mcast"),
    (shoal_ip6::MULTICAST_ARC, "linux-cp-ip6-mcast"),
    (shoal_arp::ARC, "linux-cp-arp-phy"),
];

mod batch;
mod facts;
mod links;
mod listing;
mod mirror;
mod multicast;
mod netlink;
mod next_hops;
mod route_events;
mod routes;
mod settings;
mod slices;
mod sync;
mod tables;
mod vlans;
mod vrfs;
mod zebra;

pub use netlink::{Announced, Difference, Drift, FollowInfo, PendingRoute, Subject};
pub use next_hops::resilient;
pub use tables::TablePair;
pub use vlans::VlanInfo;
pub use vrfs::VrfInfo;

/// A pair, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PairInfo {
    /// Its number.
    pub index: u32,
    /// The interface.
    pub phy: SwIfIndex,
    /// The interface to the kernel.
    pub host: SwIfIndex,
    /// The kernel's name of it.
    pub name: String,
    /// The kernel's number of it.
    pub host_index: u32,
    /// Its namespace.
    pub netns: Option<String>,
    /// What it carries.
    pub layer: HostLayer,
    /// Whether the image is a VLAN that was made in Linux on the image of a port.
    pub is_vlan: bool,
}

/// Addresses with the lengths of their networks.
type AddressSet = BTreeSet<(IpAddr, u8)>;

struct Pair {
    index: u32,
    host: SwIfIndex,
    name: String,
    netns: Option<String>,
    /// The kernel's number of the image; 0 of one that is none of the kernel's.
    host_index: u32,
    layer: HostLayer,
    /// Addresses the kernel was given.
    addresses: Vec<(IpAddr, u8)>,
    /// What the kernel was told of addresses and has not confirmed yet.
    expected: Vec<((IpAddr, u8), bool)>,
    /// Those that Linux has given the interface.
    from_linux: AddressSet,
    /// Those that had no room in the table that the interface has gone to; whether Linux has given them.
    lost: BTreeMap<(IpAddr, u8), bool>,
    /// Of an image that is a VLAN of Linux on the image of a port: what else is known.
    vlan: Option<vlans::OfVlan>,
    /// The tables that Linux has put the interface into: those of a VRF, or of the main table where Linux has made the interface.
    vrf: Option<TablePair>,
    /// Those that it was in before.
    before_vrf: TablePair,
    /// Those that it is in.
    tables: TablePair,
    /// MTU and Ethernet address of the image.
    image: facts::ImageFacts,
}

/// Called with the namespace in which pairs came or went.
type Observer = Rc<dyn Fn(Option<&str>)>;

/// All pairs.
pub struct Lcp {
    control: Weak<Control>,
    interfaces: Rc<Interfaces>,
    peers: Peers,
    pairs: RefCell<BTreeMap<SwIfIndex, Pair>>,
    /// Interfaces by the kernel's number of their image, which may be that of several in different namespaces.
    by_index: RefCell<HashMap<u32, Vec<SwIfIndex>>>,
    /// Interfaces whose images go when a replacement ends, unless they are asked for again.
    marked: RefCell<BTreeSet<SwIfIndex>>,
    default_netns: RefCell<Option<String>>,
    sync: Cell<Sync>,
    /// Whether borrowed addresses are passed on to the kernel.
    sync_unnumbered: Cell<Sync>,
    /// Whether new sub-interfaces of interfaces with an image get one.
    auto_subint: Cell<Sync>,
    /// The edge of `ethernet-input` to `linux-cp-other`.
    other: Edge,
    /// The edge of `ethernet-input` to `linux-cp-osi`, and which protocols pass there, unless the start-up file says no.
    osi_edge: Edge,
    osi: Protocols,
    /// Multicast routes of Linux, IPv4 and IPv6, as packets see them.
    groups: [LinuxGroups; 2],
    pub(crate) osi_is_on: Cell<bool>,
    /// Types of frames that pass besides IP and ARP.
    types: RefCell<BTreeSet<EtherType>>,
    at_start: RefCell<AtStart>,
    /// Whether what Linux does with images is taken over.
    pub(crate) follows_linux: Cell<bool>,
    /// How many namespaces were followed so far.
    mirrors_made: Cell<u64>,
    mirrors: RefCell<BTreeMap<Option<String>, mirror::Mirror>>,
    /// Zero if there are none.
    audit_interval: Cell<Duration>,
    /// Namespaces whose routes of zebra come by a connection of its own.
    by_connection: RefCell<BTreeSet<Option<String>>>,
    /// Who hears of pairs that come and go.
    observers: RefCell<Vec<Observer>>,
    /// The interface that is being set up or down because Linux says so.
    told_by_linux: Cell<Option<SwIfIndex>>,
    /// The interface that is on its way to another table.
    moving: Cell<Option<SwIfIndex>>,
    /// A sub-interface for a VLAN of Linux is being made: it needs no image of its own.
    making: Cell<bool>,
}

/// What the start-up file says.
#[derive(Default)]
struct AtStart {
    netns: Option<String>,
    sync: Sync,
    auto_subint: Sync,
}

/// Whether MTUs and addresses are passed on to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sync {
    /// Of all changes, and what there is now.
    On,
    /// Of what there is when a pair is made: the MTU.
    #[default]
    Off,
}

impl Pair {
    fn new(
        host: SwIfIndex,
        name: String,
        netns: Option<String>,
        (host_index, layer): (u32, HostLayer),
    ) -> Self {
        let (addresses, from_linux, lost) = (Vec::new(), AddressSet::new(), BTreeMap::new());
        let (vlan, vrf, before_vrf, tables) = (None, None, TablePair::default(), TablePair::default());
        Pair {
            index: 0,
            host,
            name,
            netns,
            host_index,
            layer,
            addresses,
            expected: Vec::new(),
            from_linux,
            lost,
            vlan,
            vrf,
            before_vrf,
            tables,
            image: facts::ImageFacts::default(),
        }
    }

    /// Whether the interface was made for a VLAN of Linux.
    fn is_made_by_linux(&self) -> bool {
        self.vlan.as_ref().is_some_and(vlans::OfVlan::is_made)
    }
}

impl Lcp {
    pub(crate) fn new(
        control: &Rc<Control>,
        peers: Peers,
        other: Edge,
        (osi_edge, osi): (Edge, Protocols),
        groups: [LinuxGroups; 2],
    ) -> Result<Self, InitError> {
        Ok(Lcp {
            control: Rc::downgrade(control),
            interfaces: control.get()?,
            peers,
            pairs: RefCell::default(),
            by_index: RefCell::default(),
            marked: RefCell::default(),
            default_netns: RefCell::default(),
            sync: Cell::new(Sync::Off),
            sync_unnumbered: Cell::new(Sync::On),
            auto_subint: Cell::new(Sync::Off),
            other,
            osi_edge,
            osi,
            groups,
            osi_is_on: Cell::new(true),
            types: RefCell::default(),
            at_start: RefCell::default(),
            follows_linux: Cell::new(true),
            mirrors_made: Cell::default(),
            mirrors: RefCell::default(),
            audit_interval: Cell::new(netlink::AUDIT_INTERVAL),
            by_connection: RefCell::default(),
            observers: RefCell::default(),
            told_by_linux: Cell::new(None),
            moving: Cell::new(None),
            making: Cell::new(false),
        })
    }

    fn host_side(&self) -> Result<Rc<dyn HostPorts>, LcpError> {
        let control = self.control.upgrade().ok_or(LcpError::NoDriver)?;
        control.get::<HostSide>().map(|side| Rc::clone(&side.0)).map_err(|_| LcpError::NoDriver)
    }

    /// Gives an interface an image in the kernel, in the default namespace unless another one is named.
    ///
    /// # Errors
    /// The interface cannot have one or has one, or the kernel refuses; nothing is left behind then.
    pub fn create(&self, phy: SwIfIndex, name: &str, netns: Option<&str>) -> Result<SwIfIndex, LcpError> {
        self.create_of(phy, name, netns, HostLayer::Ethernet)
    }

    /// The same with an image that carries frames, or IP packets.
    ///
    /// # Errors
    /// As [`Lcp::create`].
    pub fn create_of(
        &self,
        phy: SwIfIndex,
        name: &str,
        netns: Option<&str>,
        layer: HostLayer,
    ) -> Result<SwIfIndex, LcpError> {
        let side = self.host_side()?;
        let phy_name = self.interfaces.name(phy)?;
        if let Some(peer) = self.peers.of(phy) {
            if self.unmark(phy, name, netns) {
                return Ok(peer);
            }
            let peer = self.interfaces.name(peer).unwrap_or_default();
            let is_phy = self.pairs.borrow().contains_key(&phy);
            return Err(if is_phy {
                LcpError::Paired(phy_name, peer)
            } else {
                LcpError::IsHost(phy_name, peer)
            });
        }
        let bad = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control() || c == '%';
        if name.is_empty() || name.len() > 15 || name.contains(bad) || name == "." || name == ".." {
            return Err(LcpError::Name(name.to_owned()));
        }
        let data = self.interfaces.data(phy)?;
        if layer == HostLayer::Ethernet && !data.flags().has(IfFlags::ETHERNET) {
            return Err(LcpError::NotEthernet(phy_name));
        }
        // It must be known which tags frames of the kernel are to have.
        self.interfaces.check_routable(phy).map_err(|_| LcpError::NotExact(phy_name))?;
        let netns = netns.map(str::to_owned).or_else(|| self.default_netns.borrow().clone());
        // Linux begins with the state of the interface, whether changes are mirrored or not.
        let up = data.is_up();
        let port = HostPort {
            name: name.to_owned(),
            netns: netns.clone(),
            mac: data.mac(),
            mtu: data.mtu,
            up,
            layer,
        };
        let what = || format!("interface {name}");
        let host = side.create(&port).map_err(|why| LcpError::Host { what: what(), why })?;
        if let Err(e) = self.connect(phy, host, up) {
            self.disconnect(phy, host);
            let _ = side.delete(host);
            return Err(e);
        }
        let host_index = side.host_index(host).unwrap_or(0);
        let (name, place) = (name.to_owned(), netns.clone());
        let image = facts::ImageFacts::of(data.mtu, data.mac());
        self.enter(phy, Pair { image, ..Pair::new(host, name, netns, (host_index, layer)) });
        self.follow_link(phy, data.flags().has(IfFlags::LINK_UP));
        self.listen(&place);
        if side.is_up(host) == Some(false) {
            // That Linux says so is no change then.
            self.with(&place, |mirror| mirror.down.insert(host_index));
        }
        self.pairs_changed(&place, host_index);
        // One of an earlier start may be part of a VRF and have VLANs already.
        self.follow_vrf(phy);
        self.follow_vlans_on(&place, host_index);
        if self.sync.get() == Sync::On {
            self.sync_addresses(phy);
        }
        Ok(host)
    }

    /// Keeps a pair, under the lowest number that is free.
    fn enter(&self, phy: SwIfIndex, mut pair: Pair) {
        pair.tables = self.tables_of(phy);
        let mut pairs = self.pairs.borrow_mut();
        let used: BTreeSet<u32> = pairs.values().map(|pair| pair.index).collect();
        pair.index =
            (0..).zip(&used).find(|(free, used)| free != *used).map_or(used.len() as u32, |(n, _)| n);
        self.by_index.borrow_mut().entry(pair.host_index).or_default().push(phy);
        pairs.insert(phy, pair);
    }

    /// Forgets a pair.
    fn take(&self, phy: SwIfIndex) -> Option<Pair> {
        let pair = self.pairs.borrow_mut().remove(&phy)?;
        let mut by_index = self.by_index.borrow_mut();
        if let Some(all) = by_index.get_mut(&pair.host_index) {
            all.retain(|other| *other != phy);
            if all.is_empty() {
                by_index.remove(&pair.host_index);
            }
        }
        Some(pair)
    }

    fn connect(&self, phy: SwIfIndex, host: SwIfIndex, up: bool) -> Result<(), LcpError> {
        self.peers.join(phy, host);
        if self.interfaces.data(host)?.flags().has(IfFlags::ETHERNET) {
            self.interfaces.enable_feature(DEVICE_INPUT_ARC, "linux-cp-xc", host, true)?;
        } else if let Some(control) = self.control.upgrade() {
            // Without a header there is nothing to send as it is: packets of Linux are routed.
            control.get::<Ip4>().ok().and_then(|ip4| ip4.enable(host, true).ok());
            control.get::<Ip6>().ok().and_then(|ip6| ip6.enable(host, true).ok());
        }
        for (arc, node) in PHY_FEATURES {
            self.interfaces.enable_feature(arc, node, phy, true)?;
        }
        Ok(self.interfaces.set_admin(host, up)?)
    }

    fn disconnect(&self, phy: SwIfIndex, host: SwIfIndex) {
        for (arc, node) in PHY_FEATURES {
            let _ = self.interfaces.enable_feature(arc, node, phy, false);
        }
        let _ = self.interfaces.enable_feature(DEVICE_INPUT_ARC, "linux-cp-xc", host, false);
        self.peers.part(phy, host);
    }

    /// Takes an interface's image away.
    ///
    /// # Errors
    /// It has none.
    pub fn delete(&self, phy: SwIfIndex) -> Result<(), LcpError> {
        let name = self.interfaces.name(phy)?;
        if self.is_vlan(phy) {
            return Err(LcpError::OfLinux(name));
        }
        self.drop_vlans_of(phy);
        let pair = self.take(phy);
        self.marked.borrow_mut().remove(&phy);
        let pair = pair.ok_or(LcpError::NotPaired(name))?;
        self.disconnect(phy, pair.host);
        self.forget_own_mac(phy, &pair);
        self.keep_interface(phy, &pair);
        self.pairs_changed(&pair.netns, pair.host_index);
        let what = format!("to delete {}", pair.name);
        self.host_side()?.delete(pair.host).map_err(|why| LcpError::Host { what, why })
    }

    /// Marks all pairs: those that are not asked for again go at [`Lcp::end_replacement`].
    pub fn begin_replacement(&self) {
        // Those that Linux has made go with what they are made of.
        let pairs = self.pairs.borrow();
        let own = pairs.iter().filter(|(_, pair)| pair.vlan.is_none());
        *self.marked.borrow_mut() = own.map(|(phy, _)| *phy).collect();
    }

    /// Takes away the images that are still marked.
    ///
    /// # Errors
    /// The kernel refuses to let one go; the others are gone.
    pub fn end_replacement(&self) -> Result<(), LcpError> {
        let marked = std::mem::take(&mut *self.marked.borrow_mut());
        let mut done = Ok(());
        for phy in marked {
            if self.pairs.borrow().contains_key(&phy) {
                done = done.and(self.delete(phy));
            }
        }
        done
    }

    /// Whether the pair that is asked for is there and was marked; it is so no longer.
    fn unmark(&self, phy: SwIfIndex, name: &str, netns: Option<&str>) -> bool {
        let same = self.pairs.borrow().get(&phy).is_some_and(|pair| {
            pair.name == name && pair.netns.as_deref() == netns.or(self.default_netns.borrow().as_deref())
        });
        same && self.marked.borrow_mut().remove(&phy)
    }

    /// The kernel's number of an image.
    pub fn host_index(&self, host: SwIfIndex) -> Option<u32> {
        self.host_side().ok()?.host_index(host)
    }

    /// All pairs by number.
    pub fn list(&self) -> Vec<PairInfo> {
        let side = self.host_side().ok();
        let info = |(phy, pair): (&SwIfIndex, &Pair)| PairInfo {
            index: pair.index,
            phy: *phy,
            host: pair.host,
            name: pair.name.clone(),
            host_index: match pair.vlan {
                Some(_) => pair.host_index,
                None => side.as_ref().and_then(|s| s.host_index(pair.host)).unwrap_or(0),
            },
            netns: pair.netns.clone(),
            layer: pair.layer,
            is_vlan: pair.vlan.is_some(),
        };
        let mut all: Vec<PairInfo> = self.pairs.borrow().iter().map(info).collect();
        all.sort_by_key(|pair| pair.index);
        all
    }

    /// The namespace of pairs that name none.
    pub fn default_netns(&self) -> Option<String> {
        self.default_netns.borrow().clone()
    }

    /// Sets the namespace of pairs that name none.
    pub fn set_default_netns(&self, netns: Option<&str>) {
        *self.default_netns.borrow_mut() = netns.map(str::to_owned);
    }

    /// What holds now is what the start-up file says.
    pub(crate) fn started(&self) {
        *self.at_start.borrow_mut() =
            AtStart { netns: self.default_netns(), sync: self.sync(), auto_subint: self.auto_subint() };
    }

    /// The namespace the start-up file names.
    pub(crate) fn default_netns_at_start(&self) -> Option<String> {
        self.at_start.borrow().netns.clone()
    }

    /// Whether changes are passed on to the kernel, as the start-up file says.
    pub(crate) fn sync_at_start(&self) -> Sync {
        self.at_start.borrow().sync
    }

    /// Whether new sub-interfaces get images, as the start-up file says.
    pub(crate) fn auto_subint_at_start(&self) -> Sync {
        self.at_start.borrow().auto_subint
    }

    fn host_of(&self, phy: SwIfIndex) -> Option<SwIfIndex> {
        self.pairs.borrow().get(&phy).map(|pair| pair.host)
    }

    /// Something happened to an interface.
    pub(crate) fn follow(self: &Rc<Self>, event: Event) {
        let interface = event.interface();
        match event {
            // The cable between router and kernel is the interface's: whether it may be used is seen at both ends.
            Event::Admin(phy, up) => {
                if let Some(host) = self.host_of(phy).filter(|_| !self.is_vlan(phy)) {
                    self.warn(phy, "state", self.interfaces.set_admin(host, up).map_err(|e| e.to_string()));
                }
                if up {
                    self.raise_vlans_of(phy);
                }
                if self.sync.get() == Sync::On {
                    self.sync_admin(phy);
                }
            }
            Event::Link(phy, up) => self.follow_link(phy, up),
            Event::Created(sub) => self.create_of_sub(sub),
            // Linux knows what it has just said.
            Event::Mac(phy) if self.told_by_linux.get() == Some(phy) => {}
            Event::Mac(phy) => {
                // A VLAN of Linux has the address of the image that it is on.
                if let (Some(host), Ok(side), Ok(data)) = (
                    self.host_of(phy).filter(|_| !self.is_vlan(phy)),
                    self.host_side(),
                    self.interfaces.data(phy),
                ) {
                    self.warn(phy, "MAC address", side.set_mac(host, data.mac()));
                }
            }
            Event::Ip4(phy, _) | Event::Ip6(phy, _) => self.tables_changed(phy),
            Event::Mtu(phy) if self.sync.get() == Sync::On => self.sync_mtu(phy),
            Event::Deleting(_) => self.forget(interface),
            _ => {}
        }
    }

    /// An interface goes: one with an image takes that with it, when all observers know; an image just goes.
    fn forget(self: &Rc<Self>, interface: SwIfIndex) {
        let phy = if self.pairs.borrow().contains_key(&interface) {
            Some(interface)
        } else {
            self.peers.of(interface)
        };
        let Some(phy) = phy else { return };
        if self.is_vlan(phy) {
            return self.drop_vlan(phy, false);
        }
        self.drop_vlans_of(phy);
        let Some(pair) = self.take(phy) else { return };
        self.marked.borrow_mut().remove(&phy);
        self.disconnect(phy, pair.host);
        self.forget_own_mac(phy, &pair);
        self.pairs_changed(&pair.netns, pair.host_index);
        if phy != interface {
            self.keep_interface(phy, &pair);
            return;
        }
        let (Some(control), Ok(side)) = (self.control.upgrade(), self.host_side()) else { return };
        if let Ok(processes) = control.processes() {
            processes.spawn("linux-cp-delete", async move {
                if let Err(e) = side.delete(pair.host) {
                    tracing::warn!("linux-cp: {} not deleted: {e}", pair.name);
                }
            });
        }
    }
}
