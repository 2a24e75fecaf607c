//! An AF_XDP interface as `net/interface` sees its device.

// Writing to a String cannot fail.
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use shoal_interface::{Device, TxPlacement};
use shoal_link::{AdminState, set_admin_state, set_mtu};
use shoal_wire::MacAddress;

use crate::config::Mac;
use crate::control::{XdpInterface, mtu_of};
use crate::netns::run_in;
use crate::queues::most_mtu;
use crate::sys::{PacketMemory, XdpMode};

impl Device for XdpInterface {
    fn set_rx_queues(&self, queues: u32) -> Result<(), String> {
        let Some(xdps) = self.xdps.upgrade() else { return Ok(()) };
        xdps.resize(self, queues).map_err(|e| e.to_string())
    }

    fn class(&self) -> &'static str {
        "af_xdp"
    }

    /// Up: the kernel's interface goes up, too. Down: it stays as it is, for the host may use it; the host then has the
    /// port to itself.
    fn set_admin(&self, up: bool) -> Result<(), String> {
        let link = self.link.borrow().as_ref().map(|l| (l.index, l.admin));
        // While it is gone the wish is kept and done when it is back.
        if let Some((index, AdminState::Down)) = link
            && up
        {
            let set = run_in(self.netns.as_ref(), || Ok(set_admin_state(index, AdminState::Up)?));
            set.map_err(|e| e.to_string())?;
        }
        self.take(up).map_err(|e| e.to_string())
    }

    fn set_mac(&self, mac: MacAddress) -> Result<(), String> {
        if self.asked.borrow().mac == Mac::Kernels && mac != self.mac.get() {
            return Err("it uses the kernel's MAC address (mac-reuse): change that one".into());
        }
        XdpInterface::set_mac(self, mac).map_err(|e| e.to_string())?;
        let mut asked = self.asked.borrow_mut();
        if asked.mac != Mac::Kernels {
            asked.mac = Mac::Given(mac);
        }
        Ok(())
    }

    /// While the kernel's interface is gone the wish is kept and done when it is back.
    fn set_promiscuous(&self, on: bool) -> Result<(), String> {
        if let Some(attached) = &mut *self.attached.borrow_mut() {
            attached.stations.set_all(on).map_err(|e| e.to_string())?;
        }
        self.all_frames.set(on);
        Ok(())
    }

    fn set_mtu(&self, mtu: u32) -> Result<(), String> {
        let most = self.most_mtu();
        if mtu > most {
            let more = match self.config.multi_buffer {
                true => "",
                false if most < most_mtu(false, PacketMemory::Own) => {
                    ", more with own-memory or multi-buffer"
                }
                false => ", more with multi-buffer",
            };
            return Err(format!("frames of MTU {mtu} do not fit, up to {most} do{more}"));
        }
        let mut link = self.link.borrow_mut();
        let Some(link) = link.as_mut() else { return Ok(()) };
        // Only ever raised: the host may need its own, and the router keeps to a smaller one by itself.
        if u32::from(mtu_of(link)) >= mtu {
            return Ok(());
        }
        let index = link.index;
        run_in(self.netns.as_ref(), || Ok(set_mtu(index, mtu)?)).map_err(|e| e.to_string())?;
        link.mtu = mtu;
        Ok(())
    }

    fn tx_placement(&self) -> Option<&TxPlacement> {
        Some(&self.port.placement)
    }

    /// It is the kernel's at first, and follows when that changes.
    fn has_given_mtu(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let (asked, attached) = (self.asked.borrow(), self.attached.borrow());
        let mut text = String::new();
        let _ = match &*self.link.borrow() {
            Some(link) => {
                let kind = link.kind.as_deref().unwrap_or("hardware");
                writeln!(text, "Linux interface {} (ifindex {}, {kind})", link.name, link.index)
            }
            None => writeln!(text, "Linux interface {} is gone, waiting for it", self.kernel.borrow()),
        };
        if let Some(attached) = &*attached {
            let mode = if attached.mode() == XdpMode::Native { "native" } else { "generic" };
            let copy = if attached.is_zero_copy() { "zero-copy" } else { "copy" };
            let pieces = if self.config.multi_buffer { ", multi-buffer" } else { "" };
            let _ = writeln!(text, "XDP {mode}, {copy}{pieces}, packet memory {}", attached.memory());
            let (n, config) = (attached.queues.len(), self.config);
            let _ = writeln!(text, "queues: {n}, rx ring {} tx ring {}", config.rx_size, config.tx_size);
        }
        if let Some(busy) = self.config.busy_poll {
            let _ = writeln!(text, "busy poll: {} usecs, budget {}", busy.usecs, busy.budget);
        }
        let mac = if asked.mac == Mac::Kernels { "the kernel's" } else { "its own" };
        let _ = writeln!(text, "MAC address: {mac}");
        let _ = writeln!(text, "pinhole: {}", asked.pinhole);
        if let Ok(counts) = self.filter.borrow().counts() {
            let (router, host) = (counts.redirected, counts.passed);
            let _ = writeln!(text, "to router {router} to host {host} no socket {}", counts.no_socket);
        }
        let stats = self.stats();
        let _ = writeln!(
            text,
            "rx-dropped {} rx-ring-full {} rx-fill-ring-empty {} rx-invalid {} tx-invalid {} tx-ring-empty {}",
            stats.rx_dropped,
            stats.rx_ring_full,
            stats.rx_fill_ring_empty_descs,
            stats.rx_invalid_descs,
            stats.tx_invalid_descs,
            stats.tx_ring_empty_descs
        );
        let malformed = self.port.malformed.load(Ordering::Relaxed);
        let _ = write!(text, "malformed {malformed} vanished {}", self.vanished.get());
        text
    }
}
