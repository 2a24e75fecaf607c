//! The control plane of AF_XDP interfaces: create, delete, open and close the pinhole, show.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_graph::{Graph, NoNext, NodeIndex};
use shoal_interface::{Create, Device, Event, IfFlags, InterfaceError, Interfaces, SwIfIndex};
use shoal_link::{AdminState, Link, mac_or_random};
use shoal_module::cli::nearest;
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;
use shoal_wire::ip6_address::link_local_of;

use crate::config::{CreateXdp, Mac, check_pinhole};
use crate::counters::XdpCounters;
use crate::filter::{Filter, FilterCounts, Wanted};
use crate::netns::{Netns, run_in};
use crate::pinhole::Pinhole;
use crate::port::Port;
use crate::queues::{self, Attached, most_mtu};
use crate::rx::NODE;
use crate::send::Sender;
use crate::sys::{PacketMemory, XdpMode, XskConfig, XskStats, release};
use crate::tx::XdpTx;
use crate::watch::Watches;
use crate::{Error, default_route, rx};

/// MTUs an interface of this router may have.
const MTUS: std::ops::RangeInclusive<u32> = 64..=65_535;
/// Time between two looks after buffers that the kernel may still use.
const RELEASE: Duration = Duration::from_millis(50);

/// One interface, as the control plane and `show hardware-interfaces` see it.
pub(crate) struct XdpInterface {
    pub(crate) xdps: Weak<XdpInterfaces>,
    /// The kernel's name, as it is now.
    pub(crate) kernel: RefCell<String>,
    /// The kernel's interface; none while it is gone.
    pub(crate) link: RefCell<Option<Link>>,
    pub(crate) port: Arc<Port>,
    /// What was asked for, with the pinhole as it is now.
    pub(crate) asked: RefCell<CreateXdp>,
    pub(crate) config: XskConfig,
    pub(crate) netns: Option<Netns>,
    pub(crate) filter: RefCell<Filter>,
    /// Open sockets and the program on the interface; none while it is gone.
    pub(crate) attached: RefCell<Option<Attached>>,
    /// The kernel's addresses on it.
    pub(crate) addresses: RefCell<Vec<IpAddr>>,
    /// The router's MAC address.
    pub(crate) mac: Cell<MacAddress>,
    /// Whether frames for all stations are wanted.
    pub(crate) all_frames: Cell<bool>,
    /// Whether the operator wants it up.
    pub(crate) up: Cell<bool>,
    /// How often the kernel's interface vanished.
    pub(crate) vanished: Cell<u32>,
}

/// What `show interface af_xdp` prints of one.
#[derive(Clone, Debug)]
pub struct XdpInfo {
    /// Its interface.
    pub index: SwIfIndex,
    /// Its name in the router.
    pub name: String,
    /// The kernel's name.
    pub host_if: String,
    /// The network namespace, if it is another.
    pub netns: Option<String>,
    /// The kernel's number; none while it is gone.
    pub ifindex: Option<u32>,
    /// Where the program is; none while the interface is gone.
    pub mode: Option<XdpMode>,
    /// Whether packets are not copied.
    pub zero_copy: bool,
    /// Where packets are while the kernel has them: `pool`, `own`, `pool and own`, or `none` while it is gone.
    pub memory: &'static str,
    /// Queues that are open.
    pub queues: usize,
    /// Entries of a receive and a transmit ring.
    pub rings: [u32; 2],
    /// What the host keeps.
    pub pinhole: Pinhole,
    /// The kernel's addresses on it.
    pub addresses: Vec<IpAddr>,
    /// Where frames went.
    pub counts: FilterCounts,
    /// The kernel's counters of all sockets together.
    pub stats: XskStats,
    /// What the kernel gave that made no sense.
    pub malformed: u64,
    /// How often the kernel's interface vanished.
    pub vanished: u32,
}

/// All AF_XDP interfaces of one router.
pub struct XdpInterfaces {
    pub(crate) control: Weak<Control>,
    pub(crate) interfaces: Rc<Interfaces>,
    pub(crate) graph: Rc<Graph>,
    pub(crate) input: NodeIndex,
    counters: XdpCounters,
    all: RefCell<Vec<Rc<XdpInterface>>>,
    pub(crate) watches: Watches,
}

pub(crate) fn is_up(link: &Link) -> bool {
    link.admin == AdminState::Up && link.running
}

pub(crate) fn mtu_of(link: &Link) -> u16 {
    link.mtu.clamp(*MTUS.start(), *MTUS.end()) as u16
}

impl XdpInterface {
    /// Tells the program what is wanted of it now.
    pub(crate) fn apply(&self) -> Result<(), Error> {
        self.apply_with(self.up.get(), &self.asked.borrow().pinhole, self.mac.get())
    }

    fn apply_with(&self, take: bool, pinhole: &Pinhole, mac: MacAddress) -> Result<(), Error> {
        let kernel_mac = self.link.borrow().as_ref().and_then(|l| l.mac).map_or(MacAddress::ZERO, MacAddress);
        let own_mac = (self.asked.borrow().mac != Mac::Kernels).then_some(mac);
        let mut addresses = self.addresses.borrow().clone();
        if own_mac.is_none() {
            // With one MAC address for both, both have the link-local address that it makes. Neighbours answer the router
            // there.
            addresses.retain(|address| *address != IpAddr::V6(link_local_of(kernel_mac)));
        }
        self.filter.borrow_mut().apply(&Wanted { take, own_mac, kernel_mac, pinhole, addresses: &addresses })
    }

    /// The operator sets it up or down. Down: the host has the port to itself.
    pub(crate) fn take(&self, up: bool) -> Result<(), Error> {
        self.apply_with(up, &self.asked.borrow().pinhole, self.mac.get())?;
        self.up.set(up);
        Ok(())
    }

    pub(crate) fn set_mac(&self, mac: MacAddress) -> Result<(), Error> {
        self.apply_with(self.up.get(), &self.asked.borrow().pinhole, mac)?;
        let own_mac = (self.asked.borrow().mac != Mac::Kernels).then_some(mac);
        if let Some(attached) = &mut *self.attached.borrow_mut() {
            attached.stations.set_own(own_mac)?;
        }
        self.mac.set(mac);
        Ok(())
    }

    /// Largest MTU whose frames fit.
    pub(crate) fn most_mtu(&self) -> u32 {
        let attached = self.attached.borrow();
        attached
            .as_ref()
            .map_or_else(|| most_mtu(self.config.multi_buffer, PacketMemory::Own), Attached::most_mtu)
    }

    pub(crate) fn stats(&self) -> XskStats {
        let mut sum = XskStats::default();
        let attached = self.attached.borrow();
        let all = attached.iter().flat_map(|a| &a.queues).filter_map(|q| q.handle.stats().ok());
        all.for_each(|stats| sum.add(&stats));
        sum
    }
}

impl XdpInterfaces {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let input = graph.add_input::<NoNext, rx::Error>(NODE)?;
        let counters = XdpCounters::new(graph.counters())?;
        let xdps = Rc::new(XdpInterfaces {
            control: Rc::downgrade(control),
            interfaces: Rc::clone(&interfaces),
            graph,
            input,
            counters,
            all: RefCell::default(),
            watches: Watches::default(),
        });
        let weak = Rc::downgrade(&xdps);
        interfaces.subscribe(move |_, event| {
            if let (Event::Deleting(index), Some(xdps)) = (event, weak.upgrade()) {
                xdps.forget(index);
            }
        });
        Ok(xdps)
    }

    pub(crate) fn all(&self) -> Vec<Rc<XdpInterface>> {
        self.all.borrow().clone()
    }

    fn of(&self, index: SwIfIndex) -> Result<Rc<XdpInterface>, Error> {
        let found = self.all.borrow().iter().find(|x| x.port.index() == index).cloned();
        found.ok_or_else(|| {
            let name = self.interfaces.name(index).unwrap_or_else(|_| format!("sw_if_index {index}"));
            let names: Vec<_> =
                self.all().iter().filter_map(|x| self.interfaces.name(x.port.index()).ok()).collect();
            let near = nearest(&name, names.iter().map(String::as_str)).map(str::to_owned);
            Error::NotOurs { name, nearest: near.or_else(|| names.first().cloned()) }
        })
    }

    /// The name that an interface without one gets: the kernel's and the lowest number that is free.
    fn free_name(&self, kernel: &str) -> String {
        let mut number = 0u32;
        loop {
            let name = format!("{kernel}/{number}");
            if self.interfaces.by_name(&name).is_none() {
                return name;
            }
            number += 1;
        }
    }

    /// Takes a kernel interface into the router. It starts admin down, and until it is up the host has every frame.
    ///
    /// # Errors
    /// The kernel has no such interface or refuses; a number is out of range; the interface is taken already, carries the
    /// default route, or its frames do not fit. Nothing is left behind then.
    pub fn create(self: &Rc<Self>, create: &CreateXdp) -> Result<SwIfIndex, Error> {
        let config = create.check()?;
        let netns = create.netns.as_deref().map(Netns::open).transpose()?;
        let name = create.name.clone().unwrap_or_else(|| self.free_name(&create.host_if));
        if self.interfaces.by_name(&name).is_some() {
            return Err(InterfaceError::Exists(name).into());
        }
        let (link, is_default) = run_in(netns.as_ref(), || {
            let link = find(&create.host_if)?;
            let is_default = default_route::is_on(&link.name);
            Ok((link, is_default))
        })?;
        self.check_free(&link, create)?;
        let Some(kernel_mac) = link.mac else { return Err(Error::NoEthernet(link.name)) };
        if is_default && create.pinhole.is_empty() && !create.force {
            return Err(Error::DefaultRoute(link.name));
        }
        let addresses = self.watch(netns.as_ref(), create.netns.as_deref(), &link)?;
        let mac = match create.mac {
            Mac::Random => mac_or_random(None),
            Mac::Given(mac) => mac_or_random(Some(mac)),
            Mac::Kernels => MacAddress(kernel_mac),
        };
        let filter = Filter::new(config.multi_buffer)?;
        let own_mac = (create.mac != Mac::Kernels).then_some(mac);
        let pool = Some(self.graph.pool());
        let opened =
            run_in(netns.as_ref(), || queues::open(&link, &filter, &config, create.queues, own_mac, pool));
        // Some may have been opened and closed again.
        self.release_buffers();
        let (attached, halves, remarks) = opened?;
        let senders = attached.senders(&link);
        let (rx, tx): (Vec<_>, Vec<_>) = halves.into_iter().unzip();
        let queues = tx.into_iter().map(Sender::new).collect();
        let port = Arc::new(Port::new(self.interfaces.table(), self.counters.clone(), queues));
        let mut asked = create.clone();
        // Also one that was drawn: hosts that know the router by it still do after a restart.
        if own_mac.is_some() {
            asked.mac = Mac::Given(mac);
        }
        let xdp = Rc::new(XdpInterface {
            xdps: Rc::downgrade(self),
            kernel: RefCell::new(link.name.clone()),
            link: RefCell::new(Some(link.clone())),
            port: Arc::clone(&port),
            asked: RefCell::new(asked),
            config,
            netns,
            filter: RefCell::new(filter),
            attached: RefCell::new(Some(attached)),
            addresses: RefCell::new(addresses),
            mac: Cell::new(mac),
            all_frames: Cell::new(false),
            up: Cell::new(false),
            vanished: Cell::new(0),
        });
        xdp.apply()?;
        let flags = IfFlags::ETHERNET.set(IfFlags::LINK_UP, is_up(&link));
        let device = Rc::clone(&xdp) as Rc<dyn Device>;
        let make = Create { name: &name, mac, mtu: mtu_of(&link), flags, rx_next: "ethernet-input", device };
        let index = self.interfaces.create(&make, XdpTx { port: Arc::clone(&port) })?;
        self.counters.begin(index);
        port.set_index(index);
        self.all.borrow_mut().push(Rc::clone(&xdp));
        if let Err(e) = self.add_queues(&xdp, 0, rx, senders) {
            let _ = self.interfaces.delete(index);
            return Err(e);
        }
        for remark in remarks {
            self.say(&format!("{name}: {remark}"));
        }
        Ok(index)
    }

    fn check_free(&self, link: &Link, create: &CreateXdp) -> Result<(), Error> {
        let all = self.all();
        let taken = all.iter().find(|x| {
            x.asked.borrow().netns == create.netns
                && x.link.borrow().as_ref().is_some_and(|l| l.index == link.index)
        });
        taken.map_or(Ok(()), |x| {
            let name = self.interfaces.name(x.port.index()).unwrap_or_default();
            Err(Error::Taken { kernel: link.name.clone(), name })
        })
    }

    /// Gives a kernel interface back.
    ///
    /// # Errors
    /// It is not one of the router's AF_XDP interfaces.
    pub fn delete(&self, index: SwIfIndex) -> Result<(), Error> {
        self.of(index)?;
        Ok(self.interfaces.delete(index)?)
    }

    /// The interface that was made of a kernel's interface, by its name.
    pub fn named(&self, kernel: &str) -> Option<SwIfIndex> {
        self.all().iter().find(|x| *x.kernel.borrow() == kernel).map(|x| x.port.index())
    }

    /// Chooses again what the host keeps, while frames pass.
    ///
    /// # Errors
    /// It is no AF_XDP interface, the rules do not fit it, or the kernel refuses; nothing is changed then.
    pub fn set_pinhole(&self, index: SwIfIndex, pinhole: &Pinhole, force: bool) -> Result<(), Error> {
        let xdp = self.of(index)?;
        check_pinhole(xdp.asked.borrow().mac, pinhole)?;
        let kernel = xdp.kernel.borrow().clone();
        if pinhole.is_empty() && !force && !xdp.asked.borrow().force {
            let on = run_in(xdp.netns.as_ref(), || Ok(default_route::is_on(&kernel)))?;
            if on {
                return Err(Error::DefaultRoute(kernel));
            }
        }
        if let Err(e) = xdp.apply_with(xdp.up.get(), pinhole, xdp.mac.get()) {
            // What it was: entries that fitted before fit again.
            let _ = xdp.apply();
            return Err(e);
        }
        let mut asked = xdp.asked.borrow_mut();
        asked.pinhole = pinhole.clone();
        asked.force |= force;
        Ok(())
    }

    /// All of them, or one.
    ///
    /// # Errors
    /// The interface is no AF_XDP interface.
    pub fn list(&self, only: Option<SwIfIndex>) -> Result<Vec<XdpInfo>, Error> {
        match only {
            Some(index) => Ok(vec![self.info(&*self.of(index)?)]),
            None => Ok(self.all().iter().map(|x| self.info(x)).collect()),
        }
    }

    fn info(&self, xdp: &XdpInterface) -> XdpInfo {
        let (index, asked, attached) = (xdp.port.index(), xdp.asked.borrow(), xdp.attached.borrow());
        XdpInfo {
            index,
            name: self.interfaces.name(index).unwrap_or_default(),
            host_if: xdp.kernel.borrow().clone(),
            netns: asked.netns.clone(),
            ifindex: xdp.link.borrow().as_ref().map(|l| l.index.get()),
            mode: attached.as_ref().map(Attached::mode),
            zero_copy: attached.as_ref().is_some_and(Attached::is_zero_copy),
            memory: attached.as_ref().map_or("none", Attached::memory),
            queues: attached.as_ref().map_or(0, |a| a.queues.len()),
            rings: [xdp.config.rx_size, xdp.config.tx_size],
            pinhole: asked.pinhole.clone(),
            addresses: xdp.addresses.borrow().clone(),
            counts: xdp.filter.borrow().counts().unwrap_or_default(),
            stats: xdp.stats(),
            malformed: xdp.port.malformed.load(Ordering::Relaxed),
            vanished: xdp.vanished.get(),
        }
    }

    /// All interfaces and what was asked for, with the names the kernel has for them now.
    pub(crate) fn made(&self) -> Vec<(SwIfIndex, CreateXdp)> {
        let made = |xdp: &Rc<XdpInterface>| {
            let asked = CreateXdp { host_if: xdp.kernel.borrow().clone(), ..xdp.asked.borrow().clone() };
            (xdp.port.index(), asked)
        };
        self.all.borrow().iter().map(made).collect()
    }

    /// An interface is about to be deleted: from here on the host has every frame.
    fn forget(&self, index: SwIfIndex) {
        let at = self.all.borrow().iter().position(|x| x.port.index() == index);
        if let Some(at) = at {
            let xdp = self.all.borrow_mut().remove(at);
            xdp.attached.borrow_mut().take();
            xdp.port.replace_tx(Vec::new());
            self.release_buffers();
        }
    }

    /// Looks after buffers that the kernel may still use, once queues that had them are closed.
    pub(crate) fn release_buffers(&self) {
        let control = Weak::clone(&self.control);
        let processes = move || control.upgrade().and_then(|control| control.processes().ok());
        let Some(now) = processes() else { return };
        now.spawn_unlisted(async move {
            while let Some(wait) = processes().map(|p| p.sleep(RELEASE)) {
                wait.await;
                if release::sweep() == 0 {
                    return;
                }
            }
        });
    }

    pub(crate) fn say(&self, what: &str) {
        tracing::warn!("{what}");
        self.graph.events().write(0, what);
    }

    pub(crate) fn must<E: std::fmt::Display>(&self, what: &str, result: Result<(), E>) {
        if let Err(e) = result {
            self.say(&format!("AF_XDP interface, {what}: {e}"));
        }
    }
}

fn find(name: &str) -> Result<Link, Error> {
    match Link::by_name(name) {
        Err(shoal_link::Error::NoInterface { name }) => {
            let nearest = Link::nearest_name(&name);
            Err(Error::NoInterface { name, nearest })
        }
        found => Ok(found?),
    }
}

/// Whether the kernel has an interface of this name in a network namespace, or in the router's own.
///
/// # Errors
/// It has not, and the nearest is named; or there is no such namespace.
pub(crate) fn kernel_has(name: &str, netns: Option<&str>) -> Result<(), Error> {
    let netns = netns.map(Netns::open).transpose()?;
    run_in(netns.as_ref(), || find(name).map(drop))
}
