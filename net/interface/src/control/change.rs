//! Changing an interface: state, MTU, MAC, name, superpath.

use std::sync::atomic::Ordering;

use shoal_buffer::SwIfIndex;
use shoal_graph::PacketNode;
use shoal_wire::MacAddress;

use super::{Device, Interfaces, MAX_MTU, Mtu, TAGS};
use crate::node::down::DOWN;
use crate::node::stats_collect::{StatsCollectRx, StatsCollectTx};
use crate::{DEVICE_INPUT_ARC, Event, IfFlags, InterfaceError, OUTPUT_ARC};

/// Which MTU of an interface to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MtuLayer {
    /// Of everything above Ethernet.
    L3,
    /// Of IPv4.
    Ip4,
    /// Of IPv6.
    Ip6,
    /// Of MPLS.
    Mpls,
}

fn check_mtu(name: &str, layer: MtuLayer, value: u32) -> Result<(), InterfaceError> {
    let zero = layer != MtuLayer::L3 && value == 0;
    if zero || (64..=MAX_MTU).contains(&value) {
        return Ok(());
    }
    let interface = name.to_owned();
    Err(InterfaceError::Range { what: "MTU", interface, value, least: 64, most: MAX_MTU })
}

impl Interfaces {
    pub(crate) fn device(
        &self,
        index: SwIfIndex,
    ) -> Result<(String, std::rc::Rc<dyn Device>), InterfaceError> {
        let all = self.all.borrow();
        let interface = all.get(&index).ok_or(InterfaceError::NoIndex(index))?;
        Ok((interface.name.clone(), std::rc::Rc::clone(&interface.device)))
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// There is none, or its device cannot; nothing is changed then.
    pub fn set_admin(&self, index: SwIfIndex, up: bool) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        if self.data(index)?.flags().has(IfFlags::ADMIN_UP) == up {
            return Ok(());
        }
        device.set_admin(up).map_err(|e| InterfaceError::NotPossible(name.clone(), e))?;
        self.modify(index, |d| d.with_flags(d.flags().set(IfFlags::ADMIN_UP, up)))?;
        self.graph.enable_feature(OUTPUT_ARC, DOWN, index, !up)?;
        self.graph.events().write(0, format!("{name} admin {}", if up { "up" } else { "down" }));
        self.tell(Event::Admin(index, up));
        Ok(())
    }

    /// A device says whether the other end is there.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_link(&self, index: SwIfIndex, up: bool) -> Result<(), InterfaceError> {
        if self.data(index)?.flags().has(IfFlags::LINK_UP) == up {
            return Ok(());
        }
        self.modify(index, |d| d.with_flags(d.flags().set(IfFlags::LINK_UP, up)))?;
        let name = self.name(index)?;
        self.graph.events().write(0, format!("{name} link {}", if up { "up" } else { "down" }));
        self.tell(Event::Link(index, up));
        Ok(())
    }

    /// Sets an MTU; 0 for a protocol means that of the layer below.
    ///
    /// # Errors
    /// There is no such interface, the value is out of range, or its device cannot.
    pub fn set_mtu(&self, index: SwIfIndex, layer: MtuLayer, value: u32) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        check_mtu(&name, layer, value)?;
        if layer == MtuLayer::L3 {
            device.set_mtu(value).map_err(|e| InterfaceError::NotPossible(name, e))?;
        }
        self.change_mtu(index, |mtu| {
            let Mtu { l3, ip4, ip6, mpls } = mtu;
            let slot = match layer {
                MtuLayer::L3 => l3,
                MtuLayer::Ip4 => ip4,
                MtuLayer::Ip6 => ip6,
                MtuLayer::Mpls => mpls,
            };
            *slot = value as u16;
        })?;
        if layer == MtuLayer::L3 {
            self.keep_mtu(index, value as u16);
        }
        Ok(())
    }

    /// Sets the MTUs of all packets, of IPv4, IPv6 and MPLS, or none of them. 0 leaves the first as it is, and lets it
    /// hold for the others.
    ///
    /// # Errors
    /// As [`Self::set_mtu`].
    pub fn set_mtus(&self, index: SwIfIndex, values: [u32; 4]) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        let [all, ip4, ip6, mpls] = values;
        // 0 is a good value of all layers but the first.
        let first = if all == 0 { MtuLayer::Ip4 } else { MtuLayer::L3 };
        for (layer, value) in
            [(first, all), (MtuLayer::Ip4, ip4), (MtuLayer::Ip6, ip6), (MtuLayer::Mpls, mpls)]
        {
            check_mtu(&name, layer, value)?;
        }
        if all != 0 {
            device.set_mtu(all).map_err(|e| InterfaceError::NotPossible(name, e))?;
        }
        self.change_mtu(index, |mtu| {
            let l3 = if all == 0 { mtu.l3 } else { all as u16 };
            *mtu = Mtu { l3, ip4: ip4 as u16, ip6: ip6 as u16, mpls: mpls as u16 };
        })?;
        if all != 0 {
            self.keep_mtu(index, all as u16);
        }
        Ok(())
    }

    fn change_mtu(&self, index: SwIfIndex, change: impl FnOnce(&mut Mtu)) -> Result<(), InterfaceError> {
        let mtu = {
            let mut all = self.all.borrow_mut();
            let interface = all.get_mut(&index).ok_or(InterfaceError::NoIndex(index))?;
            change(&mut interface.mtu);
            interface.mtu
        };
        self.modify(index, |mut d| {
            (d.mtu, d.mtu_ip4, d.mtu_ip6) = (mtu.l3, mtu.ip4, mtu.ip6);
            d
        })?;
        self.tell(Event::Mtu(index));
        Ok(())
    }

    /// Sets the MAC address.
    ///
    /// # Errors
    /// There is no such interface, the address is a group's, or its device cannot.
    pub fn set_mac(&self, index: SwIfIndex, mac: MacAddress) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        if mac.is_multicast() || mac.is_zero() {
            let why = format!("{mac} is not the address of one station");
            return Err(InterfaceError::NotPossible(name, why));
        }
        device.set_mac(mac).map_err(|e| InterfaceError::NotPossible(name, e))?;
        self.modify(index, |d| d.with_mac(mac))?;
        self.tell(Event::Mac(index));
        Ok(())
    }

    /// Accepts frames for all MAC addresses, or only its own.
    ///
    /// # Errors
    /// There is no such interface, or its device cannot.
    pub fn set_promiscuous(&self, index: SwIfIndex, on: bool) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        device.set_promiscuous(on).map_err(|e| InterfaceError::NotPossible(name, e))?;
        self.modify(index, |d| d.with_flags(d.flags().set(IfFlags::PROMISCUOUS, on)))
    }

    /// Sets the operator's tag.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_tag(&self, index: SwIfIndex, tag: &str) -> Result<(), InterfaceError> {
        let mut all = self.all.borrow_mut();
        let interface = all.get_mut(&index).ok_or(InterfaceError::NoIndex(index))?;
        tag.clone_into(&mut interface.tag);
        self.graph.counters().names(TAGS).set(index.0 as usize, tag);
        Ok(())
    }

    /// Names an interface anew. Its nodes keep their names.
    ///
    /// # Errors
    /// There is no such interface, or the name is taken or has blanks.
    pub fn rename(&self, index: SwIfIndex, name: &str) -> Result<(), InterfaceError> {
        if self.by_name(name).is_some() {
            return Err(InterfaceError::Exists(name.to_owned()));
        }
        let old = self.name(index)?;
        if name.is_empty() || name.len() > 63 || name.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            return Err(InterfaceError::NotPossible(
                old,
                "a name has 1 to 63 characters and no blanks".into(),
            ));
        }
        if let Some(interface) = self.all.borrow_mut().get_mut(&index) {
            name.clone_into(&mut interface.name);
            interface.queues.iter().for_each(|(_, queue)| self.graph.rename_queue(*queue, name));
        }
        {
            let mut names = self.names.borrow_mut();
            names.forget(&old);
            names.insert(name, index);
        }
        self.graph.counters().remove_prefix(&format!("/interfaces/{}/", old.replace('/', "_")));
        self.publish_names(index, name);
        self.tell(Event::Name(index));
        Ok(())
    }

    /// Gives an interface whose name ends with a number another number.
    ///
    /// # Errors
    /// There is no such interface, its name has no number, it is `local0`, or the name is taken.
    pub fn renumber(&self, index: SwIfIndex, number: u32) -> Result<(), InterfaceError> {
        let name = self.name(index)?;
        let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if index == SwIfIndex(0) || kind == name || kind.is_empty() {
            return Err(InterfaceError::NotPossible(name, "has no number that could be changed".into()));
        }
        self.rename(index, &format!("{kind}{number}"))
    }

    /// Enables or disables a feature of an arc on an interface.
    ///
    /// # Errors
    /// There is no such interface, arc or feature.
    pub fn enable_feature(
        &self,
        arc: &str,
        feature: &str,
        index: SwIfIndex,
        on: bool,
    ) -> Result<(), InterfaceError> {
        self.data(index)?;
        self.graph.enable_feature(arc, feature, index, on)?;
        if arc == DEVICE_INPUT_ARC { self.choose_rx_next(index) } else { Ok(()) }
    }

    /// Counts packets by whom they are for, or no longer.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn collect_detailed(&self, index: SwIfIndex, on: bool) -> Result<(), InterfaceError> {
        self.enable_feature(DEVICE_INPUT_ARC, StatsCollectRx::NAME, index, on)?;
        self.enable_feature(OUTPUT_ARC, StatsCollectTx::NAME, index, on)
    }

    /// Chooses where an interface's frames go: to the features they run through first, if there are any; else, and
    /// after those, to the superpath that suits it best.
    pub(crate) fn choose_rx_next(&self, index: SwIfIndex) -> Result<(), InterfaceError> {
        let Some(plain) = self.all.borrow().get(&index).map(|i| i.plain_rx_next) else { return Ok(()) };
        let fast = self.superpath_for(index)?.unwrap_or(plain);
        let featured = self.graph.arc(DEVICE_INPUT_ARC)?.any(index);
        // A superpath sends frames with traced packets the ordinary way by itself.
        let end = self.graph.add_edge(self.device_input_end, fast)?;
        self.modify(index, |mut d| {
            d.device_input_end_edge = end.0;
            if featured {
                d.with_rx_next(self.device_input, self.device_input)
            } else {
                d.with_rx_next(fast, plain)
            }
        })?;
        self.lead_queues(index)
    }

    /// An interface's frames are switched from now on, or routed again.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_layer2(&self, index: SwIfIndex, on: bool) -> Result<(), InterfaceError> {
        self.modify(index, |d| d.with_flags(d.flags().set(IfFlags::LAYER2, on)))?;
        self.choose_rx_next(index)
    }

    /// IPv4 runs on an interface, or does so no more; and in which table packets received there are looked up.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_ip4(&self, index: SwIfIndex, enabled: bool, fib: u32) -> Result<(), InterfaceError> {
        self.modify(index, |mut d| {
            d.fib_ip4 = fib;
            d.with_flags(d.flags().set(IfFlags::IP4, enabled))
        })?;
        if let Some(table) = self.table.ip4_tables.get(index.0 as usize) {
            table.store(fib, Ordering::Relaxed);
        }
        self.tell(Event::Ip4(index, enabled));
        self.choose_rx_next(index)
    }

    /// The same of IPv6.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_ip6(&self, index: SwIfIndex, enabled: bool, fib: u32) -> Result<(), InterfaceError> {
        self.modify(index, |mut d| {
            d.fib_ip6 = fib;
            d.with_flags(d.flags().set(IfFlags::IP6, enabled))
        })?;
        if let Some(table) = self.table.ip6_tables.get(index.0 as usize) {
            table.store(fib, Ordering::Relaxed);
        }
        self.tell(Event::Ip6(index, enabled));
        self.choose_rx_next(index)
    }
}
