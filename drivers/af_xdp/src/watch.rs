//! Following the kernel: one pair of process tasks for each network namespace that interfaces are in.

use std::cell::RefCell;
use std::future::Future;
use std::net::IpAddr;
use std::rc::{Rc, Weak};

use async_io::Async;
use shoal_link::{AddressWatch, AdminState, Link, LinkChange, LinkEvent, LinkWatch, set_admin_state};

use crate::Error;
use crate::control::{XdpInterface, XdpInterfaces, is_up, mtu_of};
use crate::netns::{Netns, run_in};

/// Name of the tasks in `show runtime`.
const LINKS: &str = "af-xdp-link-watch";
const ADDRESSES: &str = "af-xdp-address-watch";

/// The namespaces that are followed, with their addresses.
#[derive(Default)]
pub(crate) struct Watches(RefCell<Vec<(Option<String>, Shared)>>);

/// Read by its task and by code that makes an interface.
type Shared = Rc<RefCell<AddressWatch>>;

impl Watches {
    fn get(&self, netns: Option<&str>) -> Option<Shared> {
        self.0.borrow().iter().find(|(n, _)| n.as_deref() == netns).map(|(_, watch)| Rc::clone(watch))
    }
}

impl XdpInterfaces {
    /// Starts following a namespace, with its first interface; the kernel's addresses on this one.
    pub(crate) fn watch(
        self: &Rc<Self>,
        netns: Option<&Netns>,
        name: Option<&str>,
        link: &Link,
    ) -> Result<Vec<IpAddr>, Error> {
        if let Some(watch) = self.watches.get(name) {
            self.must("addresses", watch.borrow_mut().update().map(drop));
            return Ok(watch.borrow().of(link.index));
        }
        let (links, addresses) = run_in(netns, || Ok((LinkWatch::open()?, AddressWatch::open()?)))?;
        let control = self.control.upgrade().ok_or_else(|| Error::NoWatch("it ends".into()))?;
        let processes = control.processes().map_err(|e| Error::NoWatch(e.to_string()))?;
        let name = name.map(str::to_owned);
        let found = addresses.of(link.index);
        let addresses = Rc::new(RefCell::new(addresses));
        let follow_links = follow_links(links, Rc::downgrade(self), name.clone())?;
        let follow_addresses =
            follow_addresses(Rc::downgrade(&addresses), Rc::downgrade(self), name.clone())?;
        processes.spawn(LINKS, follow_links);
        processes.spawn(ADDRESSES, follow_addresses);
        self.watches.0.borrow_mut().push((name, addresses));
        Ok(found)
    }

    /// Those of a namespace.
    fn in_netns(&self, netns: Option<&str>) -> Vec<Rc<XdpInterface>> {
        self.all().into_iter().filter(|x| x.asked.borrow().netns.as_deref() == netns).collect()
    }

    /// The kernel announced a change.
    fn link_event(&self, netns: Option<&str>, event: &LinkEvent) {
        for xdp in self.in_netns(netns) {
            let known = xdp.link.borrow().as_ref().map(|l| l.index);
            if known == Some(event.link.index) {
                self.changed(&xdp, event);
            } else if known.is_none()
                && *xdp.kernel.borrow() == event.link.name
                && event.change != LinkChange::Deleted
            {
                self.reopen(&xdp, &event.link);
            }
        }
    }

    fn changed(&self, xdp: &XdpInterface, event: &LinkEvent) {
        let (index, link) = (xdp.port.index(), &event.link);
        if event.change == LinkChange::Deleted {
            *xdp.link.borrow_mut() = None;
            xdp.attached.borrow_mut().take();
            xdp.port.replace_tx(Vec::new());
            self.release_buffers();
            xdp.vanished.set(xdp.vanished.get() + 1);
            let kernel = xdp.kernel.borrow();
            self.say(&format!(
                "{kernel}: the kernel's interface of this AF_XDP interface is gone, waiting for it"
            ));
            self.must("link down", self.interfaces.set_link(index, false));
            return;
        }
        *xdp.link.borrow_mut() = Some(link.clone());
        match &event.change {
            LinkChange::Renamed { from } => {
                self.say(&format!(
                    "the kernel's interface {from} of this router is called {} now",
                    link.name
                ));
                xdp.kernel.borrow_mut().clone_from(&link.name);
            }
            LinkChange::Mtu => {
                let set = self.interfaces.follow_mtu(index, mtu_of(link));
                self.must("the kernel's MTU", set);
                let most = xdp.most_mtu();
                if link.mtu > most {
                    let name = &link.name;
                    self.say(&format!(
                        "{name}: MTU {} now, longer frames than of {most} do not fit",
                        link.mtu
                    ));
                }
            }
            LinkChange::Mac => self.kernels_mac(xdp, link),
            _ => {}
        }
        self.must("link", self.interfaces.set_link(index, is_up(link)));
    }

    /// The kernel's MAC address is another: the pinhole knows it, and who uses it uses the new one.
    fn kernels_mac(&self, xdp: &XdpInterface, link: &Link) {
        let reuse = xdp.asked.borrow().mac == crate::config::Mac::Kernels;
        if let Some(mac) = link.mac.map(shoal_wire::MacAddress)
            && reuse
        {
            xdp.mac.set(mac);
            self.must("the kernel's MAC address", self.interfaces.set_mac(xdp.port.index(), mac));
        }
        self.must("the kernel's MAC address", xdp.apply());
    }

    /// An interface of the name has come back. What fails is tried again at the interface's next change.
    fn reopen(&self, xdp: &XdpInterface, link: &Link) {
        let index = xdp.port.index();
        let wanted = self.interfaces.data(index).is_ok_and(|d| d.is_up());
        let up = || {
            if wanted && link.admin == AdminState::Down {
                run_in(xdp.netns.as_ref(), || Ok(set_admin_state(link.index, AdminState::Up)?))?;
            }
            self.open_again(xdp, link)
        };
        let kernel = xdp.kernel.borrow().clone();
        match up() {
            Ok(remarks) => {
                self.say(&format!("{kernel}: the kernel's interface of this AF_XDP interface is back"));
                for remark in remarks {
                    self.say(&remark);
                }
                self.must("the kernel's MTU", self.interfaces.follow_mtu(index, mtu_of(link)));
                self.must("link", self.interfaces.set_link(index, is_up(link)));
            }
            Err(e) => self.say(&format!("{kernel}: the kernel's interface is back, but: {e}")),
        }
    }

    /// The kernel's addresses have changed.
    fn address_event(&self, netns: Option<&str>, watch: &AddressWatch) {
        for xdp in self.in_netns(netns) {
            let Some(index) = xdp.link.borrow().as_ref().map(|l| l.index) else { continue };
            let now = watch.of(index);
            if *xdp.addresses.borrow() != now {
                *xdp.addresses.borrow_mut() = now;
                self.must("the kernel's addresses", xdp.apply());
            }
        }
    }
}

fn follow_links(
    mut watch: LinkWatch,
    xdps: Weak<XdpInterfaces>,
    netns: Option<String>,
) -> Result<impl Future<Output = ()> + 'static, Error> {
    let fd = watch.fd().try_clone_to_owned().map_err(Error::os("dup(AF_NETLINK)"))?;
    let readable = Async::new_nonblocking(fd).map_err(Error::os("epoll(AF_NETLINK)"))?;
    Ok(async move {
        loop {
            loop {
                match watch.next_event() {
                    Ok(Some(event)) => match xdps.upgrade() {
                        Some(xdps) => xdps.link_event(netns.as_deref(), &event),
                        None => return,
                    },
                    Ok(None) => break,
                    // One message that cannot be read; the next ones still count.
                    Err(shoal_link::Error::Netlink(why)) => {
                        tracing::warn!("malformed announcement of a link: {why}");
                    }
                    Err(e) => {
                        return tracing::error!("AF_XDP interfaces do not follow the kernel any more: {e}");
                    }
                }
            }
            if let Err(e) = readable.readable().await {
                return tracing::error!("AF_XDP interfaces do not follow the kernel any more: {e}");
            }
        }
    })
}

fn follow_addresses(
    watch: Weak<RefCell<AddressWatch>>,
    xdps: Weak<XdpInterfaces>,
    netns: Option<String>,
) -> Result<impl Future<Output = ()> + 'static, Error> {
    let fd = watch.upgrade().map(|w| w.borrow().fd().try_clone_to_owned());
    let fd = fd.ok_or_else(|| Error::NoWatch("it ends".into()))?.map_err(Error::os("dup(AF_NETLINK)"))?;
    let readable = Async::new_nonblocking(fd).map_err(Error::os("epoll(AF_NETLINK)"))?;
    Ok(async move {
        loop {
            if let Err(e) = readable.readable().await {
                return tracing::error!(
                    "AF_XDP interfaces do not follow the kernel's addresses any more: {e}"
                );
            }
            let (Some(watch), Some(xdps)) = (watch.upgrade(), xdps.upgrade()) else { return };
            let read = watch.borrow_mut().update();
            match read {
                Ok(_) => {}
                Err(shoal_link::Error::Netlink(why)) => {
                    tracing::warn!("malformed announcement of an address: {why}");
                }
                Err(e) => {
                    return tracing::error!(
                        "AF_XDP interfaces do not follow the kernel's addresses any more: {e}"
                    );
                }
            }
            xdps.address_event(netns.as_deref(), &watch.borrow());
        }
    })
}
